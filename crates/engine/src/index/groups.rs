//! The groups of rows of one decision: rows that are alike in all but their values. Hot.

use supercargo_framework::{
    Cell, Cycle, DomainCounts, GroupDomains, Groups, MAX_NODE_SCORE, NodeScore, Status, Tally, TermRole,
    witness,
};
use supercargo_model::Row;

use super::base::Base;
use super::class::{ClassCounter, ClassFilter, Indexed};
use super::counting::Counting;
use super::local::LocalScore;
use super::tree::{ABSENT, Plane};

/// What a decision works with; kept from one to the next so that nothing is allocated.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) members: Vec<Member>,
    pub(super) nodes: Vec<u32>,
    pub(super) cells: Vec<Cell>,
    /// What pods are worth, a number for each cell; empty if no counter wants that.
    weights: Vec<i64>,
    pub(super) terms: Vec<[i64; TermRole::ALL.len()]>,
    pub(super) tallies: Vec<Tally>,
    /// The highest value of each group's rows.
    pub(super) bests: Vec<i16>,
    pub(super) totals: Vec<i64>,
    pub(super) scores: Vec<i64>,
    pub(super) numbers: Vec<u32>,
    /// Rows that are in no plane's group, sorted: most are groups by themselves.
    pub(super) singles: Vec<u32>,
    /// Rows that the pod does not fit on because of pods that are nominated to them, or not even without them.
    pub(super) nominated: Vec<(u32, Status)>,
    singles_in: Vec<u32>,
}

/// Which rows a group has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) rows: GroupRows,
    /// The part of the base that the rows are in.
    pub(super) part: u16,
    /// Why the rows are rejected: the number of the filter, and of its rejection.
    pub(super) rejected: Option<(u16, u16)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum GroupRows {
    /// The rows of a plane, without those that are groups by themselves.
    Plane(u16),
    /// One row.
    Single(u32),
}

impl Scratch {
    /// Forms the groups. `singles` has been filled with the rows that stand alone.
    pub(super) fn form(&mut self, indexed: &Indexed, base: &Base, counting: &Counting) {
        self.members.clear();
        self.nodes.clear();
        self.cells.clear();
        self.weights.clear();
        self.terms.clear();
        self.tallies.clear();
        for counter in &indexed.counters {
            self.tallies.push(match counter.tally {
                Some(tally) => counting.summary(tally),
                None => Tally { total: counting.total(counter.source), of_domains: DomainCounts::default() },
            });
        }
        match &indexed.planes {
            None => {
                self.count_singles(&base.part_of, base.planes.len(), base);
                for (part, plane) in base.planes.iter().enumerate() {
                    self.push_plane(part as u16, part as u16, plane, None, indexed, base, counting);
                }
            }
            Some(planes) => {
                self.count_singles(&planes.of_row, planes.planes.len(), base);
                for (number, class_plane) in planes.planes.iter().enumerate() {
                    let counts = Some(&*class_plane.counts);
                    let (part, plane) = (class_plane.part, &class_plane.plane);
                    self.push_plane(number as u16, part, plane, counts, indexed, base, counting);
                }
            }
        }
        for index in 0..self.singles.len() {
            let row = self.singles[index];
            let is_taken = self.nominated.iter().any(|(nominated, _)| *nominated == row);
            if base.values[row as usize] != ABSENT && !is_taken {
                self.push_single(row, indexed, base, counting);
            }
        }
    }

    /// How many feasible rows of each plane stand alone.
    fn count_singles(&mut self, plane_of: &[u16], planes: usize, base: &Base) {
        self.singles_in.clear();
        if self.singles.is_empty() {
            return;
        }
        self.singles_in.resize(planes, 0);
        for row in &self.singles {
            if base.values[*row as usize] != ABSENT {
                self.singles_in[usize::from(plane_of[*row as usize])] += 1;
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are parts of one plane's description")]
    fn push_plane(
        &mut self,
        number: u16,
        part: u16,
        plane: &Plane,
        counts: Option<&[u32]>,
        indexed: &Indexed,
        base: &Base,
        counting: &Counting,
    ) {
        let alone = self.singles_in.get(usize::from(number)).copied().unwrap_or(0);
        let nodes = plane.len() as u32 - alone;
        if nodes == 0 {
            return;
        }
        self.nodes.push(nodes);
        self.members.push(Member { rows: GroupRows::Plane(number), part, rejected: None });
        let mut by_row = 0;
        let count = |counter: &ClassCounter, domain: u32| {
            if counter.is_by_row {
                by_row += 1;
                // Without planes of its own, a class has all rows with pods of its own stand alone.
                counts.map_or(0, |counts| counts[by_row - 1])
            } else {
                match counter.tally {
                    Some(tally) if domain != Cell::NO_DOMAIN => counting.in_domain(tally, domain),
                    _ => 0,
                }
            }
        };
        self.push_counts(part, indexed, base, count);
        self.push_weights(part, indexed, base, counting);
    }

    fn push_single(&mut self, row: u32, indexed: &Indexed, base: &Base, counting: &Counting) {
        let part = base.part_of[row as usize];
        self.nodes.push(1);
        self.members.push(Member { rows: GroupRows::Single(row), part, rejected: None });
        let count = |counter: &ClassCounter, domain: u32| {
            if domain == Cell::NO_DOMAIN { 0 } else { counter.in_row(row, counting) }
        };
        self.push_counts(part, indexed, base, count);
        self.push_weights(part, indexed, base, counting);
    }

    fn push_weights(&mut self, part: u16, indexed: &Indexed, base: &Base, counting: &Counting) {
        if !indexed.wants_weights {
            return;
        }
        let domains = &base.parts[usize::from(part)].domains;
        for counter in &indexed.counters {
            self.weights.push(match counter.tally.filter(|_| counter.wants_weights) {
                Some(tally) => counting.weight(tally, domains[counter.part_key]),
                None => 0,
            });
        }
    }

    fn push_counts(
        &mut self,
        part: u16,
        indexed: &Indexed,
        base: &Base,
        mut count: impl FnMut(&ClassCounter, u32) -> u32,
    ) {
        let domains = &base.parts[usize::from(part)].domains;
        for counter in &indexed.counters {
            let domain = domains[counter.part_key];
            let pods = count(counter, domain);
            self.cells.push(Cell { domain, pods: if domain == Cell::NO_DOMAIN { 0 } else { pods } });
        }
        let mut sums = [0; TermRole::ALL.len()];
        for term in &indexed.terms {
            let domain = domains[term.counter.part_key];
            let pods = count(&term.counter, domain);
            if domain != Cell::NO_DOMAIN {
                sums[term.role as usize] += i64::from(pods) * term.weight;
            }
        }
        self.terms.push(sums);
    }

    /// The groups as a plugin sees them whose cells begin with `first_cell`.
    pub(super) fn view<'a>(&'a self, first_cell: usize, domains: Option<&'a dyn GroupDomains>) -> Groups<'a> {
        Groups {
            nodes: &self.nodes,
            tallies: &self.tallies[first_cell..],
            cells: &self.cells,
            cells_per_group: self.tallies.len(),
            first_cell,
            weights: &self.weights,
            terms: &self.terms,
            domains,
        }
    }

    /// Asks the filters that count; how many rows pass them.
    pub(super) fn filter(&mut self, indexed: &Indexed) -> usize {
        let mut members = std::mem::take(&mut self.members);
        for (number, ClassFilter { name, filter, first_cell }) in indexed.filters.iter().enumerate() {
            let view = self.view(*first_cell, None);
            witness::run(name, || {
                let passed = members.iter_mut().enumerate().filter(|(_, member)| member.rejected.is_none());
                for (group, member) in passed {
                    let rejection = filter.filter(&view, group).err();
                    member.rejected = rejection.map(|rejection| (number as u16, rejection as u16));
                }
            });
        }
        let passed = members.iter().zip(&self.nodes).filter(|(member, _)| member.rejected.is_none());
        let feasible = passed.map(|(_, nodes)| *nodes as usize).sum();
        self.members = members;
        feasible
    }

    /// Drops the groups that were rejected.
    pub(super) fn keep_feasible(&mut self) {
        if self.members.iter().all(|member| member.rejected.is_none()) {
            return;
        }
        let cells_per_group = self.tallies.len();
        let mut kept = 0;
        for group in 0..self.members.len() {
            if self.members[group].rejected.is_some() {
                continue;
            }
            self.members[kept] = self.members[group];
            self.nodes[kept] = self.nodes[group];
            self.terms[kept] = self.terms[group];
            let cells = group * cells_per_group..(group + 1) * cells_per_group;
            if !self.weights.is_empty() {
                self.weights.copy_within(cells.clone(), kept * cells_per_group);
            }
            self.cells.copy_within(cells, kept * cells_per_group);
            kept += 1;
        }
        self.members.truncate(kept);
        self.nodes.truncate(kept);
        self.terms.truncate(kept);
        self.cells.truncate(kept * cells_per_group);
        self.weights.truncate(kept * cells_per_group);
    }
}

/// The final scores of groups by their raw ones, as the plugin itself makes them.
pub(super) fn normalize(
    score: &LocalScore,
    cycle: &Cycle<'_>,
    raw: impl Iterator<Item = i64>,
    buffer: &mut Vec<NodeScore>,
) -> bool {
    buffer.clear();
    buffer.extend(raw.map(|score| NodeScore { row: Row(0), score }));
    score.named.run(|plugin| plugin.normalize(cycle, buffer)).is_success()
        && buffer.iter().all(|score| (0..=MAX_NODE_SCORE).contains(&score.score))
}
