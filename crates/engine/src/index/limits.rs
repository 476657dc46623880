//! How much the index keeps, and what became of it. Constants beside the code that uses them say how, not how much.

/// How much an engine keeps from one decision to the next. None of it changes a decision, only what decisions cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// So many classes are kept at most; the ones that were not used for longest go first.
    pub classes: usize,
    /// Classes are found by the addresses of pods' parts. With more of these combinations than this all are forgotten, and found
    /// again as pods come: raise it where more different specs, labels and namespaces are in use at once.
    pub addresses: usize,
    /// Of so many different things that pods come to it is known which classes they make; with one more all are forgotten, and the
    /// classes and bases of those that come again are worked out once more.
    pub likenesses: usize,
    /// With more shapes of nodes than twice the rows and this number, the index forgets everything and begins anew: most of them
    /// are of nodes that were.
    pub idle_shapes: usize,
    /// Pods are counted by so many topology keys at most; with one more, the index forgets everything and begins anew.
    pub keys: usize,
    /// Below so many domains of a topology key each of them is looked at in every decision; with more, if they are small, rows are grouped
    /// by the counts of their domains.
    pub domains: usize,
    /// A class with more single rows than this gets planes of its own.
    pub singles: usize,
    /// A base with more parts than this is not used; its classes are decided the plain way.
    pub parts: usize,
    /// A class that would need more planes of its own than this is decided the plain way.
    pub planes: usize,
    /// Where there are more bases than this, one that comes up for the first time is not kept.
    pub eager_bases: usize,
    /// Of so many bases it is remembered that they came up once; with one more, all of that is forgotten, and a base has to come
    /// up twice again before it is kept.
    pub seen_bases: usize,
    /// All bases together may take about so many bytes, and so may the planes of classes; what was not used for longest goes first.
    pub base_bytes: usize,
    /// When more specs with terms than this are known, all are forgotten and found again as they come.
    pub specs: usize,
    /// So many terms that came up are kept in order; a class that has missed some of them looks at all terms again.
    pub new_terms: usize,
    /// Label groups without pods are dropped when there are twice as many groups as the last time, but not below this number.
    pub label_groups: usize,
    /// The log of changed rows is cut when it is four times as long as the table, but not below this length.
    pub log: usize,
    /// The numbers of so many rows that changed last are there to be shared.
    pub recent: usize,
    /// Where plugins have more different reasons to reject rows than this, rejections are not counted but asked for again.
    pub reasons: usize,
    /// What plugins found out about so many rows is kept for those that ask again.
    pub findings: usize,
}

impl Default for IndexLimits {
    fn default() -> Self {
        IndexLimits {
            classes: 1 << 12,
            addresses: 1 << 14,
            likenesses: 1 << 14,
            idle_shapes: 1 << 12,
            keys: 256,
            domains: 8,
            singles: 100,
            parts: 1 << 12,
            planes: 1 << 12,
            eager_bases: 64,
            seen_bases: 1 << 16,
            base_bytes: 512 << 20,
            specs: 1 << 16,
            new_terms: 1 << 12,
            label_groups: 1 << 12,
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
    /// How many classes lost the planes of their own because all of those took too much.
    pub planes_dropped: u64,
    /// How many decisions were made with planes of a class's own.
    pub with_own_planes: u64,
    /// How many decisions were made with rows grouped by the counts of their domains.
    pub by_domain_counts: u64,
    /// How many decisions were made in the guest base, which is no class's own.
    pub as_guest: u64,
    /// How many decisions were made row by row, because scores had to be normalised anew.
    pub row_by_row: u64,
}
