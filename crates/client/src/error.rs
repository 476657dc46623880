//! Why requests fail.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Method, Response, StatusCode};
use serde::Deserialize;

/// How long we wait at most when the server asks us to.
const ASKED_WAIT_MAX: Duration = Duration::from_secs(60);
/// How much of an answer that nobody understands is repeated.
const ERROR_TEXT_CHARACTERS_MAX: usize = 200;

/// Why a request failed. The text is what people get to see.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    /// The server answered, and said no.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// The reason in CamelCase, such as `Conflict`; empty if the server gave none.
        reason: String,
        /// What it said.
        message: String,
        /// How long it asked us to wait; zero if it did not.
        retry_after: Duration,
    },
    /// There was no answer, or not all of it.
    #[error("{method} {path}: {reason}")]
    Broken {
        /// What was asked.
        method: Method,
        /// Where, with the address of the server if it is known.
        path: String,
        /// What went wrong.
        reason: String,
        /// Nobody listens there: the request was not carried out.
        is_connection_refused: bool,
    },
    /// The request was not sent: it would change something, and this replica does not lead, or no longer surely does.
    #[error("{method} {path}: not sent, because this replica does not hold the lease")]
    NotLeading {
        /// What would have been asked.
        method: Method,
        /// Where.
        path: String,
    },
    /// The request was not sent: there are no credentials to send it with.
    #[error("cannot log in to {server}: {reason}")]
    NotLoggedIn {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The answer did not come in time. Whether the request was carried out is not known.
    #[error("{method} {path}: no answer within {seconds} s", seconds = patience.as_secs())]
    TimedOut {
        /// What was asked.
        method: Method,
        /// Where.
        path: String,
        /// How long it was waited for.
        patience: Duration,
    },
}

/// What a server says with an error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusWords {
    message: String,
    reason: String,
}

impl RequestError {
    /// The HTTP status, if there was an answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            RequestError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The request was never sent: nobody listens there, this replica does not lead, or there are no credentials.
    pub fn is_not_sent(&self) -> bool {
        self.is_connection_refused()
            || matches!(self, RequestError::NotLeading { .. } | RequestError::NotLoggedIn { .. })
    }

    /// How long the server asked us to wait before we try again; zero if it did not.
    pub fn retry_after(&self) -> Duration {
        match self {
            RequestError::Refused { retry_after, .. } => *retry_after,
            _ => Duration::ZERO,
        }
    }

    /// Nobody listens at the server's address.
    pub fn is_connection_refused(&self) -> bool {
        matches!(self, RequestError::Broken { is_connection_refused: true, .. })
    }
}

/// How long the server asks us to wait before we try again.
pub(crate) fn asked_wait<B>(response: &Response<B>) -> Option<Duration> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(ASKED_WAIT_MAX))
}

/// What a server means that says no.
pub(crate) fn refusal(status: StatusCode, text: &[u8], retry_after: Duration) -> RequestError {
    let code = status.as_u16();
    match serde_json::from_slice(text) {
        Ok(StatusWords { message, reason }) if !message.is_empty() => {
            RequestError::Refused { code, reason, message, retry_after }
        }
        _ => {
            let text: String =
                String::from_utf8_lossy(text).chars().take(ERROR_TEXT_CHARACTERS_MAX).collect();
            let message = format!("the server answered {status}: {}", text.trim());
            RequestError::Refused { code, reason: String::new(), message, retry_after }
        }
    }
}
