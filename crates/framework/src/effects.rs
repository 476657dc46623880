//! What plugins want done in the world, and how they hear of it.
//!
//! A step that must wait does not block: it returns what it wants done and what it waits for, and is resumed with
//! the news. So the same plugin runs in a live cluster and in virtual time.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use supercargo_model::{KindId, ObjectKey, Pod, Timestamp};

use crate::events::{Awaited, Change};
use crate::extender::ExtenderQuestion;
use crate::points::Nomination;
use crate::status::Status;

/// Something to be done outside the engine.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Bind a pod to a node.
    Bind {
        /// The pod.
        pod: Arc<Pod>,
        /// The node's name.
        node: Arc<str>,
    },
    /// Make an object.
    Create {
        /// Its kind.
        kind: KindId,
        /// Its namespace; empty for what belongs to the whole cluster.
        namespace: Box<str>,
        /// The object; `apiVersion` and `kind` may be left out.
        object: Value,
    },
    /// Change an object by a merge patch, so that fields we do not know stay as they are.
    Patch {
        /// The object's kind.
        kind: KindId,
        /// The object.
        key: ObjectKey,
        /// The subresource, such as `status`; none for the object itself.
        subresource: Option<&'static str>,
        /// The patch.
        patch: Value,
    },
    /// Delete an object.
    Delete {
        /// The object's kind.
        kind: KindId,
        /// The object.
        key: ObjectKey,
        /// The UID of the object that is meant: another object of the same name stays.
        uid: Box<str>,
    },
    /// Make room: say on a pod that it is evicted, then delete it. A pod that is gone already is no failure.
    Evict {
        /// The pod that has to go.
        victim: Arc<Pod>,
        /// The pod that needs the room.
        preemptor: Arc<Pod>,
    },
    /// Change what a pod says about its scheduling.
    UpdateStatus {
        /// The pod.
        pod: Arc<Pod>,
        /// The condition to set; none to leave all as they are.
        condition: Option<PodCondition>,
        /// The node that it is nominated to from now on.
        nomination: Nomination,
    },
    /// Ask an extender, by its place among those of the configuration.
    Ask {
        /// Its place.
        extender: usize,
        /// What to ask.
        question: ExtenderQuestion,
    },
    /// Read a pod from the API server itself, not from a cache: what became of it is not known.
    LookUp {
        /// The pod, as it was known last.
        pod: Arc<Pod>,
    },
    /// Tell people, as an event on a pod or another object.
    Record(Notice),
}

/// How an effect ended, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The effect was carried out.
    Done,
    /// The effect was carried out, and this is the object as the server has it now.
    DoneWith(Box<Value>),
    /// The server said no, and nothing has changed.
    Refused {
        /// What the server said.
        error: String,
        /// The code of its answer; none if it was not asked.
        code: Option<u16>,
    },
    /// The object that the effect is about does not exist any more, so nothing has changed.
    Gone {
        /// What the server said.
        error: String,
    },
    /// The object is in another state than the effect expects. An earlier try of the same effect may be the reason.
    Conflict {
        /// What the server said.
        error: String,
    },
    /// The effect may have been carried out, or not: there was no answer, or one that does not say.
    Unknown {
        /// What went wrong.
        error: String,
        /// The server did answer, and so is done with the request. Otherwise the effect may yet be carried out: there was no answer, or a
        /// gateway or a time-out gave one.
        is_answered: bool,
    },
}

/// A condition of a pod, such as `PodScheduled`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// Its type.
    pub kind: Cow<'static, str>,
    /// Whether it holds.
    pub holds: bool,
    /// Why, in CamelCase.
    pub reason: Cow<'static, str>,
    /// Why, in words for people.
    pub message: String,
    /// Since when it holds, or does not.
    pub since: Timestamp,
    /// The `metadata.generation` of the pod that it is about.
    pub observed_generation: i64,
}

/// An event to be told to people.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What it is about.
    pub about: Subject,
    /// The `schedulerName` of the profile that tells.
    pub reporter: Arc<str>,
    /// Whether something is wrong.
    pub is_warning: bool,
    /// A short reason in CamelCase.
    pub reason: Cow<'static, str>,
    /// What was being done, in CamelCase.
    pub action: Cow<'static, str>,
    /// The text.
    pub note: String,
    /// Another pod that has to do with it.
    pub related: Option<Arc<Pod>>,
}

/// What an event is about.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A pod.
    Pod(Arc<Pod>),
    /// An object of another kind.
    Object {
        /// Its kind.
        kind: KindId,
        /// Its name.
        key: ObjectKey,
        /// Its UID.
        uid: Arc<str>,
    },
}

impl Subject {
    /// Its kind.
    pub fn kind(&self) -> KindId {
        match self {
            Subject::Pod(_) => KindId::POD,
            Subject::Object { kind, .. } => *kind,
        }
    }

    /// Its namespace; empty for what belongs to the whole cluster.
    pub fn namespace(&self) -> &str {
        match self {
            Subject::Pod(pod) => &pod.namespace,
            Subject::Object { key, .. } => &key.namespace,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Subject::Pod(pod) => &pod.name,
            Subject::Object { key, .. } => &key.name,
        }
    }

    /// Its UID.
    pub fn uid(&self) -> &Arc<str> {
        match self {
            Subject::Pod(pod) => &pod.uid,
            Subject::Object { uid, .. } => uid,
        }
    }
}

/// How far a step has come.
#[derive(Clone, Debug)]
pub enum Step {
    /// It is over.
    Done(Status),
    /// It goes on with the next news.
    Wait {
        /// What is to be done meanwhile.
        effects: Vec<Effect>,
        /// Changes in the cluster that it waits for, beside the outcome of its effects. It hears of none until its effects are carried out.
        events: Vec<Awaited>,
        /// When it is resumed at the latest.
        deadline: Option<Timestamp>,
    },
}

/// What a waiting step is resumed with.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum News<'a> {
    /// All its effects were carried out.
    Succeeded {
        /// The objects that were made or changed, as the server has them now, in the order of its answers.
        objects: &'a [Value],
    },
    /// One of its effects failed.
    Failed {
        /// What went wrong.
        error: &'a str,
        /// The code of the server's answer, as far as it says what became of the effect.
        code: Option<u16>,
    },
    /// Something changed in the cluster.
    Changed(Change<'a>),
    /// The deadline has passed.
    TimedOut,
}

impl Effect {
    /// What is to be done, in a few words.
    pub fn words(&self) -> String {
        let named = |kind: &KindId, key: &ObjectKey| match &*key.namespace {
            "" => format!("{} {}", kind.plural, key.name),
            namespace => format!("{} {namespace}/{}", kind.plural, key.name),
        };
        match self {
            Effect::Bind { pod, node } => format!("bind pod {} to node {node}", pod.key()),
            Effect::Create { kind, namespace, .. } => {
                format!("create {} in namespace {namespace:?}", kind.plural)
            }
            Effect::Patch { kind, key, subresource: None, .. } => format!("patch {}", named(kind, key)),
            Effect::Patch { kind, key, subresource: Some(part), .. } => {
                format!("patch {part} of {}", named(kind, key))
            }
            Effect::Delete { kind, key, .. } => format!("delete {}", named(kind, key)),
            Effect::Evict { victim, .. } => format!("evict pod {}", victim.key()),
            Effect::UpdateStatus { pod, .. } => format!("change the status of pod {}", pod.key()),
            Effect::Ask { extender, .. } => format!("ask extender {extender}"),
            Effect::LookUp { pod } => format!("look up pod {}", pod.key()),
            Effect::Record(notice) => {
                format!("tell an event on {} {}", notice.about.kind().plural, notice.about.name())
            }
        }
    }
}

impl Conclusion {
    /// The API server was not asked, and nothing has changed.
    pub fn not_done(error: impl Into<String>) -> Self {
        Conclusion::Refused { error: error.into(), code: None }
    }

    /// Whether the effect was carried out.
    pub fn is_done(&self) -> bool {
        matches!(self, Conclusion::Done | Conclusion::DoneWith(_))
    }

    /// The object as the server has it now, where it was made or changed.
    pub fn object(&self) -> Option<&Value> {
        match self {
            Conclusion::DoneWith(object) => Some(object),
            _ => None,
        }
    }

    /// The code of the server's answer, as far as it says what became of the effect.
    pub fn code(&self) -> Option<u16> {
        match self {
            Conclusion::Refused { code, .. } => *code,
            Conclusion::Gone { .. } => Some(404),
            Conclusion::Conflict { .. } => Some(409),
            Conclusion::Done | Conclusion::DoneWith(_) | Conclusion::Unknown { .. } => None,
        }
    }

    /// Why the effect was not carried out, or may not have been.
    pub fn error(&self) -> Option<&str> {
        match self {
            Conclusion::Done | Conclusion::DoneWith(_) => None,
            Conclusion::Refused { error, .. }
            | Conclusion::Gone { error }
            | Conclusion::Conflict { error }
            | Conclusion::Unknown { error, .. } => Some(error),
        }
    }
}

impl Step {
    /// Do one thing and go on when it is done.
    pub fn perform(effect: Effect) -> Self {
        Step::Wait { effects: vec![effect], events: Vec::new(), deadline: None }
    }

    /// What follows for a step that only waited for its effects. A change in the cluster says nothing of them, so a step that waits for
    /// events looks at what changed itself.
    pub fn done_after(news: &News<'_>) -> Self {
        Step::Done(match news {
            News::Succeeded { .. } => Status::success(),
            News::Changed(_) => Status::error(
                "resumed by a change in the cluster, which the plugin does not look at: implement `resume`",
            ),
            News::Failed { error, .. } => Status::error((*error).to_owned()),
            News::TimedOut => Status::error("timed out"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_carried_out_is_a_success() {
        let change = Change::Pod { old: None, new: None };
        for (news, is_success) in [
            (News::Succeeded { objects: &[] }, true),
            (News::Changed(change), false),
            (News::Failed { error: "no", code: None }, false),
            (News::TimedOut, false),
        ] {
            let Step::Done(status) = Step::done_after(&news) else { panic!("it is over") };
            assert_eq!(status.is_success(), is_success, "{news:?}");
        }
    }
}
