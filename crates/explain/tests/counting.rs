//! Counts are those of placing pods one by one, on random clusters, for every kind of rule that pods have about where other
//! pods are.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_config::{KubeSchedulerConfiguration, build_profile};
use supercargo_engine::{Evaluation, Rules, Thoroughness, evaluate};
use supercargo_explain::{CapacityLimit, CapacityOptions, capacity, template};
use supercargo_framework::{Context, Fixes, Memories, Profile};
use supercargo_model::kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};
use supercargo_model::{Cluster, Pod, Timestamp};
use supercargo_testkit::{NodeBuilder, PodBuilder, TestCluster, cluster, node, pod};

const NOW: Timestamp = Timestamp::from_nanoseconds(3_600_000_000_000);
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
/// Random clusters a kind of pod.
const CLUSTERS: u64 = 6;

#[test]
fn counts_are_those_of_placing_pods_one_by_one() {
    let mut full = 0;
    for (kind, pod) in kinds() {
        for seed in 0..CLUSTERS {
            for most in [None, Some(9)] {
                full += usize::from(check(kind, pod.clone(), seed, most));
            }
        }
    }
    assert!(full > 60, "only {full} clusters were filled");
}

/// Pods with all kinds of rules.
fn kinds() -> Vec<(&'static str, PodBuilder)> {
    let like = json!({ "matchLabels": { "app": "web" } });
    let web = || pod("web").uid("web").label("app", "web").cpu("300m").memory("256Mi");
    let spread = |key: &str, skew: i32, when: &str| {
        let (selector, skew) = (like.clone(), json!(skew));
        json!({ "maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector })
    };
    let preferred = |list: &str, key: &str| {
        let term = json!({ "labelSelector": like, "topologyKey": key });
        let weighted = json!([{ "weight": 50, "podAffinityTerm": term }]);
        json!({ list: { "preferredDuringSchedulingIgnoredDuringExecution": weighted } })
    };
    let claiming = |claim: &str| {
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } });
        web().with(json!({ "spec": { "volumes": [volume] } }))
    };
    let mut few_domains = spread(ZONE, 2, "DoNotSchedule");
    few_domains["minDomains"] = json!(4);
    vec![
        ("plain", web()),
        ("asks for nothing", pod("web").uid("web").label("app", "web")),
        ("spread over zones", web().spread(spread(ZONE, 1, "DoNotSchedule"))),
        ("spread over few zones", web().spread(few_domains)),
        ("rather spread over zones", web().spread(spread(ZONE, 1, "ScheduleAnyway"))),
        ("spread over nodes", web().spread(spread(HOST, 2, "DoNotSchedule"))),
        (
            "spread twice",
            web().spread(spread(ZONE, 2, "DoNotSchedule")).spread(spread(HOST, 1, "ScheduleAnyway")),
        ),
        ("apart on nodes", web().near(true, ("app", "web"), HOST)),
        ("apart in zones", web().near(true, ("app", "web"), ZONE)),
        ("together in a zone", web().near(false, ("app", "web"), ZONE)),
        ("near others", web().near(false, ("app", "old"), ZONE)),
        ("far from others", web().near(true, ("app", "old"), HOST)),
        ("rather apart", web().affinity(preferred("podAntiAffinity", HOST))),
        ("rather together", web().affinity(preferred("podAffinity", ZONE))),
        ("a host port", web().host_port(8080)),
        ("a shared claim", claiming("shared")),
        ("a claim in a zone", claiming("zonal")),
        ("a claim, spread over zones", claiming("shared").spread(spread(ZONE, 1, "DoNotSchedule"))),
        (
            "tolerant",
            web().toleration("dedicated", "a", "NoSchedule").spread(spread(ZONE, 1, "DoNotSchedule")),
        ),
        ("important", web().priority(10)),
    ]
}

/// Whether the cluster was full in the end.
fn check(kind: &str, pod: PodBuilder, seed: u64, most: Option<usize>) -> bool {
    let what = format!("{kind}, cluster {seed}, {most:?}");
    let profile = profile();
    let mut test_cluster = random_cluster(seed);
    let pod = test_cluster.pod(pod);
    let mut cluster = test_cluster.into_cluster();

    let before = state(&mut cluster);
    let options = CapacityOptions { now: NOW, fixes: Fixes::default(), most };
    let mut told = Vec::new();
    let found = capacity(&profile, &mut cluster, &pod, options, &mut |placed| told.push(placed));
    let found = found.expect("copies can be placed");
    assert_eq!(state(&mut cluster), before, "{what}: the cluster stays as it was");
    assert!(told.len() >= found.fits && told.contains(&found.fits) || found.fits == 0, "{what}: {told:?}");

    let copied = template(cluster.snapshot(), &pod);
    let (placed, end) = one_by_one(&profile, &mut cluster, &copied, most);
    let counted = found.nodes.iter().map(|node| (node.node.clone(), node.fits));
    assert_eq!(counted.collect::<BTreeMap<_, _>>(), placed, "{what}: {:?}", found.limit);
    assert_eq!(found.fits, placed.values().sum::<usize>(), "{what}");
    match &found.limit {
        CapacityLimit::Full { message, obstacles } => {
            assert_eq!((message, end.chosen), (&end.message, None), "{what}");
            assert!(!obstacles.is_empty(), "{what}");
        }
        CapacityLimit::Enough => assert!(end.chosen.is_some(), "{what}"),
        other => panic!("{what}: {other:?}"),
    }
    end.chosen.is_none()
}

/// The plain way: how many go where, and what is said about the next.
fn one_by_one(
    profile: &Profile,
    cluster: &mut Cluster,
    pod: &Arc<Pod>,
    most: Option<usize>,
) -> (BTreeMap<String, usize>, Evaluation) {
    let mut placed = BTreeMap::<String, usize>::new();
    for count in 0.. {
        let memories = Memories::default();
        let fixes = Fixes::default();
        let context = Context { cluster: cluster.snapshot(), now: NOW, memories: &memories, seed: 0, fixes };
        let thoroughness = Thoroughness::FirstRejection;
        let rules = Rules { blame_all_plugins: false, ..Rules::CONFORMANCE };
        let evaluation = evaluate(profile, context, pod, rules, thoroughness, &mut 0);
        let Some(row) = evaluation.chosen.filter(|_| most != Some(count)) else {
            return (placed, evaluation);
        };
        let node = cluster.snapshot().node(row).name().clone();
        *placed.entry(node.to_string()).or_default() += 1;
        let (uid, name) = (format!("one-by-one-{count}").into(), format!("{}-{count}", pod.name).into());
        let copy = Pod { uid, name, node_name: Some(node), ..(**pod).clone() };
        cluster.add_pod(Arc::new(copy)).expect("copies can be placed");
    }
    unreachable!("a small cluster is full after a while")
}

/// Everything that placing pods could change.
fn state(cluster: &mut Cluster) -> (u64, usize, Vec<String>) {
    let bound = cluster.bound_pod_count();
    let snapshot = cluster.snapshot();
    let nodes = snapshot.nodes().map(|node| format!("{} {:?} {:?}", node.row().0, node.name(), node.usage()));
    (snapshot.version(), bound, nodes.collect())
}

fn profile() -> Profile {
    build_profile(&KubeSchedulerConfiguration::default(), &supercargo_plugins::registry(), 0)
        .expect("the default is valid")
}

/// Some ten nodes of some sizes and zones, not in the order of their names, with pods on them.
fn random_cluster(seed: u64) -> TestCluster {
    let mut chance = Chance(seed);
    let mut cluster = cluster()
        .reading::<PersistentVolume>()
        .reading::<PersistentVolumeClaim>()
        .reading::<StorageClass>()
        .reading::<CSINode>()
        .reading::<CSIDriver>()
        .reading::<CSIStorageCapacity>()
        .reading::<VolumeAttachment>();
    let count = 5 + chance.below(8);
    let name = |number: u64| format!("node-{}", (number * 7 + seed) % count.max(1));
    let mut names: Vec<String> = (0..count).map(name).collect();
    names.sort_by_key(|_| chance.below(1000));
    names.dedup();
    for name in &names {
        cluster.put(random_node(name, &mut chance));
    }
    for object in storage() {
        cluster.put(object);
    }
    for number in 0..chance.below(12) {
        let on = &names[chance.below(names.len() as u64) as usize];
        let old = pod(&format!("old-{number}")).uid(&format!("old-{number}")).on(on).cpu("200m");
        cluster.put(match chance.below(4) {
            0 => old.label("app", "web"),
            1 => old.label("app", "old").near(true, ("app", "web"), HOST),
            2 => old.label("app", "old").host_port(8080).priority(-5),
            _ => old.label("app", "old"),
        });
    }
    if chance.below(3) == 0 {
        cluster.put(pod("soon").uid("soon").cpu("500m").priority(5).nominated(&names[0]));
    }
    cluster
}

fn random_node(name: &str, chance: &mut Chance) -> NodeBuilder {
    let (cpu, memory) = (["1", "2", "4"][chance.below(3) as usize], ["2Gi", "8Gi"][chance.below(2) as usize]);
    let pods = [3, 8, 110][chance.below(3) as usize];
    let mut built = node(name).cpu(cpu).memory(memory).pods(pods).label(HOST, name);
    // One in five is in no zone.
    if let Some(zone) = ["a", "a", "b", "c"].get(chance.below(5) as usize) {
        built = built.zone(zone);
    }
    match chance.below(8) {
        0 => built.taint("dedicated", "a", "NoSchedule"),
        1 => built.taint("slow", "", "PreferNoSchedule"),
        2 => built.unschedulable(),
        _ => built,
    }
}

/// Claims that pods can share, of which one can be had in zone `a` only.
fn storage() -> Vec<Value> {
    let in_zone = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": ZONE, "operator": "In", "values": ["a"] },
    ] }] } });
    let volume = |name: &str, affinity: Value| {
        let claim = json!({ "namespace": "default", "name": name });
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": format!("{name}-volume") },
            "spec": { "accessModes": ["ReadWriteMany"], "capacity": { "storage": "1Gi" }, "claimRef": claim,
                "nfs": { "server": "files", "path": "/" }, "nodeAffinity": affinity },
            "status": { "phase": "Bound" },
        })
    };
    let claim = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "namespace": "default", "name": name,
                "annotations": { "pv.kubernetes.io/bind-completed": "yes" } },
            "spec": { "accessModes": ["ReadWriteMany"], "volumeName": format!("{name}-volume") },
            "status": { "phase": "Bound" },
        })
    };
    vec![volume("shared", Value::Null), claim("shared"), volume("zonal", in_zone), claim("zonal")]
}

/// Numbers that look random and repeat.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
