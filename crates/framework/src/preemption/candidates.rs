//! Nodes on which a pod would fit if others went, and which of them to take.

use std::cmp::Reverse;
use std::sync::Arc;

use supercargo_model::kinds::PodDisruptionBudget;
use supercargo_model::{Kind, Pod, Row, Timestamp};

use super::PreemptionRules;
use super::budgets::Budgets;
use crate::cycle::Cycle;
use crate::points::{NodeRehearsal, Rehearsal};
use crate::status::Status;

/// A node on which the pod would fit if some pods went.
#[derive(Debug)]
pub struct Candidate {
    row: Row,
    victims: Vec<Arc<Pod>>,
    violations: usize,
    /// The sum of their priorities, shifted so that more pods of negative priority do not cost less than fewer.
    priority_sum: i64,
    /// When the first of the most important ones started, if one has.
    first_start: Option<Timestamp>,
    /// Whether one of the most important ones has not started: it counts as starting now.
    has_unstarted: bool,
}

/// What a [`Candidate`] costs by upstream's rules. It is less the fewer disruption budgets are violated; then the lower the
/// priority of the first victim; then the smaller the sum of their priorities; then the fewer they are; then the later the
/// first of those with the highest priority was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    violations: usize,
    first_priority: i32,
    priority_sum: i64,
    victim_count: usize,
    start: Reverse<Option<Timestamp>>,
}

/// A search for candidates.
pub(super) struct Search<'a, 'c, R: ?Sized> {
    rules: &'a R,
    cycle: &'a Cycle<'c>,
    budgets: &'a Budgets<'a>,
    rehearsal: &'a dyn Rehearsal,
    /// None if what is found out holds for this pod only.
    basis: Option<Basis>,
}

/// A node without the pods that may go.
struct Emptied<'a> {
    gone: Vec<Arc<Pod>>,
    stage: Box<dyn NodeRehearsal + 'a>,
}

/// The pods that cannot stay on a node.
struct Reprieve {
    victims: Vec<Arc<Pod>>,
    /// How many of them the filters had let stay, and only the rules did not.
    by_rules: usize,
}

/// What was found out about a node.
struct Finding {
    basis: Basis,
    /// What else it depends on, on this node.
    of_node: Vec<u64>,
    result: Result<Arc<Candidate>, Refusal>,
}

/// Why nobody goes from a node.
#[derive(Clone)]
enum Refusal {
    /// Nobody may. The words on that may name the pod that asks.
    Nobody,
    /// The status that a plugin gave.
    Said(Status),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Refusal::Said(status)
    }
}

/// What findings depend on apart from the node and from what the filters read of the pod.
#[derive(Clone, PartialEq, Eq)]
struct Basis {
    priority: i32,
    budgets_version: u64,
    others: Vec<u64>,
}

/// The candidate that costs least.
pub(super) fn pick<R: PreemptionRules + ?Sized>(
    rules: &R,
    cycle: &Cycle<'_>,
    candidates: Vec<Arc<Candidate>>,
) -> Option<Arc<Candidate>> {
    let name = |candidate: &Candidate| cycle.cluster().node(candidate.row).name();
    candidates.into_iter().min_by(|a, b| rules.compare(cycle, a, b).then_with(|| name(a).cmp(name(b))))
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

    /// The node.
    pub fn row(&self) -> Row {
        self.row
    }

    /// The pods that have to go, most important first.
    pub fn victims(&self) -> &[Arc<Pod>] {
        &self.victims
    }

    /// How many of them a disruption budget protects.
    pub fn budget_violations(&self) -> usize {
        self.violations
    }

    /// What it costs by upstream's rules, where pods that have not started count as starting now.
    pub fn cost(&self, now: Timestamp) -> Cost {
        let unstarted = self.has_unstarted.then_some(now);
        Cost {
            violations: self.violations,
            first_priority: self.victims.first().map_or(0, |pod| pod.priority()),
            priority_sum: self.priority_sum,
            victim_count: self.victims.len(),
            start: Reverse(self.first_start.into_iter().chain(unstarted).min()),
        }
    }
}

impl<'a, 'c, R: PreemptionRules + ?Sized> Search<'a, 'c, R> {
    pub(super) fn new(
        rules: &'a R,
        cycle: &'a Cycle<'c>,
        budgets: &'a Budgets<'a>,
        rehearsal: &'a dyn Rehearsal,
    ) -> Self {
        let basis = rules.findings_depend_on(cycle).map(|others| Basis {
            priority: cycle.pod.priority(),
            budgets_version: cycle.cluster().objects().version(PodDisruptionBudget::ID),
            others,
        });
        Search { rules, cycle, budgets, rehearsal, basis }
    }

    /// The same as [`Search::find_victims`], unless the answer is known from an earlier pod.
    pub(super) fn try_node(&self, row: Row) -> Result<Arc<Candidate>, Status> {
        self.find_or_recall(row).map_err(|refusal| match refusal {
            Refusal::Nobody => self.rules.no_victims(self.cycle, self.cycle.cluster().node(row)),
            Refusal::Said(status) => status,
        })
    }

    fn find_or_recall(&self, row: Row) -> Result<Arc<Candidate>, Refusal> {
        let cluster = self.cycle.cluster();
        let node = cluster.node(row);
        let Some(basis) = &self.basis else { return self.find_victims(row).map(Arc::new) };
        // With pods that are nominated to the node, it depends on which pod asks.
        if !cluster.nominated_to(node.name()).is_empty() {
            return self.find_victims(row).map(Arc::new);
        }
        let of_node = self.rules.findings_on_node_depend_on(self.cycle, node);
        if let Some(known) = self.rehearsal.recall(row)
            && let Some(finding) = known.downcast_ref::<Finding>()
            && finding.of_node == of_node
            && finding.basis == *basis
        {
            return finding.result.clone();
        }
        let result = self.find_victims(row).map(Arc::new);
        let finding = Finding { basis: basis.clone(), of_node, result: result.clone() };
        self.rehearsal.remember(row, Arc::new(finding));
        result
    }

    /// Finds the pods that have to go from a node; as few and as unimportant ones as possible.
    fn find_victims(&self, row: Row) -> Result<Candidate, Refusal> {
        let Emptied { gone: mut potential, mut stage } = self.take_off(row)?;
        self.fits_emptied(&*stage)?;
        self.sort_by_importance(&mut potential);
        let (violating, others) = self.budgets.split(&potential);
        // Those that a budget protects get the first chance to stay.
        let Reprieve { mut victims, by_rules } = self.reprieve(&violating, &mut *stage)?;
        let forgiven = if self.rules.counts_violations_of_rules(self.cycle) { 0 } else { by_rules };
        let violations = victims.len() - forgiven;
        victims.extend(self.reprieve(&others, &mut *stage)?.victims);
        self.sort_by_importance(&mut victims);
        if victims.is_empty() {
            let node = self.cycle.cluster().node(row);
            let error = format!("expected at least one victim pod on node {:?}", &**node.name());
            return Err(Status::error(error).into());
        }
        Ok(Candidate::new(row, victims, violations))
    }

    /// Takes all pods that may go off a node. Where there are none, nothing is tried out.
    fn take_off(&self, row: Row) -> Result<Emptied<'a>, Refusal> {
        let node = self.cycle.cluster().node(row);
        let mut in_order = Vec::new();
        if self.rules.asks_in_order() {
            in_order = node.pods().to_vec();
            self.sort_by_importance(&mut in_order);
            in_order.reverse();
        }
        let pods = if self.rules.asks_in_order() { &in_order } else { node.pods() };
        let mut gone = Vec::new();
        let mut stage: Option<Box<dyn NodeRehearsal + 'a>> = None;
        for pod in pods {
            if self.rules.may_evict(stage.as_ref().map_or(self.cycle, |stage| stage.cycle()), pod)? {
                let stage = stage.get_or_insert_with(|| self.rehearsal.node(row));
                succeed(&stage.remove_pod(pod))?;
                gone.push(pod.clone());
            }
        }
        stage.map(|stage| Emptied { gone, stage }).ok_or(Refusal::Nobody)
    }

    /// Puts pods back one by one; those with which the pod does not fit are returned.
    fn reprieve(&self, pods: &[Arc<Pod>], stage: &mut dyn NodeRehearsal) -> Result<Reprieve, Status> {
        let mut reprieve = Reprieve { victims: Vec::new(), by_rules: 0 };
        for pod in pods {
            succeed(&stage.add_pod(pod))?;
            let filtered = stage.filter().is_success();
            if !filtered || !self.rules.fits(stage, Some(pod)).is_success() {
                succeed(&stage.remove_pod(pod))?;
                if !filtered {
                    succeed(&self.rules.taken_off(stage, pod))?;
                }
                reprieve.victims.push(pod.clone());
                reprieve.by_rules += usize::from(filtered);
            }
        }
        Ok(reprieve)
    }

    /// Whether the pod would fit when all that may go have gone: by the filters, and by the rules.
    fn fits_emptied(&self, stage: &dyn NodeRehearsal) -> Result<(), Status> {
        let filtered = stage.filter();
        if !filtered.is_success() {
            return Err(filtered);
        }
        let status = self.rules.fits(stage, None);
        if status.is_success() { Ok(()) } else { Err(status) }
    }

    fn sort_by_importance(&self, pods: &mut [Arc<Pod>]) {
        pods.reverse();
        pods.sort_by(|a, b| self.rules.importance(self.cycle, a, b));
    }
}

fn succeed(status: &Status) -> Result<(), Status> {
    if status.is_success() { Ok(()) } else { Err(Status::error(status.message())) }
}
