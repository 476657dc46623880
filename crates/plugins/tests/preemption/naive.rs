//! Preemption in numbers: no cycle, no filters, no findings, everything counted anew each time.

use std::cmp::Reverse;

use crate::plugin::Script;

/// A small cluster.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The cores of each node.
    pub(crate) nodes: Vec<i64>,
    pub(crate) residents: Vec<Resident>,
    /// How many protected pods of each namespace may go.
    pub(crate) budget: i32,
    /// The share and the limit of each namespace, in cores.
    pub(crate) quotas: [(i64, i64); 3],
}

/// A pod that runs.
#[derive(Clone, Debug)]
pub(crate) struct Resident {
    pub(crate) name: String,
    pub(crate) node: usize,
    pub(crate) cores: i64,
    pub(crate) priority: i32,
    pub(crate) started: u32,
    pub(crate) is_volunteer: bool,
    pub(crate) is_protected: bool,
    pub(crate) tolerates: i32,
    pub(crate) namespace: usize,
}

/// A pod that wants in.
#[derive(Clone, Copy)]
struct Newcomer {
    rules: Script,
    cores: i64,
    priority: i32,
    namespace: usize,
}

impl World {
    /// The node and the victims; nothing if there is room, or none can be made.
    pub(crate) fn preempt(
        &self,
        rules: Script,
        (cores, priority, namespace): (i64, i32, usize),
    ) -> Option<(String, Vec<String>)> {
        let newcomer = Newcomer { rules, cores, priority, namespace };
        let everybody: Vec<&Resident> = self.residents.iter().collect();
        if (0..self.nodes.len()).any(|node| self.fits(newcomer, node, &everybody)) {
            return None;
        }
        let candidates = (0..self.nodes.len()).filter_map(|node| {
            let (victims, violations) = self.victims(newcomer, node)?;
            Some((node, victims, violations))
        });
        let best = candidates.min_by_key(|(node, victims, violations)| {
            if rules == Script::Contrary {
                return ((usize::MAX - victims.len(), 0, 0, 0, Reverse(0)), *node);
            }
            let top = victims.iter().map(|victim| victim.priority).max();
            let of_top = victims.iter().filter(|victim| Some(victim.priority) == top);
            let sum: i64 = victims.iter().map(|victim| i64::from(victim.priority) + (1 << 31)).sum();
            let start = of_top.map(|victim| victim.started).min().unwrap_or(0);
            ((*violations, victims[0].priority, sum, victims.len(), Reverse(start)), *node)
        });
        let (node, victims, _) = best?;
        Some((format!("n{node}"), victims.iter().map(|victim| victim.name.clone()).collect()))
    }

    /// Whether the pod fits on a node, if these pods run.
    fn fits(&self, newcomer: Newcomer, node: usize, running: &[&Resident]) -> bool {
        let taken: i64 = running.iter().filter(|pod| pod.node == node).map(|pod| pod.cores).sum();
        let has_room = taken + newcomer.cores <= self.nodes[node];
        if newcomer.rules != Script::Quota {
            return has_room;
        }
        let all: i64 = running.iter().map(|pod| pod.cores).sum();
        has_room
            && used(running, newcomer.namespace) + newcomer.cores <= self.quotas[newcomer.namespace].1
            && all + newcomer.cores <= self.quotas.iter().map(|(share, _)| share).sum()
    }

    /// Who has to go from a node, most important first, and how many of them a budget protects.
    fn victims(&self, newcomer: Newcomer, node: usize) -> Option<(Vec<&Resident>, usize)> {
        let mut running: Vec<&Resident> = self.residents.iter().collect();
        let mut there: Vec<&Resident> = running.iter().filter(|pod| pod.node == node).copied().collect();
        there.sort_by_key(|pod| importance(newcomer.rules, pod));
        let mut gone = Vec::new();
        for pod in there.iter().rev() {
            if self.may_evict(newcomer, pod, &running) {
                running.retain(|other| other.name != pod.name);
                gone.push(*pod);
            }
        }
        if gone.is_empty() || !self.fits(newcomer, node, &running) {
            return None;
        }
        gone.reverse();
        let mut allowed = [self.budget; 3];
        let (violating, others): (Vec<&Resident>, Vec<&Resident>) = gone.into_iter().partition(|pod| {
            allowed[pod.namespace] -= i32::from(pod.is_protected);
            pod.is_protected && allowed[pod.namespace] < 0
        });
        let (mut victims, mut violations) = (Vec::new(), 0);
        for (pod, violates) in violating.iter().map(|pod| (pod, 1)).chain(others.iter().map(|pod| (pod, 0))) {
            running.push(pod);
            if !self.fits(newcomer, node, &running) {
                running.pop();
                victims.push(*pod);
                violations += violates;
            }
        }
        victims.sort_by_key(|pod| importance(newcomer.rules, pod));
        Some((victims, violations))
    }

    fn may_evict(&self, newcomer: Newcomer, pod: &Resident, running: &[&Resident]) -> bool {
        let is_lower = pod.priority < newcomer.priority;
        match newcomer.rules {
            Script::Volunteers => pod.is_volunteer,
            Script::Tolerating => is_lower && pod.tolerates < newcomer.priority,
            Script::Quota => {
                let share = self.quotas[newcomer.namespace].0;
                if used(running, newcomer.namespace) + newcomer.cores > share {
                    is_lower && pod.namespace == newcomer.namespace
                } else {
                    pod.namespace != newcomer.namespace
                        && used(running, pod.namespace) > self.quotas[pod.namespace].0
                }
            }
            _ => is_lower,
        }
    }
}

fn used(running: &[&Resident], namespace: usize) -> i64 {
    running.iter().filter(|pod| pod.namespace == namespace).map(|pod| pod.cores).sum()
}

/// The smaller, the more important. Equal starts go by name; those of other namespaces by namespace first.
fn importance(rules: Script, pod: &Resident) -> (Reverse<i32>, u32, usize, String) {
    match rules {
        Script::Contrary => (Reverse(0), 0, 0, pod.name.clone()),
        _ => (Reverse(pod.priority), pod.started, pod.namespace, pod.name.clone()),
    }
}
