//! Why there is no answer.

use std::fmt;

/// Why there is no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In a word.
    pub kind: FailureKind,
    /// In a sentence, for people.
    pub reason: String,
}

/// Why there is no answer, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// A file with a token, a certificate or a key cannot be used.
    Credentials,
    /// Nobody could be reached, or there is no secure connection to them.
    Unreachable,
    /// It took too long.
    TimedOut,
    /// The other side says no.
    Refused,
    /// The other side says that the answer is elsewhere.
    Redirected,
    /// The answer ended before its end.
    Cut,
    /// The answer is longer than the query allows.
    TooLong,
    /// The answer came, and is not what it should be.
    Unreadable,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, reason: impl Into<String>) -> Self {
        Failure { kind, reason: reason.into() }
    }
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [FailureKind; 8] = [
        FailureKind::Credentials,
        FailureKind::Unreachable,
        FailureKind::TimedOut,
        FailureKind::Refused,
        FailureKind::Redirected,
        FailureKind::Cut,
        FailureKind::TooLong,
        FailureKind::Unreadable,
    ];

    /// What it is called in metrics.
    pub fn label(self) -> &'static str {
        match self {
            FailureKind::Credentials => "credentials",
            FailureKind::Unreachable => "unreachable",
            FailureKind::TimedOut => "timeout",
            FailureKind::Refused => "refused",
            FailureKind::Redirected => "redirected",
            FailureKind::Cut => "cut",
            FailureKind::TooLong => "too long",
            FailureKind::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}
