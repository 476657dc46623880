//! A heap whose entries can be found, moved and taken out.

use supercargo_framework::QueueRank;

/// The place of a pod in the queue's list.
pub(super) type Slot = usize;

/// How many entries lie below one: more than two, because they lie side by side in memory, and there are fewer levels.
const CHILDREN: usize = 4;

/// A heap of slots. What comes first is up to the caller, who passes the same order to every call.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    entries: Vec<Entry>,
    /// Where in the heap each slot is.
    places: Vec<Option<usize>>,
}

/// A slot, and what it may be sorted by. A rank lies in the heap itself, so that slots are put in order without a look at the
/// pods in them, which are all over the memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) slot: Slot,
    pub(super) rank: QueueRank,
    /// The last word between slots of one rank.
    pub(super) arrival: u64,
}

impl Entry {
    /// For orders that do not look at ranks.
    pub(super) fn unranked(slot: Slot) -> Self {
        Entry { slot, ..Entry::default() }
    }

    /// Whether a slot goes before another by their ranks.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        (self.rank, self.arrival) < (other.rank, other.arrival)
    }
}

impl Heap {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first one.
    pub(super) fn first(&self) -> Option<Slot> {
        self.entries.first().map(|entry| entry.slot)
    }

    /// Puts a slot in.
    pub(super) fn push(&mut self, entry: Entry, less: impl Fn(&Entry, &Entry) -> bool) {
        let slot = entry.slot;
        if self.places.len() <= slot {
            self.places.resize(slot + 1, None);
        }
        debug_assert!(self.places[slot].is_none(), "a slot is in the heap once");
        self.entries.push(entry);
        self.places[slot] = Some(self.entries.len() - 1);
        self.rise(self.entries.len() - 1, &less);
    }

    /// Takes a slot out; false if it is not there.
    pub(super) fn remove(&mut self, slot: Slot, less: impl Fn(&Entry, &Entry) -> bool) -> bool {
        let Some(place) = self.places.get_mut(slot).and_then(Option::take) else { return false };
        let last = self.entries.pop().expect("a heap with a place in it is not empty");
        if place < self.entries.len() {
            self.entries[place] = last;
            self.places[last.slot] = Some(place);
            self.settle(place, &less);
        }
        true
    }

    /// Puts all slots where they belong after the order itself has changed. Pods are looked at in the order of their slots, which is
    /// that of their places in memory as long as none has gone.
    pub(super) fn renew(&mut self, entry: impl Fn(Slot) -> Entry, less: impl Fn(&Entry, &Entry) -> bool) {
        for (slot, place) in self.places.iter().enumerate() {
            if let Some(place) = place {
                self.entries[*place] = entry(slot);
            }
        }
        for place in (0..self.entries.len().div_ceil(CHILDREN)).rev() {
            self.sink(place, &less);
        }
    }

    /// Moves a slot to where it belongs after what is compared has changed.
    pub(super) fn fix(&mut self, entry: Entry, less: impl Fn(&Entry, &Entry) -> bool) {
        if let Some(place) = self.places.get(entry.slot).copied().flatten() {
            self.entries[place] = entry;
            self.settle(place, &less);
        }
    }

    fn settle(&mut self, place: usize, less: &impl Fn(&Entry, &Entry) -> bool) {
        let place = self.rise(place, less);
        self.sink(place, less);
    }

    fn rise(&mut self, mut place: usize, less: &impl Fn(&Entry, &Entry) -> bool) -> usize {
        let rising = self.entries[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if !less(&rising, &self.entries[parent]) {
                break;
            }
            self.put(place, self.entries[parent]);
            place = parent;
        }
        self.put(place, rising);
        place
    }

    fn sink(&mut self, mut place: usize, less: &impl Fn(&Entry, &Entry) -> bool) {
        let sinking = self.entries[place];
        while let Some(first) = self.first_below(place, less)
            && less(&self.entries[first], &sinking)
        {
            self.put(place, self.entries[first]);
            place = first;
        }
        self.put(place, sinking);
    }

    /// Where the first of those directly below a place is.
    fn first_below(&self, place: usize, less: &impl Fn(&Entry, &Entry) -> bool) -> Option<usize> {
        let begin = CHILDREN * place + 1;
        let end = self.entries.len().min(begin + CHILDREN);
        (begin..end).reduce(
            |first, other| {
                if less(&self.entries[other], &self.entries[first]) { other } else { first }
            },
        )
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.entries[place] = entry;
        self.places[entry.slot] = Some(place);
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
        Reverse,
        Pop,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0..30usize, 0..=10u32).prop_map(|(slot, rank)| Act::Push(slot, rank)),
            (0..30usize).prop_map(Act::Remove),
            (0..30usize, 0..=10u32).prop_map(|(slot, rank)| Act::Change(slot, rank)),
            Just(Act::Reverse),
            Just(Act::Pop),
        ]
    }

    fn entry(slot: Slot, rank: u32) -> Entry {
        Entry { slot, rank: [rank.into(), 0], arrival: slot as u64 }
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
                            heap.push(entry(slot, rank), Entry::is_before);
                            model.insert((rank, slot));
                        }
                    }
                    Act::Remove(slot) => {
                        let removed = heap.remove(slot, Entry::is_before);
                        prop_assert_eq!(removed, model.remove(&(ranks[slot], slot)));
                    }
                    Act::Change(slot, rank) => {
                        if model.remove(&(ranks[slot], slot)) {
                            model.insert((rank, slot));
                        }
                        ranks[slot] = rank;
                        heap.fix(entry(slot, rank), Entry::is_before);
                    }
                    Act::Reverse => {
                        ranks = ranks.map(|rank| 10 - rank);
                        heap.renew(|slot| entry(slot, ranks[slot]), Entry::is_before);
                        model = model.into_iter().map(|(rank, slot)| (10 - rank, slot)).collect();
                    }
                    Act::Pop => {
                        if let Some(slot) = heap.first() {
                            heap.remove(slot, Entry::is_before);
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
