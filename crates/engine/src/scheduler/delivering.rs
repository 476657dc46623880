//! Telling whoever waits that something happened: the bindings first, then the queue.
//!
//! A binding that goes on may fail and leave its room, which is something that happens, too. It is told when everybody has heard of what
//! happened before it. So nobody is resumed while somebody else is, and however many bindings end because one did, no call nests in another.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use supercargo_model::{Pod, Timestamp};

use super::Scheduler;
use super::binding::Binding;
use super::happenings::Happening;
use crate::planted::{Bug, is_planted};

/// What happened and was not told to everybody yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries {
    untold: VecDeque<(Happening, Helped)>,
    /// Whether somebody is being told: what happens meanwhile is told after that.
    is_delivering: bool,
}

/// Which of the waiting pods something may help.
#[derive(Clone, Debug)]
pub(super) enum Helped {
    All,
    /// All but the pod with this UID.
    Others(Arc<str>),
    /// Those that are not more important than this: a nomination has ended. That is no news to bindings, whose pods have their nodes.
    UpToPriority(i32),
}

impl Helped {
    fn includes(&self, pod: &Pod) -> bool {
        match self {
            Helped::All => true,
            Helped::Others(uid) => pod.uid != *uid,
            Helped::UpToPriority(priority) => pod.priority() <= *priority,
        }
    }
}

impl Scheduler {
    /// Tells whoever waits for it that something happened.
    pub(super) fn happened(&mut self, happening: Happening, now: Timestamp) {
        self.happened_to(happening, now, Helped::All);
    }

    /// The same, where it can help only some of the waiting pods.
    pub(super) fn happened_to(&mut self, happening: Happening, now: Timestamp, helped: Helped) {
        self.deliveries.untold.push_back((happening, helped));
        if self.deliveries.is_delivering && !is_planted(Bug::NewsNests) {
            return;
        }
        self.deliveries.is_delivering = true;
        // Whoever catches the panic of a plugin goes on with this scheduler, which must not be deaf from then on.
        let result = catch_unwind(AssertUnwindSafe(|| {
            while let Some((happening, helped)) = self.deliveries.untold.pop_front() {
                self.deliver(happening, &helped, now);
            }
        }));
        self.deliveries.is_delivering = false;
        result.unwrap_or_else(|panic| resume_unwind(panic));
    }

    fn deliver(&mut self, happening: Happening, helped: &Helped, now: Timestamp) {
        if !matches!(helped, Helped::UpToPriority(_)) {
            self.resume_bindings(&happening, now);
        }
        self.queue.hear_of(&happening.event, &happening.what);
        if self.queue.listens() {
            self.with_queue(now, |queue, context| {
                queue.react(context, happening, |pod| helped.includes(pod));
            });
        }
    }

    /// Tells the steps that wait for it that something happened.
    fn resume_bindings(&mut self, happening: &Happening, now: Timestamp) {
        if !self.bindings.listens() {
            return;
        }
        let key = happening.what.key();
        let hears = |binding: &Binding| binding.hears(&happening.event, &key);
        for listener in self.bindings.listeners(happening.event.resource, &key, hears) {
            self.resume_binding(&listener, happening, &key, now);
        }
    }
}
