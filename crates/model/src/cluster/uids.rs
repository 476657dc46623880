//! Hot: what is looked up by the UID of a pod, in parts that clones share until one of them changes.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::IndexSet;
use indexmap::set::MutableValues;
use rustc_hash::FxBuildHasher;

use super::standings::Known;
use crate::pod::Pod;

/// The parts of a set. A clone copies a pointer for each, and the first change of a part that is shared copies what is in it: one in so
/// many of all. Small parts grow often: to bind a pod takes 70 instructions more than with one part, and 170 more with 256 parts.
const PARTS: usize = 16;
/// Spreads UIDs that differ in a few bits over all parts: an odd number without a pattern.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Values that hold the UID that they are found by: a map would hold it twice.
#[derive(Clone, Debug)]
pub(super) struct UidSet<T> {
    parts: Box<[Arc<Part<T>>]>,
    len: usize,
}

/// This kind of set remembers hashes: as it grows it need not look at each pod again.
type Part<T> = IndexSet<ByUid<T>, FxBuildHasher>;

/// A value of a [`UidSet`].
pub(super) trait HasUid {
    fn uid(&self) -> &Arc<str>;
}

#[derive(Clone, Debug)]
struct ByUid<T>(T);

impl<T: HasUid + Clone> UidSet<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, uid: &str) -> Option<&T> {
        self.parts[part_of(uid)].get(uid).map(|ByUid(value)| value)
    }

    /// A value to change, but for its UID. Its part is copied if it is shared.
    pub(super) fn get_mut(&mut self, uid: &str) -> Option<&mut T> {
        let part = Arc::make_mut(&mut self.parts[part_of(uid)]);
        part.get_full_mut2(uid).map(|(_, ByUid(value))| value)
    }

    /// Adds a value; false, and no change, if there is one with its UID.
    pub(super) fn insert(&mut self, value: T) -> bool {
        let part = Arc::make_mut(&mut self.parts[part_of(value.uid())]);
        let is_new = part.insert(ByUid(value));
        self.len += usize::from(is_new);
        is_new
    }

    pub(super) fn take(&mut self, uid: &str) -> Option<T> {
        let part = &mut self.parts[part_of(uid)];
        // A part without it is not copied.
        if !part.contains(uid) {
            return None;
        }
        let ByUid(value) = Arc::make_mut(part).swap_take(uid)?;
        self.len -= 1;
        Some(value)
    }

    /// All values, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(|part| part.iter()).map(|ByUid(value)| value)
    }
}

/// Which part a UID is in. UIDs are random, or end in a number: their last bytes tell them apart.
fn part_of(uid: &str) -> usize {
    let number = match uid.as_bytes().last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => uid.bytes().fold(0, |number, byte| number << 8 | u64::from(byte)),
    };
    // The highest bits depend on all others.
    (number.wrapping_mul(SPREAD) >> (u64::BITS - PARTS.ilog2())) as usize
}

impl<T> Default for UidSet<T> {
    fn default() -> Self {
        let empty = Arc::default();
        UidSet { parts: (0..PARTS).map(|_| Arc::clone(&empty)).collect(), len: 0 }
    }
}

impl HasUid for Arc<Pod> {
    fn uid(&self) -> &Arc<str> {
        &self.uid
    }
}

impl HasUid for Known {
    fn uid(&self) -> &Arc<str> {
        &self.standing.pod.uid
    }
}

impl<T: HasUid> Borrow<str> for ByUid<T> {
    fn borrow(&self) -> &str {
        self.0.uid()
    }
}

impl<T: HasUid> Hash for ByUid<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid().hash(state);
    }
}

impl<T: HasUid> PartialEq for ByUid<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.uid() == other.0.uid()
    }
}

impl<T: HasUid> Eq for ByUid<T> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn pod(uid: &str, name: &str) -> Arc<Pod> {
        Arc::new(Pod { uid: uid.into(), name: name.into(), ..Pod::default() })
    }

    fn listed(set: &UidSet<Arc<Pod>>) -> BTreeMap<String, String> {
        let list: BTreeMap<_, _> =
            set.iter().map(|pod| (pod.uid.to_string(), pod.name.to_string())).collect();
        assert_eq!(list.len(), set.len());
        list
    }

    #[test]
    fn uids_of_all_kinds_are_spread() {
        let kinds: [fn(usize) -> String; 4] = [
            |number| {
                format!("{number:08x}-1234-4321-8888-{:012x}", number * 0x1234_5678_9abc % 0xffff_ffff_ffff)
            },
            |number| format!("pod-{number}"),
            |number| number.to_string(),
            |number| format!("default/pod-{number:05}"),
        ];
        for kind in kinds {
            let mut counts = [0; PARTS];
            for number in 0..PARTS * 1000 {
                counts[part_of(&kind(number))] += 1;
            }
            let most = counts.iter().max().expect("there are parts");
            assert!(*most < 2000, "{most} of {} are in one part, such as {}", PARTS * 1000, kind(1));
        }
    }

    proptest! {
        #[test]
        fn clones_are_sets_of_their_own(acts in prop::collection::vec((0..3u8, 0..40u8, any::<bool>()), 0..200), at in 0..200usize) {
            let (mut set, mut naive) = (UidSet::default(), BTreeMap::new());
            let mut other = (set.clone(), naive.clone());
            for (number, (act, uid, in_other)) in acts.into_iter().enumerate() {
                if number == at {
                    other = (set.clone(), naive.clone());
                }
                let (set, naive) = if in_other { (&mut other.0, &mut other.1) } else { (&mut set, &mut naive) };
                let (uid, name) = (format!("uid-{uid}"), number.to_string());
                match act {
                    0 => {
                        let is_new = !naive.contains_key(&uid);
                        prop_assert_eq!(set.insert(pod(&uid, &name)), is_new);
                        naive.entry(uid).or_insert(name);
                    }
                    1 => {
                        let known = set.get_mut(&uid);
                        prop_assert_eq!(known.is_some(), naive.contains_key(&uid));
                        if let Some(known) = known {
                            *known = pod(&uid, &name);
                            naive.insert(uid, name);
                        }
                    }
                    _ => {
                        let taken = set.take(&uid).map(|pod| pod.name.to_string());
                        prop_assert_eq!(taken, naive.remove(&uid));
                        prop_assert!(set.get(&uid).is_none());
                    }
                }
            }
            prop_assert_eq!(listed(&set), naive);
            prop_assert_eq!(listed(&other.0), other.1);
        }
    }
}
