//! Bindings whose answers do not say whether the pod is bound, and pods that other writers bind or delete at any step.

use std::collections::BTreeSet;

use supercargo_engine::{ExtenderSettings, Observation, PodPlace, Ticket};
use supercargo_framework::{AskFailure, Conclusion, Effect, ExtenderAnswer, ExtenderQuestion};
use supercargo_model::Everything;
use supercargo_testkit::{node, pod};

use crate::world::{InTests, World};
use crate::{only, permits};

/// A world with one node that has room for one pod, whose binding was ordered, and the ticket of that order.
fn ordered() -> (World, Ticket) {
    let mut world = World::new();
    world.put(node("n1").cpu("1"));
    world.put(pod("a").cpu("1"));
    let ticket = world.order_for("bind a to n1");
    (world, ticket)
}

fn unknown(is_answered: bool) -> Conclusion {
    Conclusion::Unknown { error: "no answer".to_owned(), is_answered }
}

#[test]
fn a_binding_that_was_made_and_answered_by_an_error_keeps_its_room() {
    for conclusion in [
        unknown(true),
        unknown(false),
        Conclusion::Conflict { error: "it has a node".to_owned() },
        Conclusion::Gone { error: "says a proxy".to_owned() },
    ] {
        let (mut world, ticket) = ordered();
        world.bind("a", "n1");
        let now = world.now();
        world.scheduler.conclude(ticket, &conclusion, now);
        world.put(pod("b").cpu("1"));
        let log = world.pass(30);
        assert_eq!(only(&log, "bind"), [""; 0], "{conclusion:?}");
        assert_eq!(only(&log, "Scheduled"), ["Scheduled on a: Successfully assigned default/a to n1"]);
        assert_eq!(world.scheduler.gauges().unresolved_bindings, 0);
    }
}

#[test]
fn a_binding_that_was_not_made_is_made_when_that_is_known() {
    let (mut world, ticket) = ordered();
    let now = world.now();
    world.scheduler.conclude(ticket, &unknown(true), now);
    let log = world.run();
    assert_eq!(log[0], "look up a");
    assert_eq!(only(&log, "FailedScheduling").len(), 1, "{log:?}");
    assert_eq!(only(&world.pass(3), "bind"), ["bind a to n1"]);
}

#[test]
fn an_order_that_was_given_up_may_land_for_a_while() {
    let (mut world, ticket) = ordered();
    let now = world.now();
    world.scheduler.conclude(ticket, &unknown(false), now);
    world.put(pod("b").cpu("1"));
    assert_eq!(world.pass(4)[0], "look up a", "and what it says is not relied on");
    assert_eq!(world.node_of("b"), None);
    world.bind("a", "n1");
    assert_eq!(only(&world.pass(60), "bind"), [""; 0], "it has landed");

    let (mut world, ticket) = ordered();
    let now = world.now();
    world.scheduler.conclude(ticket, &unknown(false), now);
    let log = world.pass(10);
    assert_eq!(only(&log, "look up"), ["look up a"; 2], "once at once, once when nothing can land any more");
    assert_eq!(only(&log, "bind"), ["bind a to n1"]);
}

#[test]
fn while_the_server_cannot_be_asked_the_room_stays_taken() {
    let (mut world, ticket) = ordered();
    world.fail("look up", "the server is away");
    let now = world.now();
    world.scheduler.conclude(ticket, &unknown(true), now);
    world.put(pod("b").cpu("1"));
    let log = world.pass(300);
    assert_eq!(only(&log, "bind"), [""; 0]);
    let asked = only(&log, "look up").len();
    assert!((12..16).contains(&asked), "1, 2, 4, 8, 16 and then 30 s apart: {asked}");
    assert_eq!(world.scheduler.gauges().unresolved_bindings, 1);
    let whereabouts = world.scheduler.whereabouts("default", "a", now).expect("it is on its way");
    assert!(matches!(whereabouts.place, PodPlace::Unresolved { .. }), "{whereabouts:?}");
    let failed = |seen: &Observation| matches!(seen, Observation::LookUpFailed { .. });
    assert!(world.scheduler.take_observations().iter().any(failed));
    world.heal();
    assert_eq!(only(&world.pass(60), "bind").len(), 1, "the room is free for whoever is tried first");
}

#[test]
fn the_watch_may_know_first() {
    let (mut world, ticket) = ordered();
    world.fail("look up", "the server is away");
    let now = world.now();
    world.scheduler.conclude(ticket, &unknown(true), now);
    world.run();
    world.bind("a", "n1");
    assert_eq!(only(&world.run(), "Scheduled").len(), 1);
    assert_eq!(world.scheduler.gauges().bindings, 0);
    world.put(pod("b").cpu("1"));
    assert_eq!(only(&world.pass(100), "look up"), [""; 0], "there is nothing left to ask");
}

#[test]
fn an_extender_that_binds_and_answers_an_error_has_bound() {
    let binds = ExtenderSettings { binds: true, ..ExtenderSettings::default() };
    let mut world = World::new().with_extenders(vec![binds], |question| match question {
        ExtenderQuestion::Bind { .. } => Ok(ExtenderAnswer::Bound),
        _ => Err("it only binds".to_owned()),
    });
    world.put(node("n1").cpu("1"));
    world.put(pod("a").cpu("1"));
    let ticket = world.order_for("ask extender 0: bind a to n1");
    world.bind("a", "n1");
    let now = world.now();
    world.scheduler.answer(ticket, Err(AskFailure::Answered("late".to_owned())), now);
    world.put(pod("b").cpu("1"));
    let log = world.pass(60);
    assert_eq!(only(&log, "ask extender 0: bind"), [""; 0]);
    assert_eq!(world.scheduler.cluster().nodes().map(|node| node.pods().len()).sum::<usize>(), 1);
}

#[test]
fn a_pod_that_waits_at_permit_and_is_bound_by_another_ends_its_wait() {
    for elsewhere in [false, true] {
        let mut world = permits::world();
        world.put(node("n2").cpu("2").unschedulable());
        world.put(pod("a").cpu("1").label("gang", "x"));
        world.run();
        world.bind("a", if elsewhere { "n2" } else { "n1" });
        // Its time-out and the word of another pod find nobody who waits.
        world.put(pod("b").cpu("1").label("gang", "x"));
        world.pass(100);
        // That pod waits in vain, again and again: that it is nominated no more has it tried once more, as upstream.
        world.remove("Pod b");
        assert_eq!(world.scheduler.gauges().bindings, 0);
        let on = |world: &mut World, name: &str| {
            let row = world.scheduler.cluster().row_of(name).expect("it is there");
            world.scheduler.cluster().node(row).pods().iter().filter(|pod| *pod.name == *"a").count()
        };
        let expected = if elsewhere { (0, 1) } else { (1, 0) };
        assert_eq!((on(&mut world, "n1"), on(&mut world, "n2")), expected);
    }
}

#[test]
fn an_answer_that_comes_twice_or_too_late_changes_nothing() {
    let (mut world, first) = ordered();
    let now = world.now();
    world.scheduler.conclude(first, &Conclusion::not_done("no"), now);
    let second = loop {
        world.pass(1);
        if let Some(ticket) = world.take_undone("bind a to n1") {
            break ticket;
        }
        world.set_slow(true);
    };
    assert_ne!(first, second);
    world.scheduler.take_observations();
    world.scheduler.conclude(first, &Conclusion::Done, now);
    let log = world.scheduler.take_orders();
    assert!(!log.iter().any(|order| matches!(order.effect, Effect::Record(_))), "{log:?}");
    assert_eq!(world.scheduler.take_observations(), [Observation::AnswerDropped]);
    world.scheduler.conclude(second, &Conclusion::not_done("no"), now);
    assert_eq!(world.scheduler.gauges().assumed_pods, 0, "the first answer was not taken for the second");
}

#[test]
fn a_replica_that_follows_tries_no_pod_and_writes_nothing() {
    let mut world = permits::world();
    world.put(pod("a").cpu("1").label("gang", "x"));
    world.run();
    let now = world.now();
    world.scheduler.set_leading(false, now);
    assert_eq!(world.scheduler.gauges().assumed_pods, 0, "its reservation is given back");
    world.put(pod("b").cpu("1"));
    assert_eq!(world.pass(1000), [""; 0]);
    let now = world.now();
    world.scheduler.set_leading(true, now);
    assert_eq!(only(&world.pass(20), "bind b"), ["bind b to n1"]);
}

#[test]
fn a_clock_that_is_set_neither_ends_a_wait_nor_makes_it_longer() {
    for seconds in [3600, -3600] {
        let mut world = permits::world();
        world.fail("bind b", "no");
        world.put(pod("a").cpu("1").label("gang", "x"));
        world.put(pod("b").cpu("1"));
        world.run();
        world.heal();
        world.set_clock(seconds);
        assert_eq!(world.run(), [""; 0], "neither the wait at Permit nor the backoff is over");
        assert_eq!(only(&world.pass(3), "bind"), ["bind b to n1"]);
        assert_eq!(only(&world.pass(26), "FailedScheduling"), [""; 0]);
        assert_eq!(only(&world.pass(2), "FailedScheduling on a").len(), 1, "after thirty seconds");
    }
}

#[test]
fn a_pod_with_resource_claims_is_told_that_it_is_held_back_and_what_to_do() {
    let claims = || pod("a").with(serde_json::json!({"spec": {"resourceClaims": [{"name": "gpu"}]}}));
    let mut world = World::new();
    world.put(node("n1"));
    world.put(claims());
    let log = world.run();
    let told = only(&log, "FailedScheduling on a: pod has resource claims");
    assert_eq!(told.len(), 1, "{log:?}");
    assert!(told[0].contains("spec.schedulerName"), "{told:?}");
    assert!(log.iter().any(|line| line.starts_with("status of a: Unschedulable pod has resource claims")));
    world.put(node("n2"));
    assert_eq!(world.pass(1000), [""; 0], "once is enough");

    // A replica that takes over tells what its predecessor may not have told.
    let mut world = World::new();
    let now = world.now();
    world.scheduler.set_leading(false, now);
    world.put(claims());
    assert_eq!(world.run(), [""; 0]);
    world.scheduler.set_leading(true, now);
    assert_eq!(only(&world.run(), "FailedScheduling on a").len(), 1);
}

/// A world in which it is not known whether the pod is bound, and the ticket of the look-up.
fn looking_up() -> (World, Ticket) {
    let (mut world, ticket) = ordered();
    let now = world.now();
    world.scheduler.conclude(ticket, &unknown(true), now);
    let look_up = world.order_for("look up a");
    (world, look_up)
}

#[test]
fn a_pod_that_a_look_up_did_not_find_and_that_is_there_comes_back() {
    for is_bound in [false, true] {
        let (mut world, ticket) = looking_up();
        let now = world.now();
        world.scheduler.looked_up(ticket, Ok(None), now);
        // Nobody else gets its room meanwhile: the answer may be that of a proxy, or of a server that lags behind.
        world.put(pod("b").cpu("1"));
        world.fail("look up", "the server is away");
        assert_eq!(only(&world.pass(60), "bind"), [""; 0]);
        world.heal();
        if is_bound {
            world.bind("a", "n1");
        }
        world.pass(60);
        let bound: Vec<&str> = ["a", "b"].into_iter().filter(|pod| world.node_of(pod).is_some()).collect();
        assert_eq!(bound.len(), 1, "the room is free for whoever is tried first, if it is free: {bound:?}");
        assert!(!is_bound || bound == ["a"]);
    }
}

#[test]
fn a_pod_that_a_look_up_finds_on_its_way_out_leaves_its_room_and_is_not_tried_again() {
    let (mut world, ticket) = looking_up();
    world.put(pod("b").cpu("1"));
    let leaving: serde_json::Value = pod("a").uid("a").cpu("1").terminating().into();
    let leaving = supercargo_model::Decoder::default().decode(&leaving.to_string()).expect("it is a pod");
    let now = world.now();
    world.scheduler.looked_up(ticket, Ok(Some(leaving)), now);
    assert_eq!(only(&world.pass(60), "bind"), ["bind b to n1"]);
    // The watch tells what was before that.
    world.change("Pod a", &serde_json::json!({"metadata": {"labels": {"any": "thing"}}}));
    assert_eq!((world.pass(60), world.scheduler.books().over.len()), (Vec::new(), 1));
    world.remove("Pod a");
    assert_eq!(world.scheduler.books().over.len(), 0);
}

#[test]
fn a_pod_that_is_gone_is_not_looked_up_once_the_watch_says_so() {
    for is_listed in [false, true] {
        let (mut world, ticket) = looking_up();
        let now = world.now();
        world.scheduler.looked_up(ticket, Ok(None), now);
        if is_listed {
            world.scheduler.retain(&Everything::Pods(BTreeSet::new()), now);
        } else {
            world.remove("Pod a");
        }
        assert_eq!(world.pass(600), [""; 0]);
    }
}

#[test]
fn an_answer_that_is_no_pod_says_nothing() {
    let decoder = supercargo_model::Decoder::default();
    let empty = serde_json::json!({"apiVersion": "v1", "kind": "Pod"});
    let other = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "b", "uid": "b"}});
    for body in [empty, other, node("a").into()] {
        let (mut world, ticket) = looking_up();
        let now = world.now();
        let decoded = decoder.decode(&body.to_string()).expect("it is an object");
        world.scheduler.looked_up(ticket, Ok(Some(decoded)), now);
        assert_eq!(world.scheduler.gauges().unresolved_bindings, 1, "{body}");
        let log = world.pass(5);
        assert_eq!((only(&log, "look up").len(), only(&log, "bind").len()), (1, 1), "{log:?}");
    }
}
