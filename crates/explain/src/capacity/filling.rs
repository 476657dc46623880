//! Placing copies of a pod until there is a reason to stop.

use std::sync::Arc;

use supercargo_engine::{
    Engine, EngineOptions, Evaluation, Indexing, Outcome, Rules, Seed, Thoroughness, evaluate, feasible_among,
};
use supercargo_framework::{Context, Memories, Profile};
use supercargo_model::{Cluster, ClusterError, Pod, Row};

use super::by_score::{Ranking, on_one_node};
use super::limits::Budget;
use super::{CapacityLimit, CapacityOptions, NodeCapacity};
use crate::explanation::RULES;
use crate::obstacles::Obstacles;

/// As pods are explained, but nobody is evicted for a copy.
const PLACING: Rules = Rules { run_post_filter: false, ..RULES };

pub(super) struct Filling<'a> {
    profile: &'a Profile,
    /// The cluster as it was.
    original: &'a mut Cluster,
    /// Has a copy of the cluster, with the copies of the pod.
    engine: Engine,
    pod: &'a Arc<Pod>,
    options: CapacityOptions,
    budget: Budget,
    placed: usize,
    /// How many of the copies are in each row.
    by_row: Vec<usize>,
    progress: &'a mut dyn FnMut(usize),
}

/// What came of one way to place copies.
enum Way {
    /// It led to the end.
    Ended(CapacityLimit),
    /// It does not do, or does no longer.
    Left,
}

impl<'a> Filling<'a> {
    pub(super) fn new(
        profile: &'a Profile,
        original: &'a mut Cluster,
        pod: &'a Arc<Pod>,
        options: CapacityOptions,
        budget: Budget,
        progress: &'a mut dyn FnMut(usize),
    ) -> Self {
        // The engine finds the profile of a pod by its name; here the profile is given.
        let mut named = profile.clone();
        named.scheduler_name = pod.spec.scheduler_name.to_string();
        let how = EngineOptions {
            rules: PLACING,
            seed: Seed::default(),
            fixes: options.fixes,
            indexing: Indexing::On,
        };
        let engine = Engine::new(vec![named], how);
        let mut filling = Filling {
            profile,
            original,
            engine,
            pod,
            options,
            budget,
            placed: 0,
            by_row: Vec::new(),
            progress,
        };
        filling.begin_anew();
        filling
    }

    /// Why it ended, and how many copies are on which nodes.
    pub(super) fn run(mut self) -> Result<(CapacityLimit, Vec<NodeCapacity>), ClusterError> {
        let limit = match self.fill_by_index()? {
            Way::Ended(limit) => limit,
            Way::Left => self.fill_plainly()?,
        };
        Ok((limit, self.into_nodes()))
    }

    /// How many copies are on which nodes.
    pub(super) fn into_nodes(mut self) -> Vec<NodeCapacity> {
        let cluster = self.engine.cluster.snapshot();
        let filled = (0u32..).zip(&self.by_row).filter(|(_, fits)| **fits > 0);
        let nodes = filled
            .map(|(row, fits)| NodeCapacity { node: cluster.node(Row(row)).name().to_string(), fits: *fits });
        nodes.collect()
    }

    /// Puts each copy where the engine says, as long as its index knows.
    fn fill_by_index(&mut self) -> Result<Way, ClusterError> {
        // What volumes may be together on a node is found out by going through its pods.
        let goes_through_pods = !self.pod.spec.volumes.is_empty();
        loop {
            let decision = self.engine.decide(self.pod, self.options.now);
            let outcome = decision.expect("the engine has the pod's profile").outcome;
            if self.engine.index_statistics().left > 0 {
                return Ok(Way::Left);
            }
            match outcome {
                Outcome::Place { .. } if self.is_enough() => return Ok(Way::Ended(self.stopped())),
                Outcome::Place { row, .. } => {
                    if goes_through_pods {
                        let pods = self.engine.cluster.snapshot().node(row).pods().len();
                        self.budget.look(pods);
                    }
                    self.place(row)?;
                }
                Outcome::Unschedulable { .. } | Outcome::Failed { .. } => {
                    let evaluation = self.evaluate(RULES, Thoroughness::FirstRejection);
                    return Ok(self.full(&evaluation).map_or(Way::Left, Way::Ended));
                }
            }
        }
    }

    /// Places copies by asking every plugin. Where those that have something to say about the pod look at nothing but the node
    /// itself, it does not matter for a full cluster in which order nodes are filled, so that is done side by side; only if
    /// fewer are counted, the scores decide.
    pub(super) fn fill_plainly(&mut self) -> Result<CapacityLimit, ClusterError> {
        let independent = self.nodes_are_independent();
        if independent {
            if let Some(limit) = self.fill_side_by_side()? {
                return Ok(limit);
            }
            self.begin_anew();
        }
        self.fill_one_by_one(independent)
    }

    /// Fills all nodes, in any order; none if that takes more copies than are counted. Where it takes too much work, as many
    /// as were placed do fit, though the scheduler might put that many elsewhere.
    fn fill_side_by_side(&mut self) -> Result<Option<CapacityLimit>, ClusterError> {
        let memories = Memories::default();
        let mut rows = self.engine.cluster.snapshot().rows().to_vec();
        loop {
            // A node that is full stays full.
            let (profile, pod) = (self.profile, self.pod);
            self.look_at(&rows);
            rows = feasible_among(profile, self.context(&memories), pod, &rows);
            if rows.is_empty() {
                let evaluation = self.evaluate(RULES, Thoroughness::FirstRejection);
                return Ok(self.full(&evaluation));
            }
            if self.placed + rows.len() > self.budget.copies {
                return Ok(None);
            }
            if self.budget.is_spent() {
                return Ok(Some(self.stopped()));
            }
            for row in &rows {
                self.place(*row)?;
            }
        }
    }

    /// Puts each copy on the node that is best then.
    fn fill_one_by_one(&mut self, independent: bool) -> Result<CapacityLimit, ClusterError> {
        loop {
            let rows = self.engine.cluster.snapshot().rows().to_vec();
            self.look_at(&rows);
            let evaluation = self.evaluate(RULES, Thoroughness::FirstRejection);
            if let Some(limit) = self.full(&evaluation) {
                return Ok(limit);
            }
            if self.is_enough() {
                return Ok(self.stopped());
            }
            let ranking = if independent {
                Ranking::new(self.profile, self.engine.cluster.snapshot(), &evaluation)
            } else {
                None
            };
            match (ranking, evaluation.chosen) {
                (Some(ranking), _) => self.fill_by_ranking(ranking)?,
                (None, Some(row)) => self.place(row)?,
                (None, None) => return Ok(CapacityLimit::Enough),
            }
        }
    }

    /// Puts copies on the best node, looking again at no other, as long as that does.
    fn fill_by_ranking(&mut self, mut ranking: Ranking) -> Result<(), ClusterError> {
        while !self.is_enough()
            && let Some(row) = ranking.best()
        {
            self.place(row)?;
            self.look_at(&[row]);
            let profile = on_one_node(self.profile, self.engine.cluster.snapshot().node(row).name());
            let alone = self.evaluate_with(&profile, PLACING, Thoroughness::FirstRejection);
            if !ranking.update(self.engine.cluster.snapshot(), row, &alone) {
                break;
            }
        }
        Ok(())
    }

    /// Whether no more are counted, though more may fit.
    fn is_enough(&self) -> bool {
        self.placed >= self.budget.copies || self.budget.is_spent()
    }

    /// Why no more are counted though more fit.
    fn stopped(&self) -> CapacityLimit {
        match self.budget.limit(self.placed) {
            None => CapacityLimit::Enough,
            Some(limit) => {
                let at = self.placed;
                CapacityLimit::Stopped {
                    at,
                    limit,
                    message: format!("counting stopped at the limit of {at}; {limit}"),
                }
            }
        }
    }

    /// Why the next copy cannot be placed, if it cannot.
    fn full(&mut self, evaluation: &Evaluation) -> Option<CapacityLimit> {
        if let Some(error) = &evaluation.error {
            return Some(CapacityLimit::Failed { error: error.clone() });
        }
        if !evaluation.feasible.is_empty() {
            return None;
        }
        let Obstacles { message, obstacles, .. } =
            Obstacles::new(evaluation, self.engine.cluster.snapshot(), Vec::new());
        Some(CapacityLimit::Full { message, obstacles })
    }

    /// Whether a pod on one node changes nothing for the others: no plugin that has something to say looks further than
    /// the node. What plugins remember stays as it is, because nothing is reserved for copies.
    fn nodes_are_independent(&mut self) -> bool {
        let evaluation = self.evaluate(RULES, Thoroughness::EveryWord);
        let Some((_, words)) = evaluation.words.first().filter(|_| evaluation.error.is_none()) else {
            return false;
        };
        let speaking = words.iter().filter(|word| !word.status.is_skip()).map(|word| word.plugin);
        { speaking }.all(|name| {
            let plugin = self.profile.plugins().iter().find(|plugin| plugin.name == name);
            plugin.is_some_and(|plugin| !plugin.reads.topology)
        })
    }

    fn look_at(&mut self, rows: &[Row]) {
        let cluster = self.engine.cluster.snapshot();
        for row in rows {
            self.budget.look(cluster.node(*row).pods().len());
        }
    }

    fn evaluate(&mut self, rules: Rules, thoroughness: Thoroughness) -> Evaluation {
        self.evaluate_with(self.profile, rules, thoroughness)
    }

    fn evaluate_with(&mut self, profile: &Profile, rules: Rules, thoroughness: Thoroughness) -> Evaluation {
        let (memories, pod) = (Memories::default(), self.pod);
        evaluate(profile, self.context(&memories), pod, rules, thoroughness, &mut 0)
    }

    fn context<'m>(&'m mut self, memories: &'m Memories) -> Context<'m> {
        let CapacityOptions { now, fixes, .. } = self.options;
        Context { cluster: self.engine.cluster.snapshot(), now, memories, seed: 0, fixes }
    }

    /// The cluster without copies of the pod.
    fn begin_anew(&mut self) {
        self.engine.cluster = self.original.copy_by_name();
        self.by_row = vec![0; self.engine.cluster.snapshot().row_count()];
        self.placed = 0;
    }

    fn place(&mut self, row: Row) -> Result<(), ClusterError> {
        let uid = format!("copy-{}-of-{}", self.placed, self.pod.uid).into();
        let node_name = Some(self.engine.cluster.snapshot().node(row).name().clone());
        self.engine.cluster.add_pod(Arc::new(Pod { uid, node_name, ..(**self.pod).clone() }))?;
        self.by_row[row.0 as usize] += 1;
        self.placed += 1;
        (self.progress)(self.placed);
        Ok(())
    }
}
