//! Why rows are rejected, and how often each reason was given.

use supercargo_framework::Status;
use supercargo_model::Row;

/// Why rows are rejected: worked out when somebody first asks, and kept up to date from then on.
#[derive(Default)]
pub(super) struct Rejections {
    statuses: Vec<Status>,
    counts: Vec<usize>,
    of_row: Vec<u16>,
    /// Where there are more different answers than this, nobody counts them.
    max: usize,
}

const NOT_REJECTED: u16 = u16::MAX;

impl Rejections {
    /// No row is rejected yet.
    pub(super) fn of_rows(rows: usize, max: usize) -> Self {
        Rejections { of_row: vec![NOT_REJECTED; rows], max, ..Rejections::default() }
    }

    /// Makes room for more rows.
    pub(super) fn grow(&mut self, rows: usize) {
        self.of_row.resize(rows, NOT_REJECTED);
    }

    /// Whether there are few enough reasons to have counted them.
    pub(super) fn are_known(&self) -> bool {
        self.statuses.len() <= self.max
    }

    /// The different answers, and how many rows got each.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&Status, usize)> {
        self.statuses.iter().zip(self.counts.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Why one row is rejected; none if it is not.
    pub(super) fn of(&self, row: Row) -> Option<&Status> {
        let index = *self.of_row.get(row.0 as usize)?;
        self.statuses.get(usize::from(index))
    }

    pub(super) fn set(&mut self, row: usize, status: Option<Status>) {
        let old = self.of_row[row];
        if let Some(count) = self.counts.get_mut(usize::from(old)) {
            *count -= 1;
        }
        self.of_row[row] = match status {
            None => NOT_REJECTED,
            // There are too many already.
            Some(_) if self.statuses.len() > self.max => NOT_REJECTED,
            Some(status) => {
                let index = self.statuses.iter().position(|known| *known == status).unwrap_or_else(|| {
                    self.statuses.push(status);
                    self.counts.push(0);
                    self.statuses.len() - 1
                });
                self.counts[index] += 1;
                index as u16
            }
        };
    }
}
