//! Lists whose places are given to others when they become free.

/// Values that are known by their places.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    /// Puts a value into a free place.
    pub(super) fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(value);
                place
            }
            None => {
                self.places.push(Some(value));
                self.places.len() - 1
            }
        }
    }

    /// Takes a value out for good.
    pub(super) fn remove(&mut self, place: usize) -> Option<T> {
        let value = self.places[place].take();
        if value.is_some() {
            self.free.push(place);
        }
        value
    }

    /// Takes out all values that are not to be kept.
    pub(super) fn remove_unless(&mut self, mut keep: impl FnMut(&T) -> bool) -> Vec<T> {
        let places = 0..self.places.len();
        let dropped: Vec<usize> =
            places.filter(|place| self.get(*place).is_some_and(|value| !keep(value))).collect();
        dropped.into_iter().filter_map(|place| self.remove(place)).collect()
    }

    /// Takes a value out to work with it beside the others. Its place stays its own.
    pub(super) fn lend(&mut self, place: usize) -> Option<T> {
        self.places[place].take()
    }

    /// Puts back what was lent, or something else in its stead.
    pub(super) fn give_back(&mut self, place: usize, value: T) {
        self.places[place] = Some(value);
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.places.get(place)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(place)?.as_mut()
    }

    /// All places that have ever been in use.
    pub(super) fn places(&self) -> std::ops::Range<usize> {
        0..self.places.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten()
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { places: Vec::new(), free: Vec::new() }
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
        assert_eq!(slots.remove(b), None, "a place is free once");
        assert_eq!(slots.insert("d"), b);
        let lent = slots.lend(a).expect("it is there");
        assert_ne!(slots.insert("e"), a, "what is lent keeps its place");
        slots.give_back(a, lent);
        assert_eq!((slots.get(a), slots.get(c)), (Some(&"a"), Some(&"c")));
        assert_eq!(slots.remove_unless(|value| *value != "c"), ["c"]);
        assert_eq!(slots.values().copied().collect::<String>(), "ade");
    }
}
