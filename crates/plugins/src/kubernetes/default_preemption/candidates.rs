//! Nodes on which a pod would fit if others went, and which of them to take.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use supercargo_framework::{Cycle, NodeRehearsal, Rehearsal, Status};
use supercargo_model::{Pod, Row};

use super::budgets::Budgets;
use super::is_victim_of;

/// A node on which the pod would fit.
pub(super) struct Candidate {
    pub(super) row: Row,
    /// The pods that have to go, most important first.
    pub(super) victims: Vec<Arc<Pod>>,
    /// How many of them a disruption budget protects.
    pub(super) violations: usize,
}

/// Finds the pods that have to go from a node; as few and as unimportant ones as possible.
pub(super) fn try_node(
    cycle: &Cycle<'_>,
    row: Row,
    budgets: &Budgets<'_>,
    rehearsal: &dyn Rehearsal,
) -> Result<Candidate, Status> {
    let node = cycle.cluster().node(row);
    let mut potential: Vec<Arc<Pod>> =
        node.pods().iter().filter(|pod| is_victim_of(pod, cycle.pod)).cloned().collect();
    if potential.is_empty() {
        return Err(Status::unresolvable("No preemption victims found for incoming pod"));
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
    Ok(Candidate { row, victims, violations })
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

/// As the keys compare, without making them where the namespace is the same.
fn by_key(a: &Pod, b: &Pod) -> Ordering {
    if a.namespace == b.namespace { a.name.cmp(&b.name) } else { a.key().cmp(&b.key()) }
}

/// The candidate that costs least.
pub(super) fn pick(cycle: &Cycle<'_>, candidates: Vec<Candidate>) -> Option<Candidate> {
    let now = cycle.context.now;
    let cost = |candidate: &Candidate| {
        let priorities = || candidate.victims.iter().map(|pod| i64::from(pod.priority()));
        let highest = priorities().max().unwrap_or(i64::MIN);
        // Shifted so that more pods of negative priority do not cost less than fewer.
        let sum: i64 = priorities().map(|priority| priority + i64::from(i32::MAX) + 1).sum();
        let most_important = candidate.victims.iter().filter(|pod| i64::from(pod.priority()) == highest);
        let first_start = most_important.map(|pod| pod.started_at.unwrap_or(now)).min();
        let first = candidate.victims.first().map_or(0, |pod| pod.priority());
        (candidate.violations, first, sum, candidate.victims.len(), Reverse(first_start))
    };
    let name = |candidate: &Candidate| cycle.cluster().node(candidate.row).name().clone();
    candidates.into_iter().min_by(|a, b| cost(a).cmp(&cost(b)).then_with(|| name(a).cmp(&name(b))))
}
