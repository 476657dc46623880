//! Why a request of a watch does not go on.

use std::time::Duration;

use supercargo_model::KindId;

use supercargo_client::RequestError;

/// Why a request of a watch does not go on. What comes next is decided by the session.
#[derive(Debug)]
pub(super) enum Stop {
    /// The receiver of the events is gone.
    Closed,
    /// The server has forgotten the revision up to which everything was told.
    Expired,
    /// The server does not put this list into a stream.
    NotStreamed,
    /// The server has forgotten the revision of which the pages of this list are.
    PagesExpired,
    /// Discovery says that the server does not serve the kind.
    Unserved,
    /// Anything else.
    Failed(Failure),
}

/// What went wrong with a request of a watch.
#[derive(Debug, Default)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// Whether the server gave this answer itself, and may give it for ever.
    pub(super) is_refused: bool,
    /// How long the server asks us to wait.
    pub(super) retry_after: Duration,
    /// Whether the reason may be that the server does not serve the kind, which only discovery knows.
    pub(super) may_be_unserved: bool,
    /// What to do about it, to be said after everything else; empty if nothing is known.
    pub(super) advice: String,
}

/// Which request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A list in a stream.
    StreamedList,
    /// The first page of a list, or a whole list.
    List,
    /// A further page of a list.
    NextPage,
    /// What has changed since a revision.
    Changes,
}

impl Stop {
    /// The connection broke, or carried something that cannot be read.
    pub(super) fn broken(reason: String) -> Self {
        Stop::Failed(Failure { reason, ..Failure::default() })
    }

    /// The server said so.
    pub(super) fn refused(reason: String) -> Self {
        Stop::Failed(Failure { reason, is_refused: true, ..Failure::default() })
    }
}

/// What an error means for a watch.
pub(super) fn stop_of(kind: KindId, asked: Asked, error: &RequestError) -> Stop {
    let code = error.code();
    match (code, asked) {
        (Some(410), Asked::NextPage) => return Stop::PagesExpired,
        (Some(410), _) => return Stop::Expired,
        (Some(400 | 422), Asked::StreamedList) => return Stop::NotStreamed,
        _ => {}
    }
    let mut advice = String::new();
    if code == Some(403) {
        let KindId { group, plural, .. } = kind;
        advice = format!(
            "; grant the scheduler the rule {{apiGroups: [{group:?}], resources: [{plural:?}], \
             verbs: [\"get\", \"list\", \"watch\"]}}"
        );
    }
    Stop::Failed(Failure {
        reason: error.to_string(),
        is_refused: code.is_some(),
        retry_after: error.retry_after(),
        // A user without any rights gets 403 for kinds that do not exist, too.
        may_be_unserved: matches!(code, Some(403 | 404)),
        advice,
    })
}
