//! The plugins of a base are asked: about one row, or about all of them. Hot.

use supercargo_framework::{Cycle, MAX_NODE_SCORE, NodeNumbers, Status};
use supercargo_model::Row;

use super::Base;
use crate::index::kernels::{self, Others, RowBuffers};
use crate::index::local::remember;
use crate::index::row_answers::{RowAnswers, ShapeAnswer};
use crate::index::table::Table;

impl Base {
    /// The sum of the final scores of a row; none if a filter rejects it.
    pub(super) fn sum_of_row(
        &mut self,
        cycle: &Cycle<'_>,
        row: u32,
        numbers: &NodeNumbers,
        table: &Table,
        answers: &mut RowAnswers,
    ) -> Option<i32> {
        let shape = table.shapes[row as usize] as usize;
        if answers.wants_shape(shape) {
            let answer = self.shape_answer(cycle, row, shape);
            answers.learn_shape(shape, answer);
        }
        for index in 0..self.plugins.filters.len() {
            let by_numbers = answers.filter(index, numbers);
            if !by_numbers.unwrap_or_else(|| self.filter_passes(index, cycle, row, shape)) {
                return None;
            }
        }
        let mut sum = 0;
        for index in 0..self.plugins.scores.len() {
            sum += match answers.score(index, numbers) {
                Some(score) => self.weighted(index, Some(score)),
                None => self.score_of_row(index, cycle, row, shape),
            };
        }
        Some(sum)
    }

    /// What the plugins say about a row that look only at its shape.
    fn shape_answer(&mut self, cycle: &Cycle<'_>, row: u32, shape: usize) -> ShapeAnswer {
        let filters = 0..self.plugins.filters.len();
        let passes = { filters }.all(|index| {
            !self.plugins.filters[index].by_shape || self.filter_passes(index, cycle, row, shape)
        });
        let mut score = 0;
        for index in 0..self.plugins.scores.len() {
            if passes && self.plugins.scores[index].by_shape {
                score += self.score_of_row(index, cycle, row, shape);
            }
        }
        ShapeAnswer { passes, score }
    }

    /// What a final score gives a row, times its weight.
    fn score_of_row(&mut self, index: usize, cycle: &Cycle<'_>, row: u32, shape: usize) -> i32 {
        let score = &self.plugins.scores[index];
        let cache = score.by_shape.then_some(&mut self.shape_answers.scores[index]);
        let found = score.of_row(cycle, cycle.cluster().node(Row(row)), shape, cache);
        self.weighted(index, found)
    }

    /// A score times its weight; if there is none that can be kept, nobody may use this base.
    fn weighted(&mut self, index: usize, score: Option<i64>) -> i32 {
        match score {
            Some(score) if (0..=MAX_NODE_SCORE).contains(&score) => {
                (score * self.plugins.scores[index].weight) as i32
            }
            _ => {
                self.broken = true;
                0
            }
        }
    }

    fn filter_passes(&mut self, index: usize, cycle: &Cycle<'_>, row: u32, shape: usize) -> bool {
        let filter = &self.plugins.filters[index];
        if !filter.by_shape {
            let status = filter.named.run(|plugin| plugin.filter(cycle, cycle.cluster().node(Row(row))));
            return self.accepts(&status);
        }
        if let Some(Some(answer)) = self.shape_answers.filters[index].get(shape) {
            return *answer;
        }
        let status = filter.named.run(|plugin| plugin.filter(cycle, cycle.cluster().node(Row(row))));
        let answer = self.accepts(&status);
        remember(&mut self.shape_answers.filters[index], shape, answer);
        answer
    }

    fn accepts(&mut self, status: &Status) -> bool {
        self.broken |= !status.is_success() && !status.is_rejected();
        status.is_success()
    }

    /// Asks the plugins about all rows.
    pub(super) fn evaluate(&mut self, cycle: &Cycle<'_>, table: &Table, rows: &mut RowBuffers) {
        rows.restart(&table.occupied);
        let mut others = Others::default();
        self.broken |= !kernels::run(&self.plugins, cycle, table.numbers(), rows, &mut others);
        self.try_earlier_filters(cycle, table, rows, &others);
        for index in others.filters.iter() {
            self.filter(index, cycle, table, &mut rows.passed);
        }
        for index in others.scores.iter() {
            for row in 0..rows.passed.len() {
                if rows.passed[row] {
                    let score = self.score_of_row(index, cycle, row as u32, table.shapes[row] as usize);
                    rows.add(row, score);
                }
            }
        }
    }

    /// Asks about the rows that were rejected for many at once whether a filter that comes before those fails there: the
    /// first word on a row would be that failure.
    fn try_earlier_filters(
        &mut self,
        cycle: &Cycle<'_>,
        table: &Table,
        rows: &mut RowBuffers,
        others: &Others,
    ) {
        let asked_at_once =
            (0..self.plugins.filters.len()).rev().find(|position| !others.filters.contains(*position));
        let Some(last) = asked_at_once.filter(|last| others.filters.iter().any(|position| position < *last))
        else {
            return;
        };
        let RowBuffers { passed, rejected, .. } = rows;
        let is_rejected = |(passed, occupied): (&bool, &bool)| !passed & occupied;
        let all = || passed.iter().zip(&table.occupied).map(is_rejected);
        // Without a branch a row: most often there is none.
        if all().fold(false, |any, is_rejected| any | is_rejected) {
            rejected.clear();
            rejected.extend(all());
            for position in others.filters.iter().filter(|position| *position < last) {
                self.filter(position, cycle, table, rejected);
            }
        }
    }

    /// Asks a filter about each row.
    fn filter(&mut self, index: usize, cycle: &Cycle<'_>, table: &Table, passed: &mut [bool]) {
        if self.plugins.filters[index].by_shape && table.shape_count() == 1 {
            // One row answers for all.
            if let Some(row) = passed.iter().position(|passed| *passed)
                && !self.filter_passes(index, cycle, row as u32, 0)
            {
                passed.fill(false);
            }
            return;
        }
        for (row, passed) in passed.iter_mut().enumerate().filter(|(_, passed)| **passed) {
            *passed = self.filter_passes(index, cycle, row as u32, table.shapes[row] as usize);
        }
    }
}
