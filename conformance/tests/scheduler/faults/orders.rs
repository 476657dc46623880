//! What is ordered, what can go wrong with it, and what the answer says then.

use std::collections::BTreeMap;

use supercargo_framework::{AskFailure, Conclusion, Effect, ExtenderAnswer, ExtenderQuestion};

use super::plan::Draw;
use super::server::Refusal;

/// What an order is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OrderKind {
    Bind,
    ExtenderBind,
    ExtenderFilter,
    PreBindWrite,
    Evict,
    LookUp,
    Status,
}

/// What goes wrong with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Nothing,
    Refused,
    /// It is carried out, and answered by an error.
    AppliedError,
    /// It is carried out, and no answer comes.
    AppliedSilence,
    /// It is not carried out, and answered by an error that does not say so.
    LostError,
    /// It is not carried out, and no answer comes.
    LostSilence,
    /// No answer comes; it is carried out when it has been given up.
    Late,
    /// It is carried out, and answered twice.
    Twice,
}

/// What was ordered, as far as checkers look at it.
#[derive(Clone, Debug)]
pub(super) enum Ordered {
    Bind {
        uid: String,
    },
    Evict {
        preemptor: String,
    },
    Scheduled {
        uid: String,
        node: String,
    },
    /// Anything else that writes.
    Write,
    Read,
}

impl Fault {
    pub(super) fn word(self) -> Option<&'static str> {
        Some(match self {
            Fault::Nothing => return None,
            Fault::Refused => "refused",
            Fault::AppliedError => "done, error",
            Fault::AppliedSilence => "done, no answer",
            Fault::LostError => "not done, error",
            Fault::LostSilence => "not done, no answer",
            Fault::Late => "done after given up",
            Fault::Twice => "answered twice",
        })
    }
}

pub(super) fn fault(kind: OrderKind, draw: &mut Draw) -> Fault {
    // Orders that matter more, or are rare, fail more often than others.
    let among = match kind {
        OrderKind::Evict | OrderKind::ExtenderBind | OrderKind::Status => 8,
        OrderKind::Bind | OrderKind::PreBindWrite => 10,
        OrderKind::ExtenderFilter | OrderKind::LookUp => 14,
    };
    match draw.below(among) {
        0 => Fault::Refused,
        1 => Fault::AppliedError,
        2 => Fault::AppliedSilence,
        3 => Fault::LostError,
        4 => Fault::LostSilence,
        5 => Fault::Late,
        6 => Fault::Twice,
        _ => Fault::Nothing,
    }
}

pub(super) fn conclusion(result: Result<(), Refusal>, fault: Fault) -> Conclusion {
    let error = || "something went wrong".to_owned();
    match (fault, result) {
        (Fault::Nothing | Fault::Twice, Ok(())) => Conclusion::Done,
        (Fault::Nothing | Fault::Twice, Err(Refusal::NotFound)) => Conclusion::Gone { error: error() },
        (Fault::Nothing | Fault::Twice, Err(Refusal::Conflict)) => Conclusion::Conflict { error: error() },
        (Fault::Refused, _) => Conclusion::not_done(error()),
        (Fault::AppliedError | Fault::LostError, _) => {
            Conclusion::Unknown { error: error(), is_answered: true }
        }
        (Fault::AppliedSilence | Fault::LostSilence | Fault::Late, _) => {
            Conclusion::Unknown { error: error(), is_answered: false }
        }
    }
}

pub(super) fn extender_answer(
    question: &ExtenderQuestion,
    result: Result<(), Refusal>,
    fault: Fault,
) -> Result<ExtenderAnswer, AskFailure> {
    let error = || "the extender failed".to_owned();
    match fault {
        Fault::Nothing | Fault::Twice if result.is_err() => Err(AskFailure::Answered(error())),
        Fault::Nothing | Fault::Twice => Ok(match question {
            ExtenderQuestion::Filter { nodes, .. } => ExtenderAnswer::Filtered {
                kept: nodes.iter().map(|node| (*node.name).into()).collect(),
                failed: BTreeMap::new(),
                unresolvable: BTreeMap::new(),
            },
            _ => ExtenderAnswer::Bound,
        }),
        Fault::Refused | Fault::AppliedError | Fault::LostError => Err(AskFailure::Answered(error())),
        Fault::AppliedSilence | Fault::LostSilence | Fault::Late => Err(AskFailure::Unanswered(error())),
    }
}

/// What an order is for, and the pod that it is about.
pub(super) fn about(effect: &Effect) -> (OrderKind, String, String) {
    let (kind, pod) = match effect {
        Effect::Bind { pod, .. } => (OrderKind::Bind, pod),
        Effect::Ask { question: ExtenderQuestion::Bind { pod, .. }, .. } => (OrderKind::ExtenderBind, pod),
        Effect::Ask { question: ExtenderQuestion::Filter { pod, .. }, .. } => {
            (OrderKind::ExtenderFilter, pod)
        }
        Effect::Evict { victim, .. } => (OrderKind::Evict, victim),
        Effect::LookUp { pod } => (OrderKind::LookUp, pod),
        Effect::UpdateStatus { pod, .. } => (OrderKind::Status, pod),
        Effect::Patch { key, .. } => return (OrderKind::PreBindWrite, key.name.to_string(), String::new()),
        other => panic!("nobody orders this and waits for it: {other:?}"),
    };
    (kind, pod.name.to_string(), pod.uid.to_string())
}

pub(super) fn ordered(effect: &Effect) -> Ordered {
    match effect {
        Effect::Bind { pod, .. } | Effect::Ask { question: ExtenderQuestion::Bind { pod, .. }, .. } => {
            Ordered::Bind { uid: pod.uid.to_string() }
        }
        Effect::Evict { preemptor, .. } => Ordered::Evict { preemptor: preemptor.uid.to_string() },
        Effect::Record(notice) if notice.reason == "Scheduled" => {
            let node = notice.note.rsplit(' ').next().unwrap_or_default().to_owned();
            Ordered::Scheduled { uid: notice.about.uid().to_string(), node }
        }
        Effect::LookUp { .. } => Ordered::Read,
        _ => Ordered::Write,
    }
}
