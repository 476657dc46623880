//! A case as it is written, one JSON object a line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use supercargo_model::{ClusterError, DecodeError, KindId};

/// A cluster, and the pods to be scheduled into it in order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// What load-watcher answers; without it, it answers 404.
    #[serde(borrow, default)]
    pub metrics: Option<&'a RawValue>,
    /// The HTTP status of load-watcher's answer, if it is not 200.
    #[serde(default)]
    pub metrics_status: Option<u16>,
    /// The time, in Unix seconds.
    #[serde(default)]
    pub now: Option<i64>,
    /// When plugins saw which assigned pod, in Unix seconds, by `namespace/name`; the others at the time of the case.
    #[serde(default)]
    pub arrivals: BTreeMap<String, i64>,
    /// Whether placed pods are bound before the next is tried. If not, their room stays reserved. They are if it does not say.
    #[serde(default)]
    pub bind: Option<bool>,
    /// Whether plugins that observe are woken before each pod.
    #[serde(default)]
    pub resync: bool,
    /// Whether only the order of the pods in the queue is asked.
    #[serde(default)]
    pub order_only: bool,
    /// Pod → another pod, whose time at Permit is over before the first is tried, if it waits there.
    #[serde(default)]
    pub expire_before: BTreeMap<String, String>,
    /// Whether the definitions of custom resources are not installed. Custom objects do not exist then.
    #[serde(default, rename = "noCRDs")]
    pub no_crds: bool,
}

impl Case<'_> {
    /// The family of the case, by its name: `coscheduling` of `coscheduling-1-5`.
    pub fn family(&self) -> &str {
        family_of(&self.name)
    }
}

/// The family of a case, by the case's name without the seed and the number at its end.
pub fn family_of(name: &str) -> &str {
    name.rsplitn(3, '-').nth(2).unwrap_or(name)
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
    /// A plugin does not start without the definition of a custom resource.
    #[error("plugin {plugin:?} needs {}/{} to be installed", kind.plural, kind.api_version())]
    NotInstalled {
        /// The plugin.
        plugin: &'static str,
        /// The kind.
        kind: KindId,
    },
    /// No profile tries the pod.
    #[error("pods[{index}] cannot be scheduled: {reason}")]
    NotTried {
        /// Which one.
        index: usize,
        /// Why.
        reason: String,
    },
    /// A pod cannot be put on its node.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}
