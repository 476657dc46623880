use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use supercargo_engine::{Decision, Observation, Outcome, PodPlace, Whereabouts};
use supercargo_framework::Nomination;
use supercargo_model::{Pod, Row, Timestamp};

use super::*;
use crate::{Candidate, Obstacles, Placement, Verdict};

const NOON: i64 = 1_800_000_000;

fn pod(name: &str) -> Arc<Pod> {
    Arc::new(Pod {
        name: name.into(),
        namespace: "default".into(),
        uid: format!("uid-of-{name}").into(),
        ..Pod::default()
    })
}

fn decision(pod: &Arc<Pod>, second: i64, outcome: Outcome) -> Decision {
    let now = Timestamp::from_seconds(NOON + second);
    Decision { pod: pod.clone(), version: 0, attempt: 0, now, start: 0, outcome }
}

fn place(node: &str) -> Outcome {
    Outcome::Place { row: Row(0), node: node.into(), score: 42, evaluated: 5, feasible: 3, plans: Vec::new() }
}

fn unfit(message: &str) -> Outcome {
    Outcome::Unschedulable {
        message: message.to_owned(),
        plugins: BTreeSet::from(["NodeResourcesFit"]),
        pending: BTreeSet::new(),
        nomination: Nomination::Clear,
        victims: Vec::new(),
    }
}

fn bound(pod: &Arc<Pod>, attempts: u32) -> Observation {
    Observation::Bound {
        node: "n1".into(),
        evaluated_nodes: 5,
        feasible_nodes: 3,
        pod: pod.clone(),
        attempts,
        since_queued: Duration::ZERO,
        since_attempt: Duration::from_millis(8),
        was_flushed: false,
    }
}

fn limits(decisions: usize, pods: usize, bytes: usize) -> Journal {
    Journal::new(JournalLimits { decisions, pods, bytes })
}

fn attempts(journal: &Journal, name: &str) -> Vec<u32> {
    journal.recall("default", name).iter().map(|decision| decision.attempt).collect()
}

#[test]
fn a_pod_that_got_a_node_is_small() {
    assert!(size_of::<Kept>() <= 72, "{}", size_of::<Kept>());
    let mut journal = Journal::default();
    for number in 0..5_000 {
        let pod = pod(&format!("deployment-5d4f8c7b9-{number:05}"));
        journal.decided(&decision(&pod, 0, place("n1")), 1);
        journal.observed(&bound(&pod, 1));
    }
    assert!(journal.bytes() < 2 << 20, "{}", journal.bytes());
}

#[test]
fn the_last_decisions_of_a_pod_are_kept() {
    let (mut journal, a) = (limits(3, 10, usize::MAX), pod("a"));
    for attempt in 1..=5 {
        journal.decided(&decision(&a, i64::from(attempt), unfit("full")), attempt);
    }
    assert_eq!(attempts(&journal, "a"), [3, 4, 5]);
    assert_eq!(journal.recall("other", "a"), [], "names are of a namespace");
}

#[test]
fn pods_that_were_not_decided_for_the_longest_are_forgotten_first() {
    let mut journal = limits(4, 3, usize::MAX);
    let (a, b, c, d) = (pod("a"), pod("b"), pod("c"), pod("d"));
    for (second, pod) in (0..).zip([&a, &b, &c, &a]) {
        journal.decided(&decision(pod, second, unfit("full")), 1);
    }
    journal.decided(&decision(&d, 4, unfit("full")), 1);
    let known = ["a", "b", "c", "d"].map(|name| attempts(&journal, name).len());
    assert_eq!(known, [2, 0, 1, 1]);
    // What comes of a decision that is forgotten is of no use.
    journal.observed(&bound(&b, 1));
    assert_eq!(attempts(&journal, "b"), [0; 0]);
}

#[test]
fn many_pods_stay_within_the_limits() {
    let mut journal = limits(2, 100, 40_000);
    let message = "m".repeat(500);
    for number in 0..2_000 {
        let pod = pod(&format!("p{number}"));
        journal.decided(&decision(&pod, number, unfit(&format!("{number} {message}"))), 1);
        journal.decided(&decision(&pod, number, place("n1")), 2);
        let failure = Observation::NotBound {
            node: "n1".into(),
            pod: pod.clone(),
            is_rejected: false,
            message: format!("{number} is not bound"),
            words: String::new(),
            plugins: BTreeSet::new(),
            since_attempt: Duration::ZERO,
        };
        journal.observed(&failure);
        assert!(journal.pods.len() <= 100);
        // The pod that is noted last always has room.
        assert!(journal.bytes() <= 42_000, "{}", journal.bytes());
        assert_eq!(attempts(&journal, &format!("p{number}")), [1, 2]);
    }
    assert!(journal.pods.len() > 10, "bytes are not counted twice: {}", journal.pods.len());
}

#[test]
fn equal_messages_are_kept_once_and_go_with_the_last_pod() {
    let mut journal = limits(1, 2, usize::MAX);
    let (a, b) = (pod("a"), pod("b"));
    journal.decided(&decision(&a, 0, unfit(&"x".repeat(1_000))), 1);
    let alone = journal.bytes();
    journal.decided(&decision(&b, 1, unfit(&"x".repeat(1_000))), 1);
    assert!(journal.bytes() < alone + 1_000);
    let small = journal.bytes() - 1_000;
    journal.decided(&decision(&a, 2, place("n1")), 2);
    assert!(journal.bytes() > small, "one pod still has the message");
    journal.decided(&decision(&b, 3, place("n1")), 2);
    assert!(journal.bytes() < small, "nobody has it any more");
}

#[test]
fn a_long_message_is_cut() {
    let (mut journal, a) = (Journal::default(), pod("a"));
    journal.decided(&decision(&a, 0, Outcome::Failed { error: "ä".repeat(MESSAGE_BYTES_MAX) }), 1);
    let kept = journal.recall("default", "a");
    let PastOutcome::Error { message } = &kept[0].outcome else { panic!("{kept:?}") };
    assert_eq!(message.len(), MESSAGE_BYTES_MAX);
}

/// A report about a pod that went through everything there is.
fn eventful() -> PodReport {
    let (mut journal, a) = (limits(9, 9, usize::MAX), pod("a"));
    let earlier = Arc::new(Pod { uid: "earlier".into(), ..(*a).clone() });
    journal.decided(&decision(&earlier, -90_000, place("n9")), 1);
    journal.observed(&bound(&earlier, 1));
    journal.decided(&decision(&a, -4_000, unfit("0/3 nodes are available: 3 Insufficient cpu.")), 1);
    let victims: Vec<Arc<Pod>> = (0..10).map(|number| pod(&format!("v{number}"))).collect();
    let preempting = Outcome::Unschedulable {
        message: "0/3 nodes are available: 3 Insufficient cpu.".to_owned(),
        plugins: BTreeSet::new(),
        pending: BTreeSet::from(["Pending"]),
        nomination: Nomination::Node("n1".into()),
        victims,
    };
    journal.decided(&decision(&a, -3_000, preempting), 2);
    journal.decided(&decision(&a, -300, place("n1")), 3);
    journal.observed(&Observation::NotBound {
        node: "n1".into(),
        pod: a.clone(),
        is_rejected: true,
        message: "too late".to_owned(),
        words: "too late".to_owned(),
        plugins: BTreeSet::from(["Gang"]),
        since_attempt: Duration::ZERO,
    });
    journal.decided(&decision(&a, -200, Outcome::Failed { error: "it broke".to_owned() }), 4);
    journal.decided(&decision(&a, -100, place("n2")), 5);
    journal.observed(&Observation::PermitAwaited {
        pod: a.clone(),
        plugins: vec!["Gang"],
        patience: Duration::from_secs(60),
    });
    journal.decided(&decision(&a, -2, place("n3")), 6);
    journal.decided(&decision(&a, -1, place("n1")), 0);
    journal.observed(&bound(&a, 7));
    PodReport {
        pod: a.key(),
        time: Timestamp::from_seconds(NOON),
        leads: true,
        holds: Vec::new(),
        lacks: Vec::new(),
        waits: None,
        decisions: journal.recall("default", "a"),
    }
}

#[test]
fn a_report_is_a_table_oldest_first() {
    let asked = Asked::new("https://scheduler".to_owned(), eventful(), Some("uid-of-a".to_owned()));
    assert_eq!(
        render_asked(&asked),
        "\
what the scheduler decided for default/a (https://scheduler):
  WHEN                     AGE  ATTEMPT  OUTCOME
  2027-01-14T07:00:00Z   25h0m        1  an earlier pod of that name: bound to n9 after 8 ms: score 42, the best of 3 feasible nodes
  2027-01-15T06:53:20Z  66m40s        1  unschedulable: 0/3 nodes are available: 3 Insufficient cpu. (NodeResourcesFit)
  2027-01-15T07:10:00Z   50m0s        2  unschedulable: 0/3 nodes are available: 3 Insufficient cpu. (Pending); room is made on n1 by evicting default/v0, default/v1, default/v2, default/v3, default/v4, default/v5, default/v6, default/v7 and 2 more
  2027-01-15T07:55:00Z    5m0s        3  given n1, and rejected then: too late
  2027-01-15T07:56:40Z   3m20s        4  error: it broke
  2027-01-15T07:58:20Z    100s        5  given n2, and waits to be permitted (Gang)
  2027-01-15T07:59:58Z      2s        6  on its way to n3: score 42, the best of 3 feasible nodes
  2027-01-15T07:59:59Z      1s        7  bound to n1 after 8 ms: score 42, the best of 3 feasible nodes
"
    );
}

#[test]
fn a_report_survives_the_wire_and_what_is_unknown_is_passed_over() {
    let report = eventful();
    let text = serde_json::to_string(&report).expect("a report is JSON");
    assert_eq!(serde_json::from_str::<PodReport>(&text).expect("it was one"), report);
    let newer = r#"{"pod":"default/a","time":"2027-01-15T08:00:00Z","leads":true,"mood":"good",
        "waits":{"uid":"u","queue":"hovering","attempts":1},
        "decisions":[{"uid":"u","time":"2027-01-15T07:00:00Z","attempt":1,"profile":"p","outcome":"teleported","to":"n1"}]}"#;
    let report: PodReport = serde_json::from_str(newer).expect("a newer version says more");
    assert_eq!(report.decisions[0].outcome, PastOutcome::Unknown);
    assert_eq!(report.waits.expect("it waits").queue, QueueName::Unknown);
}

#[test]
fn places_are_told_in_a_sentence() {
    let now = Timestamp::from_seconds(NOON);
    let (since, until) = (Timestamp::from_seconds(NOON - 150), Timestamp::from_seconds(NOON + 7));
    let (node, plugins) = (Arc::<str>::from("n1"), || vec!["NodeResourcesFit", "TaintToleration"]);
    let held = |plugin, reason: &str| PodPlace::Held { since, plugin, reason: reason.to_owned() };
    for (place, text) in [
        (PodPlace::Active { since }, "in the queue for 2m30s, to be tried next"),
        (PodPlace::Backoff { until }, "backs off, to be tried within 7s at the latest"),
        (
            PodPlace::Unschedulable { since, plugins: plugins(), until },
            "unschedulable for 2m30s: tried again when something happens that NodeResourcesFit, TaintToleration can \
             use, within 7s at the latest",
        ),
        (held(Some("SchedulingGates"), "a gate"), "held back for 2m30s by SchedulingGates: a gate"),
        (held(None, "evictions"), "held back for 2m30s by the scheduler: evictions"),
        (PodPlace::Tried { since }, "being tried for 2m30s"),
        (
            PodPlace::Permit { node: node.clone(), plugins: plugins(), until },
            "waits for NodeResourcesFit, TaintToleration to let it go to n1, given up within 7s",
        ),
        (PodPlace::Binding { node: node.clone(), since }, "being bound to n1 for 2m30s"),
    ] {
        let whereabouts = Whereabouts { uid: "u".into(), attempts: 2, place };
        let report = PodReport {
            pod: "default/a".to_owned(),
            time: now,
            leads: true,
            holds: Vec::new(),
            lacks: Vec::new(),
            waits: Some(whereabouts.into()),
            decisions: Vec::new(),
        };
        let text = format!(
            "what the scheduler decided for default/a (it):\n  nothing that it remembers\n  now: {text}; tried 2 times so far\n"
        );
        assert_eq!(render_asked(&Asked::new("it".to_owned(), report, None)), text);
    }
}

#[test]
fn a_scheduler_that_does_not_schedule_says_why() {
    let since = Timestamp::from_seconds(NOON - 150);
    let whereabouts = Whereabouts { uid: "u".into(), attempts: 0, place: PodPlace::Active { since } };
    let mut report = PodReport {
        pod: "default/a".to_owned(),
        time: Timestamp::from_seconds(NOON),
        leads: false,
        holds: vec!["replica-b leads".to_owned(), "waiting for the first list of nodes".to_owned()],
        lacks: vec!["query load: no answer in 12 s".to_owned()],
        waits: Some(whereabouts.into()),
        decisions: Vec::new(),
    };
    let rendered = |report: &PodReport| render_asked(&Asked::new("it".to_owned(), report.clone(), None));
    assert_eq!(
        rendered(&report),
        "\
what the scheduler decided for default/a (it, which does not schedule now):
  nothing that it remembers
  no pod is scheduled there now: replica-b leads
  no pod is scheduled there now: waiting for the first list of nodes
  decided there without: query load: no answer in 12 s
  now: in the queue for 2m30s, to be tried when it schedules; tried 0 times so far
"
    );
    let json = serde_json::to_value(&report).expect("a report is JSON");
    assert_eq!(json["holds"][0], "replica-b leads");
    // An older scheduler says only whether it leads.
    report.holds.clear();
    assert!(!rendered(&report).contains("to be tried next"));
}

/// A placement on the first of these nodes, of which so many are equally good.
fn placement(candidates: &[&str], tied: usize) -> Verdict {
    let candidate = |node: &&str| Candidate { node: (*node).to_owned(), total: 100, scores: Vec::new() };
    Verdict::Placed(Placement {
        node: candidates[0].to_owned(),
        feasible: candidates.len(),
        nodes: 10,
        tied,
        candidates: candidates.iter().map(candidate).collect(),
        plans: Vec::new(),
        runner_up: None,
    })
}

fn pending(message: &str) -> Verdict {
    Verdict::Pending(Obstacles {
        message: message.to_owned(),
        nodes: 10,
        obstacles: Vec::new(),
        hints: Vec::new(),
        preemption: None,
    })
}

#[test]
fn what_is_computed_now_is_compared_with_the_last_decision() {
    let held = || Verdict::Held { plugin: "SchedulingGates".to_owned(), reason: "a gate".to_owned() };
    for (last, now, difference) in [
        (place("n1"), placement(&["n1"], 1), None),
        (place("n2"), placement(&["n1", "n2"], 2), None),
        (place("n9"), placement(&["n1", "n2"], 5), None),
        (place("n2"), placement(&["n1", "n2"], 1), Some("it would go to n1, not to n2")),
        (place("n1"), pending("full"), Some("it would fit nowhere")),
        (place("n1"), held(), Some("it is not even tried")),
        (unfit("full"), pending("full"), None),
        (unfit("full"), pending("fuller"), Some("it fits nowhere for other reasons")),
        (unfit("full"), placement(&["n1"], 1), Some("it would go to n1")),
        (Outcome::Failed { error: "it broke".to_owned() }, placement(&["n1"], 1), None),
    ] {
        let (mut journal, a) = (Journal::default(), pod("a"));
        journal.decided(&decision(&a, 0, last), 1);
        let decisions = journal.recall("default", "a");
        let report = PodReport { decisions, ..eventful() };
        let mut asked = Asked::new("it".to_owned(), report, Some("uid-of-a".to_owned()));
        asked.compare(&now);
        let difference = difference.map(|difference| format!("as computed below, {difference}"));
        assert_eq!(asked.since_then, difference);
        let is_said = render_asked(&asked).contains("since then the cluster has changed");
        assert_eq!(is_said, difference.is_some());
        asked.uid = Some("another".to_owned());
        asked.compare(&now);
        assert_eq!(asked.since_then, None, "it was decided for another pod");
    }
}
