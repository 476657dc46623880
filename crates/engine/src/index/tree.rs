//! Rows by value: which row has the highest, in a few cache lines. Hot.
//!
//! A plane holds some of the table's rows, each with a small number. Large planes are trees of maxima: a line of 64
//! values a leaf, and above it the maximum of each line, of each 64 lines, and so on; lines without rows take no room.
//! Small planes are lists.

/// Values in a line, and entries of a level under one entry of the next.
const LINE: usize = 64;
/// Planes of up to this many rows are lists.
const LIST_ROWS_MAX: usize = 64;
/// So many rows are tried before the excluded ones are left out line by line.
const TRIES_MAX: usize = 4;
/// The value of a row that is not in the plane; those that are have values from 0.
pub(super) const ABSENT: i16 = -1;

/// Some rows of the table, each with a value.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    rows: Rows,
    len: usize,
}

#[derive(Clone, Debug)]
enum Rows {
    List(Vec<(u32, i16)>),
    Tree(MaxTree),
}

/// Maxima over lines, lines of lines, and so on up to one.
#[derive(Clone, Debug)]
struct MaxTree {
    /// Where the values of each line are; [`NO_LINE`] if it has no rows.
    lines: Vec<u32>,
    values: Vec<Line>,
    /// The maximum of each line, of each 64 of those, and so on; the last level is one number.
    levels: Vec<Vec<i16>>,
}

/// The values of 64 rows. Aligned, so that they take two lines of the processor's cache and not parts of three.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Line([i16; LINE]);

const NO_LINE: u32 = u32::MAX;

impl Plane {
    pub(super) fn new() -> Self {
        Plane { rows: Rows::List(Vec::new()), len: 0 }
    }

    /// Makes it the plane of all rows that have a value. What room it has is used again.
    pub(super) fn refill(&mut self, values: &[i16]) {
        self.len = values.chunks(LINE).map(present).sum();
        if self.len <= LIST_ROWS_MAX {
            let rows = values.iter().enumerate().filter(|(_, value)| **value != ABSENT);
            self.rows = Rows::List(rows.map(|(row, value)| (row as u32, *value)).collect());
            return;
        }
        match &mut self.rows {
            Rows::Tree(tree) if tree.lines.len() == values.len().div_ceil(LINE) => tree.refill(values),
            _ => {
                let mut tree = MaxTree::new(values.len());
                tree.refill(values);
                self.rows = Rows::Tree(tree);
            }
        }
    }

    /// The planes of the rows of each part, where `part_of` says which part a row belongs to.
    pub(super) fn of_parts(values: &[i16], part_of: &[u16], parts: usize) -> Vec<Self> {
        let mut lens = vec![0usize; parts];
        let rows = || values.iter().zip(part_of).enumerate().filter(|(_, (value, _))| **value != ABSENT);
        for (_, (_, part)) in rows() {
            lens[usize::from(*part)] += 1;
        }
        let empty = |len: usize| Plane {
            rows: if len <= LIST_ROWS_MAX {
                Rows::List(Vec::with_capacity(len))
            } else {
                Rows::Tree(MaxTree::new(values.len()))
            },
            len,
        };
        let mut planes: Vec<Plane> = lens.into_iter().map(empty).collect();
        for (row, (value, part)) in rows() {
            match &mut planes[usize::from(*part)].rows {
                Rows::List(list) => list.push((row as u32, *value)),
                Rows::Tree(tree) => tree.write(row, *value),
            }
        }
        for plane in &mut planes {
            if let Rows::Tree(tree) = &mut plane.rows {
                tree.find_maxima();
            }
        }
        planes
    }

    /// How many rows are in the plane.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.rows {
            Rows::List(list) => list.capacity() * size_of::<(u32, i16)>(),
            Rows::Tree(tree) => tree.lines.len() * 6 + tree.values.len() * size_of::<Line>(),
        }
    }

    /// Changes a row's value from `old` to `new`, where [`ABSENT`] is out of the plane. `row_count` is the size of the
    /// table.
    pub(super) fn set(&mut self, row: u32, old: i16, new: i16, row_count: usize) {
        if old == new {
            return;
        }
        self.len = self.len + usize::from(old == ABSENT) - usize::from(new == ABSENT);
        if let Rows::List(list) = &self.rows
            && list.len() >= LIST_ROWS_MAX
            && old == ABSENT
        {
            let mut tree = MaxTree::new(row_count);
            for (row, value) in list {
                tree.set(*row, *value);
            }
            self.rows = Rows::Tree(tree);
        }
        match &mut self.rows {
            Rows::Tree(tree) => tree.set(row, new),
            Rows::List(list) => match list.binary_search_by_key(&row, |(row, _)| *row) {
                Ok(index) if new == ABSENT => {
                    list.remove(index);
                }
                Ok(index) => list[index].1 = new,
                Err(index) => list.insert(index, (row, new)),
            },
        }
        if self.len == 0 {
            self.rows = Rows::List(Vec::new());
        }
    }

    /// The highest value; [`ABSENT`] if there are no rows.
    pub(super) fn best(&self) -> i16 {
        match &self.rows {
            Rows::List(list) => list.iter().map(|(_, value)| *value).max().unwrap_or(ABSENT),
            Rows::Tree(tree) => tree.root(),
        }
    }

    /// The highest value of the rows that are not in `excluded`, which is sorted. Rows from `start` on are tried first.
    pub(super) fn best_without(&self, excluded: &[u32], start: u32) -> i16 {
        match &self.rows {
            Rows::List(list) => {
                let kept = list.iter().filter(|(row, _)| excluded.binary_search(row).is_err());
                kept.map(|(_, value)| *value).max().unwrap_or(ABSENT)
            }
            Rows::Tree(tree) => {
                // Most often one of the first rows with the highest value of all is not excluded.
                let best = tree.root();
                let mut from = start as usize;
                for _ in 0..TRIES_MAX {
                    match tree.next(best, from) {
                        Some(row) if excluded.binary_search(&(row as u32)).is_ok() => from = row + 1,
                        Some(_) => return best,
                        None => break,
                    }
                }
                tree.best_without(excluded)
            }
        }
    }

    /// The first row from `start` on, and then from the beginning on, with this value, that is not in `excluded`.
    pub(super) fn first(&self, value: i16, start: u32, excluded: &[u32]) -> Option<u32> {
        self.next(value, start, excluded).or_else(|| self.next(value, 0, excluded))
    }

    /// The first row from `from` on with this value that is not in `excluded`.
    pub(super) fn next(&self, value: i16, mut from: u32, excluded: &[u32]) -> Option<u32> {
        loop {
            let row = match &self.rows {
                Rows::List(list) => {
                    let first = list.partition_point(|(row, _)| *row < from);
                    list[first..].iter().find(|(_, candidate)| *candidate == value).map(|(row, _)| *row)?
                }
                Rows::Tree(tree) => tree.next(value, from as usize)? as u32,
            };
            if excluded.is_empty() || excluded.binary_search(&row).is_err() {
                return Some(row);
            }
            from = row + 1;
        }
    }
}

impl MaxTree {
    fn new(row_count: usize) -> Self {
        let mut levels = Vec::new();
        let mut len = row_count.div_ceil(LINE).max(1);
        loop {
            levels.push(vec![ABSENT; len]);
            if len == 1 {
                break;
            }
            len = len.div_ceil(LINE);
        }
        MaxTree { lines: vec![NO_LINE; levels[0].len()], values: Vec::new(), levels }
    }

    /// Takes over the values of all rows.
    fn refill(&mut self, values: &[i16]) {
        self.values.clear();
        let entries = self.lines.iter_mut().zip(&mut self.levels[0]);
        for ((line, whole), chunk) in entries.zip(values.chunks(LINE)) {
            *whole = maximum(chunk);
            *line = NO_LINE;
            if *whole != ABSENT {
                *line = self.values.len() as u32;
                self.values.push(match chunk.first_chunk() {
                    Some(whole) => Line(*whole),
                    None => {
                        let mut values = Line([ABSENT; LINE]);
                        values.0[..chunk.len()].copy_from_slice(chunk);
                        values
                    }
                });
            }
        }
        self.find_upper_maxima();
    }

    /// Writes a value without bringing the maxima up to date.
    fn write(&mut self, row: usize, value: i16) {
        let line = &mut self.lines[row / LINE];
        if *line == NO_LINE {
            *line = self.values.len() as u32;
            self.values.push(Line([ABSENT; LINE]));
        }
        self.values[*line as usize].0[row % LINE] = value;
    }

    /// Brings all maxima up to date.
    fn find_maxima(&mut self) {
        for (maximum_of_line, line) in self.levels[0].iter_mut().zip(&self.lines) {
            *maximum_of_line = self.values.get(*line as usize).map_or(ABSENT, |values| maximum(&values.0));
        }
        self.find_upper_maxima();
    }

    /// Brings the maxima above those of the lines up to date.
    fn find_upper_maxima(&mut self) {
        for level in 1..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(level);
            for (whole, parts) in above[0].iter_mut().zip(below[level - 1].chunks(LINE)) {
                *whole = maximum(parts);
            }
        }
    }

    fn root(&self) -> i16 {
        self.levels.last().map_or(ABSENT, |top| top[0])
    }

    fn set(&mut self, row: u32, value: i16) {
        let (line, slot) = (row as usize / LINE, row as usize % LINE);
        if line >= self.lines.len() {
            self.grow(line + 1);
        }
        if self.lines[line] == NO_LINE {
            if value == ABSENT {
                return;
            }
            self.lines[line] = u32::try_from(self.values.len()).expect("fewer lines than rows");
            self.values.push(Line([ABSENT; LINE]));
        }
        let values = &mut self.values[self.lines[line] as usize].0;
        let mut old_part = std::mem::replace(&mut values[slot], value);
        let (mut new_part, mut index) = (value, line);
        for level in 0..self.levels.len() {
            let whole = self.levels[level][index];
            // The whole changes if a part rises above it, or sinks that it rested on.
            let new_whole = if new_part >= whole {
                new_part
            } else if old_part == whole {
                self.maximum_below(level, index)
            } else {
                return;
            };
            if new_whole == whole {
                return;
            }
            self.levels[level][index] = new_whole;
            (old_part, new_part, index) = (whole, new_whole, index / LINE);
        }
    }

    /// The maximum of what an entry of a level stands for.
    fn maximum_below(&self, level: usize, index: usize) -> i16 {
        match level.checked_sub(1) {
            None => maximum(&self.values[self.lines[index] as usize].0),
            Some(below) => maximum(&self.levels[below][self.children(below, index)]),
        }
    }

    /// The entries of a level under an entry of the next.
    fn children(&self, level: usize, parent: usize) -> std::ops::Range<usize> {
        parent * LINE..((parent + 1) * LINE).min(self.levels[level].len())
    }

    /// Makes room for more lines; the levels above are made anew.
    fn grow(&mut self, lines: usize) {
        self.lines.resize(lines, NO_LINE);
        let mut level = std::mem::take(&mut self.levels).swap_remove(0);
        level.resize(lines, ABSENT);
        loop {
            let above: Vec<i16> = level.chunks(LINE).map(maximum).collect();
            let is_top = level.len() == 1;
            self.levels.push(std::mem::replace(&mut level, above));
            if is_top {
                return;
            }
        }
    }

    fn next(&self, value: i16, from: usize) -> Option<usize> {
        let line = from / LINE;
        if *self.levels[0].get(line)? >= value
            && let Some(row) = self.find_in_line(line, from % LINE, value)
        {
            return Some(row);
        }
        let mut line = line + 1;
        loop {
            line = self.next_entry(0, line, value)?;
            // A line with higher values need not have this one.
            match self.find_in_line(line, 0, value) {
                Some(row) => return Some(row),
                None => line += 1,
            }
        }
    }

    /// The first entry of a level, from one on, that is at least `value`.
    fn next_entry(&self, level: usize, from: usize, value: i16) -> Option<usize> {
        let entries = self.levels.get(level)?;
        let find = |mut range: std::ops::Range<usize>| range.find(|index| entries[*index] >= value);
        let siblings_end = self.children(level, from / LINE).end;
        find(from..siblings_end).or_else(|| {
            let parent = self.next_entry(level + 1, from / LINE + 1, value)?;
            find(self.children(level, parent))
        })
    }

    fn find_in_line(&self, line: usize, from: usize, value: i16) -> Option<usize> {
        let Line(values) = self.values.get(self.lines[line] as usize)?;
        let slot = values[from..].iter().position(|candidate| *candidate == value)?;
        Some(line * LINE + from + slot)
    }

    fn best_without(&self, excluded: &[u32]) -> i16 {
        // The table may have grown since: rows beyond the tree have no value in it.
        let rows = self.lines.len() * LINE;
        let excluded = &excluded[..excluded.partition_point(|row| (*row as usize) < rows)];
        self.best_below(self.levels.len() - 1, 0, excluded, ABSENT)
    }

    /// The highest value under an entry of a level without the excluded rows, which are all under it; or `best`, if that
    /// is higher.
    fn best_below(&self, level: usize, index: usize, excluded: &[u32], best: i16) -> i16 {
        if self.levels[level][index] <= best {
            return best;
        }
        if excluded.is_empty() {
            return self.levels[level][index];
        }
        let Some(below) = level.checked_sub(1) else {
            return best.max(self.line_without(index, excluded));
        };
        // Entries without excluded rows are known at once, and often make it needless to look into the others.
        let rows_per_entry = LINE.pow(level as u32);
        let mut best = best;
        let mut rest = excluded;
        let mut next = self.children(below, index).start;
        while let Some(row) = rest.first() {
            let entry = *row as usize / rows_per_entry;
            best = best.max(maximum(&self.levels[below][next..entry]));
            let here = rest.partition_point(|row| *row as usize / rows_per_entry == entry);
            rest = &rest[here..];
            next = entry + 1;
        }
        best = best.max(maximum(&self.levels[below][next..self.children(below, index).end]));
        let mut rest = excluded;
        while let Some(row) = rest.first() {
            let entry = *row as usize / rows_per_entry;
            let here = rest.partition_point(|row| *row as usize / rows_per_entry == entry);
            best = self.best_below(below, entry, &rest[..here], best);
            rest = &rest[here..];
        }
        best
    }

    fn line_without(&self, line: usize, excluded: &[u32]) -> i16 {
        let Some(Line(values)) = self.values.get(self.lines[line] as usize) else { return ABSENT };
        let mut values = *values;
        for row in excluded {
            values[*row as usize % LINE] = ABSENT;
        }
        maximum(&values)
    }
}

/// How many of the values of a line are not absent.
fn present(values: &[i16]) -> usize {
    // Small numbers: the processor adds many of them at once.
    values.iter().map(|value| i16::from(*value != ABSENT)).sum::<i16>() as usize
}

fn maximum(values: &[i16]) -> i16 {
    values.iter().copied().fold(ABSENT, i16::max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    struct Question {
        value: i16,
        start: u32,
        excluded: Vec<u32>,
        /// So many of the highest rows are excluded as well.
        excluded_best: usize,
    }

    /// Rows around the borders of lines and of lines of lines.
    fn row() -> impl Strategy<Value = u32> {
        prop_oneof![0..200u32, 4000..4200u32, 8100..8300u32]
    }

    /// Few values, so that there are ties, or many, so that there are none.
    fn value() -> impl Strategy<Value = i16> {
        prop_oneof![-1..4i16, -1..1000i16]
    }

    fn question() -> impl Strategy<Value = Question> {
        let excluded = prop::collection::btree_set(row(), 0..20);
        (0..4i16, row(), excluded, 0..20usize).prop_map(|(value, start, excluded, excluded_best)| Question {
            value,
            start,
            excluded: excluded.into_iter().collect(),
            excluded_best,
        })
    }

    #[test]
    fn a_refilled_plane_holds_the_new_values_only() {
        let mut plane = Plane::new();
        // A tree, another one in its room, one without a line in the middle, a longer one, and a list.
        let tables: [Vec<i16>; 5] = [
            (0..300).map(|row| row % 7).collect(),
            (0..300).map(|row| row % 5 - 1).collect(),
            (0..300).map(|row| if (64..128).contains(&row) { ABSENT } else { row % 11 }).collect(),
            (0..5000).map(|row| row % 13).collect(),
            vec![ABSENT, 3, ABSENT, 5],
        ];
        for values in tables {
            plane.refill(&values);
            let present = || values.iter().zip(0..).filter(|(value, _)| **value != ABSENT);
            assert_eq!(plane.len(), present().count());
            let best = present().map(|(value, _)| *value).max().expect("there is a row");
            assert_eq!(plane.best(), best);
            let rows: Vec<u32> = present().filter(|(value, _)| **value == best).map(|(_, row)| row).collect();
            assert_eq!(plane.next(best, 0, &[]), rows.first().copied());
            assert_eq!(plane.next(best, rows[0] + 1, &[]), rows.get(1).copied());
            assert_eq!(plane.next(best + 1, 0, &[]), None, "nothing is left of earlier values");
        }
    }

    #[test]
    fn rows_beyond_a_tree_may_be_excluded() {
        let mut plane = Plane::new();
        plane.refill(&[3; 129 * LINE]);
        plane.set(5, 3, 7, 1);
        let beyond = 129 * LINE as u32;
        assert_eq!(plane.best_without(&[5, beyond, beyond + 70], 0), 3);
        assert_eq!(plane.best_without(&[beyond + 9_000], 0), 7);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn a_plane_is_a_map_from_rows_to_values(
            writes in prop::collection::vec((row(), value()), 1..400),
            questions in prop::collection::vec(question(), 10),
        ) {
            let (mut plane, mut model) = (Plane::new(), std::collections::BTreeMap::new());
            for (row, value) in writes {
                let old = if value == ABSENT { model.remove(&row) } else { model.insert(row, value) };
                // The table grows while the plane is in use.
                plane.set(row, old.unwrap_or(ABSENT), value, 1);
                prop_assert_eq!(plane.len(), model.len());
                prop_assert_eq!(plane.best(), model.values().copied().max().unwrap_or(ABSENT));
            }
            for Question { value, start, mut excluded, excluded_best } in questions {
                let mut by_value: Vec<(i16, u32)> = model.iter().map(|(row, value)| (*value, *row)).collect();
                by_value.sort_unstable();
                excluded.extend(by_value.iter().rev().take(excluded_best).map(|(_, row)| *row));
                excluded.sort_unstable();
                excluded.dedup();
                let kept = || model.iter().filter(|(row, _)| excluded.binary_search(row).is_err());
                prop_assert_eq!(
                    plane.best_without(&excluded, start),
                    kept().map(|(_, value)| *value).max().unwrap_or(ABSENT)
                );
                let rows = kept().filter(|(_, candidate)| **candidate == value).map(|(row, _)| *row);
                let first = rows.min_by_key(|row| (*row < start, *row));
                prop_assert_eq!(plane.first(value, start, &excluded), first);
            }
        }
    }
}
