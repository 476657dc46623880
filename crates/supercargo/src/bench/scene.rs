//! A workload on a fresh cluster, and the steps it takes.

use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use supercargo_conformance::samples::Spent;
use supercargo_engine::{Decision, Engine, EngineOptions, Indexing, Outcome, Rules, Seed};
use supercargo_framework::{Fixes, Needs, Nomination, Profile};
use supercargo_model::pod::PodStatus;
use supercargo_model::{Decoded, NodeWords, Object, Pod, Row, Timestamp};

use super::nodes::NodeMaker;
use super::pods::{INIT_NAMESPACE, MEASURED_NAMESPACE, PodMaker};
use super::workloads::{Course, Init, Nodes, Sizes, Workload};

/// The time of all decisions.
pub(super) const NOW: Timestamp = Timestamp::from_nanoseconds(1_800_000_000_000_000_000);

/// The namespace whose budget is spent, where a plugin remembers that.
const SPENT_BY: &str = "another";

/// How the measured engine decides.
pub(super) fn engine_options() -> EngineOptions {
    EngineOptions { rules: Rules::LIVE, seed: Seed(42), fixes: Fixes::default(), indexing: Indexing::On }
}

/// A workload at one size.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) workload: &'static Workload,
    /// The profile that decides, with what the workload adds to it.
    pub(super) profile: Profile,
    pub(super) nodes: usize,
    /// How many pods are there before anything is measured.
    pub(super) init: usize,
    /// How many pods are measured.
    pub(super) pods: usize,
    maker: NodeMaker,
    objects: Vec<Object>,
}

/// A fresh cluster, and the pods that are about to come. Everything is read and parsed.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) engine: Engine,
    course: Course,
    /// The pods that are decided for, in order.
    pods: Vec<Arc<Pod>>,
    /// How many of them come before anything is measured.
    pub(super) unmeasured: usize,
    /// What nodes become, where they change between decisions.
    changes: Vec<NodeWords>,
    /// What somebody outside says about a node the so-manieth time.
    fact: fn(usize, usize) -> Object,
    nodes: usize,
}

impl Plan {
    /// `init` and `pods` replace the workload's own numbers.
    pub(super) fn new(
        workload: &'static Workload,
        profile: &Profile,
        nodes: usize,
        init: Option<usize>,
        pods: Option<usize>,
    ) -> anyhow::Result<Self> {
        let pods = pods.unwrap_or(workload.pods);
        let init = match workload.init {
            Init::Decided(count, _) => init.unwrap_or(count),
            Init::OnEveryNode(count, _) => count * nodes,
        };
        let mut profile = profile.clone();
        (workload.adds)(&mut profile);
        let decoder = Needs::of([&profile]).decoder();
        let decode = |object| match decoder.decode(&format!("{object}")) {
            Ok(Decoded::Object(object)) => Ok(object),
            other => Err(anyhow!("an object of workload {} was read as {other:?}", workload.name)),
        };
        let sizes = Sizes { nodes, init, pods };
        let objects = (workload.objects)(sizes).iter().map(decode).collect::<anyhow::Result<_>>()?;
        Ok(Plan { workload, profile, nodes, init, pods, maker: NodeMaker::new(workload.nodes), objects })
    }

    /// How many decisions are made before those that are measured.
    pub(super) fn unmeasured(&self) -> usize {
        match self.workload.init {
            Init::Decided(..) => self.init,
            Init::OnEveryNode(..) => 0,
        }
    }

    /// Whether the pods that are measured are of a kind that has not been seen before.
    pub(super) fn starts_cold(&self) -> bool {
        match self.workload.init {
            Init::Decided(_, kind) => self.init == 0 || kind.name != self.workload.pod.name,
            Init::OnEveryNode(..) => true,
        }
    }

    /// A fresh cluster.
    pub(super) fn scene(&self) -> anyhow::Result<Scene> {
        let mut engine = Engine::new(vec![self.profile.clone()], engine_options());
        for number in 0..self.nodes {
            engine.cluster.put_node(&self.maker.node(number));
        }
        for object in &self.objects {
            engine.cluster.put_object(object.clone());
        }
        if let Course::Load { .. } = self.workload.course {
            for number in 0..self.nodes {
                engine.cluster.put_object((self.workload.fact)(number, 0));
            }
        }
        let mut pods = Vec::with_capacity(self.unmeasured() + self.pods);
        match self.workload.init {
            Init::Decided(_, kind) => {
                let mut maker = PodMaker::new(kind, INIT_NAMESPACE);
                pods.extend((0..self.init).map(|number| maker.pod(number, engine.cluster.interner())));
            }
            Init::OnEveryNode(count, kind) => {
                let mut maker = PodMaker::new(kind, INIT_NAMESPACE);
                for number in 0..self.init {
                    let pod = maker.pod(number, engine.cluster.interner());
                    let node = self.maker.node(number / count);
                    let row = engine.cluster.snapshot().row_of(node.name()).context("the node is there")?;
                    engine.assume(&pod, row)?;
                }
            }
        }
        let mut maker = PodMaker::new(self.workload.pod, MEASURED_NAMESPACE);
        pods.extend((0..self.pods).map(|number| maker.pod(number, engine.cluster.interner())));
        let changes = match self.workload.course {
            Course::Churn => (0..self.pods)
                .map(|number| self.maker.changed_node(number * 31 % self.nodes, number))
                .collect(),
            _ => Vec::new(),
        };
        // Nodes are put in order when somebody looks; that is not part of a decision.
        engine.cluster.snapshot();
        let (course, unmeasured) = (self.workload.course, self.unmeasured());
        Ok(Scene { engine, course, pods, unmeasured, changes, fact: self.workload.fact, nodes: self.nodes })
    }
}

impl Scene {
    /// How many pods there are to decide for.
    pub(super) fn steps(&self) -> usize {
        self.pods.len()
    }

    /// The pod of a step.
    pub(super) fn pod(&self, step: usize) -> &Pod {
        &self.pods[step]
    }

    /// Decides for the next pod, and does what follows from it. `decide` asks the engine.
    #[inline]
    pub(super) fn step(
        &mut self,
        step: usize,
        mut decide: impl FnMut(&mut Engine, &Arc<Pod>) -> anyhow::Result<Decision>,
    ) -> anyhow::Result<Option<Row>> {
        let (engine, pod) = (&mut self.engine, &self.pods[step]);
        let course = if step < self.unmeasured { Course::Place } else { self.course };
        match (decide(engine, pod)?.outcome, course) {
            (Outcome::Place { row, .. }, Course::Place | Course::Preempt) => {
                engine.assume(pod, row)?;
                Ok(Some(row))
            }
            (Outcome::Place { row, .. }, Course::Churn) => {
                engine.assume(pod, row)?;
                let number = step - self.unmeasured;
                engine.cluster.put_node(&self.changes[number]);
                engine.cluster.remove_pod(&self.pods[number].uid);
                Ok(Some(row))
            }
            (Outcome::Place { row, .. }, Course::Load { every, nodes }) => {
                engine.assume(pod, row)?;
                let number = step - self.unmeasured;
                if number.is_multiple_of(every) {
                    let round = number / every + 1;
                    let changed = match nodes {
                        Nodes::All => 0..self.nodes,
                        Nodes::One => (round * 31 % self.nodes)..(round * 31 % self.nodes + 1),
                    };
                    for node in changed {
                        engine.cluster.put_object((self.fact)(node, round));
                    }
                }
                Ok(Some(row))
            }
            (Outcome::Place { row, .. }, Course::Remember) => {
                engine.assume(pod, row)?;
                let spent = engine.memories().get_mut::<Spent>();
                *spent.0.entry(SPENT_BY.into()).or_default() += 1;
                Ok(Some(row))
            }
            (Outcome::Unschedulable { .. }, Course::Reject) => Ok(None),
            (Outcome::Unschedulable { nomination: Nomination::Node(node), victims, .. }, Course::Preempt) => {
                for victim in &victims {
                    engine.cluster.remove_pod(&victim.uid);
                }
                let status = PodStatus { nominated_node_name: Some(node.clone()), ..PodStatus::default() };
                let nominated = Arc::new(Pod { status: Some(Box::new(status)), ..(**pod).clone() });
                engine.cluster.nominate(nominated.clone(), &node);
                match decide(engine, &nominated)?.outcome {
                    Outcome::Place { row, .. } => {
                        engine.assume(&nominated, row)?;
                        Ok(Some(row))
                    }
                    outcome => bail!(unexpected(pod, &outcome)),
                }
            }
            (outcome, _) => bail!(unexpected(pod, &outcome)),
        }
    }
}

/// What to say of a decision that the workload does not go on from.
#[cold]
fn unexpected(pod: &Pod, outcome: &Outcome) -> String {
    let pod = pod.key();
    match outcome {
        Outcome::Place { node, .. } => format!("pod {pod} was not meant to fit anywhere, but goes to {node}"),
        Outcome::Unschedulable { message, .. } => {
            format!(
                "pod {pod} has no place: {message}; take more --nodes, or fewer pods with --init and --pods"
            )
        }
        Outcome::Failed { error } => format!("pod {pod}: {error}"),
    }
}
