//! A cluster in a test.

use std::sync::Arc;

use serde_json::Value;
use supercargo_framework::{Context, Cycle, Fixes, Memories, Reads};
use supercargo_model::kinds::{
    DeviceClass, Namespace, PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StatefulSet,
};
use supercargo_model::{
    Cluster, Decoded, Decoder, Kind, NodeRef, Object, Pod, ReadableKind, Row, Snapshot, Standing, Timestamp,
};

/// A cluster, and all that a plugin can look at besides.
#[derive(Debug)]
pub struct TestCluster {
    kinds: Vec<ReadableKind>,
    keeps_text: bool,
    cluster: Cluster,
    snapshot: Snapshot,
    /// What plugins remember.
    pub memories: Memories,
    /// The time of the attempt; an hour after the epoch unless a test says otherwise.
    pub now: Timestamp,
    /// The number drawn for the attempt.
    pub seed: u64,
    /// Which upstream mistakes are not repeated.
    pub fixes: Fixes,
}

/// An empty cluster.
pub fn cluster() -> TestCluster {
    TestCluster {
        kinds: vec![
            ReadableKind::of::<Namespace>(),
            ReadableKind::of::<Service>(),
            ReadableKind::of::<ReplicationController>(),
            ReadableKind::of::<ReplicaSet>(),
            ReadableKind::of::<StatefulSet>(),
            ReadableKind::of::<PodDisruptionBudget>(),
            ReadableKind::of::<DeviceClass>(),
        ],
        keeps_text: false,
        cluster: Cluster::default(),
        snapshot: Snapshot::default(),
        memories: Memories::default(),
        now: Timestamp::from_seconds(3600),
        seed: 0,
        fixes: Fixes::default(),
    }
}

impl TestCluster {
    /// Has this in it as well: a node, a pod that is bound or nominated, or an object of any kind that is read.
    #[must_use]
    pub fn with(mut self, object: impl Into<Value>) -> Self {
        self.put(object);
        self
    }

    /// Counts where pods stand by what a plugin reads. Pods that are bound are known; of others a test says where they stand,
    /// with [`TestCluster::stand`].
    #[must_use]
    pub fn counting(mut self, reads: &Reads) -> Self {
        self.cluster.count_pods(reads.pods.clone());
        self.snapshot = self.cluster.snapshot().clone();
        self
    }

    /// Has a pod that is not bound, and stands there.
    pub fn stand(&mut self, pod: impl Into<Value>, standing: Standing) {
        let pod = self.pod(pod);
        self.cluster.set_standing(&pod, standing);
        self.snapshot = self.cluster.snapshot().clone();
    }

    /// Reads objects of kind `K` too.
    #[must_use]
    pub fn reading<K: Kind>(mut self) -> Self {
        self.kinds.push(ReadableKind::of::<K>());
        self
    }

    /// Reads what a plugin declares to read: its kinds, where pods stand, and texts if it wants them.
    #[must_use]
    pub fn reading_for(mut self, reads: &Reads) -> Self {
        for kind in &reads.kinds {
            if !self.kinds.iter().any(|known| known.is_same(kind)) {
                self.kinds.push(*kind);
            }
        }
        self.keeps_text |= reads.raw_objects;
        self.counting(reads)
    }

    /// Pods and nodes that come from now on keep their text, as for a plugin that reads raw objects.
    #[must_use]
    pub fn keeping_text(mut self) -> Self {
        self.keeps_text = true;
        self
    }

    /// Adds or changes something.
    pub fn put(&mut self, object: impl Into<Value>) {
        let object = object.into();
        let decoded = self.decode(&object);
        match &decoded {
            // A bound pod is added again as it is now.
            Decoded::Pod(words) => _ = self.cluster.remove_pod(&words.metadata().uid),
            Decoded::Node(_) | Decoded::Object(_) => {}
            Decoded::Unread { .. } => panic!("nobody reads {object}"),
        }
        let added = self.cluster.add(decoded).unwrap_or_else(|error| panic!("{error}"));
        if let Some(pod) = added.filter(|pod| pod.node_name.is_none() && pod.nominated_node_name().is_none())
        {
            panic!("pod {} is neither bound nor nominated; TestCluster::pod reads such a pod", pod.key());
        }
        self.snapshot = self.cluster.snapshot().clone();
    }

    /// Changes what is in it.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Cluster)) {
        change(&mut self.cluster);
        self.snapshot = self.cluster.snapshot().clone();
    }

    /// Takes a node away.
    pub fn remove_node(&mut self, name: &str) {
        assert!(self.cluster.remove_node(name), "there is no node {name}");
        self.snapshot = self.cluster.snapshot().clone();
    }

    /// Takes an object of another kind away.
    pub fn remove_object(&mut self, object: impl Into<Value>) {
        let object = self.object(object);
        assert!(self.cluster.remove_object(object.kind, &object.key), "there is no {object:?}");
        self.snapshot = self.cluster.snapshot().clone();
    }

    /// A pod, read but put nowhere.
    pub fn pod(&mut self, pod: impl Into<Value>) -> Arc<Pod> {
        let Decoded::Pod(words) = self.decode(&pod.into()) else { panic!("this is no pod") };
        Arc::new(self.cluster.interner().pod(*words))
    }

    /// An object of another kind, read but put nowhere.
    pub fn object(&mut self, object: impl Into<Value>) -> Object {
        let Decoded::Object(object) = self.decode(&object.into()) else { panic!("nobody reads this") };
        object
    }

    /// The cluster as it is.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The row of a node.
    pub fn row(&self, name: &str) -> Row {
        self.snapshot.row_of(name).unwrap_or_else(|| panic!("there is no node {name}"))
    }

    /// A node.
    pub fn node(&self, name: &str) -> NodeRef<'_> {
        self.snapshot.node(self.row(name))
    }

    /// What there is to look at.
    pub fn context(&self) -> Context<'_> {
        Context {
            cluster: &self.snapshot,
            now: self.now,
            memories: &self.memories,
            seed: self.seed,
            fixes: self.fixes,
        }
    }

    /// An attempt to place a pod.
    pub fn cycle<'a>(&'a self, pod: &'a Arc<Pod>) -> Cycle<'a> {
        Cycle::new(pod, self.context())
    }

    /// Gives up the cluster, for whoever wants to go on with it alone.
    pub fn into_cluster(self) -> Cluster {
        self.cluster
    }

    fn decode(&self, object: &Value) -> Decoded {
        let decoder = Decoder::new(self.kinds.iter().copied(), self.keeps_text).keeping_progress(true);
        decoder.decode(&object.to_string()).unwrap_or_else(|error| panic!("{error}: {object}"))
    }
}
