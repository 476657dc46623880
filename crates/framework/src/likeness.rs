//! What pods come to as things are: which of them a plugin cannot tell apart, though they name different objects.

use std::hash::{Hash, Hasher};

use supercargo_model::Row;

/// What a plugin's answers about nodes depend on, of the pod and of all that it leads to: pods that come to the same get the same
/// answers. [`PreFilter::resolve`](crate::PreFilter::resolve) writes it down.
///
/// It keeps what it is given byte by byte, so that nothing is taken for the same that is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Likeness(Vec<u8>);

/// About which nodes a plugin may say something else, after an object has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// About all nodes.
    All,
    /// About those in these rows; the same row may be there several times.
    Rows(Vec<Row>),
}

impl Touched {
    /// About no node.
    pub const NOTHING: Touched = Touched::Rows(Vec::new());
}

impl Likeness {
    /// Adds a value. Its [`Hash`] must give all that tells it from others, as derived ones do.
    pub fn add(&mut self, value: &impl Hash) {
        value.hash(&mut Recorder(&mut self.0));
    }

    /// What was added so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A hasher that forgets nothing.
struct Recorder<'a>(&'a mut Vec<u8>);

impl Hasher for Recorder<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn bytes(value: &impl Hash) -> Vec<u8> {
        let mut likeness = Likeness::default();
        likeness.add(value);
        likeness.bytes().to_vec()
    }

    #[test]
    fn what_differs_is_told_apart() {
        let texts = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")];
        let lists = [vec!["a", "b"], vec!["ab"], vec!["a", "b", ""], vec![]];
        for (number, a) in texts.iter().enumerate() {
            for b in &texts[number + 1..] {
                assert_ne!(bytes(a), bytes(b));
            }
        }
        for (number, a) in lists.iter().enumerate() {
            for b in &lists[number + 1..] {
                assert_ne!(bytes(a), bytes(b));
            }
        }
        assert_ne!(bytes(&None::<&str>), bytes(&Some("")));
        assert_ne!(bytes(&BTreeMap::from([("a", 1)])), bytes(&BTreeMap::from([("a", 2)])));
        assert_eq!(bytes(&BTreeMap::from([("a", 1)])), bytes(&BTreeMap::from([("a", 1)])));
    }
}
