//! Small random clusters, in which any one field can be changed and nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};
use supercargo_framework::{NodeField, PluginInstance, PodField, Reads};
use supercargo_model::Pod;
use supercargo_model::kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};

use crate::build::{NodeBuilder, PodBuilder, node, pod};
use crate::cluster::{TestCluster, cluster};
use crate::trial::{Trial, status_text};

/// A small cluster with a pending pod: for each field of each object, which of a few values it has.
#[derive(Clone, Debug)]
pub struct World {
    pending: Choices,
    nodes: Vec<Choices>,
    /// The place of each running pod's node, and the pod.
    running: Vec<(usize, Choices)>,
    /// One more pod on the first node, that asks for nothing.
    extra_pod: bool,
    /// One more node, with nothing on it.
    extra_node: bool,
    /// Whether labels and annotations of the pending pod, and annotations of the nodes, are like those of nobody else.
    is_unique: bool,
    values: Arc<OwnValues>,
}

/// Values that fields can have besides those that they have anyway, as merge patches: a plugin that asks for a label of its own
/// never meets it otherwise.
#[derive(Clone, Debug, Default)]
pub struct OwnValues {
    /// Of pods.
    pub pod: Vec<(PodField, Value)>,
    /// Of nodes.
    pub node: Vec<(NodeField, Value)>,
    /// What else is in the cluster.
    pub objects: Vec<Value>,
}

type Choices = Vec<usize>;

/// Any small cluster.
pub fn world() -> impl Strategy<Value = World> {
    let choices = || prop::collection::vec(0..12usize, PodField::ALL.len());
    let nodes = prop::collection::vec(choices(), 2..5);
    let running = prop::collection::vec((0..4usize, choices()), 1..8);
    (choices(), nodes, running).prop_map(|(pending, nodes, running)| World {
        pending,
        nodes,
        running,
        extra_pod: false,
        extra_node: false,
        is_unique: false,
        values: Arc::default(),
    })
}

/// So many of them, always the same.
pub fn worlds(count: usize) -> Vec<World> {
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() });
    let mut draw = || world().new_tree(&mut runner).expect("nothing is filtered out").current();
    std::iter::repeat_with(&mut draw).take(count).collect()
}

/// A field that made a difference to a plugin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mattered {
    /// A field of the pod.
    Pod(PodField),
    /// A field of the nodes.
    Node(NodeField),
}

impl Mattered {
    /// Whether the plugin says that it reads the field.
    pub fn is_declared(self, plugin: &PluginInstance) -> bool {
        match self {
            Mattered::Pod(field) => plugin.reads.pod.contains(field),
            Mattered::Node(field) => plugin.reads.node.contains(field),
        }
    }
}

/// What matters to each of the plugins in some cluster: the fields whose change, and no other, changed an answer.
pub fn what_matters(plugins: &[PluginInstance], worlds: &[World]) -> Vec<Vec<Mattered>> {
    let trials: Vec<Trial> = plugins.iter().map(Trial::of).collect();
    let mut mattered = vec![Vec::new(); plugins.len()];
    for world in worlds {
        let truth = world.answers(&trials);
        let pod_fields = PodField::ALL
            .into_iter()
            .map(|field| (Mattered::Pod(field), world.with_pod_field_changed(field)));
        let node_fields = NodeField::ALL
            .into_iter()
            .map(|field| (Mattered::Node(field), world.with_node_field_changed(field)));
        for (field, changed) in pod_fields.chain(node_fields) {
            for ((before, after), mattered) in truth.iter().zip(changed.answers(&trials)).zip(&mut mattered) {
                if *before != after && !mattered.contains(&field) {
                    mattered.push(field);
                }
            }
        }
    }
    mattered
}

impl World {
    /// The same, but for one field of the pending pod.
    #[must_use]
    pub fn with_pod_field_changed(&self, field: PodField) -> Self {
        let mut changed = self.clone();
        changed.pending[field as usize] += 1;
        changed
    }

    /// The same, but for one field of every node.
    #[must_use]
    pub fn with_node_field_changed(&self, field: NodeField) -> Self {
        let mut changed = self.clone();
        let running = match field {
            NodeField::Requested => &[PodField::Requests][..],
            NodeField::Pods => &[
                PodField::Labels,
                PodField::HostPorts,
                PodField::PodAffinity,
                PodField::Timestamps,
                PodField::Volumes,
            ],
            _ => &[],
        };
        for (_, pod) in &mut changed.running {
            running.iter().for_each(|field| pod[*field as usize] += 1);
        }
        changed.extra_pod ^= field == NodeField::Pods;
        changed.nodes.iter_mut().for_each(|node| node[field as usize] += 1);
        changed
    }

    /// The same with fields that may have these values too.
    #[must_use]
    pub fn with_values(mut self, values: &Arc<OwnValues>) -> Self {
        self.values = values.clone();
        self
    }

    /// The same, but for the pods of all nodes but one.
    #[must_use]
    pub fn with_pods_elsewhere_changed(&self, kept: usize) -> Self {
        let mut changed = self.clone();
        let count = self.nodes.len();
        for (_, pod) in changed.running.iter_mut().filter(|(place, _)| place % count != kept) {
            let fields = [PodField::Labels, PodField::Requests, PodField::HostPorts, PodField::PodAffinity];
            fields.iter().for_each(|field| pod[*field as usize] += 1);
        }
        changed.running.push(((kept + 1) % count, self.pending.clone()));
        changed
    }

    /// The same, but for these fields of all nodes but one.
    #[must_use]
    pub fn with_nodes_elsewhere_changed(&self, kept: usize, fields: &[NodeField]) -> Self {
        let mut changed = self.clone();
        for (_, node) in changed.nodes.iter_mut().enumerate().filter(|(place, _)| *place != kept) {
            fields.iter().for_each(|field| node[*field as usize] += 1);
        }
        changed
    }

    /// The same with one more node.
    #[must_use]
    pub fn with_another_node(&self) -> Self {
        World { extra_node: true, ..self.clone() }
    }

    /// The same with labels and annotations that nobody else has.
    #[must_use]
    pub fn made_unique(&self) -> Self {
        World { is_unique: true, ..self.clone() }
    }

    /// How many nodes there are whose answers count.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The cluster.
    pub fn cluster(&self) -> TestCluster {
        let cluster = cluster()
            .reading::<PersistentVolume>()
            .reading::<PersistentVolumeClaim>()
            .reading::<StorageClass>()
            .reading::<CSINode>()
            .reading::<CSIDriver>()
            .reading::<CSIStorageCapacity>()
            .reading::<VolumeAttachment>();
        self.cluster_in(cluster, |_| true)
    }

    /// The same for a plugin that reads this: what is of other kinds is left out.
    pub(crate) fn cluster_for(&self, reads: &Reads, keeps_text: bool) -> TestCluster {
        let cluster = if keeps_text { cluster().keeping_text() } else { cluster() };
        self.cluster_in(cluster.reading_for(reads), |object| {
            reads.kinds.iter().any(|kind| object["kind"] == kind.id.kind)
        })
    }

    fn cluster_in(&self, mut cluster: TestCluster, is_there: impl Fn(&Value) -> bool) -> TestCluster {
        let scenery = SCENERY.iter().filter(|object| is_there(object));
        scenery.chain(&self.values.objects).for_each(|object| cluster.put(object.clone()));
        for (index, choices) in self.nodes.iter().enumerate() {
            let node = random_node(&self.node_name(index), index, choices, &self.values.node);
            cluster.put(if self.is_unique { node.annotation(UNIQUE, "node") } else { node });
        }
        if self.extra_node {
            cluster.put(node("extra"));
        }
        for (index, (place, choices)) in self.running.iter().enumerate() {
            let name = format!("r{index}");
            let node = self.node_name(place % self.nodes.len());
            cluster.put(
                random_pod(&name, choices, &self.values.pod)
                    .with(json!({ "metadata": { "name": name } }))
                    .on(&node),
            );
        }
        if self.extra_pod {
            cluster.put(pod("extra").on(&self.node_name(0)));
        }
        cluster
    }

    /// The pending pod.
    pub fn pending(&self) -> PodBuilder {
        let pod = random_pod("p", &self.pending, &self.values.pod);
        if self.is_unique { pod.label(UNIQUE, "pod").annotation(UNIQUE, "pod's own") } else { pod }
    }

    /// What each plugin says about the pending pod before the queue, about each node, and how it scores them.
    pub fn answers(&self, trials: &[Trial]) -> Vec<Vec<String>> {
        let mut cluster = self.cluster();
        let pod = cluster.pod(self.pending());
        trials.iter().map(|trial| self.answer(trial, &mut cluster, &pod)).collect()
    }

    fn answer(&self, trial: &Trial, cluster: &mut TestCluster, pod: &Arc<Pod>) -> Vec<String> {
        let gates = trial.profile.pre_enqueue.iter();
        let mut answers: Vec<String> =
            gates.map(|named| status_text(&named.plugin.pre_enqueue(&cluster.context(), pod))).collect();
        answers.extend(self.by_node(&trial.filter_pod(cluster, pod)));
        if !trial.profile.score.is_empty() {
            answers.extend(self.by_node(&trial.scores_of_pod(cluster, pod)));
        }
        answers
    }

    /// Answers in the order of the nodes, without their names: the names may have changed, and the order with the zones.
    pub(crate) fn by_node(&self, said: &[String]) -> Vec<String> {
        let said: BTreeMap<&str, &str> = said.iter().filter_map(|line| line.split_once(": ")).collect();
        let names =
            std::iter::once("*".to_owned()).chain((0..self.nodes.len()).map(|index| self.node_name(index)));
        names.map(|name| said.get(&*name).copied().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) fn node_name(&self, index: usize) -> String {
        let renamed = self.nodes[index][NodeField::Name as usize] % 2 == 1;
        format!("{}{index}", if renamed { "m" } else { "n" })
    }
}

/// What pods belong to, and what a device class stands for.
fn owners() -> Vec<Value> {
    let meta = json!({ "name": "x", "namespace": "default" });
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": { "selector": { "app": "web" } },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta,
            "spec": { "selector": { "matchLabels": { "app": "db" } } },
        }),
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "gpu" },
            "spec": { "extendedResourceName": "example.com/gpu" },
        }),
    ]
}

/// Claims of namespace `default`: one bound to a volume in zone a, of which a node takes one, and only one pod; one that
/// waits for a node in zone a; and one that is being provisioned for n0.
fn storage() -> Vec<Value> {
    let in_zone = json!({ "required": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"] }] },
    ] } });
    let volume = |name: &str, mode: &str, claim: Value| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": "a" } },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": [mode], "storageClassName": "slow",
                "claimRef": claim, "csi": { "driver": "disks", "volumeHandle": name }, "nodeAffinity": in_zone,
            },
            "status": { "phase": "Available" },
        })
    };
    let claim = |name: &str, mode: &str, annotations: Value, volume: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": name, "namespace": "default", "uid": name, "annotations": annotations },
            "spec": {
                "accessModes": [mode], "storageClassName": "slow", "volumeName": volume,
                "resources": { "requests": { "storage": "1Gi" } },
            },
        })
    };
    let (bound, selected) = ("pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node");
    let reference = json!({ "namespace": "default", "name": "alone", "uid": "alone" });
    let mut objects = vec![
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "slow" },
            "provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer",
        }),
        volume("taken", "ReadWriteOncePod", reference),
        volume("free", "ReadWriteOnce", Value::Null),
        claim("alone", "ReadWriteOncePod", json!({ bound: "yes" }), "taken"),
        claim("waiting", "ReadWriteOnce", json!({}), ""),
        claim("selected", "ReadWriteMany", json!({ selected: "n0" }), ""),
    ];
    objects.extend((0..5).map(|index| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": { "name": format!("n{index}") },
            "spec": { "drivers": [{ "name": "disks", "nodeID": "x", "allocatable": { "count": 1 } }] },
        })
    }));
    objects
}

/// The values of each field, written once.
static POD_VALUES: LazyLock<Vec<(Vec<Value>, bool)>> =
    LazyLock::new(|| PodField::ALL.into_iter().map(pod_values).collect());
static NODE_VALUES: LazyLock<Vec<Vec<Value>>> =
    LazyLock::new(|| NodeField::ALL.into_iter().map(node_values).collect());
static SCENERY: LazyLock<Vec<Value>> = LazyLock::new(|| [owners(), storage()].concat());

/// A key that nobody looks for.
const UNIQUE: &str = "supercargo.dev/unique";

fn random_pod(name: &str, choices: &[usize], own: &[(PodField, Value)]) -> PodBuilder {
    PodField::ALL.into_iter().fold(pod(name), |pod, field| {
        let (patches, of_container) = &POD_VALUES[field as usize];
        let own = own.iter().filter(|(of, _)| *of == field).map(|(_, patch)| patch);
        let patches: Vec<&Value> = patches.iter().chain(own).collect();
        let patch = patches[choices[field as usize] % patches.len()].clone();
        if *of_container { pod.container(patch) } else { pod.with(patch) }
    })
}

fn random_node(name: &str, index: usize, choices: &[usize], own: &[(NodeField, Value)]) -> NodeBuilder {
    let hostname = json!({ "metadata": { "labels": { "kubernetes.io/hostname": format!("h{index}") } } });
    NodeField::ALL.into_iter().fold(node(name).with(hostname), |node, field| {
        let own = own.iter().filter(|(of, _)| *of == field).map(|(_, patch)| patch);
        let patches: Vec<&Value> = NODE_VALUES[field as usize].iter().chain(own).collect();
        node.with(patches[choices[field as usize] % patches.len()].clone())
    })
}

/// The values that a field of a pod can have, as merge patches; true if they are patches of its container.
fn pod_values(field: PodField) -> (Vec<Value>, bool) {
    let spec = |patches: &[Value]| patches.iter().map(|patch| json!({ "spec": patch })).collect();
    let metadata = |patches: &[Value]| patches.iter().map(|patch| json!({ "metadata": patch })).collect();
    let none = json!({});
    let web = json!({ "matchLabels": { "app": "web" } });
    let term = json!({ "labelSelector": web, "topologyKey": "topology.kubernetes.io/zone" });
    let in_zone = json!({ "matchExpressions": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"] }] });
    let named = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n0"] }] });
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    let spread = |when: &str, key: &str| {
        json!({
            "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": web }],
        })
    };
    let patches = match field {
        PodField::Name => metadata(&[none, json!({ "name": "q" })]),
        PodField::Namespace => metadata(&[none.clone(), none.clone(), none, json!({ "namespace": "other" })]),
        PodField::Labels => {
            let app = |app: &str| json!({ "labels": { "app": app } });
            metadata(&[app("web"), app("web"), none, app("db")])
        }
        PodField::Annotations => metadata(&[none, json!({ "annotations": { "a": "b" } })]),
        PodField::Controller => metadata(&[
            none,
            json!({ "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "controller": true }] }),
        ]),
        PodField::Timestamps => metadata(&[
            none.clone(),
            none.clone(),
            none,
            json!({ "creationTimestamp": "2020-01-01T00:00:00Z" }),
            json!({ "deletionTimestamp": "2020-01-01T00:00:00Z" }),
        ]),
        PodField::Priority => spec(&[none, json!({ "priority": 10 }), json!({ "priority": -5 })]),
        PodField::PreemptionPolicy => spec(&[none, json!({ "preemptionPolicy": "Never" })]),
        PodField::SchedulingGates => spec(&[none, json!({ "schedulingGates": [{ "name": "g" }] })]),
        PodField::Tolerations => spec(&[
            none,
            json!({ "tolerations": [{ "operator": "Exists" }] }),
            json!({ "tolerations": [{ "key": "dedicated", "value": "a", "effect": "NoSchedule" }] }),
        ]),
        PodField::NodeName => spec(&[none, json!({ "nodeName": "n0" })]),
        PodField::NodeSelector => spec(&[none, json!({ "nodeSelector": { "disk": "ssd" } })]),
        PodField::NodeAffinity => spec(&[
            none,
            json!({ "affinity": { "nodeAffinity": { required: { "nodeSelectorTerms": [in_zone] } } } }),
            json!({ "affinity": { "nodeAffinity": { required: { "nodeSelectorTerms": [named] } } } }),
            json!({ "affinity": { "nodeAffinity": { preferred: [{ "weight": 5, "preference": in_zone }] } } }),
        ]),
        PodField::PodAffinity => spec(&[
            none,
            json!({ "affinity": { "podAffinity": { required: [term] } } }),
            json!({ "affinity": { "podAntiAffinity": { required: [term] } } }),
            json!({ "affinity": { "podAffinity": { preferred: [{ "weight": 5, "podAffinityTerm": term }] } } }),
        ]),
        PodField::SpreadConstraints => spec(&[
            none,
            spread("DoNotSchedule", "topology.kubernetes.io/zone"),
            spread("ScheduleAnyway", "kubernetes.io/hostname"),
            json!({ "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": web, "nodeTaintsPolicy": "Honor",
            }] }),
        ]),
        PodField::Volumes => {
            let volume = |source: Value| json!({ "volumes": [source] });
            spec(&[
                none,
                volume(json!({ "name": "v", "emptyDir": {} })),
                volume(json!({ "name": "v", "persistentVolumeClaim": { "claimName": "alone" } })),
                volume(json!({ "name": "v", "persistentVolumeClaim": { "claimName": "waiting" } })),
                volume(json!({ "name": "v", "persistentVolumeClaim": { "claimName": "selected" } })),
                volume(json!({ "name": "v", "gcePersistentDisk": { "pdName": "one" } })),
            ])
        }
        PodField::ResourceClaims => spec(&[none, json!({ "resourceClaims": [{ "name": "c" }] })]),
        PodField::PriorityClass => spec(&[none, json!({ "priorityClassName": "batch" })]),
        PodField::SeccompProfiles => {
            spec(&[none, json!({ "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } } })])
        }
        PodField::Progress => vec![none, json!({ "status": { "phase": "Unknown" } })],
        PodField::Features => spec(&[none, json!({ "hostNetwork": true, "hostUsers": false })]),
        PodField::Status => vec![none, json!({ "status": { "nominatedNodeName": "n0" } })],
        PodField::Requests => {
            let requests = |requests: Value| json!({ "resources": { "requests": requests } });
            let values = [
                json!({}),
                json!({ "cpu": "500m", "memory": "1Gi" }),
                json!({ "cpu": "3" }),
                json!({ "example.com/gpu": 1 }),
            ];
            return (values.map(requests).to_vec(), true);
        }
        PodField::Images => return (vec![none, json!({ "image": "big:1" })], true),
        PodField::HostPorts => return (vec![none, json!({ "ports": [{ "hostPort": 80 }] })], true),
    };
    (patches, false)
}

/// The values that a field of a node can have, as merge patches. What its pods take is theirs to say.
fn node_values(field: NodeField) -> Vec<Value> {
    let none = json!({});
    let zone = |zone: &str| json!({ "topology.kubernetes.io/zone": zone });
    let labels = |labels: Value| json!({ "metadata": { "labels": labels } });
    let taint = |effect: &str| json!({ "spec": { "taints": [{ "key": "dedicated", "value": "a", "effect": effect }] } });
    let allocatable = |allocatable: Value| json!({ "status": { "allocatable": allocatable } });
    match field {
        NodeField::Name | NodeField::Requested | NodeField::Pods => vec![none],
        NodeField::Labels => {
            vec![labels(zone("a")), labels(zone("b")), none, labels(json!({ "disk": "ssd" }))]
        }
        NodeField::Annotations => vec![none, json!({ "metadata": { "annotations": { "a": "b" } } })],
        NodeField::Taints => vec![none, taint("NoSchedule"), taint("PreferNoSchedule")],
        NodeField::Unschedulable => vec![none, json!({ "spec": { "unschedulable": true } })],
        NodeField::Allocatable => {
            vec![
                none,
                allocatable(json!({ "cpu": "1", "pods": "1" })),
                allocatable(json!({ "example.com/gpu": "1" })),
            ]
        }
        NodeField::Images => {
            vec![none, json!({ "status": { "images": [{ "names": ["big:1"], "sizeBytes": 900_000_000 }] } })]
        }
        NodeField::Features => {
            vec![none, json!({ "status": { "declaredFeatures": ["UserNamespacesHostNetworkSupport"] } })]
        }
        NodeField::Capacity => vec![none, json!({ "status": { "capacity": { "cpu": "64" } } })],
        NodeField::Addresses => {
            vec![
                none,
                json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] } }),
            ]
        }
    }
}
