//! DefaultPreemption: makes room for a pod by evicting pods of lower priority.

mod budgets;
mod candidates;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Actions, Args, ClusterEvent, Code, Context, Cycle, Enqueue, Extensions, FieldProblems, Hint, NodeField,
    NodeVictims, Nomination, Plugin, PodField, PostFilter, PostFilterResult, PreEnqueue, Reads, Rehearsal,
    Rejections, Status, Writes, unfit_message,
};
use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::pod::PreemptionPolicy;
use supercargo_model::{Pod, Row};

use budgets::Budgets;
use candidates::Candidate;

/// # What
/// When a pod fits nowhere, looks for a node where it would fit if pods of lower priority went, picks the node where
/// that costs least, and nominates the pod to it.
///
/// A node costs less the fewer disruption budgets are violated; then the lower the highest priority of its victims;
/// then the smaller the sum of their priorities; then the fewer they are; then the later the first of the most
/// important ones was started.
///
/// # Why
/// Important pods should not wait for unimportant ones to finish.
///
/// # Arguments
/// `minCandidateNodesPercentage` (10) and `minCandidateNodesAbsolute` (100): how many nodes to find before picking
/// one, as a share of those that come into question and as a number; the larger counts.
///
/// # Example
/// ```yaml
/// spec:
///   priorityClassName: critical
///   preemptionPolicy: Never   # wait rather than evict anybody
/// ```
///
/// # Difference from upstream
/// Ties that upstream leaves to chance go to the smaller name: among nodes that cost the same, and among victims that
/// are equally important.
#[derive(Debug)]
pub struct DefaultPreemption {
    min_candidate_nodes_percentage: i32,
    min_candidate_nodes_absolute: i32,
}

/// Arguments of [`DefaultPreemption`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DefaultPreemptionArgs {
    /// How many nodes to find, in percent of those that come into question.
    pub min_candidate_nodes_percentage: Option<i32>,
    /// How many nodes to find at least.
    pub min_candidate_nodes_absolute: Option<i32>,
}

impl Args for DefaultPreemptionArgs {
    fn complete(&mut self) {
        self.min_candidate_nodes_percentage.get_or_insert(10);
        self.min_candidate_nodes_absolute.get_or_insert(100);
    }

    fn validate(&self, problems: &mut FieldProblems) {
        let (percentage, absolute) = (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute);
        if let Some(percentage) = percentage.filter(|percentage| !(0..=100).contains(percentage)) {
            problems.invalid("minCandidateNodesPercentage", percentage, "not in valid range [0, 100]");
        }
        if let Some(absolute) = absolute.filter(|absolute| *absolute < 0) {
            problems.invalid("minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)");
        }
        if percentage == Some(0) && absolute == Some(0) {
            for (path, other) in [
                ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"),
                ("minCandidateNodesAbsolute", "minCandidateNodesPercentage"),
            ] {
                problems.invalid(path, 0, format!("cannot be zero at the same time as {other}"));
            }
        }
    }
}

impl Plugin for DefaultPreemption {
    const NAME: &'static str = "DefaultPreemption";
    type Args = DefaultPreemptionArgs;

    fn new(args: DefaultPreemptionArgs) -> Self {
        DefaultPreemption {
            min_candidate_nodes_percentage: args.min_candidate_nodes_percentage.expect("was filled in"),
            min_candidate_nodes_absolute: args.min_candidate_nodes_absolute.expect("was filled in"),
        }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue().post_filter().enqueue()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().evictions()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Priority, PodField::PreemptionPolicy, PodField::Status])
            .node(&[NodeField::Name, NodeField::Pods])
            .kind::<PodDisruptionBudget>()
    }

    fn subject(&self) -> &'static str {
        "evictions"
    }
}

impl PreEnqueue for DefaultPreemption {
    /// A pod whose victims are being evicted has to wait; but that is nothing to decide here: whoever evicts holds it back.
    fn pre_enqueue(&self, _: &Context<'_>, _: &Pod) -> Status {
        Status::success()
    }
}

impl PostFilter for DefaultPreemption {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        prefixed(self.preempt(cycle, rejections, rehearsal))
    }

    fn candidates(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> BTreeMap<Arc<str>, NodeVictims> {
        if may_preempt(cycle, rejections).is_err() {
            return BTreeMap::new();
        }
        let potential = rejections.rows(cycle.cluster(), Code::Unschedulable);
        let (candidates, _) = self.find_candidates(cycle, &potential, rehearsal);
        let of_node = |candidate: &Arc<Candidate>| {
            let victims = NodeVictims {
                pods: candidate.victims.clone(),
                budget_violations: candidate.violations as i64,
            };
            (cycle.cluster().node(candidate.row).name().clone(), victims)
        };
        candidates.iter().map(of_node).collect()
    }

    fn choose(&self, cycle: &Cycle<'_>, candidates: BTreeMap<Arc<str>, NodeVictims>) -> PostFilterResult {
        let known = candidates.into_iter().filter_map(|(node, victims)| {
            let row = cycle.cluster().row_of(&node)?;
            let violations = usize::try_from(victims.budget_violations).unwrap_or(0);
            Some(Arc::new(Candidate::new(row, victims.pods, violations)))
        });
        match candidates::pick(cycle, known.collect()) {
            Some(best) => nominate(cycle, &best),
            None => prefixed(PostFilterResult {
                status: Status::unschedulable("no candidate node for preemption"),
                ..PostFilterResult::default()
            }),
        }
    }
}

/// Says who says it.
fn prefixed(mut result: PostFilterResult) -> PostFilterResult {
    if !result.status.reasons().is_empty() {
        let message = format!("preemption: {}", result.status.message());
        result.status = Status::new(result.status.code(), [message.into()]);
    }
    result
}

fn nominate(cycle: &Cycle<'_>, candidate: &Candidate) -> PostFilterResult {
    PostFilterResult {
        status: Status::success(),
        nomination: Nomination::Node(cycle.cluster().node(candidate.row).name().clone()),
        victims: candidate.victims.clone(),
    }
}

impl DefaultPreemption {
    fn preempt(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        let without_result = |status| PostFilterResult { status, ..PostFilterResult::default() };
        if let Err(reason) = may_preempt(cycle, rejections) {
            return without_result(Status::unschedulable(reason));
        }
        let cluster = cycle.cluster();
        if cluster.node_count() == 0 {
            return without_result(Status::error("no nodes available"));
        }
        if cluster.lowest_priority().is_none_or(|lowest| lowest >= cycle.pod.priority()) {
            let count = rejections.count(cluster, Code::Unschedulable);
            return fruitless(cluster.node_count(), [(&candidates::no_victims(), count)].into_iter(), count);
        }
        let potential = rejections.rows(cluster, Code::Unschedulable);
        let (candidates, statuses) = self.find_candidates(cycle, &potential, rehearsal);
        let Some(best) = candidates::pick(cycle, candidates) else {
            let errors: Vec<String> = (statuses.iter())
                .filter(|(_, status)| status.code() == Code::Error)
                .map(|(_, status)| status.message())
                .collect();
            if !errors.is_empty() {
                return without_result(Status::error(join_errors(&errors)));
            }
            let looked_at = statuses.len();
            let counts = statuses.iter().map(|(_, status)| (status, 1));
            return fruitless(cluster.node_count(), counts, looked_at);
        };
        nominate(cycle, &best)
    }

    /// Tries nodes, from a random one on, until enough are found that a choice among them is good enough.
    fn find_candidates(
        &self,
        cycle: &Cycle<'_>,
        potential: &[Row],
        rehearsal: &dyn Rehearsal,
    ) -> (Vec<Arc<Candidate>>, Vec<(Row, Status)>) {
        let (mut candidates, mut statuses) = (Vec::new(), Vec::new());
        if potential.is_empty() {
            return (candidates, statuses);
        }
        let budgets = Budgets::read(cycle.cluster());
        let wanted = self.candidates_wanted(potential.len());
        let offset = (cycle.context.seed % potential.len() as u64) as usize;
        for index in 0..potential.len() {
            let row = potential[(offset + index) % potential.len()];
            match candidates::try_node(cycle, row, &budgets, rehearsal) {
                Err(status) => statuses.push((row, status)),
                Ok(candidate) => {
                    candidates.push(candidate);
                    let harmless = candidates.iter().any(|candidate| candidate.violations == 0);
                    if harmless && candidates.len() >= wanted {
                        break;
                    }
                }
            }
        }
        (candidates, statuses)
    }

    fn candidates_wanted(&self, potential: usize) -> usize {
        let share = (potential as i64).saturating_mul(i64::from(self.min_candidate_nodes_percentage)) / 100;
        let wanted = share.max(i64::from(self.min_candidate_nodes_absolute));
        usize::try_from(wanted).unwrap_or(0).min(potential)
    }
}

impl Enqueue for DefaultPreemption {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::DELETE)]
    }

    /// The plugins that rejected the pod know better what helps it.
    fn hint(&self, _: &Context<'_>, _: &Pod, _: &supercargo_framework::Change<'_>) -> Hint {
        Hint::Skip
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

fn may_preempt(cycle: &Cycle<'_>, rejections: &dyn Rejections) -> Result<(), &'static str> {
    let pod = cycle.pod;
    if pod.spec.preemption_policy == PreemptionPolicy::Never {
        return Err("not eligible due to preemptionPolicy=Never.");
    }
    let Some(row) = pod.nominated_node_name().and_then(|name| cycle.cluster().row_of(name)) else {
        return Ok(());
    };
    // It has preempted before. If its node came to nothing it may do so again, otherwise its victims must go first.
    let victim_is_leaving = |other: &Arc<Pod>| {
        is_victim_of(other, pod)
            && other.is_terminating()
            && other.status.as_ref().is_some_and(|status| status.preempted_by_scheduler)
    };
    let unresolvable = rejections.status(row).code() == Code::UnschedulableAndUnresolvable;
    if !unresolvable && cycle.cluster().node(row).pods().iter().any(victim_is_leaving) {
        return Err("not eligible due to a terminating pod on the nominated node.");
    }
    Ok(())
}

fn is_victim_of(other: &Pod, preemptor: &Pod) -> bool {
    other.priority() < preemptor.priority()
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

#[cfg(test)]
mod tests;
