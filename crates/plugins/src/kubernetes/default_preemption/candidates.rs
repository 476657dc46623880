//! Nodes on which a pod would fit if others went, and which of them to take.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use supercargo_framework::{Cycle, NodeRehearsal, Rehearsal, Status};
use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::{Kind, Pod, Row, Timestamp};

use super::budgets::Budgets;
use super::is_victim_of;

/// A node on which the pod would fit.
pub(super) struct Candidate {
    pub(super) row: Row,
    /// The pods that have to go, most important first.
    pub(super) victims: Vec<Arc<Pod>>,
    /// How many of them a disruption budget protects.
    pub(super) violations: usize,
    /// The sum of their priorities, shifted so that more pods of negative priority do not cost less than fewer.
    priority_sum: i64,
    /// When the first of the most important ones started, if one has.
    first_start: Option<Timestamp>,
    /// Whether one of the most important ones has not started: it counts as starting now.
    has_unstarted: bool,
}

/// What was found out about a node, and what that depends on apart from the node.
struct Finding {
    priority: i32,
    budgets_version: u64,
    result: Result<Arc<Candidate>, Status>,
}

/// The node has nobody who could go.
pub(super) fn no_victims() -> Status {
    Status::unresolvable("No preemption victims found for incoming pod")
}

/// The same as [`find_victims`], unless the answer is known from an earlier pod.
pub(super) fn try_node(
    cycle: &Cycle<'_>,
    row: Row,
    budgets: &Budgets<'_>,
    rehearsal: &dyn Rehearsal,
) -> Result<Arc<Candidate>, Status> {
    let cluster = cycle.cluster();
    // With pods that are nominated to the node, it depends on which pod asks.
    if !cluster.nominated_to(cluster.node(row).name()).is_empty() {
        return find_victims(cycle, row, budgets, rehearsal).map(Arc::new);
    }
    let (priority, budgets_version) =
        (cycle.pod.priority(), cluster.objects().version(PodDisruptionBudget::ID));
    if let Some(known) = rehearsal.recall(row)
        && let Some(finding) = known.downcast_ref::<Finding>()
        && (finding.priority, finding.budgets_version) == (priority, budgets_version)
    {
        return finding.result.clone();
    }
    let result = find_victims(cycle, row, budgets, rehearsal).map(Arc::new);
    rehearsal.remember(row, Arc::new(Finding { priority, budgets_version, result: result.clone() }));
    result
}

/// Finds the pods that have to go from a node; as few and as unimportant ones as possible.
fn find_victims(
    cycle: &Cycle<'_>,
    row: Row,
    budgets: &Budgets<'_>,
    rehearsal: &dyn Rehearsal,
) -> Result<Candidate, Status> {
    let node = cycle.cluster().node(row);
    let mut potential: Vec<Arc<Pod>> =
        node.pods().iter().filter(|pod| is_victim_of(pod, cycle.pod)).cloned().collect();
    if potential.is_empty() {
        return Err(no_victims());
    }
    let mut stage = rehearsal.node(row);
    for pod in &potential {
        succeed(&stage.remove_pod(pod))?;
    }
    let without_any = stage.filter();
    if !without_any.is_success() {
        return Err(without_any);
    }
    sort_by_importance(&mut potential);
    let (violating, others) = budgets.split(&potential);
    // Those that a budget protects get the first chance to stay.
    let mut victims = reprieve(&violating, &mut *stage)?;
    let violations = victims.len();
    victims.extend(reprieve(&others, &mut *stage)?);
    sort_by_importance(&mut victims);
    if victims.is_empty() {
        let text = format!("expected at least one victim pod on node {:?}", &**node.name());
        return Err(Status::error(text));
    }
    Ok(Candidate::new(row, victims, violations))
}

/// Puts pods back one by one; those with which the pod does not fit are returned.
fn reprieve(pods: &[Arc<Pod>], stage: &mut dyn NodeRehearsal) -> Result<Vec<Arc<Pod>>, Status> {
    let mut victims = Vec::new();
    for pod in pods {
        succeed(&stage.add_pod(pod))?;
        if !stage.filter().is_success() {
            succeed(&stage.remove_pod(pod))?;
            victims.push(pod.clone());
        }
    }
    Ok(victims)
}

fn succeed(status: &Status) -> Result<(), Status> {
    if status.is_success() { Ok(()) } else { Err(Status::error(status.message())) }
}

/// The more important pod first: higher priority, then earlier start.
///
/// A pod that has not started counts as starting now, so of two such pods upstream takes the one it looks at first to be
/// the earlier; in the way it sorts, that is the one that came to the node last. What upstream leaves to chance, equal
/// starts, goes by name.
fn sort_by_importance(pods: &mut [Arc<Pod>]) {
    pods.reverse();
    pods.sort_by(|a, b| {
        let by_start = match (a.started_at, b.started_at) {
            (Some(a_start), Some(b_start)) => a_start.cmp(&b_start).then_with(|| by_key(a, b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        b.priority().cmp(&a.priority()).then(by_start)
    });
}

impl Candidate {
    pub(super) fn new(row: Row, victims: Vec<Arc<Pod>>, violations: usize) -> Self {
        let priorities = || victims.iter().map(|pod| i64::from(pod.priority()));
        let highest = priorities().max().unwrap_or(i64::MIN);
        let most_important = || victims.iter().filter(|pod| i64::from(pod.priority()) == highest);
        let first_start = most_important().filter_map(|pod| pod.started_at).min();
        let has_unstarted = most_important().any(|pod| pod.started_at.is_none());
        let priority_sum = priorities().map(|priority| priority + i64::from(i32::MAX) + 1).sum();
        Candidate { row, victims, violations, priority_sum, first_start, has_unstarted }
    }
}

/// As the keys compare, without making them where the namespace is the same.
fn by_key(a: &Pod, b: &Pod) -> Ordering {
    if a.namespace == b.namespace { a.name.cmp(&b.name) } else { a.key().cmp(&b.key()) }
}

/// The candidate that costs least.
pub(super) fn pick(cycle: &Cycle<'_>, candidates: Vec<Arc<Candidate>>) -> Option<Arc<Candidate>> {
    let now = cycle.context.now;
    let cost = |candidate: &Candidate| {
        let first = candidate.victims.first().map_or(0, |pod| pod.priority());
        let unstarted = candidate.has_unstarted.then_some(now);
        let start = candidate.first_start.into_iter().chain(unstarted).min();
        (candidate.violations, first, candidate.priority_sum, candidate.victims.len(), Reverse(start))
    };
    let name = |candidate: &Candidate| cycle.cluster().node(candidate.row).name();
    candidates.into_iter().min_by(|a, b| cost(a).cmp(&cost(b)).then_with(|| name(a).cmp(name(b))))
}
