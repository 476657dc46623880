//! A cluster, its profiles, and the decisions made on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_framework::{
    Acts, AskedActs, Context, Cycle, CycleState, DroppedMemory, Fixes, Memories, Profile,
};
use supercargo_model::{
    Cluster, ClusterError, CountedPods, Interned, Pod, PodSpec, Row, Snapshot, Timestamp,
};

use crate::chance::Seed;
use crate::decision::{Decision, Outcome};
use crate::evaluate::{Evaluation, Rules, Thoroughness, evaluate};
use crate::index::{Answer, Index, IndexLimits, IndexStatistics, PlainDecisions, Question};
use crate::unplaced::{refused_outcome, unfit_outcome};

/// Decides for pods, one after the other. A clone shares what neither side changes, and begins without an index, which is made anew when
/// it decides for the first time.
#[derive(Debug)]
pub struct Engine {
    /// The cluster; the driver changes it between decisions.
    pub cluster: Cluster,
    profiles: Vec<Profile>,
    options: EngineOptions,
    memories: Memories,
    /// What plugins that observe find in their context instead.
    withheld: Memories,
    /// What plugins asked for, and nobody has carried out yet.
    pub(crate) acts: AskedActs,
    index: Index,
    attempts: u64,
    /// Attempts before this one were made by other profiles.
    first_attempt: u64,
    start: usize,
    limits: IndexLimits,
    /// The spec of the pod that was decided for last, and the number of its profile: most pods that come are like the one before.
    last_spec: Option<(Interned<PodSpec>, usize)>,
}

/// How an [`Engine`] decides.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// As in a live cluster, or as for conformance vectors.
    pub rules: Rules,
    /// Where chance comes from.
    pub seed: Seed,
    /// Which upstream mistakes are not repeated.
    pub fixes: Fixes,
    /// Whether what was worked out for one pod is kept for the next.
    pub indexing: Indexing,
}

/// Whether an [`Engine`] keeps what it worked out. The decisions are the same in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Every decision asks every plugin about every node.
    Off,
    /// Decisions look only at what has changed since the last one of their kind.
    #[default]
    On,
    /// As `On`, and every decision is made both ways. A difference is a bug, and a panic.
    Checked,
}

/// What plugins remembered and had asked for at some moment.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    memories: Memories,
    asked: usize,
}

/// Gives plugins their hands, one after the other.
pub(crate) struct Acting<'a> {
    memories: &'a mut Memories,
    asked: &'a mut AskedActs,
    profiles: &'a [Profile],
}

impl Acting<'_> {
    /// The hands of one plugin.
    pub(crate) fn of(&mut self, plugin: &'static str) -> Acts<'_> {
        Acts::new(plugin, self.memories, self.asked).among(self.profiles)
    }
}

/// No profile is responsible for the pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pod {pod} asks for scheduler {scheduler_name:?}, which no profile is responsible for")]
pub struct UnknownProfile {
    /// The pod.
    pub pod: String,
    /// Its `spec.schedulerName`.
    pub scheduler_name: String,
}

/// The cluster, or the profile, has changed since a decision was made, so what was said then cannot be said again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decision was made on version {decided} of the cluster, which is at version {current} now")]
pub struct StaleDecision {
    /// The version that the decision was made on.
    pub decided: u64,
    /// The version that the cluster is at.
    pub current: u64,
}

/// What the index has decided.
struct FromIndex {
    outcome: Outcome,
    /// Whether all nodes were looked at: not if a plugin rejected the pod before, nor if the node that it is nominated to will do. The next
    /// search for a sample of nodes begins where the last one ended.
    has_searched: bool,
}

impl EngineOptions {
    /// What plugins can look at in an attempt.
    fn context<'a>(
        &self,
        cluster: &'a Snapshot,
        memories: &'a Memories,
        now: Timestamp,
        attempt: u64,
    ) -> Context<'a> {
        Context { cluster, now, memories, seed: self.seed.attempt(attempt), fixes: self.fixes }
    }
}

impl Clone for Engine {
    fn clone(&self) -> Self {
        Engine {
            cluster: self.cluster.clone(),
            profiles: self.profiles.clone(),
            options: self.options,
            memories: self.memories.clone(),
            withheld: self.withheld.clone(),
            acts: self.acts.clone(),
            index: self.index.left_behind(),
            attempts: self.attempts,
            first_attempt: self.first_attempt,
            start: self.start,
            limits: self.limits,
            last_spec: None,
        }
    }
}

impl Engine {
    /// An engine with an empty cluster.
    pub fn new(profiles: Vec<Profile>, options: EngineOptions) -> Self {
        let mut memories = Memories::default();
        for profile in &profiles {
            profile.declare_memories(&mut memories);
        }
        let index = Index::new(&profiles, IndexLimits::default());
        let mut cluster = Cluster::default();
        cluster.count_pods(counted_pods(&profiles));
        Engine {
            cluster,
            profiles,
            options,
            memories,
            withheld: Memories::withheld(),
            acts: AskedActs::default(),
            index,
            attempts: 0,
            first_attempt: 0,
            start: 0,
            limits: IndexLimits::default(),
            last_spec: None,
        }
    }

    /// The same engine that keeps less, or more, from one decision to the next. What it kept so far is forgotten.
    #[must_use]
    pub fn with_index_limits(mut self, limits: IndexLimits) -> Self {
        self.limits = limits;
        self.index = Index::reading(&self.profiles, &mut self.cluster, limits);
        self
    }

    /// What was decided by what is kept, and how much of that was dropped.
    pub fn index_statistics(&self) -> IndexStatistics {
        self.index.statistics()
    }

    /// How many pods were decided the plain way since the last time, by asking every plugin about every node, and why.
    pub fn take_plain_decisions(&mut self) -> PlainDecisions {
        self.index.take_plain_decisions()
    }

    /// Goes on with other profiles. What plugins remember stays for those that are still there, or still in use. True if pods
    /// are counted by something else from now on: then it has to be said again where those stand that are not bound.
    pub(crate) fn replace(
        &mut self,
        profiles: Vec<Profile>,
        options: EngineOptions,
        used: &[Arc<Profile>],
    ) -> bool {
        let mut declared = Memories::default();
        for profile in profiles.iter().chain(used.iter().map(|profile| &**profile)) {
            profile.declare_memories(&mut declared);
        }
        self.memories.keep_declared(&declared);
        self.index = Index::reading(&profiles, &mut self.cluster, self.limits);
        (self.profiles, self.options, self.first_attempt) = (profiles, options, self.attempts);
        self.last_spec = None;
        // Bindings that are under way go on with the plugins that they began with, which may read pods too.
        let used = counted_pods(used.iter().map(|profile| &**profile));
        self.cluster.count_pods(counted_pods(&self.profiles).and(used))
    }

    /// The profiles, in the order of the configuration.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// What plugins can look at now, and the profiles.
    pub(crate) fn view(&mut self, now: Timestamp) -> (Context<'_>, &[Profile]) {
        let context = self.options.context(self.cluster.snapshot(), &self.memories, now, self.attempts);
        (context, &self.profiles)
    }

    /// What plugins could look at in an earlier attempt, and the profiles.
    pub(crate) fn view_of<'a>(
        &'a self,
        cluster: &'a Snapshot,
        memories: &'a Memories,
        now: Timestamp,
        attempt: u64,
    ) -> (Context<'a>, &'a [Profile]) {
        (self.options.context(cluster, memories, now, attempt), &self.profiles)
    }

    pub(crate) fn rules(&self) -> Rules {
        self.options.rules
    }

    /// Counts an attempt that somebody else makes: its number, and where it begins to look for nodes.
    pub(crate) fn next_attempt(&mut self) -> (u64, usize) {
        self.attempts += 1;
        (self.attempts - 1, self.start)
    }

    /// Where the next attempt begins to look for nodes.
    pub(crate) fn set_start(&mut self, start: usize) {
        self.start = start;
    }

    /// Goes on with a pod's cycle: its plugins leave what they work out in the state, and may change what they remember.
    pub(crate) fn with_cycle<R>(
        &mut self,
        pod: &Arc<Pod>,
        state: &mut CycleState,
        now: Timestamp,
        act: impl FnOnce(&Profile, &mut Cycle<'_>, &mut Acting<'_>) -> R,
    ) -> R {
        self.with_cycle_of(None, pod, state, now, act)
    }

    /// The same with the plugins of a certain profile; if none is given, the one that is responsible.
    pub(crate) fn with_cycle_of<R>(
        &mut self,
        profile: Option<&Profile>,
        pod: &Arc<Pod>,
        state: &mut CycleState,
        now: Timestamp,
        act: impl FnOnce(&Profile, &mut Cycle<'_>, &mut Acting<'_>) -> R,
    ) -> R {
        let profile = profile
            .unwrap_or_else(|| responsible(&self.profiles, pod).expect("a pod with a cycle has a profile").1);
        // What they remembered before is what they look at; what they change is seen by the next.
        let before = self.memories.clone();
        let context = self.options.context(self.cluster.snapshot(), &before, now, self.attempts);
        let mut cycle = Cycle::resume(pod, context, std::mem::take(state));
        let mut acting =
            Acting { memories: &mut self.memories, asked: &mut self.acts, profiles: &self.profiles };
        let result = act(profile, &mut cycle, &mut acting);
        *state = cycle.into_state();
        result
    }

    /// Lets plugins act outside of any cycle: they look at the cluster, and at what they remembered before.
    pub(crate) fn with_acts<R>(
        &mut self,
        now: Timestamp,
        act: impl FnOnce(&[Profile], &Context<'_>, &mut Acting<'_>) -> R,
    ) -> R {
        let before = self.memories.clone();
        let context = self.options.context(self.cluster.snapshot(), &before, now, self.attempts);
        let mut acting =
            Acting { memories: &mut self.memories, asked: &mut self.acts, profiles: &self.profiles };
        act(&self.profiles, &context, &mut acting)
    }

    /// The same for plugins that observe, which find what they remember in their hands alone.
    pub(crate) fn with_observers<R>(
        &mut self,
        now: Timestamp,
        act: impl FnOnce(&Context<'_>, &mut Acting<'_>) -> R,
    ) -> R {
        let context = self.options.context(self.cluster.snapshot(), &self.withheld, now, self.attempts);
        let mut acting =
            Acting { memories: &mut self.memories, asked: &mut self.acts, profiles: &self.profiles };
        act(&context, &mut acting)
    }

    /// What plugins remember and have asked for so far.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { memories: self.memories.clone(), asked: self.acts.len() }
    }

    /// Takes back what plugins changed and asked for since.
    pub(crate) fn restore(&mut self, checkpoint: Checkpoint) {
        self.memories = checkpoint.memories;
        self.acts.undo_to(checkpoint.asked);
    }

    /// What comes of an attempt in which a plugin panicked. What is kept from one decision to the next may be half changed, and
    /// is made anew.
    pub(crate) fn broken_off(&mut self, pod: &Arc<Pod>, now: Timestamp, error: String) -> Decision {
        self.index = Index::reading(&self.profiles, &mut self.cluster, self.limits);
        let version = self.cluster.snapshot().version();
        self.attempts += 1;
        let (attempt, start) = (self.attempts - 1, self.start);
        Decision { pod: pod.clone(), version, attempt, now, start, outcome: Outcome::Failed { error } }
    }

    /// Asks every plugin about every node, to see how long each takes. Nothing comes of it.
    pub(crate) fn decide_once_more(&mut self, pod: &Arc<Pod>, now: Timestamp) {
        let start = self.start;
        let _ = self.decide_plainly(pod, now, self.attempts);
        self.start = start;
    }

    /// Whether a plugin has something to do between the decision for a pod and its binding.
    pub(crate) fn is_preparation_needed(&self, pod: &Pod) -> bool {
        self.preparing(pod).next().is_some()
    }

    /// What the plugins that have something to do after the decision need for it from PreFilter.
    pub(crate) fn prepare(&mut self, pod: &Arc<Pod>, now: Timestamp) -> CycleState {
        let mut state = CycleState::default();
        let needed: BTreeSet<usize> = self.preparing(pod).collect();
        self.with_cycle(pod, &mut state, now, |profile, cycle, _| {
            for named in profile.pre_filter.iter().filter(|named| needed.contains(&named.number)) {
                // What it says was heard when the decision was made.
                let _ = named.run(|plugin| plugin.pre_filter(cycle));
            }
        });
        state
    }

    /// The plugins that have something to do between the decision for a pod and its binding, by their numbers.
    fn preparing(&self, pod: &Pod) -> impl Iterator<Item = usize> {
        let (_, profile) =
            responsible(&self.profiles, pod).expect("a pod that was decided for has a profile");
        let reserving = profile.reserve.iter().filter(|named| named.plugin.reserves(pod));
        let later = (reserving.map(|named| named.number))
            .chain(profile.permit.iter().map(|named| named.number))
            .chain(profile.pre_bind.iter().map(|named| named.number));
        later.filter(|number| profile.plugins()[*number].concerns(pod))
    }

    /// What plugins remember, to look at.
    pub(crate) fn remembered(&self) -> &Memories {
        &self.memories
    }

    /// Restores what plugins remembered in another process, and says what of it is dropped.
    pub(crate) fn restore_memories(&mut self, entries: &BTreeMap<String, String>) -> Vec<DroppedMemory> {
        let dropped = self.memories.restore(entries);
        self.index = Index::reading(&self.profiles, &mut self.cluster, self.limits);
        dropped
    }

    /// What plugins remember.
    pub fn memories(&mut self) -> &mut Memories {
        &mut self.memories
    }

    /// Decides for a pod, as things are now.
    pub fn decide(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Result<Decision, UnknownProfile> {
        let (attempt, start) = (self.attempts, self.start);
        let version = self.cluster.snapshot().version();
        if self.cluster.snapshot().node_count() == 0 {
            responsible(&self.profiles, pod)?;
            self.attempts += 1;
            let outcome = Outcome::no_nodes();
            return Ok(Decision { pod: pod.clone(), version, attempt, now, start, outcome });
        }
        let found = match self.options.indexing {
            Indexing::Off => None,
            Indexing::On | Indexing::Checked => self.decide_by_index(pod, now, attempt)?,
        };
        let outcome = match found {
            None => self.decide_plainly(pod, now, attempt)?,
            Some(FromIndex { outcome, has_searched }) => {
                if self.options.indexing == Indexing::Checked {
                    let plain = self.decide_plainly(pod, now, attempt)?;
                    let difference = outcome.difference(&plain);
                    assert_eq!(difference, None, "decision {attempt}, for pod {}, is wrong", pod.key());
                }
                // Dividing takes longer than looking whether there is anything to divide.
                let nodes = self.cluster.snapshot().node_count();
                if has_searched && self.start >= nodes {
                    self.start %= nodes;
                }
                outcome
            }
        };
        self.attempts += 1;
        Ok(Decision { pod: pod.clone(), version, attempt, now, start, outcome })
    }

    /// Decides by asking every plugin about every node.
    fn decide_plainly(
        &mut self,
        pod: &Arc<Pod>,
        now: Timestamp,
        attempt: u64,
    ) -> Result<Outcome, UnknownProfile> {
        let evaluation = self.evaluate(pod, now, attempt, Thoroughness::FirstRejection)?;
        Ok(Outcome::of(evaluation, self.cluster.snapshot()))
    }

    /// Decides by what is kept; none if that is not enough to know.
    // Most decisions are made here. As a function by itself it would copy what was decided once more.
    #[inline(always)]
    fn decide_by_index(
        &mut self,
        pod: &Arc<Pod>,
        now: Timestamp,
        attempt: u64,
    ) -> Result<Option<FromIndex>, UnknownProfile> {
        self.index.sync(&mut self.cluster);
        let profile_number = match &self.last_spec {
            Some((spec, number)) if spec.is_same(&pod.spec) => *number,
            _ => {
                let (number, _) = responsible(&self.profiles, pod)?;
                self.last_spec = Some((pod.spec.clone(), number));
                number
            }
        };
        let profile = &self.profiles[profile_number];
        let context = self.options.context(self.cluster.snapshot(), &self.memories, now, attempt);
        let rules = self.options.rules;
        let question = Question { profile_number, profile, context, pod, rules };
        let cluster = question.context.cluster;
        Ok(match self.index.decide(&question) {
            Answer::Unknown => None,
            Answer::Place { row, score, feasible, plans } => {
                let node = cluster.node(row).name().clone();
                // The index looks at all nodes, unless the nominated one will do.
                let is_nominated = rules.prefer_nominated_node && pod.nominated_node_name() == Some(&node);
                let evaluated = if is_nominated { 1 } else { cluster.node_count() };
                let outcome = Outcome::Place { row, node, score, evaluated, feasible, plans };
                Some(FromIndex { outcome, has_searched: !is_nominated })
            }
            Answer::Unfit(unfit) => {
                Some(FromIndex { outcome: unfit_outcome(&question, &unfit), has_searched: true })
            }
            Answer::Refused(refused) => {
                Some(FromIndex { outcome: refused_outcome(&question, refused), has_searched: false })
            }
        })
    }

    /// What the index would decide otherwise than the plugins do when they are asked about every node; none if nothing.
    ///
    /// [`Indexing::Checked`] does this with every decision. This is for whoever wants to know without a panic.
    pub fn check_index(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Result<Option<String>, UnknownProfile> {
        if self.cluster.snapshot().node_count() == 0 {
            return Ok(None);
        }
        match self.decide_by_index(pod, now, self.attempts)? {
            None => Ok(None),
            Some(FromIndex { outcome, .. }) => {
                Ok(outcome.difference(&self.decide_plainly(pod, now, self.attempts)?))
            }
        }
    }

    /// Everything that is said about a pod, as things are now. No decision comes of it.
    pub(crate) fn evaluate_now(
        &mut self,
        pod: &Arc<Pod>,
        now: Timestamp,
    ) -> Result<Evaluation, UnknownProfile> {
        let start = self.start;
        let evaluation = self.evaluate(pod, now, self.attempts, Thoroughness::FirstRejection);
        self.start = start;
        evaluation
    }

    /// Everything that was said when a decision was made.
    pub fn unfold(&mut self, decision: &Decision) -> Result<Evaluation, StaleDecision> {
        let current = self.cluster.snapshot().version();
        if current != decision.version || decision.attempt < self.first_attempt {
            return Err(StaleDecision { decided: decision.version, current });
        }
        let start = std::mem::replace(&mut self.start, decision.start);
        let evaluation = self
            .evaluate(&decision.pod, decision.now, decision.attempt, Thoroughness::EveryWord)
            .expect("the profile that decided is still there");
        self.start = start;
        Ok(evaluation)
    }

    /// Takes a pod to be on a node, before the API server has confirmed it.
    // A function of its own, so that `bench/instructions` finds it.
    #[inline(never)]
    pub fn assume(&mut self, pod: &Arc<Pod>, row: Row) -> Result<(), ClusterError> {
        self.cluster.bind_pod(pod, row)
    }

    fn evaluate(
        &mut self,
        pod: &Arc<Pod>,
        now: Timestamp,
        attempt: u64,
        thoroughness: Thoroughness,
    ) -> Result<Evaluation, UnknownProfile> {
        let (_, profile) = responsible(&self.profiles, pod)?;
        let context = self.options.context(self.cluster.snapshot(), &self.memories, now, attempt);
        Ok(evaluate(profile, context, pod, self.options.rules, thoroughness, &mut self.start))
    }
}

/// By what the plugins of profiles read where pods stand.
pub fn counted_pods<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> CountedPods {
    let reads = profiles.into_iter().filter_map(|profile| profile.reads.as_ref());
    reads.fold(CountedPods::default(), |counted, reads| counted.and(reads.pods.clone()))
}

/// The profile that decides for the pod, and its number.
fn responsible<'a>(profiles: &'a [Profile], pod: &Pod) -> Result<(usize, &'a Profile), UnknownProfile> {
    let scheduler_name = &*pod.spec.scheduler_name;
    let mut numbered = profiles.iter().enumerate();
    let found = numbered.find(|(_, profile)| profile.scheduler_name == scheduler_name);
    found.ok_or_else(|| UnknownProfile { pod: pod.key(), scheduler_name: scheduler_name.to_owned() })
}
