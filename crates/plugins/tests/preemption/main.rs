//! Preemption by rules of one's own: what the library makes of them, beside a naive model that knows numbers only.

mod naive;
mod plugin;

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use supercargo_engine::{Engine, EngineOptions, Indexing, Outcome, Rules, Seed};
use supercargo_framework::{Fixes, Nomination, Plugin, Point, Profile};
use supercargo_model::{Pod, Timestamp};
use supercargo_plugins::kubernetes::{DefaultPreemption, NodeResourcesFit};
use supercargo_testkit::{PodBuilder, TestCluster, cluster, node, pod, trial, trial_with};

use naive::{Resident, World};
use plugin::{Preempting, Script};

const NOW: Timestamp = Timestamp::from_nanoseconds(3_600_000_000_000);

/// A profile in which cpu is all that counts, and these plugins preempt, one after the other.
fn profile(preempting: &[Profile]) -> Profile {
    let mut profile = trial::<NodeResourcesFit>().profile;
    profile.score.clear();
    profile.pre_score.clear();
    for plugin in preempting.iter().flat_map(Profile::plugins) {
        if plugin.reads.memory {
            assert!(profile.add(plugin, Point::PreFilter, 1));
        }
        assert!(profile.add(plugin, Point::PostFilter, 1));
    }
    profile
}

fn by<P: Plugin>(args: Value) -> Profile {
    trial_with::<P>(args).profile
}

fn engine(profiles: Vec<Profile>, cluster: TestCluster, indexing: Indexing) -> Engine {
    let options = EngineOptions { rules: Rules::LIVE, seed: Seed(1), fixes: Fixes::default(), indexing };
    let mut engine = Engine::new(profiles, options);
    engine.cluster = cluster.into_cluster();
    engine
}

/// The node and the victims; nothing if the pod finds room, or gets none.
fn picked(engine: &mut Engine, pod: &Arc<Pod>) -> (Option<(String, Vec<String>)>, String) {
    let outcome = engine.decide(pod, NOW).expect("there is a profile").outcome;
    match outcome {
        Outcome::Unschedulable { nomination: Nomination::Node(node), victims, message, .. } => {
            let victims = victims.iter().map(|victim| victim.name.to_string()).collect();
            (Some((node.to_string(), victims)), message)
        }
        Outcome::Unschedulable { message, .. } => (None, message),
        Outcome::Place { node, .. } => (None, format!("placed on {node}")),
        other => panic!("{other:?}"),
    }
}

fn script(rules: Script) -> Value {
    json!({ "rules": rules })
}

// === beside the naive model ===

fn resident() -> impl Strategy<Value = Resident> {
    let facts = (0..4usize, 1..4i64, 0..5i32, 0..50u32);
    (facts, any::<bool>(), any::<bool>(), 0..7i32, 0..3usize).prop_map(
        |((node, cores, priority, started), is_volunteer, is_protected, tolerates, namespace)| Resident {
            name: String::new(),
            node,
            cores,
            priority,
            started,
            is_volunteer,
            is_protected,
            tolerates,
            namespace,
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let nodes = prop::collection::vec(2..7i64, 1..5);
    let residents = prop::collection::vec(resident(), 1..14);
    let quotas = [(2..9i64, 6..14i64), (2..9, 6..14), (2..9, 6..14)];
    (nodes, residents, 0..3i32, quotas).prop_map(|(nodes, mut residents, budget, quotas)| {
        for (number, resident) in residents.iter_mut().enumerate() {
            resident.node %= nodes.len();
            resident.name = format!("r{number:02}");
        }
        World { nodes, residents, budget, quotas }
    })
}

/// The world as the scheduler sees it.
fn built(world: &World) -> TestCluster {
    let mut cluster = cluster();
    for (number, cores) in world.nodes.iter().enumerate() {
        cluster.put(node(&format!("n{number}")).cpu(&cores.to_string()));
    }
    for resident in &world.residents {
        cluster.put(
            pod(&resident.name)
                .namespace(&format!("ns{}", resident.namespace))
                .uid(&resident.name)
                .cpu(&resident.cores.to_string())
                .priority(resident.priority)
                .started(resident.started)
                .label("preemptible", if resident.is_volunteer { "true" } else { "false" })
                .label("app", if resident.is_protected { "db" } else { "web" })
                .annotation("tolerates", &resident.tolerates.to_string())
                .on(&format!("n{}", resident.node)),
        );
    }
    for namespace in 0..world.quotas.len() {
        cluster.put(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "budget", "namespace": format!("ns{namespace}") },
            "spec": { "selector": { "matchLabels": { "app": "db" } } },
            "status": { "disruptionsAllowed": world.budget },
        }));
    }
    cluster
}

fn preemptor((cores, priority, namespace): (i64, i32, usize)) -> PodBuilder {
    pod("p").cpu(&cores.to_string()).priority(priority).namespace(&format!("ns{namespace}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Several pods, each asked about twice; then its victims go. The engine decides with its index and without.
    #[test]
    fn victims_are_those_of_the_naive_model(
        mut world in world(),
        asked in prop::collection::vec((1..6i64, 1..6i32, 0..3usize), 2..6),
        which in 0..Script::ALL.len(),
    ) {
        let rules = Script::ALL[which];
        let mut built = built(&world);
        let pods: Vec<Arc<Pod>> = asked.iter().map(|asked| built.pod(preemptor(*asked))).collect();
        let args = json!({ "rules": rules, "quotas": world.quotas });
        let mut engine = engine(vec![profile(&[by::<Preempting<'A'>>(args)])], built, Indexing::Checked);
        for (pod, asked) in pods.iter().zip(&asked) {
            let expected = world.preempt(rules, *asked);
            for _ in 0..2 {
                let (actual, message) = picked(&mut engine, pod);
                prop_assert_eq!(&actual, &expected, "{:?}: {}", rules, message);
            }
            for victim in expected.iter().flat_map(|(_, victims)| victims) {
                prop_assert!(engine.cluster.remove_pod(victim).is_some());
                world.residents.retain(|resident| resident.name != *victim);
            }
        }
    }
}

/// Rules that are upstream's come to what DefaultPreemption comes to, message and all.
#[test]
fn without_rules_of_ones_own_it_is_the_default() {
    for allowed in [0, 1] {
        for priority in [1, 3, 100] {
            let build = || {
                let mut cluster = cluster().with(node("a")).with(node("b")).with(node("c").cpu("1"));
                for (name, priority, node) in [("x", 1, "a"), ("y", 2, "a"), ("z", 1, "b"), ("w", 2, "b")] {
                    cluster.put(pod(name).cpu("2").priority(priority).label("app", name).on(node));
                }
                cluster.with(json!({
                    "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                    "metadata": { "name": "budget", "namespace": "default" },
                    "spec": { "selector": { "matchLabels": { "app": "x" } } },
                    "status": { "disruptionsAllowed": allowed },
                }))
            };
            let decide = |preempting: Profile| {
                let mut cluster = build();
                let pod = cluster.pod(pod("p").cpu("2").priority(priority));
                picked(&mut engine(vec![profile(&[preempting])], cluster, Indexing::Checked), &pod)
            };
            let own = decide(by::<Preempting<'A'>>(script(Script::Upstream)));
            assert_eq!(own, decide(by::<DefaultPreemption>(json!({}))), "{allowed} {priority}");
        }
    }
}

// === who found out what ===

/// A full node with a pod that volunteers and one that does not, whose priority is lower.
fn mixed() -> TestCluster {
    cluster()
        .with(node("n"))
        .with(pod("low").cpu("2").priority(0).on("n"))
        .with(pod("volunteer").cpu("2").priority(50).label("preemptible", "true").on("n"))
}

/// Both plugins keep what they find out, under the same node and for pods that the filters cannot tell apart.
#[test]
fn plugins_do_not_take_each_others_findings() {
    let volunteers = || by::<Preempting<'A'>>(script(Script::Volunteers));
    let upstream = || by::<Preempting<'B'>>(script(Script::Upstream));
    let nobody = || by::<Preempting<'B'>>(script(Script::Nobody));
    for (what, preempting, victim) in [
        ("the first one has an answer", vec![volunteers(), upstream()], "volunteer"),
        ("the other one", vec![by::<Preempting<'A'>>(script(Script::Upstream)), nobody()], "low"),
        (
            "the first one finds nobody",
            vec![by::<Preempting<'A'>>(script(Script::Nobody)), upstream()],
            "low",
        ),
    ] {
        let mut cluster = mixed();
        let pods = ["p", "q"].map(|name| cluster.pod(pod(name).cpu("2").priority(10)));
        let mut engine = engine(vec![profile(&preempting)], cluster, Indexing::On);
        for pod in [&pods[0], &pods[1], &pods[0]] {
            let (actual, message) = picked(&mut engine, pod);
            assert_eq!(actual, Some(("n".to_owned(), vec![victim.to_owned()])), "{what}: {message}");
            assert_eq!(engine.check_index(pod, NOW), Ok(None), "{what}");
        }
        assert_eq!(engine.index_statistics().left, 0, "{what}: the index decided");
    }
}

#[test]
fn profiles_do_not_take_each_others_findings() {
    let mut second = profile(&[by::<Preempting<'A'>>(script(Script::Upstream))]);
    second.scheduler_name = "second".to_owned();
    let first = profile(&[by::<Preempting<'A'>>(script(Script::Volunteers))]);
    let mut cluster = mixed();
    let asks = |name: &str, scheduler: &str| {
        pod(name).cpu("2").priority(10).with(json!({ "spec": { "schedulerName": scheduler } }))
    };
    let pods = [("default-scheduler", "volunteer"), ("second", "low")]
        .map(|(scheduler, victim)| (cluster.pod(asks(victim, scheduler)), victim));
    let mut engine = engine(vec![first, second], cluster, Indexing::Checked);
    for (pod, victim) in [&pods[0], &pods[1], &pods[0], &pods[1]] {
        assert_eq!(picked(&mut engine, pod).0, Some(("n".to_owned(), vec![(*victim).to_owned()])));
    }
}

// === words ===

#[test]
fn rules_have_words_of_their_own() {
    let full = || cluster().with(node("n")).with(pod("low").cpu("4").on("n"));
    let condition =
        json!([{ "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler" }]);
    let leaving = |label: &str| {
        let leaving = pod("leaving").priority(500).label("preemptible", label).terminating().on("n");
        full().with(leaving.with(json!({ "status": { "conditions": condition } })))
    };
    let asks = || pod("p").cpu("2").priority(100);
    let nobody = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    for (what, rules, mut cluster, pod, words) in [
        ("nobody volunteers", Script::Volunteers, full(), asks(), nobody),
        (
            "a word on the node",
            Script::Nobody,
            full(),
            asks(),
            "preemption: 0/1 nodes are available: 1 nobody on n may go.",
        ),
        ("what cannot be said", Script::Broken, full(), asks(), "preemption: low cannot be judged"),
        (
            "it is not for this pod",
            Script::Volunteers,
            full(),
            asks().label("patient", "true"),
            "preemption: not eligible: it is patient",
        ),
        (
            "upstream's condition still holds",
            Script::Volunteers,
            full(),
            asks().with(json!({ "spec": { "preemptionPolicy": "Never" } })),
            "preemption: not eligible due to preemptionPolicy=Never.",
        ),
        (
            "a victim by these rules is leaving",
            Script::Volunteers,
            leaving("true"),
            asks().nominated("n"),
            "preemption: not eligible due to a terminating pod on the nominated node.",
        ),
        (
            "somebody is leaving who is no victim",
            Script::Volunteers,
            leaving("false"),
            asks().nominated("n"),
            nobody,
        ),
    ] {
        let pod = cluster.pod(pod);
        let profile = profile(&[by::<Preempting<'A'>>(script(rules))]);
        let (victims, message) = picked(&mut engine(vec![profile], cluster, Indexing::Checked), &pod);
        assert_eq!(victims, None, "{what}");
        assert_eq!(message, format!("0/1 nodes are available: 1 Insufficient cpu. {words}"), "{what}");
    }
}
