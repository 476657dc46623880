//! What plugins do in a world: write, count, remember, answer for a page, sort and bind; and what is said of those that misbehave.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use supercargo_framework::{
    Actions, Acts, Answer, Args, Bind, Change, ClusterEvent, Conclusion, Context, Cycle, Effect, Endpoint,
    Extensions, Facts, FieldProblems, Filter, HttpSource, LineSource, Memory, News, NoArgs, Observe, Page,
    PageRequest, Plugin, PreEnqueue, Query, Question, QueueSort, QueuedPod, Reads, Rendered, Status, Step,
    Writes, fact_kind,
};
use supercargo_model::{Kind, KindId, LabelLookup, NodeRef, ObjectKey, Pod};
use supercargo_testkit::{node, pod};
use supercargo_world::{Plugins, World, only};

/// Keeps a Ledger with the number of nodes, and makes one where there is none.
struct Books;

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct Written(usize);

impl Memory for Written {
    const NAME: &'static str = "Books";
}

#[derive(Clone, Debug, Deserialize)]
struct Ledger {}

/// A kind of the same name, which somebody else has made.
#[derive(Clone, Debug, Deserialize)]
struct OtherLedger {}

impl Kind for Ledger {
    const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Ledger", plural: "ledgers" };
}

impl Kind for OtherLedger {
    const ID: KindId = KindId { group: "other.com", version: "v1", kind: "Ledger", plural: "ledgers" };
}

impl Plugin for Books {
    const NAME: &'static str = "Books";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Books
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.observe().page().remembers::<Written>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().create::<Ledger>().patch_status::<Ledger>().patch::<OtherLedger>()
    }
}

impl Observe for Books {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::node(Actions::ADD)]
    }

    fn started(&self, _: &Context<'_>, acts: &mut Acts<'_>) {
        let (kind, namespace) = (Ledger::ID, "books".into());
        acts.order(Effect::Create { kind, namespace, object: json!({ "metadata": { "name": "main" } }) });
    }

    fn observed(&self, context: &Context<'_>, _: &Change<'_>, acts: &mut Acts<'_>) {
        let key = ObjectKey { namespace: "books".into(), name: "main".into() };
        let patch = json!({ "status": { "nodes": context.cluster.node_count() } });
        acts.order(Effect::Patch { kind: Ledger::ID, key, subresource: Some("status"), patch });
        acts.order(Effect::Patch {
            kind: KindId::NODE,
            key: ObjectKey { namespace: "".into(), name: "n1".into() },
            subresource: None,
            patch: json!({ "spec": { "unschedulable": true } }),
        });
    }

    fn answered(&self, _: &Context<'_>, _: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        let code = conclusion.code().map_or("none".to_owned(), |code| code.to_string());
        acts.count("answers", &[("code", &code)]);
        acts.memory::<Written>().0 += usize::from(conclusion.is_done());
    }
}

impl Page for Books {
    fn title(&self) -> Cow<'static, str> {
        "Books".into()
    }

    fn render(&self, context: &Context<'_>, request: &PageRequest) -> Rendered {
        let written = context.memories.get::<Written>().map_or(0, |written| written.0);
        Rendered::text(format!("{written} written; asked for {} {}", request.path, request.query))
    }
}

/// What a test is told that is wrong.
#[track_caller]
fn told(wrong: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(wrong)).expect_err("it is told");
    panic.downcast_ref::<String>().expect("it is told in words").clone()
}

#[test]
fn what_a_plugin_writes_counts_and_remembers_can_be_looked_at() {
    let mut world = World::of::<Books>();
    assert_eq!(world.run(), ["create Ledger books/main"]);
    assert_eq!(world.object("Ledger books/main")["apiVersion"], "example.com/v1");
    world.put(node("n1"));
    assert_eq!(world.run(), ["patch Ledger books/main"]);
    assert_eq!(world.object("Ledger.example.com books/main")["status"]["nodes"], 1);
    assert_eq!(world.complaints().len(), 1, "what is not declared is refused");
    world.fail_with("patch", Conclusion::Refused { error: "forbidden".to_owned(), code: Some(403) });
    world.put(node("n2"));
    assert_eq!(world.run(), ["patch Ledger books/main: forbidden"]);
    assert_eq!(world.counted(), ["answers{code=none}", "answers{code=none}", "answers{code=403}"]);
    assert_eq!(world.counted(), [""; 0], "once");
    assert_eq!(world.memory::<Written>(), Some(&Written(2)));
    assert_eq!(world.page("Books", "all?x=y").body, "2 written; asked for all x=y");

    // The next process remembers nothing, and finds the ledger there.
    world.heal();
    world.restart();
    assert_eq!(world.run(), ["create Ledger books/main: ledgers \"main\" already exists"]);
    assert_eq!(world.counted(), ["answers{code=409}"]);
    assert_eq!(world.memory::<Written>(), Some(&Written(0)));
}

#[test]
fn a_kind_of_two_groups_is_told_apart() {
    let ledger = |group: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Ledger", "metadata": {"name": "l"}});
    let mut world = World::of::<Books>();
    world.put(ledger("example.com"));
    assert_eq!(world.object("Ledger l")["apiVersion"], "example.com/v1");
    world.put(ledger("other.com"));
    assert_eq!(world.object("Ledger.example.com l")["apiVersion"], "example.com/v1");
    assert_eq!(world.object("Ledger.other.com l")["apiVersion"], "other.com/v1");
    assert_eq!(world.objects("Ledger").count(), 2);
    let told = told(|| world.remove("Ledger l"));
    assert!(told.contains("say which, as in `Ledger.other.com l`"), "{told}");
    // A kind that nobody reads or writes, and a version of one that is read.
    let newer = json!({"apiVersion": "example.com/v2", "kind": "Ledger", "metadata": {"name": "l"}});
    let told_of_version = self::told(|| World::of::<Restless>().put(newer));
    assert!(told_of_version.contains("example.com/v1"), "{told_of_version}");
    let told = self::told(|| world.put(ledger("third.com")));
    assert!(told.contains("kind \"Ledger\" of apiVersion \"third.com/v1\" is unknown"), "{told}");
}

/// The youngest goes first, and it is bound with a second's delay.
struct Youngest {
    args: YoungestArgs,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct YoungestArgs {
    delay_seconds: u64,
}

impl Args for YoungestArgs {
    fn validate(&self, _: &mut FieldProblems) {}
}

/// What the doorman says.
#[derive(Debug, PartialEq, Deserialize)]
struct Doors {
    are_shut: bool,
}

impl Kind for Doors {
    const ID: KindId = fact_kind("Doors", "doors");
}

impl Plugin for Youngest {
    const NAME: &'static str = "Youngest";
    type Args = YoungestArgs;

    fn new(args: YoungestArgs) -> Self {
        Youngest { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.queue_sort().pre_enqueue().bind()
    }

    fn reads(&self) -> Reads {
        let source = HttpSource::get(Endpoint::new("http://doors"));
        let doors = |answer: &Answer| Ok(Doors { are_shut: answer.text()? == "shut" });
        Reads::nothing().query(Query::whole::<Doors>("doors", source, doors))
    }

    fn writes(&self) -> Writes {
        Writes::nothing().bindings()
    }
}

impl QueueSort for Youngest {
    fn less(&self, _: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        a.queued_at > b.queued_at
    }
}

impl PreEnqueue for Youngest {
    fn pre_enqueue(&self, context: &Context<'_>, _: &Pod) -> Status {
        let is_shut = context.cluster.objects().get::<Doors>("", "doors").is_some_and(|doors| doors.are_shut);
        if is_shut { Status::unschedulable("the doors are shut") } else { Status::success() }
    }
}

impl Bind for Youngest {
    fn bind(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        let deadline = Some(cycle.context.now.after(Duration::from_secs(self.args.delay_seconds)));
        Step::Wait { effects: Vec::new(), events: Vec::new(), deadline }
    }

    fn resume(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>, news: &News<'_>) -> Step {
        match news {
            News::TimedOut => {
                Step::perform(Effect::Bind { pod: cycle.pod.clone(), node: node.name().clone() })
            }
            news => Step::done_after(news),
        }
    }
}

#[test]
fn a_plugin_sorts_and_binds_in_place_of_the_default_ones() {
    let mut world = World::of_args::<Youngest>(json!({ "delaySeconds": 3 }));
    world.set_leading(false);
    for name in ["a", "b", "c"] {
        world.put(pod(name));
        world.pass(1);
    }
    world.put(node("n1"));
    world.set_leading(true);
    assert_eq!(only(&world.pass(2), "bind"), [""; 0]);
    assert_eq!(only(&world.pass(1), "bind"), ["bind c to n1", "bind b to n1", "bind a to n1"]);
}

#[test]
fn a_query_is_answered_by_the_test() {
    let mut world = World::of::<Youngest>();
    world.put(node("n1"));
    assert_eq!(world.answer("doors", "shut"), Ok(String::new()));
    world.put(pod("a"));
    world.run();
    assert_eq!(world.place_of("a"), "held by Youngest: the doors are shut");
    assert_eq!(world.answer("doors", ""), Err("the answer is empty".to_owned()));
    world.answer_facts("doors", Facts::whole_at("doors", Doors { are_shut: false }, world.now()));
    world.put(pod("b"));
    world.run();
    assert_eq!(world.place_of("b"), "on n1");
}

/// Goes where it is told to, and nowhere else.
struct Told;

#[derive(Debug, Deserialize)]
struct Place(String);

impl Kind for Place {
    const ID: KindId = fact_kind("Place", "places");
}

impl Plugin for Told {
    const NAME: &'static str = "Told";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Told
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        let ask = |pod: &Pod| Some(LineSource::new("doorman:1", &*pod.name).into());
        let question = Question::whole::<Place>("place", ask, |answer| answer.json().map(Place));
        Reads::nothing().question(question.within(Duration::from_secs(1)))
    }
}

impl Filter for Told {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let told = cycle.cluster().objects().get::<Place>(&cycle.pod.namespace, &cycle.pod.name);
        let is_elsewhere = told.is_some_and(|place| *place.0 != **node.name());
        if is_elsewhere { Status::unschedulable("elsewhere") } else { Status::success() }
    }
}

#[test]
fn what_is_asked_about_a_pod_is_answered_by_the_test() {
    let mut world = World::of::<Told>();
    for name in ["n1", "n2"] {
        world.put(node(name));
    }
    for (pod_name, text, said) in [("a", "\"n2\"", Ok(())), ("b", "n2", Err(()))] {
        world.put(pod(pod_name));
        world.run();
        assert_eq!(world.node_of(pod_name), None, "it waits");
        assert_eq!(world.answer_about(pod_name, text).map_err(|_| ()), said);
        world.run();
        assert!(world.node_of(pod_name).is_some());
    }
    assert_eq!(world.node_of("a"), Some("n2"));
    world.put(pod("c"));
    world.pass(1);
    assert!(world.node_of("c").is_some(), "nobody answered");
}

#[test]
fn a_name_that_is_taken_is_told() {
    let twice = |plugins: &mut Plugins| {
        plugins.add::<Books>()?;
        plugins.add::<Books>()
    };
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let told = told(|| _ = World::with_plugins(config, twice));
    assert!(told.contains("a plugin named Books already exists"), "{told}");
}

/// Changes a node whenever one changes.
struct Restless;

impl Plugin for Restless {
    const NAME: &'static str = "Restless";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Restless
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.observe().remembers::<Written>()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().patch::<Ledger>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().kind::<Ledger>()
    }
}

impl Observe for Restless {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::kind(Ledger::ID, Actions::ALL)]
    }

    fn observed(&self, _: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        let Change::Object { new: Some(ledger), .. } = change else { return };
        let turns = acts.memory::<Written>();
        turns.0 += 1;
        let patch = json!({ "metadata": { "annotations": { "turns": turns.0.to_string() } } });
        acts.order(Effect::Patch { kind: Ledger::ID, key: ledger.key.clone(), subresource: None, patch });
    }
}

#[test]
fn what_never_ends_is_told() {
    let mut world = World::of::<Restless>();
    world.run();
    world.put(json!({"apiVersion": "example.com/v1", "kind": "Ledger", "metadata": {"name": "l"}}));
    let told = told(|| _ = world.run());
    assert!(told.starts_with("this never ends: ") && told.contains("patch Ledger l"), "{told}");
}

/// Lets pods in if there is a ConfigMap named `open`.
struct Keeper;

#[derive(Debug, Deserialize)]
struct Door {}

impl Kind for Door {
    const ID: KindId = KindId { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
}

impl Plugin for Keeper {
    const NAME: &'static str = "Keeper";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Keeper
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().kind::<Door>()
    }
}

impl PreEnqueue for Keeper {
    fn pre_enqueue(&self, context: &Context<'_>, pod: &Pod) -> Status {
        match context.cluster.objects().get::<Door>(&pod.namespace, "open") {
            Some(_) => Status::success(),
            None => Status::unschedulable("the door is shut"),
        }
    }
}

#[test]
fn a_new_configuration_finds_what_its_plugins_read() {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let kept = format!("{head}profiles: [{{plugins: {{preEnqueue: {{enabled: [{{name: Keeper}}]}}}}}}]\n");
    let mut world = World::with_plugins(head, Plugins::add::<Keeper>);
    world.put(node("n1"));
    // Nobody reads it yet.
    world.put(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "open", "namespace": "team-a"}}),
    );
    world.reconfigure(&kept);
    world.put(pod("a"));
    world.put(pod("a").namespace("team-a"));
    world.run();
    assert_eq!(world.place_of("a"), "held by Keeper: the door is shut");
    assert_eq!(world.place_of("team-a/a"), "on n1");
}

/// Reads a label of nodes, and does not say so.
struct Liar;

impl Plugin for Liar {
    const NAME: &'static str = "Liar";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Liar
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl Filter for Liar {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if node.label("full").is_none() { Status::success() } else { Status::unschedulable("full") }
    }
}

#[test]
fn a_declaration_that_is_not_true_shows() {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        // Where filters that count pods come after it, answers are kept.
        "profiles": [{ "plugins": {
            "multiPoint": { "disabled": [{ "name": "PodTopologySpread" }, { "name": "InterPodAffinity" }] },
            "filter": { "enabled": [{ "name": "Liar" }] },
        } }],
    });
    let mut world = World::with_plugins(&config.to_string(), Plugins::add::<Liar>);
    world.put(node("n1"));
    world.put(pod("a").cpu("1"));
    world.run();
    world.change("Node n1", &json!({ "metadata": { "labels": { "full": "yes" } } }));
    world.put(pod("b").cpu("1"));
    let told = told(|| _ = world.run());
    assert!(told.contains("for pod default/b, is wrong"), "{told}");
}
