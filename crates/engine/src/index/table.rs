//! What the index copies from the cluster's table: numbers in columns, and which rows are alike. Hot.

use std::hint::black_box;

use rustc_hash::FxHashMap;
use supercargo_framework::{ColumnView, Columns, NodeNumbers};
use supercargo_model::taints::Taint;
use supercargo_model::{NodeRef, Row, Snapshot};

use super::kernels::RowBuffers;
use super::limits::IndexLimits;

/// The log of changed rows is cut when it is this many times as long as the table.
const LOG_PER_ROW_MAX: usize = 4;

/// When there is no more room for numbers of rows that changed last, one in so many is kept, and others are read again.
const RECENT_KEPT_SHARE: usize = 8;

/// The rows of the table, as the index needs them.
#[derive(Debug, Default)]
pub(super) struct Table {
    columns: Columns,
    /// How far the columns have followed the log.
    columns_cursor: u64,
    /// Whether there is a node in the row.
    pub(super) occupied: Vec<bool>,
    /// Rows with the same number have equal taints and features, and are both cordoned or both not.
    pub(super) shapes: Vec<u32>,
    known_shapes: FxHashMap<Shape, u32>,
    /// Counts changes in how many nodes there are and which images they have.
    pub(super) census: u64,
    /// Whether the nodes stand in rows by name, at which census.
    by_name: Option<(u64, bool)>,
    pub(super) log: RowLog,
    /// The numbers of the rows at the end of the log, as they were after each change. Many look at the same few rows,
    /// one after the other; whoever looks at several entries of one row takes the last for true.
    recent: Vec<NodeNumbers>,
    /// Room to work out what plugins say about all rows; taken out while it is used.
    pub(super) buffers: RowBuffers,
    pub(super) limits: IndexLimits,
}

/// What many plugins read and most nodes have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape {
    taints: Box<[Taint]>,
    unschedulable: bool,
    features: Box<[Box<str>]>,
}

/// The rows that changed, in the order in which they did. Everybody who keeps something about rows has a cursor.
#[derive(Debug, Default)]
pub(super) struct RowLog {
    rows: Vec<ChangedRow>,
    /// How many entries were cut off before the first.
    cut: u64,
    /// How often each row has changed.
    versions: Vec<u32>,
    /// It is not cut below this length.
    min_len: usize,
}

/// A row that changed, and whether anything but its pods did.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangedRow(u32);

impl ChangedRow {
    /// Set where the node did not change. There are fewer rows than this.
    const PODS_ONLY: u32 = 1 << 31;

    pub(super) fn row(self) -> u32 {
        self.0 & !Self::PODS_ONLY
    }

    pub(super) fn is_pods_only(self) -> bool {
        self.0 & Self::PODS_ONLY != 0
    }
}

impl Table {
    pub(super) fn new(limits: IndexLimits) -> Self {
        Table { limits, log: RowLog { min_len: limits.log, ..RowLog::default() }, ..Table::default() }
    }

    /// How many different shapes there are, or were.
    pub(super) fn shape_count(&self) -> usize {
        self.known_shapes.len()
    }

    pub(super) fn rows(&self) -> usize {
        self.occupied.len()
    }

    /// Reads all rows again.
    pub(super) fn rebuild(&mut self, cluster: &Snapshot) {
        let (census, end) = (self.census, self.log.end());
        *self = Table::new(self.limits);
        (self.census, self.log.cut) = (census + 1, end + 1);
        self.resize(cluster.row_count());
        for node in cluster.nodes() {
            self.put(node);
        }
    }

    /// Finds out whether the nodes stand in rows by name, unless that is known of these nodes.
    pub(super) fn learn_names(&mut self, cluster: &Snapshot) {
        if self.by_name.is_none_or(|(census, _)| census != self.census) {
            let rows = (0u32..).zip(&self.occupied).filter(|(_, occupied)| **occupied);
            let is_by_name = rows.map(|(row, _)| cluster.node(Row(row)).name()).is_sorted();
            self.by_name = Some((self.census, is_by_name));
        }
    }

    /// Whether the nodes stand in rows by name, as far as is known.
    pub(super) fn is_by_name(&self) -> bool {
        self.by_name.is_some_and(|(_, is_by_name)| is_by_name)
    }

    #[inline]
    pub(super) fn resize(&mut self, rows: usize) {
        if rows > self.rows() {
            self.occupied.resize(rows, false);
            self.shapes.resize(rows, 0);
        }
    }

    /// Reads all of a node again.
    pub(super) fn put(&mut self, node: NodeRef<'_>) {
        let row = node.row().0 as usize;
        self.occupied[row] = true;
        let shape = Shape {
            taints: node.taints().into(),
            unschedulable: node.is_unschedulable(),
            features: node.declared_features().into(),
        };
        let next = u32::try_from(self.known_shapes.len()).expect("fewer shapes than rows ever were");
        self.shapes[row] = *self.known_shapes.entry(shape).or_insert(next);
    }

    /// Brings the numbers of all rows up to date: they are needed only where many rows are looked at.
    pub(super) fn refresh_columns(&mut self, cluster: &Snapshot) {
        self.columns.resize(self.occupied.len());
        match self.log.since(self.columns_cursor) {
            Some(rows) => {
                for changed in rows {
                    self.columns.set(changed.row() as usize, cluster.node(Row(changed.row())));
                }
            }
            None => {
                for row in 0..self.occupied.len() {
                    self.columns.set(row, cluster.node(Row(row as u32)));
                }
            }
        }
        self.columns_cursor = self.log.end();
    }

    /// The numbers of all rows, as of when they were last brought up to date.
    pub(super) fn numbers(&self) -> ColumnView<'_> {
        self.columns.view(0..self.rows())
    }

    /// Writes down the numbers of the rows that the log has had since it ended there.
    pub(super) fn note_numbers(&mut self, since: u64, cluster: &Snapshot) {
        let changed = self.log.since(since).filter(|changed| changed.len() <= self.limits.recent / 2);
        let Some(changed) = changed else {
            self.recent.clear();
            return;
        };
        if self.recent.len() + changed.len() > self.limits.recent {
            let kept = self.limits.recent / RECENT_KEPT_SHARE;
            self.recent.drain(..self.recent.len() - kept);
        }
        self.recent.extend(changed.iter().map(|changed| NodeNumbers::of(cluster.node(Row(changed.row())))));
    }

    /// The numbers of the last so many rows of the log; none if that is too many.
    pub(super) fn recent_numbers(&self, count: usize) -> Option<&[NodeNumbers]> {
        self.recent.get(self.recent.len().checked_sub(count)?..)
    }

    /// Reads what is next needed of a row, all at once.
    pub(super) fn warm(&self, Row(row): Row) {
        black_box((self.log.version(row), self.shapes[row as usize], self.occupied[row as usize]));
    }

    /// Notes that a row has no node any more.
    pub(super) fn vacate(&mut self, row: u32) {
        self.occupied[row as usize] = false;
    }
}

impl RowLog {
    /// The cursor of whoever has seen everything.
    pub(super) fn end(&self) -> u64 {
        self.cut + self.rows.len() as u64
    }

    /// The rows that changed since the cursor was at the end; none if that is too long ago to know.
    pub(super) fn since(&self, cursor: u64) -> Option<&[ChangedRow]> {
        let seen = usize::try_from(cursor.checked_sub(self.cut)?).ok()?;
        self.rows.get(seen..)
    }

    /// Notes that the pods of a row changed.
    pub(super) fn note_pods(&mut self, row: u32, rows: usize) {
        self.push(ChangedRow(row | ChangedRow::PODS_ONLY), rows);
    }

    /// Notes that something else about a row changed.
    pub(super) fn note(&mut self, row: u32, rows: usize) {
        self.push(ChangedRow(row), rows);
    }

    fn push(&mut self, changed: ChangedRow, rows: usize) {
        let row = changed.row();
        if self.rows.len() >= (rows * LOG_PER_ROW_MAX).max(self.min_len) {
            let half = self.rows.len() / 2;
            self.rows.drain(..half);
            self.cut += half as u64;
        }
        self.rows.push(changed);
        if self.versions.len() <= row as usize {
            self.versions.resize(rows.max(row as usize + 1), 0);
        }
        let version = &mut self.versions[row as usize];
        *version = version.wrapping_add(1);
    }

    /// A number that changes whenever the row does.
    pub(super) fn version(&self, row: u32) -> u32 {
        self.versions.get(row as usize).copied().unwrap_or(0)
    }
}
