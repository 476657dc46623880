//! A heap whose entries can be found, moved and taken out.

/// The place of a pod in the queue's list.
pub(super) type Slot = usize;

/// A heap of slots. What comes first is up to the caller, who passes the same order to every call.
#[derive(Debug, Default)]
pub(super) struct Heap {
    slots: Vec<Slot>,
    /// Where in the heap each slot is.
    places: Vec<Option<usize>>,
}

impl Heap {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The first one.
    pub(super) fn first(&self) -> Option<Slot> {
        self.slots.first().copied()
    }

    /// Puts a slot in.
    pub(super) fn push(&mut self, slot: Slot, less: impl Fn(Slot, Slot) -> bool) {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, None);
        }
        debug_assert!(self.places[slot].is_none(), "a slot is in the heap once");
        self.slots.push(slot);
        self.places[slot] = Some(self.slots.len() - 1);
        self.rise(self.slots.len() - 1, &less);
    }

    /// Takes a slot out; false if it is not there.
    pub(super) fn remove(&mut self, slot: Slot, less: impl Fn(Slot, Slot) -> bool) -> bool {
        let Some(place) = self.places.get_mut(slot).and_then(Option::take) else { return false };
        let last = self.slots.pop().expect("a heap with a place in it is not empty");
        if place < self.slots.len() {
            self.slots[place] = last;
            self.places[last] = Some(place);
            self.settle(place, &less);
        }
        true
    }

    /// Puts all slots where they belong after the order itself has changed.
    pub(super) fn renew(&mut self, less: impl Fn(Slot, Slot) -> bool) {
        for place in (0..self.slots.len() / 2).rev() {
            self.sink(place, &less);
        }
    }

    /// Moves a slot to where it belongs after what is compared has changed.
    pub(super) fn fix(&mut self, slot: Slot, less: impl Fn(Slot, Slot) -> bool) {
        if let Some(place) = self.places.get(slot).copied().flatten() {
            self.settle(place, &less);
        }
    }

    fn settle(&mut self, place: usize, less: &impl Fn(Slot, Slot) -> bool) {
        let place = self.rise(place, less);
        self.sink(place, less);
    }

    fn rise(&mut self, mut place: usize, less: &impl Fn(Slot, Slot) -> bool) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !less(self.slots[place], self.slots[parent]) {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
        place
    }

    fn sink(&mut self, mut place: usize, less: &impl Fn(Slot, Slot) -> bool) {
        loop {
            let mut first = 2 * place + 1;
            if first >= self.slots.len() {
                return;
            }
            if first + 1 < self.slots.len() && less(self.slots[first + 1], self.slots[first]) {
                first += 1;
            }
            if !less(self.slots[first], self.slots[place]) {
                return;
            }
            self.swap(place, first);
            place = first;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.slots.swap(a, b);
        self.places[self.slots[a]] = Some(a);
        self.places[self.slots[b]] = Some(b);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Act {
        Push(Slot, u32),
        Remove(Slot),
        Change(Slot, u32),
        Pop,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0..30usize, 0..10u32).prop_map(|(slot, rank)| Act::Push(slot, rank)),
            (0..30usize).prop_map(Act::Remove),
            (0..30usize, 0..10u32).prop_map(|(slot, rank)| Act::Change(slot, rank)),
            Just(Act::Pop),
        ]
    }

    proptest! {
        #[test]
        fn a_heap_is_a_sorted_set(acts in prop::collection::vec(act(), 1..200)) {
            let (mut heap, mut ranks, mut model) = (Heap::default(), [0u32; 30], BTreeSet::new());
            for act in acts {
                match act {
                    Act::Push(slot, rank) => {
                        if model.iter().all(|(_, other)| *other != slot) {
                            ranks[slot] = rank;
                            heap.push(slot, |a, b| (ranks[a], a) < (ranks[b], b));
                            model.insert((rank, slot));
                        }
                    }
                    Act::Remove(slot) => {
                        let removed = heap.remove(slot, |a, b| (ranks[a], a) < (ranks[b], b));
                        prop_assert_eq!(removed, model.remove(&(ranks[slot], slot)));
                    }
                    Act::Change(slot, rank) => {
                        if model.remove(&(ranks[slot], slot)) {
                            model.insert((rank, slot));
                        }
                        ranks[slot] = rank;
                        heap.fix(slot, |a, b| (ranks[a], a) < (ranks[b], b));
                    }
                    Act::Pop => {
                        if let Some(slot) = heap.first() {
                            heap.remove(slot, |a, b| (ranks[a], a) < (ranks[b], b));
                            prop_assert_eq!(model.pop_first().map(|(_, slot)| slot), Some(slot));
                        }
                    }
                }
                prop_assert_eq!(heap.len(), model.len());
                prop_assert_eq!(heap.first(), model.first().map(|(_, slot)| *slot));
            }
        }
    }
}
