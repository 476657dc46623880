//! Orders and the order in which they are carried out.

use supercargo_framework::Subject;

use super::*;
use crate::backoff::Chance;

fn pod(name: &str) -> Arc<Pod> {
    Arc::new(Pod { name: name.into(), uid: name.into(), ..Pod::default() })
}

fn order(ticket: u64, effect: Effect) -> Order {
    Order { ticket: Some(Ticket(ticket)), effect }
}

fn bind(name: &str) -> Effect {
    Effect::Bind { pod: pod(name), node: "n".into() }
}

fn nominate(name: &str, node: &str) -> Effect {
    Effect::UpdateStatus { pod: pod(name), condition: None, nomination: Nomination::Node(node.into()) }
}

fn condition(name: &str, message: &str) -> Effect {
    let condition = PodCondition {
        kind: "PodScheduled".into(),
        holds: false,
        reason: "Unschedulable".into(),
        message: message.to_owned(),
        since: Timestamp::default(),
        observed_generation: 0,
    };
    Effect::UpdateStatus { pod: pod(name), condition: Some(condition), nomination: Nomination::Keep }
}

fn notice(name: &str) -> Effect {
    Effect::Record(Notice {
        about: Subject::Pod(pod(name)),
        reporter: "s".into(),
        is_warning: false,
        reason: "Scheduled".into(),
        action: "Binding".into(),
        note: String::new(),
        related: None,
    })
}

fn patch(name: &str) -> Effect {
    let kind = KindId { group: "", version: "v1", kind: "PersistentVolume", plural: "persistentvolumes" };
    let key = ObjectKey { namespace: "".into(), name: name.into() };
    Effect::Patch { kind, key, subresource: None, patch: serde_json::Value::Null }
}

fn queues(orders: impl IntoIterator<Item = Order>) -> Queues {
    let mut queues = Queues::default();
    for order in orders {
        queues.push(order, Timestamp::default());
    }
    queues
}

/// Everything that may be started now, in short, and what it belongs to.
fn started(queues: &mut Queues) -> Vec<(String, Lane)> {
    let mut started = Vec::new();
    while let Some(job) = queues.next(true) {
        started.push(match job {
            Job::LookUp { pod, .. } => (format!("look up {}", pod.name), Lane::LookUps),
            Job::Bind { pod, .. } => (format!("bind {}", pod.name), Lane::Bindings(pod.uid.clone())),
            Job::UpdateStatus { pod, condition, nomination, .. } => {
                let message = condition.map(|condition| condition.message).unwrap_or_default();
                let node =
                    if let Nomination::Node(node) = nomination { node.to_string() } else { String::new() };
                (format!("status {} {message}/{node}", pod.name), Lane::Statuses(pod.uid.clone()))
            }
            Job::Write { key, .. } => (format!("write {key}"), Lane::Writes(key)),
            Job::Event { notice, .. } => (format!("event {}", notice.about.name()), Lane::Events),
            Job::EventCall(_) => ("series".to_owned(), Lane::Events),
        });
    }
    started
}

fn names(started: &[(String, Lane)]) -> Vec<&str> {
    started.iter().map(|(name, _)| name.as_str()).collect()
}

fn finish(queues: &mut Queues, started: &[(String, Lane)]) {
    for (_, lane) in started {
        queues.finished(lane);
    }
}

#[test]
fn bindings_come_first() {
    let effects = [notice("a"), condition("b", "m"), patch("v"), bind("c")];
    let mut queues = queues(effects.into_iter().map(|effect| order(1, effect)));
    let started = started(&mut queues);
    assert_eq!(names(&started), ["bind c", "write persistentvolumes.//v", "status b m/", "event a"]);
    finish(&mut queues, &started);
    assert!(queues.pods.is_empty() && queues.objects.is_empty());
}

#[test]
fn no_more_bindings_are_made_at_a_time_than_the_window_has() {
    let mut queues = queues((0..200).map(|number| order(number, bind(&format!("p{number}")))));
    let mut all = Vec::new();
    for expected in [64, 64, 64, 8] {
        let started = started(&mut queues);
        assert_eq!(started.len(), expected);
        finish(&mut queues, &started);
        all.extend(started);
    }
    assert!(names(&all).into_iter().eq((0..200).map(|number| format!("bind p{number}"))));
    assert!(queues.pods.is_empty());
}

#[test]
fn events_are_a_trickle_while_there_are_bindings() {
    let mut queues = queues((0..100).map(|number| order(number, notice(&format!("p{number}")))));
    queues.push(order(200, bind("b")), Timestamp::default());
    let first = started(&mut queues);
    assert_eq!(names(&first), ["bind b", "event p0"]);
    finish(&mut queues, &first);
    assert_eq!(started(&mut queues).len(), EVENTS_WINDOW);
}

#[test]
fn many_events_are_told_faster_than_few() {
    for (waiting, window) in [(EVENTS_FEW_MAX, EVENTS_WINDOW), (EVENTS_FEW_MAX * 2, EVENTS_WINDOW_MANY)] {
        let mut queues = queues((0..waiting as u64).map(|number| order(number, notice("p"))));
        assert_eq!(started(&mut queues).len(), window);
    }
}

#[test]
fn events_that_would_come_too_late_press() {
    let mut queues = queues((0..4000).map(|number| order(number, notice("p"))));
    queues.push(order(5000, bind("b")), Timestamp::default());
    assert_eq!(started(&mut queues).len(), 1 + EVENTS_WINDOW_PRESSING);
}

#[test]
fn what_is_said_about_a_pod_is_said_in_order_and_only_the_newest() {
    let mut queues = queues([order(1, condition("a", "one"))]);
    let first = started(&mut queues);
    assert_eq!(names(&first), ["status a one/"]);
    for (ticket, effect) in
        [(2, nominate("a", "n1")), (3, condition("a", "two")), (4, condition("a", "three"))]
    {
        queues.push(order(ticket, effect), Timestamp::default());
    }
    // The first is still on its way.
    assert!(started(&mut queues).is_empty());
    assert_eq!(queues.take_concluded(), [(Ticket(2), Conclusion::Done), (Ticket(3), Conclusion::Done)]);
    finish(&mut queues, &first);
    let second = started(&mut queues);
    assert_eq!(names(&second), ["status a three/n1"]);
    finish(&mut queues, &second);
    assert!(queues.pods.is_empty());
}

#[test]
fn no_word_about_why_a_pod_is_not_bound_comes_after_its_binding() {
    // Still waiting: left out.
    let mut waiting = queues([order(1, condition("a", "one")), order(2, bind("a"))]);
    assert_eq!(waiting.take_concluded(), [(Ticket(1), not_done("the pod gets a node"))]);
    let jobs = started(&mut waiting);
    assert_eq!(names(&jobs), ["bind a"]);
    // The binding failed, and why is said afterwards.
    waiting.push(order(3, condition("a", "two")), Timestamp::default());
    assert!(started(&mut waiting).is_empty());
    finish(&mut waiting, &jobs);
    assert_eq!(names(&started(&mut waiting)), ["status a two/"]);

    // On its way: the binding waits for it.
    let mut running = queues([order(1, condition("a", "one"))]);
    let jobs = started(&mut running);
    running.push(order(2, bind("a")), Timestamp::default());
    assert!(started(&mut running).is_empty());
    finish(&mut running, &jobs);
    assert_eq!(names(&started(&mut running)), ["bind a"]);
}

#[test]
fn changes_of_one_object_are_made_one_after_the_other() {
    let mut queues = queues([order(1, patch("v")), order(2, patch("v")), order(3, patch("w"))]);
    let first = started(&mut queues);
    assert_eq!(names(&first), ["write persistentvolumes.//v", "write persistentvolumes.//w"]);
    finish(&mut queues, &first);
    let second = started(&mut queues);
    assert_eq!(names(&second), ["write persistentvolumes.//v"]);
    finish(&mut queues, &second);
    assert!(queues.objects.is_empty());
}

#[test]
fn too_much_is_left_out_and_said_so() {
    let count = STATUSES_QUEUED_MAX as u64 + 3;
    let mut statuses = queues((0..count).map(|number| order(number, condition(&format!("p{number}"), "m"))));
    let given_up: Vec<_> = statuses
        .take_concluded()
        .into_iter()
        .map(|(ticket, conclusion)| (ticket.0, conclusion != Conclusion::Done))
        .collect();
    assert_eq!(given_up, [(0, true), (1, true), (2, true)]);
    assert_eq!(statuses.pods.len(), STATUSES_QUEUED_MAX);

    let count = EVENTS_QUEUED_MAX as u64 + 2;
    let mut events = queues((0..count).map(|number| order(number, notice("p"))));
    assert_eq!((events.take_events_lost(), events.take_concluded().len()), (2, 2));
    assert_eq!(events.take_events_lost(), 0);

    let mut twice = queues([order(1, bind("a")), order(2, bind("a"))]);
    assert_eq!((twice.take_concluded()[0].0, twice.take_bindings_dropped()), (Ticket(1), 1));
    assert_eq!(started(&mut twice).len(), 1);
}

/// Whatever comes in whatever order: each ticket is concluded once, one thing at a time is done for a pod or an object, no
/// window is exceeded, and nothing is left at the end.
#[test]
fn no_order_is_lost_or_carried_out_twice() {
    for seed in 0..200 {
        let mut chance = Chance::new(seed);
        let mut below = |count: usize| ((chance.fraction() * count as f64) as usize).min(count - 1);
        let mut queues = Queues::default();
        let mut running: Vec<Lane> = Vec::new();
        let mut open = std::collections::BTreeSet::new();
        let mut ticket = 0;
        for step in 0..3000 {
            if step < 2000 && below(2) == 0 {
                let name = format!("p{}", below(8));
                let effect = match below(6) {
                    0 | 1 => bind(&name),
                    2 => condition(&name, "m"),
                    3 => nominate(&name, "n"),
                    4 => patch(&name),
                    _ => notice(&name),
                };
                ticket += 1;
                open.insert(ticket);
                queues.push(order(ticket, effect), Timestamp::default());
            } else if !running.is_empty() {
                let lane = running.swap_remove(below(running.len()));
                queues.finished(&lane);
            }
            for (ticket, _) in queues.take_concluded() {
                assert!(open.remove(&ticket.0), "seed {seed}: {ticket:?} was concluded twice");
            }
            while let Some(job) = queues.next(true) {
                let (ticket, lane) = match job {
                    Job::LookUp { ticket, .. } => (ticket, Lane::LookUps),
                    Job::Bind { ticket, pod, .. } => (ticket, Lane::Bindings(pod.uid.clone())),
                    Job::UpdateStatus { ticket, pod, .. } => (ticket, Lane::Statuses(pod.uid.clone())),
                    Job::Write { ticket, key, .. } => (ticket, Lane::Writes(key)),
                    Job::Event { ticket, .. } => (ticket, Lane::Events),
                    Job::EventCall(_) => (None, Lane::Events),
                };
                assert!(
                    ticket.is_some_and(|ticket| open.remove(&ticket.0)),
                    "seed {seed}: {lane:?} was done twice"
                );
                let is_busy = running.iter().any(|other| match (other, &lane) {
                    (Lane::Events | Lane::LookUps, _) | (_, Lane::Events | Lane::LookUps) => false,
                    (Lane::Bindings(a) | Lane::Statuses(a), Lane::Bindings(b) | Lane::Statuses(b)) => a == b,
                    (a, b) => a == b,
                });
                assert!(!is_busy, "seed {seed}: {lane:?} is busy");
                running.push(lane);
            }
            assert!(running.len() <= BINDINGS_WINDOW + WRITES_WINDOW + STATUSES_WINDOW + EVENTS_WINDOW_MANY);
        }
        assert!(open.is_empty() && running.is_empty(), "seed {seed}: {open:?} {running:?}");
        assert!(queues.pods.is_empty() && queues.objects.is_empty(), "seed {seed}: {queues:?}");
        assert_eq!((queues.statuses_waiting, queues.writes_waiting), (0, 0), "seed {seed}");
    }
}
