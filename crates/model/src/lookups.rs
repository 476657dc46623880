//! What is looked up in a cluster, for whoever checks that a plugin declares it.
//!
//! Nothing is noted unless somebody asks for it: then a look-up costs a few instructions more, and no answer depends on it.

use std::cell::{Cell, RefCell};

use crate::cluster::Row;
use crate::labels::Labels;
use crate::object::KindId;

/// So many look-ups are noted at a time; whoever asks wants to know what, not how often.
pub const LOOKUPS_MAX: usize = 1 << 16;

thread_local! {
    static IS_NOTING: Cell<bool> = const { Cell::new(false) };
    static NOTED: RefCell<Vec<Lookup>> = const { RefCell::new(Vec::new()) };
}

/// Something that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A label or an annotation, in this set of them.
    Label(LabelsId),
    /// A label of a node.
    NodeLabel(Row),
    /// Objects of another kind; the name, if it was one object.
    Objects(KindId, Option<Box<str>>),
    /// The text of an object as it came.
    Text,
}

/// A set of labels, told from other sets by where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelsId(usize);

impl LabelsId {
    /// That of a set which does not move.
    pub fn of(labels: &Labels) -> Self {
        LabelsId(std::ptr::from_ref(labels).addr())
    }
}

/// Does something, and says what was looked up meanwhile on this thread.
pub fn noting<R>(act: impl FnOnce() -> R) -> (R, Vec<Lookup>) {
    IS_NOTING.set(true);
    NOTED.with_borrow_mut(Vec::clear);
    let result = act();
    IS_NOTING.set(false);
    (result, NOTED.with_borrow_mut(std::mem::take))
}

#[inline]
pub(crate) fn note(lookup: impl FnOnce() -> Lookup) {
    if IS_NOTING.get() {
        keep(lookup());
    }
}

#[cold]
fn keep(lookup: Lookup) {
    NOTED.with_borrow_mut(|noted| {
        if noted.len() < LOOKUPS_MAX && !noted.contains(&lookup) {
            noted.push(lookup);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Service;
    use crate::labels::LabelLookup;
    use crate::object::Kind;
    use crate::object::Objects;

    #[test]
    fn look_ups_are_noted_once_and_only_when_asked_for() {
        let [a, b]: [Labels; 2] = [[("k", "a")], [("k", "b")]].map(|pairs| pairs.into_iter().collect());
        let objects = Objects::default();
        let look = || {
            assert_eq!((a.label("k"), a.label("l")), (Some("a"), None));
            assert!(objects.get::<Service>("default", "x").is_none());
            assert_eq!(objects.all::<Service>().count(), 0);
        };
        look();
        let ((), noted) = noting(look);
        let expected = [
            Lookup::Label(LabelsId::of(&a)),
            Lookup::Objects(Service::ID, Some("x".into())),
            Lookup::Objects(Service::ID, None),
        ];
        assert_eq!(noted, expected);
        assert_eq!(b.label("k"), Some("b"));
        assert_eq!(noting(|| ()).1, []);
    }
}
