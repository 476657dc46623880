//! Rows grouped for one class: by part of its base, and by what is counted in each row. Hot.

use std::hint::black_box;

use rustc_hash::FxHashMap;
use supercargo_model::Row;

use super::base::Base;
use super::class::ClassCounter;
use super::classes::Classes;
use super::counting::Counting;
use super::domain_sets::DomainSet;
use super::table::Table;
use super::tree::{ABSENT, Plane};
use crate::planted::{Bug, is_planted};

/// When more than one row in so many has changed, all are looked at again.
const REBUILD_SHARE: usize = 4;
/// So many planes are kept whether they have rows or not; with more, those without rows are used for others.
const IDLE_PLANES: usize = 16;

/// About how many bytes the planes of a class take for each row of the table.
const BYTES_PER_ROW: usize = 16;

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
    /// The plane that was found last, and its key.
    last: Option<u16>,
    last_key: Vec<u32>,
    /// Planes without rows that no key leads to.
    free: Vec<u16>,
    /// In how many domains the rows of planes are, for each key that somebody wants to know it of.
    pub(super) domain_sets: Vec<DomainSet>,
    /// Domains whose counts have changed, each with its key's column.
    changed_domains: Vec<(usize, u32)>,
    taken: Vec<u32>,
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

impl Classes {
    /// Makes room for the planes of one more class: those that were not used for longest are dropped where all together would take more
    /// than `bytes`, and are made again when their classes come up. Returns how many were dropped.
    pub(super) fn make_room_for_planes(&mut self, rows: usize, bytes: usize) -> u64 {
        let is_too_much = |classes: usize| classes * rows * BYTES_PER_ROW > bytes;
        self.with_planes += 1;
        if !is_too_much(self.with_planes) {
            return 0;
        }
        // Some may have gone with their classes.
        let mut used: Vec<u64> =
            self.list.values().filter(|class| class.has_planes()).map(|class| class.last_used).collect();
        self.with_planes = used.len() + 1;
        if used.is_empty() || !is_too_much(self.with_planes) {
            return 0;
        }
        used.sort_unstable();
        let last_dropped = used[(used.len() - 1) / 2];
        let mut dropped = 0;
        for class in self.list.values_mut().filter(|class| class.last_used <= last_dropped) {
            dropped += u64::from(class.drop_planes());
        }
        self.with_planes -= dropped as usize;
        dropped
    }
}

impl Planes {
    /// Reads what will be needed next of a row that a pod goes to.
    pub(super) fn warm(&self, Row(row): Row) {
        black_box((self.values[row as usize], self.of_row[row as usize]));
    }

    /// A row's value; [`ABSENT`] if it is not feasible.
    pub(super) fn value(&self, row: u32) -> i16 {
        self.values[row as usize]
    }

    /// Brings all rows up to date; false if there are too many planes.
    pub(super) fn catch_up(
        &mut self,
        by_row: &[ClassCounter],
        base: &Base,
        table: &Table,
        counting: &mut Counting,
    ) -> bool {
        let end = table.log.end();
        let is_same_base = self.base_generation == base.generation;
        let changed = self.cursor.filter(|_| is_same_base).and_then(|cursor| table.log.since(cursor));
        let most = table.rows() / REBUILD_SHARE + 1;
        match changed {
            Some([]) => return self.planes.len() < table.limits.planes,
            Some(rows)
                if rows.len() <= most
                    && self.planes.len() < table.limits.planes
                    && self.take_changed_domains(by_row, counting, most) =>
            {
                self.of_row.resize(table.rows(), 0);
                self.values.resize(table.rows(), ABSENT);
                for changed in rows {
                    self.refresh(changed.row(), by_row, base, counting);
                }
                for position in 0..self.changed_domains.len() {
                    let (column, domain) = self.changed_domains[position];
                    for row in counting.keys.get(column).rows(domain) {
                        self.refresh(row, by_row, base, counting);
                    }
                }
                for set in &mut self.domain_sets {
                    set.settle(&counting.keys, &self.values, &self.of_row);
                }
            }
            _ => self.rebuild(by_row, base, counting),
        }
        (self.cursor, self.base_generation) = (Some(end), base.generation);
        self.planes.len() < table.limits.planes
    }

    /// Finds out in which domains the counts have changed: all their rows are to be looked at. False if that is not known, or if those are
    /// more rows than `most`.
    fn take_changed_domains(
        &mut self,
        by_row: &[ClassCounter],
        counting: &mut Counting,
        most: usize,
    ) -> bool {
        self.changed_domains.clear();
        let mut is_known = true;
        for counter in by_row.iter().filter(|counter| counter.is_by_small_domain) {
            let Some(tally) = counter.tally else { continue };
            is_known &= counting.take_changed_domains(tally, &mut self.taken);
            self.changed_domains.extend(self.taken.drain(..).map(|domain| (counter.column, domain)));
        }
        if is_planted(Bug::DomainsStay) {
            self.changed_domains.clear();
        }
        if self.changed_domains.len() > 1 {
            self.changed_domains.sort_unstable();
            self.changed_domains.dedup();
        }
        let rows_of = |(column, domain): &(usize, u32)| {
            counting.keys.get(*column).nodes().get(*domain as usize).map_or(0, |rows| *rows as usize)
        };
        is_known && self.changed_domains.iter().map(rows_of).sum::<usize>() <= most
    }

    /// Groups all rows. Those without pods of the class are grouped as the base does it, and they are most.
    fn rebuild(&mut self, by_row: &[ClassCounter], base: &Base, counting: &mut Counting) {
        *self = Planes { of_row: base.part_of.clone(), values: base.values.clone(), ..Planes::default() };
        // What has changed until now is looked at below.
        self.take_changed_domains(by_row, counting, 0);
        let no_counts: Box<[u32]> = vec![0; by_row.len()].into();
        for (part, plane) in base.planes.iter().enumerate() {
            let part = part as u16;
            let key: Box<[u32]> = std::iter::once(u32::from(part)).chain(no_counts.iter().copied()).collect();
            self.by_key.insert(key, part);
            self.planes.push(ClassPlane { part, counts: no_counts.clone(), plane: plane.clone() });
        }
        let mut rows: Vec<u32> = Vec::new();
        for counter in by_row {
            counter.extend_with_rows(&mut rows, counting);
        }
        rows.sort_unstable();
        rows.dedup();
        for row in rows {
            self.refresh(row, by_row, base, counting);
        }
        for ClassCounter { column, .. } in by_row.iter().filter(|counter| counter.counts_domains) {
            if self.domain_sets.iter().all(|set| set.column() != *column) {
                let mut set = DomainSet::new(*column);
                set.settle_all(&counting.keys, &self.values, &self.of_row);
                self.domain_sets.push(set);
            }
        }
    }

    fn refresh(&mut self, row: u32, by_row: &[ClassCounter], base: &Base, counting: &Counting) {
        let index = row as usize;
        let (old, old_plane) = (self.values[index], self.of_row[index]);
        let value = base.values[index];
        let plane = if value == ABSENT { old_plane } else { self.plane(row, by_row, base, counting) };
        let rows = self.values.len();
        let mut is_moved = plane != old_plane || (old == ABSENT) != (value == ABSENT);
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
        if is_moved && old != ABSENT && self.planes.len() > IDLE_PLANES {
            self.free_if_empty(old_plane);
        }
        is_moved &= !is_planted(Bug::DomainsAreNotCountedAgain);
        for set in &mut self.domain_sets {
            set.note(row, is_moved, &counting.keys);
        }
    }

    /// Makes a plane without rows one for others: counts grow, and with them what was a plane once.
    fn free_if_empty(&mut self, number: u16) {
        let ClassPlane { part, counts, plane } = &self.planes[usize::from(number)];
        if plane.len() > 0 {
            return;
        }
        self.key.clear();
        self.key.push(u32::from(*part));
        self.key.extend(counts);
        if self.by_key.remove(&*self.key).is_some() {
            self.free.push(number);
            self.last = None;
        }
    }

    fn plane(&mut self, row: u32, by_row: &[ClassCounter], base: &Base, counting: &Counting) -> u16 {
        let part = base.part_of[row as usize];
        self.key.clear();
        self.key.push(u32::from(part));
        self.key.extend(by_row.iter().map(|counter| counter.in_row(row, counting)));
        // The rows of a domain, which change together, are mostly in one plane.
        if let Some(plane) = self.last.filter(|_| self.last_key == self.key) {
            return plane;
        }
        let plane = self.by_key.get(&*self.key).copied().unwrap_or_else(|| self.add_plane(part));
        if !self.changed_domains.is_empty() {
            self.last = Some(plane);
            self.last_key.clone_from(&self.key);
        }
        plane
    }

    /// A plane for the key that was just looked for.
    fn add_plane(&mut self, part: u16) -> u16 {
        let new = ClassPlane { part, counts: self.key[1..].into(), plane: Plane::new() };
        let plane = match self.free.pop() {
            Some(plane) => {
                self.planes[usize::from(plane)] = new;
                plane
            }
            None => {
                // So many are far beyond the limit, which is checked when all rows have been looked at.
                let Ok(plane) = u16::try_from(self.planes.len()) else { return 0 };
                self.planes.push(new);
                plane
            }
        };
        self.by_key.insert(self.key.as_slice().into(), plane);
        plane
    }
}
