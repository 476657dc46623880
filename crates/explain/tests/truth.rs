//! What is said is true: every hint is carried out on the objects themselves, and the pod fits; every count is that of
//! placing the pods one by one. The clusters are those of the conformance vectors.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use supercargo_config::{KubeSchedulerConfiguration, build_profile, load};
use supercargo_dump::MaskBuilder;
use supercargo_engine::{Evaluation, Rules, Thoroughness, evaluate};
use supercargo_explain::{CapacityLimit, CapacityOptions, Explainer, Remedy, Verdict, capacity, template};
use supercargo_framework::{Context, Fixes, Memories, Needs, Nomination, Profile};
use supercargo_model::{Cluster, Decoded, Pod, Quantity, Timestamp};

const NOW: Timestamp = Timestamp::from_nanoseconds(1_900_000_000_000_000_000);
/// Every so many cases are enough for a test that runs often.
const STRIDE: usize = 3;

/// Every kind of hint there is.
const KINDS: &[&str] = &[
    "DropAddedAffinity",
    "DropHostPorts",
    "DropNodeAffinity",
    "DropNodeSelector",
    "DropPodAffinity",
    "DropPodAntiAffinity",
    "DropVolume",
    "MaxSkew",
    "PodSlot",
    "Priority",
    "RemovePods",
    "Resources",
    "Several",
    "Toleration",
    "Uncordon",
];

/// A case of the vectors, as JSON that can be changed.
#[derive(Clone)]
struct World {
    name: String,
    config: Value,
    profile: Arc<Profile>,
    objects: Vec<Value>,
    pods: Vec<Value>,
}

#[test]
fn every_hint_is_true() {
    let mut tried = BTreeMap::<String, usize>::new();
    for world in worlds() {
        for index in 0..world.pods.len() {
            let (mut cluster, pod) = world.build(index);
            let memories = Memories::default();
            let explainer = Explainer::new(&world.profile, context(&mut cluster, &memories));
            let Verdict::Pending(obstacles) = explainer.explain(&pod).verdict else { continue };
            for hint in obstacles.hints {
                let mut better = world.clone();
                better.apply(index, &hint.remedy);
                let (mut cluster, pod) = better.build(index);
                let evaluation = judge(&better.profile, &mut cluster, &pod);
                let snapshot = cluster.snapshot();
                let feasible: Vec<&str> =
                    evaluation.feasible.iter().map(|row| &**snapshot.node(*row).name()).collect();
                let helped = match &hint.remedy {
                    Remedy::Priority { node, .. } => {
                        evaluation.nomination == Nomination::Node(node.as_str().into())
                    }
                    Remedy::Resources { node, .. }
                    | Remedy::PodSlot { node, .. }
                    | Remedy::Uncordon { node }
                    | Remedy::Several { node, .. } => feasible.contains(&node.as_str()),
                    _ => feasible.len() == hint.opens,
                };
                let pod = pod.key();
                assert!(
                    helped,
                    "{} {pod}: {} ({:?}): {}",
                    world.name, hint.text, hint.remedy, evaluation.message
                );
                let kind = format!("{:?}", hint.remedy);
                *tried.entry(kind.split([' ', '{']).next().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
    for kind in KINDS {
        assert!(tried.contains_key(*kind), "{kind} is never tried: {tried:?}");
    }
    assert_eq!(tried.len(), KINDS.len(), "a kind of hint is not in the list: {tried:?}");
}

#[test]
fn counts_are_those_of_placing_pods_one_by_one() {
    let mut compared = 0;
    for (number, world) in worlds().enumerate() {
        if world.pods.is_empty() {
            continue;
        }
        let most = [60, 7][number % 2];
        let (mut cluster, pod) = world.build(0);
        let options = CapacityOptions { now: NOW, fixes: Fixes::default(), most: Some(most) };
        let version = cluster.snapshot().node_count();
        let found =
            capacity(&world.profile, &mut cluster, &pod, options, &mut |_| ()).expect("copies can be placed");
        assert_eq!(cluster.snapshot().node_count(), version);

        let pod = template(cluster.snapshot(), &pod);
        let mut placed = BTreeMap::<String, usize>::new();
        let mut count = 0;
        while count < most {
            let evaluation = judge(&world.profile, &mut cluster, &pod);
            let Some(row) = evaluation.chosen else { break };
            let node = cluster.snapshot().node(row).name().clone();
            *placed.entry(node.to_string()).or_default() += 1;
            let (uid, name) = (format!("one-by-one-{count}").into(), format!("{}-{count}", pod.name).into());
            let copy = Pod { uid, name, node_name: Some(node), ..(*pod).clone() };
            cluster.add_pod(Arc::new(copy)).expect("copies can be placed");
            count += 1;
        }
        let counted = found.nodes.iter().map(|node| (node.node.clone(), node.fits));
        assert_eq!(counted.collect::<BTreeMap<_, _>>(), placed, "{}: {:?}", world.name, found.limit);
        assert_eq!(found.fits, count);
        let is_more = judge(&world.profile, &mut cluster, &pod).chosen.is_some();
        assert_eq!(matches!(found.limit, CapacityLimit::Enough), is_more, "{}", world.name);
        compared += 1;
    }
    assert!(compared > 200, "only {compared} cases were compared");
}

/// Nothing that names decide is decided otherwise when they are masked.
#[test]
fn masked_clusters_come_to_the_same() {
    let mut compared = 0;
    for world in worlds().step_by(2) {
        // Configurations are not masked, and this is where they name values of labels.
        if world.config.to_string().contains("addedAffinity") {
            continue;
        }
        let masked = world.masked();
        for index in 0..world.pods.len() {
            let (plain, masked) = (world.verdict(index), masked.verdict(index));
            assert_eq!(plain, masked, "{} {}", world.name, world.pods[index]["metadata"]["name"]);
            compared += 1;
        }
    }
    assert!(compared > 300, "only {compared} pods were compared");
}

impl World {
    /// The same with other names.
    fn masked(&self) -> World {
        let mut builder = MaskBuilder::default();
        for object in self.objects.iter().chain(&self.pods) {
            builder.see(&mut object.clone());
        }
        let mut mask = builder.finish();
        let mut masked = self.clone();
        for object in masked.objects.iter_mut().chain(&mut masked.pods) {
            mask.apply(object);
        }
        masked
    }

    /// Everything about the decision for a pod that has no names in it: nodes are rows, pods are UIDs.
    fn verdict(&self, index: usize) -> String {
        let (mut cluster, pod) = self.build(index);
        let evaluation = judge(&self.profile, &mut cluster, &pod);
        let rejections: Vec<_> = (evaluation.diagnosis.nodes.iter())
            .map(|(row, status)| (*row, status.code(), status.plugin(), status.reasons().len()))
            .collect();
        let victims: Vec<_> = evaluation.victims.iter().map(|victim| victim.uid.clone()).collect();
        let plans: Vec<_> = evaluation.plans.iter().map(|(plugin, _)| *plugin).collect();
        let Evaluation { feasible, totals, scores, chosen, error, .. } = evaluation;
        format!(
            "{feasible:?} {totals:?} {scores:?} {chosen:?} {rejections:?} {victims:?} {plans:?} {}",
            error.is_some()
        )
    }

    /// The cluster, and one of the pods.
    fn build(&self, index: usize) -> (Cluster, Arc<Pod>) {
        let decoder = Needs::of([&*self.profile]).decoder();
        let mut cluster = Cluster::default();
        for object in &self.objects {
            let object = decoder.decode(&object.to_string()).expect("objects of a vector are readable");
            cluster.add(object).expect("pods of a vector can be placed");
        }
        let Ok(Decoded::Pod(mut words)) = decoder.decode(&self.pods[index].to_string()) else {
            panic!("{}: not a pod", self.name);
        };
        words.complete();
        let pod = Arc::new(cluster.interner().pod(*words));
        (cluster, pod)
    }

    /// Does what a hint says.
    fn apply(&mut self, index: usize, remedy: &Remedy) {
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        let pod = &mut self.pods[index]["spec"];
        match remedy {
            Remedy::Resources { node, missing } => {
                let allocatable = &mut self.node(node)["status"]["allocatable"];
                for (resource, missing) in missing {
                    let old = allocatable.get(resource).map_or("0".to_owned(), |old| match old {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    });
                    let mut sum: Quantity = old.parse().expect("a quantity");
                    sum += &missing.parse().expect("a quantity");
                    allocatable[resource] = json!(sum.to_string());
                }
            }
            Remedy::PodSlot { node, lacking } => {
                let pods = &mut self.node(node)["status"]["allocatable"]["pods"];
                let old: Quantity = pods.as_str().unwrap_or("0").parse().expect("a quantity");
                *pods = json!((old.value() + lacking).to_string());
            }
            Remedy::Toleration { key, value, effect } => {
                let toleration = json!({"key": key, "operator": "Equal", "value": value, "effect": effect});
                let list = pod.as_object_mut().expect("a spec").entry("tolerations").or_insert(json!([]));
                list.as_array_mut().expect("a list").push(toleration);
            }
            Remedy::Uncordon { node } => {
                let spec = &mut self.node(node)["spec"];
                spec["unschedulable"] = json!(false);
                if let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut) {
                    taints.retain(|taint| taint["key"] != "node.kubernetes.io/unschedulable");
                }
            }
            Remedy::DropNodeSelector { key, .. } => {
                pod["nodeSelector"].as_object_mut().expect("a selector").remove(key);
            }
            Remedy::DropNodeAffinity => drop_field(&mut pod["affinity"]["nodeAffinity"], REQUIRED),
            Remedy::DropPodAffinity => drop_field(&mut pod["affinity"]["podAffinity"], REQUIRED),
            Remedy::DropPodAntiAffinity => drop_field(&mut pod["affinity"]["podAntiAffinity"], REQUIRED),
            Remedy::MaxSkew { constraint, to } => {
                pod["topologySpreadConstraints"][*constraint]["maxSkew"] = json!(to);
            }
            Remedy::DropHostPorts => {
                for list in ["containers", "initContainers"] {
                    for container in pod.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                        drop_field(container, "ports");
                    }
                }
            }
            Remedy::DropVolume { volume, .. } => {
                let volumes = pod["volumes"].as_array_mut().expect("the hint names a volume that is there");
                volumes.retain(|other| other["name"] != json!(volume));
            }
            Remedy::RemovePods { pods } => self.objects.retain(|object| {
                let metadata = &object["metadata"];
                let namespace = metadata["namespace"].as_str().unwrap_or_default();
                let key = format!("{namespace}/{}", metadata["name"].as_str().unwrap_or_default());
                object["kind"] != "Pod" || !pods.contains(&key)
            }),
            Remedy::DropAddedAffinity { .. } => {
                for profile in self.config["profiles"].as_array_mut().into_iter().flatten() {
                    for plugin in profile["pluginConfig"].as_array_mut().into_iter().flatten() {
                        if let Some(added) = plugin["args"].get_mut("addedAffinity") {
                            drop_field(added, REQUIRED);
                        }
                    }
                }
                self.profile = Arc::new(profile_of(&self.config).expect("the configuration is still valid"));
            }
            Remedy::Priority { at_least, .. } => pod["priority"] = json!(at_least),
            Remedy::Several { remedies, .. } => {
                for remedy in remedies {
                    self.apply(index, remedy);
                }
            }
        }
    }

    fn node(&mut self, name: &str) -> &mut Value {
        let mut nodes = self.objects.iter_mut().filter(|object| object["kind"] == "Node");
        nodes.find(|node| node["metadata"]["name"] == name).expect("the hint names a node that is there")
    }
}

fn drop_field(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(field);
    }
}

fn context<'a>(cluster: &'a mut Cluster, memories: &'a Memories) -> Context<'a> {
    Context { cluster: cluster.snapshot(), now: NOW, memories, seed: 0, fixes: Fixes::default() }
}

fn judge(profile: &Profile, cluster: &mut Cluster, pod: &Arc<Pod>) -> Evaluation {
    let memories = Memories::default();
    let context = context(cluster, &memories);
    evaluate(profile, context, pod, Rules::CONFORMANCE, Thoroughness::FirstRejection, &mut 0)
}

/// Cases of the vectors that can be judged.
fn worlds() -> impl Iterator<Item = World> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors/cases.jsonl.gz");
    let lines = BufReader::new(GzDecoder::new(File::open(path).expect("the vectors are there"))).lines();
    let lines = lines.map(|line| line.expect("text")).enumerate();
    // What is rare is not left out.
    let chosen = lines.filter(|(number, line)| number % STRIDE == 0 || line.contains("addedAffinity"));
    chosen.filter_map(move |(_, line)| {
        let case: Value = serde_json::from_str(&line).expect("a case");
        // Amounts beyond 64 bits wrap around, so that more of something can be less of it.
        if case["name"].as_str().is_some_and(|name| name.starts_with("quantities")) {
            return None;
        }
        let config = case.get("config").cloned().unwrap_or_default();
        let profile = profile_of(&config)?;
        let list = |name: &str| case[name].as_array().cloned().unwrap_or_default();
        Some(World {
            name: case["name"].as_str().unwrap_or_default().to_owned(),
            config,
            profile: Arc::new(profile),
            objects: list("objects"),
            pods: list("pods"),
        })
    })
}

/// The first profile of a configuration; none if it is not valid.
fn profile_of(config: &Value) -> Option<Profile> {
    let kube = match config {
        Value::Null => KubeSchedulerConfiguration::default(),
        config => load(&config.to_string()).ok()?.kube,
    };
    build_profile(&kube, &supercargo_plugins::registry(), 0).ok()
}
