//! Where upstream errs, we err with it, unless the configuration asks for the fix. All such places are listed here,
//! and those where we do not.

use serde::{Serialize, Serializer};

/// A place where upstream does what nobody would want, and which we follow by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirk {
    /// The name by which `fixes` asks for the fix.
    pub name: &'static str,
    /// What upstream does, and so do we.
    pub upstream: &'static str,
    /// What the fix does instead.
    pub fix: &'static str,
    /// Where to read more: the number in the list of quirks (§10) of the specification, and upstream's issue if there is one.
    pub reference: &'static str,
}

/// A place where we do not follow upstream, whatever is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What upstream does.
    pub upstream: &'static str,
    /// What we do.
    pub ours: &'static str,
    /// Why we do not follow upstream.
    pub reason: &'static str,
}

/// All differences that belong to no single plugin or setting.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        upstream: "A pod-level request that Go keeps as a decimal, such as `1.5Gi`, grows by the pod's overhead each \
                   time the pod's requests are added up, as the sum is written into the pod itself.",
        ours: "The overhead counts once.",
        reason: "What comes out upstream depends on how often somebody looked.",
    },
    Difference {
        upstream: "Where a key stands twice in an object, the second value is read over the first: numbers and texts are \
                   replaced, objects and maps merged.",
        ours: "The object is refused if it is a field that is read. In a map the last value counts, and of two kinds the \
               one that stands at the beginning.",
        reason: "No API server writes such objects, so something is wrong with them.",
    },
    Difference {
        upstream: "`apiVersion` and `kind` are found in any case, such as `Kind`; all other fields only as they are \
                   written.",
        ours: "All fields are found only as they are written.",
        reason: "As above.",
    },
    Difference {
        upstream: "A kind or version that Kubernetes does not have is an error.",
        ours: "In groups that end in `.k8s.io` any kind, and of the kinds of `apps` and the like any version, is left \
               out; `explain` and `capacity` say so.",
        reason: "Dumps hold objects of add-ons, and come from older and newer clusters.",
    },
    Difference {
        upstream: "A value of the wrong type is an error in every field.",
        ours: "It is an error in fields that somebody reads.",
        reason: "Speed; the API server has checked the others.",
    },
    Difference {
        upstream: "Half of a surrogate pair in a JSON text is read as U+FFFD.",
        ours: "The object is refused.",
        reason: "No API server writes it.",
    },
    Difference {
        upstream: "A pod for which extenders were asked goes to the node that was chosen, whatever has become of the node \
                   meanwhile.",
        ours: "If the cluster has changed since the attempt began, the pod is filtered once more on that node, and tried \
               again after a backoff if it does not fit any more.",
        reason: "Another writer may have taken the room while a slow extender thought.",
    },
    Difference {
        upstream: "The room of a nominated pod that is being deleted is kept until the pod is gone.",
        ours: "It is free as soon as the pod is being deleted, and pods that wait for such room are tried.",
        reason: "No pod that is being deleted is bound, and a finalizer can keep it for long.",
    },
];

/// The reference of all quirks, in Markdown.
pub fn quirks_reference() -> String {
    let mut text = String::from(
        "# Quirks of kube-scheduler's, and their fixes\n\n\
         Made from `crates/framework/src/quirks.rs`; run `UPDATE_DOCS=1 cargo test -p supercargo-config` to make it anew.\n\n\
         By default we decide as kube-scheduler does, mistakes included. `fixes` in a `SupercargoConfiguration` asks for \
         something better, one name at a time.\n\n\
         | name | kube-scheduler, and we by default | with the fix | reference |\n|---|---|---|---|\n",
    );
    for Quirk { name, upstream, fix, reference } in QUIRKS {
        text.push_str(&format!("| `{name}` | {upstream} | {fix} | {reference} |\n"));
    }
    text.push_str(
        "\n## What we do not follow\n\n\
         Differences of single plugins stand in [plugins.md](plugins.md), that of a setting in \
         [configuration.md](configuration.md).\n\n\
         | kube-scheduler | we | why |\n|---|---|---|\n",
    );
    for Difference { upstream, ours, reason } in DIFFERENCES {
        text.push_str(&format!("| {upstream} | {ours} | {reason} |\n"));
    }
    text
}

macro_rules! quirks {
    ($($field:ident $name:literal { upstream: $upstream:literal, fix: $fix:literal, reference: $reference:literal })*) => {
        /// All quirks that can be fixed.
        pub const QUIRKS: &[Quirk] =
            &[$(Quirk { name: $name, upstream: $upstream, fix: $fix, reference: $reference }),*];

        /// Which quirks are fixed; by default none.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Fixes {
            $(#[doc = $fix] pub $field: bool,)*
        }

        impl Fixes {
            /// Asks for a fix by its name; false if there is none of that name.
            pub fn enable(&mut self, name: &str) -> bool {
                match name {
                    $($name => self.$field = true,)*
                    _ => return false,
                }
                true
            }

            /// The names of the fixes that are asked for.
            pub fn names(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field { names.push($name); })*
                names
            }
        }
    };
}

impl Serialize for Fixes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names().serialize(serializer)
    }
}

quirks! {
    namespace_selector_absence "namespaceSelectorAbsence" {
        upstream: "A pod affinity term whose namespaceSelector was resolved to namespaces keeps the selector and \
                   evaluates it against empty labels, so NotIn and DoesNotExist match pods of every namespace.",
        fix: "A resolved term matches the namespaces that it was resolved to, and no others.",
        reference: "§10, 3; kubernetes/kubernetes#141526"
    }
    fit_score_pod_level_requests "fitScorePodLevelRequests" {
        upstream: "NodeResourcesFit filters by an incoming pod's pod-level requests, but scores by those of its \
                   containers.",
        fix: "NodeResourcesFit scores by pod-level requests as well.",
        reference: "§10, 4"
    }
    empty_spread_selector "emptySpreadSelector" {
        upstream: "A topology spread constraint with an empty labelSelector counts no pods at all.",
        fix: "An empty labelSelector matches all pods of the namespace, as it does everywhere else.",
        reference: "§10, 9"
    }
    exclusive_claim_namespace "exclusiveClaimNamespace" {
        upstream: "When preemption tries a node without some pod, VolumeRestrictions takes a claim of the same name in \
                   another namespace for the incoming pod's ReadWriteOncePod claim, so a pod can be evicted that is not \
                   in the way.",
        fix: "Only claims of the incoming pod's namespace count.",
        reference: "§10, 10"
    }
    post_filter_after_pre_filter_stop "postFilterAfterPreFilterStop" {
        upstream: "When a PreFilter plugin rejects a pod before DynamicResources had its turn, DynamicResources' \
                   PostFilter finds no state, and the pod's message ends in \"not found\".",
        fix: "DynamicResources' PostFilter has nothing to say about a pod that it has not seen.",
        reference: "§10, 14"
    }
    peaks_unknown_nodes "peaksUnknownNodes" {
        upstream: "Peaks (of kubernetes-sigs/scheduler-plugins) takes a node without a power model or a measurement, or one that the \
                   pod would overload, for one where the pod costs nothing, and so for the best.",
        fix: "Such a node gets no points from Peaks.",
        reference: "scheduler-plugins, §6.8"
    }
    unlisted_quota_resources "unlistedQuotaResources" {
        upstream: "A resource of cpu, memory and ephemeral-storage that the min or the max of an ElasticQuota does not name \
                   counts as 0 there, so a quota of cpu alone rejects every pod that asks for memory.",
        fix: "What the max does not name has no limit, and what no min names is not counted. What only some mins name is guaranteed to \
              nobody else.",
        reference: "scheduler-plugins §1.8; kubernetes-sigs/scheduler-plugins#683, #847"
    }
    quota_budget_violations "quotaBudgetViolations" {
        upstream: "A victim that a disruption budget protects, and that goes because of a quota alone, does not count as a \
                   violation of the budget when nodes are compared.",
        fix: "It counts as any other.",
        reference: "scheduler-plugins §1.8"
    }
    quota_sidecars "quotaSidecars" {
        upstream: "To CapacityScheduling, a sidecar is an init container that ends before the others begin, and what a pod asks for as a \
                   whole does not count.",
        fix: "Both count against quotas as NodeResourcesFit counts them.",
        reference: "scheduler-plugins §0.5"
    }
    quota_evictions "quotaEvictions" {
        upstream: "CapacityScheduling fails a node where a victim that does not fit beside the pod goes while pods that are nominated elsewhere \
                   exceed the quota, and evicts nobody there: it takes the victim off the node twice.",
        fix: "Such a pod is a victim as any other.",
        reference: "scheduler-plugins §1.8"
    }
    pod_group_quorum "podGroupQuorum" {
        upstream: "A PodGroup of which one pod has failed is Failed, for ever, though minMember of its pods run or have \
                   succeeded.",
        fix: "Such a group is Running, and one that is Failed leaves that phase when minMember of its pods run.",
        reference: "scheduler-plugins §2.11; kubernetes-sigs/scheduler-plugins#386"
    }
    completed_members "completedMembers" {
        upstream: "Members of a PodGroup that have succeeded do not count, so a member that is made anew waits for ever \
                   when fewer than minMember are left.",
        fix: "Members that have succeeded count as having a node. The first member that waits for others has them tried, whether or not \
              members have a node already.",
        reference: "scheduler-plugins §2.11; kubernetes-sigs/scheduler-plugins#560"
    }
    unreported_numa_resources "unreportedNumaResources" {
        upstream: "NodeResourceTopologyMatch rejects every pod that asks for memory or huge pages on a node whose topology does not \
                   report them in any zone, and its strategy LeastNUMANodes gives no points where no zone reports something else \
                   that the pod asks for, such as ephemeral-storage.",
        fix: "What no zone of a node reports is no matter of zones there.",
        reference: "scheduler-plugins §4.5, §4.10; kubernetes-sigs/scheduler-plugins#249"
    }
    numa_sidecars "numaSidecars" {
        upstream: "NodeResourceTopologyMatch takes a sidecar for an init container that ends before the others begin, so that the \
                   containers beside it are thought to find what it holds. Preemption does not give back what it holds.",
        fix: "A sidecar holds what it asks for, in its zone and in the sum of its pod.",
        reference: "scheduler-plugins §4.10; kubernetes-sigs/scheduler-plugins#1013"
    }
    numa_resync_pending_pods "numaResyncPendingPods" {
        upstream: "When NodeResourceTopologyMatch takes over a topology that has counted the running pods of its node, it forgets the \
                   pods that are bound there and have not started yet, and gives what they will take to others.",
        fix: "Such pods are taken off the new topology, until one has counted them.",
        reference: "scheduler-plugins §4.8"
    }
    single_numa_node_maximum "singleNumaNodeMaximum" {
        upstream: "NodeResourceTopologyMatch takes a node that says that it has one NUMA node at most for one that may have eight.",
        fix: "It is believed.",
        reference: "scheduler-plugins §4.10"
    }
    numa_node_points "numaNodePoints" {
        upstream: "NodeResourceTopologyMatch's strategy LeastNUMANodes gives points below 0 to a node that has more NUMA nodes than it \
                   says that it may have, and pods that meet such a node cannot be scheduled.",
        fix: "Such a node gets no points.",
        reference: "scheduler-plugins §4.6"
    }
    app_group_namespaces "appGroupNamespaces" {
        upstream: "NetworkOverhead and TopologicalSort look for the AppGroup of a pod in the namespaces of their arguments, and take \
                   pods of all namespaces with its name in their labels for its members.",
        fix: "The AppGroup of a pod is in the pod's own namespace, and its members are the pods of that namespace.",
        reference: "scheduler-plugins §7.7"
    }
    unknown_network_costs "unknownNetworkCosts" {
        upstream: "To NetworkOverhead, a pod to which nobody knows what the network costs is neither near enough nor too far away, so \
                   a node passes that may be anywhere.",
        fix: "Such a pod is too far away.",
        reference: "scheduler-plugins §7.7"
    }
    network_permission "networkPermission" {
        upstream: "NetworkOverhead does not look at `isAllowed` of a NetworkTopology.",
        fix: "A pod in a zone or region to which `isAllowed` is false is too far away.",
        reference: "scheduler-plugins §7.7"
    }
    network_bandwidth "networkBandwidth" {
        upstream: "NetworkOverhead does not look at `minBandwidth` of an AppGroup.",
        fix: "A pod in a zone or region to which less than that is left, of `bandwidthCapacity` without `bandwidthAllocated`, is too \
              far away.",
        reference: "scheduler-plugins §7.7"
    }
    unsorted_netperf_costs "unsortedNetperfCosts" {
        upstream: "NetworkOverhead takes the set `NetperfCosts` to be in order, and does not find all costs where it is not.",
        fix: "All costs are found.",
        reference: "scheduler-plugins §7.2"
    }
    quota_status_placed "quotaStatusPlaced" {
        upstream: "`status.used` of an ElasticQuota has what its running pods ask for, while pods count against the quota as soon as \
                   they have a node.",
        fix: "`status.used` has what pods with a node ask for, as it is enforced.",
        reference: "scheduler-plugins §1.8"
    }
    gone_priority_class "gonePriorityClass" {
        upstream: "PreemptionToleration evicts nobody on a node where a less important pod names a PriorityClass that is gone.",
        fix: "Such a pod is spared by nobody, as one without a PriorityClass, and the others on its node are looked at.",
        reference: "scheduler-plugins §5.4"
    }
    target_load_points "targetLoadPoints" {
        upstream: "TargetLoadPacking gives points below 0 or above 100 where the target is above 100 % or the load below 0, and \
                   pods that meet such a node cannot be scheduled.",
        fix: "Points stay within 0 and 100.",
        reference: "scheduler-plugins §6.5"
    }
    load_of_capacity "loadOfCapacity" {
        upstream: "LoadVariationRiskBalancing and LowRiskOverCommitment take percentages of what a node has for percentages of what \
                   it gives to pods.",
        fix: "The load is a percentage of what the node has.",
        reference: "scheduler-plugins §6.9"
    }
    recent_pods_load "recentPodsLoad" {
        upstream: "LoadVariationRiskBalancing, LowRiskOverCommitment and Peaks do not count pods that came to a node since its load was \
                   measured, so that all pods of a burst go to the same nodes.",
        fix: "Pods that have not started, or have started less than a minute before the end of the measurement, count with what they \
              request on top of it.",
        reference: "scheduler-plugins §6.9"
    }
    load_sidecars "loadSidecars" {
        upstream: "To LoadVariationRiskBalancing and LowRiskOverCommitment, a sidecar is an init container that ends before the others begin; to \
                   TargetLoadPacking it is nothing. What a pod asks for as a whole does not count.",
        fix: "Both count as NodeResourcesFit counts them, also in what `recentPodsLoad` adds.",
        reference: "scheduler-plugins §0.5"
    }
    all_seccomp_profiles "allSeccompProfiles" {
        upstream: "SySched leaves out the seccomp profiles of init containers, and the profile that `baseProfileName` of another names.",
        fix: "They count as well.",
        reference: "scheduler-plugins §9"
    }
    node_metadata_fractions "nodeMetadataFractions" {
        upstream: "NodeMetadata drops the fractions of numbers, so 1.2 and 1.9 are the same.",
        fix: "Thousandths count.",
        reference: "scheduler-plugins §8"
    }
}
