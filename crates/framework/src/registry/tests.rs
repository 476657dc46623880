use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::points::{Filter, Score};
use crate::profile::Profile;
use crate::reads::{NodeField, PodField, Reads};
use crate::{Cycle, Enqueue, Status};
use supercargo_model::NodeRef;

/// Everything that the tests here need of a plugin: arguments with a rule, two points, events and something read.
struct Picky;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct PickyArgs {
    most_pods: Option<i32>,
    names: Vec<String>,
}

impl Args for PickyArgs {
    fn complete(&mut self) {
        self.most_pods.get_or_insert(7);
    }

    fn validate(&self, problems: &mut FieldProblems) {
        if self.most_pods.is_some_and(|most| most < 0) {
            problems.invalid("mostPods", self.most_pods, "must not be negative");
        }
        if self.names.iter().any(String::is_empty) {
            problems.required("names[0]", "must have a name");
        }
    }
}

impl Plugin for Picky {
    const NAME: &'static str = "Picky";
    type Args = PickyArgs;

    fn new(_: PickyArgs) -> Self {
        Picky
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score().filter().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Labels])
    }
}

impl Filter for Picky {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }
}

impl Score for Picky {
    fn score(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
        Ok(0)
    }
}

impl Enqueue for Picky {
    fn events(&self) -> Vec<crate::ClusterEvent> {
        Vec::new()
    }
}

/// Another one, that does not say what it reads.
struct Vague;

impl Plugin for Vague {
    const NAME: &'static str = "Vague";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Vague
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
}

impl Filter for Vague {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register::<Picky>().expect("new");
    registry.register::<Vague>().expect("new");
    registry
}

#[test]
fn a_name_is_registered_once() {
    let mut registry = registry();
    let error = registry.register::<Picky>().expect_err("it is there already");
    assert_eq!(error.to_string(), "a plugin named Picky already exists");
    assert_eq!(registry.iter().map(|plugin| plugin.name).collect::<Vec<_>>(), ["Picky", "Vague"]);
    assert!(registry.get("Nobody").is_none());
}

#[test]
fn a_plugin_type_tells_its_points_and_its_arguments() {
    let registry = registry();
    let picky = registry.get("Picky").expect("registered");
    assert_eq!(picky.points(), [Point::Filter, Point::Score], "in the order in which a pod meets them");
    assert_eq!(picky.args_kind.as_deref(), Some("PickyArgs"));
    assert_eq!(registry.get("Vague").expect("registered").args_kind, None);
}

#[test]
fn arguments_are_completed_and_their_problems_found_all_at_once() {
    let registry = registry();
    let picky = registry.get("Picky").expect("registered");
    let read = |args: Option<Value>| {
        let read = picky.read_args(args.as_ref());
        read.map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(read(None), Ok(json!({ "mostPods": 7, "names": [] })));
    assert_eq!(read(Some(json!({ "mostPods": 1 }))), Ok(json!({ "mostPods": 1, "names": [] })));
    let problems = read(Some(json!({ "mostPods": -1, "names": [""] }))).expect_err("two problems");
    assert_eq!(
        problems,
        ["mostPods: Invalid value: -1: must not be negative", "names[0]: Required value: must have a name"]
    );
    for (args, problem) in [
        (json!({ "mostPods": "x" }), "mostPods: invalid type: string \"x\", expected i32"),
        (json!({ "mostPod": 1 }), "mostPod: unknown field `mostPod`, expected `mostPods` or `names`"),
        (json!({ "names": [1] }), "names[0]: invalid type: integer `1`, expected a string"),
    ] {
        assert_eq!(read(Some(args)), Err(vec![problem.to_owned()]));
        assert!(picky.make(Some(&json!({ "mostPods": -1 }))).is_err(), "nothing is made of wrong arguments");
    }
    let vague = registry.get("Vague").expect("registered");
    assert!(
        vague.make(Some(&json!({ "whatever": 1 }))).is_ok(),
        "who takes none ignores them, as upstream does"
    );
}

#[test]
fn a_profile_takes_a_plugin_at_the_points_that_it_implements() {
    let registry = registry();
    let [picky, vague] =
        ["Picky", "Vague"].map(|name| registry.get(name).expect("registered").make(None).expect("valid"));
    let mut profile = Profile::new("mine");
    assert!(!profile.add(&picky, Point::Bind, 1));
    assert!(profile.reads.is_none() && profile.plugins().is_empty(), "it takes part nowhere");
    for point in [Point::Filter, Point::Score] {
        assert!(profile.add(&picky, point, 3));
    }
    assert_eq!((profile.filter.len(), profile.score[0].1, profile.enqueue.len()), (1, 3, 1));
    assert_eq!(profile.plugins().len(), 1, "it is one plugin at two points");
    let reads = profile.reads.clone().expect("somebody reads");
    assert!(reads.pod.contains(PodField::Labels) && !reads.node.contains(NodeField::Name));

    assert!(profile.add(&vague, Point::Filter, 1));
    let reads = profile.reads.clone().expect("somebody reads");
    assert!(reads.node.contains(NodeField::Name) && reads.time, "who says nothing reads everything");
    assert_eq!(format!("{:?}", profile.filter), "[Picky, Vague]");
    assert_eq!(profile.enqueue.len(), 1, "who registers no events is not among those who do");
}
