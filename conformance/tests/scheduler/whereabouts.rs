//! Where one pod is on its way, asked at every place that it can be at.

use std::time::Duration;

use serde_json::json;
use supercargo_engine::{Observation, PodPlace};
use supercargo_testkit::{node, pod};

use crate::permits;
use crate::world::World;

/// How often a pod of the namespace `default` was tried, and where it is.
fn place_of(world: &mut World, name: &str) -> Option<(u32, PodPlace)> {
    let now = world.now();
    let whereabouts = world.scheduler.whereabouts("default", name, now)?;
    assert_eq!(&*whereabouts.uid, name);
    // A dump of all of them says the same about it, and names nobody twice.
    let (all, untold) = world.scheduler.all_whereabouts(usize::MAX, now);
    let named: Vec<_> = all.iter().filter(|(pod, _)| &*pod.name == name).collect();
    assert_eq!((named.len(), &named[0].1, untold), (1, &whereabouts, 0));
    let (some, untold) = world.scheduler.all_whereabouts(1, now);
    assert_eq!((some.len(), untold), (1, all.len() - 1));
    Some((whereabouts.attempts, whereabouts.place))
}

#[test]
fn a_pod_that_fits_nowhere_waits_for_something_to_happen_and_then_for_its_backoff() {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("there").cpu("1").on("n1"));
    world.put(pod("a").cpu("1"));
    let since = world.now();
    assert_eq!(place_of(&mut world, "a"), Some((0, PodPlace::Active { since })));
    world.run();
    let until = since.after(Duration::from_secs(300));
    let plugins = vec!["NodeResourcesFit"];
    assert_eq!(place_of(&mut world, "a"), Some((1, PodPlace::Unschedulable { since, plugins, until })));
    assert_eq!(world.scheduler.attempts_of("a"), Some(1));

    world.remove("Pod there");
    // Its backoff ends with the next second, and that second is waited for as well.
    let until = since.after(Duration::from_secs(2));
    assert_eq!(place_of(&mut world, "a"), Some((1, PodPlace::Backoff { until })));
    world.run();
    assert_eq!(world.node_of("a"), Some("n1"));
    assert_eq!(place_of(&mut world, "a"), None, "it has arrived");
    assert_eq!(world.scheduler.whereabouts("other", "a", since), None, "names are of a namespace");
}

#[test]
fn a_pod_that_is_held_back_says_by_whom() {
    let mut world = World::new();
    world.put(node("n1").cpu("2"));
    world.put(pod("gated").with(json!({"spec": {"schedulingGates": [{"name": "wait"}]}})));
    let (0, PodPlace::Held { plugin: Some("SchedulingGates"), reason, .. }) =
        place_of(&mut world, "gated").expect("it waits")
    else {
        panic!("{:?}", place_of(&mut world, "gated"))
    };
    assert!(reason.contains("wait"), "{reason}");

    world.set_slow(true);
    world.put(pod("victim").cpu("2").on("n1"));
    world.put(pod("urgent").cpu("2").with(json!({"spec": {"priority": 10}})));
    world.run();
    let Some((1, PodPlace::Held { plugin: None, reason, .. })) = place_of(&mut world, "urgent") else {
        panic!("{:?}", place_of(&mut world, "urgent"))
    };
    assert_eq!(reason, "the pods that make room for it are being evicted");
}

#[test]
fn a_pod_with_a_node_waits_for_leave_and_then_for_its_binding() {
    let mut world = permits::world();
    world.set_slow(true);
    world.put(pod("a").cpu("1").label("gang", "x"));
    world.run();
    let since = world.now();
    let until = since.after(Duration::from_secs(30));
    let waits = PodPlace::Permit { node: "n1".into(), plugins: vec!["Pairs"], until };
    assert_eq!(place_of(&mut world, "a"), Some((1, waits)));
    assert_eq!(world.scheduler.attempts_of("a"), Some(1));
    let awaited = |seen: &Observation| match seen {
        Observation::PermitAwaited { pod, plugins, .. } => Some((pod.name.clone(), plugins.clone())),
        _ => None,
    };
    let seen = world.scheduler.take_observations();
    assert_eq!(seen.iter().find_map(awaited), Some(("a".into(), vec!["Pairs"])));

    world.put(pod("b").cpu("1").label("gang", "x"));
    world.run();
    for name in ["a", "b"] {
        let binding = PodPlace::Binding { node: "n1".into(), since };
        assert_eq!(place_of(&mut world, name), Some((1, binding)));
        assert_eq!(world.scheduler.attempts_of(name), Some(1));
    }
}
