use serde_json::{Value, json};
use supercargo_config::{KubeSchedulerConfiguration, build_profiles, load};
use supercargo_framework::{Fixes, Profile};
use supercargo_model::{Decoded, Decoder, Everything, Timestamp};
use supercargo_testkit::{PodBuilder, node, pod};

use super::*;

const NOW: Timestamp = Timestamp::from_nanoseconds(3_600_000_000_000);

fn profiles(config: &KubeSchedulerConfiguration) -> Vec<Profile> {
    build_profiles(config, &supercargo_plugins::registry()).expect("the configuration is usable")
}

fn onlooker() -> Onlooker {
    let mut onlooker = Onlooker::new(profiles(&KubeSchedulerConfiguration::default()), Fixes::default(), &[])
        .expect("is clear");
    onlooker.watch();
    onlooker
}

fn decoded(object: impl Into<Value>) -> Decoded {
    Decoder::default().decode(&object.into().to_string()).expect("is an object")
}

/// What is said when something comes, and nothing else happens for long.
fn put(onlooker: &mut Onlooker, object: impl Into<Value>) -> Option<Comparison> {
    assert_eq!(onlooker.put(decoded(object), NOW), [], "it is held for a moment");
    let said = onlooker.settle(NOW.after(settling::HOLD));
    assert!(said.len() <= 1, "{said:?}");
    said.into_iter().next()
}

fn remove(onlooker: &mut Onlooker, object: impl Into<Value>) {
    assert_eq!(onlooker.remove(&decoded(object), NOW), []);
}

/// What is said about a pod that waited and is bound to a node then.
#[track_caller]
fn bind(onlooker: &mut Onlooker, pod: &PodBuilder, node: &str) -> Comparison {
    assert_eq!(put(onlooker, pod.clone()), None, "nothing has happened yet");
    put(onlooker, pod.clone().on(node)).expect("it is bound now")
}

fn two_nodes() -> Onlooker {
    let mut onlooker = onlooker();
    for name in ["a", "b"] {
        put(&mut onlooker, node(name));
    }
    onlooker
}

#[test]
fn the_same_node_and_one_as_good() {
    let mut onlooker = two_nodes();
    let mut judgements = std::collections::BTreeSet::new();
    for number in 0..16 {
        let name = format!("p{number}");
        let comparison = bind(&mut onlooker, &pod(&name).cpu("100m"), "a");
        assert_eq!((comparison.theirs.as_str(), comparison.feasible), ("a", 2));
        judgements.insert(render_comparison(&comparison).replace(&name, "p"));
        remove(&mut onlooker, pod(&name).on("a"));
    }
    let said: Vec<_> = judgements.iter().map(String::as_str).collect();
    assert_eq!(
        said,
        ["same      default/p: a\n", "tied      default/p: a is as good as b\n"],
        "chance decides"
    );
}

#[test]
fn a_worse_node_and_by_which_plugin() {
    let mut onlooker = two_nodes();
    put(&mut onlooker, pod("busy").cpu("2").on("a"));
    let comparison = bind(&mut onlooker, &pod("p").cpu("1"), "a");
    let Judgement::Worse(difference) = &comparison.judgement else { panic!("{comparison:?}") };
    assert_eq!(comparison.ours.as_deref(), Some("b"));
    assert_eq!(difference.by, -difference.plugins.values().sum::<i64>());
    assert!(difference.plugins["NodeResourcesFit"] < 0, "{difference:?}");
    let line = render_comparison(&comparison);
    assert!(line.starts_with("worse     default/p: a is ") && line.contains("NodeResourcesFit -"), "{line}");
    let json = serde_json::to_value(&comparison).expect("is JSON");
    assert_eq!((&json["verdict"], &json["by"]), (&json!("worse"), &json!(difference.by)));
}

#[test]
fn a_node_that_we_reject_and_why() {
    let mut onlooker = two_nodes();
    put(&mut onlooker, node("tainted").taint("dedicated", "x", "NoSchedule"));
    let comparison = bind(&mut onlooker, &pod("p"), "tainted");
    let Judgement::Rejected { plugin, reason } = &comparison.judgement else { panic!("{comparison:?}") };
    assert_eq!(
        (plugin.as_deref(), reason.as_str()),
        (Some("TaintToleration"), "node(s) had untolerated taint(s)")
    );
    assert!(comparison.ours.is_some());
    let unknown = bind(&mut onlooker, &pod("q"), "nowhere");
    assert_eq!(
        unknown.judgement,
        Judgement::Rejected { plugin: None, reason: "node nowhere is not known here".to_owned() }
    );
    let too_large = bind(&mut onlooker, &pod("r").cpu("100"), "a");
    assert_eq!(too_large.ours, None);
    assert!(render_comparison(&too_large).ends_with("Insufficient cpu (NodeResourcesFit); ours is none\n"));
}

#[test]
fn a_better_node_than_the_one_that_was_promised() {
    let mut onlooker = two_nodes();
    put(&mut onlooker, pod("busy").cpu("2").on("a"));
    let comparison = bind(&mut onlooker, &pod("p").cpu("1").nominated("a"), "b");
    assert_eq!(comparison.ours.as_deref(), Some("a"));
    assert!(matches!(comparison.judgement, Judgement::Better(_)), "{comparison:?}");
}

#[test]
fn each_binding_is_part_of_the_next_decision_but_not_of_its_own() {
    let mut onlooker = two_nodes();
    let fits_once = |name| pod(name).cpu("3");
    assert!(matches!(bind(&mut onlooker, &fits_once("p"), "a").judgement, Judgement::Same | Judgement::Tied));
    assert!(matches!(bind(&mut onlooker, &fits_once("q"), "a").judgement, Judgement::Rejected { .. }));
    remove(&mut onlooker, fits_once("q").on("a"));
    assert!(matches!(bind(&mut onlooker, &fits_once("r"), "b").judgement, Judgement::Same));
}

/// Says which pods wait and are bound, in this order, and checks in which order they are compared.
#[track_caller]
fn check_order(events: &[PodBuilder], expected: &[&str]) {
    let mut onlooker = two_nodes();
    let mut said = Vec::new();
    for event in events {
        said.extend(onlooker.put(decoded(event.clone()), NOW));
    }
    assert_eq!(onlooker.settle(NOW), [], "nothing has been held long enough");
    assert_eq!(onlooker.deadline(), (!expected.is_empty()).then(|| NOW.after(settling::HOLD)));
    said.extend(onlooker.settle(NOW.after(settling::HOLD)));
    let pods: Vec<&str> =
        said.iter().map(|comparison| comparison.pod.trim_start_matches("default/")).collect();
    assert_eq!(pods, expected);
}

#[test]
fn bindings_that_overtake_each_other_are_put_in_order() {
    let (p, q) = (|| pod("p"), || pod("q"));
    check_order(&[p(), q()], &[]);
    check_order(&[p(), q(), p().on("a"), q().on("a")], &["p", "q"]);
    check_order(&[p(), q(), q().on("a"), p().on("a")], &["p", "q"]);
    let urgent = || q().priority(5);
    check_order(&[p(), urgent(), p().on("a"), urgent().on("a")], &["q", "p"]);
    check_order(&[p(), p().on("a"), urgent(), urgent().on("a")], &["p", "q"]);
    let tried = json!({ "status": { "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] } });
    check_order(&[p(), q(), p().with(tried), q().on("a"), p().on("a")], &["q", "p"]);
    check_order(&[p(), q(), p().label("x", "y"), q().on("a"), p().on("a")], &["p", "q"]);
}

#[test]
fn bindings_wait_longer_for_pods_that_leave_the_queue_before_them() {
    let later = |deadline| NOW.after(deadline);
    let tried = json!({ "status": { "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] } });
    let gated = json!({ "spec": { "schedulingGates": [{ "name": "later" }] } });
    for (earlier, until) in [
        (pod("p"), settling::HOLD_FOR_EARLIER),
        (pod("p").priority(-1), settling::HOLD),
        (pod("p").with(tried), settling::HOLD),
        (pod("p").with(gated), settling::HOLD),
    ] {
        let mut onlooker = two_nodes();
        for event in [earlier.clone(), pod("q"), pod("q").on("a"), pod("urgent").priority(5)] {
            assert_eq!(onlooker.put(decoded(event), NOW), []);
        }
        assert_eq!(onlooker.deadline(), Some(later(until)), "{earlier:?}");
        assert_eq!(onlooker.settle(later(until)).len(), 1, "it is not held for ever");
    }
    let mut onlooker = two_nodes();
    for event in [pod("p"), pod("q"), pod("q").on("a")] {
        assert_eq!(onlooker.put(decoded(event), NOW), []);
    }
    assert_eq!(onlooker.settle(later(settling::HOLD)), []);
    assert_eq!(onlooker.put(decoded(pod("p").on("a")), later(settling::HOLD)), []);
    let said = onlooker.settle(later(settling::HOLD));
    assert_eq!(
        said.iter().map(|comparison| &*comparison.pod).collect::<Vec<_>>(),
        ["default/p", "default/q"]
    );
}

#[test]
fn what_is_held_is_compared_before_it_goes() {
    let mut onlooker = two_nodes();
    for event in [pod("p"), pod("q"), pod("q").on("a"), pod("p").on("a")] {
        assert_eq!(onlooker.put(decoded(event), NOW), []);
    }
    let started = pod("p").on("a").with(json!({ "status": { "phase": "Running" } }));
    assert_eq!(onlooker.put(decoded(started), NOW), [], "nothing new");
    let pods = |said: Vec<Comparison>| said.into_iter().map(|comparison| comparison.pod).collect::<Vec<_>>();
    assert_eq!(pods(onlooker.remove(&decoded(pod("q").on("a")), NOW)), ["default/p", "default/q"]);
    assert_eq!(onlooker.deadline(), None);
    for event in [pod("r"), pod("r").on("a")] {
        assert_eq!(onlooker.put(decoded(event), NOW), []);
    }
    assert_eq!(pods(onlooker.pause(NOW)), ["default/r"]);
}

#[test]
fn only_bindings_that_were_seen_are_compared() {
    let mut onlooker = two_nodes();
    assert_eq!(put(&mut onlooker, pod("ready").on("a")), None, "it was never seen waiting");
    let other = || pod("other").with(json!({ "spec": { "schedulerName": "other" } }));
    assert_eq!(put(&mut onlooker, other()), None);
    assert_eq!(put(&mut onlooker, other().on("a")), None, "another scheduler's");
    assert_eq!(put(&mut onlooker, pod("gone")), None);
    remove(&mut onlooker, pod("gone"));
    let bound = put(&mut onlooker, pod("gone").on("a"));
    assert_eq!(bound, None, "it is another pod by then");
    assert_eq!(onlooker.counts(), (2, 0), "nothing is kept of pods that do not wait");
}

#[test]
fn what_happens_while_a_watch_is_broken_is_missed() {
    let mut onlooker = two_nodes();
    for name in ["p", "q", "r"] {
        put(&mut onlooker, pod(name));
    }
    assert_eq!(onlooker.pause(NOW), []);
    assert_eq!(put(&mut onlooker, pod("p").on("a")), None);
    put(&mut onlooker, pod("q"));
    onlooker.retain(&Everything::Pods(["p", "q"].into_iter().map(Into::into).collect()));
    onlooker.retain(&Everything::Nodes(["a".into()].into_iter().collect()));
    onlooker.watch();
    assert_eq!((onlooker.missed(), onlooker.counts()), (1, (1, 1)));
    assert!(put(&mut onlooker, pod("q").on("a")).is_some_and(|q| q.judgement == Judgement::Same));
}

#[test]
fn a_profile_stands_in_for_the_scheduler_that_is_named() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: mine\n";
    let one = load(config).expect("is a configuration").kube;
    let two = load(&format!("{config}- schedulerName: yours\n")).expect("is a configuration").kube;
    let create = |config, given: &[&str]| Onlooker::new(profiles(config), Fixes::default(), &names(given));
    let responsible = |onlooker: Onlooker| onlooker.responsible.into_iter().collect::<Vec<_>>();
    assert_eq!(create(&one, &[]).map(responsible), Ok(vec![("mine".to_owned(), 0)]));
    assert_eq!(
        create(&one, &["default-scheduler"]).map(responsible),
        Ok(vec![("default-scheduler".to_owned(), 0)])
    );
    assert_eq!(create(&two, &["yours"]).map(responsible), Ok(vec![("yours".to_owned(), 1)]));
    let error = create(&two, &["default-scheduler"]).map(responsible).expect_err("is not clear").to_string();
    assert!(
        error.contains("\"default-scheduler\"") && error.ends_with("the configuration has mine, yours"),
        "{error}"
    );
}

#[test]
fn a_summary_adds_up() {
    let comparison = |judgement| Comparison {
        pod: "default/p".to_owned(),
        theirs: "a".to_owned(),
        ours: Some("b".to_owned()),
        feasible: 2,
        judgement,
        held: std::time::Duration::ZERO,
    };
    let difference = |plugins: &[(&str, i64)]| Difference {
        by: plugins.iter().map(|(_, points)| points).sum::<i64>().abs(),
        plugins: plugins.iter().map(|(name, points)| ((*name).to_owned(), *points)).collect(),
    };
    let mut tally = Tally::default();
    assert_eq!(render_summary(&tally.summary(0)), "no pod was bound\n");
    for judgement in [
        Judgement::Same,
        Judgement::Same,
        Judgement::Same,
        Judgement::Tied,
        Judgement::Better(difference(&[("Fit", 3)])),
        Judgement::Worse(difference(&[("Fit", -5), ("Image", 1)])),
        Judgement::Rejected { plugin: Some("Taint".to_owned()), reason: "no".to_owned() },
    ] {
        tally.add(&comparison(judgement));
    }
    let summary = tally.summary(2);
    assert_eq!(summary.agreement_percent, Some(57.1));
    assert_eq!(
        render_summary(&summary),
        "\
7 pods compared, 2 pods missed while the cluster was not known
  same             3   42.9 %  their node is ours
  tied             1   14.3 %  their node is another of the best
  better           1   14.3 %  their node has a higher score than ours
  worse            1   14.3 %  their node has a lower score than ours
  rejected         1   14.3 %  we would not have put the pod there
  what made the difference, their nodes less ours:
    Fit: -2 for 2 pods
    Image: +1 for 1 pod
  what rejected their nodes:
    Taint: 1 pod
"
    );
}
