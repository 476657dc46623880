//! Small random clusters, in which any one field can be changed and nothing else.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::{Value, json};
use supercargo_framework::{NodeField, PodField};

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
}

type Choices = Vec<usize>;

/// Any small cluster.
pub fn world() -> impl Strategy<Value = World> {
    let choices = || prop::collection::vec(0..12usize, PodField::ALL.len());
    let nodes = prop::collection::vec(choices(), 1..4);
    let running = prop::collection::vec((0..3usize, choices()), 0..5);
    (choices(), nodes, running).prop_map(|(pending, nodes, running)| World { pending, nodes, running })
}

/// So many cases, from the same seed every time unless `PROPTEST_RNG_SEED` names another.
pub fn seeded(cases: u32) -> Config {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    match config.rng_seed {
        RngSeed::Random => Config { rng_seed: RngSeed::Fixed(1), ..config },
        RngSeed::Fixed(_) => config,
    }
}

/// A field that a plugin does not declare to read, and whose change changed its answers all the same.
pub fn lie_of(trial: &Trial, world: &World) -> Option<String> {
    let reads = trial.profile.reads.as_ref()?;
    let truth = world.answers(trial);
    let pod_fields = PodField::ALL.into_iter().filter(|field| !reads.pod.contains(*field));
    let node_fields = NodeField::ALL.into_iter().filter(|field| !reads.node.contains(*field));
    let changed = pod_fields.map(|field| (format!("pod {field:?}"), world.with_pod_field_changed(field)));
    let changed = changed
        .chain(node_fields.map(|field| (format!("node {field:?}"), world.with_node_field_changed(field))));
    { changed }.find(|(_, world)| world.answers(trial) != truth).map(|(field, _)| field)
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
            NodeField::Pods => {
                &[PodField::Labels, PodField::HostPorts, PodField::PodAffinity, PodField::Timestamps]
            }
            _ => &[],
        };
        for (_, pod) in &mut changed.running {
            running.iter().for_each(|field| pod[*field as usize] += 1);
        }
        changed.nodes.iter_mut().for_each(|node| node[field as usize] += 1);
        changed
    }

    /// The cluster.
    pub fn cluster(&self) -> TestCluster {
        let meta = json!({ "name": "x", "namespace": "default" });
        let web = json!({ "app": "web" });
        let mut cluster = cluster()
            .with(json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": { "selector": web } }))
            .with(json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta,
                "spec": { "selector": { "matchLabels": { "app": "db" } } },
            }));
        for (index, choices) in self.nodes.iter().enumerate() {
            cluster.put(random_node(&self.node_name(index), index, choices));
        }
        for (index, (place, choices)) in self.running.iter().enumerate() {
            let name = format!("r{index}");
            let node = self.node_name(place % self.nodes.len());
            cluster.put(random_pod(&name, choices).with(json!({ "metadata": { "name": name } })).on(&node));
        }
        cluster
    }

    /// The pending pod.
    pub fn pending(&self) -> PodBuilder {
        random_pod("p", &self.pending)
    }

    /// What a plugin says about the pending pod before the queue, about each node, and how it scores them.
    pub fn answers(&self, trial: &Trial) -> Vec<String> {
        let mut cluster = self.cluster();
        let pod = cluster.pod(self.pending());
        let gates = trial.profile.pre_enqueue.iter();
        let mut answers: Vec<String> =
            gates.map(|named| status_text(&named.plugin.pre_enqueue(&cluster.context(), &pod))).collect();
        answers.extend(self.by_node(&trial.filter(&mut cluster, self.pending())));
        if !trial.profile.score.is_empty() {
            answers.extend(self.by_node(&trial.scores(&mut cluster, self.pending())));
        }
        answers
    }

    /// Answers in the order of the nodes, without their names: the names may have changed, and the order with the zones.
    fn by_node(&self, said: &[String]) -> Vec<String> {
        let said: BTreeMap<&str, &str> = said.iter().filter_map(|line| line.split_once(": ")).collect();
        let names =
            std::iter::once("*".to_owned()).chain((0..self.nodes.len()).map(|index| self.node_name(index)));
        names.map(|name| said.get(&*name).copied().unwrap_or_default().to_owned()).collect()
    }

    fn node_name(&self, index: usize) -> String {
        let renamed = self.nodes[index][NodeField::Name as usize] % 2 == 1;
        format!("{}{index}", if renamed { "m" } else { "n" })
    }
}

fn random_pod(name: &str, choices: &[usize]) -> PodBuilder {
    PodField::ALL.into_iter().fold(pod(name), |pod, field| {
        let (patches, of_container) = pod_values(field);
        let patch = patches[choices[field as usize] % patches.len()].clone();
        if of_container { pod.container(patch) } else { pod.with(patch) }
    })
}

fn random_node(name: &str, index: usize, choices: &[usize]) -> NodeBuilder {
    let hostname = json!({ "metadata": { "labels": { "kubernetes.io/hostname": format!("h{index}") } } });
    NodeField::ALL.into_iter().fold(node(name).with(hostname), |node, field| {
        let patches = node_values(field);
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
        PodField::Namespace => metadata(&[none, json!({ "namespace": "other" })]),
        PodField::Labels => {
            metadata(&[none, json!({ "labels": { "app": "web" } }), json!({ "labels": { "app": "db" } })])
        }
        PodField::Annotations => metadata(&[none, json!({ "annotations": { "a": "b" } })]),
        PodField::Controller => metadata(&[
            none,
            json!({ "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "controller": true }] }),
        ]),
        PodField::Timestamps => metadata(&[
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
        ]),
        PodField::Volumes => {
            let volume = |source: Value| json!({ "volumes": [source] });
            spec(&[
                none,
                volume(json!({ "name": "v", "emptyDir": {} })),
                volume(json!({ "name": "v", "image": { "reference": "big:1" } })),
            ])
        }
        PodField::ResourceClaims => spec(&[none, json!({ "resourceClaims": [{ "name": "c" }] })]),
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
            vec![none, labels(zone("a")), labels(zone("b")), labels(json!({ "disk": "ssd" }))]
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
    }
}
