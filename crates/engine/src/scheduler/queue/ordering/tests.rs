//! Whatever has happened, the pod that is tried is the first by a naive sort of that same moment.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rustc_hash::FxHashSet;
use supercargo_framework::{
    Actions, Change, ClusterEvent, Context, Enqueue, Named, OrderChanges, Profile, QueueRank, QueueSort,
    QueuedPod, TieBreak,
};
use supercargo_model::{LabelLookup, Timestamp};
use supercargo_testkit::{TestCluster, cluster, node, pod};

use super::Order;
use crate::scheduler::happenings::{Happening, What};
use crate::scheduler::heap::Slot;
use crate::scheduler::queue::{Patience, Place, Queue, Waiting};
use crate::scheduler::queue_context::QueueContext;

/// Pods become more important as they wait, each at its own pace, if the order depends on time; the less important ones come
/// first while there is an odd number of nodes, if it depends on events.
#[derive(Clone, Debug)]
struct Ageing {
    every: Option<Duration>,
    depends_on_nodes: bool,
    ranked: Ranked,
    /// Whether names decide between pods that are equally important.
    by_name: bool,
}

/// The pods that have a rank. A plugin should have one for all or none, but the order is right even if it does not.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ranked {
    None,
    All,
    OfEvenPriority,
}

impl Ageing {
    fn importance(&self, context: &Context<'_>, queued: &QueuedPod) -> i64 {
        let pace: i64 = queued.pod.labels.label("pace").and_then(|pace| pace.parse().ok()).unwrap_or(0);
        let waited = context.now.since(queued.queued_at).as_millis() as i64;
        let aged = if self.every.is_some() { waited * pace } else { 0 };
        let rank = i64::from(queued.pod.priority()) * 1000 + aged;
        if self.depends_on_nodes && context.cluster.node_count() % 2 == 1 { -rank } else { rank }
    }

    fn order(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> Ordering {
        let by_importance = self.importance(context, b).cmp(&self.importance(context, a));
        if self.by_name { by_importance.then_with(|| names(a, b)) } else { by_importance }
    }
}

fn names(a: &QueuedPod, b: &QueuedPod) -> Ordering {
    a.pod.name.cmp(&b.pod.name)
}

impl QueueSort for Ageing {
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        self.order(context, a, b).is_lt()
    }

    fn tie_break(&self) -> Option<TieBreak> {
        self.by_name.then_some(names)
    }

    fn rank(&self, context: &Context<'_>, queued: &QueuedPod) -> Option<QueueRank> {
        let has_rank = match self.ranked {
            Ranked::None => false,
            Ranked::All => true,
            Ranked::OfEvenPriority => queued.pod.priority() % 2 == 0,
        };
        has_rank.then(|| [-self.importance(context, queued), 0])
    }

    fn changes(&self) -> OrderChanges {
        let with_time = self.every.map(OrderChanges::with_time).unwrap_or_default();
        let nodes = ClusterEvent::node(Actions::ADD.or(Actions::DELETE));
        let with_nodes = OrderChanges::with_events(self.depends_on_nodes.then_some(nodes));
        with_time.and(with_nodes)
    }
}

/// The plugin that rejects pods. Nothing helps them.
struct Rejecting;

impl Enqueue for Rejecting {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

#[derive(Clone, Debug)]
enum Act {
    /// A pod of this number comes, or changes.
    Put {
        number: usize,
        priority: i32,
        pace: u8,
    },
    Remove(usize),
    Pop,
    /// A pod that is being tried comes back: rejected and wanted again at once, or because something broke.
    PutBack {
        number: usize,
        broke: bool,
    },
    Activate(usize),
    /// A node comes if there is none, and goes if there is one.
    Node,
    Pass(Duration),
    /// The clock is put forward by so much.
    SetClock(Duration),
    Reload(Ageing),
}

const PODS: usize = 12;

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let put =
        (0..PODS, -3..3i32, 0..4u8).prop_map(|(number, priority, pace)| Act::Put { number, priority, pace });
    let act = prop_oneof![
        6 => put,
        1 => (0..PODS).prop_map(Act::Remove),
        6 => Just(Act::Pop),
        4 => (0..PODS, any::<bool>()).prop_map(|(number, broke)| Act::PutBack { number, broke }),
        1 => (0..PODS).prop_map(Act::Activate),
        2 => Just(Act::Node),
        3 => (0..4000u64).prop_map(|milliseconds| Act::Pass(Duration::from_millis(milliseconds))),
        1 => (0..4000u64).prop_map(|milliseconds| Act::SetClock(Duration::from_millis(milliseconds))),
        1 => ageing().prop_map(Act::Reload),
    ];
    prop::collection::vec(act, 0..120)
}

fn ageing() -> impl Strategy<Value = Ageing> {
    let every = prop::option::of(prop::sample::select(vec![0, 1, 700, 2000]));
    let ranked = prop::sample::select(vec![Ranked::None, Ranked::All, Ranked::OfEvenPriority]);
    (every, any::<bool>(), ranked, any::<bool>()).prop_map(|(every, depends_on_nodes, ranked, by_name)| {
        Ageing { every: every.map(Duration::from_millis), depends_on_nodes, ranked, by_name }
    })
}

struct Trial {
    queue: Queue,
    profiles: Vec<Profile>,
    sort: Ageing,
    cluster: TestCluster,
    now: Timestamp,
    preempting: FxHashSet<Arc<str>>,
    /// The pods that must be in the queue's books.
    known: BTreeSet<String>,
}

const PATIENCE: Patience = Patience {
    initial_backoff: Duration::from_secs(1),
    max_backoff: Duration::from_secs(4),
    max_unschedulable: Duration::from_secs(300),
};

fn profiles(sort: &Ageing) -> Vec<Profile> {
    let mut profile = Profile::new("default-scheduler");
    profile.queue_sort.push(Named { name: "Ageing", number: 0, plugin: Arc::new(sort.clone()) });
    profile.enqueue.push(Named { name: "Rejecting", number: 1, plugin: Arc::new(Rejecting) });
    vec![profile]
}

impl Trial {
    fn new(sort: Ageing) -> Self {
        let profiles = profiles(&sort);
        Trial {
            queue: Queue::new(PATIENCE, &profiles),
            profiles,
            sort,
            cluster: cluster(),
            now: Timestamp::from_seconds(1000),
            preempting: FxHashSet::default(),
            known: BTreeSet::new(),
        }
    }

    fn with_queue<R>(&mut self, act: impl FnOnce(&mut Queue, &QueueContext<'_>) -> R) -> R {
        let context = Context { now: self.now, ..self.cluster.context() };
        let context = QueueContext { context, profiles: &self.profiles, preempting: &self.preempting };
        act(&mut self.queue, &context)
    }

    fn apply(&mut self, act: Act) {
        match act {
            Act::Put { number, priority, pace } => {
                let pod = pod(&number.to_string()).priority(priority).label("pace", &pace.to_string());
                let pod = self.cluster.pod(pod);
                self.known.insert(number.to_string());
                self.with_queue(|queue, context| queue.update(context, &pod, 0, None));
            }
            Act::Remove(number) => {
                self.known.remove(&number.to_string());
                self.with_queue(|queue, context| queue.remove(context, &number.to_string()));
            }
            Act::Pop => {
                let expected = self.naive_first();
                let popped = self.with_queue(Queue::pop);
                assert_eq!(popped, expected, "{:?} at {:?}", self.sort, self.now);
            }
            Act::PutBack { number, broke } => {
                let Some(slot) = self.queue.in_flight_slot(&number.to_string()) else { return };
                let rejectors = if broke { BTreeSet::new() } else { BTreeSet::from(["Rejecting"]) };
                self.queue.get_mut(slot).is_wanted = true;
                self.with_queue(|queue, context| queue.put_back(context, slot, rejectors, BTreeSet::new()));
            }
            Act::Activate(number) => {
                self.with_queue(|queue, context| queue.activate(context, &number.to_string()));
            }
            Act::Node => {
                let actions = if self.cluster.snapshot().node_count() == 0 {
                    self.cluster.put(node("n"));
                    Actions::ADD
                } else {
                    self.cluster.remove_node("n");
                    Actions::DELETE
                };
                let event = ClusterEvent::node(actions);
                self.queue.hear(&event);
                let happening = Happening { event, what: What::Node { old: None, new: None } };
                self.with_queue(|queue, context| queue.react(context, happening, |_| true));
            }
            Act::Pass(duration) => {
                self.now = self.now.after(duration);
                self.with_queue(Queue::advance);
            }
            Act::SetClock(duration) => {
                self.now = self.now.after(duration);
                self.queue.move_times(|time| *time = time.after(duration));
            }
            Act::Reload(sort) => {
                (self.profiles, self.sort) = (profiles(&sort), sort);
                self.with_queue(|queue, context| queue.renew(context, PATIENCE));
            }
        }
        let kept: BTreeSet<String> = self.queue.uids().map(ToString::to_string).collect();
        assert_eq!(kept, self.known, "nobody is lost");
    }

    /// The pod that is to be tried now, found by sorting all.
    fn naive_first(&self) -> Option<Slot> {
        let context = Context { now: self.sort.changes().moment(self.now), ..self.cluster.context() };
        let order = |a: &Waiting, b: &Waiting| -> Ordering {
            self.sort.order(&context, &a.queued, &b.queued).then(a.arrival.cmp(&b.arrival))
        };
        let in_place = |place: Place| -> Vec<(Slot, &Waiting)> {
            let pods = self.queue.pods.iter().enumerate();
            let waiting = pods.filter_map(|(slot, waiting)| Some((slot, waiting.as_deref()?)));
            waiting.filter(|(_, waiting)| waiting.place == place).collect()
        };
        let mut active = in_place(Place::Active);
        active.sort_by(|(_, a), (_, b)| order(a, b));
        let mut backoff = in_place(Place::Backoff);
        let end = |waiting: &Waiting| waiting.backoff_end(&PATIENCE);
        backoff.sort_by(|(_, a), (_, b)| end(a).cmp(&end(b)).then(order(a, b)));
        active.into_iter().chain(backoff).next().map(|(slot, _)| slot)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_pod_that_is_tried_is_the_first_of_that_moment(sort in ageing(), acts in acts()) {
        let mut trial = Trial::new(sort);
        for act in acts {
            trial.apply(act);
        }
        while trial.naive_first().is_some() {
            trial.apply(Act::Pop);
        }
        trial.apply(Act::Pop);
    }
}

#[test]
fn what_does_not_concern_the_order_leaves_it_as_it_is() {
    let nodes = ClusterEvent::node(Actions::ADD);
    let mut order = Order::of(&[]);
    for (changes, is_stale) in [
        (OrderChanges::with_events([nodes]), true),
        (OrderChanges::with_changes([nodes], |_| true), true),
        (OrderChanges::with_changes([nodes], |_| false), false),
        (OrderChanges::with_changes([nodes], |_| false).and(OrderChanges::never()), false),
        (OrderChanges::never().and(OrderChanges::with_changes([nodes], |_| false)), false),
        (OrderChanges::with_changes([nodes], |_| false).and(OrderChanges::with_events([nodes])), true),
    ] {
        (order.changes, order.active_is_stale) = (changes, false);
        order.hear_of(&nodes, &Change::Node { old: None, new: None });
        assert_eq!(order.active_is_stale, is_stale, "{:?}", order.changes);
    }
    order.hear(&nodes);
    assert!(order.active_is_stale, "what is not told of one object is of all");
}
