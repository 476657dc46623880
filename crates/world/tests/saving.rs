//! What plugins remember across restarts, kills and takeovers: what they have saved, and nothing else.

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Context, Cycle, Extensions, Memory, NoArgs, Observe, Plugin,
    PostBind, Reads, Reserve, SAVED_MEMORY_BYTES_MAX, SharedMap, Status,
};
use supercargo_model::NodeRef;
use supercargo_testkit::{node, pod};
use supercargo_world::World;

/// Counts the pods that were bound, which is saved, and those that were reserved, which is not; and notes what it finds when it begins.
struct Counter;

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Bound {
    pods: u32,
    /// How many nodes it heard of one by one.
    nodes: u32,
    /// What it remembered each time it began.
    found: Vec<u32>,
    filling: SharedMap<u32, String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Reserved(u32);

impl Memory for Bound {
    const NAME: &'static str = "Counter/Bound";
    const SAVED: Option<u32> = Some(3);
}

impl Memory for Reserved {
    const NAME: &'static str = "Counter/Reserved";
}

impl Plugin for Counter {
    const NAME: &'static str = "Counter";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Counter
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.reserve().post_bind().observe().remembers::<Bound>().remembers::<Reserved>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl Reserve for Counter {
    fn reserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Reserved>().0 += 1;
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

impl PostBind for Counter {
    fn post_bind(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        let bound = acts.memory::<Bound>();
        bound.pods += 1;
        if &*cycle.pod.name == "large" {
            bound.filling.insert(bound.pods, "x".repeat(SAVED_MEMORY_BYTES_MAX));
        }
    }
}

impl Observe for Counter {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::node(Actions::ADD)]
    }

    fn started(&self, _: &Context<'_>, acts: &mut Acts<'_>) {
        let bound = acts.memory::<Bound>();
        bound.found.push(bound.pods);
    }

    fn observed(&self, _: &Context<'_>, _: &Change<'_>, acts: &mut Acts<'_>) {
        acts.memory::<Bound>().nodes += 1;
    }
}

fn world() -> World {
    let mut world = World::of::<Counter>();
    world.put(node("n1"));
    bind(&mut world, &["a", "b"]);
    world
}

fn bind(world: &mut World, pods: &[&str]) {
    for name in pods {
        world.put(pod(name));
    }
    world.run();
    for name in pods {
        assert_eq!(world.node_of(name), Some("n1"));
    }
}

fn remembered(world: &mut World) -> (u32, u32) {
    let bound = world.memory::<Bound>().map_or(0, |bound| bound.pods);
    (bound, world.memory::<Reserved>().map_or(0, |reserved| reserved.0))
}

#[test]
fn a_restart_keeps_what_is_saved_and_loses_the_rest() {
    let mut world = world();
    assert_eq!(remembered(&mut world), (2, 2));
    world.restart();
    assert_eq!(remembered(&mut world), (2, 0));
    bind(&mut world, &["c"]);
    world.restart();
    assert_eq!(remembered(&mut world), (3, 0));
    assert_eq!(
        world.memory::<Bound>().expect("saved").found,
        [0, 2, 3],
        "it was there when the plugin began"
    );
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_kill_loses_what_came_since_the_last_time_and_no_more() {
    let mut world = world();
    world.pass(10);
    bind(&mut world, &["c"]);
    // What was written last is ten seconds old, so this is written at once; the next is not.
    bind(&mut world, &["d"]);
    world.crash();
    assert_eq!(remembered(&mut world), (3, 0));
    bind(&mut world, &["e"]);
    bind(&mut world, &["f"]);
    world.pass(9);
    world.crash();
    assert_eq!(remembered(&mut world), (4, 0), "the first change is saved at once");
    bind(&mut world, &["g"]);
    bind(&mut world, &["h"]);
    world.pass(10);
    world.crash();
    assert_eq!(remembered(&mut world), (6, 0));
}

#[test]
fn a_replica_that_takes_over_has_what_the_leader_wrote_last_and_not_its_own_books() {
    let mut world = world();
    world.pass(10);
    world.take_over();
    assert_eq!(remembered(&mut world), (2, 0));
    // What it noted when it began as a follower is gone: the leader began with nothing, and the replica with what the leader wrote.
    assert_eq!(world.memory::<Bound>().expect("saved").found, [0, 2]);
    bind(&mut world, &["c"]);
    world.take_over();
    assert_eq!(remembered(&mut world), (3, 0));

    // One that follows saves nothing of what its plugins note meanwhile, and forgets it when it leads.
    world.set_leading(false);
    let before = world.saved().clone();
    world.put(node("n2"));
    world.pass(20);
    let heard = world.memory::<Bound>().expect("noted").nodes;
    assert_eq!(world.saved(), &before);
    world.set_leading(true);
    assert_eq!(world.memory::<Bound>().expect("restored").nodes + 1, heard);
}

#[test]
fn what_cannot_be_read_is_dropped_and_told_of() {
    let entry = "memory.Counter_2fBound";
    let table = [
        (r#"{"version":2,"value":{}}"#, "it was saved under version 2, and the plugin knows version 3"),
        ("{", "it cannot be read: EOF while parsing an object at line 1 column 1"),
    ];
    for (text, reason) in table {
        let mut world = world();
        world.restart();
        assert!(world.saved()[entry].starts_with(r#"{"plugin":"Counter","version":3,"value":{"pods":2"#));
        world.saved().insert(entry.to_owned(), text.to_owned());
        world.crash();
        assert_eq!(remembered(&mut world), (0, 0));
        assert_eq!(world.complaints(), [format!("Counter: Counter/Bound is dropped: {reason}")]);
        bind(&mut world, &["c"]);
        world.restart();
        assert_eq!((remembered(&mut world), world.complaints()), ((1, 0), vec![]), "it is written anew");
    }
}

#[test]
fn what_fails_to_be_saved_is_tried_again_and_what_is_too_large_is_not_saved() {
    let mut world = World::of::<Counter>();
    world.put(node("n1"));
    world.fail("save memories", "the server is away");
    bind(&mut world, &["a", "b"]);
    world.pass(60);
    assert!(world.saved().is_empty());
    world.heal();
    world.pass(10);
    world.crash();
    assert_eq!(remembered(&mut world), (2, 0));

    bind(&mut world, &["large"]);
    world.restart();
    assert_eq!(remembered(&mut world), (0, 0), "better nothing than something old");
    let told = world.complaints();
    assert!(told[0].starts_with("Counter: Counter/Bound is not saved: it is too large"), "{told:?}");
}
