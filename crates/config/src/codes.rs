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
    OLD_VERSION "C008" "version not read": "`kubescheduler.config.k8s.io/v1` and `supercargo.dev/v1alpha1` are read, \
        and versions from v1alpha1 to v1beta3 are converted. There were no others.";
    WRONG_KIND "C009" "wrong kind": "The document is something else than a scheduler's configuration.";
    SECOND_OF_KIND "C010" "second document of a kind": "Only one `KubeSchedulerConfiguration` and one \
        `SupercargoConfiguration` can hold.";
    DOCUMENT_ORDER "C011" "documents in the wrong order": "kube-scheduler reads the first document only, so \
        `KubeSchedulerConfiguration` comes first.";
    UNREADABLE_FILE "C012" "file cannot be read": "The file is not there, is not to be read by you, is no text in UTF-8, or is too \
        large.";

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
    EXTENDER_INSECURE "C055" "certificates both checked and not": "An extender's `tlsConfig` is `insecure` and names \
        authorities. kube-scheduler refuses to start with both. Keep one of them.";

    // Settings of our own.
    UNKNOWN_TIE_BREAK "C060" "unknown tieBreak": "`Seeded` or `SmallestName`.";
    UNKNOWN_FIX "C061" "unknown fix": "`fixes` names quirks of upstream's; the message lists them.";
    NO_SUCH_PAGE "C062" "no such page": "`pages` names plugins that have a page; the message lists them.";
    PAGE_ADDRESS "C063" "unusable address of a page": "An IP address with a port that no other page has. Whoever can reach it reads the page.";
    QUERIES_COLLIDE "C064" "queries collide": "Two plugins, or one plugin in two profiles with different arguments, ask for facts that \
        would be the same objects of the cluster. Give both the same arguments, or enable one of them.";
    PROGRAM "C065" "unusable program": "`programs` are started with the scheduler: up to eight, each with a name of its own and a command. No shell \
        reads the command; for a shell's words, make the shell the command.";

    // Conversion.
    NO_POLICY "C070" "Policy not given": "The plugins are chosen by a Policy that lives elsewhere, and cannot be read there. A file must be where \
        the configuration says; a ConfigMap is not fetched. Or give it as well: `supercargo config convert CONFIG POLICY`.";
    ALGORITHM_SOURCE "C071" "algorithmSource makes no sense": "It names one provider, `DefaultProvider` or \
        `ClusterAutoscalerProvider`, or one place of a Policy.";
    POLICY_COMBINED "C072" "Policy and plugins together": "A Policy chooses all plugins. Releases that read profiles \
        with plugins did not accept it beside them, and v1beta3 and v1 do not accept it at all.";
    POLICY_NAME "C073" "no such predicate or priority": "No release of Kubernetes knew it without an argument.";
    POLICY_WEIGHT "C074" "priority without weight": "Priorities have positive weights.";
    POLICY_ARGUMENT "C075" "not exactly one argument": "A predicate or priority of one's own has one argument, which \
        says what it is.";
    LOCK_NAMES "C076" "two names for the lock": "`lockObjectName` and `resourceName` are the same thing, and must \
        agree.";
    EMPTY_CONFIG_MAP "C077" "no configuration in the ConfigMap": "None of its entries is a \
        `KubeSchedulerConfiguration` or a `Policy`.";

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
    EXTENDER_URL "W013" "extender without a usable address": "kube-scheduler looks at `urlPrefix` only when it asks, and then \
        every pod that the extender has a say in fails. Write `http://HOST:PORT/PATH`.";
    EXTENDER_URL_PARTS "W014" "address with parts that do not belong there": "A verb is put behind `urlPrefix` with a slash, so \
        that a query or a fragment swallows it; a user and a password in it are not sent and end up in logs.";
    EXTENDER_TIMEOUT "W015" "odd extender timeout": "A negative `httpTimeout` means none at all, 0 means 5 seconds, and a very \
        long one lets one slow extender hold up all pods.";
    EXTENDER_WEIGHT_IGNORED "W016" "extender's weight has no effect": "Weights count for extenders with a `prioritizeVerb`.";
    EXTENDER_TLS "W017" "extender's TLS is not what it seems": "A certificate needs its key and a key its certificate, data goes \
        before files, and `https` in `urlPrefix`, not `enableHTTPS`, decides whether TLS is spoken. Without an authority, \
        `enableHTTPS` means that certificates are not checked.";
    EXTENDER_IDLE "W018" "extender without verbs": "It is never asked.";
    FILE_NOT_THERE "W019" "file not there": "The configuration names a file that this machine does not have.";
    SHORT_LEASE "W020" "lease shorter than a second": "A Lease counts whole seconds, so that this one would have none.";
    SLOW_PLUGIN "W021" "plugin whose answers cannot be kept": "Answers about nodes are kept from one pod to the next, and 5,000 nodes are decided \
        on hundreds of thousands of times a second. A plugin that reads the time, what it remembers, whole objects or the pods' own names, or that \
        does not say how its scores are normalised, has all plugins asked about every node: some 500 times a second. Its author can \
        declare what it reads, say by `Plugin::alike` which pods it cannot tell apart and by `Plugin::concerns` which ones it has nothing to say \
        about, and give `Score::normalization`.";

    // Conversion. All of them name paths of the old document.
    CONVERTED "W100" "older version converted": "kube-scheduler 1.36 reads v1 only. `supercargo config convert` prints \
        what the file comes to.";
    WEIGHTS_KEPT "W101" "default weights written down": "Default weights were others back then. They were written \
        down, so that nodes are scored as before. Remove them to have today's.";
    PLUGIN_REPLACED "W102" "plugin became part of another": "The other one does its work now, with the same weight.";
    PLUGIN_GONE "W103" "plugin is gone": "Nothing does its work any more, so that pods may go to other nodes.";
    STRATEGY_LOST "W104" "one of several strategies kept": "Resources were scored in several ways at once. \
        NodeResourcesFit has one strategy a profile: pods may go to other nodes.";
    SPREADING "W105" "spreading works differently": "SelectorSpread counted pods of the same service or controller. \
        PodTopologySpread has constraints for such pods instead: pods may go to other nodes.";
    ARGS_MOVED "W106" "arguments moved": "They belong to another plugin, or another version, now.";
    ARGS_DROPPED "W107" "arguments dropped": "There is nothing that takes them.";
    FIELD_MOVED "W108" "field moved or renamed": "It means the same at its new place.";
    FIELD_DROPPED "W109" "field dropped": "It has no counterpart, and no effect on where pods go.";
    LOCK_CHANGED "W110" "lock of another kind": "Leases are the only lock that is left. Replicas with different locks \
        do not see each other and would schedule at the same time.";
    POINT_MOVED "W111" "extension point renamed": "The plugins were enabled and disabled at the point of today.";
    POINT_LEFT "W112" "plugin left a point": "It was left out there, because it would be refused.";
    PERCENTAGE_DROPPED "W113" "0 percent left out": "0 and absent mean the same: all nodes here, a share that depends \
        on the size of the cluster to kube-scheduler. Write 1 to 99 for a share.";
    POLICY_CONVERTED "W114" "Policy turned into plugins": "Predicates became plugins at `filter`, priorities plugins \
        at `score` with the same weights. What is not listed is disabled.";
    ENTRY_NOT_READ "W115" "entry of the ConfigMap not read": "It is no scheduler's configuration.";
}
