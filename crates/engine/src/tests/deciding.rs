use serde_json::json;
use supercargo_framework::{Acts, Fixes, Memory, Reserve};
use supercargo_model::Timestamp;

use super::*;
use crate::{Decision, Engine, EngineOptions, Indexing, Outcome, Seed};

const NOW: Timestamp = Timestamp::from_nanoseconds(0);

fn engine(profile: Profile, rules: Rules) -> Engine {
    Engine::new(
        vec![profile],
        EngineOptions { rules, seed: Seed(1), fixes: Fixes::default(), indexing: Indexing::Checked },
    )
}

/// An engine with some nodes, and a pod to decide for.
fn with_nodes<const N: usize>(profile: Profile, rules: Rules, nodes: [NodeBuilder; N]) -> (Engine, Arc<Pod>) {
    let mut cluster = nodes.into_iter().fold(cluster(), TestCluster::with);
    let pod = cluster.pod(pod("p"));
    let mut engine = engine(profile, rules);
    engine.cluster = cluster.into_cluster();
    (engine, pod)
}

fn node_of(decision: &Decision) -> &str {
    match &decision.outcome {
        Outcome::Place { node, .. } => node,
        other => panic!("it was not placed: {other:?}"),
    }
}

#[test]
fn a_decision_is_small_and_unfolds_into_every_word() {
    let scripts = [
        json!({ "filter": { "n1": "unschedulable: a" }, "scores": { "n2": 10, "n3": 40 } }),
        json!({ "filter": { "n1": "unresolvable: b" } }),
        json!({ "preFilter": "skip", "scores": { "n3": 2 } }),
    ];
    let (mut engine, pod) = with_nodes(profile(scripts), Rules::LIVE, ["n1", "n2", "n3"].map(node));
    let decision = engine.decide(&pod, NOW).expect("there is a profile");
    let Outcome::Place { row, node, score, feasible, .. } = &decision.outcome else { panic!("it fits") };
    assert_eq!((&**node, *score, *feasible), ("n3", 42, 2));

    let whole = engine.unfold(&decision).expect("nothing has changed");
    assert_eq!(whole.chosen, Some(*row));
    let words: Vec<String> = whole.words[0]
        .1
        .iter()
        .map(|word| format!("{}: {}", word.plugin, supercargo_testkit::status_text(&word.status)))
        .collect();
    assert_eq!(
        words,
        ["A: unschedulable: a", "B: unresolvable: b", "C: skip"],
        "also after the first rejection"
    );
    assert_eq!(whole.words.len(), 3, "every node");
    assert_eq!(whole.scores.len(), 3, "every score");

    engine.assume(&pod, *row).expect("it fits");
    let stale = engine.unfold(&decision).expect_err("the cluster has changed");
    assert!(stale.current > stale.decided);
    assert!(stale.to_string().starts_with("the decision was made on version "));
    assert!(engine.assume(&pod, *row).is_err(), "a pod is on one node once");
}

#[test]
fn unfolding_repeats_the_draw_and_leaves_no_trace() {
    let (mut engine, pod) =
        with_nodes(profile([json!({})]), Rules::LIVE, ["a", "b", "c", "d", "e"].map(node));
    let decisions: Vec<Decision> = (0..8).map(|_| engine.decide(&pod, NOW).expect("a profile")).collect();
    assert!(decisions.iter().any(|decision| node_of(decision) != node_of(&decisions[0])), "attempts differ");
    for decision in decisions.iter().rev() {
        let chosen = engine.unfold(decision).expect("nothing has changed").chosen.expect("it fits");
        assert_eq!(&**engine.cluster.snapshot().node(chosen).name(), node_of(decision));
    }
    let (mut other, _) = with_nodes(profile([json!({})]), Rules::LIVE, ["a", "b", "c", "d", "e"].map(node));
    for decision in &decisions {
        assert_eq!(node_of(&other.decide(&pod, NOW).expect("a profile")), node_of(decision), "the same seed");
    }
}

#[test]
fn a_pod_that_fits_nowhere_is_an_answer() {
    let script = json!({ "filter": { "n1": "unschedulable: full" } });
    let (mut engine, pod) = with_nodes(profile([script]), Rules::LIVE, [node("n1")]);
    let decision = engine.decide(&pod, NOW).expect("there is a profile");
    let Outcome::Unschedulable { message, plugins, nomination, victims, .. } = decision.outcome else {
        panic!("no room")
    };
    assert_eq!(message, "0/1 nodes are available: 1 full.");
    assert_eq!((plugins.len(), nomination, victims.len()), (1, Nomination::Clear, 0));

    let (mut engine, pod) =
        with_nodes(profile([json!({ "preFilter": "error: broken" })]), Rules::LIVE, [node("n1")]);
    let decision = engine.decide(&pod, NOW).expect("there is a profile");
    let Outcome::Failed { error } = decision.outcome else { panic!("it broke") };
    assert_eq!(error, r#"running PreFilter plugin "A": broken"#);
}

#[test]
fn without_nodes_no_plugin_is_asked_and_none_to_blame() {
    for said in ["error: never asked", "unschedulable: never asked"] {
        let (mut engine, pod) = with_nodes(profile([json!({ "preFilter": said })]), Rules::LIVE, []);
        let decision = engine.decide(&pod, NOW).expect("there is a profile");
        let Outcome::Unschedulable { message, plugins, nomination, .. } = decision.outcome else {
            panic!("no nodes")
        };
        assert_eq!(message, "no nodes available to schedule pods");
        assert_eq!((plugins.len(), nomination), (0, Nomination::Clear));
    }
}

#[test]
fn a_pod_of_an_unknown_scheduler_is_refused() {
    let (mut engine, pod) = with_nodes(Profile::new("mine"), Rules::LIVE, [node("n1")]);
    let error = engine.decide(&pod, NOW).expect_err("it is not ours").to_string();
    let expected =
        "pod default/p asks for scheduler \"default-scheduler\", which no profile is responsible for";
    assert_eq!(error, expected);
}

/// Prefers the node it has sent the fewest pods to.
struct Fair;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Sent(BTreeMap<String, i64>);

impl Memory for Sent {
    const NAME: &'static str = "Fair/Sent";
    const SAVED: Option<u32> = Some(1);
}

impl Plugin for Fair {
    const NAME: &'static str = "Fair";
    type Args = supercargo_framework::NoArgs;

    fn new(_: Self::Args) -> Self {
        Fair
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score().reserve().remembers::<Sent>()
    }
}

impl Score for Fair {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let sent = cycle.context.memories.get::<Sent>().and_then(|sent| sent.0.get(&**node.name()));
        Ok(100 - sent.copied().unwrap_or(0).min(100))
    }
}

impl Reserve for Fair {
    fn reserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) -> Status {
        *acts.memory::<Sent>().0.entry(node.name().to_string()).or_default() += 1;
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) {
        *acts.memory::<Sent>().0.entry(node.name().to_string()).or_default() -= 1;
    }
}

#[test]
fn what_plugins_remember_outlives_the_cycle_and_the_engine() {
    let fair = || supercargo_testkit::trial::<Fair>().profile;
    let conformance = Rules::CONFORMANCE;
    let (mut engine, pod) = with_nodes(fair(), conformance, [node("a"), node("b")]);
    assert_eq!(node_of(&engine.decide(&pod, NOW).expect("a profile")), "a");
    engine.memories().get_mut::<Sent>().0.insert("a".to_owned(), 3);
    assert_eq!(node_of(&engine.decide(&pod, NOW).expect("a profile")), "b");

    let saved = engine.memories().save();
    let (mut restored, pod) = with_nodes(fair(), conformance, [node("a"), node("b")]);
    assert_eq!(restored.memories().restore(&saved.entries), [], "it is declared");
    assert_eq!(node_of(&restored.decide(&pod, NOW).expect("a profile")), "b");
    assert!(restored.memories().forget(Sent::NAME));
    assert_eq!(node_of(&restored.decide(&pod, NOW).expect("a profile")), "a");
}

#[test]
fn other_profiles_keep_what_their_plugins_remember_and_forget_the_rest() {
    let fair = || supercargo_testkit::trial::<Fair>().profile;
    let conformance = Rules::CONFORMANCE;
    let (mut engine, pod) = with_nodes(fair(), conformance, [node("a"), node("b")]);
    let options = EngineOptions {
        rules: conformance,
        seed: Seed(1),
        fixes: Fixes::default(),
        indexing: Indexing::Checked,
    };
    engine.memories().get_mut::<Sent>().0.insert("a".to_owned(), 3);
    let before = engine.decide(&pod, NOW).expect("a profile");
    engine.replace(vec![fair()], options, &[]);
    assert_eq!(node_of(&engine.decide(&pod, NOW).expect("a profile")), "b", "it remembers");
    assert!(engine.unfold(&before).is_err(), "who decided is not there any more");

    let other = || Profile::new("default-scheduler");
    engine.replace(vec![other()], options, &[Arc::new(fair())]);
    engine.replace(vec![fair()], options, &[]);
    assert_eq!(node_of(&engine.decide(&pod, NOW).expect("a profile")), "b", "it was still in use");

    engine.replace(vec![other()], options, &[]);
    engine.replace(vec![fair()], options, &[]);
    assert_eq!(node_of(&engine.decide(&pod, NOW).expect("a profile")), "a", "it was away, and begins anew");
}
