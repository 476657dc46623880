//! What the hot pieces cost by themselves: `cargo bench -p supercargo-conformance`.
//!
//! `supercargo bench decide` measures whole decisions; this says which piece of one became slower. The best of many runs is
//! the figure to look at, because machines are shared.

use std::sync::Arc;

use divan::{Bencher, black_box};
use supercargo_config::{build_profiles, load};
use supercargo_engine::{Engine, EngineOptions, Indexing, Outcome, Rules, Scheduler, SchedulerOptions, Seed};
use supercargo_framework::{Columns, Fixes, Needs, Profile};
use supercargo_model::{Interner, Pod, Quantity, Row, Timestamp};
use supercargo_testkit::{PodBuilder, TestCluster, cluster, node, pod};

const NODES: usize = 5000;
const CONFIG: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn main() {
    divan::main();
}

fn profile() -> Profile {
    let loaded = load(CONFIG).expect("the configuration is right");
    build_profiles(&loaded.kube, &supercargo_plugins::registry()).expect("the profile is right").remove(0)
}

/// Nodes of 4 cores in three zones, each with a pod or none.
fn busy_cluster() -> TestCluster {
    let mut cluster = cluster();
    for number in 0..NODES {
        let name = format!("node-{number}");
        let zone = format!("zone-{}", number % 3);
        cluster.put(
            node(&name).cpu("4").memory("32Gi").pods(110).label("kubernetes.io/hostname", &name).zone(&zone),
        );
        if number % 2 == 0 {
            cluster.put(asking(&format!("bound-{number}")).on(&name));
        }
    }
    cluster
}

fn asking(name: &str) -> PodBuilder {
    pod(name).label("app", "web").cpu("100m").memory("500Mi")
}

fn spread(name: &str) -> PodBuilder {
    asking(name).spread(serde_json::json!({
        "maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }))
}

fn engine(cluster: TestCluster) -> Engine {
    let options =
        EngineOptions { rules: Rules::LIVE, seed: Seed(1), fixes: Fixes::default(), indexing: Indexing::On };
    let mut engine = Engine::new(vec![profile()], options);
    engine.cluster = cluster.into_cluster();
    engine
}

// === Reading ===

#[divan::bench(args = ["100m", "500Mi", "1.5", "123456789012345678901234567890n"])]
fn quantity(bencher: Bencher<'_, '_>, text: &str) {
    bencher.bench(|| black_box(text).parse::<Quantity>());
}

#[divan::bench]
fn pod_from_json(bencher: Bencher<'_, '_>) {
    let text = serde_json::Value::from(spread("reader")).to_string();
    let mut interner = Interner::default();
    bencher.bench_local(|| interner.pod(serde_json::from_str(black_box(&text)).expect("a pod")));
}

// === The table ===

#[divan::bench]
fn bind_and_remove(bencher: Bencher<'_, '_>) {
    let mut cluster = busy_cluster();
    let pod = cluster.pod(asking("coming"));
    let mut table = cluster.into_cluster();
    let mut rows = (0..NODES as u32).cycle().step_by(997);
    bencher.bench_local(|| {
        let row = rows.next().expect("it goes round");
        table.bind_pod(&pod, Row(row)).expect("it is not bound");
        table.remove_pod(&pod.uid)
    });
}

#[divan::bench]
fn columns_of_all_nodes(bencher: Bencher<'_, '_>) {
    let cluster = busy_cluster();
    let mut columns = Columns::default();
    columns.resize(NODES);
    bencher.bench_local(|| {
        for node in cluster.snapshot().nodes() {
            columns.set(node.row().0 as usize, node);
        }
    });
}

// === Clones ===

/// Ten pods on every node, two of them of a label that plugins may count.
fn full_cluster() -> TestCluster {
    let mut cluster = busy_cluster();
    for number in 0..10 * NODES {
        let name = format!("node-{}", number % NODES);
        cluster.put(asking(&format!("full-{number}")).label("set", &(number % 500).to_string()).on(&name));
    }
    cluster
}

#[divan::bench]
fn clone_cluster(bencher: Bencher<'_, '_>) {
    let cluster = full_cluster().into_cluster();
    bencher.bench_local(|| cluster.clone());
}

#[divan::bench]
fn clone_engine(bencher: Bencher<'_, '_>) {
    let engine = engine(full_cluster());
    bencher.bench_local(|| engine.clone());
}

/// With 100 pods that wait.
#[divan::bench]
fn clone_scheduler(bencher: Bencher<'_, '_>) {
    let scheduler = scheduler();
    bencher.bench_local(|| scheduler.clone());
}

/// What the first pods cost that a clone binds: parts that are still shared are copied.
#[divan::bench(args = [1, 100])]
fn bind_in_clone(bencher: Bencher<'_, '_>, pods: u32) {
    let mut cluster = full_cluster();
    let pod = cluster.pod(asking("coming"));
    let cluster = cluster.into_cluster();
    bencher.with_inputs(|| cluster.clone()).bench_local_values(|mut clone| {
        for number in 0..pods {
            let coming = Pod { uid: format!("coming-{number}").into(), ..Pod::clone(&pod) };
            clone.bind_pod(&coming, Row(number * 37)).expect("it is not bound");
        }
        clone
    });
}

/// A clone begins without an index, and makes it for its first decision.
#[divan::bench(sample_count = 20)]
fn first_decision_of_clone(bencher: Bencher<'_, '_>) {
    let mut cluster = full_cluster();
    let pod = cluster.pod(asking("coming"));
    let engine = engine(cluster);
    bencher.with_inputs(|| engine.clone()).bench_local_values(|mut clone| {
        clone.decide(&pod, Timestamp::default()).expect("a profile is responsible");
        clone
    });
}

fn scheduler() -> Scheduler {
    let options = SchedulerOptions::new(EngineOptions {
        rules: Rules::LIVE,
        seed: Seed(1),
        fixes: Fixes::default(),
        indexing: Indexing::On,
    });
    let decoder = Needs::of(&[profile()]).decoder();
    let mut scheduler = Scheduler::new(vec![profile()], options);
    let mut put = |object: serde_json::Value| {
        scheduler.put(decoder.decode(&object.to_string()).expect("an object"), Timestamp::default());
    };
    for number in 0..NODES {
        put(node(&format!("node-{number}")).cpu("4").memory("32Gi").pods(110).into());
    }
    for number in 0..10 * NODES {
        put(asking(&format!("full-{number}")).on(&format!("node-{}", number % NODES)).into());
    }
    for number in 0..100 {
        put(asking(&format!("waiting-{number}")).into());
    }
    scheduler
}

// === All nodes at once ===

#[divan::bench(args = ["NodeResourcesFit", "NodeResourcesBalancedAllocation"])]
fn score_all_nodes(bencher: Bencher<'_, '_>, plugin: &str) {
    let mut cluster = busy_cluster();
    let pod = cluster.pod(asking("coming"));
    let mut columns = Columns::default();
    columns.resize(NODES);
    for node in cluster.snapshot().nodes() {
        columns.set(node.row().0 as usize, node);
    }
    let profile = profile();
    let mut cycle = cluster.cycle(&pod);
    for named in &profile.pre_score {
        // What a plugin says there is of no interest, what it leaves is.
        let _ = named.plugin.pre_score(&mut cycle, &[]);
    }
    let (named, _) = profile.score.iter().find(|(named, _)| named.name == plugin).expect("a default plugin");
    let mut scores = vec![0; NODES];
    bencher.bench_local(|| assert!(named.plugin.score_rows(&cycle, columns.view(0..NODES), &mut scores)));
}

// === Whole decisions ===

/// The first pod of a class: every plugin is asked about every node.
#[divan::bench(sample_count = 20)]
fn first_decision(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(|| engine_and_pod(&asking)).bench_local_values(|(mut engine, pod)| {
        engine.decide(&pod, Timestamp::default()).expect("a profile is responsible")
    });
}

/// The next pod of a class, on a cluster in which one row has changed since.
#[divan::bench(args = ["basic", "spread"])]
fn next_decision(bencher: Bencher<'_, '_>, kind: &str) {
    let (mut engine, pod) = engine_and_pod(if kind == "basic" { &asking } else { &spread });
    bencher.bench_local(|| {
        let decision = engine.decide(&pod, Timestamp::default()).expect("a profile is responsible");
        let Outcome::Place { row, .. } = decision.outcome else { panic!("there is room") };
        engine.assume(&pod, row).expect("it is not bound");
        engine.cluster.remove_pod(&pod.uid)
    });
}

/// A pod that fits nowhere, tried again after one row has changed: the message is part of it.
#[divan::bench]
fn unfit_again(bencher: Bencher<'_, '_>) {
    let (mut engine, unfit) = engine_and_pod(&|name| pod(name).cpu("64"));
    let other = Arc::new(Pod { uid: "other".into(), ..Pod::clone(&unfit) });
    bencher.bench_local(|| {
        engine.cluster.bind_pod(&other, Row(7)).expect("it is not bound");
        engine.cluster.remove_pod(&other.uid);
        engine.decide(&unfit, Timestamp::default()).expect("a profile is responsible")
    });
}

fn engine_and_pod(make: &dyn Fn(&str) -> PodBuilder) -> (Engine, Arc<Pod>) {
    let mut cluster = busy_cluster();
    let pod = cluster.pod(make("coming"));
    (engine(cluster), pod)
}
