//! The world: how it is made, what happens in it, and how time passes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use supercargo_api::merge;
use supercargo_engine::{Order, PodQuestion, Scheduler};
use supercargo_framework::{Conclusion, Needs, Plugin, Profile, Registry};
use supercargo_model::{DecodeError, Decoder, KindId, Timestamp};
use supercargo_plugins::{Plugins, TakenName};

use crate::name::{ObjectName, Wanted, short};
use crate::saving::Saving;
use crate::server::Extender;
use crate::settings::{DEFAULT_CONFIG, Settings, config_with};

/// When every world begins.
const BEGINNING_SECONDS: i64 = 1_000_000;
/// So many things may be done at one moment before a test is told that it never ends: more pods than that are no test.
const STEPS_MAX: usize = 20_000;
/// So often the scheduler may be woken while time passes once.
const WAKES_MAX: usize = 20_000;
/// So many of the last lines are shown with what never ends.
const LINES_SHOWN: usize = 6;

/// A scheduler and the cluster that it works on.
///
/// A clone is a world of its own, in which something else may happen from here on.
///
/// Objects are named by `KIND NAME` if they are in the namespace `default` or in none, and by `KIND NAMESPACE/NAME` otherwise: `Node n1`,
/// `Pod web`, `Pod team-a/web`. Where two kinds of different groups have one name, the group stands behind it: `Gang.example.com g`.
/// Pods alone are named by `web` and `team-a/web`.
///
/// What is ordered is a line each, with the error behind it if it failed:
///
/// | line | what it is |
/// |---|---|
/// | `bind web to n1` | a pod is bound |
/// | `evict old for web` | a pod makes room: it is being deleted from then on, and goes when the test removes it |
/// | `status of web: Unschedulable …`, `status of web: nominated to n1` | a pod's condition and nomination |
/// | `create KIND NAME`, `patch KIND NAME`, `delete KIND NAME` | what plugins write |
/// | `Scheduled on web: …`, `FailedScheduling on web: …` | an event, with its reason and its text |
#[derive(Clone, Debug)]
pub struct World {
    /// The scheduler itself, for the tests of this repository: its methods are no promise.
    #[doc(hidden)]
    pub scheduler: Scheduler,
    registry: Registry,
    config: String,
    pub(crate) decoder: Decoder,
    pub(crate) objects: BTreeMap<ObjectName, Value>,
    /// The name of each pod, by its UID.
    pub(crate) pod_names: BTreeMap<String, ObjectName>,
    pub(crate) now: Timestamp,
    /// What was ordered and done, in order, as a line each.
    pub(crate) log: Vec<String>,
    /// Orders that begin like this end like that.
    pub(crate) faults: Vec<(String, Conclusion)>,
    /// Whether orders stay undone for now.
    pub(crate) is_slow: bool,
    pub(crate) undone: Vec<Order>,
    pub(crate) versions: u64,
    /// What all extenders answer.
    pub(crate) extender: Extender,
    /// What plugins counted and were refused, until somebody asks.
    pub(crate) counted: Vec<String>,
    pub(crate) complaints: Vec<String>,
    /// What is asked about pods, and nobody has answered yet.
    pub(crate) questions: Vec<PodQuestion>,
    /// What plugins had saved.
    pub(crate) saving: Saving,
}

impl Default for World {
    fn default() -> Self {
        World::new()
    }
}

impl World {
    /// With Kubernetes' own plugins, as they are by default.
    pub fn new() -> Self {
        Self::with_config(DEFAULT_CONFIG)
    }

    /// With Kubernetes' own plugins, as a configuration has them.
    #[track_caller]
    pub fn with_config(config: &str) -> Self {
        Self::with_plugins(config, |_| Ok(()))
    }

    /// With a configuration, which may have several documents, and the plugins that it can name: Kubernetes' own, and those that are
    /// added in the words of a program's `main`: `|plugins| plugins.add::<MyPlugin>()`.
    #[track_caller]
    pub fn with_plugins(config: &str, add: impl FnOnce(&mut Plugins) -> Result<(), TakenName>) -> Self {
        let registry = told(Plugins::with(add));
        Self::with_registry(config, registry)
    }

    /// With a plugin, in its default arguments, at all its points beside Kubernetes' own. Its QueueSort takes the place of theirs, and
    /// its Bind is asked before theirs. The profile is that of pods that name no scheduler.
    #[track_caller]
    pub fn of<P: Plugin>() -> Self {
        Self::of_plugin::<P>(None)
    }

    /// The same with these arguments.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]
    pub fn of_args<P: Plugin>(args: Value) -> Self {
        Self::of_plugin::<P>(Some(&args))
    }

    #[track_caller]
    fn of_plugin<P: Plugin>(args: Option<&Value>) -> Self {
        let registry = told(Plugins::with(Plugins::add::<P>));
        Self::with_registry(&config_with::<P>(args, &registry), registry)
    }

    #[track_caller]
    fn with_registry(config: &str, registry: Registry) -> Self {
        let Settings { profiles, options } = told(Settings::of(config, &registry));
        World {
            decoder: Needs::of(&profiles).decoder(),
            scheduler: Scheduler::new(profiles, options),
            registry,
            config: config.to_owned(),
            objects: BTreeMap::new(),
            pod_names: BTreeMap::new(),
            now: Timestamp::from_seconds(BEGINNING_SECONDS),
            log: Vec::new(),
            faults: Vec::new(),
            is_slow: false,
            undone: Vec::new(),
            versions: 0,
            extender: |_| Err("there are no extenders".to_owned()),
            counted: Vec::new(),
            complaints: Vec::new(),
            questions: Vec::new(),
            saving: Saving::default(),
        }
    }

    /// Goes on with another configuration, as a running scheduler does when its file changes: what plugins remember stays, and those
    /// that observe begin anew.
    #[track_caller]
    pub fn reconfigure(&mut self, config: &str) {
        let Settings { profiles, options } = told(Settings::of(config, &self.registry));
        config.clone_into(&mut self.config);
        let before = self.scheduler.profiles();
        let is_known = |new: &Profile| before.iter().any(|old| old.scheduler_name == new.scheduler_name);
        let is_name_new = !profiles.iter().all(is_known);
        let (old, new) = (Needs::of(before), Needs::of(&profiles));
        // As the driver does, which lists what the new plugins read before they take over, and all pods again for a new name.
        self.decoder = old.clone().and_all(&new).decoder();
        let is_unread = |kind: &KindId| !old.kinds().contains(kind) || !old.covers(&new, *kind);
        let unread: Vec<KindId> = new.kinds().into_iter().filter(is_unread).collect();
        self.tell_all(|name| unread.iter().any(|kind| kind.kind == name.kind && kind.group == name.group));
        self.decoder = new.decoder();
        self.scheduler.replace_profiles(profiles, options, Vec::new(), self.now);
        if is_name_new {
            self.tell_all(|name| name.kind == "Pod");
        }
    }

    /// A scheduler as a process has it that begins now. It follows, and knows nothing of the cluster.
    pub(crate) fn replace_scheduler(&mut self) {
        let Settings { profiles, options } =
            Settings::of(&self.config, &self.registry).expect("it was right before");
        self.decoder = Needs::of(&profiles).decoder();
        self.undone.clear();
        self.scheduler = Scheduler::new(profiles, options).with_unknown_cluster();
        self.scheduler.set_leading(false, self.now);
    }

    /// Tells the scheduler of everything that there is.
    #[track_caller]
    pub(crate) fn list(&mut self) {
        // A pod's node and what it needs come before the pod.
        self.tell_all(|name| name.kind != "Pod");
        self.tell_all(|name| name.kind == "Pod");
        self.scheduler.cluster_is_known(self.now);
    }

    /// Something comes, or takes the place of what has its name: a pod, a node, or an object of any kind that is read or written. As an
    /// API server does, a UID (that of `Pod web` is `web`, that of `Pod team-a/web` is `team-a/web`), a time of creation and a version are
    /// added where there are none.
    #[track_caller]
    pub fn put(&mut self, object: impl Into<Value>) {
        let object = object.into();
        if let Err(error) = self.store(object.clone(), false) {
            panic!("this cannot be put into the world: {error}\n{object:#}");
        }
    }

    /// An object changes by a merge patch: what is null goes, lists are replaced.
    #[track_caller]
    pub fn change(&mut self, name: &str, patch: &Value) {
        let mut object = self.object(name).clone();
        merge(&mut object, patch);
        if let Err(error) = self.store(object.clone(), false) {
            panic!("{name} cannot be changed so: {error}\n{object:#}");
        }
    }

    /// An object goes, at once.
    #[track_caller]
    pub fn remove(&mut self, name: &str) {
        let name = self.name_of(name);
        self.forget(&name);
    }

    /// Orders whose line begins like this fail from now on, and change nothing: `fail("bind", "the server is away")`.
    pub fn fail(&mut self, order: &str, error: &str) {
        self.fail_with(order, Conclusion::not_done(error));
    }

    /// The same with the answer of a server, such as a code: what a plugin hears in `answered`, and in the news of a step.
    #[track_caller]
    pub fn fail_with(&mut self, order: &str, conclusion: Conclusion) {
        assert!(!conclusion.is_done(), "an order that is done does not fail: {conclusion:?}");
        self.faults.push((order.to_owned(), conclusion));
    }

    /// Nothing fails any more.
    pub fn heal(&mut self) {
        self.faults.clear();
    }

    /// Whether the API server takes its time: orders that somebody waits for are then done by [`World::catch_up`], and not before.
    pub fn set_slow(&mut self, is_slow: bool) {
        self.is_slow = is_slow;
    }

    /// The server does what it was slow with, the scheduler goes on, and what was done since the last time is returned. A server that is
    /// still slow leaves undone what is ordered then.
    #[track_caller]
    pub fn catch_up(&mut self) -> Vec<String> {
        for order in std::mem::take(&mut self.undone) {
            self.perform(&order);
        }
        self.run()
    }

    /// Lets the scheduler do all it can at this moment, and returns what was ordered since the last time.
    #[track_caller]
    pub fn run(&mut self) -> Vec<String> {
        for _ in 0..STEPS_MAX {
            self.scheduler.advance(self.now);
            let has_decided = self.scheduler.schedule_next(self.now).is_some();
            let orders = self.scheduler.take_orders();
            if !has_decided && orders.is_empty() {
                self.save_if_due();
                return std::mem::take(&mut self.log);
            }
            for order in orders {
                if self.is_slow && order.ticket.is_some() {
                    self.undone.push(order);
                } else {
                    self.perform(&order);
                }
            }
        }
        let last = self.log.len().saturating_sub(LINES_SHOWN);
        panic!(
            "this never ends: {STEPS_MAX} steps without time passing. The last lines:\n{:#?}",
            &self.log[last..]
        );
    }

    /// Lets so many seconds pass. The scheduler is woken whenever it wants to be; what was ordered meanwhile is returned.
    #[track_caller]
    pub fn pass(&mut self, seconds: u64) -> Vec<String> {
        self.pass_time(Duration::from_secs(seconds))
    }

    /// The same to the nanosecond.
    #[track_caller]
    pub fn pass_time(&mut self, time: Duration) -> Vec<String> {
        let end = self.now.after(time);
        let mut done = self.run();
        for _ in 0..WAKES_MAX {
            let deadlines = [self.scheduler.next_deadline(), self.next_save()].into_iter().flatten();
            let Some(deadline) = deadlines.min().filter(|deadline| *deadline <= end) else {
                self.now = end;
                done.extend(self.run());
                return done;
            };
            assert!(deadline > self.now, "what is due is done: {deadline:?} at {:?}", self.now);
            self.now = deadline;
            done.extend(self.run());
        }
        panic!(
            "the scheduler wants to be woken {WAKES_MAX} times within {time:?}: which plugin wakes so often?"
        );
    }

    /// Somebody sets the clock forward by so many seconds, or back, and the scheduler notices.
    pub fn set_clock(&mut self, seconds: i64) {
        self.now = self.now.moved(seconds);
        self.scheduler.clock_was_set(seconds);
    }

    /// What time it is. Every world begins at the same time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// An object as the API server has it, with all that plugins have written.
    #[track_caller]
    pub fn object(&self, name: &str) -> &Value {
        &self.objects[&self.name_of(name)]
    }

    /// The same, if it is there.
    #[track_caller]
    pub fn find(&self, name: &str) -> Option<&Value> {
        self.objects.get(&self.find_name(name)?)
    }

    /// All objects of a kind, by namespace and name.
    pub fn objects<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |(name, _)| name.kind == kind).map(|(_, object)| object)
    }

    /// The node that a pod is bound to; none if it is bound to none, or is not there.
    #[track_caller]
    pub fn node_of(&self, pod: &str) -> Option<&str> {
        let node = self.find(&format!("Pod {pod}"))?["spec"]["nodeName"].as_str()?;
        Some(node).filter(|node| !node.is_empty())
    }

    /// The whole name of an object that is there.
    #[track_caller]
    fn name_of(&self, words: &str) -> ObjectName {
        if let Some(name) = self.find_name(words) {
            return name;
        }
        let kind = words.split([' ', '.']).next().unwrap_or_default();
        let known = self.objects.keys().filter(|name| name.kind == kind).map(ToString::to_string);
        match known.collect::<Vec<_>>().join(", ") {
            known if known.is_empty() => panic!("there is no {words}, nor any other {kind}"),
            known => panic!("there is no {words}; there are: {known}"),
        }
    }

    #[track_caller]
    fn find_name(&self, words: &str) -> Option<ObjectName> {
        let Some(wanted) = Wanted::parse(words) else {
            panic!(
                "{words:?} names no object: say `KIND NAME` or `KIND NAMESPACE/NAME`, such as `Pod default/web`"
            )
        };
        let mut meant = self.objects.keys().filter(|name| wanted.means(name));
        match (meant.next(), meant.next()) {
            (Some(one), Some(other)) => panic!(
                "{words} may be of the group {:?} or {:?}: say which, as in `{}.{} {}`",
                one.group,
                other.group,
                other.kind,
                other.group,
                short(&other.namespace, &other.name)
            ),
            (one, _) => one.cloned(),
        }
    }

    /// Tells the scheduler of objects that it does not know yet.
    #[track_caller]
    fn tell_all(&mut self, is_told: impl Fn(&ObjectName) -> bool) {
        for (name, object) in self.objects.iter().filter(|(name, _)| is_told(name)) {
            match self.decoder.decode(&object.to_string()) {
                Ok(decoded) => self.scheduler.put(decoded, self.now),
                // Nobody reads the kind any more.
                Err(DecodeError::UnknownKind { .. }) => {}
                Err(error) => panic!("{name} cannot be read by the plugins of this configuration: {error}"),
            }
        }
    }

    /// What a server adds to an object that does not have it.
    pub(crate) fn completed(&mut self, mut object: Value, name: &ObjectName) -> Value {
        self.versions += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.versions.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(short(&name.namespace, &name.name));
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!(self.now);
        }
        object
    }
}

/// What came of something; if it is wrong, the test is told so, at its own line: a closure would name its own.
#[track_caller]
pub(crate) fn told<T>(result: Result<T, impl std::fmt::Display>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
