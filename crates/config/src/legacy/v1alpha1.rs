//! `kubescheduler.config.k8s.io/v1alpha1`, read by Kubernetes up to 1.18.
//!
//! One scheduler name and one set of plugins at the top, no profiles and no extenders: those stood in the Policy.
//! `postFilter` was what `preScore` is now.

use supercargo_framework::Point;

use super::release::Release;
use super::tables;
use crate::codes;
use crate::fields::{self, Object};
use crate::problem::{Problem, Problems};
use crate::types::{LeaderElection, Plugins};

pub(super) const RELEASE: Release = Release {
    version: "v1alpha1",
    kubernetes: "1.18",
    fields: &[
        "schedulerName",
        "algorithmSource",
        "hardPodAffinitySymmetricWeight",
        "healthzBindAddress",
        "metricsBindAddress",
        "disablePreemption",
        "bindTimeoutSeconds",
        "failureDomains",
        "plugins",
        "pluginConfig",
    ],
    points: &["postFilter", "unreserve"],
    defaults: tables::ALPHA,
    replaces_defaults: false,
    lists_constraints: true,
    loose_extenders: false,
};

/// Fields of v1alpha1 that are none: what it called differently, or did not have.
pub(super) const ABSENT: [&str; 2] = ["profiles", "extenders"];

/// What was called `postFilter` is `preScore`.
pub(super) fn rename_points(plugins: &mut Plugins, path: &str, problems: &mut Problems) {
    plugins.pre_score = std::mem::take(&mut plugins.post_filter);
    if plugins.pre_score != crate::PluginSet::default() {
        let (old, new) = (Point::PostFilter.config_name(), Point::PreScore.config_name());
        let message = format!("{old} is called {new} now; today's {old} runs when no node fits");
        problems.add(&codes::POINT_MOVED, format!("{path}.{old}"), message);
    }
}

/// `lockObjectName` and `lockObjectNamespace`, which must not contradict the names that took over from them.
pub(super) fn rename_lock(
    given: &mut Object,
    election: &mut LeaderElection,
    path: &str,
    problems: &mut Problems,
) {
    for (old, new, into) in [
        ("lockObjectName", "resourceName", &mut election.resource_name),
        ("lockObjectNamespace", "resourceNamespace", &mut election.resource_namespace),
    ] {
        let mut name = String::new();
        fields::read_field(given, old, path, problems, &mut name);
        given.remove(old);
        if name.is_empty() {
            continue;
        }
        let path = fields::below(path, old);
        let other = given.get(new).and_then(|value| value.as_str()).filter(|other| !other.is_empty());
        if other.is_some_and(|other| other != name) {
            let message = format!("{old} and {new} are both set and do not match");
            problems.push(Problem::new(&codes::LOCK_NAMES, path, message).with_hint(format!("keep {new}")));
        } else {
            problems.add(&codes::FIELD_MOVED, path, format!("{old} is called {new} now"));
            *into = name;
        }
    }
}
