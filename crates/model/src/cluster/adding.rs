//! Adds what was read to a cluster.

use std::sync::Arc;

use super::{Cluster, ClusterError};
use crate::decode::Decoded;
use crate::pod::Pod;

impl Cluster {
    /// Adds an object where it belongs; the pod, if it is one. A node or an object of another kind replaces the one of that
    /// name, a bound pod whose UID is known is an error, as in [`Cluster::add_pod`].
    pub fn add(&mut self, object: Decoded) -> Result<Option<Arc<Pod>>, ClusterError> {
        match object {
            Decoded::Node(words) => _ = self.put_node(&words),
            Decoded::Pod(words) => {
                let pod = Arc::new(self.interner().pod(*words));
                self.add_any_pod(&pod)?;
                return Ok(Some(pod));
            }
            Decoded::Object(object) => self.put_object(object),
            Decoded::Unread { .. } => {}
        }
        Ok(None)
    }

    /// Adds a pod to its node or, if it has none, to the pods that are nominated to one. A pod that is neither has no place in
    /// a cluster, and changes nothing.
    pub fn add_any_pod(&mut self, pod: &Arc<Pod>) -> Result<(), ClusterError> {
        if pod.node_name.is_some() {
            return self.add_pod(pod.clone());
        }
        if let Some(node) = pod.nominated_node_name() {
            self.nominate(pod.clone(), node);
        }
        Ok(())
    }
}
