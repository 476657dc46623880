use std::cell::Cell;

use super::*;

/// A small generator of numbers, so that every run tries the same.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Whether every node is as high as it says, and its sides are in balance and in order.
fn check<K: Ord, V>(link: &Link<K, V>) -> u8 {
    let Some(node) = link else { return 0 };
    let (left, right) = (check(&node.left), check(&node.right));
    assert!(left.abs_diff(right) <= 1, "the sides are {left} and {right} high");
    assert_eq!(node.height, 1 + left.max(right));
    node.height
}

#[test]
fn it_says_what_a_plain_map_says_and_clones_stay_as_they_were() {
    for mut seed in 0..40 {
        let (mut map, mut plain) = (SharedMap::default(), BTreeMap::new());
        let mut kept = Vec::new();
        for step in 0..400 {
            let (key, value) = (next(&mut seed) % 60, next(&mut seed));
            match next(&mut seed) % 5 {
                0 | 1 => assert_eq!(map.insert(key, value), plain.insert(key, value)),
                2 => assert_eq!(map.remove(&key), plain.remove(&key)),
                3 => {
                    *map.get_or_default(&key) += 1;
                    *plain.entry(key).or_default() += 1;
                }
                _ if step % 50 == 0 => {
                    map.retain(|key, _| key % 3 != 0);
                    plain.retain(|key, _| key % 3 != 0);
                }
                _ => assert_eq!(map.get_mut(&key), plain.get_mut(&key)),
            }
            check(&map.root);
            assert_eq!(map.len(), plain.len());
            assert_eq!((map.first(), map.last()), (plain.first_key_value(), plain.last_key_value()));
            assert_eq!(map.find(|known| known.cmp(&key)), plain.get_key_value(&key));
            assert!(map.iter().eq(plain.iter()), "seed {seed}, step {step}: {map:?}, not {plain:?}");
            assert!(map.after(&key).eq(plain.iter().filter(|(known, _)| **known > key)));
            if step % 20 == 0 {
                kept.push((map.clone(), plain.clone()));
            }
        }
        for (map, plain) in kept {
            assert!(map.iter().eq(plain.iter()), "a clone has changed: {map:?}, not {plain:?}");
        }
    }
}

thread_local! {
    static COPIES: Cell<usize> = const { Cell::new(0) };
}

/// Something that says how often it was copied.
#[derive(Debug, Default, PartialEq)]
struct Copied(u64);

impl Clone for Copied {
    fn clone(&self) -> Self {
        COPIES.set(COPIES.get() + 1);
        Copied(self.0)
    }
}

#[test]
fn a_change_copies_the_entry_that_changes_and_no_other() {
    let mut map: SharedMap<u64, Copied> = (0..100_000).map(|key| (key, Copied(key))).collect();
    COPIES.set(0);
    let before = map.clone();
    assert_eq!(COPIES.get(), 0, "a clone copies nothing");
    map.get_or_default(&70_000).0 = 1;
    assert_eq!(COPIES.get(), 1);
    map.insert(70_001, Copied(2));
    assert_eq!(COPIES.get(), 2, "the old value is given back, and the clone has it too");
    map.get_or_default(&70_000).0 = 3;
    assert_eq!(COPIES.get(), 2, "what is nobody else's is changed in place");
    assert_eq!((before.get(&70_000), map.get(&70_000)), (Some(&Copied(70_000)), Some(&Copied(3))));
    assert!(map.root.as_ref().is_some_and(|root| root.height <= 20), "{:?}", map.root);
}

#[test]
fn it_is_saved_as_a_plain_map_is() {
    let map: SharedMap<String, u32> = [("b".to_owned(), 2), ("a".to_owned(), 1)].into_iter().collect();
    let saved = serde_json::to_string(&map).expect("strings and numbers can be saved");
    assert_eq!(saved, r#"{"a":1,"b":2}"#);
    assert_eq!(serde_json::from_str::<SharedMap<String, u32>>(&saved).expect("it was just saved"), map);
    assert_eq!(format!("{map:?}"), r#"{"a": 1, "b": 2}"#);
}
