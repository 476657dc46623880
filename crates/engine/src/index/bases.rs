//! Which bases are kept.

use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::base::Base;
use super::class::{BaseKey, Indexed};
use super::slots::place;

/// All bases together may take about so many bytes; the ones that were not used for longest go first.
const MAX_BASE_BYTES: usize = 512 << 20;
/// The bases. The first one in the list is nobody's own: where there are many already, what comes up for the first time is
/// worked out there, and gets a base of its own only when it comes up again.
pub(super) struct Bases {
    list: Vec<Option<Box<Base>>>,
    by_key: FxHashMap<Arc<BaseKey>, usize>,
    /// What is worked out in the first one.
    guest_key: Option<Arc<BaseKey>>,
    /// Hashes of what has come up once.
    seen: FxHashSet<u64>,
    /// How many bases were ever kept.
    made: u64,
}

/// The number of the base that is nobody's own.
const GUEST: usize = 0;
/// So many bases are kept at once.
const MAX_EAGER: usize = 64;
/// When so many bases have come up once, they are forgotten.
const MAX_SEEN: usize = 1 << 16;

impl Default for Bases {
    fn default() -> Self {
        let guest = Some(Box::new(Base::new()));
        Bases {
            list: vec![guest],
            by_key: FxHashMap::default(),
            guest_key: None,
            seen: FxHashSet::default(),
            made: 0,
        }
    }
}

impl Bases {
    /// The base of a class, made if there is none.
    pub(super) fn find(&mut self, indexed: &mut Indexed) -> usize {
        if let Some((number, identity)) = indexed.base
            && self.list[number].as_ref().is_some_and(|base| base.identity == identity)
        {
            return number;
        }
        let number = match self.by_key.get(&indexed.base_key) {
            Some(number) => *number,
            None => self.admit(indexed),
        };
        let base = self.get_mut(number);
        if base.kinds != indexed.kinds {
            // It was worked out with objects that have changed since.
            base.assign(indexed);
        }
        let identity = base.identity;
        if number != GUEST {
            indexed.base = Some((number, identity));
        }
        number
    }

    /// Works out a base that is not kept, or keeps it from now on.
    fn admit(&mut self, indexed: &Indexed) -> usize {
        let mut base = if self.guest_key.as_ref() == Some(&indexed.base_key) {
            self.guest_key = None;
            self.list[GUEST].replace(Box::new(Base::new())).expect("the first one is always there")
        } else {
            if self.seen.len() >= MAX_SEEN {
                self.seen.clear();
            }
            let is_new = self.seen.insert(FxBuildHasher.hash_one(&indexed.base_key));
            if is_new && self.by_key.len() >= MAX_EAGER {
                self.list[GUEST].get_or_insert_with(|| Box::new(Base::new())).assign(indexed);
                self.guest_key = Some(indexed.base_key.clone());
                return GUEST;
            }
            let mut base = Box::new(Base::new());
            base.assign(indexed);
            base
        };
        self.make_room();
        self.made += 1;
        base.identity = self.made;
        let number = place(&mut self.list, base);
        self.by_key.insert(indexed.base_key.clone(), number);
        number
    }

    fn make_room(&mut self) {
        let bytes: usize = self.list.iter().flatten().map(|base| base.bytes()).sum();
        if bytes < MAX_BASE_BYTES {
            return;
        }
        let mut used: Vec<u64> = self.list.iter().flatten().map(|base| base.last_used).collect();
        used.sort_unstable();
        let oldest_kept = used[used.len() / 2];
        for place in &mut self.list[GUEST + 1..] {
            if place.as_ref().is_some_and(|base| base.last_used < oldest_kept) {
                *place = None;
            }
        }
        let list = &self.list;
        self.by_key.retain(|_, number| list[*number].is_some());
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Takes a base out, to work with it beside the others.
    pub(super) fn take(&mut self, number: usize) -> Box<Base> {
        self.list[number].take().expect("a base that was found is there")
    }

    pub(super) fn put_back(&mut self, number: usize, base: Box<Base>) {
        self.list[number] = Some(base);
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Base {
        self.list[number].as_mut().expect("a base that was found is there")
    }
}
