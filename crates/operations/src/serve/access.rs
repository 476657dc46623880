//! Who asks, and whether he may: as kube-scheduler does it, by asking the API server.
//!
//! 1. Who shows a certificate signed by the client authority is who it says: its common name is the user, its
//!    organizations are the groups. That is verified for each request, as upstream does: a connection may outlive its certificate.
//! 2. Who shows a bearer token is who a TokenReview says. A token that is not good is refused, even for pages that everybody may
//!    read.
//! 3. Everybody else is `system:anonymous`.
//!
//! Then members of `system:masters` may do everything, some paths are for everybody, and the rest is up to a
//! SubjectAccessReview.
//!
//! Answers are kept for some seconds, and so many reviews are under way at once (`gate.rs`).
//!
//! Left out: names in headers set by a front proxy (`--requestheader-*`).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use tokio::time::{Instant, timeout};

use super::cache::{Cache, GRANTED_ENTRIES_MAX, REFUSED_ENTRIES_MAX};
use super::gate::{ANONYMOUS_REVIEWS_MAX, Busy, Gate, REVIEWS_MAX};

/// What everybody may read, if nothing else is said: the kubelet asks for these.
pub const ALWAYS_ALLOW_PATHS: [&str; 3] = ["/healthz", "/readyz", "/livez"];

/// Who may do everything, without a question.
const PRIVILEGED_GROUP: &str = "system:masters";
/// The group of everybody who said who he is.
const AUTHENTICATED_GROUP: &str = "system:authenticated";
/// The group of everybody who did not.
const UNAUTHENTICATED_GROUP: &str = "system:unauthenticated";

/// How long the API server may take to answer.
pub(super) const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

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
            groups: vec![UNAUTHENTICATED_GROUP.to_owned()],
            ..User::default()
        }
    }

    /// Whether nobody knows who it is.
    pub fn is_anonymous(&self) -> bool {
        self.groups.iter().any(|group| group == UNAUTHENTICATED_GROUP)
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
    /// 429: too many others are asking.
    Busy {
        /// What was too much.
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
    /// What the client's certificate says.
    pub certificate: ClientCertificate<'a>,
}

/// What a client's certificate says about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificate<'a> {
    /// There is none, or one that names nobody.
    #[default]
    None,
    /// It is good, and names this user.
    Names(&'a User),
    /// It was good when the connection was made and is not any more; this is why.
    Refused(&'a str),
}

/// A request that is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Who asks.
    pub user: User,
    /// Why it is granted.
    pub because: Because,
}

/// Why a request is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// Everybody may: `--authorization-always-allow-paths`.
    Everybody,
    /// The user may: a member of `system:masters`, or the API server says so.
    User,
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
    kept: Arc<Mutex<Kept>>,
    gates: Arc<Gates>,
}

/// Answers of the API server.
struct Kept {
    /// Users, by the digests of their tokens.
    users: Cache<Vec<u8>, User>,
    /// The digests of tokens that are nobody's.
    strangers: Cache<Vec<u8>, ()>,
    allowed: Cache<Right, Verdict>,
    denied: Cache<Right, Verdict>,
}

/// How many reviews are under way at once.
struct Gates {
    tokens: Gate,
    rights: Gate,
    anonymous_rights: Gate,
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
            kept: Arc::new(Mutex::new(Kept {
                users: Cache::new(GRANTED_ENTRIES_MAX),
                strangers: Cache::new(REFUSED_ENTRIES_MAX),
                allowed: Cache::new(GRANTED_ENTRIES_MAX),
                denied: Cache::new(REFUSED_ENTRIES_MAX),
            })),
            gates: Arc::new(Gates {
                tokens: Gate::new(REVIEWS_MAX),
                rights: Gate::new(REVIEWS_MAX),
                anonymous_rights: Gate::new(ANONYMOUS_REVIEWS_MAX),
            }),
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
    pub async fn check(&self, question: &Question<'_>) -> Result<Granted, Refusal> {
        let user = self.authenticate(question).await?;
        let because = if self.always_allows(question.path) {
            Because::Everybody
        } else {
            self.authorize(question.method, question.path, &user).await?;
            Because::User
        };
        Ok(Granted { user, because })
    }

    /// Whether a user whose request was granted may also know what the page does not tell everybody: the user is known, and may read the
    /// page even if not everybody may. If that cannot be found out, the user may not.
    pub(super) async fn may_know(&self, method: &str, path: &str, granted: &Granted) -> bool {
        let Granted { user, because } = granted;
        if user.is_anonymous() {
            return false;
        }
        match because {
            Because::User => true,
            Because::Everybody => self.authorize(method, path, user).await.is_ok(),
        }
    }

    async fn authenticate(&self, question: &Question<'_>) -> Result<User, Refusal> {
        if let ClientCertificate::Names(user) = question.certificate {
            return Ok(user.clone().authenticated());
        }
        let token = question.authorization.and_then(bearer_token);
        let (Some(token), Some(reviewer)) = (token, &self.tokens) else {
            return match question.certificate {
                // As upstream: who showed a certificate does not become anonymous when it expires.
                ClientCertificate::Refused(reason) => {
                    Err(Refusal::Unauthorized { detail: Some(reason.to_owned()) })
                }
                _ => Ok(User::anonymous()),
            };
        };
        // Tokens are secrets: only their digests are kept.
        let key = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        let now = Instant::now();
        let kept = {
            let kept = self.kept();
            let stranger = || kept.strangers.get(&key, now).map(|()| None);
            kept.users.get(&key, now).map(Some).or_else(stranger)
        };
        let user = match kept {
            Some(user) => user,
            None => {
                let _turn = self.gates.tokens.pass().await.map_err(|busy| busy.refusal("tokens"))?;
                let answer = bounded(reviewer.review_token(token)).await;
                let user = answer.map_err(|error| Refusal::Unauthorized {
                    detail: Some(format!("the token could not be reviewed: {error}")),
                })?;
                let mut kept = self.kept();
                match &user {
                    Some(user) => kept.users.put(key, user.clone(), Instant::now()),
                    None => kept.strangers.put(key, (), Instant::now()),
                }
                user
            }
        };
        user.map(User::authenticated).ok_or(Refusal::Unauthorized { detail: None })
    }

    /// Whether a user may do this, everybody's rights left aside.
    async fn authorize(&self, method: &str, path: &str, user: &User) -> Result<(), Refusal> {
        if user.groups.iter().any(|group| group == PRIVILEGED_GROUP) {
            return Ok(());
        }
        let verb = method.to_ascii_lowercase();
        let forbidden = |reason: &str| {
            let message = format!("User {:?} cannot {verb} path {path:?}", user.name);
            // As upstream: nothing that a browser would take for HTML.
            let message = message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let colon = if reason.is_empty() { "" } else { ": " };
            Refusal::Forbidden { message: format!("forbidden: {message}{colon}{reason}") }
        };
        let Some(reviewer) = &self.rights else { return Err(forbidden("")) };
        let key = (user.clone(), verb.clone(), path.to_owned());
        let now = Instant::now();
        let known = {
            let kept = self.kept();
            kept.allowed.get(&key, now).or_else(|| kept.denied.get(&key, now))
        };
        let verdict = match known {
            Some(verdict) => verdict,
            None => {
                let gates = &self.gates;
                let gate = if user.is_anonymous() { &gates.anonymous_rights } else { &gates.rights };
                let _turn = gate.pass().await.map_err(|busy| busy.refusal("rights"))?;
                let answer = bounded(reviewer.review_access(user, &verb, path)).await;
                let verdict = answer.map_err(|error| Refusal::Unknown {
                    error: format!("the right to do so could not be reviewed: {error}"),
                })?;
                if path.len() <= KEPT_PATH_BYTES_MAX {
                    let mut kept = self.kept();
                    let cache = if verdict.allowed { &mut kept.allowed } else { &mut kept.denied };
                    cache.put(key, verdict.clone(), Instant::now());
                }
                verdict
            }
        };
        if verdict.allowed { Ok(()) } else { Err(forbidden(&verdict.reason)) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Busy {
    fn refusal(self, what: &str) -> Refusal {
        Refusal::Busy {
            message: format!("too many {what} wait for a review by the API server: try again later"),
        }
    }
}
