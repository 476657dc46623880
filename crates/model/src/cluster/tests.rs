use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::kinds::{Namespace, Service};
use crate::object::Kind;
use crate::object::{Object, ObjectKey};
use crate::pod::PodWords;

const ZONE: &str = "topology.kubernetes.io/zone";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

fn node(name: &str, labels: &BTreeMap<&str, &str>, images: &Value) -> NodeWords {
    let status = json!({ "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" }, "images": images });
    let json = json!({ "metadata": { "name": name, "labels": labels }, "status": status });
    serde_json::from_value(json).expect("a node")
}

fn node_in(name: &str, zone: &str) -> NodeWords {
    node(name, &BTreeMap::from([(ZONE, zone)]), &json!([]))
}

fn names(cluster: &mut Cluster) -> Vec<String> {
    cluster.snapshot().nodes().map(|node| node.name().to_string()).collect()
}

fn pod(cluster: &mut Cluster, uid: &str, node: Option<&str>, spec: &Spec) -> Arc<Pod> {
    let mut spec: Value = serde_json::from_str(spec.json).expect("a spec");
    spec["nodeName"] = json!(node);
    let metadata = json!({ "name": uid, "namespace": "default", "uid": uid });
    let words: PodWords =
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).expect("a pod");
    Arc::new(cluster.interner().pod(words))
}

/// A pod's spec, with what is expected of it.
struct Spec {
    json: &'static str,
    milli_cpu: i64,
    memory: i64,
    gpus: i64,
    non_zero: (i64, i64),
    affinity: bool,
    anti_affinity: bool,
    host_port: Option<i32>,
}

const MEBI: i64 = 1 << 20;

const SPECS: [Spec; 4] = [
    Spec {
        json: r#"{"containers":[{"name":"a"}],"affinity":{"podAffinity":{}}}"#,
        milli_cpu: 0,
        memory: 0,
        gpus: 0,
        non_zero: (100, 200 * MEBI),
        affinity: true, // an empty list is something said
        anti_affinity: false,
        host_port: None,
    },
    Spec {
        json: r#"{"containers":[{"name":"a","resources":{"requests":{"cpu":"1500u","example.com/gpu":"2"}}}]}"#,
        milli_cpu: 2,
        memory: 0,
        gpus: 2,
        non_zero: (2, 200 * MEBI),
        affinity: false,
        anti_affinity: false,
        host_port: None,
    },
    Spec {
        json: r#"{"containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"1Mi"}},
            "ports":[{"hostPort":80}]}]}"#,
        milli_cpu: 1000,
        memory: MEBI,
        gpus: 0,
        non_zero: (1000, MEBI),
        affinity: false,
        anti_affinity: false,
        host_port: Some(80),
    },
    Spec {
        json: r#"{"containers":[],"overhead":{"memory":"1500m"},"affinity":{"podAntiAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"z"}]}}}"#,
        milli_cpu: 0,
        memory: 2,
        gpus: 0,
        non_zero: (0, 2),
        affinity: true,
        anti_affinity: true,
        host_port: None,
    },
];

// Small facts, one at a time.

#[test]
fn a_relabelled_node_keeps_its_place_until_a_node_comes_or_goes() {
    let mut cluster = Cluster::default();
    for (name, zone) in [("a", "x"), ("b", "x"), ("c", "y")] {
        cluster.put_node(&node_in(name, zone));
    }
    assert_eq!(names(&mut cluster), ["a", "c", "b"]);
    cluster.put_node(&node_in("a", "y"));
    assert_eq!(names(&mut cluster), ["a", "c", "b"]);
    cluster.put_node(&node_in("d", "x"));
    // Zones in the order in which they were first seen; within y, a comes after c now.
    assert_eq!(names(&mut cluster), ["b", "c", "d", "a"]);
}

#[test]
fn a_node_that_comes_back_before_anybody_looks_keeps_its_place() {
    // Upstream compares the nodes of two snapshots, not the events in between.
    let mut cluster = Cluster::default();
    for name in ["a", "b", "c"] {
        cluster.put_node(&node_in(name, "x"));
    }
    assert_eq!(names(&mut cluster), ["a", "b", "c"]);
    for name in ["a", "b"] {
        cluster.remove_node(name);
    }
    for name in ["a", "b"] {
        cluster.put_node(&node_in(name, "x")); // in each other's row
    }
    assert_eq!(names(&mut cluster), ["a", "b", "c"]);
    cluster.remove_node("a");
    assert_eq!(names(&mut cluster), ["c", "b"], "the order of the zone holds from the next change on");
}

#[test]
fn pods_wait_for_their_node() {
    let mut cluster = Cluster::default();
    let early = pod(&mut cluster, "early", Some("a"), &SPECS[2]);
    cluster.add_pod(early).expect("bound");
    assert_eq!(cluster.snapshot().node_count(), 0);
    let row = cluster.put_node(&node_in("a", "x"));
    assert_eq!(cluster.snapshot().node(row).usage().requested().milli_cpu, 1000);
    assert!(cluster.remove_node("a"));
    assert!(!cluster.remove_node("a"));
    assert!(cluster.remove_pod("early").is_some());
    let row = cluster.put_node(&node_in("a", "x"));
    assert!(cluster.snapshot().node(row).pods().is_empty());
    assert!(cluster.homeless.is_empty());
}

#[test]
fn pods_that_are_refused_change_nothing() {
    let mut cluster = Cluster::default();
    cluster.put_node(&node_in("a", "x"));
    let bound = pod(&mut cluster, "bound", Some("a"), &SPECS[2]);
    cluster.add_pod(bound.clone()).expect("bound");
    let version = cluster.snapshot().version();

    let no_uid = pod(&mut cluster, "", Some("a"), &SPECS[0]);
    let not_bound = pod(&mut cluster, "bound", None, &SPECS[0]);
    let error = cluster.add_pod(no_uid.clone()).expect_err("no UID");
    assert_eq!(error.to_string(), "pod default/ has no metadata.uid");
    assert_eq!(cluster.update_pod(no_uid), Err(error));
    let error = cluster.add_pod(not_bound.clone()).expect_err("not bound");
    assert_eq!(error.to_string(), "pod default/bound has no spec.nodeName");
    // The old state used to be gone by then.
    assert_eq!(cluster.update_pod(not_bound), Err(error));
    let error = cluster.add_pod(bound).expect_err("twice");
    assert_eq!(
        error.to_string(),
        r#"pod default/bound is in the cluster already: another pod has its metadata.uid "bound""#
    );

    let snapshot = cluster.snapshot();
    assert_eq!(snapshot.version(), version);
    assert_eq!(snapshot.nodes().map(|node| node.pods().len()).sum::<usize>(), 1);
}

#[test]
fn a_node_that_brings_no_new_labels_does_not_copy_the_label_table() {
    let mut cluster = Cluster::default();
    cluster.put_node(&node_in("a", "x"));
    let held = cluster.snapshot().clone();
    cluster.put_node(&node_in("a", "x"));
    cluster.put_node(&node_in("b", "x"));
    assert!(Arc::ptr_eq(&held.labels, &cluster.snapshot().labels));
    cluster.put_node(&node_in("b", "y"));
    assert!(!Arc::ptr_eq(&held.labels, &cluster.snapshot().labels));
}

#[test]
fn objects_are_found_by_kind_namespace_and_name() {
    let mut cluster = Cluster::default();
    for (namespace, name) in [("b", "x"), ("a", "y"), ("a", "x"), ("aa", "x")] {
        cluster.put_object(Object::new(namespace, name, Service::default()));
    }
    cluster.put_object(Object::new("", "a", Namespace::default()));
    let versions = |cluster: &mut Cluster| {
        let objects = cluster.snapshot().objects();
        (objects.version(Service::ID), objects.version(Namespace::ID))
    };
    let before = versions(&mut cluster);
    let objects = cluster.snapshot().objects();
    let keys: Vec<_> = objects.all::<Service>().map(|(key, _)| (&*key.namespace, &*key.name)).collect();
    assert_eq!(keys, [("a", "x"), ("a", "y"), ("aa", "x"), ("b", "x")]);
    assert_eq!(objects.in_namespace::<Service>("a").map(|(name, _)| name).collect::<Vec<_>>(), ["x", "y"]);
    assert!(objects.in_namespace::<Service>("").next().is_none());
    assert!(objects.get::<Namespace>("", "a").is_some() && objects.get::<Namespace>("a", "x").is_none());

    let key = ObjectKey { namespace: "a".into(), name: "x".into() };
    assert!(!cluster.remove_object(Namespace::ID, &key));
    assert_eq!(versions(&mut cluster), before);
    assert!(cluster.remove_object(Service::ID, &key));
    assert!(!cluster.remove_object(Service::ID, &key));
    let after = versions(&mut cluster);
    assert!(after.0 > before.0 && after.1 == before.1);
}

// Random histories, against maps of everything.

#[derive(Clone, Debug)]
enum Operation {
    PutNode { name: &'static str, labels: BTreeMap<&'static str, &'static str>, images: Vec<NaiveImage> },
    RemoveNode { name: &'static str },
    AddPod { uid: &'static str, node: &'static str, spec: usize },
    UpdatePod { uid: &'static str, node: &'static str, spec: usize },
    RemovePod { uid: &'static str },
    Nominate { uid: &'static str, node: &'static str },
    ClearNomination { uid: &'static str },
    PutObject { name: &'static str, value: &'static str },
    RemoveObject { name: &'static str },
    Snapshot,
}

#[derive(Clone, Debug)]
struct NaiveImage {
    names: Vec<&'static str>,
    size: i64,
}

/// What can be seen of a cluster.
#[derive(Debug, Default, PartialEq)]
struct View {
    nodes: Vec<NodeView>,
    nominated: BTreeMap<String, Vec<String>>,
    objects: BTreeMap<String, String>,
}

#[derive(Debug, Default, PartialEq)]
struct NodeView {
    name: String,
    labels: BTreeMap<String, String>,
    pods: BTreeSet<String>,
    with_affinity: BTreeSet<String>,
    with_anti_affinity: BTreeSet<String>,
    host_ports: BTreeSet<i32>,
    milli_cpu: i64,
    memory: i64,
    gpus: i64,
    non_zero: (i64, i64),
    images: BTreeMap<String, (i64, u32)>,
}

const NODES: &[&str] = &["n0", "n1", "n2", "n3", "n4"];
const UIDS: &[&str] = &["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7"];
const IMAGES: &[&str] = &["i0", "i1", "i2"];
const KEYS: &[&str] = &[ZONE, OLD_ZONE, REGION, "other"];
const VALUES: &[&str] = &["", "x", "y"];

fn view(snapshot: &Snapshot) -> View {
    let uids = |pods: &mut dyn Iterator<Item = &Arc<Pod>>| pods.map(|pod| pod.uid.to_string()).collect();
    let node = |node: NodeRef<'_>| {
        assert_eq!(snapshot.row_of(node.name()), Some(node.row()));
        let labels: BTreeMap<String, String> =
            node.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        for key in KEYS {
            assert_eq!(node.label(key), labels.get(*key).map(String::as_str));
            let domain = node.domain_named(key);
            assert_eq!(domain.map(|pair| snapshot.labels().value(pair)), node.label(key));
            assert!(
                domain.is_none_or(|pair| (pair.value.0 as usize) < snapshot.labels().value_count(pair.key))
            );
        }
        let usage = node.usage();
        NodeView {
            name: node.name().to_string(),
            labels,
            pods: uids(&mut usage.pods().iter()),
            with_affinity: uids(&mut usage.pods_with_affinity()),
            with_anti_affinity: uids(&mut usage.pods_with_required_anti_affinity()),
            host_ports: usage.host_ports().iter().map(|port| port.port).collect(),
            milli_cpu: usage.requested().milli_cpu,
            memory: usage.requested().memory,
            gpus: usage.requested().scalar("example.com/gpu").unwrap_or(0),
            non_zero: (usage.non_zero_milli_cpu(), usage.non_zero_memory()),
            images: (IMAGES.iter())
                .filter_map(|name| Some((*name, node.image(name)?)))
                .map(|(name, state)| (name.to_owned(), (state.size, state.node_count)))
                .collect(),
        }
    };
    View {
        nodes: snapshot.nodes().map(node).collect(),
        nominated: (NODES.iter())
            .map(|node| (node.to_string(), uids_in_order(snapshot.nominated_to(node))))
            .filter(|(_, pods)| !pods.is_empty())
            .collect(),
        objects: (snapshot.objects().all::<Namespace>())
            .map(|(key, value)| (key.name.to_string(), value.metadata.uid.clone()))
            .collect(),
    }
}

fn uids_in_order(pods: &[Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.uid.to_string()).collect()
}

#[derive(Default)]
struct Naive {
    labels: BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>,
    /// The first size reported and the nodes that have it.
    images: BTreeMap<&'static str, (i64, BTreeSet<&'static str>)>,
    /// Nodes in the order in which they came into their zone.
    arrivals: Vec<(String, &'static str)>,
    /// Zones in the order in which they came to have nodes.
    zones: Vec<String>,
    order: Vec<&'static str>,
    pods: BTreeMap<&'static str, (&'static str, usize)>,
    /// Taken ports by node. Nobody counts by how many pods.
    ports: BTreeSet<(&'static str, i32)>,
    nominations: Vec<(&'static str, &'static str)>,
    objects: BTreeMap<&'static str, &'static str>,
    most_nodes: usize,
}

impl Naive {
    /// Whether anything changed.
    fn apply(&mut self, operation: &Operation) -> bool {
        match operation.clone() {
            Operation::PutNode { name, labels, images } => {
                self.forget_images(name);
                for image in images {
                    for image_name in image.names {
                        let (_, nodes) =
                            self.images.entry(image_name).or_insert((image.size, BTreeSet::new()));
                        nodes.insert(name);
                    }
                }
                let before = self.labels.insert(name, labels.clone());
                if before.map(|before| naive_zone(&before)) != Some(naive_zone(&labels)) {
                    self.leave_zone(name);
                    let zone = naive_zone(&labels);
                    if !self.zones.contains(&zone) {
                        self.zones.push(zone.clone());
                    }
                    self.arrivals.push((zone, name));
                }
                self.most_nodes = self.most_nodes.max(self.labels.len());
                true
            }
            Operation::RemoveNode { name } => {
                self.forget_images(name);
                self.leave_zone(name);
                self.labels.remove(name).is_some()
            }
            Operation::AddPod { uid, node, spec } => {
                if self.pods.contains_key(uid) {
                    return false;
                }
                self.add_pod(uid, node, spec);
                true
            }
            Operation::UpdatePod { uid, node, spec } => {
                self.remove_pod(uid);
                self.add_pod(uid, node, spec);
                true
            }
            Operation::RemovePod { uid } => self.remove_pod(uid),
            Operation::Nominate { uid, node } => {
                self.clear_nomination(uid);
                self.nominations.push((uid, node));
                true
            }
            Operation::ClearNomination { uid } => self.clear_nomination(uid),
            Operation::PutObject { name, value } => {
                self.objects.insert(name, value);
                true
            }
            Operation::RemoveObject { name } => self.objects.remove(name).is_some(),
            Operation::Snapshot => false,
        }
    }

    fn add_pod(&mut self, uid: &'static str, node: &'static str, spec: usize) {
        self.clear_nomination(uid);
        self.pods.insert(uid, (node, spec));
        self.ports.extend(SPECS[spec].host_port.map(|port| (node, port)));
    }

    fn remove_pod(&mut self, uid: &str) -> bool {
        let Some((node, spec)) = self.pods.remove(uid) else { return false };
        self.ports.retain(|taken| SPECS[spec].host_port.map(|port| (node, port)) != Some(*taken));
        true
    }

    fn forget_images(&mut self, node: &str) {
        self.images.retain(|_, (_, nodes)| {
            nodes.remove(node);
            !nodes.is_empty()
        });
    }

    fn leave_zone(&mut self, node: &str) {
        self.arrivals.retain(|(_, name)| *name != node);
        self.zones.retain(|zone| self.arrivals.iter().any(|(other, _)| other == zone));
    }

    fn clear_nomination(&mut self, uid: &str) -> bool {
        let before = self.nominations.len();
        self.nominations.retain(|(nominated, _)| *nominated != uid);
        self.nominations.len() < before
    }

    fn view(&mut self) -> View {
        if self.order.iter().collect::<BTreeSet<_>>() != self.labels.keys().collect() {
            let mut order = Vec::new();
            for index in 0..self.arrivals.len() {
                for zone in &self.zones {
                    let mut of_zone = self.arrivals.iter().filter(|(other, _)| other == zone);
                    order.extend(of_zone.nth(index).map(|(_, name)| *name));
                }
            }
            self.order = order;
        }
        let mut nominated: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (uid, node) in &self.nominations {
            nominated.entry(node.to_string()).or_default().push(uid.to_string());
        }
        View {
            nodes: self.order.iter().map(|name| self.node_view(name)).collect(),
            nominated,
            objects: self.objects.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        }
    }

    fn node_view(&self, name: &str) -> NodeView {
        let mut view = NodeView {
            name: name.to_owned(),
            labels: self.labels[name]
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
            images: (self.images.iter())
                .filter(|(_, (_, nodes))| nodes.contains(name))
                .map(|(image, (size, nodes))| {
                    (image.to_string(), (*size, u32::try_from(nodes.len()).expect("few")))
                })
                .collect(),
            host_ports: self.ports.iter().filter(|(node, _)| *node == name).map(|(_, port)| *port).collect(),
            ..NodeView::default()
        };
        for (uid, (_, spec)) in self.pods.iter().filter(|(_, (node, _))| *node == name) {
            let spec = &SPECS[*spec];
            view.pods.insert(uid.to_string());
            view.milli_cpu += spec.milli_cpu;
            view.memory += spec.memory;
            view.gpus += spec.gpus;
            view.non_zero.0 += spec.non_zero.0;
            view.non_zero.1 += spec.non_zero.1;
            for (set, is_in) in
                [(&mut view.with_affinity, spec.affinity), (&mut view.with_anti_affinity, spec.anti_affinity)]
            {
                set.extend(is_in.then(|| uid.to_string()));
            }
        }
        view
    }
}

fn naive_zone(labels: &BTreeMap<&str, &str>) -> String {
    let zone = labels.get(OLD_ZONE).or(labels.get(ZONE)).copied().unwrap_or_default();
    let region = labels.get(REGION).copied().unwrap_or_default();
    if zone.is_empty() && region.is_empty() { String::new() } else { format!("{region}|{zone}") }
}

/// Does the same to the real thing; whether it says that anything changed.
fn apply(cluster: &mut Cluster, operation: &Operation) -> bool {
    match operation.clone() {
        Operation::PutNode { name, labels, images } => {
            let image = |image: &NaiveImage| json!({ "names": image.names, "sizeBytes": image.size });
            let images: Vec<Value> = images.iter().map(image).collect();
            let before = cluster.state.row_of(name);
            let row = cluster.put_node(&node(name, &labels, &json!(images)));
            assert!(before.is_none_or(|before| before == row), "a node keeps its row");
            true
        }
        Operation::RemoveNode { name } => cluster.remove_node(name),
        Operation::AddPod { uid, node, spec } => {
            let pod = pod(cluster, uid, Some(node), &SPECS[spec]);
            cluster.add_pod(pod).is_ok()
        }
        Operation::UpdatePod { uid, node, spec } => {
            let pod = pod(cluster, uid, Some(node), &SPECS[spec]);
            cluster.update_pod(pod).is_ok()
        }
        Operation::RemovePod { uid } => cluster.remove_pod(uid).is_some_and(|pod| *pod.uid == *uid),
        Operation::Nominate { uid, node } => {
            let pod = pod(cluster, uid, None, &SPECS[0]);
            cluster.nominate(pod, node);
            true
        }
        Operation::ClearNomination { uid } => {
            let known = cluster.nomination(uid).cloned();
            let cleared = cluster.clear_nomination(uid);
            assert!(cleared.as_ref().is_none_or(|(_, pod)| *pod.uid == *uid), "it is that pod's");
            assert_eq!(cleared.as_ref().map(|(node, _)| node), known.as_ref());
            known.is_some()
        }
        Operation::PutObject { name, value } => {
            let mut namespace = Namespace::default();
            value.clone_into(&mut namespace.metadata.uid);
            cluster.put_object(Object::new("", name, namespace));
            true
        }
        Operation::RemoveObject { name } => {
            cluster.remove_object(Namespace::ID, &ObjectKey { namespace: "".into(), name: name.into() })
        }
        Operation::Snapshot => false,
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let pick = |from: &'static [&str]| prop::sample::select(from);
    let labels = prop::collection::btree_map(pick(KEYS), pick(VALUES), 0..3);
    let image = (prop::collection::vec(pick(IMAGES), 0..3), 0..5_i64)
        .prop_map(|(names, size)| NaiveImage { names, size });
    let images = prop::collection::vec(image, 0..3);
    let specs = 0..SPECS.len();
    prop_oneof![
        4 => (pick(NODES), labels, images)
            .prop_map(|(name, labels, images)| Operation::PutNode { name, labels, images }),
        2 => pick(NODES).prop_map(|name| Operation::RemoveNode { name }),
        4 => (pick(UIDS), pick(NODES), specs.clone())
            .prop_map(|(uid, node, spec)| Operation::AddPod { uid, node, spec }),
        2 => (pick(UIDS), pick(NODES), specs).prop_map(|(uid, node, spec)| Operation::UpdatePod { uid, node, spec }),
        2 => pick(UIDS).prop_map(|uid| Operation::RemovePod { uid }),
        2 => (pick(UIDS), pick(NODES)).prop_map(|(uid, node)| Operation::Nominate { uid, node }),
        1 => pick(UIDS).prop_map(|uid| Operation::ClearNomination { uid }),
        1 => (pick(NODES), pick(VALUES)).prop_map(|(name, value)| Operation::PutObject { name, value }),
        1 => pick(NODES).prop_map(|name| Operation::RemoveObject { name }),
        3 => Just(Operation::Snapshot),
    ]
}

proptest! {
    #![proptest_config(crate::seeded())]

    #[test]
    fn a_cluster_is_maps_of_everything(history in prop::collection::vec(any_operation(), 0..60)) {
        let mut cluster = Cluster::default();
        let mut naive = Naive::default();
        let mut held: Vec<(Snapshot, View)> = Vec::new();
        for operation in &history {
            let version = cluster.state.version();
            let changed = naive.apply(operation);
            prop_assert_eq!(apply(&mut cluster, operation), changed, "{:?}", operation);
            let now = cluster.state.version();
            prop_assert!(if changed { now > version } else { now == version }, "{:?}: {} {}", operation, version, now);
            if matches!(operation, Operation::Snapshot) {
                let expected = naive.view();
                let snapshot = cluster.snapshot();
                prop_assert_eq!(&view(snapshot), &expected);
                prop_assert_eq!(snapshot.node_count(), expected.nodes.len());
                // Rows are given out again: there are never more than there were nodes at once.
                prop_assert!(snapshot.rows().iter().all(|row| (row.0 as usize) < naive.most_nodes));
                for name in NODES {
                    prop_assert_eq!(snapshot.row_of(name).is_some(), naive.labels.contains_key(name));
                }
                held.push((snapshot.clone(), expected));
            }
        }
        prop_assert_eq!(view(cluster.snapshot()), naive.view());
        for (snapshot, then) in &held {
            prop_assert_eq!(&view(snapshot), then);
        }
    }
}

#[test]
fn what_is_tried_out_on_a_snapshot_shows_nowhere_else() {
    let mut cluster = Cluster::default();
    let row = cluster.put_node(&node_in("n", "a"));
    let bound = pod(&mut cluster, "p", Some("n"), &SPECS[1]);
    cluster.add_pod(bound).expect("new");
    let before = cluster.snapshot();
    let without = before.without_pods([(row, "p"), (row, "unknown")]);
    let larger = before.with_node_changed(row, |node| node.allowed_pods += 1);
    assert_eq!((without.node(row).pods().len(), without.node(row).usage().requested().milli_cpu), (0, 0));
    assert_eq!((before.node(row).pods().len(), before.node(row).allowed_pods()), (1, 110));
    assert_eq!((larger.node(row).pods().len(), larger.node(row).allowed_pods()), (1, 111));
}
