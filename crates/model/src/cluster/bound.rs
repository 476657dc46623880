//! Bound pods, looked up by UID.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::pod::Pod;

/// A bound pod that is looked up by its UID, which it holds itself: a map would hold it twice.
#[derive(Debug)]
pub(super) struct BoundPod(pub(super) Arc<Pod>);

impl Borrow<str> for BoundPod {
    fn borrow(&self) -> &str {
        &self.0.uid
    }
}

impl Hash for BoundPod {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid.hash(state);
    }
}

impl PartialEq for BoundPod {
    fn eq(&self, other: &Self) -> bool {
        self.0.uid == other.0.uid
    }
}

impl Eq for BoundPod {}
