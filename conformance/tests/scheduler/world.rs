//! A cluster in virtual time: an API server that does what the scheduler orders, or fails when told to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use supercargo_api::{Applied, Refusal, merge};
use supercargo_config::{build_profiles, load};
use supercargo_engine::{
    AnswerTaken, EngineOptions, ExtenderSettings, Indexing, Order, Rules, Scheduler, SchedulerOptions, Seed,
    Ticket,
};
use supercargo_framework::{
    AskFailure, AskedNode, Conclusion, Effect, ExtenderAnswer, ExtenderQuestion, Facts, Fixes, Needs,
    Nomination, Profile, Registry,
};
use supercargo_model::{Decoder, Timestamp};

/// What became of an object that an order is about.
enum Written {
    Put(Value),
    Removed(String),
}

/// A scheduler and the cluster that it works on.
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    decoder: Decoder,
    objects: BTreeMap<String, Value>,
    now: Timestamp,
    /// What was ordered and done, in order, as a line each.
    log: Vec<String>,
    /// Orders that begin like this fail with this error.
    faults: Vec<(&'static str, &'static str)>,
    /// Whether orders stay undone for now.
    is_slow: bool,
    undone: Vec<Order>,
    versions: u64,
    /// What all extenders answer.
    extender: Extender,
}

type Extender = fn(&ExtenderQuestion) -> Result<ExtenderAnswer, String>;

fn options() -> SchedulerOptions {
    SchedulerOptions {
        engine: EngineOptions {
            rules: Rules::LIVE,
            seed: Seed(1),
            fixes: Fixes::default(),
            indexing: Indexing::Checked,
        },
        initial_backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(10),
        max_unschedulable: Duration::from_secs(300),
    }
}

fn profiles_of(config: &str, registry: &Registry) -> Vec<Profile> {
    let loaded = load(config).expect("the configuration is right");
    build_profiles(&loaded.kube, registry).expect("the profiles are right")
}

impl World {
    /// With the default configuration.
    pub(crate) fn new() -> Self {
        Self::with_config("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    }

    pub(crate) fn with_config(config: &str) -> Self {
        Self::with_plugins(config, &supercargo_plugins::registry())
    }

    pub(crate) fn with_plugins(config: &str, registry: &Registry) -> Self {
        let profiles = profiles_of(config, registry);
        let decoder = Needs::of(&profiles).decoder();
        let scheduler = Scheduler::new(profiles, options());
        World {
            scheduler,
            decoder,
            objects: BTreeMap::new(),
            now: Timestamp::from_seconds(1_000_000),
            log: Vec::new(),
            faults: Vec::new(),
            is_slow: false,
            undone: Vec::new(),
            versions: 0,
            extender: |_| Err("there are no extenders".to_owned()),
        }
    }

    /// With these extenders, which all answer alike.
    pub(crate) fn with_extenders(mut self, settings: Vec<ExtenderSettings>, extender: Extender) -> Self {
        self.scheduler = self.scheduler.with_extenders(settings);
        self.extender = extender;
        self
    }

    /// Goes on with another configuration. As the driver does, tells of all pods again if there is a new profile.
    pub(crate) fn reconfigure(&mut self, config: &str) {
        self.reconfigure_with(config, &supercargo_plugins::registry());
    }

    /// The same with plugins of the test's own.
    pub(crate) fn reconfigure_with(&mut self, config: &str, registry: &Registry) {
        let profiles = profiles_of(config, registry);
        let before = self.scheduler.profiles();
        let is_known = |new: &Profile| before.iter().any(|old| old.scheduler_name == new.scheduler_name);
        let is_name_new = !profiles.iter().all(is_known);
        self.decoder = Needs::of(&profiles).decoder();
        self.scheduler.replace_profiles(profiles, options(), Vec::new(), self.now);
        if is_name_new {
            for pod in self.objects.values().filter(|object| object["kind"] == "Pod") {
                let decoded = self.decoder.decode(&pod.to_string()).expect("it was right before");
                self.scheduler.put(decoded, self.now);
            }
        }
    }

    /// Something comes or changes.
    pub(crate) fn put(&mut self, object: impl Into<Value>) {
        let mut object = object.into();
        self.versions += 1;
        object["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        if object["metadata"]["uid"].is_null() && object["kind"] == "Pod" {
            object["metadata"]["uid"] = object["metadata"]["name"].clone();
        }
        let decoded = self.decoder.decode(&object.to_string()).expect("the object is right");
        self.objects.insert(key_of(&object), object);
        self.scheduler.put(decoded, self.now);
    }

    /// Changes an object by a merge patch.
    pub(crate) fn change(&mut self, key: &str, patch: &Value) {
        let mut object = self.objects[key].clone();
        merge(&mut object, patch);
        self.put(object);
    }

    /// Something goes.
    pub(crate) fn remove(&mut self, key: &str) {
        let object = self.objects.remove(key).unwrap_or_else(|| panic!("there is no {key}"));
        let decoded = self.decoder.decode(&object.to_string()).expect("it was right before");
        self.scheduler.remove(&decoded, self.now);
    }

    /// Somebody outside answers a query, or does not.
    pub(crate) fn answer(&mut self, query: &str, answer: Result<Facts, String>) -> Option<AnswerTaken> {
        self.scheduler.answered(query, answer, self.now)
    }

    /// Orders that begin like this fail from now on.
    pub(crate) fn fail(&mut self, order: &'static str, error: &'static str) {
        self.faults.push((order, error));
    }

    pub(crate) fn heal(&mut self) {
        self.faults.clear();
    }

    /// Whether the API server takes its time: orders are done by [`World::catch_up`].
    pub(crate) fn set_slow(&mut self, is_slow: bool) {
        self.is_slow = is_slow;
    }

    /// Lets the scheduler run until it orders this, which stays undone; the ticket of the order.
    pub(crate) fn order_for(&mut self, line: &str) -> Ticket {
        self.set_slow(true);
        self.run();
        self.set_slow(false);
        self.undone_ticket(line).unwrap_or_else(|| panic!("{line} was not ordered"))
    }

    /// Takes an order that was not done yet, and will not be by itself.
    pub(crate) fn undone_ticket(&mut self, line: &str) -> Option<Ticket> {
        let position = self.undone.iter().position(|order| words(&order.effect) == line)?;
        self.undone.remove(position).ticket
    }

    /// The server has bound a pod, by whoever asked for it.
    pub(crate) fn bind(&mut self, pod: &str, node: &str) {
        self.change(&format!("Pod {pod}"), &json!({"spec": {"nodeName": node}}));
    }

    pub(crate) fn catch_up(&mut self) {
        for order in std::mem::take(&mut self.undone) {
            self.perform(&order);
        }
        self.run();
    }

    /// Lets the scheduler do all it can at this moment, and returns what was done since the last time.
    pub(crate) fn run(&mut self) -> Vec<String> {
        loop {
            self.scheduler.advance(self.now);
            let decided = self.scheduler.schedule_next(self.now).is_some();
            let orders = self.scheduler.take_orders();
            if !decided && orders.is_empty() {
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
    }

    /// Lets so many seconds pass; the scheduler is woken whenever it wants to be.
    pub(crate) fn pass(&mut self, seconds: u64) -> Vec<String> {
        let end = self.now.after(Duration::from_secs(seconds));
        let mut done = self.run();
        while let Some(deadline) = self.scheduler.next_deadline()
            && deadline <= end
        {
            assert!(deadline > self.now, "what is due is done: {deadline:?} at {:?}", self.now);
            self.now = deadline;
            done.extend(self.run());
        }
        self.now = end;
        done.extend(self.run());
        done
    }

    /// Somebody sets the clock forward by so many seconds, or back; the driver notices.
    pub(crate) fn set_clock(&mut self, seconds: i64) {
        self.now = self.now.moved(seconds);
        self.scheduler.clock_was_set(seconds);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn object(&self, key: &str) -> &Value {
        &self.objects[key]
    }

    pub(crate) fn find(&self, key: &str) -> Option<&Value> {
        self.objects.get(key)
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = &Value> {
        self.objects.values().filter(|object| object["kind"] == "Pod")
    }

    pub(crate) fn remove_if_there(&mut self, key: &str) {
        if self.objects.contains_key(key) {
            self.remove(key);
        }
    }

    pub(crate) fn node_count(&self) -> usize {
        self.objects.keys().filter(|key| key.starts_with("Node ")).count()
    }

    /// What each node has left, in whole cores, by what the API server knows.
    pub(crate) fn free_cpu(&self) -> Vec<(String, u64)> {
        let cores = |value: &Value| value.as_str().and_then(|cpu| cpu.parse::<i64>().ok()).unwrap_or(0);
        let nodes = self.objects.iter().filter_map(|(key, node)| Some((key.strip_prefix("Node ")?, node)));
        nodes
            .map(|(name, node)| {
                let on_node = self.objects.values().filter(|object| object["spec"]["nodeName"] == name);
                let taken: i64 = on_node
                    .map(|pod| cores(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]))
                    .sum();
                let free = cores(&node["status"]["allocatable"]["cpu"]) - taken;
                (name.to_owned(), u64::try_from(free).unwrap_or(u64::MAX))
            })
            .collect()
    }

    /// The nodes that were given more than they have.
    pub(crate) fn over_committed(&self) -> Vec<String> {
        let over = self.free_cpu().into_iter().filter(|(_, free)| *free == u64::MAX);
        over.map(|(name, _)| name).collect()
    }

    pub(crate) fn is_empty_node(&self, name: &str) -> bool {
        self.objects.values().all(|object| object["spec"]["nodeName"] != name)
    }

    pub(crate) fn node_of(&self, pod: &str) -> Option<&str> {
        self.objects.get(&format!("Pod {pod}"))?["spec"]["nodeName"].as_str()
    }

    fn perform(&mut self, order: &Order) {
        let words = words(&order.effect);
        let fault = self.faults.iter().find(|(start, _)| words.starts_with(start)).map(|(_, error)| *error);
        let written = self.written(&order.effect);
        let fault = fault.or_else(|| written.is_err().then_some("not found"));
        self.log.push(match fault {
            None => words,
            Some(error) => format!("{words}: {error}"),
        });
        if let (Effect::LookUp { pod }, Some(ticket)) = (&order.effect, order.ticket) {
            let found = self.objects.get(&format!("Pod {}", pod.name)).map(Value::to_string);
            let found = found.map(|text| self.decoder.decode(&text).expect("it was right before"));
            let found = fault.map_or(Ok(found), |error| Err(error.to_owned()));
            self.scheduler.looked_up(ticket, found, self.now);
            return;
        }
        if let (Effect::Ask { question, .. }, Some(ticket)) = (&order.effect, order.ticket) {
            let answer = match fault {
                Some(error) => Err(error.to_owned()),
                None => (self.extender)(question),
            };
            if let (Ok(ExtenderAnswer::Bound), ExtenderQuestion::Bind { pod, node }) = (&answer, question) {
                let bound = self.written(&Effect::Bind { pod: pod.clone(), node: node.clone() });
                self.keep(bound.expect("the extender says that it bound the pod"));
            }
            self.scheduler.answer(ticket, answer.map_err(AskFailure::Answered), self.now);
            return;
        }
        if let (None, Ok(written)) = (fault, written) {
            self.keep(written);
        }
        if let Some(ticket) = order.ticket {
            self.conclude(ticket, fault);
        }
    }

    /// What the API server makes of an object when it is asked for this effect; nothing if it is not there and need not be.
    fn written(&self, effect: &Effect) -> Result<Option<Written>, Refusal> {
        let key = match effect {
            Effect::Create { namespace, .. } => {
                return Ok(Some(Written::Put(self.created(effect, namespace))));
            }
            Effect::Bind { pod, .. } | Effect::UpdateStatus { pod, .. } => format!("Pod {}", pod.name),
            Effect::Evict { victim, .. } => format!("Pod {}", victim.name),
            Effect::Patch { kind, key, .. } | Effect::Delete { kind, key, .. } => {
                format!("{} {}", kind.kind, key.name)
            }
            Effect::Ask { .. } | Effect::LookUp { .. } | Effect::Record(_) => return Ok(None),
        };
        let Some(stored) = self.objects.get(&key) else {
            let is_needed =
                matches!(effect, Effect::Bind { .. } | Effect::Patch { .. } | Effect::Delete { .. });
            let missing = || Refusal::Conflict(format!("there is no {key}"));
            return if is_needed { Err(missing()) } else { Ok(None) };
        };
        let mut object = stored.clone();
        for call in supercargo_api::calls(effect, self.now) {
            object = match (supercargo_api::applied(&call, &object)?, effect) {
                (Applied::Changed(changed), _) => changed,
                // A pod on a node is given time to end.
                (Applied::Deleted, Effect::Evict { .. }) => {
                    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                    object
                }
                (Applied::Deleted, _) => return Ok(Some(Written::Removed(key))),
            };
        }
        Ok(Some(Written::Put(object)))
    }

    /// The object that the one request for a creation sends.
    fn created(&self, effect: &Effect, namespace: &str) -> Value {
        let calls = supercargo_api::calls(effect, self.now);
        let mut object: Value = serde_json::from_slice(&calls[0].body).expect("bodies are JSON");
        object["metadata"]["namespace"] = json!(namespace);
        object
    }

    fn keep(&mut self, written: Option<Written>) {
        match written {
            Some(Written::Put(object)) => self.put(object),
            Some(Written::Removed(key)) => self.remove(&key),
            None => {}
        }
    }

    fn conclude(&mut self, ticket: Ticket, fault: Option<&str>) {
        let refused = |error: &str| Conclusion::not_done(error);
        self.scheduler.conclude(ticket, &fault.map_or(Conclusion::Done, refused), self.now);
    }
}

fn key_of(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", word(&object["kind"]), word(&object["metadata"]["name"]))
}

/// An effect in a line.
fn words(effect: &Effect) -> String {
    match effect {
        Effect::Bind { pod, node } => format!("bind {} to {node}", pod.name),
        Effect::Create { kind, object, .. } => format!("create {} {}", kind.kind, object["metadata"]["name"]),
        Effect::Patch { kind, key, .. } => format!("patch {} {}", kind.kind, key.name),
        Effect::Delete { kind, key, .. } => format!("delete {} {}", kind.kind, key.name),
        Effect::Evict { victim, preemptor } => format!("evict {} for {}", victim.name, preemptor.name),
        Effect::UpdateStatus { pod, condition, nomination } => {
            let mut words = format!("status of {}:", pod.name);
            if let Some(condition) = condition {
                words += &format!(" {} {}", condition.reason, condition.message);
            }
            match nomination {
                Nomination::Keep => {}
                Nomination::Clear => words += " not nominated",
                Nomination::Node(node) => words += &format!(" nominated to {node}"),
            }
            words
        }
        Effect::Ask { extender, question } => format!("ask extender {extender}: {}", asked(question)),
        Effect::LookUp { pod } => format!("look up {}", pod.name),
        Effect::Record(notice) => format!("{} on {}: {}", notice.reason, notice.about.name(), notice.note),
    }
}

fn asked(question: &ExtenderQuestion) -> String {
    let names = |nodes: &[AskedNode]| nodes.iter().map(|node| &*node.name).collect::<Vec<_>>().join(" ");
    match question {
        ExtenderQuestion::Filter { nodes, .. } => format!("filter {}", names(nodes)),
        ExtenderQuestion::Prioritize { nodes, .. } => format!("prioritize {}", names(nodes)),
        ExtenderQuestion::Preempt { victims, .. } => {
            let words = victims.iter().map(|(node, victims)| {
                let pods: Vec<&str> = victims.pods.iter().map(|pod| &*pod.name).collect();
                format!("{node}: {}", pods.join(" "))
            });
            format!("preempt {}", words.collect::<Vec<_>>().join(", "))
        }
        ExtenderQuestion::Bind { pod, node } => format!("bind {} to {node}", pod.name),
    }
}
