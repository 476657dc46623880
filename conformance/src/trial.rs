//! A case in which plugins keep books, make pods wait or sort the queue: the whole scheduler lives through it, pod by pod.
//!
//! A pod that gets a node goes through Reserve, Permit, Bind and PostBind before the next is tried. No time passes but what the case
//! says, the API server does at once what it is asked, and victims are gone before the next pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use supercargo_engine::{
    EngineOptions, Evaluation, Indexing, Observation, Outcome, PodPlace, Rules, Scheduler, SchedulerOptions,
    Seed,
};
use supercargo_framework::{Conclusion, Effect, Fixes, Needs, Point, Profile, Query, QuerySource, QueuedPod};
use supercargo_model::{Decoded, Decoder, Pod, PodWords, Timestamp};

use crate::case::{Case, CaseError};
use crate::judge::{NOW, complete};
use crate::verdict::{CaseVerdict, NodeStatus, PermitVerdict, Verdict};

/// What a pod that does not say when it was created gets, plus a second for each pod before it.
const FIRST_CREATION: i64 = 1_780_000_000;
/// The address that stands for load-watcher's in configurations of cases.
const LOAD_WATCHER: &str = "http://load-watcher";
/// The groups of custom resources that plugins read.
const CUSTOM_GROUPS: [&str; 5] = [
    "scheduling.x-k8s.io",
    "topology.node.k8s.io",
    "appgroup.diktyo.x-k8s.io",
    "networktopology.diktyo.x-k8s.io",
    "security-profiles-operator.x-k8s.io",
];
/// The plugins whose cases are lived through: those of kubernetes-sigs/scheduler-plugins.
const COMMUNITY: [&str; 15] = [
    "CapacityScheduling",
    "Coscheduling",
    "LoadVariationRiskBalancing",
    "LowRiskOverCommitment",
    "NetworkOverhead",
    "NodeMetadata",
    "NodeResourceTopologyMatch",
    "NodeResourcesAllocatable",
    "Peaks",
    "PodState",
    "PreemptionToleration",
    "QOSSort",
    "SySched",
    "TargetLoadPacking",
    "TopologicalSort",
];
/// The QueueSort plugin of Kubernetes, about whose order nobody asks.
const PRIORITY_SORT: &str = "PrioritySort";

/// The plugin with which cases say what became of a pod at Permit, wherever it is enabled.
const COSCHEDULING: &str = "Coscheduling";

/// A case on trial.
pub(crate) struct Trial<'c> {
    case: &'c Case<'c>,
    scheduler: Scheduler,
    decoder: Decoder,
    now: Timestamp,
    checks_index: bool,
    pending: Vec<Pending<'c>>,
    has_permit: bool,
    asks_order: bool,
}

/// A pod that waits for its verdict.
#[derive(Clone)]
struct Pending<'c> {
    text: &'c RawValue,
    pod: Arc<Pod>,
    created: Timestamp,
}

/// The pods that waited at Permit and do so no more, by `namespace/name`.
#[derive(Default)]
struct Ended {
    released: Vec<String>,
    /// With the reasons.
    rejected: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header<'a> {
    #[serde(borrow, default)]
    api_version: std::borrow::Cow<'a, str>,
}

/// When what load-watcher answers was measured.
#[derive(Default, Deserialize)]
struct WindowedWords {
    #[serde(default)]
    window: WindowWords,
}

#[derive(Default, Deserialize)]
struct WindowWords {
    #[serde(default)]
    end: i64,
}

impl<'c> Trial<'c> {
    /// Whether there is more to such a profile than where a pod goes: it has plugins of the community.
    pub(crate) fn is_needed(profile: &Profile) -> bool {
        profile.plugins().iter().any(|plugin| COMMUNITY.contains(&plugin.name))
    }

    /// Shows a scheduler everything that the case has.
    pub(crate) fn open(profile: &Profile, checks_index: bool, case: &'c Case<'c>) -> Result<Self, CaseError> {
        if case.no_crds {
            refuse_missing_kinds(profile)?;
        }
        let engine = EngineOptions {
            rules: Rules::CONFORMANCE,
            seed: Seed(0),
            fixes: Fixes::default(),
            indexing: Indexing::On,
        };
        let options = SchedulerOptions::new(engine);
        let mut trial = Trial {
            case,
            scheduler: Scheduler::new(vec![profile.clone()], options).with_unknown_cluster(),
            decoder: Needs::of([profile]).decoder(),
            now: Timestamp::from_seconds(case.now.unwrap_or(NOW)),
            checks_index,
            pending: Vec::new(),
            has_permit: profile.plugins().iter().any(|plugin| plugin.name == COSCHEDULING),
            asks_order: profile.queue_sort.iter().any(|named| named.name != PRIORITY_SORT),
        };
        trial.show_objects()?;
        trial.show_pending_pods()?;
        trial.answer_queries();
        trial.settle()?;
        trial.scheduler.take_observations();
        Ok(trial)
    }

    /// Plugins begin to observe when all but pods is known; assigned pods come when the case says that they were seen.
    fn show_objects(&mut self) -> Result<(), CaseError> {
        let mut pods: Vec<(i64, Decoded)> = Vec::new();
        for (index, object) in self.case.objects.iter().enumerate() {
            if self.case.no_crds && is_custom(object.get()) {
                continue;
            }
            let decoded = self.decoder.decode(object.get());
            match decoded.map_err(|error| CaseError::Object { index, error })? {
                Decoded::Pod(words) => {
                    let metadata = words.metadata();
                    let key = format!("{}/{}", metadata.namespace, metadata.name);
                    let seen = self.case.arrivals.get(&key).copied();
                    let seen = seen.unwrap_or(self.case.now.unwrap_or(NOW));
                    pods.push((seen, Decoded::Pod(words)));
                }
                decoded => self.scheduler.put(decoded, self.now),
            }
        }
        pods.sort_by_key(|(seen, _)| *seen);
        let first = pods.first().map_or(self.now, |(seen, _)| Timestamp::from_seconds(*seen));
        self.scheduler.cluster_is_known(first);
        for (seen, pod) in pods {
            self.scheduler.put(pod, Timestamp::from_seconds(seen));
        }
        Ok(())
    }

    /// Nominations stay as the case gives them, also where a live scheduler takes them back because it makes room for others.
    fn show_nominated_pods(&mut self) -> Result<(), CaseError> {
        for (index, object) in self.case.objects.iter().enumerate() {
            if !object.get().contains("nominatedNodeName") {
                continue;
            }
            let decoded = self.decoder.decode(object.get());
            let decoded = decoded.map_err(|error| CaseError::Object { index, error })?;
            // A pod that has a node is no nominee, and may be one of the victims.
            if let Decoded::Pod(words) = &decoded
                && words.node_name().is_none()
            {
                // What is told again as it was is no news.
                self.scheduler.remove(&decoded, self.now);
                self.scheduler.put(Decoded::Pod(words.clone()), self.now);
            }
        }
        Ok(())
    }

    fn show_pending_pods(&mut self) -> Result<(), CaseError> {
        for (index, text) in self.case.pods.iter().enumerate() {
            let words = self.words_of(text.get(), index)?;
            let uid = words.metadata().uid.clone();
            let created = words.metadata().creation_timestamp.unwrap_or(self.now);
            self.scheduler.put(Decoded::Pod(words), created);
            let Some(pod) = self.scheduler.waiting_pod(&uid) else {
                let reason = "no profile is responsible for it, or it has a node".to_owned();
                return Err(CaseError::NotTried { index, reason });
            };
            self.pending.push(Pending { text, pod: pod.clone(), created });
        }
        Ok(())
    }

    fn words_of(&self, text: &str, index: usize) -> Result<Box<PodWords>, CaseError> {
        let decoded = self.decoder.decode(text).map_err(|error| CaseError::Pod { index, error })?;
        let Decoded::Pod(mut words) = decoded else { return Err(CaseError::NotAPod { index }) };
        complete(&mut words, index, FIRST_CREATION);
        Ok(words)
    }

    /// Load-watcher answers, whoever asks it; nobody else does.
    fn answer_queries(&mut self) {
        let asks_load_watcher = |query: &&Query| match query.source() {
            QuerySource::Http(source) => source.endpoint.url.starts_with(LOAD_WATCHER),
            _ => false,
        };
        let queries: Vec<Query> = self.scheduler.queries().filter(asks_load_watcher).cloned().collect();
        for query in queries {
            let mut now = self.now;
            let answer = match (self.case.metrics_status, self.case.metrics) {
                (None | Some(200), Some(body)) => {
                    // To upstream an answer has no age, and one without a window covers no pod.
                    let words: WindowedWords = serde_json::from_str(body.get()).unwrap_or_default();
                    now = Timestamp::from_seconds(words.window.end.max(0));
                    query.read(body.get().as_bytes(), now)
                }
                (status, _) => Err(format!("load-watcher answered {}", status.unwrap_or(404))),
            };
            self.scheduler.answered(query.name(), answer, now);
        }
    }

    /// Tries all pods of the case.
    pub(crate) fn judge(mut self) -> Result<CaseVerdict, CaseError> {
        let mut verdict = CaseVerdict { name: self.case.name.clone(), ..CaseVerdict::default() };
        if self.asks_order {
            (verdict.order, verdict.less) = self.order();
        }
        if self.case.order_only {
            return Ok(verdict);
        }
        let verdicts: Result<Vec<Verdict>, CaseError> =
            (0..self.pending.len()).map(|index| self.try_pod(index)).collect();
        verdict.verdicts = Some(verdicts?);
        if self.asks_order {
            verdict.order_after = self.order().0;
        }
        verdict.waiting = self.waiting().into_iter().collect();
        Ok(verdict)
    }

    /// The pods of the case in the order of the queue, if there is one, and which goes before which. Pods that go before each other, or
    /// neither before the other, are in the order of their names.
    fn order(&mut self) -> (Vec<String>, Vec<String>) {
        let queued: Vec<QueuedPod> = self
            .pending
            .iter()
            .map(|pending| QueuedPod {
                pod: pending.pod.clone(),
                queued_at: pending.created,
                first_attempt_at: Some(pending.created),
                attempts: 0,
            })
            .collect();
        let now = self.now;
        // No pod goes before itself, even if its plugin would say so: nobody asks.
        let is_other = |a: &QueuedPod, b: &QueuedPod| a.pod.uid != b.pod.uid;
        let less: Vec<Vec<bool>> = queued
            .iter()
            .map(|a| queued.iter().map(|b| is_other(a, b) && self.scheduler.goes_before(a, b, now)).collect())
            .collect();
        let keys: Vec<String> = queued.iter().map(|queued| queued.pod.key()).collect();
        let is_before = |a: usize, b: usize| match (less[a][b], less[b][a]) {
            (true, false) => true,
            (false, true) => false,
            _ => keys[a] < keys[b],
        };
        // In an order the first pod is before all others, the next before all others but one, and so on.
        let mut by_place: BTreeMap<usize, &String> = BTreeMap::new();
        for a in 0..keys.len() {
            let after = (0..keys.len()).filter(|b| a != *b && is_before(a, *b)).count();
            by_place.insert(keys.len() - after, &keys[a]);
        }
        let is_order = by_place.len() == keys.len();
        let order = by_place.into_values().filter(|_| is_order).cloned().collect();
        let row = |row: &Vec<bool>| row.iter().map(|less| if *less { '1' } else { '0' }).collect();
        (order, less.iter().map(row).collect())
    }

    fn try_pod(&mut self, index: usize) -> Result<Verdict, CaseError> {
        // So little time passes that nothing is due; but of two groups that fail, one fails later.
        self.now = self.now.after(Duration::from_nanos(1));
        let pod = self.pending[index].pod.clone();
        let expired = self.expire_before(&pod)?;
        // What fails now fails after those whose time was over.
        self.now = self.now.after(Duration::from_nanos(1));
        if self.case.resync {
            self.scheduler.wake_all(self.now);
            self.settle()?;
        }
        let evaluation = self.evaluate(index, &pod)?;
        let mut verdict = Verdict::new(&pod, &evaluation, self.scheduler.cluster());
        self.scheduler.take_observations();
        let waited = self.waiting();
        let decision = self.scheduler.schedule(&pod.uid, self.now);
        let chosen = decision.and_then(|decision| match decision.outcome {
            Outcome::Place { row, .. } => Some(row),
            Outcome::Unschedulable { .. } | Outcome::Failed { .. } => None,
        });
        if chosen != evaluation.chosen {
            let difference = format!("it takes row {chosen:?}, not {:?}", evaluation.chosen);
            return Err(CaseError::Index { pod: pod.key(), difference });
        }
        self.settle()?;
        if !evaluation.victims.is_empty() {
            self.show_nominated_pods()?;
        }
        let observations = self.scheduler.take_observations();
        if self.has_permit && chosen.is_some() {
            verdict.permit = Some(permit_verdict(&pod, &observations));
        }
        let Ended { released, rejected } = self.ended(&waited, &observations);
        Ok(Verdict {
            activated: self.activated(&observations),
            released,
            rejected_waiting: rejected,
            expired,
            ..verdict
        })
    }

    /// Ends the wait of the pod whose time is over before another is tried.
    fn expire_before(&mut self, pod: &Pod) -> Result<BTreeMap<String, String>, CaseError> {
        let Some(late) = self.case.expire_before.get(&pod.key()) else { return Ok(BTreeMap::new()) };
        let waited = self.waiting();
        let late = self.pending.iter().map(|pending| &pending.pod).find(|pod| pod.key() == *late).cloned();
        self.scheduler.take_observations();
        if let Some(late) = late {
            self.scheduler.end_permit_wait(&late.uid, self.now);
        }
        self.settle()?;
        let observations = self.scheduler.take_observations();
        Ok(self.ended(&waited, &observations).rejected)
    }

    fn evaluate(&mut self, index: usize, pod: &Arc<Pod>) -> Result<Evaluation, CaseError> {
        let not_tried = |reason: String| CaseError::NotTried { index, reason };
        if self.checks_index {
            let difference = self.scheduler.check_index(pod, self.now);
            if let Some(difference) = difference.map_err(|error| not_tried(error.to_string()))? {
                return Err(CaseError::Index { pod: pod.key(), difference });
            }
        }
        self.scheduler.evaluate(pod, self.now).map_err(|error| not_tried(error.to_string()))
    }

    /// The pods that wait at Permit.
    fn waiting(&mut self) -> BTreeSet<String> {
        let (all, _) = self.scheduler.all_whereabouts(usize::MAX, self.now);
        let at_permit = all.into_iter().filter(|(_, place)| matches!(place.place, PodPlace::Permit { .. }));
        at_permit.map(|(pod, _)| pod.key()).collect()
    }

    /// What became of the pods that waited at Permit.
    fn ended(&mut self, waited: &BTreeSet<String>, observations: &[Observation]) -> Ended {
        let rejected: BTreeMap<String, String> = observations
            .iter()
            .filter_map(|observation| match observation {
                Observation::NotBound { pod, words, .. } => Some((pod.key(), words.clone())),
                _ => None,
            })
            .filter(|(key, _)| waited.contains(key))
            .collect();
        let waits = self.waiting();
        let is_released = |key: &&String| !waits.contains(*key) && !rejected.contains_key(*key);
        let released = waited.iter().filter(is_released).cloned().collect();
        Ended { released, rejected }
    }

    /// The pods that plugins asked to be tried.
    fn activated(&self, observations: &[Observation]) -> Vec<String> {
        let key_of = |uid: &Arc<str>| {
            let known = self.pending.iter().find(|pending| pending.pod.uid == *uid);
            // Gated pods of the case wait as well, though they are not tried.
            let pod = known.map(|pending| &pending.pod).or_else(|| self.scheduler.waiting_pod(uid));
            pod.map_or_else(|| uid.to_string(), |pod| pod.key())
        };
        let activated: BTreeSet<String> = observations
            .iter()
            .filter_map(|observation| match observation {
                Observation::Activated { uid, .. } => Some(key_of(uid)),
                _ => None,
            })
            .collect();
        activated.into_iter().collect()
    }

    /// Does what the scheduler orders, as the API server would.
    fn settle(&mut self) -> Result<(), CaseError> {
        loop {
            let orders = self.scheduler.take_orders();
            if orders.is_empty() {
                return Ok(());
            }
            for order in orders {
                if matches!(order.effect, Effect::Bind { .. }) && self.case.bind == Some(false) {
                    continue;
                }
                if let Some(ticket) = order.ticket {
                    self.scheduler.conclude(ticket, &Conclusion::Done, self.now);
                }
                match &order.effect {
                    Effect::Bind { pod, node } => self.show_bound(pod, node)?,
                    Effect::Evict { victim, .. } => self.remove(victim)?,
                    _ => {}
                }
            }
        }
    }

    /// The watch tells that a pod of the case is bound.
    fn show_bound(&mut self, pod: &Pod, node: &str) -> Result<(), CaseError> {
        let Some(index) = self.pending.iter().position(|pending| pending.pod.uid == pod.uid) else {
            return Ok(());
        };
        let text = self.pending[index].text.get();
        let mut object: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        object["spec"]["nodeName"] = node.into();
        let words = self.words_of(&object.to_string(), index)?;
        self.scheduler.put(Decoded::Pod(words), self.now);
        Ok(())
    }

    /// The watch tells that a victim is gone.
    fn remove(&mut self, victim: &Pod) -> Result<(), CaseError> {
        let metadata = json!({ "namespace": &*victim.namespace, "name": &*victim.name, "uid": &*victim.uid });
        let text = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata }).to_string();
        let gone = self.decoder.decode(&text).map_err(|error| CaseError::Pod { index: 0, error })?;
        self.scheduler.remove(&gone, self.now);
        Ok(())
    }
}

/// What Permit plugins said about a pod that was given a node.
fn permit_verdict(pod: &Pod, observations: &[Observation]) -> PermitVerdict {
    let mut verdict = PermitVerdict::default();
    "Success".clone_into(&mut verdict.status.code);
    for observation in observations {
        match observation {
            Observation::PermitAwaited { pod: awaited, patience, .. } if awaited.uid == pod.uid => {
                let name = &pod.name;
                let reason = format!("one or more plugins asked to wait and no plugin rejected pod {name:?}");
                let status =
                    NodeStatus { code: "Wait".to_owned(), reasons: vec![reason], ..NodeStatus::default() };
                return PermitVerdict { status, timeout: patience.as_secs() };
            }
            Observation::PointRan { point: Point::Permit, pod: asked, status, .. }
                if asked.uid == pod.uid =>
            {
                verdict.status.code = (*status).to_owned();
            }
            Observation::NotBound { pod: refused, words, plugins, .. } if refused.uid == pod.uid => {
                verdict.status.plugin = plugins.first().copied().unwrap_or_default().to_owned();
                verdict.status.reasons = vec![words.clone()];
            }
            _ => {}
        }
    }
    verdict
}

/// Upstream, a plugin that cannot do without a custom resource does not start while its definition is not installed.
fn refuse_missing_kinds(profile: &Profile) -> Result<(), CaseError> {
    for plugin in profile.plugins() {
        if let Some(kind) = plugin.reads.required.first() {
            return Err(CaseError::NotInstalled { plugin: plugin.name, kind: *kind });
        }
    }
    Ok(())
}

fn is_custom(text: &str) -> bool {
    let header: Result<Header<'_>, _> = serde_json::from_str(text);
    let group = header.ok().and_then(|header| Some(header.api_version.split_once('/')?.0.to_owned()));
    group.is_some_and(|group| CUSTOM_GROUPS.contains(&&*group))
}
