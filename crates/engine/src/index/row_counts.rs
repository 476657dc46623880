//! Something counted for rows: for few of them in a map, for many in a column. Hot.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

/// What is counted for more than one row in so many is kept in a column.
const COLUMN_SHARE: usize = 8;
/// A column that is for fewer rows than one in so many becomes a map again.
const MAP_SHARE: usize = 32;
/// For fewer rows a map is good enough.
const COLUMN_ROWS_MIN: usize = 64;

/// A value for each row; rows without one have the default.
#[derive(Debug)]
pub(super) struct RowCounts<T> {
    values: Values<T>,
    /// How many rows have another value than the default.
    len: usize,
    /// One more than the highest row that has had a value.
    rows: usize,
}

#[derive(Debug)]
enum Values<T> {
    Map(FxHashMap<u32, T>),
    Column(Vec<T>),
}

impl<T> Default for RowCounts<T> {
    fn default() -> Self {
        RowCounts { values: Values::Map(FxHashMap::default()), len: 0, rows: 0 }
    }
}

impl<T: Copy + Default + PartialEq> RowCounts<T> {
    pub(super) fn get(&self, row: u32) -> T {
        let value = match &self.values {
            Values::Map(map) => map.get(&row),
            Values::Column(column) => column.get(row as usize),
        };
        value.copied().unwrap_or_default()
    }

    /// Sets a row's value, the default to have none.
    pub(super) fn set(&mut self, row: u32, value: T) {
        self.change(row, |_| value);
    }

    /// Changes a row's value. It is looked for once: in a large table that is most of what it costs.
    pub(super) fn change(&mut self, row: u32, new: impl FnOnce(T) -> T) {
        let none = T::default();
        let (old, value) = match &mut self.values {
            Values::Map(map) => match map.entry(row) {
                Entry::Occupied(mut entry) => {
                    let old = *entry.get();
                    let value = new(old);
                    if value == none {
                        entry.remove();
                    } else {
                        *entry.get_mut() = value;
                    }
                    (old, value)
                }
                Entry::Vacant(entry) => {
                    let value = new(none);
                    if value != none {
                        entry.insert(value);
                    }
                    (none, value)
                }
            },
            Values::Column(column) => {
                if row as usize >= column.len() {
                    column.resize(row as usize + 1, none);
                }
                let kept = &mut column[row as usize];
                let old = std::mem::replace(kept, new(*kept));
                (old, *kept)
            }
        };
        if (old == none) != (value == none) {
            self.rows = self.rows.max(row as usize + 1);
            self.len = if value == none { self.len - 1 } else { self.len + 1 };
            self.choose_form();
        }
    }

    /// Adds the rows that have a value.
    pub(super) fn extend_with_rows(&self, rows: &mut Vec<u32>) {
        match &self.values {
            Values::Map(map) => rows.extend(map.keys()),
            Values::Column(column) => {
                let has_value = |(value, _): &(&T, u32)| **value != T::default();
                rows.extend(column.iter().zip(0..).filter(has_value).map(|(_, row)| row));
            }
        }
    }

    /// How many rows have a value.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The rows that have a value.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, T)> {
        let (map, column) = match &self.values {
            Values::Map(map) => (Some(map), None),
            Values::Column(column) => (None, Some(column)),
        };
        let in_map = map.into_iter().flatten().map(|(row, value)| (*row, *value));
        let in_column = column.into_iter().flatten().zip(0..).map(|(value, row)| (row, *value));
        in_map.chain(in_column).filter(|(_, value)| *value != T::default())
    }

    fn choose_form(&mut self) {
        match &self.values {
            Values::Map(map) if self.len >= COLUMN_ROWS_MIN && self.len * COLUMN_SHARE > self.rows => {
                let mut column = vec![T::default(); self.rows];
                for (row, value) in map {
                    column[*row as usize] = *value;
                }
                self.values = Values::Column(column);
            }
            Values::Column(_) if self.len * MAP_SHARE < self.rows => {
                self.values = Values::Map(self.iter().collect());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Rows get values, first many of them and then few, and lose them.
        #[test]
        fn counts_of_rows_are_a_map(
            first in prop::collection::vec((0..600u32, 0..3u32), 0..900),
            last in prop::collection::vec((0..600u32, prop::bool::weighted(0.05)), 0..3000),
        ) {
            let (mut counts, mut model) = (RowCounts::default(), BTreeMap::new());
            let last = last.into_iter().map(|(row, has)| (row, u32::from(has)));
            for (row, value) in first.into_iter().chain(last) {
                counts.change(row, |_| value);
                if value == 0 { model.remove(&row) } else { model.insert(row, value) };
                prop_assert_eq!((counts.get(row), counts.len()), (value, model.len()));
            }
            let mut rows = Vec::new();
            counts.extend_with_rows(&mut rows);
            rows.sort_unstable();
            prop_assert_eq!(rows, model.keys().copied().collect::<Vec<u32>>());
            let mut all: Vec<(u32, u32)> = counts.iter().collect();
            all.sort_unstable();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }
}
