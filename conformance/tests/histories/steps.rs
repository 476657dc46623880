//! What happens in a history, one thing at a time. A step says all that it does, so that others can be left out.

use std::fmt;

use serde_json::Value;
use supercargo_model::{KindId, ObjectKey};

/// Something that happens. One that cannot happen, since what it is about is not there, does nothing.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    PutNode {
        what: &'static str,
        node: Value,
    },
    RemoveNode {
        name: String,
    },
    /// A pod appears on a node, which need not exist.
    BindPod {
        pod: u32,
        template: usize,
        node: String,
    },
    ChangePod {
        pod: u32,
        change: PodChange,
    },
    RemovePod {
        pod: u32,
    },
    /// A pending pod is nominated to a node, which need not exist.
    Nominate {
        pod: u32,
        template: usize,
        node: String,
    },
    ClearNomination {
        pod: u32,
    },
    /// A pending pod is deleted.
    Withdraw {
        pod: u32,
    },
    PutObject {
        what: &'static str,
        object: Value,
    },
    RemoveObject {
        kind: KindId,
        key: ObjectKey,
    },
    /// What was assumed of volumes is forgotten.
    ForgetVolumes,
    Wait {
        seconds: i64,
    },
    Decide(Decide),
}

/// What happens to a pod on a node.
#[derive(Clone, Debug)]
pub(crate) enum PodChange {
    /// It is as it was, and runs.
    Confirm,
    Relabel(Value),
    Terminate {
        preempted: bool,
    },
    /// It asks for what this template asks for.
    Resize {
        template: usize,
    },
    /// It takes what this template asks for, whatever it asks for itself.
    Hold {
        template: usize,
    },
    /// It was on another node all along.
    Move {
        node: String,
    },
}

/// A pod is to be placed.
#[derive(Clone, Debug)]
pub(crate) struct Decide {
    pub(crate) pod: u32,
    pub(crate) template: usize,
    /// The pod is read by somebody else, and shares nothing with other pods.
    pub(crate) foreign: bool,
    /// The decision is also compared with one on a cluster built from nothing.
    pub(crate) afresh: bool,
    /// All that was said is asked for too.
    pub(crate) unfold: bool,
    pub(crate) then: Then,
}

/// What becomes of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing, this time.
    Nothing,
    /// The pod is taken to be on its node; or it is nominated and its victims stay for now.
    Assume,
    /// The pod is taken to be on its node, and its volumes to be taken; or it is nominated and its victims go.
    Finish,
}

impl Step {
    /// What kind of step it is.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Step::PutNode { what, .. } | Step::PutObject { what, .. } => what,
            Step::RemoveNode { .. } => "node removed",
            Step::BindPod { .. } => "pod bound by somebody else",
            Step::ChangePod { change, .. } => match change {
                PodChange::Confirm => "pod confirmed",
                PodChange::Relabel(_) => "pod relabelled",
                PodChange::Terminate { .. } => "pod terminating",
                PodChange::Resize { .. } => "pod resized",
                PodChange::Hold { .. } => "pod resize held",
                PodChange::Move { .. } => "pod moved",
            },
            Step::RemovePod { .. } => "pod removed",
            Step::Nominate { .. } => "pod nominated by somebody else",
            Step::ClearNomination { .. } => "nomination cleared",
            Step::Withdraw { .. } => "pending pod removed",
            Step::RemoveObject { kind, .. } => match kind.kind {
                "Namespace" => "namespace removed",
                "PersistentVolume" => "volume removed",
                "PersistentVolumeClaim" => "claim removed",
                _ => "other object removed",
            },
            Step::ForgetVolumes => "assumed volumes forgotten",
            Step::Wait { .. } => "time passed",
            Step::Decide(_) => "decided",
        }
    }

    /// The template that it uses, if it uses one.
    pub(crate) fn template(&self) -> Option<usize> {
        match self {
            Step::BindPod { template, .. }
            | Step::Nominate { template, .. }
            | Step::ChangePod {
                change: PodChange::Resize { template } | PodChange::Hold { template }, ..
            }
            | Step::Decide(Decide { template, .. }) => Some(*template),
            _ => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Step::PutNode { node: json, .. } | Step::PutObject { object: json, .. } => {
                write!(f, "{name}: {json}")
            }
            Step::RemoveNode { name: node } => write!(f, "{name}: {node}"),
            Step::BindPod { pod, template, node } | Step::Nominate { pod, template, node } => {
                write!(f, "{name}: p{pod} (template {template}) to {node}")
            }
            Step::ChangePod { pod, change } => write!(f, "{name}: p{pod} {change:?}"),
            Step::RemovePod { pod } | Step::ClearNomination { pod } | Step::Withdraw { pod } => {
                write!(f, "{name}: p{pod}")
            }
            Step::RemoveObject { kind, key } => {
                write!(f, "{name}: {} {}/{}", kind.kind, key.namespace, key.name)
            }
            Step::ForgetVolumes => f.write_str(name),
            Step::Wait { seconds } => write!(f, "{name}: {seconds}s"),
            Step::Decide(Decide { pod, template, foreign, afresh, unfold, then }) => write!(
                f,
                "decide: p{pod} (template {template}), then {then:?}{}{}{}",
                if *foreign { ", read by somebody else" } else { "" },
                if *afresh { ", compared with a fresh cluster" } else { "" },
                if *unfold { ", unfolded" } else { "" },
            ),
        }
    }
}
