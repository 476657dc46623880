//! How far is counted.

use std::fmt;

use serde::Serialize;

/// Without a wish for more or less, counting stops here: beyond it nobody asks how many, and each copy takes some 250
/// bytes while it is counted.
pub const COPIES_DEFAULT_MAX: usize = 1_000_000;

/// However many are wished for, counting stops here: the copies take two and a half gigabytes then.
pub const COPIES_MAX: usize = 10_000_000;

/// Without a wish for more, so many looks at nodes are taken where the index has no answer: five to twenty
/// seconds' worth.
pub(super) const LOOKS_MAX: u64 = 10_000_000;

/// Plugins may go through the pods of a node, of which so many take as long as another look.
const PODS_A_LOOK: u64 = 256;

/// Which limit counting stopped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CountingLimit {
    /// [`COPIES_DEFAULT_MAX`] pods.
    Count,
    /// [`COPIES_MAX`] pods, though more were wished for.
    MostCount,
    /// Pods of this kind have to be placed the slow way, and that has taken long enough.
    Work,
}

/// How many copies are placed, and how much work that may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// No more copies than this.
    pub(super) copies: usize,
    /// What it means that so many were placed; none if that is what was asked for.
    pub(super) copies_limit: Option<CountingLimit>,
    pub(super) looks: u64,
    /// No limit if none is given.
    pub(super) looks_max: Option<u64>,
}

impl Budget {
    /// As it follows from how many are wished for.
    pub(super) fn new(most: Option<usize>) -> Self {
        let (copies, copies_limit, looks_max) = match most {
            None => (COPIES_DEFAULT_MAX, Some(CountingLimit::Count), Some(LOOKS_MAX)),
            Some(most) if most > COPIES_MAX => (COPIES_MAX, Some(CountingLimit::MostCount), None),
            Some(most) => (most, None, None),
        };
        Budget { copies, copies_limit, looks: 0, looks_max }
    }

    /// Plugins look at a node with so many pods, and may go through them.
    pub(super) fn look(&mut self, pods: usize) {
        self.looks = self.looks.saturating_add(1 + pods as u64 / PODS_A_LOOK);
    }

    /// The limit that was reached with so many copies; none yet, or none because that is what was asked for.
    pub(super) fn limit(&self, placed: usize) -> Option<CountingLimit> {
        if placed >= self.copies { self.copies_limit } else { self.is_spent().then_some(CountingLimit::Work) }
    }

    /// Whether enough work was done.
    pub(super) fn is_spent(&self) -> bool {
        self.looks_max.is_some_and(|most| self.looks >= most)
    }
}

impl fmt::Display for CountingLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CountingLimit::Count => "--most counts further",
            CountingLimit::MostCount => "no more are ever counted",
            CountingLimit::Work => "these pods take long to count, and --most counts further",
        })
    }
}
