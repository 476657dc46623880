//! Preemption: making room for a pod by evicting others, by rules that a plugin may replace one by one.
//!
//! [`preempt`] looks for nodes on which the pod would fit if others went, finds out on each which pods have to go, and picks
//! the node where that costs least. Who may go, who stays before whom, and what is cheap, are [`PreemptionRules`]. Without a
//! word of one's own they are kube-scheduler's. This plugin evicts pods that say so, whatever their priority is:
//!
//! ```
//! use supercargo_framework::preemption::{PreemptionRules, preempt};
//! use supercargo_framework::{
//!     Cycle, Extensions, NoArgs, NodeField, Plugin, PodField, PostFilter, PostFilterResult, Reads, Rehearsal, Rejections,
//!     Status, Writes,
//! };
//! use supercargo_model::kinds::PodDisruptionBudget;
//! use supercargo_model::{LabelLookup, Pod};
//!
//! struct Volunteers;
//!
//! impl Plugin for Volunteers {
//!     const NAME: &'static str = "Volunteers";
//!     type Args = NoArgs;
//!
//!     fn new(_: NoArgs) -> Self {
//!         Volunteers
//!     }
//!
//!     fn extensions(points: Extensions<Self>) -> Extensions<Self> {
//!         points.post_filter()
//!     }
//!
//!     fn reads(&self) -> Reads {
//!         Reads::nothing()
//!             .pod(&[PodField::Priority, PodField::PreemptionPolicy, PodField::Status])
//!             .node(&[NodeField::Name, NodeField::Pods])
//!             .kind::<PodDisruptionBudget>()
//!     }
//!
//!     fn writes(&self) -> Writes {
//!         Writes::nothing().evictions()
//!     }
//! }
//!
//! impl PreemptionRules for Volunteers {
//!     fn may_evict(&self, _: &Cycle<'_>, pod: &Pod) -> Result<bool, Status> {
//!         Ok(pod.labels.label("preemptible") == Some("true"))
//!     }
//!
//!     // It depends on nothing but the pod that goes, so what was found out for one pod holds for the next.
//!     fn findings_depend_on(&self, _: &Cycle<'_>) -> Option<Vec<u64>> {
//!         Some(Vec::new())
//!     }
//! }
//!
//! impl PostFilter for Volunteers {
//!     fn post_filter(
//!         &self,
//!         cycle: &Cycle<'_>,
//!         rejections: &dyn Rejections,
//!         rehearsal: &dyn Rehearsal,
//!     ) -> PostFilterResult {
//!         preempt(self, cycle, rejections, rehearsal)
//!     }
//!
//!     fn preemption(&self) -> Option<&dyn PreemptionRules> {
//!         Some(self)
//!     }
//! }
//! ```

mod budgets;
mod candidates;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_model::pod::PreemptionPolicy;
use supercargo_model::{NodeRef, Pod, Row};

use crate::cycle::Cycle;
use crate::diagnosis::{Rejections, unfit_message};
use crate::extender::NodeVictims;
use crate::points::{NodeRehearsal, Nomination, PostFilterResult, Rehearsal};
use crate::status::{Code, Status};

use budgets::Budgets;
pub use candidates::{Candidate, Cost};
use candidates::{Search, pick};

/// Of the nodes that come into question, how many percent kube-scheduler finds candidates among before it picks one.
pub const MIN_CANDIDATE_NODES_PERCENTAGE: i32 = 10;
/// How many candidates kube-scheduler finds at least, if there are as many.
pub const MIN_CANDIDATE_NODES_ABSOLUTE: i32 = 100;

/// By which rules a plugin preempts. Each method is kube-scheduler's rule unless the plugin has its own.
///
/// Rules look at the cycle, at pods and nodes, and at whatever else the plugin [reads](crate::Plugin::reads). What upstream's
/// rules read are the pod's priority, `preemptionPolicy` and status, a node's name and pods, and disruption budgets. Victims are
/// evicted only if the plugin declares that it [writes](crate::Plugin::writes) evictions.
///
/// What pods take from one another, such as a quota, belongs into the cycle: a [`PreFilter`](crate::PreFilter) of the
/// plugin puts it there, and its `remove_pod` and `add_pod` keep it true while pods go and come back.
/// [`PreemptionRules::may_evict`] and [`PreemptionRules::fits`] see it as it is by then.
pub trait PreemptionRules: Send + Sync {
    /// Whether the pod may preempt at all: success, or why not. As upstream, not with `preemptionPolicy: Never`, and not while
    /// it [waits for](PreemptionRules::waits_for) pods that are leaving its nominated node. [`may_preempt`] is that rule, for
    /// whoever has another condition.
    fn may_preempt(&self, cycle: &Cycle<'_>, rejections: &dyn Rejections) -> Status {
        may_preempt(self, cycle, rejections)
    }

    /// Whether the pod, which is nominated to the node that this pod is leaving, has to wait until it is gone. As upstream,
    /// if the scheduler evicted it and this pod [might have](PreemptionRules::may_evict).
    fn waits_for(&self, cycle: &Cycle<'_>, leaving: &Pod) -> bool {
        leaving.status.as_ref().is_some_and(|status| status.preempted_by_scheduler)
            && self.may_evict(cycle, leaving).is_ok_and(|may| may)
    }

    /// Whether a pod on a node that is tried out may be evicted for the pod of the cycle. The cycle is as if those before it of
    /// which that is so had gone. If it cannot be said, the node gets the error. As upstream, pods of lower priority.
    fn may_evict(&self, cycle: &Cycle<'_>, pod: &Pod) -> Result<bool, Status> {
        Ok(pod.priority() < cycle.pod.priority())
    }

    /// Whether [`PreemptionRules::may_evict`] depends on who went before: then it is asked about the least important pod of a
    /// node first. Otherwise in whatever order they are on the node.
    fn asks_in_order(&self) -> bool {
        false
    }

    /// Whether the pod would fit on the node as it is tried out, beyond what the filters say; they have said yes. `reprieved`
    /// is the pod that was just put back: a rejection makes it a victim. None if all who may go have gone: a rejection is the
    /// word on the node.
    fn fits(&self, node: &dyn NodeRehearsal, reprieved: Option<&Arc<Pod>>) -> Status {
        let _ = (node, reprieved);
        Status::success()
    }

    /// Asked when a pod that was put back was taken off again because the filters did not let it stay. A rejection is an error, and
    /// the word on the node.
    fn taken_off(&self, node: &dyn NodeRehearsal, pod: &Arc<Pod>) -> Status {
        let _ = (node, pod);
        Status::success()
    }

    /// Orders pods by importance, the most important first: they are put back in this order, and those that a disruption budget
    /// protects before the others. Of pods that are equal, the one that came to the node last is the more important one. As
    /// upstream, by priority, then by start; see [`by_importance`].
    fn importance(&self, cycle: &Cycle<'_>, a: &Pod, b: &Pod) -> Ordering {
        let _ = cycle;
        by_importance(a, b)
    }

    /// Orders candidates by what they cost, the cheapest first; of equal ones the smaller node name is taken. As upstream, see
    /// [`Candidate::cost`].
    fn compare(&self, cycle: &Cycle<'_>, a: &Candidate, b: &Candidate) -> Ordering {
        let now = cycle.context.now;
        a.cost(now).cmp(&b.cost(now))
    }

    /// At which of the nodes that come into question the search starts. As upstream, at a random one.
    fn first_node(&self, cycle: &Cycle<'_>, nodes: usize) -> usize {
        (cycle.context.seed % nodes.max(1) as u64) as usize
    }

    /// How many candidates are enough to pick one of them, provided that one violates no disruption budget, where so many nodes
    /// come into question. As upstream without arguments; see [`candidates_wanted`].
    fn candidates_wanted(&self, nodes: usize) -> usize {
        candidates_wanted(MIN_CANDIDATE_NODES_PERCENTAGE, MIN_CANDIDATE_NODES_ABSOLUTE, nodes)
    }

    /// The word on a node where nobody may go.
    fn no_victims(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let _ = (cycle, node);
        no_victims()
    }

    /// What everything that is told about the search begins with. As upstream's DefaultPreemption, `preemption: `.
    fn message_prefix(&self) -> &'static str {
        "preemption: "
    }

    /// The word on all nodes, if it is clear without looking at them that nobody may go anywhere.
    fn nobody_may_go(&self, cycle: &Cycle<'_>) -> Option<Status> {
        let _ = cycle;
        None
    }

    /// Whether a victim that a disruption budget protects violates that budget, where the filters had let it stay and only
    /// [`fits`](PreemptionRules::fits) did not.
    fn counts_violations_of_rules(&self, cycle: &Cycle<'_>) -> bool {
        let _ = cycle;
        true
    }

    /// What the victims on a node depend on, apart from the node, the pods on it, disruption budgets, the pod's priority, and
    /// whatever else the filters read of the pod: versions of kinds, numbers from the pod. What was found out for an earlier
    /// pod is used again where these are the same. None if that cannot be said, as with what depends on the time or on other
    /// nodes: then every pod tries every node anew, which is always right, only slower.
    fn findings_depend_on(&self, cycle: &Cycle<'_>) -> Option<Vec<u64>> {
        let _ = cycle;
        None
    }

    /// What the victims on this node depend on besides, where [`PreemptionRules::findings_depend_on`] says what they depend on
    /// everywhere: how much is left of the quotas of those that are on the node.
    fn findings_on_node_depend_on(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Vec<u64> {
        let _ = (cycle, node);
        Vec::new()
    }
}

/// Looks for a node where the pod would fit if others went: what [`PostFilter::post_filter`](crate::PostFilter::post_filter)
/// of a plugin that preempts returns.
pub fn preempt<R: PreemptionRules + ?Sized>(
    rules: &R,
    cycle: &Cycle<'_>,
    rejections: &dyn Rejections,
    rehearsal: &dyn Rehearsal,
) -> PostFilterResult {
    prefixed(rules, find_best(rules, cycle, rejections, rehearsal))
}

/// The victims on each of the nodes that [`preempt`] picks from, for extenders to agree to.
pub fn candidates<R: PreemptionRules + ?Sized>(
    rules: &R,
    cycle: &Cycle<'_>,
    rejections: &dyn Rejections,
    rehearsal: &dyn Rehearsal,
) -> BTreeMap<Arc<str>, NodeVictims> {
    if !rules.may_preempt(cycle, rejections).is_success() {
        return BTreeMap::new();
    }
    let potential = rejections.rows(cycle.cluster(), Code::Unschedulable);
    let (candidates, _) = find_candidates(rules, cycle, &potential, rehearsal);
    let of_node = |candidate: &Arc<Candidate>| {
        let pods = candidate.victims().to_vec();
        let victims = NodeVictims { pods, budget_violations: candidate.budget_violations() as i64 };
        (cycle.cluster().node(candidate.row()).name().clone(), victims)
    };
    candidates.iter().map(of_node).collect()
}

/// Picks one of the candidates that extenders have left.
pub fn choose<R: PreemptionRules + ?Sized>(
    rules: &R,
    cycle: &Cycle<'_>,
    candidates: BTreeMap<Arc<str>, NodeVictims>,
) -> PostFilterResult {
    let known = candidates.into_iter().filter_map(|(node, victims)| {
        let row = cycle.cluster().row_of(&node)?;
        let violations = usize::try_from(victims.budget_violations).unwrap_or(0);
        Some(Arc::new(Candidate::new(row, victims.pods, violations)))
    });
    match pick(rules, cycle, known.collect()) {
        Some(best) => nominate(cycle, &best),
        None => prefixed(rules, without_result(Status::unschedulable("no candidate node for preemption"))),
    }
}

/// Upstream's rule whether a pod may preempt at all.
pub fn may_preempt<R: PreemptionRules + ?Sized>(
    rules: &R,
    cycle: &Cycle<'_>,
    rejections: &dyn Rejections,
) -> Status {
    let pod = cycle.pod;
    if pod.spec.preemption_policy == PreemptionPolicy::Never {
        return Status::unschedulable("not eligible due to preemptionPolicy=Never.");
    }
    let Some(row) = pod.nominated_node_name().and_then(|name| cycle.cluster().row_of(name)) else {
        return Status::success();
    };
    // It has preempted before. If its node came to nothing it may do so again, otherwise its victims must go first.
    let is_awaited = |other: &Arc<Pod>| other.is_terminating() && rules.waits_for(cycle, other);
    let unresolvable = rejections.status(row).code() == Code::UnschedulableAndUnresolvable;
    if !unresolvable && cycle.cluster().node(row).pods().iter().any(is_awaited) {
        return Status::unschedulable("not eligible due to a terminating pod on the nominated node.");
    }
    Status::success()
}

/// Upstream's order of importance: the higher priority, then the earlier start, first.
///
/// A pod that has not started counts as starting now, so of two such pods upstream takes the one it looks at first to be
/// the earlier; in the way it sorts, that is the one that came to the node last. What upstream leaves to chance, equal
/// starts, goes by name.
pub fn by_importance(a: &Pod, b: &Pod) -> Ordering {
    let by_start = || match (a.started_at, b.started_at) {
        (Some(a_start), Some(b_start)) => a_start.cmp(&b_start).then_with(|| a.compare_keys(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    b.priority().cmp(&a.priority()).then_with(by_start)
}

/// How many candidates are enough: a share of the nodes that come into question, in percent, or a number, whichever is more.
pub fn candidates_wanted(percentage: i32, absolute: i32, nodes: usize) -> usize {
    let share = (nodes as i64).saturating_mul(i64::from(percentage)) / 100;
    usize::try_from(share.max(i64::from(absolute))).unwrap_or(0).min(nodes)
}

/// Upstream's word on a node where nobody may go.
pub fn no_victims() -> Status {
    Status::unresolvable("No preemption victims found for incoming pod")
}

fn find_best<R: PreemptionRules + ?Sized>(
    rules: &R,
    cycle: &Cycle<'_>,
    rejections: &dyn Rejections,
    rehearsal: &dyn Rehearsal,
) -> PostFilterResult {
    let may_preempt = rules.may_preempt(cycle, rejections);
    if !may_preempt.is_success() {
        return without_result(may_preempt);
    }
    let cluster = cycle.cluster();
    if cluster.node_count() == 0 {
        return without_result(Status::error("no nodes available"));
    }
    if let Some(status) = rules.nobody_may_go(cycle) {
        let count = rejections.count(cluster, Code::Unschedulable);
        return fruitless(cluster.node_count(), [(&status, count)].into_iter(), count);
    }
    let potential = rejections.rows(cluster, Code::Unschedulable);
    let (candidates, statuses) = find_candidates(rules, cycle, &potential, rehearsal);
    let Some(best) = pick(rules, cycle, candidates) else {
        let errors: Vec<String> = (statuses.iter())
            .filter(|(_, status)| status.code() == Code::Error)
            .map(|(_, status)| status.message())
            .collect();
        if !errors.is_empty() {
            return without_result(Status::error(join_errors(&errors)));
        }
        let counts = statuses.iter().map(|(_, status)| (status, 1));
        return fruitless(cluster.node_count(), counts, statuses.len());
    };
    nominate(cycle, &best)
}

/// Tries nodes, from the first one on, until enough are found that a choice among them is good enough.
fn find_candidates<R: PreemptionRules + ?Sized>(
    rules: &R,
    cycle: &Cycle<'_>,
    potential: &[Row],
    rehearsal: &dyn Rehearsal,
) -> (Vec<Arc<Candidate>>, Vec<(Row, Status)>) {
    let (mut candidates, mut statuses) = (Vec::new(), Vec::new());
    if potential.is_empty() {
        return (candidates, statuses);
    }
    let budgets = Budgets::read(cycle.cluster());
    let search = Search::new(rules, cycle, &budgets, rehearsal);
    let wanted = rules.candidates_wanted(potential.len());
    let first = rules.first_node(cycle, potential.len()) % potential.len();
    let mut is_one_harmless = false;
    for index in 0..potential.len() {
        let row = potential[(first + index) % potential.len()];
        match search.try_node(row) {
            Err(status) => statuses.push((row, status)),
            Ok(candidate) => {
                is_one_harmless |= candidate.budget_violations() == 0;
                candidates.push(candidate);
                if is_one_harmless && candidates.len() >= wanted {
                    break;
                }
            }
        }
    }
    (candidates, statuses)
}

fn without_result(status: Status) -> PostFilterResult {
    PostFilterResult { status, ..PostFilterResult::default() }
}

/// Puts the prefix that the rules give before the message.
fn prefixed<R: PreemptionRules + ?Sized>(rules: &R, mut result: PostFilterResult) -> PostFilterResult {
    if !result.status.reasons().is_empty() {
        let message = format!("{}{}", rules.message_prefix(), result.status.message());
        result.status = Status::new(result.status.code(), [message.into()]);
    }
    result
}

fn nominate(cycle: &Cycle<'_>, candidate: &Candidate) -> PostFilterResult {
    PostFilterResult {
        status: Status::success(),
        nomination: Nomination::Node(cycle.cluster().node(candidate.row()).name().clone()),
        victims: candidate.victims().to_vec(),
    }
}

/// No node can be made to fit: why not those that were tried, and that the others were not worth trying.
fn fruitless<'a>(
    node_count: usize,
    tried: impl Iterator<Item = (&'a Status, usize)>,
    tried_count: usize,
) -> PostFilterResult {
    let mut counts: Vec<(&Status, usize)> = tried.collect();
    let others = Status::unresolvable("Preemption is not helpful for scheduling");
    counts.push((&others, node_count.saturating_sub(tried_count)));
    PostFilterResult {
        status: Status::unschedulable(unfit_message(node_count, None, counts.into_iter(), "")),
        nomination: Nomination::Clear,
        victims: Vec::new(),
    }
}

/// As the API machinery writes several errors: one that repeats is said once.
fn join_errors(errors: &[String]) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for error in errors {
        if !unique.contains(&error.as_str()) {
            unique.push(error);
        }
    }
    match unique[..] {
        [single] => single.to_owned(),
        _ => format!("[{}]", unique.join(", ")),
    }
}
