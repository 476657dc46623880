//! Which objects a list has.

use supercargo_model::{Decoded, Everything, KindId};

/// A list that is being read.
#[derive(Debug)]
pub(super) struct Listing(Option<Everything>);

impl Listing {
    /// A list in which nothing was found so far. Nothing is noted down if nothing can have vanished since the last one.
    pub(super) fn new(kind: KindId, is_first: bool) -> Self {
        Listing((!is_first).then(|| Everything::none_of(kind)))
    }

    pub(super) fn put(&mut self, object: &Decoded) {
        if let Some(listed) = &mut self.0 {
            listed.insert(object);
        }
    }

    /// The list has an object of which nobody knows which one it is: it may be any that was known.
    pub(super) fn put_unknown(&mut self) {
        self.0 = None;
    }

    /// Changes may come before the list is complete.
    pub(super) fn remove(&mut self, object: &Decoded) {
        if let Some(listed) = &mut self.0 {
            listed.remove(object);
        }
    }

    /// Everything that there is, if it was noted down and is known.
    pub(super) fn everything(self) -> Option<Everything> {
        self.0
    }
}
