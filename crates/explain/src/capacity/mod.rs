//! How many more pods of a kind fit, where, and what stops the next one.

mod by_score;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use supercargo_engine::{Evaluation, Rules, Thoroughness, evaluate, feasible_among};
use supercargo_framework::{Context, Fixes, Memories, Profile};
use supercargo_model::{Cluster, ClusterError, Pod, Row, Timestamp};

use crate::explanation::RULES;
use crate::obstacles::{Obstacle, Obstacles};
use by_score::{Ranking, on_one_node};

pub use template::template;

/// How many more pods of a kind fit.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The pod that was copied.
    pub pod: String,
    /// Other pods for which the same holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// How many more fit.
    pub fits: usize,
    /// Where they go, most first.
    pub nodes: Vec<NodeCapacity>,
    /// Why there are not more.
    pub limit: CapacityLimit,
}

/// How many more fit on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeCapacity {
    /// The node.
    pub node: String,
    /// How many.
    pub fits: usize,
}

/// Why no more were placed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CapacityLimit {
    /// The next one fits nowhere.
    Full {
        /// What its event would say.
        message: String,
        /// What stands in its way.
        obstacles: Vec<Obstacle>,
    },
    /// Something broke.
    Failed {
        /// What.
        error: String,
    },
    /// As many as were asked for fit, and perhaps more.
    Enough,
}

/// How the cluster is filled.
#[derive(Clone, Copy, Debug)]
pub struct CapacityOptions {
    /// The time of all attempts.
    pub now: Timestamp,
    /// Which upstream mistakes are not repeated.
    pub fixes: Fixes,
    /// No more are wanted than this; as many as fit if none is given.
    pub most: Option<usize>,
}

/// Nobody wants to know beyond this.
const COPIES_MAX: usize = 1_000_000;

/// Fills the cluster with copies of a pod until no more fit, or as many as are asked for do, and takes them out again.
///
/// How many and where is what comes of placing copies of its [`template()`] one by one. Where the plugins that have
/// something to say about the pod look at nothing but the node itself, it does not matter for a full cluster in which order
/// nodes are filled, so that is done side by side; only if fewer are asked for, the scores decide.
pub fn capacity(
    profile: &Profile,
    cluster: &mut Cluster,
    pod: &Arc<Pod>,
    options: CapacityOptions,
) -> Result<Capacity, ClusterError> {
    let copied = template(cluster.snapshot(), pod);
    let mut filling = Filling { profile, cluster, options, placed: Vec::new() };
    let result = filling.run(&copied);
    let mut by_node: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for node in filling.clear() {
        *by_node.entry(node).or_default() += 1;
    }
    let limit = result?;
    let mut nodes: Vec<NodeCapacity> =
        by_node.into_iter().map(|(node, fits)| NodeCapacity { node: node.to_string(), fits }).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(node.fits));
    Ok(Capacity {
        pod: pod.key(),
        alike: Vec::new(),
        fits: nodes.iter().map(|node| node.fits).sum(),
        nodes,
        limit,
    })
}

struct Filling<'a> {
    profile: &'a Profile,
    cluster: &'a mut Cluster,
    options: CapacityOptions,
    /// The UID and the node of every copy.
    placed: Vec<(Arc<str>, Arc<str>)>,
}

impl Filling<'_> {
    fn run(&mut self, pod: &Arc<Pod>) -> Result<CapacityLimit, ClusterError> {
        let independent = self.nodes_are_independent(pod);
        if independent {
            if let Some(limit) = self.fill_side_by_side(pod)? {
                return Ok(limit);
            }
            self.clear();
        }
        self.fill_one_by_one(pod, independent)
    }

    /// Fills all nodes, in any order; none if that takes more copies than are asked for.
    fn fill_side_by_side(&mut self, pod: &Arc<Pod>) -> Result<Option<CapacityLimit>, ClusterError> {
        let memories = Memories::default();
        let mut rows = self.cluster.snapshot().rows().to_vec();
        loop {
            // A node that is full stays full.
            rows = feasible_among(self.profile, self.context(&memories), pod, &rows);
            if rows.is_empty() {
                let evaluation = self.evaluate(pod, Thoroughness::FirstRejection);
                return Ok(self.limit(&evaluation));
            }
            match self.options.most {
                Some(most) if self.placed.len() + rows.len() > most => return Ok(None),
                None if self.placed.len() + rows.len() > COPIES_MAX => {
                    return Ok(Some(CapacityLimit::Enough));
                }
                _ => {}
            }
            for row in &rows {
                self.place(pod, *row)?;
            }
        }
    }

    /// Puts each copy on the node that is best then.
    fn fill_one_by_one(&mut self, pod: &Arc<Pod>, independent: bool) -> Result<CapacityLimit, ClusterError> {
        let most = self.options.most.unwrap_or(COPIES_MAX);
        loop {
            let evaluation = self.evaluate(pod, Thoroughness::FirstRejection);
            if self.placed.len() == most && evaluation.chosen.is_some() {
                return Ok(CapacityLimit::Enough);
            }
            if let Some(limit) = self.limit(&evaluation) {
                return Ok(limit);
            }
            let ranking = if independent {
                Ranking::new(self.profile, self.cluster.snapshot(), &evaluation)
            } else {
                None
            };
            match (ranking, evaluation.chosen) {
                (Some(ranking), _) => self.fill_by_ranking(pod, ranking, most)?,
                (None, Some(row)) => self.place(pod, row)?,
                (None, None) => return Ok(CapacityLimit::Enough),
            }
        }
    }

    /// Puts copies on the best node, looking again at no other, as long as that does.
    fn fill_by_ranking(
        &mut self,
        pod: &Arc<Pod>,
        mut ranking: Ranking,
        most: usize,
    ) -> Result<(), ClusterError> {
        while self.placed.len() < most
            && let Some(row) = ranking.best()
        {
            self.place(pod, row)?;
            let profile = on_one_node(self.profile, self.cluster.snapshot().node(row).name());
            let rules = Rules { run_post_filter: false, ..RULES };
            let alone = self.evaluate_with(&profile, rules, pod, Thoroughness::FirstRejection);
            if !ranking.update(self.cluster.snapshot(), row, &alone) {
                break;
            }
        }
        Ok(())
    }

    /// Why the next copy cannot be placed, if it cannot.
    fn limit(&mut self, evaluation: &Evaluation) -> Option<CapacityLimit> {
        if let Some(error) = &evaluation.error {
            return Some(CapacityLimit::Failed { error: error.clone() });
        }
        if !evaluation.feasible.is_empty() {
            return None;
        }
        let Obstacles { message, obstacles, .. } =
            Obstacles::new(evaluation, self.cluster.snapshot(), Vec::new());
        Some(CapacityLimit::Full { message, obstacles })
    }

    /// Takes all copies out again; the nodes they were on.
    fn clear(&mut self) -> Vec<Arc<str>> {
        let placed = std::mem::take(&mut self.placed);
        for (uid, _) in &placed {
            self.cluster.remove_pod(uid);
        }
        placed.into_iter().map(|(_, node)| node).collect()
    }

    /// Whether a pod on one node changes nothing for the others: no plugin that has something to say looks further than
    /// the node.
    fn nodes_are_independent(&mut self, pod: &Arc<Pod>) -> bool {
        let evaluation = self.evaluate(pod, Thoroughness::EveryWord);
        let Some((_, words)) = evaluation.words.first().filter(|_| evaluation.error.is_none()) else {
            return false;
        };
        let speaking = words.iter().filter(|word| !word.status.is_skip()).map(|word| word.plugin);
        { speaking }.all(|name| {
            let plugin = self.profile.plugins().iter().find(|plugin| plugin.name == name);
            plugin.is_some_and(|plugin| !plugin.reads.topology && !plugin.reads.memory)
        })
    }

    fn evaluate(&mut self, pod: &Arc<Pod>, thoroughness: Thoroughness) -> Evaluation {
        self.evaluate_with(self.profile, RULES, pod, thoroughness)
    }

    fn evaluate_with(
        &mut self,
        profile: &Profile,
        rules: Rules,
        pod: &Arc<Pod>,
        thoroughness: Thoroughness,
    ) -> Evaluation {
        let memories = Memories::default();
        evaluate(profile, self.context(&memories), pod, rules, thoroughness, &mut 0)
    }

    fn context<'m>(&'m mut self, memories: &'m Memories) -> Context<'m> {
        let CapacityOptions { now, fixes, .. } = self.options;
        Context { cluster: self.cluster.snapshot(), now, memories, seed: 0, fixes }
    }

    fn place(&mut self, pod: &Arc<Pod>, row: Row) -> Result<(), ClusterError> {
        let node = self.cluster.snapshot().node(row).name().clone();
        let number = self.placed.len();
        let uid: Arc<str> = format!("copy-{number}-of-{}", pod.uid).into();
        let copy = Pod {
            name: format!("{}-copy-{number}", pod.name).into(),
            uid: uid.clone(),
            node_name: Some(node.clone()),
            ..(**pod).clone()
        };
        self.cluster.add_pod(Arc::new(copy))?;
        self.placed.push((uid, node));
        Ok(())
    }
}
