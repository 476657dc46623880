//! Reading a `KubeSchedulerConfiguration` of an old version, and making one of today of it.

use serde_json::Value;
use supercargo_framework::Point;

use super::algorithm::{self, Algorithm};
use super::args::{self, OldArgs};
use super::release::{COMMON, Release};
use super::wanted::Wanted;
use super::{Document, extenders, plugins, policy, v1alpha1, v1beta3};
use crate::codes;
use crate::defaults;
use crate::fields::{self, Object, Read, below, read_field};
use crate::problem::{Problem, Problems};
use crate::types::{
    Extender, KubeSchedulerConfiguration, KubeSchedulerProfile, LeaderElection, PluginConfig, PluginSet,
    Plugins,
};

/// Converts a configuration, with the Policy that it may need.
pub(super) fn convert(
    document: &Document,
    release: &'static Release,
    policy: Option<&Document>,
    problems: &mut Problems,
) -> KubeSchedulerConfiguration {
    let (fields, path) = (&document.fields, document.path.as_str());
    let is_alpha1 = release.version == v1alpha1::RELEASE.version;
    let absent: &[&str] = if is_alpha1 { &v1alpha1::ABSENT } else { &[] };
    let known: Vec<&str> =
        COMMON.iter().filter(|name| !absent.contains(name)).chain(release.fields).copied().collect();
    fields::report_unknown(fields, &known, path, problems);

    let mut config = KubeSchedulerConfiguration::default();
    macro_rules! read {
        ($($field:ident: $name:literal),*) => {
            $(read_field(fields, $name, path, problems, &mut config.$field);)*
        };
    }
    read!(
        client_connection: "clientConnection",
        enable_profiling: "enableProfiling",
        enable_contention_profiling: "enableContentionProfiling",
        percentage_of_nodes_to_score: "percentageOfNodesToScore",
        pod_initial_backoff_seconds: "podInitialBackoffSeconds",
        pod_max_backoff_seconds: "podMaxBackoffSeconds"
    );
    if release.fields.contains(&"parallelism") {
        read!(parallelism: "parallelism");
    }
    if config.percentage_of_nodes_to_score == Some(0) {
        config.percentage_of_nodes_to_score = None;
        let message = "0 was left out: it means all nodes here, and a share that depends on the cluster's size to \
                       kube-scheduler";
        problems.add(&codes::PERCENTAGE_DROPPED, below(path, "percentageOfNodesToScore"), message);
    }
    config.leader_election = leader_election(fields, is_alpha1, path, problems);
    config.extenders = read_extenders(fields, release, path, problems);
    drop_fields(fields, path, problems);

    let mut profiles = if is_alpha1 { vec![alpha1_profile(fields, path, problems)] } else { Vec::new() };
    if !is_alpha1 {
        profiles = read_profiles(fields, release, path, problems);
    }
    let first_name_given = profiles.first().is_some_and(|profile| profile.scheduler_name.is_some());
    let algorithm = algorithm::read(fields, release, policy.is_some(), path, problems);
    let settings = Settings::read(fields, release, path, problems);
    let shared = policy.map(|policy| {
        policy::refuse_plugins(&profiles, problems);
        let known = problems.len();
        let read = policy::read(policy, release.lists_constraints, problems);
        problems.locate(known, &policy.places);
        read
    });
    config.profiles.clear();
    for profile in profiles {
        config.profiles.push(match &shared {
            Some(policy) => policy.profile(profile.scheduler_name, &settings, problems),
            None => profile.convert(release, algorithm, &settings, problems),
        });
    }
    config.extenders.extend(shared.into_iter().flat_map(|policy| policy.extenders));
    let contention_given = fields.get("enableContentionProfiling").is_some_and(|value| !value.is_null());
    defaults::complete(&mut config, contention_given, first_name_given);
    config
}

/// A profile as it stands in the file.
#[derive(Debug, Default)]
pub(super) struct OldProfile {
    pub(super) scheduler_name: Option<String>,
    pub(super) plugins: Plugins,
    pub(super) args: Vec<OldArgs>,
    /// Where its plugins stand.
    pub(super) path: String,
}

/// What was set for all profiles, and belongs to plugins today.
#[derive(Debug, Default)]
pub(super) struct Settings {
    no_preemption: bool,
    args: Vec<(&'static str, &'static str, i64, String)>,
}

impl Settings {
    fn read(fields: &Object, release: &Release, path: &str, problems: &mut Problems) -> Self {
        let mut settings = Settings::default();
        if release.fields.contains(&"disablePreemption") {
            read_field(fields, "disablePreemption", path, problems, &mut settings.no_preemption);
        }
        if settings.no_preemption {
            let message = "became DefaultPreemption disabled at postFilter";
            problems.add(&codes::FIELD_MOVED, below(path, "disablePreemption"), message);
        }
        for (name, plugin, argument, default) in [
            ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hardPodAffinityWeight", 1),
            ("bindTimeoutSeconds", "VolumeBinding", "bindTimeoutSeconds", 600),
        ] {
            if !release.fields.contains(&name) {
                continue;
            }
            let mut value = default;
            read_field(fields, name, path, problems, &mut value);
            if value != default {
                settings.args.push((plugin, argument, value, below(path, name)));
            }
        }
        settings
    }

    /// Puts them in a profile of today.
    pub(super) fn apply(&self, profile: &mut KubeSchedulerProfile, problems: &mut Problems) {
        let post_filter = &mut profile.plugins.post_filter;
        let everywhere = profile.plugins.multi_point.disables("DefaultPreemption");
        if self.no_preemption && !everywhere && !post_filter.disables("*") {
            post_filter.enabled.retain(|plugin| plugin.name != "DefaultPreemption");
            let name = "DefaultPreemption".to_owned();
            post_filter.disabled.push(crate::Plugin { name, weight: None });
        }
        for (plugin, argument, value, path) in &self.args {
            let message = if args::set(&mut profile.plugin_config, plugin, argument, (*value).into()) {
                format!("became {argument} of {plugin}'s arguments")
            } else {
                format!("was left out, because {plugin}'s arguments say {argument} themselves")
            };
            problems.add(&codes::FIELD_MOVED, path, message);
        }
    }
}

impl OldProfile {
    fn convert(
        self,
        release: &'static Release,
        algorithm: Algorithm,
        settings: &Settings,
        problems: &mut Problems,
    ) -> KubeSchedulerProfile {
        let (plugins, plugin_config) = if release.version == v1beta3::RELEASE.version {
            let plugins = v1beta3::plugins(self.plugins, &self.path, problems);
            (plugins, v1beta3::plugin_config(self.args, release, problems))
        } else {
            let mut wanted = Wanted::of(&self.plugins, release, &self.path, problems);
            if algorithm == Algorithm::ClusterAutoscaler && wanted.strategy == Some("LeastAllocated") {
                wanted.strategy = Some("MostAllocated");
            }
            let plugins = plugins::today(&wanted, &self.plugins, release, &self.path, problems);
            (plugins, args::today(self.args, &wanted, release, problems))
        };
        let mut profile = KubeSchedulerProfile {
            scheduler_name: self.scheduler_name.unwrap_or_default(),
            percentage_of_nodes_to_score: None,
            plugins,
            plugin_config,
        };
        settings.apply(&mut profile, problems);
        profile
    }
}

fn read_profiles(fields: &Object, release: &Release, path: &str, problems: &mut Problems) -> Vec<OldProfile> {
    let mut items: Vec<Value> = Vec::new();
    read_field(fields, "profiles", path, problems, &mut items);
    if items.is_empty() {
        items.push(Value::Null);
    }
    let mut profiles = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{}[{index}]", below(path, "profiles"));
        let mut profile = OldProfile { path: below(&path, "plugins"), ..OldProfile::default() };
        if let Some(given) = fields::object(item, &path, problems) {
            fields::report_unknown(given, &["schedulerName", "plugins", "pluginConfig"], &path, problems);
            read_field(given, "schedulerName", &path, problems, &mut profile.scheduler_name);
            profile.plugins = read_plugins(given, release, &path, problems);
            profile.args = read_args(given, &path, problems);
        }
        profiles.push(profile);
    }
    profiles
}

/// The one profile that stands at the top of a v1alpha1 file.
fn alpha1_profile(fields: &Object, path: &str, problems: &mut Problems) -> OldProfile {
    let mut profile = OldProfile { path: below(path, "plugins"), ..OldProfile::default() };
    read_field(fields, "schedulerName", path, problems, &mut profile.scheduler_name);
    profile.plugins = read_plugins(fields, &v1alpha1::RELEASE, path, problems);
    v1alpha1::rename_points(&mut profile.plugins, &profile.path, problems);
    profile.args = read_args(fields, path, problems);
    for name in ["schedulerName", "plugins", "pluginConfig"] {
        if fields.get(name).is_some_and(|value| !value.is_null()) {
            problems.add(&codes::FIELD_MOVED, below(path, name), format!("became profiles[0].{name}"));
        }
    }
    profile
}

fn read_plugins(fields: &Object, release: &Release, path: &str, problems: &mut Problems) -> Plugins {
    let path = below(path, "plugins");
    let Some(given) = fields.get("plugins").and_then(|value| fields::object(value, &path, problems)) else {
        return Plugins::default();
    };
    let known = release.all_points();
    fields::report_unknown(given, &known, &path, problems);
    let mut given = given.clone();
    given.retain(|name, _| known.contains(&name.as_str()));
    let mut unreserve = PluginSet::default();
    read_field(&given, "unreserve", &path, problems, &mut unreserve);
    given.remove("unreserve");
    let mut plugins = Plugins::read(&Value::Object(given), &path, problems).unwrap_or_default();
    if unreserve != PluginSet::default() {
        let message = "is part of reserve now: what reserves also gives back";
        problems.add(&codes::POINT_MOVED, below(&path, "unreserve"), message);
        let known = plugins.reserve.clone();
        let set = plugins::at(&mut plugins, Point::Reserve);
        set.enabled.extend(unreserve.enabled.into_iter().filter(|plugin| !known.enables(&plugin.name)));
        set.disabled.extend(unreserve.disabled.into_iter().filter(|plugin| !known.disables(&plugin.name)));
    }
    plugins
}

fn read_args(fields: &Object, path: &str, problems: &mut Problems) -> Vec<OldArgs> {
    let mut list: Vec<PluginConfig> = Vec::new();
    read_field(fields, "pluginConfig", path, problems, &mut list);
    let path = below(path, "pluginConfig");
    list.into_iter()
        .enumerate()
        .map(|(index, PluginConfig { name, args })| OldArgs {
            name,
            args,
            path: format!("{path}[{index}].args"),
        })
        .collect()
}

fn leader_election(fields: &Object, is_alpha1: bool, path: &str, problems: &mut Problems) -> LeaderElection {
    let path = below(path, "leaderElection");
    let Some(given) = fields.get("leaderElection").and_then(|value| fields::object(value, &path, problems))
    else {
        return LeaderElection::default();
    };
    let mut given = given.clone();
    let mut renamed = LeaderElection {
        resource_name: String::new(),
        resource_namespace: String::new(),
        ..LeaderElection::default()
    };
    if is_alpha1 {
        v1alpha1::rename_lock(&mut given, &mut renamed, &path, problems);
    }
    let mut election = LeaderElection::read(&Value::Object(given), &path, problems).unwrap_or_default();
    if !renamed.resource_name.is_empty() {
        election.resource_name = renamed.resource_name;
    }
    if !renamed.resource_namespace.is_empty() {
        election.resource_namespace = renamed.resource_namespace;
    }
    if ["endpoints", "configmaps", "endpointsleases", "configmapsleases"]
        .contains(&election.resource_lock.as_str())
    {
        let message = format!("{} became leases, the only lock that is left", election.resource_lock);
        let hint =
            "stop all old replicas before a new one starts: they do not see each other's lock".to_owned();
        let problem = Problem::new(&codes::LOCK_CHANGED, below(&path, "resourceLock"), message);
        problems.push(problem.with_hint(hint));
        election.resource_lock = LeaderElection::default().resource_lock;
    }
    election
}

fn read_extenders(fields: &Object, release: &Release, path: &str, problems: &mut Problems) -> Vec<Extender> {
    let mut list = Vec::new();
    if release.loose_extenders {
        return extenders::read(fields, path, problems);
    }
    if release.version != v1alpha1::RELEASE.version {
        read_field(fields, "extenders", path, problems, &mut list);
    }
    list
}

/// Fields that nothing took over from.
fn drop_fields(fields: &Object, path: &str, problems: &mut Problems) {
    for (name, why) in [
        ("healthzBindAddress", "the flags --bind-address and --secure-port say where to serve"),
        ("metricsBindAddress", "the flags --bind-address and --secure-port say where to serve"),
        ("failureDomains", "it had no effect"),
    ] {
        let mut text = String::new();
        read_field(fields, name, path, problems, &mut text);
        if !text.is_empty() {
            problems.add(&codes::FIELD_DROPPED, below(path, name), format!("was dropped: {why}"));
        }
    }
}
