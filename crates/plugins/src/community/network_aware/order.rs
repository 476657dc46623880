//! The order in which the workloads of an AppGroup are tried: those that call others first, or last, or in turn.

use std::collections::{BTreeMap, BTreeSet};

use super::app_group::{AppGroupSpec, OrderedWorkload, Workload, WorkloadDependencies};

/// What an AppGroup's order comes to, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// Its workloads, sorted by selector.
    pub(crate) workloads: Vec<OrderedWorkload>,
    /// What people should know, if anything.
    pub(crate) problems: Vec<String>,
}

/// How the callers of a graph come before those whom they call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    /// A workload without callers left goes next, the one that lost its last caller most recently first.
    Kahn,
    /// By depth: a workload goes before all that it calls, when these have been walked.
    Tarjan,
}

/// What becomes of an order with callers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It stays.
    Forward,
    /// It is turned round: workloads that are called go first.
    Backward,
    /// The first, the last, the second, the last but one, and so on.
    Alternate,
}

/// The workloads that each workload calls, by name, in the order of the spec.
type Graph<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// A workload calls itself, at last: the names on the way, which begins where it ends.
#[derive(Debug, PartialEq, Eq)]
struct Circle(Vec<String>);

/// The order of an AppGroup's workloads. Nothing in it is left to chance: where the graph leaves a choice, names decide.
pub(crate) fn order_of(spec: &AppGroupSpec) -> Order {
    let mut problems = Vec::new();
    let algorithm = &*spec.topology_sorting_algorithm;
    let (walk, turn) = algorithm_of(algorithm).unwrap_or_else(|| {
        problems.push(format!(
            "spec.topologySortingAlgorithm is {algorithm:?}, which is none of {}: KahnSort is taken",
            ALGORITHMS.map(|(name, ..)| name).join(", ")
        ));
        (Walk::Kahn, Turn::Forward)
    });
    let graph = graph_of(spec);
    let sorted = match walk {
        Walk::Kahn => by_callers(&graph),
        Walk::Tarjan => by_depth(&graph),
    };
    let names = match sorted {
        Ok(names) => turned(names, turn),
        Err(Circle(names)) => {
            problems.push(format!(
                "the dependencies go round in a circle, {}: its workloads are tried in the order of spec.workloads",
                names.join(" -> ")
            ));
            Vec::new()
        }
    };
    let workloads = numbered(spec, &names, &mut problems);
    Order { workloads, problems }
}

const ALGORITHMS: [(&str, Walk, Turn); 6] = [
    ("KahnSort", Walk::Kahn, Turn::Forward),
    ("TarjanSort", Walk::Tarjan, Turn::Forward),
    ("ReverseKahn", Walk::Kahn, Turn::Backward),
    ("ReverseTarjan", Walk::Tarjan, Turn::Backward),
    ("AlternateKahn", Walk::Kahn, Turn::Alternate),
    ("AlternateTarjan", Walk::Tarjan, Turn::Alternate),
];

fn algorithm_of(name: &str) -> Option<(Walk, Turn)> {
    ALGORITHMS.iter().find(|(known, ..)| *known == name).map(|(_, walk, turn)| (*walk, *turn))
}

/// Workloads that neither call others nor are called are not in the graph, as upstream.
fn graph_of(spec: &AppGroupSpec) -> Graph<'_> {
    let mut graph = Graph::new();
    for entry in &spec.workloads {
        for dependency in &entry.dependencies {
            graph.entry(&entry.workload.name).or_default().push(&dependency.workload.name);
            graph.entry(&dependency.workload.name).or_default();
        }
    }
    graph
}

fn by_callers<'a>(graph: &Graph<'a>) -> Result<Vec<&'a str>, Circle> {
    let mut callers: BTreeMap<&str, usize> = graph.keys().map(|name| (*name, 0)).collect();
    for called in graph.values().flatten() {
        *callers.entry(called).or_default() += 1;
    }
    let mut free: Vec<&str> =
        callers.iter().rev().filter(|(_, callers)| **callers == 0).map(|(name, _)| *name).collect();
    let mut sorted = Vec::with_capacity(graph.len());
    while let Some(name) = free.pop() {
        sorted.push(name);
        for called in graph.get(name).into_iter().flatten() {
            let left = callers.entry(called).or_default();
            *left -= 1;
            if *left == 0 {
                free.push(called);
            }
        }
    }
    if sorted.len() == graph.len() { Ok(sorted) } else { Err(circle(graph)) }
}

fn by_depth<'a>(graph: &Graph<'a>) -> Result<Vec<&'a str>, Circle> {
    let (mut sorted, mut done) = (Vec::with_capacity(graph.len()), BTreeSet::new());
    // What is found last goes first, so names are looked at from the end.
    for start in graph.keys().rev() {
        // The way down to where we are: a workload each, and how many of those that it calls have been looked at.
        let mut way: Vec<(&str, usize)> = Vec::new();
        if !done.contains(start) {
            way.push((start, 0));
        }
        while let Some((name, looked_at)) = way.last_mut() {
            let name = *name;
            match graph.get(name).and_then(|called| called.get(*looked_at)).copied() {
                Some(called) => {
                    *looked_at += 1;
                    if way.iter().any(|(on_way, _)| *on_way == called) {
                        return Err(circle(graph));
                    }
                    if !done.contains(called) {
                        way.push((called, 0));
                    }
                }
                None => {
                    way.pop();
                    done.insert(name);
                    sorted.push(name);
                }
            }
        }
    }
    sorted.reverse();
    Ok(sorted)
}

/// A circle of a graph that has one: the same for all walks.
fn circle(graph: &Graph<'_>) -> Circle {
    // A workload that calls none of those left is on no circle; such are taken away until only circles and their callers are left.
    let mut left: BTreeSet<&str> = graph.keys().copied().collect();
    loop {
        let calls_nobody = |name: &&str| !graph[*name].iter().any(|called| left.contains(called));
        let Some(name) = left.iter().copied().find(calls_nobody) else { break };
        left.remove(name);
    }
    let mut way: Vec<&str> = left.iter().copied().take(1).collect();
    while let Some(name) = way.last() {
        let Some(next) = graph[*name].iter().copied().find(|called| left.contains(called)) else { break };
        if let Some(start) = way.iter().position(|known| *known == next) {
            return Circle(way[start..].iter().chain([&next]).map(ToString::to_string).collect());
        }
        way.push(next);
    }
    Circle(Vec::new())
}

fn turned(mut names: Vec<&str>, turn: Turn) -> Vec<&str> {
    match turn {
        Turn::Forward => names,
        Turn::Backward => {
            names.reverse();
            names
        }
        Turn::Alternate => {
            let half = names.len().div_ceil(2);
            let (first, last) = names.split_at(half);
            let mut last = last.iter().rev();
            first.iter().flat_map(|name| [Some(*name), last.next().copied()]).flatten().collect()
        }
    }
}

/// The workloads with their turns. If there are names, those that are not among them have none; otherwise the spec is the order.
fn numbered(spec: &AppGroupSpec, names: &[&str], problems: &mut Vec<String>) -> Vec<OrderedWorkload> {
    let by_name: BTreeMap<&str, &Workload> =
        spec.workloads.iter().rev().map(|entry| (&*entry.workload.name, &entry.workload)).collect();
    let unknown: Vec<&str> = names.iter().copied().filter(|name| !by_name.contains_key(name)).collect();
    if !unknown.is_empty() {
        problems.push(format!(
            "spec.workloads lacks {}, on which others depend: they have no turn",
            unknown.join(", ")
        ));
    }
    // Dependencies go by names, and so does the graph: of two workloads of one name, one is as if it were not there.
    let is_lost = |entry: &&WorkloadDependencies| {
        let first = by_name.get(&*entry.workload.name);
        first.is_some_and(|first| first.selector != entry.workload.selector)
            && names.contains(&&*entry.workload.name)
    };
    for WorkloadDependencies { workload: Workload { name, selector, .. }, .. } in
        spec.workloads.iter().filter(is_lost)
    {
        problems.push(format!(
            "spec.workloads has more than one workload named {name}: the one with the selector {selector} has no turn; \
             give each a name of its own"
        ));
    }
    let workloads: Vec<&Workload> = match names {
        [] => spec.workloads.iter().map(|entry| &entry.workload).collect(),
        names => names.iter().filter_map(|name| by_name.get(name).copied()).collect(),
    };
    let turn = |(number, workload): (usize, &Workload)| OrderedWorkload {
        workload: workload.clone(),
        index: number as i64 + 1,
    };
    let mut ordered: Vec<OrderedWorkload> = workloads.into_iter().enumerate().map(turn).collect();
    ordered.sort_by(|a, b| a.workload.selector.cmp(&b.workload.selector));
    // A workload that the spec names twice has the earlier turn.
    ordered.dedup_by(|later, earlier| later.workload.selector == earlier.workload.selector);
    ordered
}

#[cfg(test)]
mod tests;
