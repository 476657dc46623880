//! What a configuration comes to in a world: the same as in `supercargo run`.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_config::{Loaded, TieBreak, build_profiles, read};
use supercargo_engine::{EngineOptions, Indexing, Rules, SchedulerOptions, Seed, Ties};
use supercargo_framework::{Plugin, PluginType, Point, Profile, Registry};

/// The default of `--pod-max-in-unschedulable-pods-duration`.
const MAX_UNSCHEDULABLE: Duration = Duration::from_secs(300);

/// The configuration of those who have none.
pub(crate) const DEFAULT_CONFIG: &str =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// What a scheduler is made of.
pub(crate) struct Settings {
    pub(crate) profiles: Vec<Profile>,
    pub(crate) options: SchedulerOptions,
}

impl Settings {
    /// What a configuration says; all that is wrong with it if it cannot be used.
    pub(crate) fn of(config: &str, registry: &Registry) -> Result<Self, String> {
        let wrong =
            |problems: supercargo_config::Problems| format!("the configuration is wrong:\n{problems}");
        let Loaded { kube, own, .. } = read(config).into_usable(registry).map_err(wrong)?;
        if !kube.extenders.is_empty() {
            return Err("the configuration has extenders, which nobody answers for in a world: leave \
                        `extenders` out"
                .to_owned());
        }
        let profiles = build_profiles(&kube, registry).map_err(wrong)?;
        let ties = match own.tie_break {
            TieBreak::Seeded => Ties::Seeded,
            TieBreak::SmallestName => Ties::SmallestName,
        };
        let seconds = |seconds: i64| Duration::from_secs(seconds.max(0).unsigned_abs());
        let options = SchedulerOptions {
            engine: EngineOptions {
                rules: Rules { ties, ..Rules::LIVE },
                seed: Seed(own.seed),
                fixes: own.fixes,
                // Every decision by kept answers is made once more without them: a declaration that is not true shows.
                indexing: Indexing::Checked,
            },
            initial_backoff: seconds(kube.pod_initial_backoff_seconds),
            max_backoff: seconds(kube.pod_max_backoff_seconds),
            max_unschedulable: MAX_UNSCHEDULABLE,
        };
        Ok(Settings { profiles, options })
    }
}

/// A configuration with the default plugins and one more at all its points. Where only one is asked, it is that one: its order is
/// the queue's, and it binds before the default binder does.
pub(crate) fn config_with<P: Plugin>(args: Option<&Value>, registry: &Registry) -> String {
    let points = registry.get(P::NAME).map(PluginType::points).unwrap_or_default();
    let mut plugins = json!({ "multiPoint": { "enabled": [{ "name": P::NAME }] } });
    if points.contains(&Point::QueueSort) {
        plugins["queueSort"] = json!({ "enabled": [{ "name": P::NAME }], "disabled": [{ "name": "*" }] });
    }
    if points.contains(&Point::Bind) {
        let both = json!([{ "name": P::NAME }, { "name": "DefaultBinder" }]);
        plugins["bind"] = json!({ "enabled": both, "disabled": [{ "name": "*" }] });
    }
    let mut profile = json!({ "schedulerName": "default-scheduler", "plugins": plugins });
    if let Some(args) = args {
        profile["pluginConfig"] = json!([{ "name": P::NAME, "args": args }]);
    }
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    });
    config.to_string()
}
