//! Workloads as they are meant, and runs that are right, repeatable, and caught if they are not.

use std::collections::BTreeSet;

use supercargo_engine::Seed;
use supercargo_model::{Cluster, LabelLookup, Labels, Pod};

use super::nodes::{DEDICATED, NodeKind, NodeMaker, RACK, ZONE};
use super::pods::{MEASURED_NAMESPACE, PodKind, PodMaker};
use super::scene::Scene;
use super::workloads::{Course, Init};
use super::*;

fn workload(name: &str) -> &'static Workload {
    WORKLOADS.iter().find(|workload| workload.name == name).expect("there is such a workload")
}

fn default_profile(percent: u8) -> Profile {
    profile(None, percent, &supercargo_plugins::registry()).expect("the default profile is right")
}

fn pod(kind: &PodKind, number: usize) -> Pod {
    let mut cluster = Cluster::default();
    (*PodMaker::new(kind, MEASURED_NAMESPACE).pod(number, cluster.interner())).clone()
}

/// Runs all steps.
fn finished(plan: &Plan) -> Scene {
    let mut scene = plan.scene().expect("can be set up");
    for step in 0..scene.steps() {
        scene.step(step, |engine, pod| Ok(engine.decide(pod, NOW)?)).expect("goes well");
    }
    scene
}

/// All pods with the labels of their nodes, by name.
fn places(scene: &mut Scene) -> Vec<(String, Labels)> {
    let snapshot = scene.engine.cluster.snapshot();
    let of_node = |node: supercargo_model::NodeRef<'_>| {
        let labels: Labels = node.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        node.pods().iter().map(|pod| (pod.name.to_string(), labels.clone())).collect::<Vec<_>>()
    };
    let mut places: Vec<_> = snapshot.nodes().flat_map(of_node).collect();
    places.sort_by(|a, b| a.0.cmp(&b.0));
    places
}

#[test]
fn the_first_ten_are_those_of_the_peer() {
    let ten = WORKLOADS[..10].iter().map(|workload| {
        let Init::Decided(init, kind) = workload.init else { panic!("all its pods are decided for") };
        assert_eq!(workload.pod.name, workload.name);
        assert_eq!(workload.nodes, NodeKind::Plain);
        (workload.name, kind.name, init, workload.pods)
    });
    let expected = [
        ("basic", "basic", 1000, 10_000),
        ("anti", "anti", 1000, 2000),
        ("affinity", "affinity", 5000, 2000),
        ("preferred-affinity", "preferred-affinity", 5000, 2000),
        ("spread", "basic", 5000, 2000),
        ("preferred-spread", "basic", 5000, 2000),
        ("node-affinity", "basic", 1000, 2000),
        ("mixed", "basic", 1000, 4000),
        ("unschedulable", "basic", 1000, 1000),
        ("churn", "basic", 5000, 2000),
    ];
    assert_eq!(ten.collect::<Vec<_>>(), expected);
}

#[test]
fn names_are_different_and_described() {
    let names: BTreeSet<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
    assert_eq!(names.len(), WORKLOADS.len());
    assert!(WORKLOADS.iter().all(|workload| !workload.description.is_empty() && workload.pods > 0));
}

#[test]
fn the_comparison_knows_all_of_them() {
    let script = include_str!("../../../../bench/compare");
    let listed = |heading: &str| {
        let list = script.split(heading).nth(1).and_then(|rest| rest.split(']').next()).expect("is listed");
        list.split('"').skip(1).step_by(2).collect::<Vec<_>>()
    };
    let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
    assert_eq!((listed("SHARED = ["), listed("OURS = [")), (names[..10].to_vec(), names[10..].to_vec()));
}

#[test]
fn what_pods_ask_for() {
    const MIB: i64 = 1 << 20;
    for (name, number, milli_cpu, memory) in [
        ("basic", 0, 100, 500 * MIB),
        ("anti", 7, 100, 500 * MIB),
        ("spread", 7, 100, 500 * MIB),
        // 3 × 7919 is 757 modulo 1000, which is 7 modulo 50.
        ("mixed", 3, 17, 100 * MIB),
        ("unschedulable", 1, 9000, 0),
        ("churn", 1, 100, 500 * MIB),
        // and 17 modulo 20.
        ("deployments", 3, 180, 100 * MIB),
        ("classes", 501, 11, 64 * MIB + 501 * 1024),
        ("preemption", 0, 1000, 500 * MIB),
    ] {
        let pod = pod(workload(name).pod, number);
        let requests = &pod.requests().resources;
        assert_eq!((requests.milli_cpu, requests.memory), (milli_cpu, memory), "{name}");
    }
    assert_eq!(pod(workload("mixed").pod, 3).labels.label("app"), Some("app-757"));
    let pod = pod(workload("basic").pod, 12);
    assert_eq!((pod.key().as_str(), &*pod.uid), ("sched-1/basic-12", "sched-1/basic-12"));
}

#[test]
fn what_nodes_are() {
    let mut cluster = Cluster::default();
    for kind in [NodeKind::Plain, NodeKind::Racked, NodeKind::Tainted] {
        cluster.put_node(&NodeMaker::new(kind).node(3004));
        let snapshot = cluster.snapshot();
        let node = snapshot.node(snapshot.row_of("node-0003004").expect("was put"));
        assert_eq!((node.allocatable().milli_cpu, node.allocatable().memory), (4000, 32 << 30));
        assert_eq!(node.allowed_pods(), 110);
        assert_eq!(node.label(ZONE), Some("moon-2"));
        assert_eq!(node.label("kubernetes.io/hostname"), Some("node-0003004"));
        assert_eq!(node.label(RACK), (kind == NodeKind::Racked).then_some("rack-4"));
        assert_eq!(node.taints().len(), usize::from(kind == NodeKind::Tainted));
    }
}

/// Every workload, small, with every decision compared.
#[test]
fn all_workloads_run_and_are_right() {
    let profile = default_profile(0);
    for workload in WORKLOADS {
        let plan = Plan::new(workload, &profile, 30, Some(8), Some(10)).expect("can be planned");
        let (run, placed) = run_once(&plan).unwrap_or_else(|error| panic!("{}: {error:#}", workload.name));
        assert_eq!(run.latencies.len(), 10);
        assert_eq!(run.earlier_first.is_some(), !plan.starts_cold());
        let rejected = placed.iter().filter(|row| row.is_none()).count();
        assert_eq!(rejected, if workload.course == Course::Reject { 10 } else { 0 }, "{}", workload.name);
        let budget = Duration::from_secs(3600);
        let check = Check { plan: &plan, placed: &placed, options: engine_options(), budget };
        let checked = check.run(|_, _| ()).unwrap_or_else(|error| panic!("{error:#}"));
        let decisions = if workload.course == Course::Preempt { 20 } else { 18 };
        assert_eq!(checked, Checked { compared: decisions, decisions }, "{}", workload.name);
    }
}

#[test]
fn a_share_of_the_nodes_is_checked_too() {
    let profile = default_profile(10);
    let plan = Plan::new(workload("spread"), &profile, 150, Some(5), Some(20)).expect("can be planned");
    let (_, placed) = run_once(&plan).expect("goes well");
    let budget = Duration::from_secs(3600);
    let check = Check { plan: &plan, placed: &placed, options: engine_options(), budget };
    assert_eq!(check.run(|_, _| ()).expect("is right"), Checked { compared: 25, decisions: 25 });
}

#[test]
fn a_small_budget_compares_the_first_and_the_last_that_were_measured() {
    let profile = default_profile(0);
    let plan = Plan::new(workload("basic"), &profile, 30, Some(5), Some(20)).expect("can be planned");
    let (_, placed) = run_once(&plan).expect("goes well");
    let budget = Duration::from_nanos(1);
    let check = Check { plan: &plan, placed: &placed, options: engine_options(), budget };
    let checked = check.run(|_, _| ()).expect("is right");
    assert!((2..=3).contains(&checked.compared), "{checked:?}");
    assert_eq!(checked.decisions, 25);
}

#[test]
fn a_wrong_decision_is_caught() {
    let profile = default_profile(0);
    let plan = Plan::new(workload("basic"), &profile, 30, Some(5), Some(20)).expect("can be planned");
    let (_, placed) = run_once(&plan).expect("goes well");
    let budget = Duration::from_secs(3600);
    // Another seed resolves ties otherwise, as an engine with a mistake might.
    let other = supercargo_engine::EngineOptions { seed: Seed(1), ..engine_options() };
    let check = Check { plan: &plan, placed: &placed, options: other, budget };
    let error = format!("{:#}", check.run(|_, _| ()).expect_err("differs"));
    for expected in
        ["workload basic, ", "(sched-", "the decision differs", "decided: Verdict", "plain:   Verdict"]
    {
        assert!(error.contains(expected), "{expected:?} is missing in:\n{error}");
    }
    let mut moved = placed.clone();
    moved[7] = moved[7].map(|Row(row)| Row((row + 1) % 30));
    let check = Check { plan: &plan, placed: &moved, options: engine_options(), budget };
    let error = format!("{:#}", check.run(|_, _| ()).expect_err("differs"));
    assert!(error.contains("workload basic, measured pod 2 (sched-1/basic-2): not repeatable"), "{error}");
}

#[test]
fn churn_takes_the_oldest_pods_and_changes_nodes() {
    let profile = default_profile(0);
    let plan = Plan::new(workload("churn"), &profile, 30, Some(8), Some(10)).expect("can be planned");
    let mut scene = finished(&plan);
    let names: Vec<String> = places(&mut scene).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["churn-2", "churn-3", "churn-4", "churn-5", "churn-6", "churn-7", "churn-8", "churn-9"]
    );
    let snapshot = scene.engine.cluster.snapshot();
    let changed = snapshot.nodes().filter(|node| node.label("generation").is_some()).count();
    assert_eq!(changed, 10);
}

#[test]
fn a_preemptor_takes_the_place_of_five() {
    let profile = default_profile(0);
    let plan = Plan::new(workload("preemption"), &profile, 6, None, Some(10)).expect("can be planned");
    assert_eq!((plan.init, plan.unmeasured()), (120, 0));
    let names: Vec<String> = places(&mut finished(&plan)).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("preemptor-")).count(), 10);
    assert_eq!(names.len(), 120 - 5 * 10 + 10);
}

#[test]
fn pods_stay_where_their_volumes_and_taints_let_them() {
    let profile = default_profile(0);
    let plan = Plan::new(workload("volumes"), &profile, 30, Some(0), Some(12)).expect("can be planned");
    for (name, labels) in places(&mut finished(&plan)) {
        let number: usize = name.rsplit('-').next().and_then(|number| number.parse().ok()).expect("a number");
        let zone = format!("moon-{}", number % 3 + 1);
        assert!(number % 2 == 1 || labels.label(ZONE) == Some(&zone), "{name} is in {labels:?}");
    }
    let plan = Plan::new(workload("taints"), &profile, 8, Some(0), Some(40)).expect("can be planned");
    let mut scene = finished(&plan);
    let snapshot = scene.engine.cluster.snapshot();
    let dedicated =
        snapshot.nodes().filter(|node| node.taints().iter().any(|taint| *taint.key == *DEDICATED.0));
    let guests: Vec<_> = dedicated.flat_map(|node| node.pods()).collect();
    assert!(!guests.is_empty() && guests.iter().all(|pod| !pod.spec.tolerations.is_empty()));
}
