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

    /// Forgets a nomination; false if the pod had none.
    pub fn clear_nomination(&mut self, uid: &str) -> bool {
        if self.nominations.is_empty() {
            return false;
        }
        let Some(node_name) = self.nominations.remove(uid) else { return false };
        self.state.version += 1;
        let nominated = Arc::make_mut(&mut self.state.nominated);
        if let Some(pods) = nominated.get_mut(&node_name) {
            pods.retain(|pod| *pod.uid != *uid);
            if pods.is_empty() {
                nominated.remove(&node_name);
            }
        }
        self.note_nomination(&node_name);
        true
    }

    fn note_nomination(&mut self, node_name: &str) {
        if let Some(row) = self.state.row_of(node_name) {
            self.changes.note(Change::Nominations { row });
        }
    }
}
