//! The rows that a decision looks at one by one. Hot.

use std::sync::Arc;

use supercargo_framework::Code;
use supercargo_model::Pod;

use super::base::Base;
use super::class::{ClassCounter, Indexed};
use super::planes::Planes;
use super::tree::ABSENT;
use super::{Index, Question, filter_with_nominees};

impl Index {
    /// Finds the rows that must be looked at one by one, and brings the class's planes up to date; false if the
    /// decision has to be made the plain way.
    pub(super) fn gather_singles(
        &mut self,
        question: &Question<'_>,
        indexed: &mut Indexed,
        base: &Base,
    ) -> bool {
        self.scratch.singles.clear();
        if !indexed.by_row.is_empty() {
            if indexed.planes.is_none() && indexed.by_row.iter().any(|counter| self.needs_planes(counter)) {
                let (rows, bytes) = (self.table.rows(), self.limits.base_bytes);
                self.statistics.planes_dropped += self.classes.make_room_for_planes(rows, bytes);
                indexed.planes = Some(Planes::default());
            }
            let is_by_small_domain = indexed.by_row.iter().any(|counter| counter.is_by_small_domain);
            self.statistics.by_domain_counts += u64::from(is_by_small_domain);
            match &mut indexed.planes {
                Some(planes) => {
                    self.statistics.with_own_planes += 1;
                    if !planes.catch_up(&indexed.by_row, base, &self.table, &mut self.counting) {
                        return false;
                    }
                }
                None => {
                    for counter in &indexed.by_row {
                        counter.extend_with_rows(&mut self.scratch.singles, &self.counting);
                    }
                    self.scratch.singles.sort_unstable();
                    self.scratch.singles.dedup();
                }
            }
        }
        self.gather_nominated(question, indexed, base)
    }

    /// Rows that pods are nominated to are tried as if those ran there already.
    fn gather_nominated(&mut self, question: &Question<'_>, indexed: &mut Indexed, base: &Base) -> bool {
        self.scratch.nominated.clear();
        let (cluster, pod) = (question.context.cluster, question.pod);
        for (name, others) in cluster.nominated() {
            let counts = |other: &Arc<Pod>| other.priority() >= pod.priority() && other.uid != pod.uid;
            let Some(row) = cluster.row_of(name).filter(|_| others.iter().any(counts)) else { continue };
            if !indexed.filters.is_empty() {
                return false;
            }
            let status = filter_with_nominees(question, indexed, row);
            if status.code() == Code::Error {
                return false;
            }
            let fits_alone = base.values[row.0 as usize] != ABSENT;
            if !status.is_success() {
                self.scratch.nominated.push((row.0, status));
                if fits_alone && let Err(position) = self.scratch.singles.binary_search(&row.0) {
                    self.scratch.singles.insert(position, row.0);
                }
            }
        }
        true
    }

    /// Whether a counter counts something for so many rows that the class has planes of its own, or asks for what only those know.
    fn needs_planes(&self, counter: &ClassCounter) -> bool {
        // At most so many rows are in the domain of a row with pods.
        let rows_of_domain = match counter.is_by_small_domain {
            true => self.counting.keys.get(counter.column).largest(),
            false => 1,
        };
        counter.counts_domains
            || self.counting.row_count(counter.source) * rows_of_domain > self.limits.singles
    }
}
