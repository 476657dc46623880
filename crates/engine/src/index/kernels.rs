//! Plugins that answer for many rows at once, on all cores where there are very many. Hot.

use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use supercargo_framework::{ColumnView, Cycle, MAX_NODE_SCORE, witness};

use super::local::{LocalPlugins, LocalScore};
use super::recipe::PluginSet;

/// For fewer rows than this, another core is not worth waking up.
const ROWS_PER_CORE_MIN: usize = 1 << 14;
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
    let RowBuffers { passed, sums, scores, .. } = rows;
    let count = passed.len();
    let cores = if count < 2 * ROWS_PER_CORE_MIN { 1 } else { cores().min(count / ROWS_PER_CORE_MIN) };
    if cores == 1 {
        let part = Part { view: numbers, passed, sums, scores };
        return part.run(plugins, cycle, others);
    }
    let size = count.div_ceil(cores);
    let parts = passed.chunks_mut(size).zip(sums.chunks_mut(size)).zip(scores.chunks_mut(size));
    let parts = parts.enumerate().map(|(number, ((passed, sums), scores))| {
        let view = numbers.part(number * size..number * size + passed.len());
        Part { view, passed, sums, scores }
    });
    let known = *others;
    std::thread::scope(|scope| {
        let worker = |part: Part<'_>| {
            let mut others = known;
            let work = AssertUnwindSafe(|| part.run(plugins, cycle, &mut others));
            let in_range = catch_unwind(work).map_err(|panic| (panic, witness::running()))?;
            Ok((in_range, others))
        };
        let workers: Vec<_> = parts.map(|part| scope.spawn(move || worker(part))).collect();
        let mut all_in_range = true;
        for worker in workers {
            // A plugin that panics there is a panic here, as it would be on one core.
            let done: Done = worker.join().unwrap_or_else(|panic| Err((panic, None)));
            let (in_range, found) = done.unwrap_or_else(|(panic, plugin)| {
                witness::set_running(plugin);
                resume_unwind(panic)
            });
            all_in_range &= in_range;
            *others = found;
        }
        all_in_range
    })
}

/// What comes of a part on another core, or who panicked there.
type Done = Result<(bool, Others), (Box<dyn Any + Send>, Option<&'static str>)>;

/// What is worked out about rows, in the order in which they are asked about.
#[derive(Debug, Default)]
pub(super) struct RowBuffers {
    pub(super) passed: Vec<bool>,
    pub(super) sums: Vec<i32>,
    pub(super) scores: Vec<i32>,
    /// The rows that were rejected for many at once.
    pub(super) rejected: Vec<bool>,
}

/// The positions of the plugins that have to be asked row by row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Others {
    pub(super) filters: PluginSet,
    pub(super) scores: PluginSet,
}

struct Part<'a> {
    view: ColumnView<'a>,
    passed: &'a mut [bool],
    sums: &'a mut [i32],
    scores: &'a mut [i32],
}

impl Part<'_> {
    fn run(self, plugins: &LocalPlugins, cycle: &Cycle<'_>, others: &mut Others) -> bool {
        let Part { view, passed, sums, scores } = self;
        for (position, filter) in plugins.filters.iter().enumerate() {
            if !others.filters.contains(position)
                && !filter.named.run(|plugin| plugin.filter_rows(cycle, view, passed))
            {
                others.filters.insert(position);
            }
        }
        let mut all_in_range = true;
        for (position, LocalScore { named, weight, .. }) in plugins.scores.iter().enumerate() {
            if others.scores.contains(position) {
                continue;
            }
            if !named.run(|plugin| plugin.score_rows(cycle, view, scores)) {
                others.scores.insert(position);
                continue;
            }
            add_weighted(sums, scores, *weight as i32);
            // Rows that do not pass may have any score, but hardly ever have an odd one.
            let is_odd = |score: i32| (score < 0) | (score > MAX_NODE_SCORE as i32);
            if scores.iter().fold(false, |any, score| any | is_odd(*score)) {
                all_in_range &= !scores.iter().zip(&*passed).any(|(score, passed)| *passed && is_odd(*score));
            }
        }
        all_in_range
    }
}

fn add_weighted(sums: &mut [i32], scores: &[i32], weight: i32) {
    // Most weights are 1, and many processors multiply several numbers at once only in a roundabout way.
    if weight == 1 {
        for (sum, score) in sums.iter_mut().zip(scores) {
            *sum += *score;
        }
    } else {
        for (sum, score) in sums.iter_mut().zip(scores) {
            *sum += *score * weight;
        }
    }
}

/// How many cores there are to use. What comes out does not depend on it.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(CORES_MAX)
}
