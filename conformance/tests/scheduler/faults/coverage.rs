//! How often each fault met each step.

use std::collections::BTreeMap;
use std::fmt;

/// How far a pod has come when a fault meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PodStep {
    Queued,
    /// Extenders are asked about it: it is being decided.
    Decided,
    /// It waits at Permit, with its room reserved.
    Permit,
    /// It waits for a PreBind plugin.
    PreBind,
    /// Its binding is ordered, and nobody has carried it out yet.
    Ordered,
    /// Its binding was carried out or not, and the answer is on its way.
    Sent,
    /// It is not known whether it is bound.
    Unresolved,
    /// The answer says that it is bound; the watch does not yet.
    Unconfirmed,
}

impl PodStep {
    pub(super) const ALL: [PodStep; 8] = [
        PodStep::Queued,
        PodStep::Decided,
        PodStep::Permit,
        PodStep::PreBind,
        PodStep::Ordered,
        PodStep::Sent,
        PodStep::Unresolved,
        PodStep::Unconfirmed,
    ];
}

/// Counts of faults, by what they met.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage(BTreeMap<(&'static str, String), u64>);

impl Coverage {
    pub(super) fn met(&mut self, fault: &'static str, what: impl fmt::Debug) {
        *self.0.entry((fault, format!("{what:?}"))).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: Coverage) {
        for (key, count) in other.0 {
            *self.0.entry(key).or_default() += count;
        }
    }

    pub(super) fn named(&self, fault: &'static str, what: &str) -> u64 {
        self.0.get(&(fault, what.to_owned())).copied().unwrap_or(0)
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for ((fault, what), count) in &self.0 {
            if *fault != before {
                write!(formatter, "\n{fault:>22}:")?;
                before = fault;
            }
            write!(formatter, "  {what} {count}")?;
        }
        Ok(())
    }
}
