//! How long to wait before the next try.

use std::time::Duration;

use supercargo_engine::Seed;

/// Waits that grow with each failure in a row, with some chance in them, so that many clients do not come back at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    limits: BackoffLimits,
    failures: u32,
    chance: Chance,
}

/// Between which limits waits grow, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackoffLimits {
    /// The first wait.
    pub(crate) first: Duration,
    /// What each wait is longer by than the one before.
    pub(crate) factor: f64,
    /// The longest wait, chance left out.
    pub(crate) longest: Duration,
    /// What chance adds at most, as a part of the wait.
    pub(crate) jitter: f64,
}

/// A stream of random numbers from a seed. A `Chance` cannot be cloned, because clones would draw the same numbers: requests
/// that fail together would be retried together. [`Chance::fork`] begins another stream.
#[derive(Debug)]
pub(crate) struct Chance {
    seed: Seed,
    drawn: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance { seed: Seed(seed), drawn: 0 }
    }

    /// The stream that belongs to a name, such as a replica's hostname or the plural of a kind: replicas that are configured
    /// with the same seed, and watches that start at the same time, draw different numbers.
    pub(crate) fn named(seed: u64, name: &str) -> Self {
        Chance::new(named_seed(seed, name))
    }

    /// Another stream, unrelated to this one and to every other fork of it.
    pub(crate) fn fork(&mut self) -> Self {
        Chance::new(self.draw())
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.draw() as f64 / u64::MAX as f64
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.seed.attempt(self.drawn)
    }
}

/// The seed that belongs to a name.
pub(crate) fn named_seed(seed: u64, name: &str) -> u64 {
    // The length comes first, so that the name of one thing is not the beginning of another's.
    let length = Seed(seed).attempt(name.len() as u64);
    name.bytes().fold(length, |seed, byte| Seed(seed).attempt(byte.into()))
}

impl Backoff {
    pub(crate) fn new(limits: BackoffLimits, chance: Chance) -> Self {
        Backoff { limits, failures: 0, chance }
    }

    /// It worked: the next wait is the first one again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// How often it failed in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// It failed once more: how long to wait now. The longest wait may be shorter for this kind of failure.
    pub(crate) fn next(&mut self, longest: Duration) -> Duration {
        // From here on the longest wait is reached by far, and numbers stay small.
        const FAILURES_THAT_COUNT_MAX: u32 = 64;
        let exponent = self.failures.min(FAILURES_THAT_COUNT_MAX).cast_signed();
        self.failures = self.failures.saturating_add(1);
        let wait = self.limits.first.as_secs_f64() * self.limits.factor.powi(exponent);
        let wait = wait.min(self.limits.longest.min(longest).as_secs_f64());
        Duration::from_secs_f64(wait * (1.0 + self.limits.jitter * self.chance.fraction()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BackoffLimits = BackoffLimits {
        first: Duration::from_millis(100),
        factor: 2.0,
        longest: Duration::from_secs(1),
        jitter: 0.5,
    };

    #[test]
    fn waits_grow_up_to_the_longest_and_start_over_after_a_success() {
        let mut backoff = Backoff::new(LIMITS, Chance::new(7));
        for round in 0..3 {
            for expected in [100, 200, 400, 800, 1000, 1000] {
                let wait = backoff.next(Duration::MAX).as_millis();
                assert!((expected..=expected * 3 / 2).contains(&wait), "{round}: {wait} for {expected}");
            }
            backoff.reset();
        }
        for _ in 0..10_000 {
            assert!(backoff.next(Duration::MAX) <= Duration::from_millis(1500));
        }
        assert!(backoff.next(Duration::from_millis(100)) <= Duration::from_millis(150));
    }

    #[test]
    fn different_seeds_wait_differently() {
        let wait = |seed| Backoff::new(LIMITS, Chance::new(seed)).next(Duration::MAX);
        assert_eq!(wait(1), wait(1));
        assert_ne!(wait(1), wait(2));
    }

    #[test]
    fn forks_and_names_draw_numbers_of_their_own() {
        let mut chance = Chance::new(7);
        let mut drawn: Vec<u64> = (0..100)
            .flat_map(|_| {
                let mut fork = chance.fork();
                [fork.draw(), fork.draw(), chance.draw()]
            })
            .collect();
        drawn.extend(
            ["", "a", "b", "ab", "ba", "replica-1", "replica-2"].map(|name| Chance::named(7, name).draw()),
        );
        let count = drawn.len();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), count, "no number comes twice");
        assert_eq!(Chance::named(7, "a").draw(), Chance::named(7, "a").draw());
        assert_ne!(Chance::named(7, "a").draw(), Chance::named(8, "a").draw());
    }
}
