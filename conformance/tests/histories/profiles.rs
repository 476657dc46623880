//! Profiles that differ in what an index has to cope with: plugins, their order, weights and arguments.

use std::sync::LazyLock;

use serde_json::{Value, json};
use supercargo_conformance::samples;
use supercargo_framework::{Profile, Registry};

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The names that pods may ask for. A history has a profile for the first few of them.
pub(crate) const SCHEDULERS: [&str; 4] = ["default-scheduler", "second", "third", "fourth"];

/// How many profiles, the last ones, have plugins that others write.
pub(crate) const SAMPLED: usize = 8;
/// Those of them, by their place, that have a score which is normalised by its range.
pub(crate) const RANGED: [usize; 3] = [3, 6, 7];

/// All profiles, each read once.
#[derive(Debug)]
pub(crate) struct Profiles(Vec<Profile>);

impl Profiles {
    pub(crate) fn all() -> &'static Self {
        static ALL: LazyLock<Profiles> = LazyLock::new(|| {
            let registry = supercargo_plugins::registry();
            let mut profiles: Vec<Profile> = configs().iter().map(|config| read(config, &registry)).collect();
            profiles.extend(with_samples(&read(&json!({}), &registry)));
            Profiles(profiles)
        });
        &ALL
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// A profile under the name of the scheduler at that place.
    pub(crate) fn get(&self, index: usize, place: usize, percentage: Option<u8>) -> Profile {
        let mut profile = self.0[index].clone();
        profile.scheduler_name = SCHEDULERS[place].to_owned();
        profile.percentage_of_nodes_to_score = percentage;
        profile
    }
}

/// The default profile with plugins that others write, each by itself and all together; what they read is theirs to say.
fn with_samples(default: &Profile) -> [Profile; SAMPLED] {
    let adds: [fn(&mut Profile); 6] = [
        |profile| samples::add::<samples::AvoidZone>(profile, 0),
        |profile| samples::add::<samples::Budget>(profile, 0),
        |profile| samples::add::<samples::LeastLoaded>(profile, 3),
        |profile| samples::add::<samples::LeastTraffic>(profile, 5),
        |profile| samples::add::<samples::NodeNumber>(profile, 2),
        |profile| samples::add::<samples::EvenRacks>(profile, 4),
    ];
    let with = |adds: &[fn(&mut Profile)]| {
        let mut profile = default.clone();
        adds.iter().for_each(|add| add(&mut profile));
        profile
    };
    let [a, b, c, d, e, f] = adds.map(|add| with(&[add]));
    [a, b, c, d, e, f, with(&adds), with(&adds)]
}

fn read(profile: &Value, registry: &Registry) -> Profile {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    });
    let loaded = supercargo_config::load(&config.to_string());
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}: {profile}"));
    supercargo_config::build_profile(&loaded.kube, registry, 0)
        .unwrap_or_else(|problems| panic!("{problems}: {profile}"))
}

fn configs() -> Vec<Value> {
    let args = |name: &str, args: Value| json!({ "pluginConfig": [{ "name": name, "args": args }] });
    let plugins = |plugins: Value| json!({ "plugins": plugins });
    let without = |point: &str, names: &[&str]| {
        let disabled: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "plugins": { point: { "disabled": disabled } } })
    };
    let last = |point: &str, names: &[(&str, i32)]| {
        let disabled: Vec<Value> = names.iter().map(|(name, _)| json!({ "name": name })).collect();
        let enabled: Vec<Value> =
            names.iter().map(|(name, weight)| json!({ "name": name, "weight": weight })).collect();
        json!({ "plugins": { point: { "disabled": disabled, "enabled": enabled } } })
    };
    let resources = json!([
        { "name": "cpu", "weight": 3 },
        { "name": "memory", "weight": 1 },
        { "name": "example.com/gpu", "weight": 7 },
    ]);
    let in_zone = |zone: &str| json!({ "key": ZONE, "operator": "In", "values": [zone] });
    vec![
        json!({}),
        json!({}),
        args("NodeResourcesFit", json!({ "scoringStrategy": { "type": "MostAllocated" } })),
        args(
            "NodeResourcesFit",
            json!({ "scoringStrategy": { "type": "MostAllocated", "resources": resources } }),
        ),
        args(
            "NodeResourcesFit",
            json!({ "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": resources,
                "requestedToCapacityRatio": { "shape": [
                    { "utilization": 0, "score": 2 },
                    { "utilization": 50, "score": 10 },
                    { "utilization": 100, "score": 0 },
                ] },
            } }),
        ),
        args(
            "NodeResourcesFit",
            json!({
                "scoringStrategy": { "type": "LeastAllocated", "resources": resources },
                "ignoredResources": ["example.com/gpu"],
            }),
        ),
        args(
            "NodeResourcesBalancedAllocation",
            json!({ "resources": [
                { "name": "cpu", "weight": 1 }, { "name": "example.com/gpu", "weight": 1 },
            ] }),
        ),
        args("InterPodAffinity", json!({ "hardPodAffinityWeight": 0 })),
        args("InterPodAffinity", json!({ "hardPodAffinityWeight": 100 })),
        args("InterPodAffinity", json!({ "ignorePreferredTermsOfExistingPods": true })),
        args(
            "NodeAffinity",
            json!({ "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution":
                    { "nodeSelectorTerms": [{ "matchExpressions": [in_zone("a")] }, { "matchExpressions": [in_zone("b")] }] },
                "preferredDuringSchedulingIgnoredDuringExecution":
                    [{ "weight": 9, "preference": { "matchExpressions": [in_zone("b")] } }],
            } }),
        ),
        args(
            "PodTopologySpread",
            json!({ "defaultingType": "List", "defaultConstraints": [
                { "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule" },
                { "maxSkew": 2, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway" },
            ] }),
        ),
        args("PodTopologySpread", json!({ "defaultingType": "List" })),
        args(
            "DefaultPreemption",
            json!({ "minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1 }),
        ),
        without("multiPoint", &["InterPodAffinity", "PodTopologySpread"]),
        without("multiPoint", &["NodeResourcesFit", "NodePorts", "VolumeBinding"]),
        // Without those that look further, what is left of the volumes' plugins looks at one node and at objects.
        without("multiPoint", &["VolumeBinding", "VolumeRestrictions"]),
        without("multiPoint", &["DynamicResources"]),
        // What the later point then misses is an error.
        without("preFilter", &["PodTopologySpread"]),
        without("preFilter", &["InterPodAffinity", "NodeResourcesFit"]),
        without("preFilter", &["NodePorts"]),
        without("preFilter", &["DynamicResources"]),
        without("preFilter", &["VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"]),
        without("preScore", &["InterPodAffinity"]),
        without("filter", &["*"]),
        without("score", &["*"]),
        without("postFilter", &["*"]),
        last("filter", &[("NodeUnschedulable", 0), ("NodeResourcesFit", 0), ("TaintToleration", 0)]),
        last("score", &[("NodeResourcesFit", 100_000), ("PodTopologySpread", 1), ("TaintToleration", 1000)]),
        last("score", &[("InterPodAffinity", i32::MAX), ("ImageLocality", 100), ("NodeAffinity", 10)]),
        plugins(json!({ "score": {
            "disabled": [{ "name": "*" }],
            "enabled": [{ "name": "ImageLocality", "weight": 1 }, { "name": "TaintToleration", "weight": 1 }],
        } })),
    ]
}
