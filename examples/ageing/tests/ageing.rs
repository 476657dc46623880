//! The order of two pods, as time passes.

use ageing::Ageing;
use supercargo_sdk::testkit::{World, check_points, check_reads, node, only, pod};

/// The turns of two pods, of which the important one comes so many seconds after the other.
fn turns(seconds: u64) -> Vec<String> {
    let config = include_str!("../scheduler-config.yaml");
    let mut world = World::with_plugins(config, |plugins| plugins.add::<Ageing>());
    // Both wait for a replica that leads.
    world.set_leading(false);
    world.put(node("n1"));
    world.put(pod("old").priority(0).scheduler("ageing-scheduler"));
    world.pass(seconds);
    world.put(pod("new").priority(5).scheduler("ageing-scheduler"));
    world.pass(60);
    world.set_leading(true);
    let log = world.run();
    only(&log, "bind").into_iter().map(str::to_owned).collect()
}

#[test]
fn a_pod_that_has_waited_goes_before_one_that_is_more_important() {
    for (seconds, first) in [(0, "new"), (3, "new"), (4, "new"), (6, "old"), (60, "old")] {
        let turns = turns(seconds);
        assert_eq!(turns[0], format!("bind {first} to n1"), "after {seconds} s: {turns:?}");
    }
}

#[test]
fn it_is_what_it_declares() {
    check_points!(Ageing);
    check_reads::<Ageing>();
}

#[test]
fn the_configuration_is_right() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/scheduler-config.yaml");
    let checked =
        supercargo::outcome_of(["ageing", "config", "check", file], |plugins| plugins.add::<Ageing>());
    assert_eq!((checked.stdout.as_str(), checked.code), ("", 0));
}
