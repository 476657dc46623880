//! Histories of a whole scheduler whose plugins go by what somebody outside answers, while answers come, change, stay away and become
//! too old. Every decision is compared with the plain way to decide, and before it the facts in the cluster with a plain map of what was
//! told and is fresh.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use supercargo_conformance::samples;
use supercargo_engine::{
    Decision, EngineOptions, Indexing, Rules, Scheduler, SchedulerOptions, Seed, Thoroughness, evaluate,
};
use supercargo_framework::{
    Actions, ClusterEvent, Conclusion, Context, Cycle, Effect, Endpoint, Enqueue, Extensions, Facts, Filter,
    Fixes, Memories, Needs, NoArgs, NodeScore, Normalization, Plugin, PrometheusSource, Query, Reads, Score,
    Status, fact_kind,
};
use supercargo_model::{Decoded, Decoder, Kind, KindId, NodeRef, Snapshot, Timestamp};

use crate::chance::Chance;
use crate::court::{Coverage, compare, outcome, same};
use crate::profiles::Profiles;
use crate::scenery::{self, NODE_CHANGES};
use crate::shrink::shrink;
use crate::templates::template;

/// How many histories there are, and how long each is.
const HISTORIES: u64 = 32;
const STEPS: usize = 250;
/// How many steps it may take to make a counterexample short.
const SHRINKING: usize = 100_000;
/// For how long an answer counts.
const FRESH: Duration = Duration::from_secs(30);
/// So many things are done at one moment at most.
const MOMENT_MAX: usize = 10_000;
/// How many templates of pods a history has.
const TEMPLATES: usize = 5;
/// About how many pods there are to a node.
const PODS_PER_NODE: usize = 4;

const LOADS: &str = "load";
const TRAFFIC: &str = "traffic";
const LIMIT: &str = "limit";

/// Each thing that these histories are for happens at least so often.
const LEAST: u64 = 30;
const EXPECTED: [&str; 9] = [
    "decided by the index",
    "facts told",
    "facts not repeated",
    "facts too old",
    "facts of a node that went",
    "answer too old",
    "rejected by ByLoad",
    "scored differently by ByLoad",
    "scored differently by ByTraffic",
];

/// How busy a node is, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Load(i64);

/// How many bytes went through a node.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Traffic(i64);

/// How busy a node may be for a pod to go there.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Limit(i64);

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

impl Kind for Traffic {
    const ID: KindId = fact_kind("Traffic", "traffics");
}

impl Kind for Limit {
    const ID: KindId = fact_kind("Limit", "limits");
}

/// Keeps pods off nodes that are busier than the limit, and prefers those that are less busy.
struct ByLoad;

/// Prefers nodes with little traffic, between the lowest and the highest.
struct ByTraffic;

fn source() -> PrometheusSource {
    PrometheusSource::new(Endpoint::new("http://127.0.0.1:9"), "anything")
}

impl Plugin for ByLoad {
    const NAME: &'static str = "ByLoad";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        ByLoad
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().score().enqueue()
    }

    fn reads(&self) -> Reads {
        let loads = Query::per_node::<Load>(LOADS, source(), |_, _| Ok(()));
        let limit = Query::whole::<Limit>(LIMIT, source(), |_| Ok(Limit(0)));
        Reads::nothing().query(loads.fresh_for(FRESH)).query(limit.fresh_for(FRESH))
    }
}

impl Filter for ByLoad {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let limit = cycle.cluster().objects().get::<Limit>("", LIMIT);
        match (cycle.object_of::<Load>(node), limit) {
            (Some(Load(load)), Some(Limit(limit))) if load > limit => {
                Status::unschedulable("node(s) were too busy")
            }
            _ => Status::success(),
        }
    }
}

impl Score for ByLoad {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(cycle.object_of::<Load>(node).map_or(50, |Load(load)| 100 - load))
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}

impl Enqueue for ByLoad {
    fn events(&self) -> Vec<ClusterEvent> {
        [Load::ID, Limit::ID].map(|kind| ClusterEvent::kind(kind, Actions::ALL)).to_vec()
    }
}

impl Plugin for ByTraffic {
    const NAME: &'static str = "ByTraffic";
    type Args = NoArgs;

    fn new(NoArgs {}: NoArgs) -> Self {
        ByTraffic
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        let traffic = Query::per_node::<Traffic>(TRAFFIC, source(), |_, _| Ok(()));
        Reads::nothing().query(traffic.fresh_for(FRESH))
    }
}

impl Score for ByTraffic {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(cycle.object_of::<Traffic>(node).map_or(0, |Traffic(traffic)| *traffic))
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        samples::least_first(scores);
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRange
    }
}

/// Something that happens. What is about something that is not there does nothing.
#[derive(Clone, Debug)]
enum Step {
    PutNode(Value),
    RemoveNode(String),
    PutPod(Value),
    RemovePod(String),
    /// What a query is answered, measured so many seconds ago.
    Answer {
        query: &'static str,
        facts: Vec<(String, i64)>,
        age: i64,
    },
    /// A query is not answered.
    Silence(&'static str),
    Wait(i64),
}

/// A scheduler, and what is true.
struct Trial {
    scheduler: Scheduler,
    decoder: Decoder,
    seed: u64,
    now: Timestamp,
    nodes: BTreeMap<String, Value>,
    /// The pods by UID.
    pods: BTreeMap<String, Value>,
    /// What was told and is fresh: by query and name, with the time at which it is too old.
    told: BTreeMap<&'static str, BTreeMap<String, (i64, Timestamp)>>,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut profile = Profiles::all().get(0, 0, None);
        samples::add::<ByLoad>(&mut profile, 3);
        // Where answers move the lowest and the highest, all rows are scored again: half of the histories do without.
        if seed.is_multiple_of(2) {
            samples::add::<ByTraffic>(&mut profile, 2);
        }
        let profiles = vec![profile];
        Trial {
            decoder: Needs::of(&profiles).decoder(),
            scheduler: Scheduler::new(profiles, SchedulerOptions::new(Self::options(seed))),
            seed,
            now: Timestamp::from_seconds(1_000_000),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    fn options(seed: u64) -> EngineOptions {
        EngineOptions {
            rules: Rules::LIVE,
            seed: Seed(seed),
            fixes: Fixes::default(),
            indexing: Indexing::On,
        }
    }

    fn replay(mut self, steps: &[Step]) -> Option<(usize, String)> {
        let coverage = &mut Coverage::default();
        { steps.iter().enumerate() }
            .find_map(|(index, step)| Some((index, self.happen(step, coverage).err()?)))
    }

    /// Lets something happen, and the scheduler do what it then can.
    fn happen(&mut self, step: &Step, coverage: &mut Coverage) -> Result<(), String> {
        match step {
            Step::PutNode(node) => {
                let name = node["metadata"]["name"].as_str().expect("it has a name").to_owned();
                self.scheduler.put(self.decode(node), self.now);
                self.nodes.insert(name, node.clone());
            }
            Step::RemoveNode(name) => {
                let Some(node) = self.nodes.remove(name) else { return Ok(()) };
                self.scheduler.remove(&self.decode(&node), self.now);
                for facts in self.told.values_mut() {
                    coverage.count_if(facts.remove(name).is_some(), "facts of a node that went");
                }
            }
            Step::PutPod(pod) => {
                let uid = pod["metadata"]["uid"].as_str().expect("it has a UID").to_owned();
                self.pods.insert(uid, pod.clone());
                self.scheduler.put(self.decode(pod), self.now);
            }
            Step::RemovePod(uid) => self.remove_pod(uid),
            Step::Answer { query, facts, age } => self.answer(query, facts, *age, coverage)?,
            Step::Silence(query) => {
                let taken = self.scheduler.answered(query, Err("there is no answer".to_owned()), self.now);
                same("answer that is none", &None, &taken)?;
            }
            Step::Wait(seconds) => self.wait(*seconds, coverage),
        }
        self.settle(coverage)
    }

    fn answer(
        &mut self,
        query: &'static str,
        facts: &[(String, i64)],
        age: i64,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let at = self.now.moved(-age);
        // What is said of a node twice, or of none, does not count.
        let mut fresh: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for (called, value) in facts.iter().filter(|_| at.after(FRESH) > self.now) {
            let name = if query == LIMIT { LIMIT } else { called.split(':').next().unwrap_or_default() };
            if query == LIMIT || self.nodes.contains_key(name) {
                fresh.entry(name.to_owned()).or_default().push(*value);
            }
        }
        let end = at.after(FRESH);
        let fresh = fresh.into_iter().filter(|(_, values)| values.len() == 1);
        let fresh: BTreeMap<_, _> = fresh.map(|(name, values)| (name, (values[0], end))).collect();
        let before = self.told.insert(query, fresh.clone()).unwrap_or_default();
        let gone = before.keys().filter(|name| !fresh.contains_key(*name)).count();
        let pairs = || facts.iter().map(|(called, value)| (called.as_str(), *value));
        let answer = match query {
            LOADS => Facts::per_node(pairs().map(|(node, value)| (node, Load(value))), at),
            TRAFFIC => Facts::per_node(pairs().map(|(node, value)| (node, Traffic(value))), at),
            _ => Facts::whole_at(LIMIT, Limit(facts.first().map_or(0, |(_, value)| *value)), at),
        };
        match self.scheduler.answered(query, Ok(answer), self.now) {
            Some(taken) => {
                same("number of facts", &(fresh.len(), gone), &(taken.facts, taken.gone))?;
                coverage.count_if(taken.changed > 0, "facts told");
                coverage.count_if(taken.gone > 0, "facts not repeated");
                coverage.count_if(at.after(FRESH) <= self.now, "answer too old");
            }
            // No plugin of this history asks.
            None => drop(self.told.remove(query)),
        }
        Ok(())
    }

    fn wait(&mut self, seconds: i64, coverage: &mut Coverage) {
        self.now = self.now.moved(seconds);
        for facts in self.told.values_mut() {
            let before = facts.len();
            facts.retain(|_, (_, end)| *end > self.now);
            coverage.count_if(facts.len() < before, "facts too old");
        }
    }

    fn remove_pod(&mut self, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            self.scheduler.remove(&self.decode(&pod), self.now);
        }
    }

    /// Lets the scheduler do all that it can at this moment.
    fn settle(&mut self, coverage: &mut Coverage) -> Result<(), String> {
        self.scheduler.advance(self.now);
        for _ in 0..MOMENT_MAX {
            let snapshot = self.scheduler.cluster().clone();
            self.compare_facts(&snapshot)?;
            let memories = self.scheduler.memories().clone();
            let decision = self.scheduler.schedule_next(self.now);
            if let Some(decision) = &decision {
                self.compare_decision(decision, &snapshot, &memories, coverage)?;
            }
            drop(snapshot);
            let orders = self.scheduler.take_orders();
            if decision.is_none() && orders.is_empty() {
                return Ok(());
            }
            for order in orders {
                if let Some(ticket) = order.ticket {
                    self.scheduler.conclude(ticket, &Conclusion::Done, self.now);
                }
                match order.effect {
                    Effect::Bind { pod, node } => {
                        let stored = self.pods.get_mut(&*pod.uid).expect("a pod that is bound is there");
                        stored["spec"]["nodeName"] = json!(node);
                        let bound = self.decode(&self.pods[&*pod.uid]);
                        self.scheduler.put(bound, self.now);
                    }
                    Effect::Evict { victim, .. } => self.remove_pod(&victim.uid),
                    _ => {}
                }
            }
        }
        Err("this never ends".to_owned())
    }

    /// Whether the cluster has the facts that were told and are fresh, and no others.
    fn compare_facts(&self, cluster: &Snapshot) -> Result<(), String> {
        fn all<T: Kind>(cluster: &Snapshot, value: impl Fn(&T) -> i64) -> BTreeMap<String, i64> {
            cluster.objects().all::<T>().map(|(key, fact)| (key.name.to_string(), value(fact))).collect()
        }
        let known = |query| {
            let facts = self.told.get(query).into_iter().flatten();
            facts.map(|(name, (value, _))| (name.clone(), *value)).collect::<BTreeMap<String, i64>>()
        };
        same("load of nodes", &known(LOADS), &all(cluster, |Load(load)| *load))?;
        same("traffic of nodes", &known(TRAFFIC), &all(cluster, |Traffic(traffic)| *traffic))?;
        same("limit", &known(LIMIT), &all(cluster, |Limit(limit)| *limit))
    }

    fn compare_decision(
        &self,
        decision: &Decision,
        cluster: &Snapshot,
        memories: &Memories,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        coverage.count("decided");
        if cluster.node_count() == 0 {
            return Ok(());
        }
        same("version", &cluster.version(), &decision.version)?;
        let EngineOptions { rules, seed, fixes, .. } = Self::options(self.seed);
        let seed = seed.attempt(decision.attempt);
        let context = Context { cluster, now: self.now, memories, seed, fixes };
        let profile = &self.scheduler.profiles()[0];
        let thoroughness = Thoroughness::FirstRejection;
        let evaluation =
            evaluate(profile, context, &decision.pod, rules, thoroughness, &mut { decision.start });
        for plugin in &evaluation.diagnosis.unschedulable_plugins {
            coverage.count(&format!("rejected by {plugin}"));
        }
        for plugin in &evaluation.scores {
            let differ = plugin.scores.iter().any(|score| *score != plugin.scores[0]);
            coverage.count_if(differ, &format!("scored differently by {}", plugin.plugin));
        }
        compare(&outcome(&evaluation, cluster), &decision.outcome)
            .map_err(|text| format!("beside the plain way, {text}"))
    }

    fn decode(&self, object: &Value) -> Decoded {
        self.decoder.decode(&object.to_string()).unwrap_or_else(|error| panic!("{error}: {object}"))
    }
}

/// One of the things that can happen next.
type Act = fn(&mut Script, &Trial) -> Step;

/// Says what happens next.
struct Script {
    chance: Chance,
    seed: u64,
    node_count: usize,
    next_pod: usize,
}

impl Script {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(!seed);
        let node_count = *chance.pick(&[2, 3, 4, 6, 9, 12]);
        Script { chance, seed, node_count, next_pod: 0 }
    }

    fn next(&mut self, trial: &Trial) -> Step {
        if trial.nodes.len() < self.node_count && self.next_pod == 0 {
            let name = format!("n{}", trial.nodes.len());
            return Step::PutNode(scenery::node(&mut self.chance, &name, false));
        }
        let is_crowded = trial.pods.len() > trial.nodes.len().max(1) * PODS_PER_NODE;
        if is_crowded && self.chance.percent(60) {
            let index = self.chance.below(trial.pods.len());
            let uid = trial.pods.keys().nth(index).expect("it is below the count");
            return Step::RemovePod(uid.clone());
        }
        let acts: [(usize, Act); 7] = [
            (45, |script, _| script.pod()),
            (12, |script, trial| script.answer(trial, LOADS, 100)),
            (10, |script, trial| script.answer(trial, TRAFFIC, 1_000_000)),
            (6, |script, trial| script.answer(trial, LIMIT, 100)),
            (4, |script, _| Step::Silence(script.chance.pick::<&'static str>(&[LOADS, TRAFFIC, LIMIT]))),
            (13, |script, _| Step::Wait(*script.chance.pick(&[1, 2, 5, 10, 20, 30, 60]))),
            (10, Self::change_nodes),
        ];
        let act = self.chance.weighted(&acts);
        act(self, trial)
    }

    fn pod(&mut self) -> Step {
        self.next_pod += 1;
        let number = self.chance.below(TEMPLATES) as u64;
        let mut pod = template(&mut Chance::new(self.seed ^ ((number + 1) << 32)), 1, None).pod;
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(format!("p{}", self.next_pod));
        pod["metadata"]["uid"] = json!(format!("u{}", self.next_pod));
        Step::PutPod(pod)
    }

    /// What is said of most nodes, of one that is not there, and of some twice. Often it is what was said before, but for a few.
    fn answer(&mut self, trial: &Trial, query: &'static str, highest: usize) -> Step {
        let chance = &mut self.chance;
        let age = chance.weighted(&[(8, 0), (3, 5), (2, 29), (1, 30), (1, 100)]);
        if query == LIMIT {
            let limit = *chance.pick(&[20, 50, 80, 100]);
            return Step::Answer { query, facts: vec![(LIMIT.to_owned(), limit)], age };
        }
        let changed = *chance.pick(&[0, 10, 100]);
        let known = trial.told.get(query);
        let mut facts = Vec::new();
        for name in trial.nodes.keys().map(String::as_str).chain(["gone"]) {
            let before = known.and_then(|known| known.get(name)).map(|(value, _)| *value);
            let value = before
                .filter(|_| !chance.percent(changed))
                .unwrap_or_else(|| chance.between(0, highest) as i64);
            for _ in 0..chance.weighted(&[(2, 0), (20, 1), (1, 2)]) {
                let port = if chance.percent(20) { ":9100" } else { "" };
                facts.push((format!("{name}{port}"), value));
            }
        }
        Step::Answer { query, facts, age }
    }

    fn change_nodes(&mut self, trial: &Trial) -> Step {
        let chance = &mut self.chance;
        let name = format!("n{}", chance.below(self.node_count + 1));
        match trial.nodes.get(&name) {
            None => Step::PutNode(scenery::node(chance, &name, false)),
            Some(_) if chance.percent(40) => Step::RemoveNode(name),
            Some(node) => {
                let mut node = node.clone();
                let (_, change) = *chance.pick(&NODE_CHANGES);
                change(chance, &mut node, false);
                Step::PutNode(node)
            }
        }
    }
}

/// Lets histories happen; the first difference, cut down to the steps that matter.
fn compare_answers(seeds: std::ops::Range<u64>, shrinking: usize) -> Result<Coverage, String> {
    let mut coverage = Coverage::default();
    for seed in seeds {
        let (mut trial, mut script) = (Trial::new(seed), Script::new(seed));
        let mut steps: Vec<Step> = Vec::new();
        while steps.len() < STEPS {
            steps.push(script.next(&trial));
            let step = steps.last().expect("it was just pushed");
            if trial.happen(step, &mut coverage).is_err() {
                let mut replay = |steps: &[Step]| Trial::new(seed).replay(steps);
                let (steps, difference) = shrink(steps, &mut replay, shrinking);
                let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
                return Err(format!("the history of seed {seed}: {difference}\n{}", steps.join("\n")));
            }
        }
        let plain: u64 = trial.scheduler.gauges().plain_decisions.values().sum();
        coverage.add("left to the plain way", plain);
    }
    let by_index = coverage.get("decided").saturating_sub(coverage.get("left to the plain way"));
    coverage.add("decided by the index", by_index);
    Ok(coverage)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::PutNode(object) | Step::PutPod(object) => write!(f, "put {object}"),
            Step::RemoveNode(name) | Step::RemovePod(name) => write!(f, "remove {name}"),
            Step::Answer { query, facts, age } => {
                write!(f, "{query} is answered, measured {age} s ago: {facts:?}")
            }
            Step::Silence(query) => write!(f, "{query} is not answered"),
            Step::Wait(seconds) => write!(f, "{seconds} s pass"),
        }
    }
}

#[test]
fn answers_that_change_and_become_too_old_are_what_pods_go_by() {
    let coverage = compare_answers(0..HISTORIES, SHRINKING).unwrap_or_else(|found| panic!("{found}"));
    coverage.check_only(&EXPECTED, LEAST);
    crate::report(&coverage);
}

/// Only builds for tests have these bugs.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_about_answers_are_found() {
    use supercargo_engine::planted::{Bug, plant};
    for bug in [Bug::FactsStay, Bug::OldFactsStay] {
        plant(Some(bug));
        let found = compare_answers(0..HISTORIES, 0);
        plant(None);
        assert!(found.is_err(), "{bug:?} is not found");
    }
}
