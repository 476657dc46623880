//! The labels that have only so many values.

/// How an attempt to schedule a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are upstream's")]
pub enum AttemptResult {
    Scheduled,
    Unschedulable,
    Error,
}

impl AttemptResult {
    pub(super) const fn label(self) -> &'static str {
        match self {
            AttemptResult::Scheduled => "scheduled",
            AttemptResult::Unschedulable => "unschedulable",
            AttemptResult::Error => "error",
        }
    }
}

/// A part of the scheduling queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are upstream's")]
pub enum Queue {
    Active,
    Backoff,
    Unschedulable,
    Gated,
}

impl Queue {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Queue::Active => "active",
            Queue::Backoff => "backoff",
            Queue::Unschedulable => "unschedulable",
            Queue::Gated => "gated",
        }
    }
}

/// What the cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are upstream's")]
pub enum Cached {
    AssumedPods,
    Pods,
    Nodes,
}

impl Cached {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Cached::AssumedPods => "assumed_pods",
            Cached::Pods => "pods",
            Cached::Nodes => "nodes",
        }
    }
}
