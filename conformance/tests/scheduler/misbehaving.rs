//! Plugins that misbehave: they panic, take long, or say what cannot be. Their pods get an error that says who it was; the
//! others go on.

use std::cell::Cell;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use supercargo_engine::{Observation, Stopwatch};
use supercargo_framework::{
    Acts, Context, Cycle, Effect, Extensions, Filter, Memory, News, NoArgs, NodeScore, Permit,
    PermitDecision, Plugin, PostBind, PostFilter, PostFilterResult, PreBind, PreFilter, PreFilterResult,
    PreScore, Rehearsal, Rejections, Reserve, Score, Status, StaysPending, Step,
};
use supercargo_model::{KindId, LabelLookup, NodeRef, ObjectKey, Pod, Row};
use supercargo_testkit::{node, pod};
use supercargo_world::Plugins;

use crate::acting::world_with;
use crate::only;
use crate::world::World;

/// Does what the label `bad` of a pod says, such as `panic-at-filter`.
struct Bad;

/// How many nodes were reserved.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Count(u32);

impl Memory for Count {
    const NAME: &'static str = "Bad";
}

/// What nobody said to remember.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Secret(u32);

impl Memory for Secret {
    const NAME: &'static str = "Secret";
}

thread_local! {
    static SECONDS: Cell<u64> = const { Cell::new(0) };
}

/// Misbehaves at a point, if that is what the pod wants.
fn misbehave(pod: &Pod, point: &str) {
    let Some((how, at)) = pod.labels.label("bad").and_then(|bad| bad.split_once("-at-")) else { return };
    match how {
        "panic" if at == point => panic!("on purpose at {point}"),
        "slow" if at == point => SECONDS.set(SECONDS.get() + 2),
        _ => {}
    }
}

impl Plugin for Bad {
    const NAME: &'static str = "Bad";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Bad
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        let points = points.pre_filter().filter().post_filter().pre_score().score();
        points.reserve().permit().pre_bind().post_bind().remembers::<Count>()
    }
}

impl PreFilter for Bad {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        misbehave(cycle.pod, "pre-filter");
        PreFilterResult::AllNodes
    }
}

impl Filter for Bad {
    fn filter(&self, cycle: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        misbehave(cycle.pod, "filter");
        Status::success()
    }
}

impl PostFilter for Bad {
    fn post_filter(&self, cycle: &Cycle<'_>, _: &dyn Rejections, _: &dyn Rehearsal) -> PostFilterResult {
        misbehave(cycle.pod, "post-filter");
        PostFilterResult { status: Status::unschedulable("no"), ..PostFilterResult::default() }
    }

    fn stays_pending(&self, _: &Context<'_>, decided: &StaysPending<'_>, _: &mut Acts<'_>) {
        misbehave(decided.pod, "stays-pending");
    }
}

impl PreScore for Bad {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        misbehave(cycle.pod, "pre-score");
        Status::success()
    }
}

impl Score for Bad {
    fn score(&self, cycle: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
        misbehave(cycle.pod, "score");
        Ok(if cycle.pod.labels.label("bad") == Some("score-101") { 101 } else { 50 })
    }

    fn normalize(&self, cycle: &Cycle<'_>, _: &mut [NodeScore]) -> Status {
        misbehave(cycle.pod, "normalize");
        Status::success()
    }
}

impl Reserve for Bad {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Count>().0 += 1;
        let count = acts.recall::<Count>().map_or(0, |count| count.0);
        acts.count(format!("{} is number {count}", cycle.pod.name), &[]);
        misbehave(cycle.pod, "reserve");
        if cycle.pod.labels.label("bad") == Some("remembers-in-secret") {
            acts.memory::<Secret>().0 += 1;
        }
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.memory::<Count>().0 -= 1;
        misbehave(cycle.pod, "unreserve");
    }
}

impl Permit for Bad {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        misbehave(cycle.pod, "permit");
        match cycle.pod.labels.label("bad") {
            Some("writes-in-an-act") => {
                acts.order(undeclared_patch("b"));
                acts.wake_at(cycle.context.now);
                PermitDecision::Allow
            }
            Some("panic-at-reconsider") => {
                PermitDecision::wait_until(cycle.context.now.after(Duration::from_secs(5)))
            }
            Some("panic-at-unreserve") => PermitDecision::Reject(Status::unschedulable("not you")),
            _ => PermitDecision::Allow,
        }
    }

    fn reconsider(
        &self,
        cycle: &mut Cycle<'_>,
        _: &mut Acts<'_>,
        _: NodeRef<'_>,
        _: &News<'_>,
    ) -> Option<PermitDecision> {
        misbehave(cycle.pod, "reconsider");
        None
    }
}

/// Something that the plugin does not say that it writes.
fn undeclared_patch(name: &str) -> Effect {
    Effect::Patch {
        kind: KindId { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" },
        key: ObjectKey { namespace: "default".into(), name: name.into() },
        subresource: None,
        patch: json!({}),
    }
}

impl PreBind for Bad {
    fn pre_bind(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        misbehave(cycle.pod, "pre-bind");
        match cycle.pod.labels.label("bad") {
            Some("writes-in-a-step") => Step::perform(undeclared_patch("a")),
            Some("binds") => Step::perform(Effect::Bind { pod: cycle.pod.clone(), node: "n1".into() }),
            _ => Step::Done(Status::success()),
        }
    }
}

impl PostBind for Bad {
    fn post_bind(&self, cycle: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {
        misbehave(cycle.pod, "post-bind");
    }
}

fn world() -> World {
    let mut world = world_with(&["Bad"], Plugins::add::<Bad>);
    world.put(node("n1").cpu("4"));
    world.put(node("n2").cpu("4"));
    world
}

fn panics(world: &mut World) -> Vec<String> {
    let seen = world.scheduler.take_observations().into_iter();
    seen.filter_map(|seen| match seen {
        Observation::PluginPanicked { plugin, pod, message } => {
            Some(format!("{plugin} for {}: {message}", pod.name))
        }
        _ => None,
    })
    .collect()
}

#[test]
fn a_plugin_that_panics_costs_its_pod_a_backoff_and_nobody_else_anything() {
    let points = [
        "pre-filter",
        "filter",
        "pre-score",
        "score",
        "normalize",
        "reserve",
        "permit",
        "reconsider",
        "pre-bind",
    ];
    for point in points {
        let mut world = world();
        world.put(pod("a").cpu("1").label("bad", &format!("panic-at-{point}")));
        world.put(pod("b").cpu("1"));
        let mut log = world.run();
        log.extend(world.pass(6));
        assert_eq!((only(&log, "bind b").len(), only(&log, "bind a").len()), (1, 0), "{point}: {log:?}");
        let error = format!("plugin \"Bad\" panicked: on purpose at {point}");
        let told = only(&log, "FailedScheduling on a");
        assert!(told.iter().all(|line| line.ends_with(&error)) && !told.is_empty(), "{point}: {log:?}");
        assert!((1..6).contains(&told.len()), "it is tried again after backoffs: {told:?}");
        let panics = panics(&mut world);
        assert_eq!(panics.len(), told.len(), "{panics:?}");
        assert_eq!(panics[0], format!("Bad for a: on purpose at {point}"));
        assert_eq!(world.scheduler.books().binding.len(), 0);
        // It is mended: the pod goes where it can.
        world.change("Pod a", &json!({"metadata": {"labels": {"bad": "no"}}}));
        assert_eq!(only(&world.pass(20), "bind").len(), 1, "{point}");
    }
}

#[test]
fn a_plugin_that_remembers_without_saying_so_is_told_so() {
    let mut world = world();
    world.put(pod("a").cpu("1").label("bad", "remembers-in-secret"));
    let log = world.run();
    let told = "plugin \"Bad\" panicked: the plugin Bad remembers Secret without saying so: \
                list `.remembers::<…>()` in its `extensions`";
    let events = only(&log, "FailedScheduling on a");
    assert!(!events.is_empty() && events.iter().all(|line| line.ends_with(told)), "{log:?}");
    world.put(pod("b").cpu("1"));
    assert_eq!(only(&world.run(), "bind").len(), 1, "others are scheduled");
}

#[test]
fn a_plugin_that_panics_when_it_is_too_late_changes_nothing() {
    for (point, cpu, bound) in [
        ("post-bind", "1", true),
        ("unreserve", "1", false),
        ("post-filter", "9", false),
        ("stays-pending", "9", false),
    ] {
        let mut world = world();
        world.put(pod("a").cpu(cpu).label("bad", &format!("panic-at-{point}")));
        let log = world.run();
        assert_eq!(!only(&log, "bind").is_empty(), bound, "{point}: {log:?}");
        assert!(panics(&mut world)[0].ends_with(point), "{point}");
        world.put(pod("b").cpu("1"));
        assert_eq!(only(&world.run(), "bind").len(), 1, "others are scheduled");
    }
}

#[test]
fn what_a_cycle_remembered_is_undone_when_a_plugin_panics() {
    let mut world = world();
    let mut numbers = Vec::new();
    for (name, bad) in [
        ("a", "no"),
        ("b", "panic-at-reserve"),
        ("c", "panic-at-permit"),
        ("d", "panic-at-unreserve"),
        ("e", "no"),
    ] {
        world.put(pod(name).cpu("1").label("bad", bad));
        world.run();
        numbers.extend(world.scheduler.take_observations().into_iter().filter_map(|seen| match seen {
            Observation::Counted { name, .. } => Some(name.into_owned()),
            _ => None,
        }));
    }
    // What those asked for that panicked is not done either. The one that is refused counts until it gives back, and its
    // panic undoes that: the plugin's own mistake.
    assert_eq!(numbers.first().map(String::as_str), Some("a is number 1"));
    assert!(!numbers.iter().any(|line| line.starts_with('b') || line.starts_with('c')), "{numbers:?}");
    assert!(numbers.iter().any(|line| line == "d is number 2"), "{numbers:?}");
}

#[test]
fn a_score_that_cannot_be_is_an_error_that_says_whose() {
    let mut world = world();
    world.put(pod("a").cpu("1").label("bad", "score-101"));
    world.put(pod("b").cpu("1"));
    let log = world.pass(5);
    let error =
        "plugin \"Bad\" returns an invalid score 101, it should in the range of [0, 100] after normalizing";
    let told = only(&log, "FailedScheduling on a");
    assert!(told.iter().all(|line| line.ends_with(error)) && !told.is_empty(), "{log:?}");
    assert_eq!(only(&log, "bind").len(), 1, "the other one is scheduled");
}

#[test]
fn what_a_plugin_does_not_declare_is_not_written() {
    for (bad, order) in
        [("writes-in-a-step", "patch configmaps default/a"), ("binds", "bind pod default/a to node n1")]
    {
        let mut world = world();
        world.put(pod("a").cpu("1").label("bad", bad));
        world.put(pod("b").cpu("1"));
        let log = world.run();
        let error = format!("plugin \"Bad\" wants to {order}, but does not declare that it writes this");
        assert!(only(&log, "FailedScheduling on a").iter().all(|line| line.ends_with(&error)), "{log:?}");
        assert!(!only(&log, "FailedScheduling on a").is_empty(), "{log:?}");
        assert_eq!((only(&log, "bind").len(), only(&log, "patch").len()), (1, 0), "{log:?}");
    }
    let mut world = world();
    world.put(pod("a").cpu("1").label("bad", "writes-in-an-act"));
    let log = world.run();
    assert_eq!((only(&log, "bind").len(), only(&log, "patch").len()), (1, 0), "the pod goes on: {log:?}");
    let seen = world.scheduler.take_observations().into_iter();
    let refused = seen.filter_map(|seen| match seen {
        Observation::ActsRefused { plugin, refusal, .. } => Some(format!("{plugin}: {}", refusal.words())),
        _ => None,
    });
    assert_eq!(
        refused.collect::<Vec<_>>(),
        [
            "Bad: plugin \"Bad\" wants to patch configmaps default/b, but does not declare that it writes this",
            "Bad: only plugins that observe can be woken"
        ]
    );
}

#[test]
fn a_plugin_that_computes_for_a_second_is_named() {
    for point in ["filter", "score", "reserve", "permit", "pre-bind", "post-bind"] {
        let mut world = world();
        world.scheduler = world.scheduler.with_stopwatch(Stopwatch(|| Duration::from_secs(SECONDS.get())));
        world.put(pod("a").cpu("1").label("bad", &format!("slow-at-{point}")));
        assert_eq!(only(&world.run(), "bind").len(), 1);
        let slow: Vec<Observation> = world.scheduler.take_observations();
        let named = slow.iter().find_map(|seen| match seen {
            Observation::PluginSlow { plugin, took, .. } => Some((*plugin, took.as_secs())),
            _ => None,
        });
        assert!(named.is_some_and(|(plugin, seconds)| plugin == "Bad" && seconds >= 2), "{point}: {named:?}");
    }
    let mut world = world();
    world.put(pod("a").cpu("1"));
    world.run();
    let seen = world.scheduler.take_observations();
    assert!(!seen.iter().any(|seen| matches!(seen, Observation::PluginSlow { .. })), "{seen:?}");
}
