//! The plugins of a base: those whose answers about a row depend on nothing but the row.

use supercargo_framework::{Filter, Named, Score};

/// The plugins whose answers are kept a row.
#[derive(Clone, Default)]
pub(super) struct LocalPlugins {
    pub(super) filters: Vec<LocalFilter>,
    /// Scores that are final as they are.
    pub(super) scores: Vec<LocalScore>,
    /// Scores that are normalised when it is known which of them occur.
    pub(super) relative: Vec<LocalScore>,
    /// Whether one of them reads how many nodes there are.
    pub(super) reads_census: bool,
    /// Whether a relative score depends on the pods of the row.
    pub(super) relative_reads_pods: bool,
}

#[derive(Clone)]
pub(super) struct LocalFilter {
    pub(super) named: Named<dyn Filter>,
    /// Whether rows of one shape get one answer.
    pub(super) by_shape: bool,
}

#[derive(Clone)]
pub(super) struct LocalScore {
    pub(super) named: Named<dyn Score>,
    pub(super) weight: i64,
    pub(super) by_shape: bool,
}
