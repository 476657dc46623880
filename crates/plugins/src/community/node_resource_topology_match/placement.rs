//! Where exporters write down which container runs in which zone, in the format of github.com/k8stopologyawareschedwg/numaplacement.
//!
//! The containers of a node that hold something exclusively are numbered in the order of their hashes. A zone lists the numbers of
//! those that it has, each but the first as the difference to the one before; one zone, the busiest, lists nothing and has all others.

use std::collections::BTreeMap;

use supercargo_model::Pod;
use supercargo_model::pod::Container;

use super::topology::NodeResourceTopology;
use super::wants::{is_guaranteed, is_pinned, lasting_containers};
use super::xxh64::xxh64;

/// The first word of the metadata.
const VERSION: &str = "npv0v001";
/// How vectors write numbers (LEB89, below); no other notation is known.
const NOTATION: &str = "leb89";
/// What stands between the words.
const SEPARATOR: &str = "::";
/// The symbols that are not used, because JSON or XML would have to escape them.
const UNUSED: &[u8] = b"\"&<>\\";
/// The printable symbols, less the unused ones: these come last in a number, those after them before.
const LAST_SYMBOLS: u64 = 64;
/// How many symbols are for digits before the last.
const DIGITS: u64 = 25;

/// Which container runs in which zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement(BTreeMap<u64, u32>);

impl Placement {
    /// What a topology says about the containers of these pods; none if it says nothing, or nothing that can be meant.
    pub(super) fn of<'a>(
        topology: &NodeResourceTopology,
        pods: impl Iterator<Item = &'a Pod>,
    ) -> Option<Self> {
        let metadata = Metadata::parse(topology.placement.as_deref()?)?;
        let mut hashes: Vec<u64> = Vec::new();
        for pod in pods {
            let is_guaranteed = is_guaranteed(&pod.spec);
            let pinned = lasting_containers(&pod.spec)
                .filter(|container| is_pinned(is_guaranteed, container, topology));
            hashes.extend(pinned.map(|container| hash_of(pod, container)));
        }
        hashes.sort_unstable();
        if hashes.len() as u64 != metadata.containers {
            return None;
        }
        let mut zones: Vec<Option<u32>> = vec![None; hashes.len()];
        for zone in &topology.zones {
            let Some(vector) = &zone.placement else { continue };
            if zone.number >= metadata.zones || zone.number == metadata.busiest {
                return None;
            }
            for place in places(vector)? {
                let free = usize::try_from(place).ok().and_then(|place| zones.get_mut(place))?;
                if free.replace(zone.number).is_some() {
                    return None;
                }
            }
        }
        let zones = zones.into_iter().map(|zone| zone.unwrap_or(metadata.busiest));
        Some(Placement(hashes.into_iter().zip(zones).collect()))
    }

    /// Whether no container is known to run anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The zone of a container.
    pub(super) fn zone_of(&self, pod: &Pod, container: &Container) -> Option<u32> {
        self.0.get(&hash_of(pod, container)).copied()
    }
}

/// What is said about a placement as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Metadata {
    containers: u64,
    zones: u32,
    busiest: u32,
}

impl Metadata {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(SEPARATOR);
        if words.next() != Some(VERSION) {
            return None;
        }
        let words: BTreeMap<&str, &str> = words.map(|word| word.split_once('=')).collect::<Option<_>>()?;
        if words.get("ve").is_none_or(|notation| *notation != NOTATION) {
            return None;
        }
        Some(Metadata {
            containers: words.get("cc")?.parse().ok()?,
            zones: words.get("nn")?.parse().ok()?,
            busiest: words.get("bn")?.parse().ok()?,
        })
    }
}

fn hash_of(pod: &Pod, container: &Container) -> u64 {
    let names = [pod.namespace.as_bytes(), pod.name.as_bytes(), container.name.as_bytes()];
    xxh64(&names.join(&0), 0)
}

/// The numbers that a zone lists; none if it is no such list.
fn places(vector: &str) -> Option<Vec<u64>> {
    let (mut places, mut rest) = (Vec::new(), vector.as_bytes());
    while !rest.is_empty() {
        let (number, after) = read_number(rest)?;
        let place = match places.last() {
            None => number,
            Some(last) => u64::checked_add(*last, number)?,
        };
        places.push(place);
        rest = after;
    }
    Some(places)
}

/// The number that a text begins with, and what comes after it.
fn read_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut digits: Option<u64> = None;
    for (index, byte) in text.iter().enumerate() {
        let symbol = symbol_of(*byte)?;
        if symbol < LAST_SYMBOLS {
            let before = match digits {
                None => 0,
                Some(digits) => digits.checked_add(1)?.checked_mul(LAST_SYMBOLS)?,
            };
            return Some((before.checked_add(symbol)?, &text[index + 1..]));
        }
        digits = Some(digits.unwrap_or(0).checked_mul(DIGITS)?.checked_add(symbol - LAST_SYMBOLS)?);
    }
    None
}

/// The place of a symbol among all.
fn symbol_of(byte: u8) -> Option<u64> {
    if !byte.is_ascii_graphic() || UNUSED.contains(&byte) {
        return None;
    }
    let unused_before = UNUSED.iter().filter(|unused| **unused < byte).count();
    Some(u64::from(byte - b'!') - unused_before as u64)
}

#[cfg(test)]
mod tests {
    use supercargo_testkit::{cluster, pod};

    use super::*;

    #[test]
    fn numbers_are_read_as_exporters_write_them() {
        for (text, number) in [
            ("!", 0),
            ("#", 1),
            ("e", 63),
            ("f!", 64),
            ("fe", 127),
            ("g!", 128),
            ("~e", 1_663),
            ("gf!", 1_664),
        ] {
            assert_eq!(read_number(text.as_bytes()), Some((number, &b""[..])), "{text}");
        }
        assert_eq!(places("$#f!"), Some(vec![2, 3, 67]));
        assert_eq!(places(""), Some(vec![]));
        for text in ["f", "\"", " ", "é", "~~~~~~~~~~~~~~~~~~~~!"] {
            assert_eq!(places(text), None, "{text}");
        }
    }

    #[test]
    fn metadata_is_read_or_refused() {
        let metadata = Metadata { containers: 3, zones: 2, busiest: 0 };
        assert_eq!(Metadata::parse("npv0v001::ve=leb89::cc=3::nn=2::bn=0"), Some(metadata));
        for text in [
            "",
            "npv0v002::ve=leb89::cc=3::nn=2::bn=0",
            "npv0v001::ve=base64::cc=3::nn=2::bn=0",
            "npv0v001::ve=leb89::cc=3::nn=2",
            "npv0v001::ve=leb89::cc=-1::nn=2::bn=0",
            "npv0v001::ve=leb89::cc=3::nn=2::bn=0::odd",
        ] {
            assert_eq!(Metadata::parse(text), None, "{text}");
        }
    }

    #[test]
    fn containers_are_found_by_their_hashes() {
        let mut cluster = cluster();
        let hashes = ["p0", "p1", "p2"].map(|name| {
            let container = serde_json::json!({ "spec": { "containers": [{ "name": "c0" }] } });
            let pod = cluster.pod(pod(name).namespace("ns").with(container));
            hash_of(&pod, &pod.spec.containers[0])
        });
        assert_eq!(hashes, [0x1e5a_7e11_958e_44cb, 0x22c3_b6c2_5d48_8939, 0xa58e_450d_8a01_712b]);
    }
}
