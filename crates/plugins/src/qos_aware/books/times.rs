//! Sums of times that go on: what has ended is a sum, and what has not is the number and the sum of its beginnings, so that all of
//! it is known at any moment without a look at the single pods.

use supercargo_model::Timestamp;

/// A length of time, or a sum of such lengths: thousands of pods run for years.
pub(in crate::qos_aware) type Nanoseconds = i128;

/// The length of time from one point to another; nothing if the clock was set back.
pub(in crate::qos_aware) fn between(begin: Timestamp, end: Timestamp) -> Nanoseconds {
    (Nanoseconds::from(end.nanoseconds()) - Nanoseconds::from(begin.nanoseconds())).max(0)
}

/// Lengths of time that have begun and not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::qos_aware) struct Open {
    pub(in crate::qos_aware) count: u32,
    /// The sum of the points at which they began.
    begins: Nanoseconds,
}

impl Open {
    fn begin(&mut self, at: Timestamp) {
        self.count += 1;
        self.begins += Nanoseconds::from(at.nanoseconds());
    }

    fn end(&mut self, begun: Timestamp) {
        self.count -= 1;
        self.begins -= Nanoseconds::from(begun.nanoseconds());
    }

    /// How long they are by now, all together.
    fn until(&self, now: Timestamp) -> Nanoseconds {
        (Nanoseconds::from(now.nanoseconds()) * Nanoseconds::from(self.count) - self.begins).max(0)
    }
}

/// The times of a controller, or of one of its slots: of all pods that there ever were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::qos_aware) struct Times {
    /// How many pods there were.
    pub(super) incarnations: u64,
    /// The waits that have ended, the bindings, the runs that have ended, and those of them that succeeded.
    pub(super) waited: Nanoseconds,
    pub(super) binding: Nanoseconds,
    pub(super) ran: Nanoseconds,
    pub(super) succeeded: Nanoseconds,
    /// What goes on.
    pub(super) waiting: Open,
    pub(super) running: Open,
}

/// When a pod came, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::qos_aware) struct Life {
    pub(in crate::qos_aware) created: Timestamp,
    /// Since when it was bound, if that was seen.
    pub(in crate::qos_aware) binding: Option<Timestamp>,
    /// Since when it runs: since it was bound.
    pub(in crate::qos_aware) running: Option<Timestamp>,
}

impl Life {
    pub(in crate::qos_aware) fn waiting(&self, now: Timestamp) -> Nanoseconds {
        between(self.created, self.binding.or(self.running).unwrap_or(now))
    }

    pub(in crate::qos_aware) fn binding(&self) -> Nanoseconds {
        self.binding.zip(self.running).map_or(0, |(begin, end)| between(begin, end))
    }

    pub(in crate::qos_aware) fn running(&self, now: Timestamp) -> Nanoseconds {
        self.running.map_or(0, |begin| between(begin, now))
    }
}

impl Times {
    /// A pod has come.
    pub(super) fn arrive(&mut self, created: Timestamp) {
        self.incarnations += 1;
        self.waiting.begin(created);
    }

    /// A pod that waited runs.
    pub(super) fn start(&mut self, life: &Life) {
        let Some(running) = life.running else { return };
        self.waiting.end(life.created);
        self.running.begin(running);
        self.waited += life.waiting(running);
        self.binding += life.binding();
    }

    /// A pod is gone.
    pub(super) fn end(&mut self, life: &Life, now: Timestamp) {
        match life.running {
            Some(running) => {
                self.running.end(running);
                self.ran += between(running, now);
            }
            None => {
                self.waiting.end(life.created);
                self.waited += between(life.created, now);
            }
        }
    }

    /// Takes up what goes on with a pod whose times so far are among the sums.
    pub(super) fn resume(&mut self, life: &Life) {
        match life.running {
            Some(running) => self.running.begin(running),
            None => self.waiting.begin(life.created),
        }
    }

    pub(in crate::qos_aware) fn waiting(&self, now: Timestamp) -> Nanoseconds {
        self.waited + self.waiting.until(now)
    }

    pub(in crate::qos_aware) fn binding(&self) -> Nanoseconds {
        self.binding
    }

    /// All that pods ran.
    pub(in crate::qos_aware) fn running(&self, now: Timestamp) -> Nanoseconds {
        self.ran + self.running.until(now)
    }

    /// What those ran that run now, or succeeded.
    pub(in crate::qos_aware) fn kept(&self, now: Timestamp) -> Nanoseconds {
        self.succeeded + self.running.until(now)
    }

    pub(in crate::qos_aware) fn incarnations(&self) -> u64 {
        self.incarnations
    }

    /// The times of both.
    pub(super) fn add_ended(&mut self, other: &Times) {
        self.incarnations += other.incarnations;
        self.waited += other.waited;
        self.binding += other.binding;
        self.ran += other.ran;
        self.succeeded += other.succeeded;
    }
}

/// How long as many pods of a controller ran at the same time as it has replicas, and how long fewer did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::qos_aware) struct Together {
    /// How many run.
    pub(super) online: u32,
    /// Until when times are among the sums.
    pub(super) since: Timestamp,
    pub(super) effective: Nanoseconds,
    pub(super) discarded: Nanoseconds,
}

impl Together {
    /// The same at a later time, as long as neither the pods nor the replicas change.
    #[must_use]
    pub(in crate::qos_aware) fn at(mut self, now: Timestamp, replicas: u32) -> Self {
        let spent = between(self.since, now) * Nanoseconds::from(self.online);
        if self.online < replicas {
            self.discarded += spent;
        } else {
            self.effective += spent;
        }
        self.since = self.since.max(now);
        self
    }

    pub(in crate::qos_aware) fn effective(&self) -> Nanoseconds {
        self.effective
    }

    pub(in crate::qos_aware) fn discarded(&self) -> Nanoseconds {
        self.discarded
    }
}
