#![expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]

use serde_json::{Value, json};
use supercargo_engine::{Evaluation, Rules, Thoroughness, evaluate};
use supercargo_framework::{Nomination, Plugin, Point, Profile};
use supercargo_testkit::{
    PodBuilder, TestCluster, args_of, cluster, deleted, node, pod, problems_of, trial, trial_with,
};

use super::*;
use crate::kubernetes::{NodeResourcesFit, TaintToleration};

/// Preemption where the filters are resources and taints.
fn profile(args: Value) -> Profile {
    let mut profile = trial::<NodeResourcesFit>().profile;
    profile.score.clear();
    profile.pre_score.clear();
    assert!(profile.add(&trial::<TaintToleration>().profile.plugins()[0], Point::Filter, 1));
    let preemption = trial_with::<DefaultPreemption>(args).profile;
    assert!(profile.add(&preemption.plugins()[0], Point::PostFilter, 1));
    profile
}

fn run(cluster: &mut TestCluster, pod: PodBuilder) -> Evaluation {
    let pod = cluster.pod(pod);
    let profile = profile(json!({}));
    evaluate(&profile, cluster.context(), &pod, Rules::CONFORMANCE, Thoroughness::FirstRejection, &mut 0)
}

/// A pod of some priority that takes so many cores of a node.
fn victim(name: &str, priority: i32, cpu: &str, node: &str) -> PodBuilder {
    pod(name).priority(priority).cpu(cpu).on(node)
}

fn budget(allowed: i32, selector: Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "budget", "namespace": "default" },
        "spec": { "selector": selector }, "status": { "disruptionsAllowed": allowed },
    })
}

/// The node and the victims that were picked, those that are leaving already among them.
fn picked(cluster: &mut TestCluster, pod: PodBuilder) -> (String, Vec<String>) {
    let evaluation = run(cluster, pod);
    let Nomination::Node(node) = evaluation.nomination else { panic!("{}", evaluation.message) };
    (node.to_string(), evaluation.victims.iter().map(|pod| pod.name.to_string()).collect())
}

#[test]
fn how_many_candidates_are_wanted() {
    let args = DefaultPreemptionArgs {
        min_candidate_nodes_percentage: Some(10),
        min_candidate_nodes_absolute: Some(100),
    };
    let plugin = DefaultPreemption::new(args);
    for (potential, wanted) in [(50, 50), (500, 100), (3000, 300)] {
        assert_eq!(plugin.candidates_wanted(potential), wanted);
    }
}

#[test]
fn as_few_and_as_unimportant_pods_go_as_possible() {
    let four_cores = || pod("p").priority(100).cpu("2");
    for (what, mut cluster, victims) in [
        (
            "only who must",
            cluster().with(node("n")).with(victim("low", 1, "2", "n")).with(victim("lower", 0, "2", "n")),
            &["lower"][..],
        ),
        (
            "the most important first",
            cluster()
                .with(node("n"))
                .with(victim("a", 3, "1", "n"))
                .with(victim("b", 2, "1", "n"))
                .with(victim("c", 1, "2", "n")),
            &["c"],
        ),
        (
            "two small ones, if the large one matters more",
            cluster()
                .with(node("n"))
                .with(victim("large", 3, "2", "n"))
                .with(victim("b", 2, "1", "n"))
                .with(victim("c", 1, "1", "n")),
            &["b", "c"],
        ),
        (
            "the one that started later",
            cluster()
                .with(node("n"))
                .with(victim("new", 1, "2", "n").started(20))
                .with(victim("old", 1, "2", "n").started(10)),
            &["new"],
        ),
        (
            "not who is as important",
            cluster().with(node("n")).with(victim("equal", 100, "2", "n")).with(victim("low", 1, "2", "n")),
            &["low"],
        ),
    ] {
        let (node, mut actual) = picked(&mut cluster, four_cores());
        actual.sort();
        assert_eq!((&*node, actual), ("n", victims.iter().map(ToString::to_string).collect()), "{what}");
    }
}

#[test]
fn the_cheapest_node_is_picked() {
    let full = |name: &str, victims: &[(&str, i32, &str)]| -> Vec<Value> {
        let mut objects = vec![Value::from(node(name))];
        for (victim_name, priority, cpu) in victims {
            objects.push(victim(&format!("{name}-{victim_name}"), *priority, cpu, name).into());
        }
        objects
    };
    let build = |nodes: &[Vec<Value>]| nodes.iter().flatten().cloned().fold(cluster(), TestCluster::with);
    let all = || pod("p").priority(100).cpu("4");
    for (what, nodes, chosen) in [
        ("lowest highest priority", [full("x", &[("a", 10, "4")]), full("y", &[("a", 9, "4")])], "y"),
        (
            "then the smallest sum",
            [full("x", &[("a", 10, "2"), ("b", 5, "2")]), full("y", &[("a", 10, "4")])],
            "y",
        ),
        (
            "fewer pods of negative priority cost less",
            [full("x", &[("a", -1, "2"), ("b", -9, "2")]), full("y", &[("a", -1, "4")])],
            "y",
        ),
        ("then the smaller name", [full("y", &[("a", 1, "4")]), full("x", &[("a", 1, "4")])], "x"),
    ] {
        assert_eq!(picked(&mut build(&nodes), all()).0, chosen, "{what}");
    }
    let mut started = cluster()
        .with(node("x"))
        .with(node("y"))
        .with(victim("old", 1, "4", "x").started(10))
        .with(victim("new", 1, "4", "y").started(20));
    assert_eq!(picked(&mut started, all()).0, "y", "who started later goes");
    let mut protected = build(&[full("x", &[("a", 1, "4")]), full("y", &[("a", 50, "4")])])
        .with(victim("x-a", 1, "4", "x").label("app", "db"))
        .with(budget(0, json!({ "matchLabels": { "app": "db" } })));
    assert_eq!(picked(&mut protected, all()).0, "y", "no budget is violated there");
}

#[test]
fn pods_that_a_budget_protects_are_spared_first() {
    let db = |name: &str, priority: i32| victim(name, priority, "1", "n").label("app", "db");
    let selector = || json!({ "matchLabels": { "app": "db" } });
    let three = |allowed: i32, selector: Value| {
        let cluster = cluster().with(node("n").cpu("3")).with(db("a", 3)).with(db("b", 2)).with(db("c", 1));
        cluster.with(budget(allowed, selector))
    };
    let one_core = || pod("p").priority(100).cpu("1");
    for (what, mut cluster, victim) in [
        ("one may go: the most important, as it is counted first", three(1, selector()), "a"),
        ("all may go", three(3, selector()), "c"),
        ("an empty selector protects nobody", three(0, json!({})), "c"),
        ("none may go", three(0, selector()), "c"),
    ] {
        assert_eq!(picked(&mut cluster, one_core()).1, [victim], "{what}");
    }
    let counted = json!({ "status": { "disruptedPods": { "b": "2020-01-01T00:00:00Z" } } });
    let mut budget = budget(1, selector());
    budget["status"]["disruptedPods"] = counted["status"]["disruptedPods"].clone();
    let mut cluster = three(1, selector()).with(budget);
    assert_eq!(
        picked(&mut cluster, one_core()).1,
        ["b"],
        "its going has been counted already; c would be one too many"
    );
}

#[test]
fn victims_that_are_leaving_already_are_not_evicted() {
    let full = || cluster().with(node("n")).with(victim("leaving", 0, "2", "n").terminating());
    let all = || pod("p").priority(100).cpu("4");
    for (what, mut cluster, evicted) in
        [("one of two", full().with(victim("staying", 0, "2", "n")), &["staying"][..]), ("all", full(), &[])]
    {
        let evaluation = run(&mut cluster, all());
        assert_eq!(evaluation.nomination, Nomination::Node("n".into()), "{what}");
        assert_eq!(evaluation.victims.len(), evicted.len() + 1, "{what}");
        assert_eq!(evaluation.evicted().map(|pod| &*pod.name).collect::<Vec<_>>(), evicted, "{what}");
    }
}

#[test]
fn the_smallest_allowance_becomes_the_largest() {
    let web = json!({ "matchLabels": { "app": "web" } });
    for (allowed, chosen) in [(-1, "b"), (i32::MIN + 1, "b"), (i32::MIN, "a")] {
        let mut cluster = cluster()
            .with(node("a"))
            .with(node("b"))
            .with(victim("web", 0, "4", "a").label("app", "web"))
            .with(victim("other", 1, "4", "b"))
            .with(budget(allowed, web.clone()));
        assert_eq!(picked(&mut cluster, pod("p").priority(100).cpu("4")).0, chosen, "{allowed}");
    }
}

#[test]
fn where_preemption_does_not_help_it_says_so() {
    let beyond = cluster().with(node("small").cpu("1")).with(victim("low", 0, "1", "small"));
    let equal = cluster().with(node("n")).with(victim("equal", 100, "4", "n"));
    let tainted = cluster().with(node("n").taint("x", "", "NoSchedule")).with(victim("low", 0, "4", "n"));
    let promised = cluster()
        .with(node("n"))
        .with(victim("low", 0, "4", "n"))
        .with(pod("first").priority(200).cpu("4").nominated("n"));
    for (what, mut cluster, message) in [
        (
            "the node is too small",
            beyond,
            "1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        ),
        (
            "nobody matters less",
            equal,
            "1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        ),
        (
            "the room is promised to another",
            promised,
            "1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Insufficient cpu.",
        ),
        (
            "both, and the first word counts",
            tainted,
            "1 Insufficient cpu. preemption: 0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        ),
    ] {
        let evaluation = run(&mut cluster, pod("p").priority(100).cpu("2"));
        assert_eq!(evaluation.message, format!("0/1 nodes are available: {message}"), "{what}");
        assert_eq!((evaluation.nomination, evaluation.victims.len()), (Nomination::Clear, 0), "{what}");
    }
}

#[test]
fn some_pods_may_not_preempt() {
    let full = || cluster().with(node("n")).with(victim("low", 0, "4", "n"));
    let preemptor = || pod("p").priority(100).cpu("2");
    let never = preemptor().with(json!({ "spec": { "preemptionPolicy": "Never" } }));
    let evaluation = run(&mut full(), never);
    let suffix = "preemption: not eligible due to preemptionPolicy=Never.";
    assert_eq!(evaluation.message, format!("0/1 nodes are available: 1 Insufficient cpu. {suffix}"));
    assert_eq!(evaluation.nomination, Nomination::Keep);

    let condition =
        json!([{ "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler" }]);
    let leaving = |priority: i32| {
        victim("leaving", priority, "1", "n")
            .terminating()
            .with(json!({ "status": { "conditions": condition } }))
    };
    let again = || preemptor().nominated("n");
    let evaluation = run(&mut full().with(leaving(0)), again());
    assert!(evaluation.message.ends_with("not eligible due to a terminating pod on the nominated node."));
    assert_eq!(evaluation.nomination, Nomination::Keep);
    for (what, mut cluster, pod) in [
        ("it is no victim of this pod", full().with(leaving(100)), again()),
        ("somebody else deletes it", full().with(victim("leaving", 0, "1", "n").terminating()), again()),
        (
            "the pod was nominated elsewhere",
            full().with(leaving(0)).with(node("m").cpu("1")),
            preemptor().nominated("m"),
        ),
        ("its node is gone", full().with(leaving(0)), preemptor().nominated("gone")),
    ] {
        assert_eq!(picked(&mut cluster, pod).0, "n", "{what}");
    }
}

#[test]
fn pods_that_go_are_no_hint_here() {
    trial::<DefaultPreemption>().check_hints(
        &mut cluster(),
        pod("p"),
        [("others know better", deleted(pod("other").on("n")), Hint::Skip)],
    );
    let mut cluster = cluster();
    let pod = cluster.pod(pod("p"));
    let gate = trial::<DefaultPreemption>().profile.pre_enqueue.remove(0).plugin;
    assert!(gate.pre_enqueue(&cluster.context(), &pod).is_success());
}

#[test]
fn arguments() {
    let (percentage, absolute) = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute");
    assert_eq!(args_of::<DefaultPreemption>(json!({})), json!({ percentage: 10, absolute: 100 }));
    let range = |value: i32| format!("{percentage}: Invalid value: {value}: not in valid range [0, 100]");
    for (args, problems) in [
        (json!({ percentage: 0 }), vec![]),
        (json!({ absolute: 0 }), vec![]),
        (json!({ percentage: -1 }), vec![range(-1)]),
        (json!({ percentage: 101 }), vec![range(101)]),
        (
            json!({ absolute: -1 }),
            vec![format!("{absolute}: Invalid value: -1: not in valid range [0, inf)")],
        ),
        (
            json!({ percentage: 0, absolute: 0 }),
            vec![
                format!("{percentage}: Invalid value: 0: cannot be zero at the same time as {absolute}"),
                format!("{absolute}: Invalid value: 0: cannot be zero at the same time as {percentage}"),
            ],
        ),
    ] {
        assert_eq!(problems_of::<DefaultPreemption>(args), problems);
    }
}
