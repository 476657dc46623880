//! Why a request of a watch does not go on.

use std::time::Duration;

use supercargo_model::KindId;

use super::discovery::is_served;
use super::{NODES, PODS};
use supercargo_client::{ApiServer, RequestError};

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
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// Whether the server gave this answer itself, and may give it for ever.
    pub(super) is_refused: bool,
    /// How long the server asks us to wait.
    pub(super) retry_after: Duration,
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
        Stop::Failed(Failure { reason, is_refused: false, retry_after: Duration::ZERO })
    }

    /// The server said so.
    pub(super) fn refused(reason: String) -> Self {
        Stop::Failed(Failure { reason, is_refused: true, retry_after: Duration::ZERO })
    }
}

/// What an error means for a watch.
///
/// Only discovery can say that a kind is not served, and of pods and nodes not even that is believed: a server without them is
/// none, and taking them for empty would free all room, or forget all nodes, at once.
pub(super) async fn stop_of(server: &ApiServer, kind: KindId, asked: Asked, error: RequestError) -> Stop {
    let mut hint = String::new();
    match (error.code(), asked) {
        (Some(410), Asked::NextPage) => return Stop::PagesExpired,
        (Some(410), _) => return Stop::Expired,
        (Some(400 | 422), Asked::StreamedList) => return Stop::NotStreamed,
        // A user without any rights gets 403 for kinds that do not exist, too.
        (Some(code @ (403 | 404)), _) => {
            if kind != PODS && kind != NODES {
                match is_served(server, kind).await {
                    Ok(false) => return Stop::Unserved,
                    Ok(true) => {}
                    Err(error) => {
                        hint = format!("; discovery does not say whether the kind is served: {error}");
                    }
                }
            }
            if code == 403 {
                let KindId { group, plural, .. } = kind;
                hint += &format!(
                    "; grant the scheduler the rule {{apiGroups: [{group:?}], resources: [{plural:?}], \
                     verbs: [\"get\", \"list\", \"watch\"]}}"
                );
            }
        }
        _ => {}
    }
    Stop::Failed(Failure {
        reason: format!("{error}{hint}"),
        is_refused: error.code().is_some(),
        retry_after: error.retry_after(),
    })
}
