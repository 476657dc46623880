//! Lists whose positions are given to others when they become free.

/// Values that are known by their positions.
#[derive(Debug)]
pub(super) struct Slots<T> {
    positions: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    /// Puts a value into a free position.
    pub(super) fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(position) => {
                self.positions[position] = Some(value);
                position
            }
            None => {
                self.positions.push(Some(value));
                self.positions.len() - 1
            }
        }
    }

    /// Takes a value out for good.
    pub(super) fn remove(&mut self, position: usize) -> Option<T> {
        let value = self.positions[position].take();
        if value.is_some() {
            self.free.push(position);
        }
        value
    }

    /// Takes out all values that are not to be kept.
    pub(super) fn remove_unless(&mut self, mut keep: impl FnMut(&T) -> bool) -> Vec<T> {
        let positions = 0..self.positions.len();
        let dropped: Vec<usize> =
            positions.filter(|position| self.get(*position).is_some_and(|value| !keep(value))).collect();
        dropped.into_iter().filter_map(|position| self.remove(position)).collect()
    }

    /// Takes a value out to work with it beside the others. Its position stays its own.
    pub(super) fn lend(&mut self, position: usize) -> Option<T> {
        self.positions[position].take()
    }

    /// Puts back what was lent, or something else in its stead.
    pub(super) fn give_back(&mut self, position: usize, value: T) {
        self.positions[position] = Some(value);
    }

    pub(super) fn get(&self, position: usize) -> Option<&T> {
        self.positions.get(position)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        self.positions.get_mut(position)?.as_mut()
    }

    /// All positions that have ever been in use.
    pub(super) fn positions(&self) -> std::ops::Range<usize> {
        0..self.positions.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.positions.iter().flatten()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.positions.iter_mut().flatten()
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { positions: Vec::new(), free: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_to_another_once_it_is_free() {
        let mut slots = Slots::default();
        let [a, b, c] = ["a", "b", "c"].map(|value| slots.insert(value));
        assert_eq!(slots.remove(b), Some("b"));
        assert_eq!(slots.remove(b), None, "a position is free once");
        assert_eq!(slots.insert("d"), b);
        let lent = slots.lend(a).expect("it is there");
        assert_ne!(slots.insert("e"), a, "what is lent keeps its position");
        slots.give_back(a, lent);
        assert_eq!((slots.get(a), slots.get(c)), (Some(&"a"), Some(&"c")));
        assert_eq!(slots.remove_unless(|value| *value != "c"), ["c"]);
        assert_eq!(slots.values().copied().collect::<String>(), "ade");
    }
}
