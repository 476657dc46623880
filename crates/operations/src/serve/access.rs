//! Who asks, and whether he may: as kube-scheduler does it, by asking the API server.
//!
//! 1. Who shows a certificate signed by the client authority is who it says: its common name is the user, its
//!    organizations are the groups.
//! 2. Who shows a bearer token is who a TokenReview says. A token that is not good is refused, even for pages that everybody may
//!    read.
//! 3. Everybody else is `system:anonymous`.
//!
//! Then members of `system:masters` may do everything, some paths are for everybody, and the rest is up to a
//! SubjectAccessReview.
//!
//! Left out: names in headers set by a front proxy (`--requestheader-*`).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use tokio::time::{Instant, timeout};

use super::cache::Cache;

/// What everybody may read, if nothing else is said: the kubelet asks for these.
pub const ALWAYS_ALLOW_PATHS: [&str; 3] = ["/healthz", "/readyz", "/livez"];

/// Who may do everything, without a question.
const PRIVILEGED_GROUP: &str = "system:masters";
/// The group of everybody who said who he is.
const AUTHENTICATED_GROUP: &str = "system:authenticated";

/// How long the API server may take to answer.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The user's number, if there is one.
    pub uid: String,
    /// The groups the user belongs to.
    pub groups: Vec<String>,
    /// What else is known of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Nobody in particular.
    pub fn anonymous() -> Self {
        User {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..User::default()
        }
    }

    fn authenticated(mut self) -> Self {
        if !self.groups.iter().any(|group| group == AUTHENTICATED_GROUP) {
            self.groups.push(AUTHENTICATED_GROUP.to_owned());
        }
        self
    }
}

/// What the API server says about a token: whose it is, or that it is nobody's.
pub type TokenAnswer = Result<Option<User>, String>;

/// What the API server says about a right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is granted.
    pub allowed: bool,
    /// Why, if the API server says so.
    pub reason: String,
}

/// An answer that takes a while.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whoever knows about tokens and rights: the API server. An error means that there is no answer.
pub trait Reviewer: Send + Sync {
    /// Whose token it is.
    fn review_token<'a>(&'a self, token: &'a str) -> Answer<'a, TokenAnswer>;
    /// Whether a user may do this to a path.
    fn review_access<'a>(
        &'a self,
        user: &'a User,
        verb: &'a str,
        path: &'a str,
    ) -> Answer<'a, Result<Verdict, String>>;
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 401: we do not believe who asks.
    Unauthorized {
        /// What is said, beside that.
        detail: Option<String>,
    },
    /// 403: who asks may not.
    Forbidden {
        /// The whole text.
        message: String,
    },
    /// 500: nobody could say whether who asks may.
    Unknown {
        /// Why not.
        error: String,
    },
}

/// A request, as far as it matters who asks.
#[derive(Clone, Debug, Default)]
pub struct Question<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// Whom a verified client certificate names.
    pub certificate: Option<&'a User>,
}

/// A pattern of paths that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--authorization-always-allow-paths: only trailing * allowed in {0:?}")]
pub struct InvalidPath(String);

/// Who does what to which path.
type Right = (User, String, String);

/// Decides who may do what.
#[derive(Clone)]
pub struct Access {
    paths: Vec<String>,
    prefixes: Vec<String>,
    tokens: Option<Arc<dyn Reviewer>>,
    rights: Option<Arc<dyn Reviewer>>,
    known_tokens: Arc<Mutex<Cache<Vec<u8>, Option<User>>>>,
    known_rights: Arc<Mutex<Cache<Right, Verdict>>>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Access({:?}, {:?})", self.paths, self.prefixes)
    }
}

impl Access {
    /// Everybody may read these paths; one that ends in `*` stands for all that begin so. Nobody else may anything until
    /// there is somebody to ask.
    pub fn new<Path: AsRef<str>>(always_allow: &[Path]) -> Result<Self, InvalidPath> {
        let (mut paths, mut prefixes) = (Vec::new(), Vec::new());
        for path in always_allow {
            let path = path.as_ref();
            let path = path.strip_prefix('/').unwrap_or(path);
            match path.split_once('*') {
                None => paths.push(path.to_owned()),
                Some((prefix, "")) => prefixes.push(prefix.to_owned()),
                Some(_) => return Err(InvalidPath(path.to_owned())),
            }
        }
        Ok(Access {
            paths,
            prefixes,
            tokens: None,
            rights: None,
            known_tokens: Arc::new(Mutex::new(Cache::new())),
            known_rights: Arc::new(Mutex::new(Cache::new())),
        })
    }

    /// Whom to ask about tokens. Without, tokens count for nothing and everybody is anonymous.
    #[must_use]
    pub fn with_token_reviewer(mut self, reviewer: impl Reviewer + 'static) -> Self {
        self.tokens = Some(Arc::new(reviewer));
        self
    }

    /// Whom to ask about rights. Without, what is not always allowed is forbidden.
    #[must_use]
    pub fn with_access_reviewer(mut self, reviewer: impl Reviewer + 'static) -> Self {
        self.rights = Some(Arc::new(reviewer));
        self
    }

    /// Decides: who asks, or why he may not.
    pub async fn check(&self, question: &Question<'_>) -> Result<User, Refusal> {
        let user = self.authenticate(question).await?;
        self.authorize(question, &user).await?;
        Ok(user)
    }

    async fn authenticate(&self, question: &Question<'_>) -> Result<User, Refusal> {
        if let Some(user) = question.certificate {
            return Ok(user.clone().authenticated());
        }
        let token = question.authorization.and_then(bearer_token);
        let (Some(token), Some(reviewer)) = (token, &self.tokens) else { return Ok(User::anonymous()) };
        // Tokens are secrets: only their digests are kept.
        let key = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        let known = lock(&self.known_tokens).get(&key, Instant::now());
        let user = match known {
            Some(user) => user,
            None => {
                let answer = bounded(reviewer.review_token(token)).await;
                let user = answer.map_err(|error| Refusal::Unauthorized {
                    detail: Some(format!("the token could not be reviewed: {error}")),
                })?;
                lock(&self.known_tokens).put(key, user.clone(), Instant::now());
                user
            }
        };
        user.map(User::authenticated).ok_or(Refusal::Unauthorized { detail: None })
    }

    async fn authorize(&self, question: &Question<'_>, user: &User) -> Result<(), Refusal> {
        if user.groups.iter().any(|group| group == PRIVILEGED_GROUP) || self.always_allows(question.path) {
            return Ok(());
        }
        let verb = question.method.to_ascii_lowercase();
        let forbidden = |reason: &str| {
            let message = format!("User {:?} cannot {verb} path {:?}", user.name, question.path);
            // As upstream: nothing that a browser would take for HTML.
            let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let colon = if reason.is_empty() { "" } else { ": " };
            Refusal::Forbidden { message: format!("forbidden: {message}{colon}{reason}") }
        };
        let Some(reviewer) = &self.rights else { return Err(forbidden("")) };
        let key = (user.clone(), verb.clone(), question.path.to_owned());
        let known = lock(&self.known_rights).get(&key, Instant::now());
        let verdict = match known {
            Some(verdict) => verdict,
            None => {
                let answer = bounded(reviewer.review_access(user, &verb, question.path)).await;
                let verdict = answer.map_err(|error| Refusal::Unknown {
                    error: format!("the right to do so could not be reviewed: {error}"),
                })?;
                if question.path.len() <= KEPT_PATH_BYTES_MAX {
                    lock(&self.known_rights).put(key, verdict.clone(), Instant::now());
                }
                verdict
            }
        };
        if verdict.allowed { Ok(()) } else { Err(forbidden(&verdict.reason)) }
    }

    fn always_allows(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.paths.iter().any(|allowed| allowed == path)
            || self.prefixes.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }
}

/// What is said about a longer path is not kept, as upstream.
const KEPT_PATH_BYTES_MAX: usize = 10_000;

/// The token in an `Authorization` header.
fn bearer_token(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

async fn bounded<T>(answer: Answer<'_, Result<T, String>>) -> Result<T, String> {
    match timeout(REVIEW_TIMEOUT, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("the API server did not answer within {} s", REVIEW_TIMEOUT.as_secs())),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
