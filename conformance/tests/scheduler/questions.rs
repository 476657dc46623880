//! Questions about one pod: it waits for the answer for a while, others do not, and what is no good answer is none.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use supercargo_engine::{ExtenderSettings, Observation, PodQuestion};
use supercargo_framework::{
    Cycle, ExtenderAnswer, ExtenderQuestion, Extensions, Filter, LeftOutReason, LineSource, NoArgs, Plugin,
    QuerySource, Question, Reads, Score, Status, fact_kind,
};
use supercargo_model::{Kind, KindId, NodeRef};
use supercargo_testkit::{node, pod};

use crate::only;
use crate::world::{InTests as _, World};

/// The points that an agent gives to nodes, for one pod.
#[derive(Debug, PartialEq, Deserialize)]
struct Suggestion(BTreeMap<Box<str>, i64>);

impl From<BTreeMap<Box<str>, i64>> for Suggestion {
    fn from(points: BTreeMap<Box<str>, i64>) -> Self {
        Suggestion(points)
    }
}

impl Kind for Suggestion {
    const ID: KindId = fact_kind("Suggestion", "suggestions");
}

/// Goes by what an agent suggests for the pod; without that, it has no opinion.
struct Advised;

impl Plugin for Advised {
    const NAME: &'static str = "Advised";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Advised
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        let ask = |pod: &supercargo_model::Pod| -> Option<QuerySource> {
            assert!(&*pod.name != "panics", "asked to by a test");
            match &*pod.name {
                "plain" => None,
                "unaskable" => Some(LineSource::new("nowhere", "x").into()),
                name => Some(LineSource::new("agent:8765", format!("suggest {name}")).into()),
            }
        };
        Reads::nothing().question(Question::per_node::<Suggestion, i64>("advice", ask, |answer, nodes| {
            for (node, points) in answer.json::<BTreeMap<String, i64>>()? {
                nodes.put(&node, points);
            }
            Ok(())
        }))
    }
}

impl Score for Advised {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let suggestion = cycle.cluster().objects().get::<Suggestion>(&cycle.pod.namespace, &cycle.pod.name);
        Ok(suggestion.and_then(|points| points.0.get(&**node.name()).copied()).unwrap_or(0).clamp(0, 100))
    }
}

/// Lets a pod go only where its agent says so: without an answer, nowhere.
struct Vouched;

impl Plugin for Vouched {
    const NAME: &'static str = "Vouched";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Vouched
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        Advised.reads()
    }
}

impl Filter for Vouched {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let suggestion = cycle.cluster().objects().get::<Suggestion>(&cycle.pod.namespace, &cycle.pod.name);
        match suggestion.is_some_and(|points| points.0.contains_key(&**node.name())) {
            true => Status::success(),
            false => Status::unschedulable("nobody vouches for it"),
        }
    }
}

const CONFIG: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
    profiles: [{plugins: {multiPoint: {enabled: [{name: Advised, weight: 100}]}}}]\n";

fn world() -> World {
    let mut world = World::with_plugins(CONFIG, supercargo_world::Plugins::add::<Advised>);
    for name in ["n1", "n2", "n3"] {
        world.put(node(name).cpu("100"));
    }
    world
}

/// The line that is sent for a pod.
fn line(asked: &PodQuestion) -> &str {
    let QuerySource::Line(source) = &asked.source else { panic!("it is asked for a line") };
    &source.line
}

/// Puts a pod and lets it be asked about.
fn asked_about(world: &mut World, name: &str) -> PodQuestion {
    world.put(pod(name).cpu("1"));
    world.run();
    let mut asked = world.scheduler.take_questions();
    assert_eq!((asked.len(), line(&asked[0])), (1, &*format!("suggest {name}")));
    assert_eq!(world.node_of(name), None, "it waits");
    asked.remove(0)
}

fn answer(world: &mut World, asked: &PodQuestion, text: &str) {
    let answer = asked.question.read(&asked.source, text.as_bytes(), world.now());
    world.scheduler.question_answered(asked.ticket, answer.map_err(|_| "unreadable"));
    world.run();
}

/// What came of questions since the last time, with what was left out.
fn results(world: &mut World) -> Vec<String> {
    let words = |observation: Observation| match observation {
        Observation::QuestionAsked { question, result, left_out } => {
            Some(format!("{question}: {result} {left_out}").trim_end().to_owned())
        }
        Observation::AnswerDropped => Some("late".to_owned()),
        Observation::PluginPanicked { plugin, .. } => Some(format!("{plugin} panicked")),
        _ => None,
    };
    world.scheduler.take_observations().into_iter().filter_map(words).collect()
}

fn no_suggestion_is_left(world: &mut World) {
    assert_eq!(world.scheduler.cluster().objects().all::<Suggestion>().count(), 0);
}

#[test]
fn a_pod_goes_where_it_is_suggested() {
    let mut world = world();
    for (name, suggestion, expected) in [
        ("a", r#"{"n3": 100}"#, "n3"),
        ("b", r#"{"n1": 1, "n2": 90}"#, "n2"),
        ("c", r#"{"n1:80": 80, "n2": 1}"#, "n1"),
    ] {
        let asked = asked_about(&mut world, name);
        answer(&mut world, &asked, suggestion);
        assert_eq!(world.node_of(name), Some(expected), "{suggestion}");
        assert_eq!(results(&mut world), ["advice: success"]);
        no_suggestion_is_left(&mut world);
    }
    world.put(pod("plain").cpu("1"));
    world.run();
    assert!(world.node_of("plain").is_some() && world.scheduler.take_questions().is_empty());
}

#[test]
fn others_go_on_and_each_has_its_own_answer() {
    let mut world = world();
    let slow = asked_about(&mut world, "slow");
    let quick = asked_about(&mut world, "quick");
    world.put(pod("plain").cpu("1"));
    world.run();
    assert!(world.node_of("plain").is_some(), "nobody waits for another one's answer");
    answer(&mut world, &quick, r#"{"n2": 100}"#);
    assert_eq!((world.node_of("quick"), world.node_of("slow")), (Some("n2"), None));
    answer(&mut world, &slow, r#"{"n3": 100}"#);
    assert_eq!(world.node_of("slow"), Some("n3"));
    no_suggestion_is_left(&mut world);
}

#[test]
fn what_is_no_good_answer_is_none() {
    for (text, expected) in [
        ("", "advice: unreadable"),
        ("<html>", "advice: unreadable"),
        (r#"{"n1": "#, "advice: unreadable"),
        (r#"{"elsewhere": 100}"#, "advice: unknown nodes 1 of unknown nodes"),
        ("{}", "advice: unknown nodes"),
        (
            r#"{"n1": 1, "n1:80": 2, "x": 1}"#,
            "advice: unknown nodes 1 of unknown nodes, 2 of nodes that are told of twice",
        ),
    ] {
        let mut world = world();
        let asked = asked_about(&mut world, "a");
        answer(&mut world, &asked, text);
        assert!(world.node_of("a").is_some(), "{text}");
        assert_eq!(results(&mut world), [expected], "{text}");
        answer(&mut world, &asked, r#"{"n1": 1}"#);
        assert_eq!(results(&mut world), ["late"], "{text}");
    }
    assert_eq!(LeftOutReason::UnknownNode.label(), "unknown node");
}

#[test]
fn who_does_not_answer_in_time_is_not_waited_for() {
    let mut world = world();
    let asked = asked_about(&mut world, "a");
    let deadline = world.now().after(Duration::from_millis(100));
    assert_eq!(world.scheduler.next_deadline(), Some(deadline));
    world.pass(1);
    assert!(world.node_of("a").is_some());
    assert_eq!(results(&mut world), ["advice: timeout"]);
    answer(&mut world, &asked, r#"{"n1": 100}"#);
    assert_eq!(results(&mut world), ["late"]);
    no_suggestion_is_left(&mut world);
    for (name, expected) in [("unaskable", "advice: unaskable"), ("panics", "Advised panicked")] {
        world.put(pod(name).cpu("1"));
        world.run();
        assert!(world.node_of(name).is_some() && world.scheduler.take_questions().is_empty(), "{name}");
        assert_eq!(results(&mut world), [expected]);
    }
}

#[test]
fn a_pod_that_changes_or_goes_meanwhile_is_decided_as_it_is_then() {
    let mut world = world();
    let asked = asked_about(&mut world, "gone");
    world.remove("Pod gone");
    answer(&mut world, &asked, r#"{"n1": 100}"#);
    assert_eq!(world.find("Pod gone"), None);

    let asked = asked_about(&mut world, "bound");
    world.bind("bound", "n2");
    answer(&mut world, &asked, r#"{"n1": 100}"#);
    assert_eq!(world.node_of("bound"), Some("n2"));

    let asked = asked_about(&mut world, "again");
    world.remove("Pod again");
    let anew = asked_about(&mut world, "again");
    answer(&mut world, &asked, r#"{"n1": 100}"#);
    assert_eq!(world.node_of("again"), None, "that was about another pod");
    answer(&mut world, &anew, r#"{"n3": 100}"#);
    assert_eq!(world.node_of("again"), Some("n3"));

    // A node that goes before the pod is decided is no node that is meant.
    let asked = asked_about(&mut world, "late");
    world.remove("Node n1");
    answer(&mut world, &asked, r#"{"n1": 100, "n2": 1}"#);
    assert_eq!(world.node_of("late"), Some("n2"));
    no_suggestion_is_left(&mut world);
}

#[test]
fn no_pod_is_lost_when_the_lease_or_the_configuration_changes() {
    let mut world = world();
    let asked = asked_about(&mut world, "a");
    let now = world.now();
    world.scheduler.set_leading(false, now);
    answer(&mut world, &asked, r#"{"n1": 100}"#);
    assert_eq!(results(&mut world), ["late"]);
    assert_eq!(world.node_of("a"), None);
    world.scheduler.set_leading(true, now);
    world.pass(400);
    assert!(world.node_of("a").is_some(), "it is tried again");
    assert_eq!(world.scheduler.take_questions().len(), 1, "and asked about again");

    let asked = asked_about(&mut world, "b");
    world.reconfigure(CONFIG);
    let anew = {
        world.run();
        world.scheduler.take_questions().remove(0)
    };
    answer(&mut world, &asked, r#"{"n1": 100}"#);
    assert_eq!(world.node_of("b"), None, "another plugin asks");
    answer(&mut world, &anew, r#"{"n2": 100}"#);
    assert_eq!(world.node_of("b"), Some("n2"));
}

#[test]
fn only_so_many_pods_are_asked_about_at_a_time() {
    let mut world = world();
    for number in 0..300 {
        world.put(pod(&format!("p{number}")).cpu("1"));
    }
    world.run();
    let first = world.scheduler.take_questions();
    assert_eq!(first.len(), 256);
    for asked in &first[..10] {
        answer(&mut world, asked, r#"{"n1": 100}"#);
    }
    assert_eq!(world.scheduler.take_questions().len(), 10);
    world.pass(1);
    world.pass(1);
    let bound = world.objects("Pod").filter(|pod| pod["spec"]["nodeName"].is_string()).count();
    assert_eq!(bound, 300, "nobody waits for ever");
}

/// Lets all nodes through but n1.
fn all_but_the_first(question: &ExtenderQuestion) -> Result<ExtenderAnswer, String> {
    let ExtenderQuestion::Filter { nodes, .. } = question else { return Err("it only filters".to_owned()) };
    Ok(ExtenderAnswer::Filtered {
        kept: nodes.iter().filter(|node| *node.name != *"n1").map(|node| (*node.name).into()).collect(),
        failed: BTreeMap::new(),
        unresolvable: BTreeMap::new(),
    })
}

/// The same with a plugin that needs the answer, and an extender.
fn vouched_world() -> World {
    let config = CONFIG.replace("{name: Advised, weight: 100}", "{name: Vouched}");
    let settings = ExtenderSettings { filters: true, ..ExtenderSettings::default() };
    let mut world = World::with_plugins(&config, supercargo_world::Plugins::add::<Vouched>)
        .with_extenders(vec![settings], all_but_the_first);
    for name in ["n1", "n2"] {
        world.put(node(name).cpu("2"));
    }
    world
}

#[test]
fn what_was_answered_counts_until_the_extenders_have_answered_too() {
    for (suggestion, nominated, expected) in [
        (r#"{"n2": 1}"#, None, Some("n2")),
        (r#"{"n1": 1}"#, None, None),
        // The extender does not want the node that it is nominated to, so all are looked at.
        (r#"{"n1": 1, "n2": 1}"#, Some("n1"), Some("n2")),
    ] {
        let mut world = vouched_world();
        let wanting = pod("a").cpu("1");
        world.put(nominated.map_or(wanting.clone(), |node| wanting.nominated(node)));
        world.run();
        let asked = world.scheduler.take_questions().remove(0);
        answer(&mut world, &asked, suggestion);
        assert_eq!(world.node_of("a"), expected, "{suggestion}");
        no_suggestion_is_left(&mut world);
    }
}

#[test]
fn a_node_that_was_filled_while_extenders_were_asked_is_looked_at_with_what_was_answered() {
    for (filled, expected) in [("n1", Some("n2")), ("n2", None)] {
        let mut world = vouched_world();
        let asked = asked_about(&mut world, "a");
        world.set_slow(true);
        answer(&mut world, &asked, r#"{"n2": 1}"#);
        world.put(pod("b").cpu("2").on(filled));
        world.set_slow(false);
        let log = world.catch_up();
        assert_eq!(world.node_of("a"), expected, "{log:?}");
        if expected.is_none() {
            let why = "node \"n2\" has changed while extenders were asked: Insufficient cpu";
            assert_eq!(only(&log, "FailedScheduling"), [format!("FailedScheduling on a: {why}")]);
        }
        no_suggestion_is_left(&mut world);
    }
}
