//! What changed in the table, for whoever keeps something worked out from it.

use std::sync::Arc;

use super::Row;
use crate::object::{Kind, KindId, Object};
use crate::pod::Pod;

/// After this many changes that nobody took, it is cheaper to look at everything again.
const CHANGES_MAX: usize = 1 << 16;

/// One change of a row. What the row looks like now stands in the table; changes only say where to look.
#[derive(Clone, Debug)]
pub enum Change {
    /// A pod came to the node.
    PodAdded {
        /// The node's row.
        row: Row,
        /// The pod.
        pod: Arc<Pod>,
    },
    /// A pod left the node.
    PodRemoved {
        /// The node's row.
        row: Row,
        /// The pod as it was.
        pod: Arc<Pod>,
    },
    /// The node came, went, or has other facts than before.
    Node {
        /// Its row.
        row: Row,
        /// Whether there are more or fewer nodes now, or images are on other nodes.
        census: bool,
    },
    /// An object that is named like the node came, went, or changed.
    Fact {
        /// Its row.
        row: Row,
    },
    /// Pods were nominated to the node, or are no longer.
    Nominations {
        /// The node's row.
        row: Row,
    },
    /// An object that is neither a pod nor a node came, went, or changed.
    Object(Box<ObjectChange>),
}

/// A change of an object that is neither a pod nor a node.
#[derive(Clone, Debug)]
pub struct ObjectChange {
    /// The object as it was; none if it has come.
    pub old: Option<Object>,
    /// The object as it was then; none if it has gone.
    pub new: Option<Object>,
}

impl ObjectChange {
    /// The kind of the object.
    pub fn kind(&self) -> Option<KindId> {
        self.new.as_ref().or(self.old.as_ref()).map(|object| object.kind)
    }

    /// The object before and after, where it was there and was read as a `T`.
    pub fn sides<T: Kind>(&self) -> impl Iterator<Item = &T> {
        [&self.old, &self.new].into_iter().flatten().filter_map(Object::get)
    }
}

/// The changes since they were last taken.
#[derive(Debug, Default)]
pub struct Changes {
    list: Vec<Change>,
    taken: bool,
    overflowed: bool,
}

impl Changes {
    /// Notes a change, if anybody has ever asked for them.
    pub(super) fn note(&mut self, change: Change) {
        if !self.taken || self.overflowed {
            return;
        }
        if self.list.len() == CHANGES_MAX {
            self.list = Vec::new();
            self.overflowed = true;
            return;
        }
        self.list.push(change);
    }

    /// Whether somebody has asked for changes, and still can be told of one more.
    pub(super) fn are_wanted(&self) -> bool {
        self.taken && !self.overflowed
    }

    /// Whether nothing has changed since the changes were last taken.
    pub fn is_empty(&self) -> bool {
        self.taken && !self.overflowed && self.list.is_empty()
    }

    /// Moves the changes into `list`; false if they are not known, because nobody asked for them before or because
    /// they were too many.
    pub fn take(&mut self, list: &mut Vec<Change>) -> bool {
        list.clear();
        std::mem::swap(&mut self.list, list);
        let known = self.taken && !self.overflowed;
        self.taken = true;
        self.overflowed = false;
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_kept_once_somebody_takes_them() {
        let (mut changes, mut list) = (Changes::default(), Vec::new());
        let change = |row| Change::Nominations { row: Row(row) };
        changes.note(change(0));
        assert!(!changes.take(&mut list), "what came before is not known");
        changes.note(change(1));
        assert!(!changes.is_empty());
        assert!(changes.take(&mut list));
        assert!(matches!(list[..], [Change::Nominations { row: Row(1) }]));
        assert!(changes.is_empty());
    }

    #[test]
    fn too_many_changes_are_dropped_and_said_to_be() {
        let (mut changes, mut list) = (Changes::default(), Vec::new());
        changes.take(&mut list);
        for _ in 0..=CHANGES_MAX {
            changes.note(Change::Nominations { row: Row(0) });
        }
        assert!(!changes.take(&mut list));
        assert!(changes.take(&mut list), "and from then on they are known again");
    }
}
