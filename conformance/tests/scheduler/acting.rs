//! What plugins do besides answering: they observe, act on other pods, have things written, wait and are woken.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use supercargo_engine::Observation;
use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Conclusion, Context, Cycle, Effect, Enqueue, Extensions, Memory,
    News, NoArgs, Observe, Permit, PermitDecision, Plugin, PostFilter, PostFilterResult, PreFilter,
    PreFilterResult, Reads, Rehearsal, Rejections, Reserve, SharedMap, Status, StaysPending, Writes,
};
use supercargo_model::{Kind, KindId, LabelLookup, NodeRef, ObjectKey, Pod};
use supercargo_testkit::{node, pod};
use supercargo_world::{Plugins, TakenName};

use crate::only;
use crate::world::World;

/// A world whose profile has these plugins beside the default ones.
pub(crate) fn world_with(names: &[&str], add: impl FnOnce(&mut Plugins) -> Result<(), TakenName>) -> World {
    let enabled: Vec<String> = names.iter().map(|name| format!("{{name: {name}}}")).collect();
    World::with_plugins(
        &format!(
            "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{}]}}}}
",
            enabled.join(", ")
        ),
        add,
    )
}

/// What plugins counted since the last time, in order: the tests' way to see what they heard.
fn counted(world: &mut World) -> Vec<String> {
    let seen = world.scheduler.take_observations().into_iter();
    seen.filter_map(|seen| match seen {
        Observation::Counted { name, .. } => Some(name.into_owned()),
        Observation::ActsRefused { plugin, refusal, .. } => Some(format!("{plugin}: {}", refusal.words())),
        _ => None,
    })
    .collect()
}

/// Lets pods with the label `gang` go when three of them have a node, and has no pod tried before there are three.
struct Gang;

const GANG_SIZE: usize = 3;

/// The pods of the gang, and whether each has a node.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Members(SharedMap<Arc<str>, bool>);

impl Memory for Members {
    const NAME: &'static str = "Gang";
}

impl Plugin for Gang {
    const NAME: &'static str = "Gang";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Gang
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().post_filter().reserve().permit().enqueue().observe().remembers::<Members>()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.labels.label("gang").is_some()
    }
}

impl Observe for Gang {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::ADD.or(Actions::DELETE))]
    }

    fn observed(&self, _: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        let members = &mut acts.memory::<Members>().0;
        match change {
            Change::Pod { new: Some(pod), .. } if self.concerns(pod) => {
                members.insert(pod.uid.clone(), false);
            }
            Change::Pod { old: Some(pod), new: None } => _ = members.remove(&pod.uid),
            _ => {}
        }
    }
}

impl PreFilter for Gang {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let members = cycle.context.memories.get::<Members>().map_or(0, |members| members.0.len());
        if !self.concerns(cycle.pod) {
            PreFilterResult::Skip
        } else if members < GANG_SIZE {
            PreFilterResult::Reject(Status::unresolvable("the gang is not complete"))
        } else {
            PreFilterResult::AllNodes
        }
    }
}

impl Enqueue for Gang {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

impl Reserve for Gang {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Members>().0.insert(cycle.pod.uid.clone(), true);
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        let members = &mut acts.memory::<Members>().0;
        if let Some(has_node) = members.get_mut(&cycle.pod.uid) {
            *has_node = false;
        }
    }
}

impl Permit for Gang {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let members = acts.memory::<Members>().0.clone();
        let is_complete = members.iter().filter(|(_, has_node)| **has_node).count() >= GANG_SIZE;
        for (uid, _) in members.iter().filter(|(uid, _)| **uid != cycle.pod.uid) {
            // A gang that is too large for the cluster would have its members tried again and again.
            let is_eager = cycle.pod.labels.label("gang") == Some("eager");
            match (is_complete, is_eager) {
                (true, _) => acts.allow(uid),
                (false, true) => acts.activate(uid),
                (false, false) => {}
            }
        }
        if is_complete {
            PermitDecision::Allow
        } else {
            PermitDecision::wait_until(cycle.context.now.after(Duration::from_secs(60)))
        }
    }
}

impl PostFilter for Gang {
    fn post_filter(&self, _: &Cycle<'_>, _: &dyn Rejections, _: &dyn Rehearsal) -> PostFilterResult {
        PostFilterResult { status: Status::unschedulable("no gang"), ..PostFilterResult::default() }
    }

    /// One that fits nowhere makes the others give back what they have.
    fn stays_pending(&self, _: &Context<'_>, decided: &StaysPending<'_>, acts: &mut Acts<'_>) {
        if !self.concerns(decided.pod) {
            return;
        }
        acts.count(format!("{} stays pending", decided.pod.name), &[]);
        let waiting = acts.memory::<Members>().0.clone();
        for (uid, _) in waiting.iter().filter(|(_, has_node)| **has_node) {
            acts.reject(uid, Status::unschedulable(format!("{} does not fit", decided.pod.name)));
        }
    }
}

fn gang_world() -> World {
    let mut world = world_with(&["Gang"], Plugins::add::<Gang>);
    world.put(node("n1").cpu("2"));
    world
}

#[test]
fn the_siblings_of_a_gang_come_at_once() {
    let mut world = gang_world();
    world.put(node("n2").cpu("2"));
    world.run();
    for name in ["a", "b"] {
        world.put(pod(name).cpu("1").label("gang", "eager"));
        assert!(only(&world.run(), "FailedScheduling")[0].contains("the gang is not complete"));
    }
    world.pass(20);
    world.put(pod("c").cpu("1").label("gang", "eager"));
    let mut log = world.run();
    log.sort_unstable();
    assert_eq!(only(&log, "bind").len(), 3, "all in the moment in which the last one came: {log:?}");
}

#[test]
fn a_pod_that_fits_nowhere_makes_its_siblings_give_their_room_back() {
    let mut world = gang_world();
    world.run();
    for name in ["a", "b", "c"] {
        world.put(pod(name).cpu("1").label("gang", "x"));
    }
    let log = world.run();
    assert_eq!(only(&log, "bind"), [""; 0], "{log:?}");
    for name in ["a", "b"] {
        let refused = only(&log, &format!("FailedScheduling on {name}")).join("; ");
        assert!(refused.ends_with("1 c does not fit."), "{log:?}");
    }
    // Once for each decision that counts, though each is made twice, to check the index.
    let told = only(&log, "FailedScheduling on c").len();
    assert_eq!(counted(&mut world), vec!["c stays pending"; told], "{log:?}");
}

/// Delays pods as the label `delay` says: `seconds`, or until the node gets the label `open`.
struct Delays;

impl Plugin for Delays {
    const NAME: &'static str = "Delays";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Delays
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.permit()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.labels.label("delay").is_some()
    }
}

impl Permit for Delays {
    fn permit(&self, cycle: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let until = cycle.context.now.after(Duration::from_secs(10));
        PermitDecision::Wait { until, events: vec![ClusterEvent::node(Actions::UPDATE_NODE_LABEL)] }
    }

    fn reconsider(
        &self,
        cycle: &mut Cycle<'_>,
        _: &mut Acts<'_>,
        node: NodeRef<'_>,
        news: &News<'_>,
    ) -> Option<PermitDecision> {
        let now = cycle.context.now;
        match (cycle.pod.labels.label("delay"), news) {
            (Some("time"), News::TimedOut) => Some(PermitDecision::Allow),
            (Some("forever"), News::TimedOut) => {
                Some(PermitDecision::wait_until(now.after(Duration::from_secs(100))))
            }
            (Some("past"), News::TimedOut) => Some(PermitDecision::wait_until(now)),
            (Some("label"), News::Changed(_)) => match node.label("gate") {
                Some("open") => Some(PermitDecision::Allow),
                Some("shut") => Some(PermitDecision::Reject(Status::unschedulable("it is shut"))),
                _ => None,
            },
            _ => None,
        }
    }
}

fn delay_world(delay: &str) -> World {
    let mut world = world_with(&["Delays"], Plugins::add::<Delays>);
    world.put(node("n1").cpu("4"));
    world.put(pod("a").cpu("1").label("delay", delay));
    world.run();
    world
}

#[test]
fn a_pod_may_be_allowed_when_its_time_is_over() {
    let mut world = delay_world("time");
    assert_eq!(only(&world.pass(9), "bind"), [""; 0]);
    assert_eq!(only(&world.pass(1), "bind"), ["bind a to n1"]);
}

#[test]
fn a_pod_waits_for_what_happens_and_is_rejected_in_time_by_default() {
    let rejected = "1 rejected due to timeout after waiting 10s at plugin Delays.";
    for (gate, expected) in [("open", "bind a"), ("shut", "1 it is shut."), ("ajar", rejected)] {
        let mut world = delay_world("label");
        world.pass(3);
        world.change("Node n1", &json!({"metadata": {"labels": {"gate": gate}}}));
        let mut log = world.run();
        assert_eq!(log.is_empty(), gate == "ajar", "{log:?}");
        log.extend(world.pass(7));
        assert!(log.iter().any(|line| line.contains(expected)), "{gate}: {log:?}");
    }
}

#[test]
fn nobody_waits_for_more_than_a_quarter_of_an_hour_whatever_the_plugin_says() {
    let mut world = delay_world("forever");
    assert_eq!(only(&world.pass(890), "FailedScheduling"), [""; 0]);
    let log = world.pass(20);
    // The last of its waits was cut short.
    let message = "1 rejected due to timeout after waiting 1m30s at plugin Delays.";
    assert!(only(&log, "FailedScheduling").iter().any(|line| line.ends_with(message)), "{log:?}");

    let mut world = delay_world("past");
    let log = world.pass(11);
    assert!(
        log.iter().any(|line| line.contains("after waiting 10s")),
        "a time that has passed ends it: {log:?}"
    );
}

/// Writes down how many pods a `Ledger` is about, and counts everything that it hears.
struct Books;

#[derive(Deserialize)]
struct Ledger {}

impl Kind for Ledger {
    const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Ledger", plural: "ledgers" };
}

/// How long a failed write waits.
const PAUSE: Duration = Duration::from_secs(5);

impl Plugin for Books {
    const NAME: &'static str = "Books";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Books
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.observe()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().kind::<Ledger>().finished_pods()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().patch_status::<Ledger>()
    }
}

impl Books {
    fn write(context: &Context<'_>, acts: &mut Acts<'_>) {
        for (key, _) in context.cluster.objects().all::<Ledger>() {
            let patch = json!({"status": {"nodes": context.cluster.node_count()}});
            acts.order(Effect::Patch {
                kind: Ledger::ID,
                key: ObjectKey::clone(key),
                subresource: Some("status"),
                patch,
            });
        }
    }
}

impl Observe for Books {
    fn events(&self) -> Vec<ClusterEvent> {
        let changes = [ClusterEvent::pod(Actions::ALL), ClusterEvent::node(Actions::ALL)];
        changes
            .into_iter()
            .chain([ClusterEvent::kind(Ledger::ID, Actions::ADD.or(Actions::DELETE))])
            .collect()
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        acts.count(format!("started with {} nodes", context.cluster.node_count()), &[]);
        Self::write(context, acts);
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        let words = |is_old, is_new| match (is_old, is_new) {
            (false, _) => "came",
            (true, true) => "changed",
            (true, false) => "went",
        };
        let heard = match change {
            Change::Pod { old, new } => {
                let node = |pod: &Pod| pod.node_name.clone().unwrap_or_else(|| "nowhere".into());
                let either = new.or(*old).expect("one of them");
                let places: Vec<Arc<str>> = [old, new].into_iter().flatten().map(|pod| node(pod)).collect();
                format!("{} {} {}", either.name, words(old.is_some(), new.is_some()), places.join(" "))
            }
            Change::Node { old, new } => {
                let either = new.or(*old).expect("one of them");
                Self::write(context, acts);
                format!("{} {}", either.name(), words(old.is_some(), new.is_some()))
            }
            Change::Object { old, new } => {
                let either = new.or(*old).expect("one of them");
                Self::write(context, acts);
                format!("{} {}", either.key.name, words(old.is_some(), new.is_some()))
            }
        };
        acts.count(heard, &[]);
    }

    fn finished(&self, _: &Context<'_>, pod: &Pod, has_succeeded: bool, acts: &mut Acts<'_>) {
        acts.count(format!("{} finished {has_succeeded}", pod.name), &[]);
    }

    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        acts.count("woken", &[]);
        Self::write(context, acts);
    }

    fn answered(&self, context: &Context<'_>, _: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        if let Some(error) = conclusion.error() {
            acts.count(format!("failed: {error}"), &[]);
            acts.wake_at(context.now.after(PAUSE));
        }
    }
}

fn books_world() -> World {
    world_with(&["Books"], Plugins::add::<Books>)
}

fn ledger() -> serde_json::Value {
    json!({"apiVersion": "example.com/v1", "kind": "Ledger", "metadata": {"namespace": "default", "name": "main"}})
}

#[test]
fn a_plugin_hears_of_everything_that_comes_changes_and_goes() {
    let mut world = books_world();
    world.put(node("n1").cpu("4"));
    assert_eq!(counted(&mut world), [""; 0], "it has not begun");
    world.run();
    assert_eq!(counted(&mut world), ["started with 1 nodes"]);
    world.put(pod("a").cpu("1"));
    assert_eq!(counted(&mut world), ["a came nowhere"]);
    world.run();
    assert_eq!(counted(&mut world), ["a changed nowhere n1"], "when the API server says so, and once");
    world.put(node("n2").cpu("4"));
    world.change("Node n2", &json!({"metadata": {"labels": {"x": "y"}}}));
    world.remove("Node n2");
    assert_eq!(counted(&mut world), ["n2 came", "n2 changed", "n2 went"]);
    world.change("Pod a", &json!({"status": {"phase": "Succeeded"}}));
    assert_eq!(counted(&mut world), ["a went n1", "a finished true"]);
    world.put(pod("b").cpu("9"));
    world.run();
    counted(&mut world);
    world.remove("Pod b");
    assert_eq!(counted(&mut world), ["b went nowhere"]);
}

#[test]
fn a_status_is_kept_and_a_write_that_fails_is_tried_again_later() {
    let mut world = books_world();
    world.put(node("n1").cpu("4"));
    world.run();
    world.put(ledger());
    assert_eq!(world.run(), ["patch Ledger main"]);
    assert_eq!(world.object("Ledger main")["status"]["nodes"], 1);
    world.fail("patch", "the server is busy");
    world.put(node("n2").cpu("4"));
    assert_eq!(world.run(), ["patch Ledger main: the server is busy"]);
    counted(&mut world);
    assert_eq!(world.pass(4), [""; 0]);
    assert_eq!(world.pass(1), ["patch Ledger main: the server is busy"]);
    world.heal();
    assert_eq!(world.pass(5), ["patch Ledger main"]);
    assert_eq!(world.object("Ledger main")["status"]["nodes"], 2);
    assert_eq!(counted(&mut world), ["woken", "failed: the server is busy", "woken"]);
    assert_eq!(world.pass(1000), [""; 0], "and that is all");
}

#[test]
fn an_order_that_is_one_too_many_is_answered_and_can_be_given_again() {
    let mut world = books_world();
    world.set_slow(true);
    for number in 0..100 {
        let mut ledger = ledger();
        ledger["metadata"]["name"] = format!("ledger-{number}").into();
        world.put(ledger);
    }
    world.run();
    // Each of them orders a hundred patches, of which 8192 may be open.
    for number in 0..82 {
        world.put(node(&format!("n{number}")));
    }
    world.run();
    let refused = counted(&mut world).iter().filter(|seen| seen.starts_with("Books: ")).count();
    assert_eq!(refused, 8_300 - 8_192);
    world.pass(1);
    let answered = counted(&mut world);
    assert_eq!(answered.len(), refused, "{answered:?}");
    assert!(
        answered.iter().all(|seen| seen.starts_with("failed: more than 8192 orders of plugins wait")),
        "{answered:?}"
    );
    world.set_slow(false);
    world.catch_up();
    assert_eq!(world.object("Ledger ledger-99")["status"]["nodes"], 80);
    world.pass(5);
    assert_eq!(world.object("Ledger ledger-99")["status"]["nodes"], 82);
}

#[test]
fn only_a_leader_writes_and_a_new_one_begins_anew() {
    let mut world = books_world();
    world.put(node("n1").cpu("4"));
    world.put(ledger());
    world.scheduler.set_leading(false, world.now());
    assert_eq!(world.run(), [""; 0]);
    let dropped = "Books: this replica does not lead";
    assert_eq!(counted(&mut world), ["started with 1 nodes", dropped]);
    world.put(node("n2").cpu("4"));
    assert_eq!(world.run(), [""; 0]);
    assert_eq!(counted(&mut world), [dropped, "n2 came"]);
    world.scheduler.set_leading(true, world.now());
    assert_eq!(world.run(), ["patch Ledger main"]);
    assert_eq!(counted(&mut world), ["started with 2 nodes"]);
    assert_eq!(world.object("Ledger main")["status"]["nodes"], 2);
}

#[test]
fn who_begins_before_the_cluster_is_known_waits_for_that() {
    let mut world = books_world();
    world.scheduler = world.scheduler.with_unknown_cluster();
    world.put(node("n1").cpu("4"));
    world.run();
    world.put(node("n2").cpu("4"));
    assert_eq!(counted(&mut world), [""; 0]);
    world.scheduler.cluster_is_known(world.now());
    assert_eq!(counted(&mut world), ["started with 2 nodes"]);
}
