//! How much is kept, and what became of it.

/// How much an engine keeps from one decision to the next. None of it changes a decision, only what decisions cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// So many classes are kept at most; the ones that were not used for longest go first.
    pub classes: usize,
    /// When the pods of all classes have come from so many places, those are forgotten and found again as they come.
    pub addresses: usize,
    /// When there are so many more shapes of nodes than nodes have had at once, all are found again.
    pub idle_shapes: usize,
    /// When pods were counted by more topology keys than this, everything begins anew.
    pub keys: usize,
    /// A class with more rows of its own than this gets planes of its own.
    pub singles: usize,
    /// More parts of a base than this are not worth keeping apart.
    pub parts: usize,
    /// More planes of a class than this are not worth keeping apart.
    pub planes: usize,
    /// Where there are more bases than this, one that comes up for the first time is not kept.
    pub eager_bases: usize,
    /// When so many bases have come up once, they are forgotten.
    pub seen_bases: usize,
    /// All bases together may take about so many bytes; the ones that were not used for longest go first.
    pub base_bytes: usize,
    /// When more specs with terms than this are known, all are forgotten and found again as they come.
    pub specs: usize,
    /// After this many terms that came up, whoever has not looked at them looks at all terms again.
    pub new_terms: usize,
    /// Below this number kinds of pods without any are not worth looking for.
    pub kinds: usize,
    /// The log of changed rows is cut when it is four times as long as the table, but not below this length.
    pub log: usize,
    /// The numbers of so many rows that changed last are there to be shared.
    pub recent: usize,
    /// Where plugins have more different reasons to reject rows than this, nobody counts them.
    pub reasons: usize,
    /// What plugins found out about so many rows is kept for those that ask again.
    pub findings: usize,
}

impl Default for IndexLimits {
    fn default() -> Self {
        IndexLimits {
            classes: 1 << 12,
            addresses: 1 << 14,
            idle_shapes: 1 << 12,
            keys: 256,
            singles: 100,
            parts: 1 << 12,
            planes: 1 << 12,
            eager_bases: 64,
            seen_bases: 1 << 16,
            base_bytes: 512 << 20,
            specs: 1 << 16,
            new_terms: 1 << 12,
            kinds: 1 << 12,
            log: 1 << 12,
            recent: 1 << 9,
            reasons: 256,
            findings: 1 << 17,
        }
    }
}

/// What an engine's memory was good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Decisions that it made.
    pub answered: u64,
    /// Decisions that had to be made the plain way.
    pub left: u64,
    /// How often all of it was forgotten.
    pub restarts: u64,
    /// How often a class was worked out.
    pub classes_made: u64,
    /// How many classes were dropped because there were too many.
    pub classes_dropped: u64,
    /// How many bases were dropped because they took too much.
    pub bases_dropped: u64,
    /// How many decisions were made with planes of a class's own.
    pub with_own_planes: u64,
    /// How many decisions were made in the base that is nobody's own.
    pub as_guest: u64,
}
