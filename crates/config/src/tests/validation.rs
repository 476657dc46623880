//! What the validator minds.

use super::{HEAD, check, check_hint, plugin_config, plugins};

#[track_caller]
fn check_rest(rest: &str, expected: &[&str]) {
    check(&format!("{HEAD}{rest}\n"), expected);
}

#[test]
fn the_default_has_no_problems() {
    check_rest("", &[]);
}

#[test]
fn values_out_of_range() {
    check_rest(
        "clientConnection: {burst: -1}",
        &["C043 clientConnection.burst: Invalid value: -1: must be non-negative"],
    );
    check_rest(
        "parallelism: 0",
        &["C040 parallelism: Invalid value: 0: should be an integer value greater than zero"],
    );
    check_rest(
        "percentageOfNodesToScore: 101\nprofiles: [{percentageOfNodesToScore: -1}]",
        &[
            "C041 percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            "C041 profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        ],
    );
    check_rest(
        "podInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1",
        &[
            "C042 podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            "C042 podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
        ],
    );
}

#[test]
fn leader_election() {
    check_rest(
        "leaderElection: {leaseDuration: -1s, renewDeadline: -2s, retryPeriod: -1ns, resourceLock: endpoints}",
        &[
            "C044 leaderElection.leaseDuration: Invalid value: \"-1s\": must be greater than zero",
            "C044 leaderElection.renewDeadline: Invalid value: \"-2s\": must be greater than zero",
            "C044 leaderElection.retryPeriod: Invalid value: \"-1ns\": must be greater than zero",
            "C044 leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be \"leases\"",
        ],
    );
    check_rest(
        "leaderElection: {leaseDuration: 10s}",
        &["C044 leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`"],
    );
    check_rest(
        "leaderElection: {renewDeadline: 6s, retryPeriod: 5s}",
        &[
            "C044 leaderElection.renewDeadline: Invalid value: \"6s\": must be greater than `RetryPeriod` * 1.2",
        ],
    );
    check_rest("leaderElection: {renewDeadline: 6001ms, retryPeriod: 5s}", &[]);
    check_rest(
        "leaderElection: {leaseDuration: 900ms, renewDeadline: 500ms, retryPeriod: 100ms}",
        &[
            "W020 leaderElection.leaseDuration: 900ms is less than a second: a Lease counts whole seconds, so that nobody \
           could lead",
        ],
    );
    check_rest("leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: x}", &[]);
}

#[test]
fn required_values_of_a_configuration_made_by_hand() {
    let mut config = crate::KubeSchedulerConfiguration::default();
    config.profiles.clear();
    config.leader_election.resource_lock.clear();
    config.leader_election.resource_name.clear();
    config.leader_election.resource_namespace.clear();
    let problems = crate::validate(&config, &super::support::registry()).to_string();
    assert_eq!(
        problems,
        "error C044 leaderElection.resourceLock: Required value\n\
         error C044 leaderElection.resourceNamespace: Required value\n\
         error C044 leaderElection.resourceName: Required value\n\
         error C045 profiles: Required value"
    );
}

#[test]
fn names_of_profiles() {
    check_rest(
        "profiles: [{schedulerName: a}, {}, {schedulerName: a}, {schedulerName: ''}]",
        &[
            "C046 profiles[1].schedulerName: Required value: scheduler name is needed",
            "C047 profiles[2].schedulerName: duplicate profile with scheduler name \"a\"",
            "C046 profiles[3].schedulerName: Required value: scheduler name is needed",
        ],
    );
}

#[test]
fn plugins_that_were_removed() {
    let detail = "was invalid in version \"kubescheduler.config.k8s.io/v1\" (KubeSchedulerConfiguration is version \
                  \"kubescheduler.config.k8s.io/v1\")";
    check(
        &plugins("{filter: {enabled: [{name: EBSLimits}]}}"),
        &[
            &format!(
                "C037 profiles[0].plugins.filter.enabled[0].name: Invalid value: \"EBSLimits\": {detail}"
            ),
            "C030 profiles[0].plugins.filter.enabled[0].name: FilterPlugin \"EBSLimits\" does not exist",
        ],
    );
    check(
        &plugin_config("[{name: CinderLimits}]"),
        &[
            &format!("C037 profiles[0].pluginConfig[0].name: Invalid value: \"CinderLimits\": {detail}"),
            "W006 profiles[0].pluginConfig[0].name: there is no plugin \"CinderLimits\", so its arguments have no effect",
        ],
    );
}

#[test]
fn the_queue_is_shared() {
    check_rest(
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: PrioritySort}]}}}]",
        &[
            "C036 profiles[1].plugins.queueSort: Invalid value: {\"enabled\":[{\"name\":\"PrioritySort\"}]}: must be the \
         same for all profiles",
        ],
    );
    // The same words, but another order comes of them.
    let multi_point = "{multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: Out}]}}";
    check_rest(
        &format!("profiles: [{{schedulerName: a}}, {{schedulerName: b, plugins: {multi_point}}}]"),
        &[
            "C036 profiles[1].plugins.queueSort: different queue sort plugins for profile \"b\": \"Out\", first: \
         \"PrioritySort\"",
        ],
    );
    check(
        &plugins("{queueSort: {enabled: [{name: PrioritySort}, {name: Out}]}}"),
        &[
            "C033 profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name \
         \"default-scheduler\", but got 2",
        ],
    );
}

#[test]
fn extenders() {
    check_rest(
        "extenders: [{urlPrefix: 'http://a', prioritizeVerb: p, bindVerb: b}, \
         {urlPrefix: 'http://b', prioritizeVerb: p, weight: -1, bindVerb: b}, \
         {urlPrefix: 'http://c', managedResources: [{name: a/b/c}, {name: cpu}, {name: x.y/z}, {name: x.y/z}, {name: ''}]}]",
        &[
            "C050 extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            "C050 extenders[1].weight: Invalid value: -1: must have a positive weight applied to it",
            "C052 extenders[2].managedResources[0].name: Invalid value: \"a/b/c\": a valid label key must consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
             'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')",
            "C052 extenders[2].managedResources[1].name: Invalid value: \"cpu\": is an invalid extended resource name",
            "C053 extenders[2].managedResources[3].name: Invalid value: \"x.y/z\": duplicate extender managed \
             resource name",
            "C052 extenders[2].managedResources[4].name: Invalid value: \"\": name part must be non-empty",
            "C052 extenders[2].managedResources[4].name: Invalid value: \"\": name part must consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
             'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            "C051 extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can implement \
             bind",
        ],
    );
    check_rest("extenders: [{urlPrefix: 'http://a', prioritizeVerb: p, weight: 1}]", &[]);
    check_rest(
        "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]\n\
         extenders: [{urlPrefix: 'http://a', managedResources: [{name: x.y/z, ignoredByScheduler: true}]}]",
        &["C054 profiles[0]: can't find NodeResourcesFitArgs in plugin config"],
    );
}

#[test]
fn arguments_are_checked_whether_or_not_the_plugin_is_enabled() {
    let bad = |name: &str, args: &str| {
        format!(
            "profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: {name}}}]}}}}, \
             pluginConfig: [{{name: {name}, args: {args}}}]}}]"
        )
    };
    check_rest(
        &bad("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
        &[
            "C022 profiles[0].pluginConfig[0].args.hardPodAffinityWeight: initializing plugin \"InterPodAffinity\": \
         Invalid value: 101: not in valid range [0-100]",
            "W005 profiles[0].pluginConfig[0].name: InterPodAffinity is not enabled, so its arguments have no effect",
        ],
    );
    // Upstream's validator has this one under a wrong name.
    check_rest(
        &bad("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}"),
        &[
            "W005 profiles[0].pluginConfig[0].name: NodeResourcesFit is not enabled, so its arguments have no effect",
        ],
    );
    check_hint(
        &plugin_config("[{name: NodeResourcesFit, args: {ignoredResource: [a]}}]"),
        "did you mean \"ignoredResources\"?",
    );
}

#[test]
fn all_problems_at_once() {
    check_rest(
        "parallelism: 0\nprofiles:\n- plugins: {score: {enabled: [{name: Foo}, {name: Out}, {name: Out}, {name: NodePorts}]}, \
         bind: {disabled: [{name: DefaultBinder}]}}\n  pluginConfig: [{name: X}, {name: X}]\n",
        &[
            "C040 parallelism: Invalid value: 0: should be an integer value greater than zero",
            "C023 profiles[0].pluginConfig[1].name: repeated config for plugin X",
            "C030 profiles[0].plugins.score.enabled[0].name: ScorePlugin \"Foo\" does not exist",
            "C032 profiles[0].plugins.score.enabled[2].name: plugin \"Out\" already registered as \"ScorePlugin\"",
            "C031 profiles[0].plugins.score.enabled[3].name: plugin \"NodePorts\" does not extend ScorePlugin plugin",
            "C034 profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name \
             \"default-scheduler\"",
            "W006 profiles[0].pluginConfig[0].name: there is no plugin \"X\", so its arguments have no effect",
            "W006 profiles[0].pluginConfig[1].name: there is no plugin \"X\", so its arguments have no effect",
        ],
    );
    check_hint(&plugins("{score: {enabled: [{name: ImageLocalty}]}}"), "did you mean \"ImageLocality\"?");
    check_hint(&plugins("{score: {enabled: [{name: NodePorts}]}}"), "it implements preFilter, filter");
}
