//! Which bases are kept.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::base::Base;
use super::class::{BaseKey, Hashed, Indexed};
use super::limits::IndexLimits;
use super::slots::Slots;

/// The bases. The first one in the list is nobody's own: where there are many already, what comes up for the first time is
/// worked out there, and gets a base of its own only when it comes up again.
pub(super) struct Bases {
    list: Slots<Box<Base>>,
    by_key: FxHashMap<Arc<Hashed<BaseKey>>, usize>,
    /// What is worked out in the first one.
    guest_key: Option<Arc<Hashed<BaseKey>>>,
    /// Hashes of what has come up once.
    seen: FxHashSet<u64>,
    /// How many bases were ever kept.
    made: u64,
    /// How many were dropped because all took too much.
    pub(super) dropped: u64,
    limits: IndexLimits,
}

/// The number of the guest base, which is no class's own.
const GUEST: usize = 0;
/// The identity of the guest base, which tells it from all others.
const NO_IDENTITY: u64 = 0;

/// Whether this is the number of the guest base.
pub(super) fn is_guest(number: usize) -> bool {
    number == GUEST
}

impl Default for Bases {
    fn default() -> Self {
        Bases::new(IndexLimits::default())
    }
}

impl Bases {
    pub(super) fn new(limits: IndexLimits) -> Self {
        let mut list = Slots::default();
        list.insert(Box::new(Base::new()));
        Bases {
            list,
            by_key: FxHashMap::default(),
            guest_key: None,
            seen: FxHashSet::default(),
            made: 0,
            dropped: 0,
            limits,
        }
    }

    /// The base of a class, made if there is none.
    pub(super) fn find(&mut self, indexed: &mut Indexed) -> usize {
        if let Some((number, identity)) = indexed.base
            && self.list.get(number).is_some_and(|base| base.identity == identity)
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
            std::mem::replace(self.get_mut(GUEST), Base::new())
        } else {
            if self.seen.len() >= self.limits.seen_bases {
                self.seen.clear();
            }
            let is_new = self.seen.insert(indexed.base_key.number());
            if is_new && self.by_key.len() >= self.limits.eager_bases {
                self.get_mut(GUEST).assign(indexed);
                self.guest_key = Some(indexed.base_key.clone());
                return GUEST;
            }
            let mut base = Base::new();
            base.assign(indexed);
            base
        };
        self.make_room();
        self.made += 1;
        base.identity = self.made;
        let number = self.list.insert(Box::new(base));
        self.by_key.insert(indexed.base_key.clone(), number);
        number
    }

    fn make_room(&mut self) {
        let bytes: usize = self.list.values().map(|base| base.bytes()).sum();
        if bytes < self.limits.base_bytes {
            return;
        }
        let mut used: Vec<u64> = self.list.values().map(|base| base.last_used).collect();
        used.sort_unstable();
        let oldest_kept = used[used.len() / 2];
        let dropped =
            self.list.remove_unless(|base| base.last_used >= oldest_kept || base.identity == NO_IDENTITY);
        self.dropped += dropped.len() as u64;
        let list = &self.list;
        self.by_key.retain(|_, number| list.get(*number).is_some());
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Takes a base out, to work with it beside the others.
    pub(super) fn take(&mut self, number: usize) -> Box<Base> {
        self.list.lend(number).expect("a base that was found is there")
    }

    pub(super) fn put_back(&mut self, number: usize, base: Box<Base>) {
        self.list.give_back(number, base);
    }

    pub(super) fn get(&self, number: usize) -> &Base {
        self.list.get(number).expect("a base that was found is there")
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Base {
        self.list.get_mut(number).expect("a base that was found is there")
    }
}
