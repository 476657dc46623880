//! A case as it is written, one JSON object a line.

use serde::Deserialize;
use serde_json::value::RawValue;
use supercargo_model::{ClusterError, DecodeError};

/// A cluster, and the pods to be scheduled into it in order.
#[derive(Debug, Deserialize)]
pub struct Case<'a> {
    /// What the case is called.
    pub name: String,
    /// A KubeSchedulerConfiguration, whose first profile decides; the default one if absent.
    #[serde(borrow, default)]
    pub config: Option<&'a RawValue>,
    /// The cluster. A pod without a node but with a nominated one is a nominated pod.
    #[serde(borrow, default)]
    pub objects: Vec<&'a RawValue>,
    /// The pods to be scheduled. One that fits is placed before the next is tried; one that does not is offered to
    /// preemption, its victims go, and it is left out.
    #[serde(borrow, default)]
    pub pods: Vec<&'a RawValue>,
}

/// Why a case cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// The configuration is not usable.
    #[error("config: {0}")]
    Config(String),
    /// An object of the cluster cannot be read.
    #[error("objects[{index}]: {error}")]
    Object {
        /// Which one.
        index: usize,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// A pod to be scheduled cannot be read.
    #[error("pods[{index}]: {error}")]
    Pod {
        /// Which one.
        index: usize,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// Something that is not a pod is to be scheduled.
    #[error("pods[{index}] is not a pod")]
    NotAPod {
        /// Which one.
        index: usize,
    },
    /// What the engine keeps leads it to another decision than the plugins come to.
    #[error("pod {pod}: the index decides otherwise: {difference}")]
    Index {
        /// The pod.
        pod: String,
        /// What is different.
        difference: String,
    },
    /// A pod cannot be put on its node.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}
