//! What happened while pods were tried, kept until the last of them is done.

use std::collections::VecDeque;

use supercargo_framework::ClusterEvent;

use crate::scheduler::happenings::Happening;

/// So many happenings are kept for pods that are being tried. For a pod that misses some, any may have helped.
const HAPPENINGS_MAX: usize = 10_000;

/// What happened, numbered in that order.
#[derive(Clone, Debug, Default)]
pub(super) struct Happened {
    list: VecDeque<Happening>,
    /// How many happenings were dropped from the front.
    forgotten: u64,
    /// The numbers of those in the list, by what they were: thousands of pods may want to know, each of few of them.
    by_event: Vec<(ClusterEvent, VecDeque<u64>)>,
}

impl Happened {
    /// The number of what happens next.
    pub(super) fn next(&self) -> u64 {
        self.forgotten + self.list.len() as u64
    }

    pub(super) fn keep(&mut self, happening: Happening) {
        if self.list.len() == HAPPENINGS_MAX {
            self.forget();
        }
        let (event, number) = (happening.event, self.next());
        match self.by_event.iter_mut().find(|(known, _)| *known == event) {
            Some((_, numbers)) => numbers.push_back(number),
            None => self.by_event.push((event, VecDeque::from([number]))),
        }
        self.list.push_back(happening);
    }

    fn forget(&mut self) -> bool {
        let Some(first) = self.list.pop_front() else { return false };
        self.forgotten += 1;
        if let Some(place) = self.by_event.iter().position(|(known, _)| *known == first.event) {
            self.by_event[place].1.pop_front();
            if self.by_event[place].1.is_empty() {
                self.by_event.swap_remove(place);
            }
        }
        true
    }

    /// Forgets what happened before that number.
    pub(super) fn forget_before(&mut self, number: u64) {
        while self.forgotten < number && self.forget() {}
    }

    /// What is kept, as it happened.
    pub(super) fn events(&self) -> impl Iterator<Item = ClusterEvent> {
        self.list.iter().map(|happening| happening.event)
    }

    /// What has happened from that number on, of the events that are meant, event by event; none if some of it was forgotten.
    pub(super) fn since(
        &self,
        number: u64,
        is_meant: impl Fn(ClusterEvent) -> bool,
    ) -> Option<impl Iterator<Item = &Happening>> {
        let is_known = number >= self.forgotten;
        let meant = self.by_event.iter().filter(move |(event, numbers)| {
            numbers.back().is_some_and(|last| *last >= number) && is_meant(*event)
        });
        let numbers = meant.flat_map(move |(_, numbers)| {
            let first = numbers.partition_point(|known| *known < number);
            numbers.range(first..)
        });
        is_known.then(|| numbers.map(|known| &self.list[(known - self.forgotten) as usize]))
    }
}

#[cfg(test)]
mod tests {
    use supercargo_framework::Actions;

    use super::*;
    use crate::scheduler::happenings::What;

    fn happening(actions: Actions) -> Happening {
        Happening { event: ClusterEvent::pod(actions), what: What::Pod { old: None, new: None } }
    }

    #[test]
    fn what_is_found_is_what_a_look_at_all_finds() {
        let kinds = [Actions::ADD, Actions::DELETE, Actions::UPDATE_POD_LABEL];
        let mut happened = Happened::default();
        let mut all: Vec<Actions> = Vec::new();
        for number in 0..HAPPENINGS_MAX + 500 {
            let kind = kinds[(number * number / 3) % 3];
            happened.keep(happening(kind));
            all.push(kind);
        }
        happened.forget_before(700);
        assert_eq!(happened.events().count(), all.len() - 700);
        for number in [699, 700, 701, 5_000, all.len() - 1, all.len()] {
            for kind in kinds {
                let found = happened.since(number as u64, |event| event == ClusterEvent::pod(kind));
                let expected = all[number..].iter().filter(|known| **known == kind).count();
                assert_eq!(found.map(Iterator::count), (number >= 700).then_some(expected), "from {number}");
            }
        }
        happened.forget_before(u64::MAX);
        assert_eq!((happened.events().count(), happened.by_event.len()), (0, 0));
        assert_eq!(happened.next(), all.len() as u64);
    }
}
