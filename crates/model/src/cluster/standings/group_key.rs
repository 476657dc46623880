//! What the pods of a group have in common, and how it is found without a copy of the words.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// What the pods of a group have in common. In this order: values tell groups apart soonest, and the namespaces of one value are next to
/// each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    value: Box<str>,
    label: Box<str>,
    namespace: Arc<str>,
}

/// The parts of a key: the value of the label, the label, and the namespace. They are in the order in which keys are.
pub(super) type GroupParts<'a> = (&'a str, &'a str, &'a str);

/// A key, or the parts of one.
pub(super) trait NamesGroup {
    fn parts(&self) -> GroupParts<'_>;
}

impl GroupKey {
    pub(super) fn new(label: &str, value: &str, namespace: Arc<str>) -> Self {
        GroupKey { value: value.into(), label: label.into(), namespace }
    }

    /// Whether the pods have that value of that label.
    pub(super) fn is_of(&self, label: &str, value: &str) -> bool {
        *self.value == *value && *self.label == *label
    }
}

impl NamesGroup for GroupKey {
    fn parts(&self) -> GroupParts<'_> {
        (&self.value, &self.label, &self.namespace)
    }
}

impl NamesGroup for GroupParts<'_> {
    fn parts(&self) -> GroupParts<'_> {
        *self
    }
}

impl<'a> Borrow<dyn NamesGroup + 'a> for GroupKey {
    fn borrow(&self) -> &(dyn NamesGroup + 'a) {
        self
    }
}

impl PartialEq for dyn NamesGroup + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn NamesGroup + '_ {}

impl PartialOrd for dyn NamesGroup + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn NamesGroup + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}
