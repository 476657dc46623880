//! Fixes of upstream behaviour that looks like a mistake. A verdict is upstream's unless its fix is switched on.

/// Which fixes are on; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixes {
    /// A `namespaceSelector` of a pending pod's affinity term picks namespaces by their labels only. Upstream also
    /// asks it about an empty label set, so `NotIn` and `DoesNotExist` alone pick every namespace.
    pub namespace_selector_absence: bool,
    /// NodeResourcesFit scores a pending pod by its pod-level requests too. Upstream leaves them out.
    pub fit_score_pod_level_requests: bool,
    /// An empty selector in a spread constraint counts all pods of the namespace. Upstream counts none of them, but
    /// the pending pod itself.
    pub empty_spread_selector: bool,
    /// After a PreFilter plugin has stopped the cycle, PostFilter plugins that lack their state are passed over.
    /// Upstream ends there, with a message that closes on `not found`.
    pub post_filter_after_pre_filter_stop: bool,
}
