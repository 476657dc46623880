//! A clone of a world and its original go their own ways: each does what a world does in which the same happened from the beginning.

use serde::{Deserialize, Serialize};
use serde_json::json;
use supercargo_framework::{
    Acts, Cycle, Extensions, Memory, NoArgs, Plugin, Reads, Reserve, Score, SharedMap, Status,
};
use supercargo_model::NodeRef;
use supercargo_testkit::{node, pod};
use supercargo_world::World;

/// So many histories are tried, each cut in two at another place.
const SEEDS: u64 = 25;
/// So much happens before a world is cloned, and so much afterwards.
const STEPS: std::ops::Range<u64> = 5..40;

/// Prefers nodes that it has sent few pods to, and counts with each name what it would have to copy.
struct Fair;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Sent(SharedMap<String, i64>);

impl Memory for Sent {
    const NAME: &'static str = "Fair/Sent";
    const SAVED: Option<u32> = Some(1);
}

impl Plugin for Fair {
    const NAME: &'static str = "Fair";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Fair
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score().reserve().remembers::<Sent>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().memory().pods_by_label("app")
    }
}

impl Score for Fair {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let sent = cycle.context.memories.get::<Sent>().and_then(|sent| sent.0.get(&node.name().to_string()));
        let alike = cycle.context.pods().by_label("app", "a").len();
        Ok(100 - sent.copied().unwrap_or(0).min(90) - i64::try_from(alike % 10).unwrap_or(0))
    }
}

impl Reserve for Fair {
    fn reserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) -> Status {
        *acts.memory::<Sent>().0.get_or_default(&node.name().to_string()) += 1;
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) {
        *acts.memory::<Sent>().0.get_or_default(&node.name().to_string()) -= 1;
    }
}

/// Numbers that look like chance and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        // Knuth's multiplier; the high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Something happens in a world; what was ordered.
fn step(world: &mut World, chance: &mut Chance) -> Vec<String> {
    let (act, number, size) = (chance.below(16), chance.below(12), 1 + chance.below(4));
    let (node_name, pod_name) = (format!("n{}", number % 6), format!("p{number}"));
    match act {
        0..=2 => {
            let zone = ["x", "y", "z"][usize::try_from(size % 3).unwrap_or(0)];
            world.put(node(&node_name).cpu(&size.to_string()).pods(8).zone(zone));
        }
        3 if world.find(&format!("Node {node_name}")).is_some() => world.remove(&format!("Node {node_name}")),
        4..=8 if world.find(&format!("Pod {pod_name}")).is_none() => {
            let app = ["a", "b"][usize::try_from(number % 2).unwrap_or(0)];
            let priority = i32::try_from(100 * (number % 3)).unwrap_or(0);
            let asking = pod(&pod_name).cpu(&format!("{size}00m")).label("app", app).priority(priority);
            world.put(if number % 4 == 0 {
                asking.spread(json!({
                    "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": app}},
                }))
            } else {
                asking
            });
        }
        9..=10 if world.find(&format!("Pod {pod_name}")).is_some() => {
            world.remove(&format!("Pod {pod_name}"));
        }
        11 => world.fail("bind", "the server is away"),
        12 => world.heal(),
        13 => world.set_slow(size == 1),
        14 => return world.catch_up(),
        _ => {}
    }
    world.pass(chance.below(20))
}

fn history(world: &mut World, seed: u64, steps: u64) -> Vec<Vec<String>> {
    let mut chance = Chance(seed);
    (0..steps).map(|_| step(world, &mut chance)).collect()
}

/// How a world ends: its objects, where its pods are, and what its plugins did wrong.
fn end(world: &mut World) -> String {
    let names = (0..12).map(|number| format!("p{number}"));
    let there: Vec<String> = names.filter(|name| world.find(&format!("Pod {name}")).is_some()).collect();
    let places: Vec<String> = there.iter().map(|name| world.place_of(name)).collect();
    let objects: Vec<String> =
        ["Node", "Pod"].map(|kind| format!("{:?}", world.objects(kind).collect::<Vec<_>>())).into();
    let saved = world.saved().clone();
    format!("{places:?} {objects:?} {saved:?} {:?}", world.complaints())
}

#[test]
fn a_clone_and_its_original_go_their_own_ways() {
    let worlds: [fn() -> World; 2] = [World::new, World::of::<Fair>];
    for (seed, make) in (1..=SEEDS).flat_map(|seed| worlds.map(|make| (seed, make))) {
        let mut chance = Chance(seed);
        let length = STEPS.end - STEPS.start;
        let [before, after] = [(); 2].map(|()| STEPS.start + chance.below(length));
        let mut original = make();
        history(&mut original, seed, before);
        let mut clone = original.clone();
        // In turns, so that what one does would be seen by the other.
        let ways = [seed + 1_000, seed + 2_000];
        let mut chances = ways.map(Chance);
        let mut done = [Vec::new(), Vec::new()];
        for _ in 0..after {
            done[0].push(step(&mut original, &mut chances[0]));
            done[1].push(step(&mut clone, &mut chances[1]));
        }
        for (way, done, mut world) in [(ways[0], &done[0], original), (ways[1], &done[1], clone)] {
            let mut separate = make();
            history(&mut separate, seed, before);
            assert_eq!(&history(&mut separate, way, after), done, "seed {seed}, way {way}");
            assert_eq!(end(&mut separate), end(&mut world), "seed {seed}, way {way}");
        }
    }
}
