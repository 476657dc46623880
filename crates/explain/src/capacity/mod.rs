//! How many more pods of a kind fit, where, and what stops the next one.

mod by_score;
mod filling;
mod limits;
mod template;

use std::cmp::Reverse;
use std::sync::Arc;

use serde::Serialize;
use supercargo_framework::{Fixes, Profile};
use supercargo_model::{Cluster, ClusterError, Pod, Timestamp};

use crate::obstacles::Obstacle;
use filling::Filling;
use limits::Budget;

pub use limits::{COPIES_DEFAULT_MAX, COPIES_MAX, CountingLimit};
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
    /// More fit, but they were not counted.
    Stopped {
        /// How many were.
        at: usize,
        /// The limit that was reached.
        limit: CountingLimit,
        /// The same in words.
        message: String,
    },
}

/// How the cluster is filled.
#[derive(Clone, Copy, Debug)]
pub struct CapacityOptions {
    /// The time of all attempts.
    pub now: Timestamp,
    /// Which upstream mistakes are not repeated.
    pub fixes: Fixes,
    /// No more are wanted than this; if none is given, as many as fit, within the limits of counting.
    pub most: Option<usize>,
}

/// Fills a copy of the cluster with copies of a pod until no more fit, as many as are asked for do, or a limit of counting is
/// reached. `progress` is told again and again how many were placed so far.
///
/// How many and where is what comes of placing copies of its [`template()`] one by one, each on the node that is best then.
/// An [`supercargo_engine::Engine`] decides by its index, so that a copy costs what it changes. Pods that the index has no
/// answer for are placed the slow way; see [`CountingLimit::Work`].
pub fn capacity(
    profile: &Profile,
    cluster: &mut Cluster,
    pod: &Arc<Pod>,
    options: CapacityOptions,
    progress: &mut dyn FnMut(usize),
) -> Result<Capacity, ClusterError> {
    let copied = template(cluster.snapshot(), pod);
    let budget = Budget::new(options.most);
    let (limit, mut nodes) = Filling::new(profile, cluster, &copied, options, budget, progress).run()?;
    nodes.sort_by(|a, b| (Reverse(a.fits), &a.node).cmp(&(Reverse(b.fits), &b.node)));
    Ok(Capacity {
        pod: pod.key(),
        alike: Vec::new(),
        fits: nodes.iter().map(|node| node.fits).sum(),
        nodes,
        limit,
    })
}

#[cfg(test)]
mod tests;
