//! Until when something holds of groups, found by the group and by what ends first: with ten thousand groups it takes too long to look at each.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::SharedMap;
use supercargo_model::Timestamp;

use super::pod_group::Group;

/// The times during which something holds, by `namespace/name`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "SharedMap<String, Timestamp>", into = "SharedMap<String, Timestamp>")]
pub(super) struct Spans {
    by_name: SharedMap<String, Timestamp>,
    by_end: SharedMap<(Timestamp, String), ()>,
}

impl Spans {
    /// Whether it holds of a group.
    pub(super) fn hold_of(&self, group: &Group<'_>, now: Timestamp) -> bool {
        !self.by_name.is_empty() && self.holds(&group.full_name(), now)
    }

    fn holds(&self, name: &String, now: Timestamp) -> bool {
        self.by_name.get(name).is_some_and(|until| now < *until)
    }

    /// It holds of a name from now on; until when.
    pub(super) fn begin(&mut self, name: String, now: Timestamp, lasts: Duration) -> Timestamp {
        self.end(&name);
        let until = now.after(lasts);
        self.by_end.insert((until, name.clone()), ());
        self.by_name.insert(name, until);
        until
    }

    /// It does not hold of a name any more.
    pub(super) fn end(&mut self, name: &String) {
        if let Some(until) = self.by_name.remove(name) {
            self.by_end.remove(&(until, name.clone()));
        }
    }

    /// When the first of them is over.
    pub(super) fn first_end(&self) -> Option<Timestamp> {
        self.by_end.first().map(|((until, _), ())| *until)
    }

    /// Takes out one that is over, if there is one.
    pub(super) fn take_over(&mut self, now: Timestamp) -> Option<String> {
        let ((until, name), ()) = self.by_end.first()?;
        if now < *until {
            return None;
        }
        let name = name.clone();
        self.end(&name);
        Some(name)
    }

    /// All end that much earlier, or later: they last as long as they would have.
    pub(super) fn clock_was_set(&mut self, seconds: i64) {
        let mut moved = SharedMap::default();
        for (name, until) in &self.by_name {
            moved.insert(name.clone(), until.moved(seconds));
        }
        *self = Spans::from(moved);
    }
}

impl From<SharedMap<String, Timestamp>> for Spans {
    fn from(by_name: SharedMap<String, Timestamp>) -> Self {
        let mut by_end = SharedMap::default();
        for (name, until) in &by_name {
            by_end.insert((*until, name.clone()), ());
        }
        Spans { by_name, by_end }
    }
}

impl From<Spans> for SharedMap<String, Timestamp> {
    fn from(spans: Spans) -> Self {
        spans.by_name
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Numbers without a pattern.
    fn below(seed: &mut u64, limit: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % limit
    }

    #[test]
    fn what_holds_is_what_a_plain_map_says() {
        for mut seed in 0..100 {
            let (mut spans, mut plain) = (Spans::default(), BTreeMap::new());
            let mut now = Timestamp::from_seconds(1_000);
            for _ in 0..200 {
                let name = format!("ns/{}", below(&mut seed, 12));
                match below(&mut seed, 4) {
                    0 | 1 => {
                        let lasts = Duration::from_secs(below(&mut seed, 20));
                        assert_eq!(spans.begin(name.clone(), now, lasts), now.after(lasts));
                        plain.insert(name, now.after(lasts));
                    }
                    2 => {
                        spans.end(&name);
                        plain.remove(&name);
                    }
                    _ => now = now.after(Duration::from_secs(below(&mut seed, 8))),
                }
                if below(&mut seed, 3) == 0 {
                    let mut over: Vec<String> = std::iter::from_fn(|| spans.take_over(now)).collect();
                    over.sort();
                    let expected = plain.iter().filter(|(_, until)| **until <= now);
                    assert!(over.iter().eq(expected.map(|(name, _)| name)), "{over:?}");
                    plain.retain(|_, until| *until > now);
                }
                for name in (0..12).map(|number| format!("ns/{number}")) {
                    assert_eq!(spans.holds(&name, now), plain.get(&name).is_some_and(|until| *until > now));
                }
                assert_eq!(spans.first_end(), plain.values().min().copied());
                assert_eq!(spans.by_end.len(), spans.by_name.len());
                let saved = serde_json::to_string(&spans).expect("it can be written");
                let restored: Spans = serde_json::from_str(&saved).expect("and read");
                assert_eq!(restored.by_end, spans.by_end);
            }
        }
    }

    #[test]
    fn ten_thousand_names_are_no_more_work_than_one() {
        let (mut spans, now) = (Spans::default(), Timestamp::from_seconds(1_000));
        for number in 0..10_000 {
            spans.begin(format!("ns/{number}"), now, Duration::from_secs(60 + number));
        }
        // With a look at each name this would take minutes.
        for _ in 0..100_000 {
            assert_eq!(spans.take_over(now), None);
            assert_eq!(spans.first_end(), Some(now.after(Duration::from_secs(60))));
        }
    }

    #[test]
    fn what_holds_holds_as_long_though_the_clock_is_set() {
        let (mut spans, now) = (Spans::default(), Timestamp::from_seconds(10_000));
        spans.begin("ns/a".to_owned(), now, Duration::from_secs(5));
        spans.clock_was_set(-3_600);
        let now = now.moved(-3_600);
        assert!(spans.holds(&"ns/a".to_owned(), now));
        assert_eq!(spans.first_end(), Some(now.after(Duration::from_secs(5))));
        assert_eq!(spans.take_over(now.after(Duration::from_secs(5))).as_deref(), Some("ns/a"));
    }
}
