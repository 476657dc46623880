//! The codes of problems. They are stable: a code that is no longer used is not used again.
//!
//! `docs/reference/config-codes.md` is made from this table; `UPDATE_DOCS=1 cargo test -p supercargo-config` makes it
//! anew.

use crate::problem::Severity;

/// A kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its stable name: `C…` for errors, `W…` for warnings.
    pub id: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Why it matters, and what to do.
    pub explanation: &'static str,
}

impl Code {
    /// Whether it stops the scheduler.
    pub fn severity(&self) -> Severity {
        if self.id.starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

/// The reference of all codes, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Codes of `supercargo config check`\n\n\
         Made from `crates/config/src/codes.rs`; run `UPDATE_DOCS=1 cargo test -p supercargo-config` to make it anew.\n\n\
         A code keeps its meaning forever. Errors (`C…`) stop the scheduler, warnings (`W…`) do not.\n",
    );
    for (heading, severity) in [("Errors", Severity::Error), ("Warnings", Severity::Warning)] {
        text.push_str(&format!("\n## {heading}\n\n| code | what | why, and what to do |\n|---|---|---|\n"));
        for code in ALL.iter().filter(|code| code.severity() == severity) {
            text.push_str(&format!("| {} | {} | {} |\n", code.id, code.title, code.explanation));
        }
    }
    text
}

macro_rules! codes {
    ($($name:ident $id:literal $title:literal: $explanation:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code { id: $id, title: $title, explanation: $explanation };)*

        /// All codes.
        pub const ALL: &[Code] = &[$($name),*];
    };
}

codes! {
    // Reading.
    SYNTAX "C001" "not YAML or JSON": "The text cannot be parsed. Text that starts with `{` is read as JSON, as \
        kube-scheduler does.";
    DUPLICATE_FIELD "C002" "repeated field": "A field stands in an object twice. Keep one of them.";
    UNKNOWN_FIELD "C003" "unknown field": "No such field exists here. Names are case-sensitive.";
    WRONG_TYPE "C004" "wrong type": "The value has another type than the field, or does not fit into it. `16` is a \
        number, `'16'` is not.";
    INVALID_DURATION "C005" "not a duration": "Durations are written as Go writes them: `15s`, `1m30s`, `500ms`.";
    INVALID_BASE64 "C006" "not base64": "Certificates and keys stand in `tlsConfig` as padded base64.";
    NO_KIND "C007" "apiVersion or kind missing": "A document says what it is: `apiVersion: \
        kubescheduler.config.k8s.io/v1` and `kind: KubeSchedulerConfiguration`.";
    OLD_VERSION "C008" "version not read": "Only `kubescheduler.config.k8s.io/v1` and `supercargo.dev/v1alpha1` are \
        read. kube-scheduler 1.36 reads no older version either.";
    WRONG_KIND "C009" "wrong kind": "The document is something else than a scheduler's configuration.";
    SECOND_OF_KIND "C010" "second document of a kind": "Only one `KubeSchedulerConfiguration` and one \
        `SupercargoConfiguration` can hold.";
    DOCUMENT_ORDER "C011" "documents in the wrong order": "kube-scheduler reads the first document only, so \
        `KubeSchedulerConfiguration` comes first.";

    // Arguments of plugins.
    ARGS_KIND "C020" "arguments of another kind": "`apiVersion` and `kind` below `args` may be left out; if they \
        stand there, they must be the plugin's own.";
    ARGS_UNREADABLE "C021" "arguments cannot be read": "A field below `args` does not exist or has the wrong type. \
        This is checked for plugins that are not enabled, too.";
    ARGS_INVALID "C022" "arguments not allowed": "A value below `args` is outside of what the plugin accepts.";
    REPEATED_CONFIG "C023" "repeated pluginConfig": "A plugin's arguments stand in a profile twice.";

    // Plugins.
    NO_SUCH_PLUGIN "C030" "plugin does not exist": "No plugin of that name is part of this scheduler.";
    POINT_NOT_IMPLEMENTED "C031" "plugin does not implement the point": "Enable the plugin at points that it \
        implements, or at `multiPoint`.";
    ALREADY_REGISTERED "C032" "plugin enabled twice": "A plugin can be at a point only once.";
    QUEUE_SORT_COUNT "C033" "not exactly one queueSort plugin": "The queue has one order. To change it, disable \
        `PrioritySort` at `queueSort` and enable the other.";
    NO_BIND "C034" "no bind plugin": "Somebody has to bind pods. `disabled: [{name: '*'}]` at `multiPoint` removes \
        `DefaultBinder` too.";
    SCORE_OVERFLOW "C035" "weights too large": "The sum of weights times 100 must fit into 64 bits. Negative weights \
        end here as well.";
    QUEUE_SORT_DIFFERS "C036" "queueSort differs between profiles": "All profiles share one queue, so they need the \
        same `queueSort` plugin with the same arguments.";
    REMOVED_PLUGIN "C037" "plugin was removed": "`NodeVolumeLimits` took over from the plugins for single cloud \
        providers.";
    PLACEMENT_GENERATE_COUNT "C038" "more than one placementGenerate plugin": "At most one is allowed.";
    ZERO_WEIGHT "C039" "weight 0": "kube-scheduler takes a written 0 as 1, so the plugin would count all the same. \
        Disable the plugin at `score` to leave it out, or leave the weight out to give it 1.";

    // Values.
    PARALLELISM "C040" "parallelism not positive": "At least one worker is needed.";
    PERCENTAGE "C041" "percentage out of range": "`percentageOfNodesToScore` goes from 0 to 100.";
    BACKOFF "C042" "backoff out of range": "`podInitialBackoffSeconds` is at least 1, and `podMaxBackoffSeconds` at \
        least that.";
    BURST "C043" "negative burst": "`clientConnection.burst` cannot be negative.";
    LEADER_ELECTION "C044" "leader election cannot work": "All durations are positive, the lease outlives the renew \
        deadline, and the lock is a lease with a name and a namespace.";
    NO_PROFILES "C045" "no profiles": "At least one profile is needed.";
    NO_SCHEDULER_NAME "C046" "profile without schedulerName": "Only a single profile may leave its name out.";
    DUPLICATE_PROFILE "C047" "two profiles of one name": "A pod's `schedulerName` must lead to one profile.";

    // Extenders.
    EXTENDER_WEIGHT "C050" "extender without weight": "An extender with a `prioritizeVerb` needs a positive `weight`.";
    EXTENDER_BINDERS "C051" "several extenders bind": "Only one extender can have a `bindVerb`.";
    EXTENDER_RESOURCE "C052" "not an extended resource": "`managedResources` are extended resources such as \
        `example.com/gpu`.";
    EXTENDER_DUPLICATE_RESOURCE "C053" "resource managed twice": "A resource can have one extender.";
    NO_FIT_ARGS "C054" "no NodeResourcesFit to tell": "`ignoredByScheduler` works by changing NodeResourcesFit's \
        arguments, so every profile needs that plugin or its arguments.";

    // Settings of our own.
    UNKNOWN_TIE_BREAK "C060" "unknown tieBreak": "`Seeded` or `SmallestName`.";
    UNKNOWN_FIX "C061" "unknown fix": "`fixes` names quirks of upstream's; the message lists them.";

    // Traps.
    PRE_SCORE_MISSING "W001" "preScore disabled, score not": "The plugin works out in PreScore what its Score needs. \
        Disable it at `score` too, or leave it at `preScore`.";
    PRE_FILTER_MISSING "W002" "preFilter disabled, later points not": "The plugin works out in PreFilter what its \
        later points need. Disable it there too, or leave it at `preFilter`.";
    DEFAULT_WEIGHT_LOST "W003" "weight is 1, not the default": "A default plugin that is enabled again without a \
        weight gets weight 1. Write the weight.";
    ARGS_IGNORED "W004" "arguments are ignored": "The plugin takes no arguments.";
    CONFIG_WITHOUT_PLUGIN "W005" "arguments of a plugin that is not enabled": "They have no effect.";
    CONFIG_OF_UNKNOWN "W006" "arguments of an unknown plugin": "They have no effect, which kube-scheduler does not \
        mention either.";
    DISABLED_NOTHING "W007" "nothing to disable": "No such plugin takes part here, so the entry has no effect.";
    WEIGHT_IGNORED "W008" "weight is ignored": "Weights count at `score`, and at `multiPoint` for plugins that score.";
    ALL_NODES "W009" "0 percent means all nodes": "kube-scheduler takes 0 as \"decide by the size of the cluster\" \
        and looks at 5 to 50 percent of the nodes of a large one. We look at all. Write 1 to 99 for a share.";
    NO_PREEMPTION "W010" "no preemption": "Without `DefaultPreemption` at `postFilter`, pods of high priority wait \
        like all others.";
    PLACEMENT_NOT_RUN "W011" "point is not run": "`placementGenerate` and `placementScore` are alpha in \
        kube-scheduler and off by default; here they are read and not run.";
    IGNORED_RESOURCES_REPLACED "W012" "ignoredResources are replaced": "An extender's `ignoredByScheduler` resources \
        replace NodeResourcesFit's `ignoredResources`; they are not added to them.";
}
