//! Random histories, beside a model that keeps every pod that there ever was and adds everything up each time.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use supercargo_framework::Plugin;
use supercargo_model::{GoDuration, Pod, Timestamp};
use supercargo_testkit::{cluster, pod};

use crate::qos_aware::books::{Books, OwnerId};
use crate::qos_aware::metric::{Measured, Reference};
use crate::qos_aware::preemption::View;
use crate::qos_aware::terms::Approach;
use crate::qos_aware::{QosAware, QosAwareArgs};

const APPROACHES: [&str; 4] = ["independent", "average", "aggregate", "concurrent"];
const SLOS: [&str; 5] = ["0.5", "0.8", "0.95", "1", "0"];
const BEGIN: i64 = 1_000_000;

#[derive(Clone, Debug)]
enum Act {
    /// A pod comes, to a controller, created so many milliseconds ago.
    Arrive(usize, i64),
    /// One of the pods that wait is bound, for which it took so long.
    Start(usize, i64),
    /// One of the pods is being deleted.
    Release(usize),
    /// One of the pods is gone; perhaps it succeeded.
    End(usize, bool),
    /// A controller wants so many replicas.
    Scale(usize, u32),
    /// The process ends and another one begins.
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..4usize, 0..30_000i64).prop_map(|(controller, ago)| Act::Arrive(controller, ago)),
        4 => (any::<usize>(), 0..3_000i64).prop_map(|(pod, took)| Act::Start(pod, took)),
        1 => any::<usize>().prop_map(Act::Release),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(pod, succeeds)| Act::End(pod, succeeds)),
        1 => (0..4usize, 0..5u32).prop_map(|(controller, wanted)| Act::Scale(controller, wanted)),
        1 => Just(Act::Restart),
    ]
}

/// A pod that there was, in milliseconds.
#[derive(Clone, Debug)]
struct Kept {
    pod: Arc<Pod>,
    controller: usize,
    slot: usize,
    created: i64,
    binding: Option<i64>,
    running: Option<i64>,
    end: Option<i64>,
    is_released: bool,
    has_succeeded: bool,
}

impl Kept {
    fn waiting(&self, now: i64) -> i64 {
        self.binding.or(self.running).or(self.end).unwrap_or(now) - self.created
    }

    fn binding(&self) -> i64 {
        self.binding.zip(self.running).map_or(0, |(binding, running)| running - binding)
    }

    fn ran(&self, now: i64) -> i64 {
        self.running.map_or(0, |running| self.end.unwrap_or(now) - running)
    }
}

/// All of it.
#[derive(Default)]
struct Model {
    pods: Vec<Kept>,
    /// How many replicas controllers wanted since when.
    wanted: BTreeMap<usize, Vec<(i64, u32)>>,
}

/// E, D, W, B in seconds, O, how many run and wait, N.
#[derive(Debug)]
struct Naive {
    effective: f64,
    discarded: f64,
    waiting: f64,
    binding: f64,
    overhead: f64,
    running: f64,
    pending: f64,
    replicas: f64,
}

impl Model {
    fn wanted_at(&self, controller: usize, time: i64) -> u32 {
        let changes = self.wanted.get(&controller).into_iter().flatten();
        changes.take_while(|(since, _)| *since <= time).last().map_or(1, |(_, wanted)| *wanted)
    }

    fn naive(&self, approach: Approach, controller: usize, reference: Option<&Kept>, now: i64) -> Naive {
        let all: Vec<&Kept> = self.pods.iter().filter(|pod| pod.controller == controller).collect();
        let own = reference.filter(|_| approach == Approach::Independent);
        let scope: Vec<&Kept> =
            all.iter().filter(|pod| own.is_none_or(|own| own.slot == pod.slot)).copied().collect();
        let sum = |of: &dyn Fn(&Kept) -> i64| scope.iter().map(|pod| of(pod)).sum::<i64>() as f64 / 1e3;
        let binding = sum(&|pod| pod.binding());
        let (effective, discarded) = match approach {
            Approach::Independent | Approach::Average => (sum(&|pod| pod.ran(now)), 0.0),
            Approach::Aggregate => {
                let is_reference = |pod: &Kept| reference.is_some_and(|own| own.pod.uid == pod.pod.uid);
                let counts = |pod: &Kept| (pod.end.is_none() || pod.has_succeeded) && !is_reference(pod);
                (
                    sum(&|pod| if counts(pod) { pod.ran(now) } else { 0 }),
                    sum(&|pod| if counts(pod) { 0 } else { pod.ran(now) }),
                )
            }
            Approach::Concurrent => self.sweep(controller, now),
        };
        let live = |runs: bool| {
            let is_meant =
                |pod: &&&Kept| !pod.is_released && pod.end.is_none() && pod.running.is_some() == runs;
            all.iter().filter(is_meant).count() as f64
        };
        Naive {
            effective,
            discarded,
            waiting: sum(&|pod| pod.waiting(now)),
            binding,
            overhead: if binding > 0.0 { binding / scope.len() as f64 } else { 2.4 },
            running: live(true),
            pending: live(false),
            replicas: f64::from(self.wanted_at(controller, now)),
        }
    }

    /// Time run while all replicas run, and while not: in steps from one thing that happened to the next.
    fn sweep(&self, controller: usize, now: i64) -> (f64, f64) {
        let pods: Vec<&Kept> = self.pods.iter().filter(|pod| pod.controller == controller).collect();
        let mut times: Vec<i64> = pods.iter().flat_map(|pod| [pod.running, pod.end]).flatten().collect();
        times.extend(self.wanted.get(&controller).into_iter().flatten().map(|(since, _)| *since));
        times.push(now);
        times.sort_unstable();
        let (mut effective, mut discarded) = (0.0, 0.0);
        for step in times.windows(2) {
            let runs = |pod: &&&Kept| {
                pod.running.is_some_and(|since| since <= step[0]) && pod.end.is_none_or(|end| end > step[0])
            };
            let online = pods.iter().filter(runs).count();
            let spent = (step[1] - step[0]) as f64 / 1e3 * online as f64;
            if online < self.wanted_at(controller, step[0]) as usize {
                discarded += spent;
            } else {
                effective += spent;
            }
        }
        (effective, discarded)
    }
}

impl Naive {
    fn qos(&self) -> f64 {
        let total = self.effective + self.discarded + self.waiting + self.binding;
        if total > 0.0 { self.effective / total } else { 0.0 }
    }

    /// The table of the specification, a line each.
    fn metric(&self, approach: Approach, slo: f64, is_running: bool) -> f64 {
        let Naive { effective: e, discarded: d, waiting: w, binding: b, overhead: o, .. } = *self;
        let (running, pending, n) = (self.running, self.pending, self.replicas.max(1.0));
        let c = running - if is_running { 1.0 } else { 0.0 };
        let total = e + d + w + b;
        match approach {
            _ if slo == 0.0 => f64::INFINITY,
            Approach::Independent => e / slo - (e + w + b) - o,
            Approach::Average | Approach::Aggregate if self.qos() == slo => 0.0,
            Approach::Average | Approach::Aggregate if self.qos() < slo => e / slo - total - o,
            Approach::Average | Approach::Aggregate if running + pending == 0.0 => f64::INFINITY,
            Approach::Average | Approach::Aggregate if c / (running + pending) >= slo => f64::INFINITY,
            Approach::Average | Approach::Aggregate => {
                (e - slo * total) / ((running + pending) * slo - c) - o
            }
            Approach::Concurrent if self.qos() < slo => e / slo - total - o,
            Approach::Concurrent => e / (n * slo) - total / n,
        }
    }

    fn preemption_overhead(&self, approach: Approach) -> f64 {
        let on_nodes = self.binding + self.effective + self.discarded;
        let lost = self.binding + if approach == Approach::Aggregate { self.discarded } else { 0.0 };
        if on_nodes > 0.0 { lost / on_nodes } else { 0.0 }
    }
}

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_nanoseconds(milliseconds * 1_000_000)
}

fn owner(controller: usize) -> OwnerId {
    OwnerId {
        namespace: "default".into(),
        kind: "ReplicaSet".into(),
        name: format!("set-{controller}").as_str().into(),
    }
}

fn is_near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()))
}

/// The books and the model, side by side.
struct Both {
    books: Books,
    model: Model,
    now: i64,
}

impl Both {
    fn wanted(&self) -> impl Fn(&OwnerId) -> Option<u32> + use<> {
        let now: BTreeMap<OwnerId, u32> = (0..APPROACHES.len())
            .map(|number| (owner(number), self.model.wanted_at(number, self.now)))
            .collect();
        move |id: &OwnerId| now.get(id).copied()
    }

    fn act(&mut self, act: &Act, number: usize) {
        let now = at(self.now);
        match act {
            Act::Arrive(controller, ago) => {
                let created = self.now - ago;
                let made = pod(&format!("pod-{number}"))
                    .annotation("controller", APPROACHES[*controller])
                    .annotation("qosMeasuring", APPROACHES[*controller])
                    .annotation("slo", SLOS[number % SLOS.len()])
                    .controller("apps/v1", "ReplicaSet", &format!("set-{controller}"))
                    .with(serde_json::json!({ "metadata": { "creationTimestamp": at(created) } }));
                let made = cluster().pod(made);
                let taken = |slot: usize| {
                    self.model
                        .pods
                        .iter()
                        .any(|pod| pod.controller == *controller && pod.slot == slot && !pod.is_released)
                };
                let slot = (0..).find(|slot| !taken(*slot)).expect("there are enough");
                self.books.arrive(&made, &self.wanted(), now);
                self.model.pods.push(Kept {
                    pod: made,
                    controller: *controller,
                    slot,
                    created,
                    binding: None,
                    running: None,
                    end: None,
                    is_released: false,
                    has_succeeded: false,
                });
            }
            Act::Start(which, took) => {
                let Some(index) = self.pick(*which, |pod| pod.running.is_none() && !pod.is_released) else {
                    return;
                };
                let begin = (self.now - took).max(self.model.pods[index].created);
                let kept = &mut self.model.pods[index];
                (kept.binding, kept.running) = (Some(begin), Some(self.now));
                self.books.start(&kept.pod.uid, Some(at(begin)), now, now);
            }
            Act::Release(which) => {
                let Some(index) = self.pick(*which, |pod| !pod.is_released) else { return };
                self.model.pods[index].is_released = true;
                self.books.release(&self.model.pods[index].pod.uid.clone(), now);
            }
            Act::End(which, succeeds) => {
                let Some(index) = self.pick(*which, |_| true) else { return };
                let kept = &mut self.model.pods[index];
                (kept.is_released, kept.end, kept.has_succeeded) = (true, Some(self.now), *succeeds);
                self.books.end(&kept.pod.uid, now);
                if *succeeds {
                    assert!(self.books.succeed(&kept.pod.uid, now));
                }
            }
            Act::Scale(controller, wanted) => {
                self.model.wanted.entry(*controller).or_default().push((self.now, *wanted));
                self.books.scale(&owner(*controller), Some(*wanted), now);
            }
            Act::Restart => self.restart(),
        }
    }

    /// Pods that are being deleted are not saved one by one, and come anew: so only without them all is as it was.
    fn restart(&mut self) {
        if self.model.pods.iter().any(|pod| pod.is_released && pod.end.is_none()) {
            return;
        }
        let text = serde_json::to_string(&self.books).expect("can be written");
        self.books = serde_json::from_str(&text).expect("can be read");
        let live: Vec<Arc<Pod>> = (self.model.pods.iter())
            .filter(|pod| pod.end.is_none())
            .map(|kept| {
                let mut pod = (*kept.pod).clone();
                pod.node_name = kept.running.map(|_| "n1".into());
                Arc::new(pod)
            })
            .collect();
        let wanted = self.wanted();
        let (came, gone) = self.books.reconcile(&live, &wanted, at(self.now));
        assert!(came.is_empty() && gone.is_empty(), "{came:?} {gone:?}");
    }

    fn pick(&self, which: usize, is_meant: impl Fn(&Kept) -> bool) -> Option<usize> {
        let live: Vec<usize> = (0..self.model.pods.len())
            .filter(|index| self.model.pods[*index].end.is_none() && is_meant(&self.model.pods[*index]))
            .collect();
        (!live.is_empty()).then(|| live[which % live.len()])
    }

    fn check(&self) {
        let (state, now) = (self.books.now(), at(self.now));
        for (id, controller) in state.controllers.iter() {
            let number = APPROACHES.iter().position(|name| **name == *id.name).expect("it is one of them");
            let of_controller = self.model.pods.iter().filter(|pod| pod.controller == number);
            let living = of_controller.filter(|pod| pod.end.is_none());
            for reference in std::iter::once(None).chain(living.map(Some)) {
                let known = reference.map(|kept| state.pods.get(&kept.pod.uid).expect("it is known"));
                let measured =
                    Measured::of(controller, known.map(|pod| Reference::of(pod, controller, now)), now);
                let naive = self.model.naive(controller.approach, number, reference, self.now);
                let slo = known.map_or(controller.slo, |pod| pod.slo);
                let is_running = reference.is_some_and(|kept| kept.running.is_some());
                let seconds = crate::qos_aware::metric::seconds;
                // Where both are the same up to a rounding, the metric is one of two.
                let is_on_the_edge = (naive.qos() - slo).abs() < 1e-9;
                let theirs = naive.metric(controller.approach, slo, is_running);
                let metric = if is_on_the_edge { theirs } else { measured.metric(slo) };
                for (what, ours, theirs) in [
                    ("E", seconds(measured.effective), naive.effective),
                    ("D", seconds(measured.discarded), naive.discarded),
                    ("W", seconds(measured.waiting), naive.waiting),
                    ("B", seconds(measured.binding), naive.binding),
                    ("QoS", measured.qos(), naive.qos()),
                    ("metric", metric, theirs),
                    (
                        "overhead",
                        measured.preemption_overhead(),
                        naive.preemption_overhead(controller.approach),
                    ),
                    ("N", f64::from(measured.replicas()), naive.replicas),
                ] {
                    assert!(
                        is_near(ours, theirs),
                        "{what} of {} is {ours}, not {theirs}, for {:?}: {measured:?}, {naive:?}",
                        id.name,
                        reference.map(|kept| &kept.pod.name)
                    );
                }
                if let Some((kept, pod)) = reference.zip(known) {
                    assert!(
                        kept.is_released || pod.slot as usize == kept.slot,
                        "{kept:?} is in {}",
                        pod.slot
                    );
                }
            }
        }
    }
}

const MARGIN: f64 = 20.0;
const MINIMUM_RUNNING_SECONDS: f64 = 10.0;

/// What the model makes of a pod that may have to go.
struct Victim<'a> {
    kept: &'a Kept,
    slo: f64,
    approach: Approach,
    metric: f64,
    overhead: f64,
    contributes: bool,
    /// Whether a rounding decides.
    is_on_the_edge: bool,
}

impl Both {
    fn victim<'a>(&self, kept: &'a Kept) -> Victim<'a> {
        let state = self.books.now();
        let known = state.pods.get(&kept.pod.uid).expect("it is known");
        let approach = state.controllers.get(&known.controller).expect("it is known").approach;
        let naive = self.model.naive(approach, kept.controller, Some(kept), self.now);
        let (metric, overhead) =
            (naive.metric(approach, known.slo, kept.running.is_some()), naive.preemption_overhead(approach));
        let contributes = approach != Approach::Concurrent || naive.running == naive.replicas;
        let is_on_the_edge = (naive.qos() - known.slo).abs() < 1e-9
            || (metric - MARGIN).abs() < 1e-6
            || (overhead - (1.0 - known.slo)).abs() < 1e-9;
        Victim { kept, slo: known.slo, approach, metric, overhead, contributes, is_on_the_edge }
    }

    /// Who may take whose place, and which of several sets of victims is the cheapest, by the words of the specification.
    fn check_preemption(&self) {
        let plugin = QosAware::new(QosAwareArgs {
            safety_margin: GoDuration::from_seconds(MARGIN as i64),
            minimum_running_time: GoDuration::from_seconds(MINIMUM_RUNNING_SECONDS as i64),
            ..QosAwareArgs::default()
        });
        let (state, now) = (self.books.now(), at(self.now));
        let view = View { state, now };
        let live = self.model.pods.iter().filter(|pod| pod.end.is_none());
        let (running, pending): (Vec<&Kept>, Vec<&Kept>) = live.partition(|pod| pod.running.is_some());
        let victims: Vec<Victim<'_>> = running.iter().map(|kept| self.victim(kept)).collect();
        for waiting in &pending {
            let waiting = self.victim(waiting);
            for victim in victims.iter().filter(|victim| !victim.is_on_the_edge) {
                let has_run = victim.kept.ran(self.now) as f64 / 1e3 >= MINIMUM_RUNNING_SECONDS;
                let is_own = waiting.kept.controller == victim.kept.controller;
                let expected = if is_own && waiting.approach != Approach::Independent {
                    false
                } else if !victim.contributes
                    || has_run && victim.metric >= MARGIN
                    || waiting.slo > victim.slo
                {
                    true
                } else {
                    has_run && victim.overhead <= 1.0 - victim.slo
                };
                let known = state.pods.get(&victim.kept.pod.uid).expect("it is known");
                let may = plugin.can_preempt(&view, &waiting.kept.pod, known);
                assert_eq!(may, expected, "{} for {}", victim.kept.pod.name, waiting.kept.pod.name);
            }
        }
        if victims.iter().any(|victim| victim.is_on_the_edge) {
            return;
        }
        // Every pod is on one of three nodes.
        let nodes: Vec<Vec<&Victim<'_>>> = (0..3)
            .map(|node| victims.iter().skip(node).step_by(3).collect::<Vec<_>>())
            .filter(|node| !node.is_empty())
            .collect();
        let pods = |node: &[&Victim<'_>]| -> Vec<Arc<Pod>> {
            node.iter().map(|victim| victim.kept.pod.clone()).collect()
        };
        let ours = nodes.iter().min_by(|a, b| plugin.compare_victims(&view, &pods(a), &pods(b)));
        if let (Some(ours), Some(theirs)) = (ours, cheapest(&nodes)) {
            assert_eq!(pods(ours), pods(theirs));
        }
    }
}

/// The node that is left when those with less than the highest score have gone, class by class; none if a rounding decides.
fn cheapest<'a>(nodes: &'a [Vec<&'a Victim<'a>>]) -> Option<&'a Vec<&'a Victim<'a>>> {
    let score = |victim: &Victim<'_>| if victim.contributes { victim.metric - MARGIN } else { 0.0 };
    let in_danger = |victim: &&&Victim<'_>| victim.metric < MARGIN;
    let mut classes: Vec<f64> = nodes.iter().flatten().filter(in_danger).map(|victim| victim.slo).collect();
    classes.sort_by(|a, b| b.total_cmp(a));
    classes.dedup();
    let mut left: Vec<&Vec<&Victim<'_>>> = nodes.iter().collect();
    for class in classes.into_iter().map(Some).chain([None]) {
        let sum = |node: &Vec<&Victim<'_>>| -> f64 {
            let of_class = |victim: &&&Victim<'_>| {
                class.is_none_or(|class| victim.slo == class && victim.metric < MARGIN)
            };
            node.iter().filter(of_class).map(|victim| score(victim)).sum()
        };
        let best = left.iter().map(|node| sum(node)).fold(f64::NEG_INFINITY, f64::max);
        let is_close = |node: &&&Vec<&Victim<'_>>| sum(node) != best && is_near(sum(node), best);
        if left.iter().any(|node| is_close(&node)) {
            return None;
        }
        left.retain(|node| sum(node) == best);
    }
    let fewest = left.iter().map(|node| node.len()).min()?;
    left.retain(|node| node.len() == fewest);
    left.into_iter().next()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn sums_are_what_adding_up_everything_comes_to(
        acts in prop::collection::vec((act(), 0..20_000i64), 1..60)
    ) {
        let mut both = Both { books: Books::default(), model: Model::default(), now: BEGIN };
        for (number, (act, pause)) in acts.iter().enumerate() {
            both.act(act, number);
            both.check();
            both.now += pause;
            both.check();
            both.check_preemption();
        }
    }
}
