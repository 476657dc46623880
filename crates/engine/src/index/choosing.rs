//! Choosing among the rows that a pod fits on. Hot.

use std::collections::BTreeMap;

use supercargo_framework::{Cycle, witness};
use supercargo_model::Row;

use super::base::Base;
use super::class::Indexed;
use super::domain_sets::DecisionDomains;
use super::groups::{GroupRows, Member, normalize};
use super::plain::UNKEPT_ANSWERS;
use super::tree::{ABSENT, Plane};
use super::{Found, Index, Question};
use crate::chance::{Ties, drawn_row};

impl Index {
    /// Picks the best row where all feasible rows are in one part and nothing is counted, so that there is but one group, without
    /// forming it; none if it is not so simple.
    pub(super) fn choose_in_one_part(
        &self,
        question: &Question<'_>,
        indexed: &Indexed,
        base: &Base,
    ) -> Option<Found> {
        let Question { context, rules, .. } = question;
        let [plane] = &*base.planes else { return None };
        let feasible = plane.len();
        if feasible < 2
            || rules.ties != Ties::Seeded
            || indexed.counts_anything()
            || context.cluster.nominated().next().is_some()
        {
            return None;
        }
        let best = plane.best();
        let Row(start) = drawn_row(context.cluster, context.seed);
        let row = plane.first(best, start, &[])?;
        let relative = base.common_relative?;
        Some(Found::Place { row: Row(row), score: relative + i64::from(best), feasible })
    }

    /// Picks the best of the feasible groups, and a row of it.
    pub(super) fn choose(
        &mut self,
        question: &Question<'_>,
        indexed: &mut Indexed,
        base: &Base,
        feasible: usize,
    ) -> Found {
        let Question { context, pod, rules, .. } = question;
        self.scratch.keep_feasible();
        let scratch = &mut self.scratch;
        if feasible == 1 && !rules.score_single_node {
            let member = scratch.members[0];
            let best = best_value(member, 0, indexed, base, &scratch.singles);
            let row = first_row(member, best, 0, indexed, base, &scratch.singles);
            return row.map_or(Found::Unknown(UNKEPT_ANSWERS), |row| Found::Place {
                row: Row(row),
                score: 0,
                feasible,
            });
        }
        // What the groups get beside the values of their rows.
        scratch.totals.clear();
        scratch.totals.resize(scratch.members.len(), base.common_relative.unwrap_or(0));
        if base.common_relative.is_none() {
            let state = std::mem::take(&mut indexed.state);
            let cycle = Cycle::resume(pod, context.clone(), state);
            let mut normalized = true;
            for (number, relative) in base.relative().iter().enumerate() {
                let raw =
                    scratch.members.iter().map(|member| base.parts[usize::from(member.part)].raw[number]);
                normalized &= normalize(relative, &cycle, raw, &mut self.node_scores);
                for (total, score) in scratch.totals.iter_mut().zip(&self.node_scores) {
                    *total += score.score * relative.weight;
                }
            }
            indexed.state = cycle.into_state();
            if !normalized {
                return Found::Unknown(UNKEPT_ANSWERS);
            }
        }
        let mut scores = std::mem::take(&mut scratch.scores);
        let mut numbers = std::mem::take(&mut scratch.numbers);
        for class_score in &indexed.scores {
            scores.clear();
            scores.resize(scratch.members.len(), 0);
            let domains = DecisionDomains {
                counters: &indexed.counters,
                members: &scratch.members,
                cells: &scratch.cells,
                singles: &scratch.singles,
                planes: indexed.planes.as_ref(),
                keys: &self.counting.keys,
            };
            let view = scratch.view(class_score.first_cell, Some(&domains));
            witness::run(class_score.name, || class_score.score.score(&view, &mut numbers, &mut scores));
            for (total, score) in scratch.totals.iter_mut().zip(&scores) {
                *total += *score * class_score.weight;
            }
        }
        (scratch.scores, scratch.numbers) = (scores, numbers);
        if base.is_ranged() && feasible != base.feasible() {
            self.statistics.row_by_row += 1;
            return self.choose_by_row(question, indexed, base, feasible);
        }
        let Row(start) = drawn_row(context.cluster, context.seed);
        scratch.bests.clear();
        for (member, total) in scratch.members.iter().zip(&mut scratch.totals) {
            let best = best_value(*member, start, indexed, base, &scratch.singles);
            scratch.bests.push(best);
            *total += i64::from(best);
        }
        let best = scratch.totals.iter().copied().max().unwrap_or(0);
        if rules.ties == Ties::SmallestName {
            self.table.learn_names(context.cluster);
        }
        match self.pick(question, indexed, base, best) {
            Some(row) => Found::Place { row, score: best, feasible },
            None => Found::Unknown(UNKEPT_ANSWERS),
        }
    }

    /// Picks the best of the feasible rows, one by one: filters that count leave some out, so that scores which are normalised by the
    /// lowest and the highest are other ones than those in the values of rows. `totals` has what each group gets beside them.
    fn choose_by_row(
        &self,
        question: &Question<'_>,
        indexed: &mut Indexed,
        base: &Base,
        feasible: usize,
    ) -> Found {
        let Question { context, pod, rules, .. } = question;
        let scratch = &self.scratch;
        let (plane_of, planes) = match &indexed.planes {
            None => (&base.part_of, base.planes.len()),
            Some(planes) => (&planes.of_row, planes.planes.len()),
        };
        let mut of_plane: Vec<Option<i64>> = vec![None; planes];
        let mut of_single: BTreeMap<u32, i64> = BTreeMap::new();
        for (member, total) in scratch.members.iter().zip(&scratch.totals) {
            match member.rows {
                GroupRows::Plane(number) => of_plane[usize::from(number)] = Some(*total),
                GroupRows::Single(row) => {
                    of_single.insert(row, *total);
                }
            }
        }
        let total = |row: u32| match scratch.singles.binary_search(&row) {
            Ok(_) => of_single.get(&row).copied(),
            Err(_) => of_plane[usize::from(plane_of[row as usize])],
        };
        let rows = (0..base.values.len() as u32).filter(|row| base.values[*row as usize] != ABSENT);
        let mut totals: Vec<(u32, i64)> = rows.filter_map(|row| Some((row, total(row)?))).collect();
        let cycle = Cycle::resume(pod, context.clone(), std::mem::take(&mut indexed.state));
        let normalized = base.add_ranged(&cycle, &mut totals);
        indexed.state = cycle.into_state();
        let best = totals.iter().map(|(_, total)| *total).max();
        let Some(best) = best.filter(|_| normalized && totals.len() == feasible) else {
            return Found::Unknown(UNKEPT_ANSWERS);
        };
        let tied = totals.iter().filter(|(_, total)| *total == best).map(|(row, _)| Row(*row));
        let row = match rules.ties {
            Ties::Seeded => {
                let start = drawn_row(context.cluster, context.seed);
                tied.min_by_key(|row| (*row < start, *row))
            }
            Ties::SmallestName => tied.min_by_key(|row| context.cluster.node(*row).name()),
        };
        row.map_or(Found::Unknown(UNKEPT_ANSWERS), |row| Found::Place { row, score: best, feasible })
    }

    /// The row that is taken among those with the best total.
    fn pick(&self, question: &Question<'_>, indexed: &Indexed, base: &Base, best: i64) -> Option<Row> {
        let (cluster, scratch) = (question.context.cluster, &self.scratch);
        let tied = || {
            let groups = scratch.members.iter().zip(&scratch.bests).zip(&scratch.totals);
            groups.filter(|(_, total)| **total == best).map(|((member, value), _)| (*member, *value))
        };
        match question.rules.ties {
            Ties::Seeded => {
                let Row(start) = drawn_row(cluster, question.context.seed);
                let rows = tied().filter_map(|(member, value)| {
                    first_row(member, value, start, indexed, base, &scratch.singles)
                });
                rows.min_by_key(|row| (*row < start, *row)).map(Row)
            }
            Ties::SmallestName if self.table.is_by_name() => {
                let rows = tied().filter_map(|(member, value)| {
                    first_row(member, value, 0, indexed, base, &scratch.singles)
                });
                rows.min().map(Row)
            }
            Ties::SmallestName => {
                let mut smallest: Option<Row> = None;
                for (member, value) in tied() {
                    let mut from = 0;
                    while let Some(row) = next_row(member, value, from, indexed, base, &scratch.singles) {
                        let name = cluster.node(Row(row)).name();
                        if smallest.is_none_or(|smallest| name < cluster.node(smallest).name()) {
                            smallest = Some(Row(row));
                        }
                        from = row + 1;
                    }
                }
                smallest
            }
        }
    }
}

fn plane_of<'a>(number: u16, indexed: &'a Indexed, base: &'a Base) -> &'a Plane {
    match &indexed.planes {
        None => &base.planes[usize::from(number)],
        Some(planes) => &planes.planes[usize::from(number)].plane,
    }
}

/// The highest value of a group's rows.
fn best_value(member: Member, start: u32, indexed: &Indexed, base: &Base, singles: &[u32]) -> i16 {
    match member.rows {
        GroupRows::Single(row) => base.values[row as usize],
        GroupRows::Plane(number) if singles.is_empty() => plane_of(number, indexed, base).best(),
        GroupRows::Plane(number) => plane_of(number, indexed, base).best_without(singles, start),
    }
}

/// The first row of a group with that value, from `start` on and then from the beginning on.
fn first_row(
    member: Member,
    value: i16,
    start: u32,
    indexed: &Indexed,
    base: &Base,
    singles: &[u32],
) -> Option<u32> {
    match member.rows {
        GroupRows::Single(row) => Some(row),
        GroupRows::Plane(number) => plane_of(number, indexed, base).first(value, start, singles),
    }
}

/// The first row of a group with that value, from `from` on.
fn next_row(
    member: Member,
    value: i16,
    from: u32,
    indexed: &Indexed,
    base: &Base,
    singles: &[u32],
) -> Option<u32> {
    match member.rows {
        GroupRows::Single(row) => (row >= from).then_some(row),
        GroupRows::Plane(number) => plane_of(number, indexed, base).next(value, from, singles),
    }
}
