//! Everything of one kind that there is, and what a cluster knows beyond that.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::decode::Decoded;
use crate::object::{KindId, Object, ObjectKey};

/// Everything of one kind that there is, by what it is known by: a complete list, without the objects themselves.
#[derive(Clone, Debug)]
pub enum Everything {
    /// The UIDs of all pods.
    Pods(BTreeSet<Box<str>>),
    /// The names of all nodes.
    Nodes(BTreeSet<Box<str>>),
    /// All objects of another kind.
    Objects(KindId, BTreeSet<ObjectKey>),
}

impl Everything {
    /// A list of nothing: there is no object of the kind, or none was found yet.
    pub fn none_of(kind: KindId) -> Self {
        match kind {
            KindId::POD => Everything::Pods(BTreeSet::new()),
            KindId::NODE => Everything::Nodes(BTreeSet::new()),
            _ => Everything::Objects(kind, BTreeSet::new()),
        }
    }

    /// Notes an object of the kind. An object of another kind changes nothing.
    pub fn insert(&mut self, object: &Decoded) {
        match (self, object) {
            (Everything::Pods(uids), Decoded::Pod(pod)) => {
                _ = uids.insert(pod.metadata().uid.as_str().into());
            }
            (Everything::Nodes(names), Decoded::Node(node)) => _ = names.insert(node.name().into()),
            (Everything::Objects(_, keys), Decoded::Object(object)) => _ = keys.insert(object.key.clone()),
            _ => {}
        }
    }

    /// Takes an object of the kind back out, because it went while the list was being read.
    pub fn remove(&mut self, object: &Decoded) {
        match (self, object) {
            (Everything::Pods(uids), Decoded::Pod(pod)) => _ = uids.remove(pod.metadata().uid.as_str()),
            (Everything::Nodes(names), Decoded::Node(node)) => _ = names.remove(node.name()),
            (Everything::Objects(_, keys), Decoded::Object(object)) => _ = keys.remove(&object.key),
            _ => {}
        }
    }
}

/// What a cluster holds and a complete list does not: its end went unnoticed.
impl Cluster {
    /// The bound pods, and those of `others` that the cluster does not hold, which are not listed: by UID, in order.
    pub fn unlisted_pods<'a>(
        &'a self,
        uids: &BTreeSet<Box<str>>,
        others: impl Iterator<Item = &'a Arc<str>>,
    ) -> BTreeSet<Arc<str>> {
        let known = self.bound_pods().map(|pod| &pod.uid).chain(others);
        known.filter(|uid| !uids.contains(&***uid)).cloned().collect()
    }

    /// The nodes that are not listed, by name.
    pub fn unlisted_nodes(&mut self, names: &BTreeSet<Box<str>>) -> Vec<Arc<str>> {
        let known = self.snapshot().nodes().map(|node| node.name().clone());
        known.filter(|name| !names.contains(&**name)).collect()
    }

    /// The objects of a kind that are not listed.
    pub fn unlisted_objects(&mut self, kind: KindId, keys: &BTreeSet<ObjectKey>) -> Vec<Object> {
        let known = self.snapshot().objects().of_kind(kind);
        known.filter(|object| !keys.contains(&object.key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Everything;
    use crate::kinds::StorageClass;
    use crate::{Cluster, Decoder, Kind, KindId, ReadableKind};

    const NODE: &str = r#"{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}"#;
    const BOUND: &str = r#"{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "a", "uid": "u"},
        "spec": {"nodeName": "n"}}"#;
    const CLASS: &str = r#"{"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "fast"},
        "provisioner": "x"}"#;

    /// What is found unlisted: pods, nodes and objects, each by its name.
    fn unlisted(cluster: &mut Cluster, lists: &[Everything]) -> Vec<String> {
        let mut found = Vec::new();
        for list in lists {
            match list {
                Everything::Pods(uids) => {
                    found.extend(cluster.unlisted_pods(uids, [].iter()).iter().map(ToString::to_string));
                }
                Everything::Nodes(names) => {
                    found.extend(cluster.unlisted_nodes(names).iter().map(ToString::to_string));
                }
                Everything::Objects(kind, keys) => {
                    let objects = cluster.unlisted_objects(*kind, keys);
                    found.extend(objects.iter().map(|object| object.key.name.to_string()));
                }
            }
        }
        found
    }

    #[test]
    fn what_is_not_listed_is_found() {
        let decoder = Decoder::new([ReadableKind::of::<StorageClass>()], false);
        let decode = |text: &str| decoder.decode(text).expect("the object is right");
        let mut cluster = Cluster::default();
        let mut lists = [KindId::POD, KindId::NODE, StorageClass::ID].map(Everything::none_of);
        for text in [NODE, BOUND, CLASS] {
            cluster.add(decode(text)).expect("the cluster takes it");
            lists.iter_mut().for_each(|list| list.insert(&decode(text)));
        }
        assert_eq!(unlisted(&mut cluster, &lists), Vec::<String>::new());
        for text in [NODE, BOUND, CLASS] {
            lists.iter_mut().for_each(|list| list.remove(&decode(text)));
        }
        assert_eq!(unlisted(&mut cluster, &lists), ["u", "n", "fast"]);
        let waiting = ["u".into(), "v".into()];
        let pods = cluster.unlisted_pods(&BTreeSet::from(["u".into()]), waiting.iter());
        assert_eq!(pods.into_iter().collect::<Vec<_>>(), ["v".into()]);
    }
}
