//! Which objects a list has.

use std::collections::BTreeSet;

use supercargo_engine::Everything;
use supercargo_model::{Decoded, KindId};

/// A list that is being read.
#[derive(Debug)]
pub(super) struct Listing(Option<Everything>);

impl Listing {
    /// A list in which nothing was found so far. Nothing is noted down if nothing can have vanished since the last one.
    pub(super) fn new(kind: KindId, is_first: bool) -> Self {
        let nothing = || match (kind.group, kind.kind) {
            ("", "Pod") => Everything::Pods(BTreeSet::new()),
            ("", "Node") => Everything::Nodes(BTreeSet::new()),
            _ => Everything::Objects(kind, BTreeSet::new()),
        };
        Listing((!is_first).then(nothing))
    }

    pub(super) fn put(&mut self, object: &Decoded) {
        match (&mut self.0, object) {
            (Some(Everything::Pods(pods)), Decoded::Pod(pod)) => {
                pods.insert(pod.metadata().uid.as_str().into());
            }
            (Some(Everything::Nodes(nodes)), Decoded::Node(node)) => {
                nodes.insert(node.metadata().name.as_str().into());
            }
            (Some(Everything::Objects(_, keys)), Decoded::Object(object)) => {
                keys.insert(object.key.clone());
            }
            _ => {}
        }
    }

    /// Changes may come before the list is complete.
    pub(super) fn remove(&mut self, object: &Decoded) {
        match (&mut self.0, object) {
            (Some(Everything::Pods(pods)), Decoded::Pod(pod)) => {
                pods.remove(pod.metadata().uid.as_str());
            }
            (Some(Everything::Nodes(nodes)), Decoded::Node(node)) => {
                nodes.remove(node.metadata().name.as_str());
            }
            (Some(Everything::Objects(_, keys)), Decoded::Object(object)) => {
                keys.remove(&object.key);
            }
            _ => {}
        }
    }

    /// Everything that there is, if it was noted down.
    pub(super) fn everything(self) -> Option<Everything> {
        self.0
    }
}
