//! What plugins say about each row that depends on nothing but the row. Hot.
//!
//! Many classes of pods share a base: those that differ only in what is counted across rows, such as the pods of a
//! thousand deployments with the same requests.

mod asking;

use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use supercargo_framework::{Cell, Context, Cycle, CycleState, NodeNumbers, Status};
use supercargo_model::{KindId, NodeRef, Pod, Row};

use super::class::Indexed;
use super::counting::Counting;
use super::groups::normalize;
use super::kernels;
use super::local::{LocalPlugins, LocalScore};
use super::ranged::{RangeOutcome, RangedScores};
use super::rejections::Rejections;
use super::row_answers::{RowAnswer, RowAnswers};
use super::table::{ChangedRow, Table};
use super::tree::{ABSENT, Plane};

/// The parts of bases with up to this many keys are found quickly.
const CACHED_KEYS_MAX: usize = 3;
/// How many of them, as a power of two.
const PART_CACHE_BITS: u32 = 8;
/// When more than one row in so many has changed, all are looked at again.
const REBUILD_SHARE: usize = 8;

/// A topology key that tells the rows of a base apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PartKey {
    pub(super) column: usize,
    /// Whether only having the key matters, because every value is on one node only.
    pub(super) presence_only: bool,
}

/// The rows that are alike in everything but their values: same domains, same relative scores.
#[derive(Debug)]
pub(super) struct Part {
    /// The domain under each key, or [`Cell::NO_DOMAIN`].
    pub(super) domains: Box<[u32]>,
    /// What each relative score gives, before it is normalised.
    pub(super) raw: Box<[i64]>,
}

/// The domains and the raw scores of a part.
type PartId = (Box<[u32]>, Box<[i64]>);

/// All rows as one kind of pod sees them.
pub(super) struct Base {
    plugins: LocalPlugins,
    pod: Arc<Pod>,
    state: CycleState,
    /// The kinds of objects that the plugins read, and the versions that everything here was worked out with.
    pub(super) kinds: Vec<(KindId, u64)>,
    pub(super) keys: Vec<PartKey>,
    /// The sum of the final scores; [`ABSENT`] where a filter rejects the row, or there is no node.
    pub(super) values: Vec<i16>,
    pub(super) part_of: Vec<u16>,
    pub(super) parts: Vec<Part>,
    pub(super) planes: Vec<Plane>,
    /// What the relative scores come to in all parts, where they were the same in all before they were normalised; none if they
    /// were not, or if a plugin failed.
    pub(super) common_relative: Option<i64>,
    parts_by_key: FxHashMap<PartId, u16>,
    /// Parts by domains and shape, those that were looked for last.
    part_cache: Vec<Option<([u32; CACHED_KEYS_MAX + 1], u16)>>,
    cursor: Option<u64>,
    census: u64,
    shape_answers: ShapeAnswers,
    ranged: RangedScores,
    rejections: Option<Rejections>,
    /// A plugin failed, or answered what cannot be kept: no class may use this base.
    broken: bool,
    pub(super) last_used: u64,
    /// Tells it from all bases that ever were.
    pub(super) identity: u64,
    /// Changes when parts get other numbers.
    pub(super) generation: u64,
    /// What plugins have prepared for single rows since all were looked at.
    row_answers: Option<RowAnswers>,
}

/// What plugins that look only at a row's shape said about each shape.
#[derive(Default)]
struct ShapeAnswers {
    filters: Vec<Vec<Option<bool>>>,
    scores: Vec<Vec<Option<i64>>>,
    relative: Vec<Vec<Option<i64>>>,
}

/// A sum of scores as it is kept. What is kept of scores that do not fit is not used.
fn value_of(sum: i32) -> i16 {
    sum.clamp(0, i32::from(i16::MAX)) as i16
}

impl Base {
    /// A base about which nothing has been worked out yet.
    pub(super) fn new() -> Self {
        Base {
            plugins: LocalPlugins::default(),
            pod: Arc::default(),
            state: CycleState::default(),
            kinds: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
            part_of: Vec::new(),
            parts: Vec::new(),
            planes: Vec::new(),
            common_relative: None,
            parts_by_key: FxHashMap::default(),
            part_cache: Vec::new(),
            cursor: None,
            census: 0,
            shape_answers: ShapeAnswers::default(),
            ranged: RangedScores::default(),
            rejections: None,
            broken: false,
            last_used: 0,
            identity: 0,
            generation: 0,
            row_answers: None,
        }
    }

    /// Makes it the base of a class, whatever it was before.
    pub(super) fn assign(&mut self, class: &Indexed) {
        self.plugins = class.plugins.clone();
        self.shape_answers = ShapeAnswers {
            filters: vec![Vec::new(); self.plugins.filters.len()],
            scores: vec![Vec::new(); self.plugins.scores.len()],
            relative: vec![Vec::new(); self.plugins.relative.len()],
        };
        self.ranged = RangedScores::of(&self.plugins.ranged);
        self.pod = class.pod.clone();
        self.state = class.state.clone();
        self.kinds = class.kinds.clone();
        self.keys = class.base_key.keys().to_vec();
        self.cursor = None;
    }

    /// The scores that are normalised over all feasible rows, with their weights.
    pub(super) fn relative(&self) -> &[LocalScore] {
        &self.plugins.relative
    }

    /// Whether a decision has to look at all feasible rows: what holds for some of them is not known.
    pub(super) fn is_ranged(&self) -> bool {
        !self.ranged.is_empty()
    }

    /// Adds to the totals of some rows what they get in all, with scores normalised among just these; false if a plugin fails.
    pub(super) fn add_ranged(&self, cycle: &Cycle<'_>, totals: &mut [(u32, i64)]) -> bool {
        for (row, total) in &mut *totals {
            *total += i64::from(self.values[*row as usize]);
        }
        self.ranged.renormalize(cycle, totals)
    }

    /// How many rows are feasible.
    pub(super) fn feasible(&self) -> usize {
        self.planes.iter().map(Plane::len).sum()
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.values.len() * (11 + self.ranged.bytes_per_row())
            + self.planes.iter().map(Plane::bytes).sum::<usize>()
    }

    /// Reads what will be needed next of a row that a pod goes to.
    pub(super) fn warm(&self, Row(row): Row) {
        black_box((self.values[row as usize], self.part_of[row as usize]));
    }

    /// Brings all rows up to date; false if this base cannot be used. If all are looked at again, that is known by the
    /// number `generation`.
    pub(super) fn catch_up(
        &mut self,
        context: &Context<'_>,
        table: &mut Table,
        counting: &Counting,
        generation: u64,
    ) -> bool {
        let end = table.log.end();
        let census_holds = !self.plugins.reads_census || self.census == table.census;
        let changed = self.cursor.filter(|_| census_holds).and_then(|cursor| table.log.since(cursor));
        match changed {
            Some([]) => return !self.broken,
            Some(rows)
                if rows.len() <= table.rows() / REBUILD_SHARE + 1
                    && !self.broken
                    && self.refresh(context, rows, table, counting) => {}
            _ => self.rebuild(context, table, counting, generation),
        }
        (self.cursor, self.census) = (Some(end), table.census);
        if self.parts.len() > table.limits.parts {
            self.broken = true;
        }
        !self.broken
    }

    #[inline]
    fn grow(&mut self, rows: usize) {
        if self.values.len() != rows {
            self.grow_to(rows);
        }
    }

    #[cold]
    fn grow_to(&mut self, rows: usize) {
        self.values.resize(rows, ABSENT);
        self.part_of.resize(rows, 0);
        if let Some(rejections) = &mut self.rejections {
            rejections.grow(rows);
        }
    }

    /// Looks at some rows again; false if all have to be looked at.
    fn refresh(
        &mut self,
        context: &Context<'_>,
        rows: &[ChangedRow],
        table: &Table,
        counting: &Counting,
    ) -> bool {
        self.grow(table.rows());
        match table.recent_numbers(rows.len()) {
            Some(numbers) => rows.iter().zip(numbers).all(|(changed, numbers)| {
                self.refresh_by_numbers(*changed, numbers, table)
                    || self.ask_again(context, *changed, numbers, table, counting)
            }),
            None => rows.iter().all(|changed| {
                let numbers = NodeNumbers::of(context.cluster.node(Row(changed.row())));
                self.ask_again(context, *changed, &numbers, table, counting)
            }),
        }
    }

    /// Looks at a row again where its numbers say it all; false if the plugins have to be asked.
    fn refresh_by_numbers(&mut self, changed: ChangedRow, numbers: &NodeNumbers, table: &Table) -> bool {
        let row = changed.row();
        let index = row as usize;
        let Some(answers) =
            self.row_answers.as_ref().filter(|_| self.keeps_part(changed) && table.occupied[index])
        else {
            return false;
        };
        let value = match answers.of_row(numbers, table.shapes[index] as usize) {
            RowAnswer::Passed(sum) => value_of(sum),
            RowAnswer::Rejected if self.rejections.is_none() => ABSENT,
            RowAnswer::Rejected | RowAnswer::Unknown => return false,
        };
        let old = std::mem::replace(&mut self.values[index], value);
        self.planes[usize::from(self.part_of[index])].set(row, old, value, table.rows());
        true
    }

    /// Asks the plugins about a row again; false if all rows have to be looked at.
    fn ask_again(
        &mut self,
        context: &Context<'_>,
        changed: ChangedRow,
        numbers: &NodeNumbers,
        table: &Table,
        counting: &Counting,
    ) -> bool {
        let row = changed.row();
        let pod = self.pod.clone();
        let cycle = Cycle::resume(&pod, context.clone(), std::mem::take(&mut self.state));
        let mut answers =
            self.row_answers.take().unwrap_or_else(|| RowAnswers::prepare(&self.plugins, &cycle));
        let sum = if table.occupied[row as usize] {
            self.sum_of_row(&cycle, row, numbers, table, &mut answers)
        } else {
            None
        };
        self.row_answers = Some(answers);
        let outcome = self.ranged.score(&cycle, row, sum, table);
        let holds = match outcome {
            RangeOutcome::Scored(sum) => {
                self.replace(&cycle, changed, sum, table, counting);
                true
            }
            RangeOutcome::Moved => false,
            RangeOutcome::Failed => {
                self.broken = true;
                true
            }
        };
        self.state = cycle.into_state();
        holds
    }

    /// Whether a row that stays feasible stays in its part.
    fn keeps_part(&self, changed: ChangedRow) -> bool {
        changed.is_pods_only()
            && self.values[changed.row() as usize] != ABSENT
            && !self.plugins.relative_reads_pods
    }

    /// Takes note of what was found out about a row: the sum of its scores, if it is feasible.
    fn replace(
        &mut self,
        cycle: &Cycle<'_>,
        changed: ChangedRow,
        sum: Option<i32>,
        table: &Table,
        counting: &Counting,
    ) {
        let row = changed.row();
        let index = row as usize;
        // Where it is not needed, the node stays where it is.
        let node = || cycle.cluster().node(Row(row));
        let (old, old_part) = (self.values[index], self.part_of[index]);
        let (value, part) = match sum {
            None => (ABSENT, old_part),
            Some(sum) if self.keeps_part(changed) => (value_of(sum), old_part),
            Some(sum) => (value_of(sum), self.part(cycle, node(), table.shapes[index] as usize, counting)),
        };
        if part == old_part {
            if let Some(plane) = self.planes.get_mut(usize::from(part)) {
                plane.set(row, old, value, table.rows());
            }
        } else {
            if old != ABSENT {
                self.planes[usize::from(old_part)].set(row, old, ABSENT, table.rows());
            }
            self.planes[usize::from(part)].set(row, ABSENT, value, table.rows());
        }
        (self.values[index], self.part_of[index]) = (value, part);
        if let Some(mut rejections) = self.rejections.take() {
            let status = (table.occupied[index] && sum.is_none()).then(|| self.rejection(cycle, node()));
            rejections.set(index, status.flatten());
            self.rejections = Some(rejections);
        }
    }

    /// The part that a row belongs to.
    fn part(&mut self, cycle: &Cycle<'_>, node: NodeRef<'_>, shape: usize, counting: &Counting) -> u16 {
        let Row(row) = node.row();
        let domain = |key: &PartKey| {
            let domain = counting.keys.get(key.column).value(row);
            if key.presence_only && domain != Cell::NO_DOMAIN { 0 } else { domain }
        };
        if self.keys.len() > CACHED_KEYS_MAX || !self.plugins.relative.iter().all(|score| score.by_shape) {
            return self.find_part(cycle, node, shape, domain);
        }
        // Rows of the same shape in the same domains are in the same part.
        let mut key = [shape as u32; CACHED_KEYS_MAX + 1];
        for (position, part_key) in self.keys.iter().enumerate() {
            key[position] = domain(part_key);
        }
        let slot = (FxBuildHasher.hash_one(key) >> (u64::BITS - PART_CACHE_BITS)) as usize;
        if let Some(Some((cached, part))) = self.part_cache.get(slot)
            && *cached == key
        {
            return *part;
        }
        let part = self.find_part(cycle, node, shape, domain);
        self.part_cache.resize(1 << PART_CACHE_BITS, None);
        self.part_cache[slot] = Some((key, part));
        part
    }

    fn find_part(
        &mut self,
        cycle: &Cycle<'_>,
        node: NodeRef<'_>,
        shape: usize,
        domain: impl Fn(&PartKey) -> u32,
    ) -> u16 {
        let mut raw = Vec::with_capacity(self.plugins.relative.len());
        for (score, answers) in self.plugins.relative.iter().zip(&mut self.shape_answers.relative) {
            let cache = score.by_shape.then_some(answers);
            let score = score.of_row(cycle, node, shape, cache);
            self.broken |= score.is_none();
            raw.push(score.unwrap_or(0));
        }
        let key: PartId = (self.keys.iter().map(domain).collect(), raw.into());
        if let Some(part) = self.parts_by_key.get(&key) {
            return *part;
        }
        let Ok(part) = u16::try_from(self.parts.len()) else {
            self.broken = true;
            return 0;
        };
        match self.parts.first() {
            None => self.common_relative = self.normalize_alone(cycle, &key.1),
            Some(first) if first.raw != key.1 => self.common_relative = None,
            Some(_) => {}
        }
        self.parts.push(Part { domains: key.0.clone(), raw: key.1.clone() });
        self.planes.push(Plane::new());
        self.parts_by_key.insert(key, part);
        part
    }

    /// What relative scores come to if no others occur; none if a plugin fails.
    fn normalize_alone(&self, cycle: &Cycle<'_>, raw: &[i64]) -> Option<i64> {
        let mut buffer = Vec::with_capacity(1);
        let mut sum = 0;
        for (relative, raw) in self.plugins.relative.iter().zip(raw) {
            if !normalize(relative, cycle, std::iter::once(*raw), &mut buffer) {
                return None;
            }
            sum += buffer.first()?.score * relative.weight;
        }
        Some(sum)
    }

    /// Looks at all rows.
    fn rebuild(&mut self, context: &Context<'_>, table: &mut Table, counting: &Counting, generation: u64) {
        let rows = table.rows();
        self.broken = false;
        self.generation = generation;
        self.rejections = None;
        self.row_answers = None;
        self.common_relative = None;
        let has_parts = self.parts.len() > 1;
        self.parts.clear();
        self.parts_by_key.clear();
        self.part_cache.clear();
        let spare = self.planes.drain(..).next();
        for answers in &mut self.shape_answers.filters {
            answers.clear();
        }
        for answers in self.shape_answers.scores.iter_mut().chain(&mut self.shape_answers.relative) {
            answers.clear();
        }
        if has_parts {
            self.part_of.fill(0);
        }
        self.part_of.resize(rows, 0);
        let pod = self.pod.clone();
        let cycle = Cycle::resume(&pod, context.clone(), std::mem::take(&mut self.state));
        let mut found = std::mem::take(&mut table.buffers);
        table.refresh_columns(context.cluster);
        self.evaluate(&cycle, table, &mut found);
        self.broken |= !self.ranged.score_all(&cycle, table, &mut found);
        kernels::write_values(&found, &mut self.values);
        self.assign_parts(&cycle, table, counting);
        match self.parts.len() {
            1 => {
                let mut plane = spare.unwrap_or_else(Plane::new);
                plane.refill(&self.values);
                self.planes[0] = plane;
            }
            parts => self.planes = Plane::of_parts(&self.values, &self.part_of, parts),
        }
        table.buffers = found;
        self.state = cycle.into_state();
    }

    /// Finds the parts of all rows.
    fn assign_parts(&mut self, cycle: &Cycle<'_>, table: &Table, counting: &Counting) {
        let is_by_shape = self.keys.is_empty() && self.plugins.relative.iter().all(|score| score.by_shape);
        let mut of_shape: Vec<Option<u16>> = vec![None; table.shape_count()];
        for row in 0..self.values.len() {
            if self.values[row] == ABSENT {
                continue;
            }
            let shape = table.shapes[row] as usize;
            let known = if is_by_shape { of_shape[shape] } else { None };
            self.part_of[row] = known.unwrap_or_else(|| {
                let part = self.part(cycle, cycle.cluster().node(Row(row as u32)), shape, counting);
                of_shape[shape] = Some(part);
                part
            });
            if is_by_shape && table.shape_count() == 1 {
                // All rows are in the first part, as they are by default.
                return;
            }
        }
    }

    // === Why not ===

    /// Finds out why rows are rejected; none if there are too many reasons.
    pub(super) fn rejections(&mut self, context: &Context<'_>, table: &Table) -> Option<&Rejections> {
        if self.rejections.is_none() {
            let pod = self.pod.clone();
            let cycle = Cycle::resume(&pod, context.clone(), std::mem::take(&mut self.state));
            let mut rejections = Rejections::of_rows(table.rows(), table.limits.reasons);
            for row in 0..table.rows() {
                if table.occupied[row] && self.values[row] == ABSENT {
                    let status = self.rejection(&cycle, cycle.cluster().node(Row(row as u32)));
                    rejections.set(row, status);
                }
            }
            self.state = cycle.into_state();
            self.rejections = Some(rejections);
        }
        self.known_rejections()
    }

    /// Why rows are rejected, if somebody has asked before.
    pub(super) fn known_rejections(&self) -> Option<&Rejections> {
        self.rejections.as_ref().filter(|rejections| rejections.are_known())
    }

    fn rejection(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Option<Status> {
        self.plugins.filters.iter().find_map(|filter| {
            let status = filter.named.run(|plugin| plugin.filter(cycle, node));
            (!status.is_success()).then(|| status.from_plugin(filter.named.name))
        })
    }
}

/// No profile has more plugins than this whose scores are normalised over the feasible rows.
pub(super) const RELATIVE_SCORES_MAX: usize = 8;
