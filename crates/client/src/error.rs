//! Why requests fail.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Method, Response, StatusCode};
use supercargo_api::watch::ErrorWords;
use supercargo_model::printable;

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

    /// Whether the request may yet be carried out, although nobody waits for it any more. An answer is no proof that it will not: a
    /// proxy that gives up waiting (502, 504), and a server whose storage does (500), say so while the write is still on its way.
    pub fn may_come_yet(&self) -> bool {
        match self {
            RequestError::Refused { code, .. } => !ends_request(*code),
            RequestError::Broken { .. } | RequestError::TimedOut { .. } => !self.is_not_sent(),
            RequestError::NotLeading { .. } | RequestError::NotLoggedIn { .. } => false,
        }
    }

    /// The API server itself says that there is no such object. Others answer 404 as well: a proxy whose server has gone, or one that
    /// does not know the path.
    pub fn is_not_found(&self) -> bool {
        matches!(self, RequestError::Refused { code: 404, reason, .. } if reason == "NotFound")
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

/// Whether an answer with this status is the end of its request: nothing comes of it later.
pub(crate) fn ends_request(code: u16) -> bool {
    !matches!(code, 408 | 500..)
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

/// What a server means that says no: in JSON or in protobuf if it is Kubernetes, in any other way if it is something between. Nothing of it moves
/// a cursor or begins a line where it is shown.
pub(crate) fn refusal(status: StatusCode, body: &[u8], retry_after: Duration) -> RequestError {
    let code = status.as_u16();
    let (reason, message) = match ErrorWords::in_body(body) {
        Some(ErrorWords { reason, message, .. }) => (printable(&reason).into_owned(), message),
        None => {
            let text = String::from_utf8_lossy(body);
            let text: String = text.trim().chars().take(ERROR_TEXT_CHARACTERS_MAX).collect();
            (String::new(), format!("the server answered {status}: {text}"))
        }
    };
    RequestError::Refused { code, reason, message: printable(&message).into_owned(), retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason and the message.
    fn refused(body: &[u8]) -> (String, String) {
        match refusal(StatusCode::FORBIDDEN, body, Duration::ZERO) {
            RequestError::Refused { reason, message, code: 403, .. } => (reason, message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_refusal_is_understood_in_either_notation() {
        let expected = ("Forbidden".to_owned(), "pods is forbidden: \"x\" cannot watch".to_owned());
        // A `Status` with its message, reason and code, wrapped up as servers do it.
        let mut body = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x3e".to_vec();
        body.extend(b"\x0a\x00\x12\x07Failure\x1a\x23pods is forbidden: \"x\" cannot watch\x22\x09Forbidden");
        body.extend(b"\x30\x93\x03\x1a\x00\x22\x00");
        assert_eq!(refused(&body), expected);
        let json = br#"{"message":"pods is forbidden: \"x\" cannot watch","reason":"Forbidden","code":403}"#;
        assert_eq!(refused(json), expected);
    }

    #[test]
    fn whatever_a_server_says_is_harmless_to_look_at() {
        let unknown = "the server answered 403 Forbidden: ";
        for (body, expected) in [
            (&b"  no\n"[..], format!("{unknown}no")),
            (b"", unknown.to_owned()),
            (b"one\ntwo", format!("{unknown}one\\ntwo")),
            (b"\x1b[2J\xff", format!("{unknown}\\u001b[2J\u{fffd}")),
            (b"k8s\0\x0a\xff", format!("{unknown}k8s\\u0000\\n\u{fffd}")),
            (br#"{"message":"a\n\u001b[31mb"}"#, "a\\n\\u001b[31mb".to_owned()),
        ] {
            let (_, message) = refused(body);
            assert_eq!(message, expected, "{body:02x?}");
            assert!(!message.contains(char::is_control));
        }
        assert_eq!(refused(&[0; 1_000]).1, format!("{unknown}{}", "\\u0000".repeat(200)));
    }
}
