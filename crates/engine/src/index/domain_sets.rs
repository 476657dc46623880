//! In how many domains the rows of groups are, where domains are small and a group has the rows of many. Hot.

use supercargo_framework::{Cell, GroupDomains};

use super::class::ClassCounter;
use super::groups::{GroupRows, Member};
use super::keys::Keys;
use super::planes::Planes;
use super::tree::ABSENT;

/// Where the feasible rows of each domain of a key are, among the planes of a class.
#[derive(Debug)]
pub(super) struct DomainSet {
    column: usize,
    homes: Vec<Home>,
    /// How many domains have all their feasible rows in each plane.
    at_home: Vec<u32>,
    /// How many domains have feasible rows in several planes.
    divided: usize,
    /// The domain of each row, as it was when the row was looked at last.
    of_row: Vec<u32>,
    /// Domains to be looked at again.
    unsettled: Vec<u32>,
}

/// The planes that have a domain's feasible rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Nowhere,
    One(u16),
    Several,
}

impl DomainSet {
    pub(super) fn new(column: usize) -> Self {
        DomainSet {
            column,
            homes: Vec::new(),
            at_home: Vec::new(),
            divided: 0,
            of_row: Vec::new(),
            unsettled: Vec::new(),
        }
    }

    /// Takes note that a row was looked at; whether it came, went, or changed its plane.
    pub(super) fn note(&mut self, row: u32, is_moved: bool, keys: &Keys) {
        let domain = keys.get(self.column).value(row);
        if self.of_row.len() <= row as usize {
            self.of_row.resize(row as usize + 1, Cell::NO_DOMAIN);
        }
        let old = std::mem::replace(&mut self.of_row[row as usize], domain);
        if old != domain {
            self.unsettle(old);
        }
        if old != domain || is_moved {
            self.unsettle(domain);
        }
    }

    fn unsettle(&mut self, domain: u32) {
        // The rows of a domain mostly change together.
        if domain != Cell::NO_DOMAIN && self.unsettled.last() != Some(&domain) {
            self.unsettled.push(domain);
        }
    }

    /// Looks at all domains, after all rows have changed.
    pub(super) fn settle_all(&mut self, keys: &Keys, values: &[i16], planes: &[u16]) {
        let column = keys.get(self.column);
        self.of_row = (0..values.len() as u32).map(|row| column.value(row)).collect();
        self.unsettled.clear();
        self.unsettled.extend(0..column.domain_numbers() as u32);
        self.settle(keys, values, planes);
    }

    /// Looks at the domains of rows that changed.
    pub(super) fn settle(&mut self, keys: &Keys, values: &[i16], planes: &[u16]) {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        for domain in unsettled.drain(..) {
            let mut home = Home::Nowhere;
            for row in keys.get(self.column).rows(domain) {
                if values[row as usize] == ABSENT {
                    continue;
                }
                let plane = planes[row as usize];
                home = match home {
                    Home::Nowhere => Home::One(plane),
                    Home::One(other) if other == plane => home,
                    _ => Home::Several,
                };
            }
            self.move_home(domain as usize, home);
        }
        self.unsettled = unsettled;
    }

    fn move_home(&mut self, domain: usize, new: Home) {
        if self.homes.len() <= domain {
            self.homes.resize(domain + 1, Home::Nowhere);
        }
        let old = std::mem::replace(&mut self.homes[domain], new);
        if old == new {
            return;
        }
        match old {
            Home::Nowhere => {}
            Home::One(plane) => self.at_home[usize::from(plane)] -= 1,
            Home::Several => self.divided -= 1,
        }
        match new {
            Home::Nowhere => {}
            Home::One(plane) => {
                if self.at_home.len() <= usize::from(plane) {
                    self.at_home.resize(usize::from(plane) + 1, 0);
                }
                self.at_home[usize::from(plane)] += 1;
            }
            Home::Several => self.divided += 1,
        }
    }

    fn at_home(&self, plane: u16) -> usize {
        self.at_home.get(usize::from(plane)).map_or(0, |domains| *domains as usize)
    }

    pub(super) fn column(&self) -> usize {
        self.column
    }
}

/// The groups of a decision and their domains.
#[derive(Debug)]
pub(super) struct DecisionDomains<'a> {
    pub(super) counters: &'a [ClassCounter],
    pub(super) members: &'a [Member],
    pub(super) cells: &'a [Cell],
    /// Rows that are in no group, though their planes are.
    pub(super) singles: &'a [u32],
    pub(super) planes: Option<&'a Planes>,
    pub(super) keys: &'a Keys,
}

impl GroupDomains for DecisionDomains<'_> {
    fn domains(
        &self,
        counter: usize,
        is_meant: &mut dyn FnMut(usize) -> bool,
        scratch: &mut Vec<u32>,
    ) -> usize {
        let ClassCounter { counts_domains, column, .. } = self.counters[counter];
        let planes = self.planes.filter(|_| counts_domains);
        let set = planes.and_then(|planes| planes.domain_sets.iter().find(|set| set.column() == column));
        match (planes, set) {
            (Some(planes), Some(set)) if set.divided > 0 || !self.singles.is_empty() => {
                self.of_divided(planes, set, is_meant, scratch)
            }
            (Some(_), Some(set)) => self.meant_planes(is_meant).map(|plane| set.at_home(plane)).sum(),
            _ => self.of_cells(counter, is_meant, scratch),
        }
    }
}

impl DecisionDomains<'_> {
    /// The planes of the groups that are meant.
    fn meant_planes(&self, is_meant: &mut dyn FnMut(usize) -> bool) -> impl Iterator<Item = u16> {
        self.members.iter().enumerate().filter_map(move |(group, member)| match member.rows {
            GroupRows::Plane(plane) if is_meant(group) => Some(plane),
            _ => None,
        })
    }

    /// Where a group has rows of one domain only.
    fn of_cells(
        &self,
        counter: usize,
        is_meant: &mut dyn FnMut(usize) -> bool,
        scratch: &mut Vec<u32>,
    ) -> usize {
        scratch.clear();
        for group in (0..self.members.len()).filter(|group| is_meant(*group)) {
            let cell = self.cells[group * self.counters.len() + counter];
            scratch.extend(cell.has_domain().then_some(cell.domain));
        }
        scratch.sort_unstable();
        scratch.dedup();
        scratch.len()
    }

    /// Where the rows of some domains are in several planes, or some rows are in no group: those domains are looked at one by one.
    fn of_divided(
        &self,
        planes: &Planes,
        set: &DomainSet,
        is_meant: &mut dyn FnMut(usize) -> bool,
        scratch: &mut Vec<u32>,
    ) -> usize {
        let column = self.keys.get(set.column);
        let is_meant_plane = scratch;
        is_meant_plane.clear();
        is_meant_plane.resize(planes.planes.len(), 0);
        let mut domains = 0;
        for plane in self.meant_planes(is_meant) {
            is_meant_plane[usize::from(plane)] = 1;
            domains += set.at_home(plane);
        }
        let is_feasible = |row: &u32| planes.value(*row) != ABSENT;
        let is_in_group = |row: &u32| is_feasible(row) && self.singles.binary_search(row).is_err();
        let is_in_meant_plane = |row: u32| is_meant_plane[usize::from(planes.of_row[row as usize])] == 1;
        let divided = set.homes.iter().zip(0..).filter(|(home, _)| **home == Home::Several);
        for (_, domain) in divided {
            let has_meant = column.rows(domain).any(|row| is_in_group(&row) && is_in_meant_plane(row));
            domains += usize::from(has_meant);
        }
        for row in self.singles {
            let domain = column.value(*row);
            let home = set.homes.get(domain as usize);
            let was_counted =
                matches!(home, Some(Home::One(plane)) if is_meant_plane[usize::from(*plane)] == 1);
            // Once for each domain: at the first of its feasible rows.
            let is_first = column.rows(domain).find(is_feasible) == Some(*row);
            if was_counted && is_first && !column.rows(domain).any(|row| is_in_group(&row)) {
                domains -= 1;
            }
        }
        domains
    }
}
