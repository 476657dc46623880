//! Scores that are normalised by the lowest and the highest of all feasible rows. Hot.
//!
//! The final scores are part of the values of rows. They hold as long as the lowest and the highest score are what they were, and
//! as long as a decision looks at all rows of the base; where filters that count leave some out, the others are normalised anew.

use supercargo_framework::{Cycle, MAX_NODE_SCORE, NodeScore, Normalization};
use supercargo_model::Row;

use super::kernels::RowBuffers;
use super::local::LocalScore;
use super::table::Table;

/// All scores of a base that are normalised like that.
#[derive(Default)]
pub(super) struct RangedScores(Vec<Ranged>);

/// What came of scoring a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeOutcome {
    /// The sum of the final scores is known; none if the row is not feasible.
    Scored(Option<i32>),
    /// The lowest or the highest is another now: all rows have to be scored again.
    Moved,
    /// A plugin failed.
    Failed,
}

impl RangedScores {
    pub(super) fn of(scores: &[LocalScore]) -> Self {
        RangedScores(scores.iter().cloned().map(Ranged::new).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// About how many bytes a row takes.
    pub(super) fn bytes_per_row(&self) -> usize {
        self.0.len() * (size_of::<Option<i64>>() + size_of::<i32>())
    }

    /// Replaces the final scores in the totals of some rows by those that they have among themselves; false if a plugin fails.
    pub(super) fn renormalize(&self, cycle: &Cycle<'_>, totals: &mut [(u32, i64)]) -> bool {
        self.0.iter().all(|ranged| ranged.renormalize(cycle, totals))
    }

    /// Adds the final scores of all rows that passed; false if a plugin fails.
    pub(super) fn score_all(&mut self, cycle: &Cycle<'_>, table: &Table, rows: &mut RowBuffers) -> bool {
        let mut is_failed = false;
        for ranged in &mut self.0 {
            ranged.by_shape.clear();
            ranged.raw.clear();
            for row in 0..rows.passed.len() {
                let raw = rows.passed[row].then(|| ranged.raw_score(cycle, row as u32, table));
                is_failed |= raw == Some(None);
                ranged.raw.push(raw.flatten());
            }
            is_failed |= !ranged.normalize_all(cycle, rows);
        }
        !is_failed
    }

    /// Adds the final scores of a row to the sum of its others; there is none if it is not feasible.
    pub(super) fn score(
        &mut self,
        cycle: &Cycle<'_>,
        row: u32,
        sum: Option<i32>,
        table: &Table,
    ) -> RangeOutcome {
        let mut sum = sum;
        for ranged in &mut self.0 {
            let raw = sum.map(|_| ranged.raw_score(cycle, row, table));
            let Some(raw) = raw.map_or(Some(None), |raw| raw.map(Some)) else {
                return RangeOutcome::Failed;
            };
            if !ranged.set(row as usize, raw) {
                return RangeOutcome::Moved;
            }
            if let (Some(raw), Some(sum)) = (raw, &mut sum) {
                let Some(score) = ranged.final_score(cycle, raw) else { return RangeOutcome::Failed };
                ranged.finals[row as usize] = score;
                *sum += score;
            }
        }
        RangeOutcome::Scored(sum)
    }
}

/// The scores of one plugin.
struct Ranged {
    score: LocalScore,
    /// What it gives rows of each shape, if that is all that it looks at.
    by_shape: Vec<Option<i64>>,
    /// What the plugin gives each feasible row.
    raw: Vec<Option<i64>>,
    /// What that comes to, times the weight.
    finals: Vec<i32>,
    /// The score of rows that stand beside the others, if the plugin has such a score.
    beside: Option<i64>,
    /// The lowest and the highest of them, and how many rows have it.
    lowest: Extreme,
    highest: Extreme,
    buffer: Vec<NodeScore>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Extreme {
    score: i64,
    rows: usize,
}

impl Ranged {
    fn new(score: LocalScore) -> Self {
        let beside = match score.named.plugin.normalization() {
            Normalization::ByRangeBeside(score) => Some(score),
            _ => None,
        };
        Ranged {
            score,
            beside,
            by_shape: Vec::new(),
            raw: Vec::new(),
            finals: Vec::new(),
            lowest: Extreme::default(),
            highest: Extreme::default(),
            buffer: Vec::new(),
        }
    }

    /// What the plugin gives a row; none if it fails.
    fn raw_score(&mut self, cycle: &Cycle<'_>, row: u32, table: &Table) -> Option<i64> {
        let (node, shape) = (cycle.cluster().node(Row(row)), table.shapes[row as usize] as usize);
        let known = self.score.by_shape.then_some(&mut self.by_shape);
        self.score.of_row(cycle, node, shape, known)
    }

    /// Adds the final scores of all rows, times the weight, to their sums; false if the plugin fails.
    fn normalize_all(&mut self, cycle: &Cycle<'_>, rows: &mut RowBuffers) -> bool {
        let scores = || self.raw.iter().flatten().copied().filter(|score| Some(*score) != self.beside);
        let (lowest, highest) = (scores().min().unwrap_or(0), scores().max().unwrap_or(0));
        let extreme = |score| Extreme { score, rows: scores().filter(|other| *other == score).count() };
        (self.lowest, self.highest) = (extreme(lowest), extreme(highest));
        let feasible = self.raw.iter().enumerate().filter_map(|(row, score)| Some((row as u32, (*score)?)));
        self.buffer.clear();
        self.buffer.extend(feasible.map(|(row, score)| NodeScore { row: Row(row), score }));
        let named = &self.score.named;
        let is_success = named.run(|plugin| plugin.normalize(cycle, &mut self.buffer)).is_success();
        self.finals.clear();
        self.finals.resize(self.raw.len(), 0);
        for NodeScore { row: Row(row), score } in &self.buffer {
            let score = (score * self.score.weight) as i32;
            self.finals[*row as usize] = score;
            rows.add(*row as usize, score);
        }
        is_success && self.buffer.iter().all(|score| is_final(score.score))
    }

    fn renormalize(&self, cycle: &Cycle<'_>, totals: &mut [(u32, i64)]) -> bool {
        let raw =
            |(row, _): &(u32, i64)| self.raw[*row as usize].map(|score| NodeScore { row: Row(*row), score });
        let Some(mut scores) = totals.iter().map(raw).collect::<Option<Vec<NodeScore>>>() else {
            return false;
        };
        let is_success = self.score.named.run(|plugin| plugin.normalize(cycle, &mut scores)).is_success();
        for ((row, total), score) in totals.iter_mut().zip(&scores) {
            *total += score.score * self.score.weight - i64::from(self.finals[*row as usize]);
        }
        is_success && scores.iter().all(|score| is_final(score.score))
    }

    /// Takes the score of one row, none if it is not feasible; false if the lowest or the highest is another now.
    fn set(&mut self, row: usize, new: Option<i64>) -> bool {
        if self.raw.len() <= row {
            self.raw.resize(row + 1, None);
            self.finals.resize(row + 1, 0);
        }
        let old = std::mem::replace(&mut self.raw[row], new);
        if old == new {
            return true;
        }
        let counted = |score: Option<i64>| score.filter(|score| Some(*score) != self.beside);
        let (old, new) = (counted(old), counted(new));
        for extreme in [&mut self.lowest, &mut self.highest] {
            extreme.rows -= usize::from(old == Some(extreme.score));
            extreme.rows += usize::from(new == Some(extreme.score));
        }
        let is_within = |score: i64| (self.lowest.score..=self.highest.score).contains(&score);
        // Where no row counts, there is no range that could be another now.
        let is_range_kept = self.lowest.rows > 0 && self.highest.rows > 0 || old.is_none() && new.is_none();
        is_range_kept && new.is_none_or(is_within)
    }

    /// What a score comes to, as things are, times the weight; none if the plugin fails.
    fn final_score(&mut self, cycle: &Cycle<'_>, score: i64) -> Option<i32> {
        self.buffer.clear();
        let range = [self.lowest, self.highest].into_iter().filter(|extreme| extreme.rows > 0);
        let scores = std::iter::once(score).chain(range.map(|extreme| extreme.score));
        self.buffer.extend(scores.map(|score| NodeScore { row: Row(0), score }));
        let named = &self.score.named;
        let is_success = named.run(|plugin| plugin.normalize(cycle, &mut self.buffer)).is_success();
        let score = self.buffer[0].score;
        (is_success && is_final(score)).then_some((score * self.score.weight) as i32)
    }
}

fn is_final(score: i64) -> bool {
    (0..=MAX_NODE_SCORE).contains(&score)
}
