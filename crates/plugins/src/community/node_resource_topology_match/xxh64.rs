//! XXH64, the hash that fingerprints and placements of pods are made of. It is no secret, and nobody is kept out by it.

const PRIMES: [u64; 5] = [
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
];
/// So many bytes are taken at a time while there are as many.
const STRIPE: usize = 32;

/// The hash of some bytes.
pub(super) fn xxh64(data: &[u8], seed: u64) -> u64 {
    let [p1, p2, p3, p4, p5] = PRIMES;
    let (stripes, rest) = data.as_chunks::<STRIPE>();
    let mut hash = if stripes.is_empty() {
        seed.wrapping_add(p5)
    } else {
        let mut lanes =
            [seed.wrapping_add(p1).wrapping_add(p2), seed.wrapping_add(p2), seed, seed.wrapping_sub(p1)];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
                *lane = round(*lane, u64::from_le_bytes(*word));
            }
        }
        let turned = [(lanes[0], 1), (lanes[1], 7), (lanes[2], 12), (lanes[3], 18)];
        let sum = turned.into_iter().fold(0u64, |sum, (lane, bits)| sum.wrapping_add(lane.rotate_left(bits)));
        lanes.into_iter().fold(sum, |hash, lane| (hash ^ round(0, lane)).wrapping_mul(p1).wrapping_add(p4))
    };
    hash = hash.wrapping_add(data.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash ^= round(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(p1).wrapping_add(p4);
    }
    let (halves, bytes) = rest.as_chunks::<4>();
    for half in halves {
        hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(p1);
        hash = hash.rotate_left(23).wrapping_mul(p2).wrapping_add(p3);
    }
    for byte in bytes {
        hash = (hash ^ u64::from(*byte).wrapping_mul(p5)).rotate_left(11).wrapping_mul(p1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(p2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(p3);
    hash ^ (hash >> 32)
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_everybody_else_computes() {
        // Lengths around every block size; from the reference implementation.
        for (data, seed, hash) in [
            ("", 0, 0xef46_db37_51d8_e999),
            ("a", 0, 0xd24e_c4f1_a98c_6e5b),
            ("abc", 0, 0x44bc_2cf5_ad77_0999),
            ("abcdefgh", 0, 0x3ad3_5177_5b46_34b7),
            ("0123456789abcdef0123456789abcdef", 0, 0x642a_9495_8e71_e6c5),
            ("0123456789abcdef0123456789abcdef0123456789abc", 7, 0xb4fe_1bff_e29c_3aa2),
        ] {
            assert_eq!(xxh64(data.as_bytes(), seed), hash, "{data:?}");
        }
    }
}
