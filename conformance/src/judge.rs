//! Runs cases through our own engine.

use std::sync::Arc;

use supercargo_engine::{Engine, EngineOptions, Evaluation, Indexing, Rules, Seed, Thoroughness, evaluate};
use supercargo_framework::{Context, Fixes, Memories, Needs, Profile, Registry};
use supercargo_model::{Decoded, MetadataWords, Pod, PodWords, Timestamp};

use crate::case::{Case, CaseError};
use crate::trial::Trial;
use crate::verdict::{CaseVerdict, Verdict};

/// What a pod that does not say when it was created gets, plus a second for each pod before it.
const FIRST_CREATION: i64 = 1_800_000_000;
/// The time of all attempts, unless the case says another: after everything that happens in a case.
pub(crate) const NOW: i64 = 1_900_000_000;

/// Judges cases with the plugins of a registry.
#[derive(Debug)]
pub struct Judge<'a> {
    registry: &'a Registry,
    /// Whether pods are decided by the index as well: it must come to the same.
    checks_index: bool,
    /// The profile of the last configuration: cases that follow each other often share it.
    last_profile: Option<(Option<String>, Result<Profile, CaseError>)>,
}

impl<'a> Judge<'a> {
    /// A judge with these plugins.
    pub fn new(registry: &'a Registry) -> Self {
        Judge { registry, checks_index: false, last_profile: None }
    }

    /// The same, and what the engine's index decides otherwise is an error of the case.
    #[must_use]
    pub fn checking_index(self) -> Self {
        Judge { checks_index: true, ..self }
    }

    /// Judges one case. A case that cannot be judged gets its error as the verdict.
    pub fn judge(&mut self, case: &Case<'_>) -> CaseVerdict {
        match self.try_judge(case) {
            Ok(verdict) => verdict,
            Err(error) => {
                let (name, error) = (case.name.clone(), error.to_string());
                CaseVerdict { name, error, ..CaseVerdict::default() }
            }
        }
    }

    fn try_judge(&mut self, case: &Case<'_>) -> Result<CaseVerdict, CaseError> {
        let checks_index = self.checks_index;
        let profile = self.profile(case)?;
        if Trial::is_needed(profile) {
            return Trial::open(profile, checks_index, case)?.judge();
        }
        let mut court = Court::open(profile, checks_index, case)?;
        let verdicts: Result<Vec<Verdict>, CaseError> =
            court.pending.clone().iter().map(|pod| court.judge(pod)).collect();
        Ok(CaseVerdict { name: case.name.clone(), verdicts: Some(verdicts?), ..CaseVerdict::default() })
    }

    fn profile(&mut self, case: &Case<'_>) -> Result<&Profile, CaseError> {
        let config = case.config.map(|config| config.get().to_owned());
        if self.last_profile.as_ref().is_none_or(|(last, _)| *last != config) {
            let profile = read_profile(config.as_deref(), self.registry);
            self.last_profile = Some((config, profile));
        }
        let (_, profile) = self.last_profile.as_ref().expect("it was just read");
        profile.as_ref().map_err(Clone::clone)
    }
}

fn read_profile(config: Option<&str>, registry: &Registry) -> Result<Profile, CaseError> {
    let problems = |problems: supercargo_config::Problems| CaseError::Config(problems.to_string());
    let kube = match config {
        None => supercargo_config::KubeSchedulerConfiguration::default(),
        Some(text) => {
            let loaded = supercargo_config::load(text).map_err(problems)?;
            if !loaded.conversion.is_empty() {
                // kube-scheduler 1.36 reads no other version, so neither does a verdict.
                let reason = "only kubescheduler.config.k8s.io/v1 is read; see `supercargo config convert`";
                return Err(CaseError::Config(reason.to_owned()));
            }
            loaded.kube
        }
    };
    supercargo_config::build_profile(&kube, registry, 0).map_err(problems)
}

/// A case with Kubernetes' own plugins: its cluster, and the pods that wait for their verdicts. As the oracle has it, a pod that fits is
/// put on its node, and nobody is asked to reserve anything.
struct Court<'p> {
    profile: &'p Profile,
    /// Holds the cluster, and decides for those who do not need all that was said.
    engine: Engine,
    checks_index: bool,
    pending: Vec<Arc<Pod>>,
}

impl<'p> Court<'p> {
    fn open(profile: &'p Profile, checks_index: bool, case: &Case<'_>) -> Result<Self, CaseError> {
        let decoder = Needs::of([profile]).decoder();
        let options = EngineOptions {
            rules: Rules::CONFORMANCE,
            seed: Seed(0),
            fixes: Fixes::default(),
            indexing: Indexing::On,
        };
        let profiles = if checks_index { vec![profile.clone()] } else { Vec::new() };
        let engine = Engine::new(profiles, options);
        let mut court = Court { profile, engine, checks_index, pending: Vec::new() };
        for (index, object) in case.objects.iter().enumerate() {
            let decoded = decoder.decode(object.get()).map_err(|error| CaseError::Object { index, error })?;
            court.engine.cluster.add(decoded)?;
        }
        for (index, pod) in case.pods.iter().enumerate() {
            let decoded = decoder.decode(pod.get()).map_err(|error| CaseError::Pod { index, error })?;
            let Decoded::Pod(mut words) = decoded else { return Err(CaseError::NotAPod { index }) };
            complete(&mut words, index, FIRST_CREATION);
            court.pending.extend(court.engine.cluster.add(Decoded::Pod(words))?);
        }
        Ok(court)
    }

    fn judge(&mut self, pod: &Arc<Pod>) -> Result<Verdict, CaseError> {
        if self.checks_index {
            // A pod of another scheduler is judged all the same, but no profile is responsible for it.
            let difference = self.engine.check_index(pod, Timestamp::from_seconds(NOW)).unwrap_or_default();
            if let Some(difference) = difference {
                return Err(CaseError::Index { pod: pod.key(), difference });
            }
        }
        let evaluation = self.evaluate(pod);
        let snapshot = self.engine.cluster.snapshot();
        let verdict = Verdict::new(pod, &evaluation, snapshot);
        let chosen = evaluation.chosen.map(|row| snapshot.node(row).name().clone());
        for victim in evaluation.evicted() {
            self.engine.cluster.remove_pod(&victim.uid);
        }
        if let Some(node_name) = chosen {
            self.place(pod, node_name)?;
        }
        Ok(verdict)
    }

    fn evaluate(&mut self, pod: &Arc<Pod>) -> Evaluation {
        let memories = Memories::default();
        let context = Context {
            cluster: self.engine.cluster.snapshot(),
            now: Timestamp::from_seconds(NOW),
            memories: &memories,
            seed: 0,
            fixes: Fixes::default(),
        };
        evaluate(self.profile, context, pod, Rules::CONFORMANCE, Thoroughness::FirstRejection, &mut 0)
    }

    /// Puts a pod on the node that was chosen. Nominations stay as the case gives them, the pod's own as well.
    fn place(&mut self, pod: &Arc<Pod>, node_name: Arc<str>) -> Result<(), CaseError> {
        self.engine.cluster.add_pod(Arc::new(Pod { node_name: Some(node_name), ..(**pod).clone() }))?;
        if let Some(node_name) = pod.nominated_node_name() {
            self.engine.cluster.nominate(pod.clone(), node_name);
        }
        Ok(())
    }
}

/// Fills in what the API server would have.
pub(crate) fn complete(words: &mut PodWords, index: usize, first_creation: i64) {
    let metadata: &mut MetadataWords = words.metadata_mut();
    if metadata.uid.is_empty() {
        metadata.uid = format!("pending-{index}");
    }
    let created = Timestamp::from_seconds(first_creation + index as i64);
    metadata.creation_timestamp.get_or_insert(created);
}
