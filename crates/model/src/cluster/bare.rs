//! A node of which nothing is known but its name.

use super::{Cluster, Row, Snapshot};
use crate::node::NodeWords;

impl Cluster {
    /// A cluster of one node that has nothing but its name, and the node's row: for plugins that have to be told of a node
    /// which is gone.
    pub fn with_bare_node(name: &str) -> (Snapshot, Row) {
        let mut words = NodeWords::default();
        name.clone_into(&mut words.metadata_mut().name);
        let mut cluster = Cluster::default();
        let row = cluster.put_node(&words);
        (cluster.snapshot().clone(), row)
    }
}
