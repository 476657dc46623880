//! The plugins of a base: those whose answers about a row depend on nothing but the row.

use supercargo_framework::{Cycle, Filter, Named, Score};
use supercargo_model::NodeRef;

/// The plugins whose answers are kept a row.
#[derive(Clone, Default)]
pub(super) struct LocalPlugins {
    pub(super) filters: Vec<LocalFilter>,
    /// Scores that are final as they are.
    pub(super) scores: Vec<LocalScore>,
    /// Scores that are normalised when it is known which of them occur.
    pub(super) relative: Vec<LocalScore>,
    /// Scores that are normalised by the lowest and the highest.
    pub(super) ranged: Vec<LocalScore>,
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
    /// Whether filters that count go before it: then it is not known here why a row is rejected that both reject.
    pub(super) is_late: bool,
}

#[derive(Clone)]
pub(super) struct LocalScore {
    pub(super) named: Named<dyn Score>,
    pub(super) weight: i64,
    pub(super) by_shape: bool,
}

impl LocalScore {
    /// What the plugin gives a row; none if it fails. Where rows of one shape get one score, it is asked once a shape.
    pub(super) fn of_row(
        &self,
        cycle: &Cycle<'_>,
        node: NodeRef<'_>,
        shape: usize,
        known: Option<&mut Vec<Option<i64>>>,
    ) -> Option<i64> {
        match known {
            None => self.named.run(|plugin| plugin.score(cycle, node)).ok(),
            Some(known) => match known.get(shape) {
                Some(Some(score)) => Some(*score),
                _ => {
                    let score = self.named.run(|plugin| plugin.score(cycle, node)).ok()?;
                    remember(known, shape, score);
                    Some(score)
                }
            },
        }
    }
}

/// Keeps the answer for a shape.
pub(super) fn remember<T: Clone>(answers: &mut Vec<Option<T>>, shape: usize, answer: T) {
    if answers.len() <= shape {
        answers.resize(shape + 1, None);
    }
    answers[shape] = Some(answer);
}
