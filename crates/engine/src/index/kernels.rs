//! Plugins that answer for many rows at once, on all cores where there are very many. Hot.
//!
//! The loops are plain and without branches; `pulp` has them compiled for wider registers too, and picks at run time.

use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pulp::{Arch, NullaryFnOnce};
use supercargo_framework::{ColumnView, Cycle, MAX_NODE_SCORE, witness};

use super::local::{LocalPlugins, LocalScore};
use super::recipe::PluginSet;
use super::tree::ABSENT;

/// For fewer rows than this, another core is not worth waking up: 100,000 rows take two cores longer than one.
const ROWS_PER_CORE_MIN: usize = 1 << 17;
/// So many rows are asked about at once: the numbers that plugins write about them stay near the processor.
const BLOCK_ROWS: usize = 1 << 13;
/// More cores than this wait for memory.
const CORES_MAX: usize = 8;

/// Asks the plugins that answer for many rows at once: clears the rows that do not pass, and adds up the scores of all.
///
/// The plugins that have to be asked row by row are left in `others`; those that are there already are not asked. False if a score
/// is out of range.
pub(super) fn run(
    plugins: &LocalPlugins,
    cycle: &Cycle<'_>,
    numbers: ColumnView<'_>,
    rows: &mut RowBuffers,
    others: &mut Others,
) -> bool {
    let known = *others;
    if let Some(in_range) = run_split(plugins, cycle, Part::all(numbers, rows), others) {
        return in_range;
    }
    // Rows that were rejected stay so, and sums are written anew.
    *others = known;
    Part::all(numbers, rows).run(plugins, cycle, others)
}

/// Asks about the rows in parts; none if a plugin answers for some of the parts only.
fn run_split(plugins: &LocalPlugins, cycle: &Cycle<'_>, rows: Part<'_>, others: &mut Others) -> Option<bool> {
    let count = rows.passed.len();
    let cores = if count < 2 * ROWS_PER_CORE_MIN { 1 } else { cores().min(count / ROWS_PER_CORE_MIN) };
    let known = *others;
    let mut parts = rows.split(count.div_ceil(cores).max(1));
    let Some(first) = parts.next() else { return Some(true) };
    if cores == 1 {
        return first.run_in_blocks(plugins, cycle, others);
    }
    std::thread::scope(|scope| {
        let worker = |part: Part<'_>| {
            let mut others = known;
            let work = AssertUnwindSafe(|| part.run_in_blocks(plugins, cycle, &mut others));
            let in_range = catch_unwind(work).map_err(|panic| (panic, witness::running()))?;
            Ok((in_range, others))
        };
        let workers: Vec<_> = parts.map(|part| scope.spawn(move || worker(part))).collect();
        // This core does its part too.
        let mut all_in_range = first.run_in_blocks(plugins, cycle, others);
        for worker in workers {
            // A plugin that panics there is a panic here, as it would be on one core.
            let done: Done = worker.join().unwrap_or_else(|panic| Err((panic, None)));
            let (in_range, found) = done.unwrap_or_else(|(panic, plugin)| {
                witness::set_running(plugin);
                resume_unwind(panic)
            });
            let in_range = in_range.filter(|_| found == *others);
            all_in_range = all_in_range.zip(in_range).map(|(all, this)| all & this);
        }
        all_in_range
    })
}

/// What comes of a part on another core, or who panicked there.
type Done = Result<(Option<bool>, Others), (Box<dyn Any + Send>, Option<&'static str>)>;

/// What is worked out about rows, in the order in which they are asked about.
#[derive(Debug, Default)]
pub(super) struct RowBuffers {
    pub(super) passed: Vec<bool>,
    /// The sums of the final scores, as far as they are known. They fit unless a score is out of range; then they are not used.
    sums: Vec<i16>,
    /// What the plugin gives that is asked. Not cleared between plugins.
    scores: Vec<i32>,
    /// The rows that were rejected for many at once.
    pub(super) rejected: Vec<bool>,
}

impl RowBuffers {
    /// Begins anew with the rows that have nodes; the sums are those of before until [`run`] was called.
    pub(super) fn restart(&mut self, occupied: &[bool]) {
        self.passed.clear();
        self.passed.extend_from_slice(occupied);
        self.sums.resize(occupied.len(), 0);
        self.scores.resize(occupied.len(), 0);
    }

    /// Adds a score to the sum of a row.
    pub(super) fn add(&mut self, row: usize, score: i32) {
        self.sums[row] = self.sums[row].wrapping_add(score as i16);
    }
}

/// Writes the value of each row: the sum of its scores, or [`ABSENT`] if it did not pass.
pub(super) fn write_values(rows: &RowBuffers, values: &mut Vec<i16>) {
    values.resize(rows.passed.len(), ABSENT);
    Arch::new().dispatch(WriteValues { passed: &rows.passed, sums: &rows.sums, values });
}

struct WriteValues<'a> {
    passed: &'a [bool],
    sums: &'a [i16],
    values: &'a mut [i16],
}

impl NullaryFnOnce for WriteValues<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for ((value, sum), passed) in self.values.iter_mut().zip(self.sums).zip(self.passed) {
            // All bits of what is absent are set.
            *value = (*sum).max(0) | (i16::from(*passed) - 1);
        }
    }
}

/// The positions of the plugins that have to be asked row by row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Others {
    pub(super) filters: PluginSet,
    pub(super) scores: PluginSet,
}

struct Part<'a> {
    view: ColumnView<'a>,
    passed: &'a mut [bool],
    sums: &'a mut [i16],
    scores: &'a mut [i32],
}

impl<'a> Part<'a> {
    fn all(view: ColumnView<'a>, rows: &'a mut RowBuffers) -> Self {
        Part { view, passed: &mut rows.passed, sums: &mut rows.sums, scores: &mut rows.scores }
    }

    /// Parts of so many rows; the last one may have fewer.
    fn split(self, size: usize) -> impl Iterator<Item = Part<'a>> {
        let Part { view, passed, sums, scores } = self;
        let parts = passed.chunks_mut(size).zip(sums.chunks_mut(size)).zip(scores.chunks_mut(size));
        parts.enumerate().map(move |(number, ((passed, sums), scores))| {
            let view = view.part(number * size..number * size + passed.len());
            Part { view, passed, sums, scores }
        })
    }

    /// Asks about some rows after the others, so that what was written about them is at hand for the next plugin; none if a plugin
    /// answers for some of them only.
    fn run_in_blocks(self, plugins: &LocalPlugins, cycle: &Cycle<'_>, others: &mut Others) -> Option<bool> {
        let (mut all_in_range, mut before) = (true, None);
        for block in self.split(BLOCK_ROWS) {
            all_in_range &= block.run(plugins, cycle, others);
            if before.is_some_and(|before| before != *others) {
                return None;
            }
            before = Some(*others);
        }
        Some(all_in_range)
    }

    fn run(self, plugins: &LocalPlugins, cycle: &Cycle<'_>, others: &mut Others) -> bool {
        let Part { view, passed, sums, scores } = self;
        for (position, filter) in plugins.filters.iter().enumerate() {
            if !others.filters.contains(position)
                && !filter.named.run(|plugin| plugin.filter_rows(cycle, view, passed))
            {
                others.filters.insert(position);
            }
        }
        let (mut all_in_range, mut is_first) = (true, true);
        for (position, LocalScore { named, weight, .. }) in plugins.scores.iter().enumerate() {
            if others.scores.contains(position) {
                continue;
            }
            if !named.run(|plugin| plugin.score_rows(cycle, view, scores)) {
                others.scores.insert(position);
                continue;
            }
            let work = AddScores { sums: &mut *sums, scores: &*scores, weight: *weight as i16, is_first };
            is_first = false;
            if !Arch::new().dispatch(work) {
                // Rows that do not pass may have any score, but hardly ever have an odd one.
                let is_odd = |score: i32| !(0..=MAX_NODE_SCORE as i32).contains(&score);
                all_in_range &= !scores.iter().zip(&*passed).any(|(score, passed)| *passed && is_odd(*score));
            }
        }
        if is_first {
            sums.fill(0);
        }
        all_in_range
    }
}

/// Adds the scores of one plugin to the sums of all rows; false if one is out of range.
struct AddScores<'a> {
    sums: &'a mut [i16],
    scores: &'a [i32],
    weight: i16,
    /// Whether the sums are of before, and to be written over.
    is_first: bool,
}

impl NullaryFnOnce for AddScores<'_> {
    type Output = bool;

    #[inline(always)]
    fn call(self) -> bool {
        let AddScores { sums, scores, weight, is_first } = self;
        let kept = if is_first { 0 } else { -1 };
        // A number is out of range if it, or what it lacks to the highest, is below zero.
        let mut signs = 0;
        for (sum, score) in sums.iter_mut().zip(scores) {
            signs |= *score | (MAX_NODE_SCORE as i32).wrapping_sub(*score);
            *sum = (*sum & kept).wrapping_add((*score as i16).wrapping_mul(weight));
        }
        signs >= 0
    }
}

/// How many cores there are to use. What comes out does not depend on it.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(CORES_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use supercargo_framework::{Columns, Named, Score, Status};
    use supercargo_model::NodeRef;
    use supercargo_testkit::{cluster, node, pod};

    use super::*;

    /// Gives each node 7, many at once where all numbers are exact.
    struct Seven;

    impl Score for Seven {
        fn score(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
            Ok(7)
        }

        fn score_rows(&self, _: &Cycle<'_>, columns: ColumnView<'_>, scores: &mut [i32]) -> bool {
            scores.fill(7);
            columns.are_exact()
        }
    }

    #[test]
    fn a_plugin_that_answers_for_some_parts_only_is_asked_row_by_row() {
        let mut cluster = cluster().with(node("plain")).with(node("vast").memory("100Pi"));
        let named = Named { name: "Seven", number: 0, plugin: Arc::new(Seven) as Arc<dyn Score> };
        let scores = vec![LocalScore { named, weight: 3, by_shape: false }];
        let plugins = LocalPlugins { scores, ..LocalPlugins::default() };
        let pod = cluster.pod(pod("p"));
        let (cycle, mut rows) = (cluster.cycle(&pod), RowBuffers::default());
        for count in [100, 2 * BLOCK_ROWS, 2 * ROWS_PER_CORE_MIN] {
            for vast in [None, Some(0), Some(count / 2), Some(count - 1)] {
                let mut columns = Columns::default();
                columns.resize(count);
                for place in 0..count {
                    let name = if Some(place) == vast { "vast" } else { "plain" };
                    columns.set(place, cluster.node(name));
                }
                rows.restart(&vec![true; count]);
                let mut others = Others::default();
                assert!(run(&plugins, &cycle, columns.view(0..count), &mut rows, &mut others));
                let sum = if vast.is_some() { 0 } else { 21 };
                assert_eq!(others.scores.contains(0), vast.is_some(), "{count} rows, {vast:?}");
                assert!(rows.sums.iter().all(|found| *found == sum), "{count} rows, {vast:?}");
            }
        }
    }

    #[test]
    fn scores_out_of_range_are_found() {
        for (score, in_range) in
            [(0, true), (100, true), (-1, false), (101, false), (i32::MIN, false), (i32::MAX, false)]
        {
            let (mut sums, mut scores) = ([5; 40], [50; 40]);
            scores[33] = score;
            let add = AddScores { sums: &mut sums, scores: &scores, weight: 2, is_first: false };
            assert_eq!(Arch::new().dispatch(add), in_range, "{score}");
            assert_eq!(sums[0], 105);
        }
    }
}
