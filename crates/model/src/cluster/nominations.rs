//! The nodes that pending pods wait for.

use std::sync::Arc;

use super::{Change, Cluster};
use crate::pod::Pod;

impl Cluster {
    /// Notes that preemption is making room for a pending pod on a node.
    pub fn nominate(&mut self, pod: Arc<Pod>, node_name: &str) {
        self.clear_nomination(&pod.uid);
        self.state.version += 1;
        let node_name = self.interner.name(node_name);
        self.nominations.insert(pod.uid.clone(), node_name.clone());
        self.note_nomination(&node_name);
        Arc::make_mut(&mut self.state.nominated).entry(node_name).or_default().push(pod);
    }

    /// Forgets a nomination; the node that it was to and the pod, if it had one.
    pub fn clear_nomination(&mut self, uid: &str) -> Option<(Arc<str>, Arc<Pod>)> {
        if self.nominations.is_empty() {
            return None;
        }
        let node_name = self.nominations.remove(uid)?;
        self.state.version += 1;
        let nominated = Arc::make_mut(&mut self.state.nominated);
        let pods = nominated.get_mut(&node_name).expect("a node that a pod is nominated to has its pods");
        let place = pods.iter().position(|pod| *pod.uid == *uid).expect("the pod is among them");
        let pod = pods.remove(place);
        if pods.is_empty() {
            nominated.remove(&node_name);
        }
        self.note_nomination(&node_name);
        Some((node_name, pod))
    }

    /// The node that a pending pod is nominated to.
    pub fn nomination(&self, uid: &str) -> Option<&Arc<str>> {
        if self.nominations.is_empty() { None } else { self.nominations.get(uid) }
    }

    /// The pods that are nominated to a node, by UID, in no particular order.
    pub fn nominated_uids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.nominations.keys()
    }

    fn note_nomination(&mut self, node_name: &str) {
        if let Some(row) = self.state.row_of(node_name) {
            self.changes.note(Change::Nominations { row });
        }
    }
}
