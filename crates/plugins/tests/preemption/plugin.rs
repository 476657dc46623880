//! A plugin that preempts by the rules that its arguments name.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use supercargo_framework::preemption::{self, Candidate, PreemptionRules, preempt};
use supercargo_framework::{
    Args, Cycle, Extensions, NodeField, NodeRehearsal, Plugin, PodField, PostFilter, PostFilterResult,
    PreFilter, PreFilterResult, Reads, Rehearsal, Rejections, Status,
};
use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::{LabelLookup, NodeRef, Pod};

/// By which rules a [`Preempting`] preempts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Script {
    /// Not a word of its own.
    #[default]
    Upstream,
    /// Only pods that are labelled `preemptible=true` go, whatever their priority is.
    Volunteers,
    /// As upstream's, but a pod stays whose annotation says that it tolerates pods of such a priority.
    Tolerating,
    /// Pods of smaller names are more important, and the node with the most victims is the cheapest.
    Contrary,
    /// A namespace has a share of all cores that it may claim back from others, and a limit.
    Quota,
    /// Nobody goes.
    Nobody,
    /// It cannot be said who may go.
    Broken,
}

impl Script {
    /// Those by which anybody goes.
    pub(crate) const ALL: [Script; 5] =
        [Script::Upstream, Script::Volunteers, Script::Tolerating, Script::Contrary, Script::Quota];
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PreemptingArgs {
    rules: Script,
    /// The share and the limit of each namespace, in cores.
    quotas: Vec<(i64, i64)>,
}

impl Args for PreemptingArgs {}

/// The plugin; there are two of them, A and B.
pub(crate) struct Preempting<const NAME: char>(PreemptingArgs);

/// How many cores each namespace takes.
#[derive(Clone, Debug, Default)]
struct Used(BTreeMap<Arc<str>, i64>);

impl<const LETTER: char> Plugin for Preempting<LETTER> {
    const NAME: &'static str = match LETTER {
        'A' => "PreemptingA",
        'B' => "PreemptingB",
        _ => panic!("no such plugin"),
    };
    type Args = PreemptingArgs;

    fn new(args: PreemptingArgs) -> Self {
        Preempting(args)
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().post_filter()
    }

    fn reads(&self) -> Reads {
        if self.0.rules == Script::Quota {
            return Reads::everything().kind::<PodDisruptionBudget>();
        }
        Reads::nothing()
            .pod(&[PodField::Priority, PodField::PreemptionPolicy, PodField::Status, PodField::Labels])
            .node(&[NodeField::Name, NodeField::Pods])
            .kind::<PodDisruptionBudget>()
    }
}

impl<const LETTER: char> PreFilter for Preempting<LETTER> {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let mut used = Used::default();
        for pod in cycle.cluster().nodes().flat_map(|node| node.pods()) {
            used.count(pod, 1);
        }
        let over = self.is_over(&used, cycle.pod);
        cycle.put(used);
        match over {
            true => PreFilterResult::Reject(Status::unschedulable("over quota")),
            false => PreFilterResult::AllNodes,
        }
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        cycle.get_mut::<Used>().expect("PreFilter was here").count(pod, 1);
        Status::success()
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        cycle.get_mut::<Used>().expect("PreFilter was here").count(pod, -1);
        Status::success()
    }
}

impl<const LETTER: char> PostFilter for Preempting<LETTER> {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        preempt(self, cycle, rejections, rehearsal)
    }

    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        Some(self)
    }
}

impl<const LETTER: char> PreemptionRules for Preempting<LETTER> {
    fn may_preempt(&self, cycle: &Cycle<'_>, rejections: &dyn Rejections) -> Status {
        if cycle.pod.labels.label("patient") == Some("true") {
            return Status::unschedulable("not eligible: it is patient");
        }
        preemption::may_preempt(self, cycle, rejections)
    }

    fn may_evict(&self, cycle: &Cycle<'_>, pod: &Pod) -> Result<bool, Status> {
        let is_lower = pod.priority() < cycle.pod.priority();
        Ok(match self.0.rules {
            Script::Upstream | Script::Contrary => is_lower,
            Script::Volunteers => pod.labels.label("preemptible") == Some("true"),
            Script::Tolerating => {
                let tolerates = pod.annotations.label("tolerates").and_then(|text| text.parse::<i32>().ok());
                is_lower && tolerates.is_none_or(|tolerates| tolerates < cycle.pod.priority())
            }
            Script::Quota => {
                let used = cycle.get::<Used>().expect("PreFilter was here");
                let (share, _) = self.quota(&cycle.pod.namespace);
                if used.of(&cycle.pod.namespace) + cores(cycle.pod) > share {
                    is_lower && pod.namespace == cycle.pod.namespace
                } else {
                    pod.namespace != cycle.pod.namespace
                        && used.of(&pod.namespace) > self.quota(&pod.namespace).0
                }
            }
            Script::Nobody => false,
            Script::Broken => return Err(Status::error(format!("{} cannot be judged", pod.name))),
        })
    }

    fn asks_in_order(&self) -> bool {
        self.0.rules == Script::Quota
    }

    fn fits(&self, node: &dyn NodeRehearsal, _: Option<&Arc<Pod>>) -> Status {
        let cycle = node.cycle();
        match cycle.get::<Used>() {
            Some(used) if self.is_over(used, cycle.pod) => Status::unschedulable("over quota"),
            _ => Status::success(),
        }
    }

    fn importance(&self, _: &Cycle<'_>, a: &Pod, b: &Pod) -> Ordering {
        match self.0.rules {
            Script::Contrary => a.name.cmp(&b.name),
            _ => preemption::by_importance(a, b),
        }
    }

    fn compare(&self, cycle: &Cycle<'_>, a: &Candidate, b: &Candidate) -> Ordering {
        let now = cycle.context.now;
        match self.0.rules {
            Script::Contrary => b.victims().len().cmp(&a.victims().len()),
            _ => a.cost(now).cmp(&b.cost(now)),
        }
    }

    fn no_victims(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match self.0.rules {
            Script::Nobody => Status::unresolvable(format!("nobody on {} may go", node.name())),
            _ => preemption::no_victims(),
        }
    }

    fn findings_depend_on(&self, _: &Cycle<'_>) -> Option<Vec<u64>> {
        (self.0.rules != Script::Quota).then(Vec::new)
    }
}

impl<const LETTER: char> Preempting<LETTER> {
    /// Whether the pod would be too much for its namespace, or for all of them.
    fn is_over(&self, used: &Used, pod: &Pod) -> bool {
        let (_, limit) = self.quota(&pod.namespace);
        let shares: i64 = self.0.quotas.iter().map(|(share, _)| share).sum();
        let all: i64 = used.0.values().sum();
        used.of(&pod.namespace) + cores(pod) > limit || all + cores(pod) > shares
    }

    fn quota(&self, namespace: &str) -> (i64, i64) {
        let number = namespace.strip_prefix("ns").and_then(|number| number.parse::<usize>().ok());
        number.and_then(|number| self.0.quotas.get(number)).copied().expect("every namespace has a quota")
    }
}

impl Used {
    fn of(&self, namespace: &str) -> i64 {
        self.0.get(namespace).copied().unwrap_or(0)
    }

    fn count(&mut self, pod: &Pod, sign: i64) {
        *self.0.entry(pod.namespace.clone()).or_default() += sign * cores(pod);
    }
}

fn cores(pod: &Pod) -> i64 {
    pod.requests().resources.milli_cpu / 1000
}
