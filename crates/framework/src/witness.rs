//! Which plugin is running, and for how long: for whoever has to say who panicked, or who took long.
//!
//! Plugins are called through [`Named::run`]. That costs a few instructions a call, and no decision depends on it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use crate::profile::Named;

thread_local! {
    static RUNNING: Cell<Option<&'static str>> = const { Cell::new(None) };
    static CLOCK: Cell<Option<fn() -> Duration>> = const { Cell::new(None) };
    static LAPS: RefCell<Laps> = const { RefCell::new(Laps { since: Duration::ZERO, plugins: Vec::new() }) };
}

/// How long plugins have run by themselves, without those that they called.
struct Laps {
    since: Duration,
    plugins: Vec<(&'static str, Duration)>,
}

impl<T: ?Sized> Named<T> {
    /// Calls the plugin. While it runs, and after it panicked, [`running`] is its name.
    #[inline]
    pub fn run<R>(&self, call: impl FnOnce(&T) -> R) -> R {
        run(self.name, || call(&self.plugin))
    }
}

/// Does something that belongs to the plugin of that name.
#[inline]
pub fn run<R>(plugin: &'static str, act: impl FnOnce() -> R) -> R {
    let before = RUNNING.replace(Some(plugin));
    end_lap(before);
    let result = act();
    end_lap(Some(plugin));
    RUNNING.set(before);
    result
}

/// The plugin that runs on this thread, or that panicked on it.
pub fn running() -> Option<&'static str> {
    RUNNING.get()
}

/// Says which plugin runs: none any more, after a panic was dealt with, or the one that panicked on another thread.
pub fn set_running(plugin: Option<&'static str>) {
    RUNNING.set(plugin);
}

/// Does something, and finds out which plugins ran for so long meanwhile, or longer, by this clock. What is done must not panic.
pub fn time<R>(
    clock: fn() -> Duration,
    long: Duration,
    act: impl FnOnce() -> R,
) -> (R, Vec<(&'static str, Duration)>) {
    let outer = CLOCK.replace(Some(clock));
    LAPS.with_borrow_mut(|laps| {
        laps.since = clock();
        laps.plugins.clear();
    });
    let result = act();
    CLOCK.set(outer);
    let is_long = |(_, took): &(&'static str, Duration)| *took >= long;
    (result, LAPS.with_borrow_mut(|laps| laps.plugins.drain(..).filter(is_long).collect()))
}

#[inline]
fn end_lap(ran: Option<&'static str>) {
    if let Some(clock) = CLOCK.get() {
        note_lap(clock, ran);
    }
}

#[cold]
fn note_lap(clock: fn() -> Duration, ran: Option<&'static str>) {
    LAPS.with_borrow_mut(|laps| {
        let now = clock();
        let lap = now.saturating_sub(std::mem::replace(&mut laps.since, now));
        let Some(ran) = ran else { return };
        match laps.plugins.iter_mut().find(|(plugin, _)| *plugin == ran) {
            Some((_, took)) => *took += lap,
            None => laps.plugins.push((ran, lap)),
        }
    });
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;

    thread_local! {
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    fn named(name: &'static str) -> Named<dyn Fn(u64) + Send + Sync> {
        Named { name, number: 0, plugin: Arc::new(|seconds| NOW.set(NOW.get() + seconds)) }
    }

    #[test]
    fn a_plugin_that_calls_others_is_not_to_blame_for_them() {
        let (outer, inner) = (named("Outer"), named("Inner"));
        let ((), laps) = time(
            || Duration::from_secs(NOW.get()),
            Duration::from_secs(3),
            || {
                named("Quick").run(|pass| pass(2));
                NOW.set(100);
                outer.run(|pass| {
                    pass(1);
                    inner.run(|pass| pass(5));
                    assert_eq!(running(), Some("Outer"));
                    pass(2);
                });
                NOW.set(1000);
                inner.run(|pass| pass(1));
            },
        );
        let seconds = Duration::from_secs;
        assert_eq!(laps, [("Outer", seconds(3)), ("Inner", seconds(6))]);
        assert_eq!(running(), None);
        inner.run(|pass| pass(1));
        assert!(LAPS.with_borrow(|laps| laps.plugins.is_empty()), "nobody asks any more");
    }

    #[test]
    fn who_panicked_is_known_until_somebody_has_dealt_with_it() {
        let (outer, inner) = (named("Outer"), named("Inner"));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            outer.run(|_| {
                inner.run(|_| {});
                panic!("on purpose");
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(running(), Some("Outer"));
        set_running(None);
        assert_eq!(running(), None);
    }
}
