//! How long things may take in an election.

use std::time::Duration;

use supercargo_model::GoDuration;

/// How much longer than the retry period a candidate waits at most, as a share of it: client-go's `JitterFactor`.
pub const JITTER_FACTOR: f64 = 1.2;

/// A request for the lease may not take less than this, however short the renew deadline is.
const REQUEST_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// How long things may take in an election. The names are those of `leaderElection` in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderSettings {
    /// For how long a candidate must see no renewal before it takes over.
    pub lease_duration: Duration,
    /// For how long a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How long to wait between tries.
    pub retry_period: Duration,
}

/// Settings with which no election is safe. The texts are client-go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum InvalidSettings {
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseDuration,
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    RenewDeadline,
    #[error("retryPeriod must be greater than zero")]
    RetryPeriod,
    #[error("leaseDuration must be at least one second: a Lease counts whole seconds")]
    LeaseDurationSeconds,
}

impl Default for LeaderSettings {
    fn default() -> Self {
        LeaderSettings {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeaderSettings {
    /// The settings as the configuration has them, if an election with them is safe.
    pub fn new(
        lease_duration: GoDuration,
        renew_deadline: GoDuration,
        retry_period: GoDuration,
    ) -> Result<Self, InvalidSettings> {
        // What is negative is as little as nothing, which is refused.
        let duration = |go: GoDuration| Duration::from_nanos(u64::try_from(go.0).unwrap_or(0));
        let settings = LeaderSettings {
            lease_duration: duration(lease_duration),
            renew_deadline: duration(renew_deadline),
            retry_period: duration(retry_period),
        };
        settings.validate()?;
        Ok(settings)
    }

    /// Whether an election with these settings is safe.
    pub fn validate(&self) -> Result<(), InvalidSettings> {
        if self.lease_duration <= self.renew_deadline {
            return Err(InvalidSettings::LeaseDuration);
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER_FACTOR) {
            return Err(InvalidSettings::RenewDeadline);
        }
        if self.retry_period.is_zero() {
            return Err(InvalidSettings::RetryPeriod);
        }
        if self.lease_duration < Duration::from_secs(1) {
            return Err(InvalidSettings::LeaseDurationSeconds);
        }
        Ok(())
    }

    /// The lease duration as a Lease has it: whole seconds.
    pub(crate) fn lease_duration_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }

    /// How long others wait at least after our last renewal: what the Lease says, not what the settings say.
    pub(crate) fn lease_duration_written(&self) -> Duration {
        Duration::from_secs(self.lease_duration_seconds().unsigned_abs().into())
    }

    /// How long one request may take, so that there is time for a second.
    pub(crate) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(REQUEST_TIMEOUT_MIN)
    }
}
