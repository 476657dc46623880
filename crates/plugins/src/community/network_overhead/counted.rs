//! The same answers from counts of pods: what a node is worth depends on its region and zone, on how many of the pods that a pod calls
//! are in which, and on how many are on the node itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_framework::{
    CountedFilter, CountedScore, Counter, Counts, Cycle, Fixes, Groups, MatcherTerm, PodMatcher, Scope,
    Status,
};
use supercargo_model::LabelSelector;
use supercargo_model::labels::Requirement;

use super::NetworkOverheadArgs;
use super::calls::{Calls, Sums, between};
use crate::community::network_aware::{
    APP_GROUP_LABEL, Dependency, NetworkTopology, Place, REGION, WORKLOAD_LABEL, Weights, ZONE, label_of,
};
use crate::community::normalize::inverse_cost;

/// What is counted for a filter, or for a score.
pub(super) struct NetworkCounts {
    measure: Measure,
    /// What the pod calls.
    dependencies: Vec<Dependency>,
    topology: NetworkTopology,
    weights_name: String,
    is_in_order: bool,
    fixes: Fixes,
    /// First one for each dependency: what the pods there are worth. Then one that says whether the place is unknown, by a weight. Then those
    /// of pods on the node.
    counters: Vec<Counter>,
    /// How often a pod on the node is called, for each of the last.
    own: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// How many more of the pods are near enough than too far away.
    Margin,
    /// What the network to all of them costs.
    Cost,
}

impl NetworkCounts {
    /// For a filter; none if that takes more than counts.
    pub(super) fn of_filter(cycle: &Cycle<'_>, args: &NetworkOverheadArgs) -> Option<Arc<dyn CountedFilter>> {
        Some(Arc::new(Self::of(cycle, args, Measure::Margin)?))
    }

    /// For a score; none if that takes more than counts.
    pub(super) fn of_score(cycle: &Cycle<'_>, args: &NetworkOverheadArgs) -> Option<Arc<dyn CountedScore>> {
        Some(Arc::new(Self::of(cycle, args, Measure::Cost)?))
    }

    fn of(cycle: &Cycle<'_>, args: &NetworkOverheadArgs, measure: Measure) -> Option<Self> {
        let calls = Calls::of(&cycle.context, cycle.pod, args).ok()?;
        let mut counts = NetworkCounts {
            measure,
            dependencies: Vec::new(),
            topology: NetworkTopology::default(),
            weights_name: args.weights_name().to_owned(),
            is_in_order: false,
            fixes: cycle.context.fixes,
            counters: Vec::new(),
            own: Vec::new(),
        };
        let (Some(calls), Some(group)) = (calls, label_of(cycle.pod)) else { return Some(counts) };
        if calls.dependencies.iter().any(|dependency| dependency.workload.selector.is_empty()) {
            // Pods without the label are meant, which no selector says.
            return None;
        }
        counts.dependencies = calls.dependencies.iter().map(|dependency| (*dependency).clone()).collect();
        counts.topology = calls.weights.topology.costs();
        counts.is_in_order = calls.weights.is_in_order;
        let namespace = counts.fixes.app_group_namespaces.then_some(calls.group.namespace);
        counts.count(group, namespace);
        Some(counts)
    }

    fn count(&mut self, group: &str, namespace: Option<&str>) {
        let namespaces = namespace.map(|namespace| [Box::from(namespace)].into());
        let counter = |workloads: Requirement| {
            let selector =
                LabelSelector::everything().and([Requirement::equals(APP_GROUP_LABEL, group), workloads]);
            let term = MatcherTerm { namespaces: namespaces.clone(), selector };
            let pods = PodMatcher { terms: vec![term], counts_terminating: true };
            Counter::new(pods, REGION).and_by(ZONE)
        };
        let weighed = |workloads| Counter { wants_weights: true, ..counter(workloads) };
        let mut called: BTreeMap<&str, i64> = BTreeMap::new();
        for dependency in &self.dependencies {
            let workload = &*dependency.workload.selector;
            self.counters.push(weighed(Requirement::equals(WORKLOAD_LABEL, workload)));
            *called.entry(workload).or_default() += 1;
        }
        let all = called.keys().copied();
        self.counters.push(weighed(Requirement::one_of(WORKLOAD_LABEL, all)));
        let mut by_times: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        for (workload, times) in called {
            by_times.entry(times).or_default().push(workload);
        }
        for (times, workloads) in by_times {
            let workloads = Requirement::one_of(WORKLOAD_LABEL, workloads);
            self.counters.push(Counter { scope: Scope::Node, ..counter(workloads) });
            self.own.push(times);
        }
    }

    /// What all the pods are worth for the nodes of a group.
    fn worth(&self, groups: &Groups<'_>, group: usize) -> i64 {
        let calls = self.dependencies.len();
        let elsewhere =
            (0..calls).fold(0_i64, |sum, counter| sum.wrapping_add(groups.weight(group, counter)));
        let own = self.own.iter().enumerate();
        let own: i64 =
            own.map(|(number, times)| times * i64::from(groups.cell(group, calls + 1 + number).pods)).sum();
        if own == 0 {
            return elsewhere;
        }
        // Where there is such a pod, it has a weight if the place is unknown.
        let is_unknown = groups.weight(group, calls) > 0;
        elsewhere.wrapping_add(self.value(Sums::default().with_own(own, is_unknown)))
    }

    fn value(&self, sums: Sums) -> i64 {
        match self.measure {
            Measure::Margin => sums.satisfied - sums.violated,
            Measure::Cost => sums.cost,
        }
    }
}

impl Counts for NetworkCounts {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }

    fn weight(&self, counter: usize, from: [&str; 2], to: [&str; 2]) -> i64 {
        let [from, to] = [from, to].map(|[region, zone]| Place { region, zone });
        let Some(dependency) = self.dependencies.get(counter) else {
            return i64::from(from.is_unknown());
        };
        let weights =
            Weights { topology: &self.topology, name: &self.weights_name, is_in_order: self.is_in_order };
        self.value(between(weights, self.fixes, dependency, from, to))
    }
}

impl CountedFilter for NetworkCounts {
    /// It names the node.
    fn rejections(&self) -> &[Status] {
        &[]
    }

    fn filter(&self, groups: &Groups<'_>, group: usize) -> Result<(), usize> {
        if self.worth(groups, group) < 0 { Err(0) } else { Ok(()) }
    }
}

impl CountedScore for NetworkCounts {
    fn score(&self, groups: &Groups<'_>, _: &mut Vec<u32>, scores: &mut [i64]) {
        let (mut lowest, mut highest) = (i64::MAX, i64::MIN);
        for (group, score) in scores.iter_mut().enumerate() {
            *score = self.worth(groups, group);
            (lowest, highest) = (lowest.min(*score), highest.max(*score));
        }
        for score in scores {
            *score = inverse_cost(*score, lowest, highest);
        }
    }
}
