//! Rows grouped for one class: by part of its base, and by what is counted in each row. Hot.

use std::hint::black_box;

use rustc_hash::FxHashMap;
use supercargo_model::Row;

use super::base::Base;
use super::class::ClassCounter;
use super::counting::Counting;
use super::table::Table;
use super::tree::{ABSENT, Plane};

/// When more than one row in so many has changed, all are looked at again.
const REBUILD_SHARE: usize = 4;

/// The rows of a class that has many rows with pods of its own.
#[derive(Debug, Default)]
pub(super) struct Planes {
    pub(super) planes: Vec<ClassPlane>,
    /// Planes by part and counts.
    by_key: FxHashMap<Box<[u32]>, u16>,
    pub(super) of_row: Vec<u16>,
    values: Vec<i16>,
    cursor: Option<u64>,
    base_generation: u64,
    key: Vec<u32>,
}

/// Rows that are alike for the class.
#[derive(Debug)]
pub(super) struct ClassPlane {
    /// The part of the base.
    pub(super) part: u16,
    /// What is counted in each of the rows, for all counters that count by row.
    pub(super) counts: Box<[u32]>,
    pub(super) plane: Plane,
}

impl Planes {
    /// Reads what will be needed next of a row that a pod goes to.
    pub(super) fn warm(&self, Row(row): Row) {
        black_box((self.values[row as usize], self.of_row[row as usize]));
    }

    /// Brings all rows up to date; false if there are too many planes.
    pub(super) fn catch_up(
        &mut self,
        by_row: &[ClassCounter],
        base: &Base,
        table: &Table,
        counting: &Counting,
    ) -> bool {
        let end = table.log.end();
        let is_same_base = self.base_generation == base.generation;
        let changed = self.cursor.filter(|_| is_same_base).and_then(|cursor| table.log.since(cursor));
        match changed {
            Some([]) => return self.planes.len() < table.limits.planes,
            Some(rows)
                if rows.len() <= table.rows() / REBUILD_SHARE + 1
                    && self.planes.len() < table.limits.planes =>
            {
                self.of_row.resize(table.rows(), 0);
                self.values.resize(table.rows(), ABSENT);
                for changed in rows {
                    self.refresh(changed.row(), by_row, base, counting);
                }
            }
            _ => self.rebuild(by_row, base, counting),
        }
        (self.cursor, self.base_generation) = (Some(end), base.generation);
        self.planes.len() < table.limits.planes
    }

    /// Groups all rows. Those without pods of the class are grouped as the base does it, and they are most.
    fn rebuild(&mut self, by_row: &[ClassCounter], base: &Base, counting: &Counting) {
        *self = Planes { of_row: base.part_of.clone(), values: base.values.clone(), ..Planes::default() };
        let no_counts: Box<[u32]> = vec![0; by_row.len()].into();
        for (part, plane) in base.planes.iter().enumerate() {
            let part = part as u16;
            let key: Box<[u32]> = std::iter::once(u32::from(part)).chain(no_counts.iter().copied()).collect();
            self.by_key.insert(key, part);
            self.planes.push(ClassPlane { part, counts: no_counts.clone(), plane: plane.clone() });
        }
        let mut rows: Vec<u32> = by_row.iter().flat_map(|counter| counting.rows(counter.source)).collect();
        rows.sort_unstable();
        rows.dedup();
        for row in rows {
            self.refresh(row, by_row, base, counting);
        }
    }

    fn refresh(&mut self, row: u32, by_row: &[ClassCounter], base: &Base, counting: &Counting) {
        let index = row as usize;
        let (old, old_plane) = (self.values[index], self.of_row[index]);
        let value = base.values[index];
        let plane = if value == ABSENT { old_plane } else { self.plane(row, by_row, base, counting) };
        let rows = self.values.len();
        if plane == old_plane {
            if let Some(kept) = self.planes.get_mut(usize::from(plane)) {
                kept.plane.set(row, old, value, rows);
            }
        } else {
            if old != ABSENT {
                self.planes[usize::from(old_plane)].plane.set(row, old, ABSENT, rows);
            }
            self.planes[usize::from(plane)].plane.set(row, ABSENT, value, rows);
        }
        (self.values[index], self.of_row[index]) = (value, plane);
    }

    fn plane(&mut self, row: u32, by_row: &[ClassCounter], base: &Base, counting: &Counting) -> u16 {
        let part = base.part_of[row as usize];
        self.key.clear();
        self.key.push(u32::from(part));
        self.key.extend(by_row.iter().map(|counter| counter.in_row(row, counting)));
        if let Some(plane) = self.by_key.get(&*self.key) {
            return *plane;
        }
        // So many are far beyond the limit, which is checked when all rows have been looked at.
        let Ok(plane) = u16::try_from(self.planes.len()) else { return 0 };
        self.planes.push(ClassPlane { part, counts: self.key[1..].into(), plane: Plane::new() });
        self.by_key.insert(self.key.as_slice().into(), plane);
        plane
    }
}
