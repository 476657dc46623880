//! How many more pods of a kind fit, where, and what stops the next one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use supercargo_engine::{Evaluation, Thoroughness, evaluate};
use supercargo_framework::{Context, Fixes, Memories, Profile};
use supercargo_model::{Cluster, ClusterError, Pod, Row, Timestamp};

use crate::explanation::RULES;
use crate::obstacles::{Obstacle, Obstacles};

/// How many more pods of a kind fit.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The pod that was copied.
    pub pod: String,
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
    /// More than this are not placed.
    pub most: usize,
}

/// Fills the cluster with copies of a pod until no more fit, or as many as are asked for do, and takes them out again.
///
/// The answer is that of placing them one by one. Where the plugins that have something to say about the pod look at
/// nothing but the node itself, nodes do not depend on each other and are filled side by side.
pub fn capacity(
    profile: &Profile,
    cluster: &mut Cluster,
    pod: &Arc<Pod>,
    options: CapacityOptions,
) -> Result<Capacity, ClusterError> {
    let mut filling = Filling { profile, cluster, options, placed: Vec::new() };
    let result = filling.run(pod);
    let mut by_node: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for (uid, node) in std::mem::take(&mut filling.placed) {
        filling.cluster.remove_pod(&uid);
        *by_node.entry(node).or_default() += 1;
    }
    let limit = result?;
    let mut nodes: Vec<NodeCapacity> =
        by_node.into_iter().map(|(node, fits)| NodeCapacity { node: node.to_string(), fits }).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(node.fits));
    Ok(Capacity { pod: pod.key(), fits: nodes.iter().map(|node| node.fits).sum(), nodes, limit })
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
        loop {
            let evaluation = self.evaluate(pod, Thoroughness::FirstRejection);
            if let Some(error) = evaluation.error {
                return Ok(CapacityLimit::Failed { error });
            }
            if evaluation.feasible.is_empty() {
                let obstacles = Obstacles::new(&evaluation, self.cluster.snapshot(), Vec::new());
                return Ok(CapacityLimit::Full {
                    message: obstacles.message,
                    obstacles: obstacles.obstacles,
                });
            }
            let rows: Vec<Row> =
                if independent { evaluation.feasible } else { evaluation.chosen.into_iter().collect() };
            for row in rows {
                if self.placed.len() == self.options.most {
                    return Ok(CapacityLimit::Enough);
                }
                self.place(pod, row)?;
            }
        }
    }

    /// Whether a pod on one node changes nothing for the others: no plugin that has something to say looks further than
    /// the node.
    fn nodes_are_independent(&mut self, pod: &Arc<Pod>) -> bool {
        let evaluation = self.evaluate(pod, Thoroughness::EveryWord);
        let Some((_, words)) = evaluation.words.first() else { return false };
        let speaking = words.iter().filter(|word| !word.status.is_skip()).map(|word| word.plugin);
        { speaking }.all(|name| {
            let plugin = self.profile.plugins().iter().find(|plugin| plugin.name == name);
            plugin.is_some_and(|plugin| !plugin.reads.topology && !plugin.reads.memory)
        })
    }

    fn evaluate(&mut self, pod: &Arc<Pod>, thoroughness: Thoroughness) -> Evaluation {
        let memories = Memories::default();
        let context = Context {
            cluster: self.cluster.snapshot(),
            now: self.options.now,
            memories: &memories,
            seed: 0,
            fixes: self.options.fixes,
        };
        evaluate(self.profile, context, pod, RULES, thoroughness, &mut 0)
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
