//! Whether a plugin declares what it reads.
//!
//! What is declared decides what may be kept from one decision to the next, so a plugin that declares too little decides wrongly,
//! and nothing says so. Here it is asked about small random clusters, and again after something has changed that it does not
//! declare: if the answer is another one, it reads it all the same. Look-ups of labels and of other kinds are noted besides, so
//! that those are found whose values never occur.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use supercargo_framework::{
    Columns, Context, Cycle, Likeness, NodeField, NodeNumbers, NodeScore, Plugin, PluginInstance, PodField,
    PreFilterResult, QueuedPod, Reads, is_fact_kind,
};
use supercargo_model::lookups::{LabelsId, Lookup, noting};
use supercargo_model::{Pod, RawObject};

use crate::cluster::{TestCluster, cluster};
use crate::random::{OwnValues, World, worlds};
use crate::trial::{Trial, added, make, status_text};

/// So many clusters are tried out, unless a check says otherwise: enough that each field has each of its few values many times.
const WORLDS: usize = 40;

/// The time that passes where it is tried out whether time matters: another second, minute, hour and day of the week.
const LATER: Duration = Duration::from_secs(3 * 86_400 + 5 * 3600 + 7 * 60 + 11);

/// Fails unless the plugin, with its default arguments, declares all that it reads; says what to add.
///
/// Labels and resources of its own names may need a word: see [`ReadsCheck`]. What PreEnqueue, QueueSort, PreFilter, Filter, PreScore,
/// Score, `concerns`, `normalization`, `filter_rows`, `score_rows`, `filter_row`, `score_row` and both `counted` say is looked at. It
/// cannot find what shows only in clusters of more than four nodes, with values that nobody has named, or at the points after the
/// decision.
pub fn check_reads<P: Plugin>() {
    ReadsCheck::of::<P>().check();
}

/// The same with these arguments.
pub fn check_reads_with<P: Plugin>(args: Value) {
    ReadsCheck::with_args::<P>(args).check();
}

/// A check of what a plugin declares to read, with values that matter to it:
///
/// ```
/// # use supercargo_framework::{Cycle, Extensions, Filter, NoArgs, NodeField, Plugin, Reads, Status};
/// # use supercargo_model::{LabelLookup, NodeRef};
/// # use supercargo_testkit::ReadsCheck;
/// # struct Gold;
/// # impl Plugin for Gold {
/// #     const NAME: &'static str = "Gold";
/// #     type Args = NoArgs;
/// #     fn new(_: NoArgs) -> Self { Gold }
/// #     fn extensions(points: Extensions<Self>) -> Extensions<Self> { points.filter() }
/// #     fn reads(&self) -> Reads { Reads::nothing().node(&[NodeField::Labels]) }
/// # }
/// # impl Filter for Gold {
/// #     fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
/// #         if node.label("tier") == Some("gold") { Status::success() } else { Status::unschedulable("no gold") }
/// #     }
/// # }
/// ReadsCheck::of::<Gold>().node_label("tier", "gold").check();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ReadsCheck {
    plugin: PluginInstance,
    values: OwnValues,
    worlds: usize,
}

impl ReadsCheck {
    /// Of a plugin with its default arguments.
    pub fn of<P: Plugin>() -> Self {
        Self::of_instance(make::<P>(None))
    }

    /// Of a plugin with these arguments.
    #[expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]
    pub fn with_args<P: Plugin>(args: Value) -> Self {
        Self::of_instance(make::<P>(Some(&args)))
    }

    /// Of a plugin that was made already.
    pub fn of_instance(plugin: PluginInstance) -> Self {
        ReadsCheck { plugin, values: OwnValues::default(), worlds: WORLDS }
    }

    /// Some pods have this label.
    pub fn pod_label(self, key: &str, value: &str) -> Self {
        self.pod_value(PodField::Labels, json!({ "metadata": { "labels": { key: value } } }))
    }

    /// Some nodes have this label.
    pub fn node_label(self, key: &str, value: &str) -> Self {
        self.node_value(NodeField::Labels, json!({ "metadata": { "labels": { key: value } } }))
    }

    /// Some pods have this value of a field: a merge patch of the pod, or of its container for requests, images and host ports.
    pub fn pod_value(mut self, field: PodField, patch: Value) -> Self {
        self.values.pod.push((field, patch));
        self
    }

    /// Some nodes have this value of a field: a merge patch of the node.
    pub fn node_value(mut self, field: NodeField, patch: Value) -> Self {
        self.values.node.push((field, patch));
        self
    }

    /// This is in every cluster: an object of a kind that the plugin reads.
    pub fn object(mut self, object: impl Into<Value>) -> Self {
        self.values.objects.push(object.into());
        self
    }

    /// Tries out so many clusters.
    pub fn worlds(self, worlds: usize) -> Self {
        ReadsCheck { worlds, ..self }
    }

    /// Fails if anything was found, and says what.
    pub fn check(&self) {
        let found = self.findings();
        let name = self.plugin.name;
        assert!(found.is_empty(), "{name} is not what it declares:\n  {}", found.join("\n  "));
    }

    /// What was found, a line each; nothing if the plugin declares all that it reads.
    pub fn findings(&self) -> Vec<String> {
        let values = Arc::new(self.values.clone());
        let worlds: Vec<World> =
            worlds(self.worlds).into_iter().map(|world| world.with_values(&values)).collect();
        let trial = Trial::of(&self.plugin);
        let mut search = Search { plugin: &self.plugin, trial: &trial, found: Vec::new() };
        for (number, world) in worlds.iter().enumerate() {
            search.look_at(world, number);
        }
        search.look_at_queue(&worlds);
        search.found
    }
}

pub(crate) struct Search<'a> {
    pub(crate) plugin: &'a PluginInstance,
    pub(crate) trial: &'a Trial,
    found: Vec<String>,
}

/// What a plugin said about a pod in a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answers {
    /// Before the queue, and about all nodes together.
    whole: Vec<String>,
    /// What Filter said, and the score before it is normalised.
    pub(crate) nodes: Vec<[String; 2]>,
    /// The scores in the end.
    scores: Vec<String>,
}

/// What is different from the usual when a plugin is asked.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Twist {
    None,
    Later,
    OtherSeed,
    /// The plugin has met other pods before.
    Remembering,
    /// The text of the pod is that of nobody.
    StrangeText,
    /// PreScore does not know which nodes are feasible.
    NobodyFeasible,
}

/// A random cluster, and the world that it was made of.
pub(crate) struct Scene<'w> {
    pub(crate) world: &'w World,
    pub(crate) cluster: TestCluster,
}

impl Search<'_> {
    fn look_at(&mut self, world: &World, number: usize) {
        let mut scene = self.scene(world, false);
        let Some(truth) = self.ask(&mut scene, world, Twist::None) else { return };
        let reads = self.plugin.reads.clone();
        for field in PodField::ALL.into_iter().filter(|field| !reads.pod.contains(*field)) {
            let answers = self.ask(&mut scene, &world.with_pod_field_changed(field), Twist::None);
            self.compare(&truth, answers, || {
                format!("the pod's {field:?} matters: declare `.pod(&[PodField::{field:?}])`")
            });
        }
        self.look_at_alike(&mut scene, &truth);
        self.look_at_resolved(&mut scene, &truth);
        for field in NodeField::ALL.into_iter().filter(|field| !reads.node.contains(*field)) {
            let answers = self.ask_anew(&world.with_node_field_changed(field));
            self.compare(&truth, answers, || {
                format!("the node's {field:?} matters: declare `.node(&[NodeField::{field:?}])`")
            });
        }
        let twists = [
            (Twist::Later, reads.time, "the time matters: declare `.time()`"),
            (
                Twist::OtherSeed,
                is_asked_every_time(&reads),
                "the seed matters, and answers are kept: declare `.time()`, so that they are not",
            ),
            (
                Twist::Remembering,
                reads.memory || reads.node_memory,
                "what it remembers matters: declare `.memory()`",
            ),
            (Twist::StrangeText, reads.raw_objects, TEXTS_MATTER),
        ];
        for (twist, is_declared, words) in twists {
            if !is_declared {
                let answers = self.ask(&mut scene, world, twist);
                self.compare(&truth, answers, || words.to_owned());
            }
        }
        if !reads.raw_objects {
            let mut with_texts = self.scene(world, true);
            let answers = self.ask(&mut with_texts, world, Twist::None);
            self.compare(&truth, answers, || TEXTS_MATTER.to_owned());
        }
        self.look_elsewhere(world, &truth, number % world.node_count());
        self.look_at_lookups(world);
        self.look_at_scores(&mut scene, &truth);
        self.look_at_rows(&mut scene);
        self.look_at_concerns(&mut scene, &truth);
        self.look_at_counts(world);
    }

    /// Whether pods that the plugin says are alike get the same answers.
    fn look_at_alike(&mut self, scene: &mut Scene<'_>, truth: &Answers) {
        if !self.plugin.reads.alike {
            return;
        }
        let world = scene.world;
        let alike = self.plugin.alike(&scene.cluster.pod(world.pending()));
        for field in PodField::ALL {
            let changed = world.with_pod_field_changed(field);
            if self.plugin.alike(&scene.cluster.pod(changed.pending())) == alike {
                let answers = self.ask(scene, &changed, Twist::None);
                self.compare(truth, answers, || {
                    format!("`alike` gives one number to pods that it tells apart by their {field:?}")
                });
            }
        }
    }

    /// Whether pods that come to the same by what the plugin says get the same answers.
    fn look_at_resolved(&mut self, scene: &mut Scene<'_>, truth: &Answers) {
        if !self.plugin.reads.resolved {
            return;
        }
        let world = scene.world;
        let Some(likeness) = self.likeness(scene, world) else { return };
        for field in PodField::ALL {
            let changed = world.with_pod_field_changed(field);
            if self.likeness(scene, &changed).as_ref() == Some(&likeness) {
                let answers = self.ask(scene, &changed, Twist::None);
                self.compare(truth, answers, || {
                    format!("by `resolve` pods come to the same that are told apart by their {field:?}")
                });
            }
        }
    }

    /// What the pending pod of a world comes to; none if it does not concern the plugin, or if that says that it has to be asked about
    /// every node, or panics.
    fn likeness(&self, scene: &mut Scene<'_>, world: &World) -> Option<(Likeness, bool)> {
        let pod = scene.cluster.pod(world.pending());
        if !self.plugin.concerns(&pod) {
            return None;
        }
        let resolved = || {
            let (mut cycle, mut likeness) = (Cycle::new(&pod, scene.cluster.context()), Likeness::default());
            match self.plugin.resolve(&mut cycle, &mut likeness) {
                Ok(PreFilterResult::AllNodes) => Some((likeness, true)),
                Ok(PreFilterResult::Skip) => Some((likeness, false)),
                _ => None,
            }
        };
        catch_unwind(AssertUnwindSafe(resolved)).ok().flatten()
    }

    /// Whether the answer about one node depends on others.
    fn look_elsewhere(&mut self, world: &World, truth: &Answers, kept: usize) {
        let (topology, all_nodes) = (self.plugin.reads.topology, self.plugin.reads.all_nodes);
        let own = [NodeField::Labels, NodeField::Taints, NodeField::Unschedulable, NodeField::Allocatable];
        let count = "how many nodes there are, or which images they have, matters: declare `.all_nodes()`";
        let others = "other nodes or their pods matter: declare `.topology()`";
        let changes = [
            (world.with_pods_elsewhere_changed(kept), topology, others),
            (world.with_nodes_elsewhere_changed(kept, &own), topology, others),
            (world.with_another_node(), topology || all_nodes, count),
            (world.with_nodes_elsewhere_changed(kept, &[NodeField::Images]), topology || all_nodes, count),
        ];
        for (changed, is_declared, words) in changes {
            if is_declared {
                continue;
            }
            let Some(answers) = self.ask_anew(&changed) else { return };
            // A score that looks at all feasible nodes is another one where there are others, and says so.
            let parts = if self.plugin.reads.feasible_set { 1 } else { 2 };
            let is_same = answers.nodes[kept][..parts] == truth.nodes[kept][..parts];
            if answers.whole != truth.whole || !is_same {
                self.find(words.to_owned());
            }
        }
    }

    /// What is looked up by name, whether or not it is there.
    fn look_at_lookups(&mut self, world: &World) {
        let world = world.made_unique();
        let mut cluster = self.scene(&world, true).cluster;
        let pod = cluster.pod(world.pending());
        let answered = || self.answers(&world, &cluster, &pod, Twist::None);
        // A panic shows where the plugin is asked as usual.
        let (_, lookups) = noting(|| catch_unwind(AssertUnwindSafe(answered)));
        let annotations: Vec<LabelsId> =
            cluster.snapshot().nodes().map(|node| LabelsId::of(&node.facts().annotations)).collect();
        let reads = self.plugin.reads.clone();
        for lookup in lookups {
            match lookup {
                Lookup::Label(labels) if labels == LabelsId::of(&pod.labels) => {
                    self.demand(
                        reads.pod.contains(PodField::Labels),
                        "a label of the pod is looked up: declare `.pod(&[PodField::Labels])`",
                    );
                }
                Lookup::Label(labels) if labels == LabelsId::of(&pod.annotations) => {
                    self.demand(
                        reads.pod.contains(PodField::Annotations),
                        "an annotation of the pod is looked up: declare `.pod(&[PodField::Annotations])`",
                    );
                }
                Lookup::Label(labels) if annotations.contains(&labels) => {
                    self.demand(
                        reads.node.contains(NodeField::Annotations),
                        "an annotation of a node is looked up: declare `.node(&[NodeField::Annotations])`",
                    );
                }
                Lookup::Label(_) => {}
                Lookup::NodeLabel(_) => {
                    self.demand(
                        reads.node.contains(NodeField::Labels),
                        "a label of a node is looked up: declare `.node(&[NodeField::Labels])`",
                    );
                }
                Lookup::Text => self.demand(reads.raw_objects, TEXTS_MATTER),
                Lookup::Objects(kind, name) => {
                    let is_declared = reads.kinds.iter().any(|known| known.id == kind);
                    let is_of_node = name.is_some_and(|name| cluster.snapshot().row_of(&name).is_some());
                    let may_read = is_of_node || !reads.of_node.contains(&kind);
                    self.demand(
                        may_read,
                        &format!(
                            "objects of kind {0} are looked up that are not named like the node: declare `.kind::<{0}>()`, not `.of_node`",
                            kind.kind
                        ),
                    );
                    let declaration = match is_fact_kind(kind) {
                        true => format!(
                            "facts of kind {0} are looked up: declare the `.query(…)` that tells of {0}",
                            kind.kind
                        ),
                        false => {
                            format!("objects of kind {0} are looked up: declare `.kind::<{0}>()`", kind.kind)
                        }
                    };
                    self.demand(is_declared, &declaration);
                }
            }
        }
    }

    /// Whether the plugin says of many nodes at once what it says of each.
    fn look_at_rows(&mut self, scene: &mut Scene<'_>) {
        let pod = scene.cluster.pod(scene.world.pending());
        let (cluster, profile) = (&scene.cluster, &self.trial.profile);
        let nodes: Vec<_> = cluster.snapshot().nodes().collect();
        let mut columns = Columns::default();
        columns.resize(nodes.len());
        nodes.iter().enumerate().for_each(|(place, node)| columns.set(place, *node));
        let view = columns.view(0..nodes.len());
        if !view.are_exact() {
            return;
        }
        let numbers: Vec<NodeNumbers> = nodes.iter().map(|node| NodeNumbers::of(*node)).collect();
        let mut cycle = cluster.cycle(&pod);
        let prepared =
            profile.pre_filter.iter().map(|named| named.plugin.pre_filter(&mut cycle)).collect::<Vec<_>>();
        if let Some(named) = profile.filter.first()
            && prepared.iter().all(|result| matches!(result, PreFilterResult::AllNodes))
        {
            let mut passed = vec![true; nodes.len()];
            let is_done = named.plugin.filter_rows(&cycle, view, &mut passed);
            let each: Vec<bool> =
                nodes.iter().map(|node| named.plugin.filter(&cycle, *node).is_success()).collect();
            self.demand(!is_done || passed == each, "`filter_rows` says something else than `filter`");
            if let Some(prepared) = named.plugin.filter_row(&cycle) {
                let is_same = numbers.iter().zip(&each).all(|(numbers, each)| prepared(numbers) == *each);
                self.demand(is_same, "`filter_row` says something else than `filter`");
            }
        }
        if let Some((named, _)) = profile.score.first()
            && let Ok((cycle, each)) = self.trial.raw_scores(cluster, &pod, &[])
        {
            let mut scores = vec![0; nodes.len()];
            let is_done = named.plugin.score_rows(&cycle, view, &mut scores);
            let is_same = scores.iter().zip(&each).all(|(score, each)| i64::from(*score) == each.score);
            self.demand(!is_done || is_same, "`score_rows` says something else than `score`");
            if let Some(prepared) = named.plugin.score_row(&cycle) {
                let mut scores = numbers.iter().zip(&each);
                let is_same = scores.all(|(numbers, each)| i64::from(prepared(numbers)) == each.score);
                self.demand(is_same, "`score_row` says something else than `score`");
            }
        }
    }

    /// Whether the plugin has nothing to say where it says so.
    fn look_at_concerns(&mut self, scene: &mut Scene<'_>, truth: &Answers) {
        let pod = scene.cluster.pod(scene.world.pending());
        if self.plugin.concerns(&pod) {
            return;
        }
        let is_silent = |said: &String| ["", "*: skip", "ok", "skip", "0"].contains(&said.as_str());
        let filters = truth.nodes.iter().map(|[filter, _]| filter);
        self.demand(
            filters.chain(&truth.scores).all(is_silent),
            "it rejects or scores a pod that does not concern it: `concerns` must say true for such a pod",
        );
    }

    /// Whether the queue's order depends on more than the plugin declares.
    fn look_at_queue(&mut self, worlds: &[World]) {
        let Some(named) = self.trial.profile.queue_sort.first() else { return };
        let mut cluster = cluster().reading_for(&self.plugin.reads);
        let queue: Vec<QueuedPod> = worlds
            .iter()
            .enumerate()
            .map(|(place, world)| QueuedPod {
                pod: cluster.pod(world.pending()),
                queued_at: cluster.now.moved(-(place as i64 % 7)),
                first_attempt_at: None,
                attempts: 0,
            })
            .collect();
        let early = cluster.context();
        let late = Context { now: cluster.now.after(LATER), ..early.clone() };
        for (a, b) in queue.iter().zip(queue.iter().skip(1)) {
            let less = named.plugin.less(&early, a, b);
            if named.plugin.changes().every.is_none() {
                let words = "the order of waiting pods depends on the time: `QueueSort::changes` must say `OrderChanges::with_time(…)`";
                self.demand(less == named.plugin.less(&late, a, b), words);
            }
            let ranks = [a, b].map(|pod| named.plugin.rank(&early, pod));
            if let [Some(first), Some(second)] = ranks {
                self.demand(less == (first < second), "`QueueSort::rank` has another order than `less`");
            }
        }
    }

    fn compare(&mut self, truth: &Answers, answers: Option<Answers>, words: impl FnOnce() -> String) {
        if answers.is_some_and(|answers| answers != *truth) {
            self.find(words());
        }
    }

    pub(crate) fn demand(&mut self, holds: bool, words: &str) {
        if !holds {
            self.find(words.to_owned());
        }
    }

    pub(crate) fn find(&mut self, words: String) {
        if !self.found.contains(&words) {
            self.found.push(words);
        }
    }

    fn scene<'w>(&self, world: &'w World, with_texts: bool) -> Scene<'w> {
        Scene { world, cluster: world.cluster_for(&self.plugin.reads, with_texts) }
    }

    /// What the plugin says in another cluster.
    fn ask_anew(&mut self, world: &World) -> Option<Answers> {
        let mut scene = self.scene(world, false);
        self.ask(&mut scene, world, Twist::None)
    }

    /// What the plugin says about a pod in a cluster, which may be the pod of another world; nothing if it panics, which is found
    /// as well.
    pub(crate) fn ask(&mut self, scene: &mut Scene<'_>, pending: &World, twist: Twist) -> Option<Answers> {
        let Scene { world, cluster } = scene;
        let usual = (cluster.now, cluster.seed, cluster.memories.clone());
        let mut pod = cluster.pod(pending.pending());
        match twist {
            Twist::Later => cluster.now = cluster.now.after(LATER),
            Twist::OtherSeed => cluster.seed = 0x5eed_5eed,
            Twist::StrangeText => {
                let text = Some(Arc::new(RawObject::new("[]")));
                Arc::get_mut(&mut pod).expect("nobody else has it").raw = text;
            }
            Twist::None | Twist::Remembering | Twist::NobodyFeasible => {}
        }
        let answered = catch_unwind(AssertUnwindSafe(|| {
            if twist == Twist::Remembering {
                self.live(world, cluster);
            }
            self.answers(world, cluster, &pod, twist)
        }));
        (cluster.now, cluster.seed, cluster.memories) = usual;
        answered.map_err(|panic| self.find(format!("it panicked: {}", panic_words(&*panic)))).ok()
    }

    /// Lets the plugin meet another pod at all points at which it may remember something.
    fn live(&self, world: &World, cluster: &mut TestCluster) {
        let profile = &self.trial.profile;
        let before = || world.pending().with(json!({ "metadata": { "name": "before", "uid": "before" } }));
        if !profile.observe.is_empty() {
            self.trial.started(cluster);
            self.trial.observed(cluster, &added(before().on(&world.node_name(0))));
            self.trial.woken(cluster);
        }
        for place in 0..world.node_count() {
            let mut attempt = self.trial.attempt(cluster, before(), &world.node_name(place));
            if !profile.reserve.is_empty() {
                attempt.reserve();
            }
            if !profile.permit.is_empty() {
                attempt.permit();
            }
            if !profile.post_bind.is_empty() {
                attempt.post_bind();
            }
        }
    }

    fn answers(&self, world: &World, cluster: &TestCluster, pod: &Arc<Pod>, twist: Twist) -> Answers {
        let gates = self.trial.profile.pre_enqueue.iter();
        let gates = gates.map(|named| status_text(&named.plugin.pre_enqueue(&cluster.context(), pod)));
        let filters = world.by_node(&self.trial.filter_pod(cluster, pod));
        let mut whole: Vec<String> = gates.collect();
        whole.push(format!("concerned: {}", self.plugin.concerns(pod)));
        whole.push(filters[0].clone());
        let (mut raw, mut scores) = (Vec::new(), Vec::new());
        if !self.trial.profile.score.is_empty() {
            let rows = cluster.snapshot().rows();
            let feasible = if twist == Twist::NobodyFeasible { &[] } else { rows };
            let lines = match self.trial.raw_scores(cluster, pod, feasible) {
                Ok((_, scores)) => {
                    let line = |score: &NodeScore| {
                        format!("{}: {}", cluster.snapshot().node(score.row).name(), score.score)
                    };
                    scores.iter().map(line).collect()
                }
                Err(status) => vec![format!("*: {}", status_text(&status))],
            };
            raw = world.by_node(&lines);
            whole.push(raw[0].clone());
            scores = world.by_node(&self.trial.scores_of_pod(cluster, pod));
        }
        let node = |place: usize| [filters[place].clone(), raw.get(place).cloned().unwrap_or_default()];
        let nodes = (1..filters.len()).map(node).collect();
        Answers { whole, nodes, scores }
    }
}

const TEXTS_MATTER: &str = "texts of pods or nodes matter: declare `.raw_objects()`";

/// Whether nothing that the plugin says is kept.
fn is_asked_every_time(reads: &Reads) -> bool {
    reads.time || reads.memory || reads.topology || reads.raw_objects
}

fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word").to_owned()
}
