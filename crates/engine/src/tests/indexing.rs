use serde_json::json;
use supercargo_framework::{Fixes, NoArgs, NodeField, PodField, Reads};
use supercargo_model::Timestamp;

use super::*;
use crate::{Decision, Engine, EngineOptions, Indexing, Outcome, Seed};

const NOW: Timestamp = Timestamp::from_nanoseconds(0);

/// Puts pods on the node that is called like their controller.
struct Homing;

impl Plugin for Homing {
    const NAME: &'static str = "Homing";
    type Args = NoArgs;

    fn new(_: Self::Args) -> Self {
        Homing
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Controller]).node(&[NodeField::Name])
    }
}

impl Filter for Homing {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let is_home =
            cycle.pod.controller.as_ref().is_some_and(|controller| *controller.name == **node.name());
        if is_home { Status::success() } else { Status::unschedulable("elsewhere") }
    }
}

fn engine(profiles: Vec<Profile>, indexing: Indexing) -> Engine {
    Engine::new(
        profiles,
        EngineOptions { rules: Rules::LIVE, seed: Seed(1), fixes: Fixes::default(), indexing },
    )
}

#[test]
fn pods_of_different_controllers_are_told_apart() {
    let mut engine = engine(vec![supercargo_testkit::trial::<Homing>().profile], Indexing::On);
    let mut cluster = nodes(["a", "b"]);
    let pods = ["a", "b"].map(|name| cluster.pod(pod(name).controller("apps/v1", "ReplicaSet", name)));
    engine.cluster = cluster.into_cluster();
    for _ in 0..3 {
        for pod in &pods {
            let decision = engine.decide(pod, NOW).expect("a profile");
            let Outcome::Place { node, .. } = decision.outcome else { panic!("{:?}", decision.outcome) };
            assert_eq!(*node, *pod.name);
        }
    }
}

#[test]
fn only_a_search_moves_the_start_of_the_next() {
    let starts = |indexing| -> Vec<usize> {
        let mut sampled = profile_at(&[Point::PreFilter, Point::Filter], [json!({})]);
        sampled.percentage_of_nodes_to_score = Some(50);
        let mut engine = engine(vec![sampled, Profile::new("second")], indexing);
        let mut cluster = nodes(["a", "b", "c"]);
        let first = cluster.pod(pod("p"));
        let second =
            cluster.pod(pod("q").nominated("a").with(json!({ "spec": { "schedulerName": "second" } })));
        engine.cluster = cluster.into_cluster();
        let start = |decision: Decision| decision.start;
        let mut starts = vec![engine.decide(&first, NOW).map(start), engine.decide(&first, NOW).map(start)];
        engine.cluster.remove_node("b");
        engine.cluster.remove_node("c");
        starts.push(engine.decide(&second, NOW).map(start));
        starts.push(engine.decide(&second, NOW).map(start));
        starts.into_iter().map(|start| start.expect("a profile")).collect()
    };
    assert_eq!(starts(Indexing::Off), [0, 1, 2, 2], "a nominated node is taken without one");
    assert_eq!(starts(Indexing::On), starts(Indexing::Off));
    assert_eq!(starts(Indexing::Checked), starts(Indexing::Off));
}
