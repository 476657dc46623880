//! Answers of the API server, kept for a few seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// How long an answer is kept: long enough for a burst of requests, short enough that a withdrawn right is soon felt.
pub(super) const TIME_TO_LIVE: Duration = Duration::from_secs(10);

/// How many answers are kept that let a client in, and how many that do not. They have caches of their own: a client that asks with ever
/// new tokens or paths displaces only what other such clients were told, never the answer about a good token.
pub(super) const GRANTED_ENTRIES_MAX: usize = 1_024;
pub(super) const REFUSED_ENTRIES_MAX: usize = 256;

/// Answers by question.
#[derive(Debug)]
pub(super) struct Cache<Key, Answer> {
    entries_max: usize,
    entries: BTreeMap<Key, (Answer, Instant)>,
}

impl<Key: Ord + Clone, Answer: Clone> Cache<Key, Answer> {
    pub(super) fn new(entries_max: usize) -> Self {
        Cache { entries_max, entries: BTreeMap::new() }
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Answer> {
        self.entries.get(key).filter(|(_, until)| now < *until).map(|(answer, _)| answer.clone())
    }

    pub(super) fn put(&mut self, key: Key, answer: Answer, now: Instant) {
        if self.entries.len() >= self.entries_max && !self.entries.contains_key(&key) {
            self.entries.retain(|_, (_, until)| now < *until);
        }
        if self.entries.len() >= self.entries_max && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.entries.remove(&oldest);
            }
        }
        self.entries.insert(key, (answer, now + TIME_TO_LIVE));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
