//! What plugins want done in the world, and how they hear of it.
//!
//! A step that must wait does not block: it returns what it wants done and what it waits for, and is resumed with
//! the news. So the same plugin runs in a live cluster and in virtual time.

use std::sync::Arc;

use serde_json::Value;
use supercargo_model::{KindId, ObjectKey, Pod, Timestamp};

use crate::events::{Change, ClusterEvent};
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
    },
    /// Tell people, as an event on the pod.
    Record {
        /// The pod that the event is about.
        pod: Arc<Pod>,
        /// A short reason in CamelCase.
        reason: &'static str,
        /// The text.
        note: String,
    },
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
        /// Changes in the cluster that it waits for, beside the outcome of its effects.
        events: Vec<ClusterEvent>,
        /// When it is resumed at the latest.
        deadline: Option<Timestamp>,
    },
}

/// What a waiting step is resumed with.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// All its effects were carried out.
    Succeeded,
    /// One of its effects failed.
    Failed {
        /// What went wrong.
        error: &'a str,
    },
    /// Something changed in the cluster.
    Changed(Change<'a>),
    /// The deadline has passed.
    TimedOut,
}

impl Step {
    /// Do one thing and go on when it is done.
    pub fn perform(effect: Effect) -> Self {
        Step::Wait { effects: vec![effect], events: Vec::new(), deadline: None }
    }

    /// What follows for a step that only waited for its effects.
    pub fn done_after(news: &News<'_>) -> Self {
        Step::Done(match news {
            News::Succeeded | News::Changed(_) => Status::success(),
            News::Failed { error } => Status::error((*error).to_owned()),
            News::TimedOut => Status::error("timed out"),
        })
    }
}
