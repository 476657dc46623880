//! Bugs that tests can plant into the scheduler, to show that its checkers would find such a bug. Without the feature
//! `planted-bugs`, which no released build has, the compiler removes them.

/// A bug of the scheduler, or of its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A binding goes on although the watch has said that its pod is bound.
    BindingsOutliveConfirmation,
    /// The next binder is asked although the one before it may have bound the pod.
    NextBinderAtOnce,
    /// A binding that was answered by an error counts as not made.
    ErrorsMeanUnbound,
    /// The room of a pod that goes back into the queue stays taken.
    RoomStaysTaken,
    /// Victims are evicted for a pod that has got a node meanwhile.
    EvictsForBoundPods,
    /// An answer counts for whatever binding its pod has now.
    UnfencedAnswers,
    /// What is known about an order stays known after its answer.
    TicketsStay,
    /// What could not be written about a pod counts as written.
    UnwrittenCounts,
    /// What happens while a binding is resumed is told at once, also to bindings that are to be resumed next; and a change ends what they have
    /// come to by then.
    NewsNests,
    /// A pod that was held back by its victims stays held back until something happens after that.
    FreedPodsStayHeld,
    /// The index looks again only at the row that a pod came to, not at the others of its domain.
    DomainsStay,
    /// The index counts the domains of a group once and not again.
    DomainsAreNotCountedAgain,
    /// Rows whose pods' objects have changed are not looked at again.
    TouchedRowsStay,
    /// Rows of which something else is said from outside are not looked at again.
    FactsStay,
    /// What was answered stays when it is too old.
    OldFactsStay,
    /// The plans for a pod are those for another pod that comes to the same.
    PlansOfOthers,
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug into all schedulers that this thread drives, or removes the one that is there.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    pub(crate) fn is_planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(not(feature = "planted-bugs"))]
mod switch {
    pub(crate) const fn is_planted(_: super::Bug) -> bool {
        false
    }
}

pub(crate) use switch::is_planted;
#[cfg(feature = "planted-bugs")]
pub use switch::plant;
