//! The second stage: everything that is wrong, and everything that looks wrong.

use supercargo_framework::Registry;

use crate::args;
use crate::build::{apply_extenders, check_names, check_queue_sort, make_all, plan_all};
use crate::codes;
use crate::decode::KUBE_API_VERSION;
use crate::extenders;
use crate::merge::merged_plugins;
use crate::problem::Problems;
use crate::traps;
use crate::types::{KubeSchedulerConfiguration, KubeSchedulerProfile, LeaderElection, PluginConfig, Slot};
use supercargo_model::GoDuration;

/// How much longer than the retry period a candidate waits at most: client-go's `JitterFactor`.
const JITTER_FACTOR: f64 = 1.2;

/// Finds all problems: what upstream's validator minds, then what stands in the way of making the profiles, then
/// warnings about what is allowed but hardly meant.
pub fn validate(config: &KubeSchedulerConfiguration, registry: &Registry) -> Problems {
    let mut problems = Problems::default();
    validate_values(config, &mut problems);
    for (index, profile) in config.profiles.iter().enumerate() {
        validate_profile(profile, index, registry, &mut problems);
    }
    extenders::validate(&config.extenders, &mut problems);
    problems.extend(args::unreadable(config, registry));

    let mut plans = plan_all(config, registry, &mut problems);
    check_names(config, &mut problems);
    if !queue_sort_differs(config, &mut problems) {
        check_queue_sort(config, &plans, &mut problems);
    }
    apply_extenders(config, registry, &mut plans, &mut problems);
    if !problems.has_errors()
        && let Err(found) = make_all(config, &plans, registry)
    {
        problems.extend(found);
    }

    traps::warn(config, &plans, registry, &mut problems);
    extenders::warn(&config.extenders, &mut problems);
    warn_of_lease(&config.leader_election, &mut problems);
    problems
}

fn validate_values(config: &KubeSchedulerConfiguration, problems: &mut Problems) {
    let burst = config.client_connection.burst;
    if burst < 0 {
        problems.invalid(&codes::BURST, "clientConnection.burst", burst, "must be non-negative");
    }
    if config.leader_election.leader_elect {
        validate_leader_election(&config.leader_election, problems);
    }
    if config.parallelism <= 0 {
        let detail = "should be an integer value greater than zero";
        problems.invalid(&codes::PARALLELISM, "parallelism", config.parallelism, detail);
    }
    if config.profiles.is_empty() {
        problems.add(&codes::NO_PROFILES, "profiles", "Required value");
    }
    validate_percentage(config.percentage_of_nodes_to_score, "", problems);
    let (initial, most) = (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds);
    if initial <= 0 {
        problems.invalid(&codes::BACKOFF, "podInitialBackoffSeconds", initial, "must be greater than 0");
    }
    if most < initial {
        let detail = "must be greater than or equal to PodInitialBackoffSeconds";
        problems.invalid(&codes::BACKOFF, "podMaxBackoffSeconds", most, detail);
    }
}

fn validate_leader_election(election: &LeaderElection, problems: &mut Problems) {
    let path = |field: &str| format!("leaderElection.{field}");
    for (field, duration) in [
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ] {
        if duration <= GoDuration(0) {
            problems.invalid(&codes::LEADER_ELECTION, path(field), duration, "must be greater than zero");
        }
    }
    if election.lease_duration <= election.renew_deadline {
        let detail = "must be greater than `RenewDeadline`";
        problems.invalid(&codes::LEADER_ELECTION, path("leaseDuration"), election.lease_duration, detail);
    }
    // Upstream's validator leaves this to client-go, which refuses it when the scheduler starts.
    let longest_wait = (JITTER_FACTOR * election.retry_period.0 as f64) as i64;
    if election.retry_period > GoDuration::ZERO && (1..=longest_wait).contains(&election.renew_deadline.0) {
        let detail = format!("must be greater than `RetryPeriod` * {JITTER_FACTOR}");
        problems.invalid(&codes::LEADER_ELECTION, path("renewDeadline"), election.renew_deadline, &detail);
    }
    for (field, text) in [
        ("resourceLock", &election.resource_lock),
        ("resourceNamespace", &election.resource_namespace),
        ("resourceName", &election.resource_name),
    ] {
        if text.is_empty() {
            problems.add(&codes::LEADER_ELECTION, path(field), "Required value");
        }
    }
    if !election.resource_lock.is_empty() && election.resource_lock != "leases" {
        let detail = "resourceLock value must be \"leases\"";
        problems.invalid(&codes::LEADER_ELECTION, path("resourceLock"), &election.resource_lock, detail);
    }
}

fn warn_of_lease(election: &LeaderElection, problems: &mut Problems) {
    let lease = election.lease_duration;
    if election.leader_elect && lease > GoDuration::ZERO && lease < GoDuration::from_seconds(1) {
        let message =
            format!("{lease} is less than a second: a Lease counts whole seconds, so that nobody could lead");
        problems.add(&codes::SHORT_LEASE, "leaderElection.leaseDuration", message);
    }
}

fn validate_percentage(percentage: Option<i32>, path: &str, problems: &mut Problems) {
    if let Some(percentage) = percentage.filter(|percentage| !(0..=100).contains(percentage)) {
        let path = format!("{path}percentageOfNodesToScore");
        problems.invalid(&codes::PERCENTAGE, path, percentage, "not in valid range [0-100]");
    }
}

fn validate_profile(
    profile: &KubeSchedulerProfile,
    index: usize,
    registry: &Registry,
    problems: &mut Problems,
) {
    let path = format!("profiles[{index}]");
    validate_percentage(profile.percentage_of_nodes_to_score, &format!("{path}."), problems);
    // Upstream does not look at multiPoint here, where the plugin does not exist anyway.
    for slot in Slot::FILLED {
        for (position, entry) in profile.plugins.get(slot).enabled.iter().enumerate() {
            let path = format!("{path}.plugins.{}.enabled[{position}].name", slot.config_name());
            validate_not_removed(&entry.name, path, problems);
        }
    }
    let merged = merged_plugins(&profile.plugins);
    for (position, entry) in profile.plugin_config.iter().enumerate() {
        let path = args::path(index, position);
        validate_not_removed(&entry.name, format!("{path}.name"), problems);
        // The arguments of enabled plugins are checked when the profile is planned. Upstream's validator looks at
        // the others too, but has NodeResourcesFit under a wrong name.
        if !merged.enables(&entry.name) && entry.name != "NodeResourcesFit" {
            validate_idle_args(entry, registry, &path, problems);
        }
    }
}

fn validate_idle_args(entry: &PluginConfig, registry: &Registry, path: &str, problems: &mut Problems) {
    let refused = args::read(entry, registry, path).err();
    if let Some(refusal) = refused.filter(|refusal| !refusal.unreadable) {
        problems.extend(refusal.problems);
    }
}

fn validate_not_removed(name: &str, path: String, problems: &mut Problems) {
    const REMOVED: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];
    if REMOVED.contains(&name) {
        let detail = format!(
            "was invalid in version {KUBE_API_VERSION:?} (KubeSchedulerConfiguration is version {KUBE_API_VERSION:?})"
        );
        problems.invalid(&codes::REMOVED_PLUGIN, path, name, &detail);
    }
}

/// Upstream's validator compares what is written, not what it comes to.
fn queue_sort_differs(config: &KubeSchedulerConfiguration, problems: &mut Problems) -> bool {
    let written = |index: usize| &config.profiles[index].plugins.queue_sort;
    let different: Vec<usize> =
        (1..config.profiles.len()).filter(|index| written(*index) != written(0)).collect();
    for index in &different {
        let path = format!("profiles[{index}].plugins.queueSort");
        let detail = "must be the same for all profiles";
        problems.invalid(&codes::QUEUE_SORT_DIFFERS, path, written(*index), detail);
    }
    !different.is_empty()
}
