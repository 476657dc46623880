//! What the plugins of a base say about one row at a time, prepared once for many rows. Hot.

use supercargo_framework::{Cycle, MAX_NODE_SCORE, NodeNumbers, RowFilter, RowScore, witness};

use super::local::{LocalPlugins, remember};

/// Plugins that answer by the numbers of a row, and what those that look only at a row's shape said about each shape.
pub(super) struct RowAnswers {
    /// The filters that go by numbers.
    filters: Vec<Prepared<RowFilter>>,
    /// The final scores that go by numbers.
    scores: Vec<Prepared<RowScore>>,
    /// Whether numbers and shape are enough to know what all of them say.
    is_by_numbers: bool,
    shapes: Vec<Option<ShapeAnswer>>,
}

/// What a plugin has prepared.
struct Prepared<T> {
    name: &'static str,
    /// Its position among the filters or the final scores.
    position: usize,
    weight: i32,
    answer: T,
}

/// What the plugins say that look only at a row's shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapeAnswer {
    pub(super) passes: bool,
    /// The sum of their scores, times their weights.
    pub(super) score: i32,
}

/// What is known of a row by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowAnswer {
    Rejected,
    /// The sum of all final scores.
    Passed(i32),
    /// The plugins have to be asked.
    Unknown,
}

impl RowAnswers {
    /// Has the plugins prepare what they can.
    pub(super) fn prepare(plugins: &LocalPlugins, cycle: &Cycle<'_>) -> Self {
        let mut is_by_numbers = plugins.ranged.is_empty();
        let (mut filters, mut scores) = (Vec::new(), Vec::new());
        for (position, filter) in plugins.filters.iter().enumerate().filter(|(_, filter)| !filter.by_shape) {
            let name = filter.named.name;
            match filter.named.run(|plugin| plugin.filter_row(cycle)) {
                Some(answer) => filters.push(Prepared { name, position, weight: 0, answer }),
                None => is_by_numbers = false,
            }
        }
        for (position, score) in plugins.scores.iter().enumerate().filter(|(_, score)| !score.by_shape) {
            let (name, weight) = (score.named.name, score.weight as i32);
            match score.named.run(|plugin| plugin.score_row(cycle)) {
                Some(answer) => scores.push(Prepared { name, position, weight, answer }),
                None => is_by_numbers = false,
            }
        }
        RowAnswers { filters, scores, is_by_numbers, shapes: Vec::new() }
    }

    /// What all plugins say about a row of that shape with these numbers.
    pub(super) fn of_row(&self, numbers: &NodeNumbers, shape: usize) -> RowAnswer {
        let Some(Some(by_shape)) = self.shapes.get(shape) else { return RowAnswer::Unknown };
        if !numbers.are_exact() {
            return RowAnswer::Unknown;
        }
        if !by_shape.passes {
            return RowAnswer::Rejected;
        }
        for Prepared { name, answer, .. } in &self.filters {
            if !witness::run(name, || answer(numbers)) {
                return RowAnswer::Rejected;
            }
        }
        let mut sum = by_shape.score;
        for Prepared { name, weight, answer, .. } in &self.scores {
            let score = witness::run(name, || answer(numbers));
            if !(0..=MAX_NODE_SCORE as i32).contains(&score) {
                return RowAnswer::Unknown;
            }
            sum += score * weight;
        }
        RowAnswer::Passed(sum)
    }

    /// What a filter says by numbers, if it goes by them and they are exact.
    pub(super) fn filter(&self, position: usize, numbers: &NodeNumbers) -> Option<bool> {
        let prepared = self.filters.iter().find(|filter| filter.position == position)?;
        numbers.are_exact().then(|| witness::run(prepared.name, || (prepared.answer)(numbers)))
    }

    /// What a score gives by numbers, if it goes by them and they are exact.
    pub(super) fn score(&self, position: usize, numbers: &NodeNumbers) -> Option<i64> {
        let prepared = self.scores.iter().find(|score| score.position == position)?;
        let score = || witness::run(prepared.name, || (prepared.answer)(numbers));
        numbers.are_exact().then(|| i64::from(score()))
    }

    /// Whether it is worth knowing what is said about a shape, and not known yet.
    pub(super) fn wants_shape(&self, shape: usize) -> bool {
        self.is_by_numbers && self.shapes.get(shape).copied().flatten().is_none()
    }

    /// Keeps what is said about a shape.
    pub(super) fn learn_shape(&mut self, shape: usize, answer: ShapeAnswer) {
        remember(&mut self.shapes, shape, answer);
    }
}
