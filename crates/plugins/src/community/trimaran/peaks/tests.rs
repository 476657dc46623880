use serde_json::{Value, json};
use supercargo_testkit::{ReadsCheck, check_points, cluster, node, pod, problems_of, trial_with};

use super::*;
use crate::community::trimaran::Measured;
use crate::community::trimaran::tests::where_load_is_known;

fn args() -> Value {
    let flat = json!({ "k0": 150.0, "k1": -30.0, "k2": -0.02 });
    let models = json!({ "a": { "k0": 100.0, "k1": -50.0, "k2": -0.05 }, "b": flat, "c": flat });
    json!({ "WatcherAddress": "http://load-watcher", "NodePowerModel": models })
}

fn load(percent: f64) -> NodeLoad {
    let cpu = Measured { first: Some(percent), is_known: true, ..Measured::default() };
    NodeLoad { cpu, ..NodeLoad::default() }
}

#[test]
fn it_is_what_it_declares() {
    check_points!(Peaks);
    let model = json!({ "k0": 100.0, "k1": -50.0, "k2": -0.05 });
    let args = json!({ "WatcherAddress": "http://load-watcher", "NodePowerModel": { "n0": model, "m1": model, "n2": model } });
    where_load_is_known(ReadsCheck::with_args::<Peaks>(args)).check();
}

#[test]
fn the_least_added_power_is_best_and_nodes_without_a_word_only_with_the_fix_worst() {
    let capacity = |name| node(name).with(json!({ "status": { "capacity": { "cpu": "4" } } }));
    let mut scene = cluster()
        .with(capacity("a"))
        .with(capacity("b"))
        .with(capacity("c"))
        .fact("a", load(20.0))
        .fact("b", load(60.0))
        .fact("c", load(10.0));
    let plugin = trial_with::<Peaks>(args());
    assert_eq!(plugin.scores(&mut scene, pod("web").cpu("1")), ["a: 0", "b: 100", "c: 37"]);
    let mut scene = scene.with(capacity("d"));
    assert_eq!(plugin.scores(&mut scene, pod("web").cpu("1")), ["a: 0", "b: 73", "c: 27", "d: 100"]);
    scene.fixes.peaks_unknown_nodes = true;
    assert_eq!(plugin.scores(&mut scene, pod("web").cpu("1")), ["a: 0", "b: 100", "c: 37", "d: 0"]);
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    assert_eq!(problems_of::<Peaks>(args()), [""; 0]);
    assert_eq!(problems_of::<Peaks>(json!({})).len(), 2);
    for model in [json!(null), json!({})] {
        let problems =
            problems_of::<Peaks>(json!({ "WatcherAddress": "http://load-watcher", "NodePowerModel": model }));
        assert!(
            problems.len() == 1 && problems[0].starts_with("NodePowerModel: Required value"),
            "{problems:?}"
        );
    }
    assert_eq!(problems_of::<Peaks>(json!({ "watcherAddress": "http://load-watcher" })).len(), 1);
}
