//! Answers from outside: pods go by them while they are fresh, and by nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use supercargo_engine::Observation;
use supercargo_framework::{
    Actions, Args, ClusterEvent, Cycle, Endpoint, Enqueue, Extensions, Facts, Filter, LeftOutReason, Plugin,
    PrometheusSource, Query, Reads, Score, Status, fact_kind,
};
use supercargo_model::{Kind, KindId, NodeRef, Timestamp};
use supercargo_testkit::{node, pod};

use crate::world::{InTests as _, World};

/// How busy a node is, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Load(i64);

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

/// How busy a node may be for a pod to go there.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Limit(i64);

impl Kind for Limit {
    const ID: KindId = fact_kind("Limit", "limits");
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
struct LoadArgs {
    expression: String,
    seconds: u64,
}

impl Default for LoadArgs {
    fn default() -> Self {
        LoadArgs { expression: "load".to_owned(), seconds: 10 }
    }
}

impl Args for LoadArgs {}

/// Prefers nodes that are not busy, and lets no pod go where it is too busy.
struct ByLoad(LoadArgs);

impl Plugin for ByLoad {
    const NAME: &'static str = "ByLoad";
    type Args = LoadArgs;

    fn new(args: LoadArgs) -> Self {
        ByLoad(args)
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().score().enqueue()
    }

    fn reads(&self) -> Reads {
        let source = || PrometheusSource::new(Endpoint::new("http://127.0.0.1:9"), &self.0.expression);
        let load = Query::per_node::<Load>("load", source(), |answer, nodes| {
            nodes.put_latest(answer.series()?, "instance", |value| Load(value as i64));
            Ok(())
        });
        let limit = Query::whole::<Limit>("limit", source(), |_| Ok(Limit(0)));
        let interval = Duration::from_secs(self.0.seconds);
        Reads::nothing().query(load.every(interval)).query(limit.every(interval))
    }
}

fn load(cycle: &Cycle<'_>, node: NodeRef<'_>) -> Option<i64> {
    cycle.object_of::<Load>(node).map(|load| load.0)
}

impl Filter for ByLoad {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let limit = cycle.cluster().objects().get::<Limit>("", "limit").map_or(100, |limit| limit.0);
        match load(cycle, node) {
            Some(load) if load > limit => Status::unschedulable("node(s) were too busy"),
            _ => Status::success(),
        }
    }
}

impl Score for ByLoad {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(load(cycle, node).map_or(50, |load| 100 - load))
    }
}

impl Enqueue for ByLoad {
    fn events(&self) -> Vec<ClusterEvent> {
        [Load::ID, Limit::ID].map(|kind| ClusterEvent::kind(kind, Actions::ALL)).to_vec()
    }
}

fn config(args: &Value) -> String {
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "plugins": {"multiPoint": {"enabled": [{"name": "ByLoad", "weight": 100}]}},
            "pluginConfig": [{"name": "ByLoad", "args": args}],
        }],
    })
    .to_string()
}

fn world() -> World {
    let mut world = World::with_plugins(&config(&json!({})), supercargo_world::Plugins::add::<ByLoad>);
    for (name, address) in [("n1", "10.0.0.1"), ("n2", "10.0.0.2"), ("n3", "fd00::3")] {
        let addresses =
            json!([{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": "x"}]);
        world.put(node(name).cpu("100").with(json!({"status": {"addresses": addresses}})));
    }
    world
}

fn loads(world: &mut World) -> BTreeMap<String, i64> {
    let objects = world.scheduler.cluster().objects();
    objects.all::<Load>().map(|(key, load)| (key.name.to_string(), load.0)).collect()
}

fn told(world: &World, facts: &[(&str, i64)]) -> Result<Facts, String> {
    let facts = facts.iter().map(|(node, load)| (*node, Load(*load)));
    Ok(Facts::per_node(facts.collect::<Vec<_>>(), world.now()))
}

fn of<const N: usize>(loads: [(&str, i64); N]) -> BTreeMap<String, i64> {
    loads.into_iter().map(|(node, load)| (node.to_owned(), load)).collect()
}

fn place(world: &mut World, name: &str) -> Option<String> {
    world.put(pod(name).cpu("1"));
    world.run();
    world.node_of(name).map(str::to_owned)
}

#[test]
fn pods_go_by_what_was_answered_as_long_as_it_is_fresh() {
    let mut world = world();
    let answer = told(&world, &[("n1", 90), ("n2", 10), ("n3", 70)]);
    let taken = world.answered("load", answer).expect("it is asked");
    assert_eq!((taken.facts, taken.changed, taken.gone), (3, 3, 0));
    assert_eq!(place(&mut world, "a").as_deref(), Some("n2"));

    // The same again changes no object, but renews them.
    world.pass(20);
    let before = world.scheduler.cluster().objects().version(Load::ID);
    let answer = told(&world, &[("n1", 90), ("n2", 10), ("n3", 70)]);
    let taken = world.answered("load", answer).expect("it is asked");
    assert_eq!((taken.facts, taken.changed, taken.gone), (3, 0, 0));
    assert_eq!(world.scheduler.cluster().objects().version(Load::ID), before);

    // What is not repeated is gone; what is told otherwise changes.
    let answer = told(&world, &[("n1", 5), ("n2", 10)]);
    let taken = world.answered("load", answer).expect("it is asked");
    assert_eq!((taken.facts, taken.changed, taken.gone), (2, 1, 1));
    assert_eq!(loads(&mut world), of([("n1", 5), ("n2", 10)]));
    assert_eq!(place(&mut world, "b").as_deref(), Some("n1"));

    // Without an answer facts stay for three intervals.
    world.pass(29);
    assert_eq!(world.answered("load", Err("the source is down".to_owned())), None);
    assert_eq!(loads(&mut world).len(), 2);
    world.scheduler.take_observations();
    world.pass(1);
    assert_eq!(loads(&mut world), of([]));
    let expired = Observation::FactsExpired { query: "load".to_owned(), facts: 2 };
    assert!(world.scheduler.take_observations().contains(&expired));
    assert_eq!(world.scheduler.gauges().facts, [("limit".to_owned(), 0), ("load".to_owned(), 0)].into());
}

#[test]
fn a_node_is_meant_by_its_name_or_its_address_with_or_without_a_port() {
    for (called, meant) in [
        ("n1", Some("n1")),
        ("n1:9100", Some("n1")),
        ("10.0.0.2", Some("n2")),
        ("10.0.0.2:9100", Some("n2")),
        ("fd00::3", Some("n3")),
        ("[fd00::3]:9100", Some("n3")),
        ("[fd00::3]", Some("n3")),
        ("n4", None),
        ("10.0.0.9:9100", None),
        ("n1.example.com", None),
        ("[n1", None),
        (":9100", None),
        ("x", None),
    ] {
        let mut world = world();
        let answer = told(&world, &[(called, 1)]);
        let taken = world.answered("load", answer).expect("it is asked");
        let expected = meant.map(|node| (node.to_owned(), 1)).into_iter().collect();
        assert_eq!(loads(&mut world), expected, "{called}");
        let unknown: Vec<_> = taken.left_out.iter().collect();
        let expected = if meant.is_some() { vec![] } else { vec![(LeftOutReason::UnknownNode, 1)] };
        assert_eq!(unknown, expected, "{called}");
    }
    let mut world = world();
    world.put(
        node("n4").with(json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}})),
    );
    let answer = told(&world, &[("10.0.0.1", 1)]);
    world.answered("load", answer);
    assert_eq!(loads(&mut world), of([]), "two nodes have the address");
}

#[test]
fn what_is_told_twice_of_a_node_counts_for_nothing() {
    let mut world = world();
    let answer = told(&world, &[("n1", 1), ("10.0.0.1:9100", 2), ("n1", 1), ("n2", 3)]);
    let taken = world.answered("load", answer).expect("it is asked");
    assert_eq!(loads(&mut world), of([("n2", 3)]));
    assert_eq!(taken.left_out.iter().collect::<Vec<_>>(), [(LeftOutReason::Duplicate, 3)]);
}

#[test]
fn facts_end_by_when_they_were_measured_and_move_with_the_clock() {
    let mut world = world();
    let earlier = Timestamp::from_nanoseconds(world.now().nanoseconds() - 20_000_000_000);
    let ahead = world.now().after(Duration::from_secs(1000));
    let taken = world.answered("load", Ok(Facts::per_node([("n1", Load(1))], earlier))).expect("it is asked");
    assert_eq!(taken.facts, 1);
    world.pass(9);
    world.set_clock(-3600);
    world.pass(0);
    assert_eq!(loads(&mut world).len(), 1);
    world.pass(1);
    assert_eq!(loads(&mut world), of([]), "ten seconds were left");

    let _ = world.answered("load", Ok(Facts::per_node([("n1", Load(1))], ahead)));
    world.pass(30);
    assert_eq!(loads(&mut world), of([]), "nothing is fresh for longer than what was measured now");
    let taken = world.answered("load", Ok(Facts::per_node([("n1", Load(1))], earlier))).expect("it is asked");
    assert_eq!(taken.left_out.total(), 0, "the clock was set back, so that this lies ahead");
    world.pass(3600);
    let taken = world.answered("load", Ok(Facts::per_node([("n1", Load(1))], earlier))).expect("it is asked");
    assert_eq!(taken.left_out.iter().collect::<Vec<_>>(), [(LeftOutReason::Old, 1)]);
}

#[test]
fn nothing_becomes_of_an_answer_that_nobody_waits_for() {
    let mut world = world();
    let now = world.now();
    let answer = told(&world, &[("n1", 1)]);
    assert_eq!(world.answered("other", answer.clone()), None);
    assert_eq!(world.answered("limit", answer), None, "it is of another kind and form");
    assert_eq!(world.answered("load", Ok(Facts::whole_at("load", Load(1), now))), None, "of another form");
    assert_eq!(world.answered("load", Ok(Facts::per_node([("n1", Limit(1))], now))), None, "of another kind");
    assert_eq!(loads(&mut world), of([]));
}

#[test]
fn pods_that_wait_for_facts_are_tried_when_these_change_or_end() {
    let mut world = world();
    let now = world.now();
    world.answered("limit", Ok(Facts::whole_at("limit", Limit(50), now)));
    let answer = told(&world, &[("n1", 60), ("n2", 70), ("n3", 80)]);
    world.answered("load", answer);
    assert_eq!(place(&mut world, "a"), None);
    world.pass(5);
    let answer = told(&world, &[("n1", 60), ("n2", 40), ("n3", 80)]);
    world.answered("load", answer);
    world.pass(3);
    assert_eq!(world.node_of("a"), Some("n2"));

    let answer = told(&world, &[("n1", 60), ("n2", 60), ("n3", 60)]);
    world.answered("load", answer);
    assert_eq!(place(&mut world, "b"), None);
    let now = world.now();
    world.answered("limit", Ok(Facts::whole_at("limit", Limit(100), now)));
    world.pass(3);
    assert!(world.node_of("b").is_some(), "the limit is another one");

    let now = world.now();
    world.answered("limit", Ok(Facts::whole_at("limit", Limit(50), now)));
    assert_eq!(place(&mut world, "c"), None);
    world.pass(30);
    assert!(world.node_of("c").is_some(), "nobody knows any more that the nodes are busy");
}

#[test]
fn facts_go_with_their_nodes_and_stay_over_a_reload_that_asks_the_same() {
    let mut world = world();
    let now = world.now();
    let answer = told(&world, &[("n1", 1), ("n2", 2), ("n3", 3)]);
    world.answered("load", answer);
    world.answered("limit", Ok(Facts::whole_at("limit", Limit(50), now)));
    world.remove("Node n3");
    world.put(node("n3"));
    assert_eq!(loads(&mut world), of([("n1", 1), ("n2", 2)]), "another machine may have the name");

    world.reconfigure(&config(&json!({"seconds": 20})));
    assert_eq!(loads(&mut world), of([("n1", 1), ("n2", 2)]));
    let intervals: Vec<u64> = world.scheduler.queries().map(|query| query.interval().as_secs()).collect();
    assert_eq!(intervals, [20, 20]);
    world.reconfigure(&config(&json!({"expression": "other"})));
    assert_eq!(loads(&mut world), of([]), "what was answered means something else");
    let answer = told(&world, &[("n1", 1)]);
    world.answered("load", answer);
    assert_eq!(loads(&mut world).len(), 1);
    world.reconfigure("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n");
    assert_eq!((loads(&mut world), world.scheduler.queries().count()), (of([]), 0));
    assert_eq!(world.scheduler.next_deadline(), None, "nothing is waited for");
}

#[test]
fn an_answer_that_comes_before_the_cluster_is_known_counts_when_it_is() {
    let mut world = World::with_plugins(&config(&json!({})), supercargo_world::Plugins::add::<ByLoad>);
    world.scheduler = world.scheduler.clone().with_unknown_cluster();
    world.put(node("n1").cpu("100"));
    for loads in [[("n1", 1), ("n2", 99)], [("n1", 90), ("10.0.0.2:9100", 10)]] {
        let answer = told(&world, &loads);
        let taken = world.answered("load", answer).expect("it is asked");
        assert_eq!((taken.facts, taken.left_out.total()), (0, 0), "nobody knows which nodes there are");
    }
    let addresses = json!([{"type": "InternalIP", "address": "10.0.0.2"}]);
    world.put(node("n2").cpu("100").with(json!({"status": {"addresses": addresses}})));
    assert_eq!(loads(&mut world), of([]));
    let now = world.now();
    world.scheduler.cluster_is_known(now);
    assert_eq!(loads(&mut world), of([("n1", 90), ("n2", 10)]), "the last answer");
    assert_eq!(place(&mut world, "a").as_deref(), Some("n2"));
}

#[test]
fn what_the_last_answer_says_of_a_node_counts_when_the_node_comes() {
    let addressed = |name: &str, address: &str| {
        let addresses = json!([{"type": "InternalIP", "address": address}]);
        node(name).cpu("100").with(json!({"status": {"addresses": addresses}}))
    };
    let mut world = world();
    let answer = told(&world, &[("n1", 9), ("n2", 9), ("n3", 9), ("n4", 1)]);
    world.answered("load", answer);
    let answer = told(
        &world,
        &[
            ("n1", 90),
            ("n2", 91),
            ("n3", 92),
            ("n5:9100", 5),
            ("10.0.0.6:9100", 6),
            ("n7", 7),
            ("10.0.0.7", 8),
        ],
    );
    let taken = world.answered("load", answer).expect("it is asked");
    assert_eq!(taken.left_out.total(), 4);
    let known = of([("n1", 90), ("n2", 91), ("n3", 92)]);
    world.pass(20);
    world.put(addressed("n4", "10.0.0.4"));
    assert_eq!(loads(&mut world), known, "the last answer does not name it");
    world.put(addressed("n7", "10.0.0.7"));
    assert_eq!(loads(&mut world), known, "two things are said of it");
    world.put(node("n6").cpu("100"));
    world.put(addressed("n5", "10.0.0.5"));
    world.put(addressed("n6", "10.0.0.6"));
    let mut all = known.clone();
    all.extend([("n5".to_owned(), 5), ("n6".to_owned(), 6)]);
    assert_eq!(loads(&mut world), all);
    assert_eq!(place(&mut world, "a").as_deref(), Some("n5"), "and pods go by it");
    world.remove("Node n5");
    world.put(addressed("n5", "10.0.0.5"));
    assert!(!loads(&mut world).contains_key("n5"), "another machine may have the name");
    world.pass(10);
    assert_eq!(loads(&mut world), of([]), "all of it was measured at the same time");

    let answer = told(&world, &[("n8", 8)]);
    world.answered("load", answer);
    world.pass(30);
    world.put(node("n8"));
    assert_eq!(loads(&mut world), of([]), "it is too old by now");
}

#[test]
fn what_is_indexed_goes_by_the_newest_facts() {
    // The world compares each decision of the index with a plain one.
    let mut world = world();
    for round in 0..40_i64 {
        let answer = match round % 7 {
            0 => Err("down".to_owned()),
            _ => {
                told(&world, &[("n1", round * 37 % 101), ("n2", round * 53 % 101), ("n3", round * 71 % 101)])
            }
        };
        world.answered("load", answer);
        world.put(pod(&format!("p{round}")).cpu("1"));
        world.pass(1 + u64::from(round % 5 == 0) * 40);
    }
    assert!(world.objects("Pod").count() == 40);
}
