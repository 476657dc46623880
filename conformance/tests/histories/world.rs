//! What is true: all objects, kept in plain maps, and a fresh cluster made of them whenever somebody doubts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_framework::{Memories, Nomination};
use supercargo_model::pod::PodStatus;
use supercargo_model::{
    Cluster, Decoded, Decoder, Interned, Interner, KindId, NodeWords, Object, ObjectKey, Pod, PodSpec,
    PodWords, ReadableKind, Row, Snapshot, Timestamp,
};

use crate::setup::Setup;
use crate::steps::{PodChange, Step, Then};
use crate::templates::{Template, ZONE};

/// Something that an engine has to be told.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    PutNode(Arc<NodeWords>),
    RemoveNode(String),
    AddPod(Arc<Pod>),
    /// As `AddPod`, for a pod that the engine itself placed.
    AssumePod(Arc<Pod>, Row),
    UpdatePod(Arc<Pod>),
    RemovePod(Arc<str>),
    Nominate(Arc<Pod>, Arc<str>),
    ClearNomination(Arc<str>),
    PutObject(Object),
    RemoveObject(KindId, ObjectKey),
    Remember(Memories),
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) nodes: BTreeMap<String, (Value, Arc<NodeWords>)>,
    /// The pods on nodes, by number.
    pub(crate) bound: BTreeMap<u32, Arc<Pod>>,
    /// The pods that wait, by number.
    pub(crate) pending: BTreeMap<u32, Arc<Pod>>,
    pub(crate) objects: BTreeMap<(KindId, ObjectKey), Object>,
    pub(crate) memories: Memories,
    pub(crate) now: i64,
    /// The pods of each node name in the order that a cluster keeps them in: the last one takes the place of one that
    /// goes. Preemption tells pods that have not started apart by it.
    places: BTreeMap<Arc<str>, Vec<Arc<Pod>>>,
    nominated: Vec<(Arc<Pod>, Arc<str>)>,
    templates: BTreeMap<usize, (Vec<&'static str>, PodWords)>,
    decoder: Decoder,
}

impl World {
    pub(crate) fn new(setup: Setup, kinds: Vec<ReadableKind>, memories: Memories) -> Self {
        World {
            setup,
            nodes: BTreeMap::new(),
            bound: BTreeMap::new(),
            pending: BTreeMap::new(),
            objects: BTreeMap::new(),
            memories,
            now: 1_000_000,
            places: BTreeMap::new(),
            nominated: Vec::new(),
            templates: BTreeMap::new(),
            decoder: Decoder::new(kinds, false),
        }
    }

    pub(crate) fn time(&self) -> Timestamp {
        Timestamp::from_seconds(self.now)
    }

    /// Lets something other than a decision happen. What an engine has to be told of it comes back.
    pub(crate) fn happen(&mut self, step: &Step, interner: &mut Interner) -> Vec<Change> {
        let change = match step {
            Step::PutNode { node, .. } => self.put_node(node),
            Step::RemoveNode { name } => {
                self.nodes.contains_key(name).then(|| Change::RemoveNode(name.clone()))
            }
            Step::BindPod { pod, template, node } => self.bind(*pod, *template, node, interner),
            Step::ChangePod { pod, change } => self.change_pod(*pod, change, interner),
            Step::RemovePod { pod } => self.bound.get(pod).map(|pod| Change::RemovePod(pod.uid.clone())),
            Step::Nominate { pod, template, node } => {
                self.pending(*pod, *template, interner).map(|pod| self.nominate(&pod, &node.as_str().into()))
            }
            Step::ClearNomination { pod } => {
                let pod = self.pending.get(pod).cloned();
                pod.map(|pod| self.clear_nomination(&pod))
            }
            Step::Withdraw { pod } => {
                let pod = self.pending.remove(pod);
                pod.map(|pod| Change::ClearNomination(pod.uid.clone()))
            }
            Step::PutObject { object, .. } => match self.decode(object) {
                Decoded::Object(object) => Some(Change::PutObject(object)),
                _ => None,
            },
            Step::RemoveObject { kind, key } => {
                let known = self.objects.contains_key(&(*kind, key.clone()));
                known.then(|| Change::RemoveObject(*kind, key.clone()))
            }
            Step::ForgetVolumes => {
                let mut memories = self.memories.clone();
                memories.forget("VolumeBinding").then_some(Change::Remember(memories))
            }
            Step::Wait { seconds } => {
                self.now += seconds;
                None
            }
            Step::Decide(_) => None,
        };
        let changes: Vec<Change> = change.into_iter().collect();
        changes.iter().for_each(|change| self.apply(change));
        changes
    }

    /// A pod that is to be placed: one that waits already, or a new one; none if it has its place.
    pub(crate) fn pending(
        &mut self,
        number: u32,
        template: usize,
        interner: &mut Interner,
    ) -> Option<Arc<Pod>> {
        if self.bound.contains_key(&number) {
            return None;
        }
        if let Some(pod) = self.pending.get(&number) {
            return Some(pod.clone());
        }
        let pod = Arc::new(self.new_pod(number, template, interner));
        self.pending.insert(number, pod.clone());
        Some(pod)
    }

    /// A pod has got a place.
    pub(crate) fn placed(&mut self, pod: &Arc<Pod>, row: Row, node: &Arc<str>, then: Then) -> Vec<Change> {
        if then == Then::Nothing || self.clashes(pod, node) {
            return Vec::new();
        }
        let change =
            Change::AssumePod(Arc::new(Pod { node_name: Some(node.clone()), ..(**pod).clone() }), row);
        self.apply(&change);
        vec![change]
    }

    /// A pod has got no place.
    pub(crate) fn rejected(
        &mut self,
        pod: &Arc<Pod>,
        nomination: &Nomination,
        victims: &[Arc<Pod>],
        then: Then,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        if then == Then::Nothing {
            return changes;
        }
        match nomination {
            Nomination::Keep => {}
            Nomination::Clear => changes.push(self.clear_nomination(pod)),
            Nomination::Node(node) => changes.push(self.nominate(pod, node)),
        }
        if then == Then::Finish {
            changes.extend(victims.iter().map(|victim| Change::RemovePod(victim.uid.clone())));
        }
        changes.iter().for_each(|change| self.apply(change));
        changes
    }

    /// Makes true what an engine is told.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::PutNode(_) => {}
            Change::RemoveNode(name) => {
                self.nodes.remove(name);
            }
            Change::AddPod(pod) | Change::AssumePod(pod, _) => self.add_pod(pod),
            Change::UpdatePod(pod) => {
                self.remove_pod(&pod.uid);
                self.add_pod(pod);
            }
            Change::RemovePod(uid) => self.remove_pod(uid),
            Change::Nominate(pod, node) => {
                self.nominated.retain(|(other, _)| other.uid != pod.uid);
                self.nominated.push((pod.clone(), node.clone()));
            }
            Change::ClearNomination(uid) => self.nominated.retain(|(other, _)| other.uid != *uid),
            Change::PutObject(object) => {
                self.objects.insert((object.kind, object.key.clone()), object.clone());
            }
            Change::RemoveObject(kind, key) => {
                self.objects.remove(&(*kind, key.clone()));
            }
            Change::Remember(memories) => self.memories = memories.clone(),
        }
    }

    /// A cluster with all objects, put into it for the first time, and with the rows and the order of another one: these
    /// are the only things that depend on what was before. An error says that the other one has other nodes.
    pub(crate) fn fresh(&self, like: &Snapshot) -> Result<Cluster, String> {
        let mut rows: Vec<Option<&str>> = vec![None; like.row_count()];
        for row in like.rows() {
            rows[row.0 as usize] = Some(like.node(*row).name());
        }
        let known = |name: &&str| self.nodes.contains_key(*name);
        if like.node_count() != self.nodes.len() || !rows.iter().flatten().all(known) {
            let theirs: Vec<&str> = rows.into_iter().flatten().collect();
            return Err(format!("nodes {theirs:?} instead of {:?}", self.nodes.keys()));
        }
        let mut cluster = Cluster::default();
        let hole = |row: usize| format!("hole-{row}");
        for (row, name) in rows.iter().enumerate() {
            let name = name.map_or_else(|| hole(row), str::to_owned);
            assert_eq!(cluster.put_node(&shell(&name, false)).0 as usize, row, "rows are given in order");
        }
        // Into one zone, in the order in which they are to be examined; it stays when they get their labels.
        for row in like.rows() {
            cluster.put_node(&shell(like.node(*row).name(), true));
        }
        for (row, _) in rows.iter().enumerate().filter(|(_, name)| name.is_none()) {
            cluster.remove_node(&hole(row));
        }
        cluster.snapshot();
        for (_, words) in self.nodes.values() {
            cluster.put_node(words);
        }
        for pod in self.places.values().flatten() {
            cluster.add_pod(pod.clone()).expect("a pod is on one node once");
        }
        for (pod, node) in &self.nominated {
            cluster.nominate(pod.clone(), node);
        }
        for object in self.objects.values() {
            cluster.put_object(object.clone());
        }
        assert_eq!(cluster.snapshot().rows(), like.rows(), "the order is the other one's");
        Ok(cluster)
    }

    fn put_node(&mut self, node: &Value) -> Option<Change> {
        let Decoded::Node(words) = self.decode(node) else { panic!("this is no node: {node}") };
        let words: Arc<NodeWords> = Arc::from(words);
        self.nodes.insert(words.name().to_owned(), (node.clone(), words.clone()));
        Some(Change::PutNode(words))
    }

    fn decode(&self, object: &Value) -> Decoded {
        self.decoder.decode(&object.to_string()).unwrap_or_else(|error| panic!("{error}: {object}"))
    }

    /// A template, read once: its features, and its pod.
    pub(crate) fn template(&mut self, template: usize) -> &(Vec<&'static str>, PodWords) {
        self.templates.entry(template).or_insert_with(|| {
            let Template { features, pod } = self.setup.template(template);
            let words = serde_json::from_value(pod.clone());
            (features, words.unwrap_or_else(|error| panic!("{error}: {pod}")))
        })
    }

    fn new_pod(&mut self, number: u32, template: usize, interner: &mut Interner) -> Pod {
        let mut words = self.template(template).1.clone();
        let metadata = words.metadata_mut();
        metadata.name = format!("p{number}");
        metadata.uid = format!("u{number}");
        metadata.creation_timestamp = Some(Timestamp::from_seconds(i64::from(number)));
        interner.pod(words)
    }

    fn bind(&mut self, number: u32, template: usize, node: &str, interner: &mut Interner) -> Option<Change> {
        if self.bound.contains_key(&number) || self.pending.contains_key(&number) {
            return None;
        }
        let node_name = Some(interner.name(node));
        let pod = Pod { node_name, ..self.new_pod(number, template, interner) };
        (!self.clashes(&pod, node)).then(|| Change::AddPod(Arc::new(pod)))
    }

    fn change_pod(&mut self, number: u32, change: &PodChange, interner: &mut Interner) -> Option<Change> {
        let old = self.bound.get(&number)?.clone();
        let status = |pod: &Pod| pod.status.as_deref().cloned().unwrap_or_default();
        let mut pod = (*old).clone();
        match change {
            PodChange::Confirm => pod.started_at = Some(self.time()),
            PodChange::Relabel(labels) => {
                let words = json!({ "metadata": { "labels": labels } });
                pod.labels = interner.pod(serde_json::from_value(words).expect("labels")).labels;
            }
            PodChange::Terminate { preempted } => {
                pod.deleted_at = Some(self.time());
                let status = PodStatus { preempted_by_scheduler: *preempted, ..status(&pod) };
                pod.status = Some(Box::new(status));
            }
            PodChange::Resize { template } => {
                let requests = self.new_pod(number, *template, interner).spec.requests.clone();
                pod.spec = Interned::from(PodSpec { requests, ..(*old.spec).clone() });
            }
            PodChange::Hold { template } => {
                let requests = self.new_pod(number, *template, interner).spec.requests.clone();
                pod.status = Some(Box::new(PodStatus { resized: Some(requests), ..status(&pod) }));
            }
            PodChange::Move { node } => {
                if self.clashes(&old, node) {
                    return None;
                }
                pod.node_name = Some(interner.name(node));
            }
        }
        Some(Change::UpdatePod(Arc::new(pod)))
    }

    fn nominate(&mut self, pod: &Arc<Pod>, node: &Arc<str>) -> Change {
        Change::Nominate(self.with_nomination(pod, Some(node.clone())), node.clone())
    }

    fn clear_nomination(&mut self, pod: &Arc<Pod>) -> Change {
        self.with_nomination(pod, None);
        Change::ClearNomination(pod.uid.clone())
    }

    /// A later state of a pod that waits.
    fn with_nomination(&mut self, pod: &Arc<Pod>, nominated_node_name: Option<Arc<str>>) -> Arc<Pod> {
        if pod.nominated_node_name() == nominated_node_name.as_ref() {
            return pod.clone();
        }
        let status = PodStatus { nominated_node_name, ..pod.status.as_deref().cloned().unwrap_or_default() };
        let status = (status != PodStatus::default()).then(|| Box::new(status));
        let pod = Arc::new(Pod { status, ..(**pod).clone() });
        self.pending.insert(number_of(&pod.uid), pod.clone());
        pod
    }

    /// Whether a port of the pod is taken on the node. What is free when one of two such pods goes depends on what was
    /// before, so only odd histories let it happen.
    fn clashes(&self, pod: &Pod, node: &str) -> bool {
        let others = self.places.get(node).into_iter().flatten().filter(|other| other.uid != pod.uid);
        let mut taken = others.flat_map(|other| other.spec.host_ports());
        !self.setup.odd && taken.any(|taken| pod.spec.host_ports().any(|port| port == taken))
    }

    fn add_pod(&mut self, pod: &Arc<Pod>) {
        let number = number_of(&pod.uid);
        self.pending.remove(&number);
        self.nominated.retain(|(other, _)| other.uid != pod.uid);
        let node = pod.node_name.clone().expect("it is bound");
        self.places.entry(node).or_default().push(pod.clone());
        self.bound.insert(number, pod.clone());
    }

    fn remove_pod(&mut self, uid: &str) {
        let pod = self.bound.remove(&number_of(uid)).expect("it is bound");
        let place =
            pod.node_name.as_ref().and_then(|node| self.places.get_mut(node)).expect("it has a place");
        let index = place.iter().position(|other| other.uid == pod.uid).expect("it is in its place");
        place.swap_remove(index);
    }
}

/// The number that a pod's UID is made of.
fn number_of(uid: &str) -> u32 {
    uid[1..].parse().expect("UIDs are numbers after a letter")
}

/// A node of which nothing is known but its name.
fn shell(name: &str, in_zone: bool) -> NodeWords {
    let labels = if in_zone { json!({ ZONE: "shell" }) } else { json!({}) };
    serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).expect("a node")
}
