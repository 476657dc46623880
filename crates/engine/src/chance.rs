//! Chance, from a seed.

use supercargo_model::{Row, Snapshot};

/// Where all chance comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

/// Which of several equally good nodes is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The one with the smallest name: what conformance vectors expect.
    SmallestName,
    /// The first one from a row on that the seed of the attempt draws. An index can find it without counting the
    /// ties.
    #[default]
    Seeded,
}

impl Seed {
    /// The seed of the `n`th attempt. Different attempts get unrelated seeds (SplitMix64).
    pub fn attempt(self, n: u64) -> u64 {
        let mut z = self.0.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The row from which on ties are resolved.
pub(crate) fn drawn_row(cluster: &Snapshot, seed: u64) -> Row {
    Row(u32::try_from(draw(seed, cluster.row_count())).expect("a cluster has fewer than 2^32 rows"))
}

/// A number below `count`, from a seed.
fn draw(seed: u64, count: usize) -> usize {
    // The upper half of the product is uniform enough, and has no bias towards small numbers.
    ((u128::from(seed) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_evenly_and_repeat() {
        let mut counts = [0; 7];
        for attempt in 0..70_000 {
            counts[draw(Seed(42).attempt(attempt), 7)] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(Seed(1).attempt(5), Seed(1).attempt(5));
        assert_ne!(Seed(1).attempt(5), Seed(2).attempt(5));
    }
}
