//! How many reviews the API server is asked for at once.
//!
//! Every new token is a TokenReview, and every new path of a user a SubjectAccessReview: without a limit a client that makes up tokens would
//! make the scheduler ask the API server as often as the network carries it, in competition with bindings. Those who wait are served in
//! the order in which they came, and each connection waits with one request at most (HTTP/1.1), so a new honest token gets its turn.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::connections::CONNECTIONS_MAX;

/// How many reviews of tokens are under way at once, and as many of rights of authenticated users.
pub(super) const REVIEWS_MAX: usize = 4;
/// How many reviews of rights of `system:anonymous` are under way at once; their requests cannot delay those of authenticated users.
pub(super) const ANONYMOUS_REVIEWS_MAX: usize = 2;
/// How many requests wait for their turn, and how long. Beyond either limit the client is told to try again later.
pub(super) const REVIEWS_WAITING_MAX: usize = CONNECTIONS_MAX;
pub(super) const REVIEW_WAIT_MAX: Duration = Duration::from_secs(5);
/// When a client that was turned away may try again.
pub(super) const RETRY_AFTER_SECONDS: u32 = 1;

/// Lets so many through at once.
#[derive(Debug)]
pub(super) struct Gate {
    under_way: Semaphore,
    waiting: Semaphore,
}

/// Too many wait already, or the turn did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy;

impl Gate {
    pub(super) fn new(reviews_max: usize) -> Self {
        Gate { under_way: Semaphore::new(reviews_max), waiting: Semaphore::new(REVIEWS_WAITING_MAX) }
    }

    /// Waits for a turn, which lasts until what is returned is dropped.
    pub(super) async fn pass(&self) -> Result<SemaphorePermit<'_>, Busy> {
        let _waiting = self.waiting.try_acquire().map_err(|_| Busy)?;
        match timeout(REVIEW_WAIT_MAX, self.under_way.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            // Nobody closes it.
            Ok(Err(_)) | Err(_) => Err(Busy),
        }
    }
}
