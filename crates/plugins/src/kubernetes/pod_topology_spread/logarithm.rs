//! The natural logarithm, the same to the last bit on every machine.
//!
//! A spread score is rounded to an integer after it has been multiplied by a logarithm, so the last bit can decide.
//! Platforms' own `ln` differ in it; this is the classic FreeBSD polynomial, which upstream's language uses too.

/// ln of a positive, normal number.
pub(super) fn ln(x: f64) -> f64 {
    // As bits: decimal digits would have to be rounded again.
    const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    const ODD: [f64; 4] = [
        f64::from_bits(0x3fe5_5555_5555_5593),
        f64::from_bits(0x3fd2_4924_9422_9359),
        f64::from_bits(0x3fc7_4664_96cb_03de),
        f64::from_bits(0x3fc2_f112_df3e_5244),
    ];
    const EVEN: [f64; 3] = [
        f64::from_bits(0x3fd9_9999_9997_fa04),
        f64::from_bits(0x3fcc_71c5_1d8e_78af),
        f64::from_bits(0x3fc3_9a09_d078_c69f),
    ];

    // x = 2^exponent × mantissa, with the mantissa near 1.
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as f64 - 1022.0;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3fe0_0000_0000_0000);
    if mantissa < std::f64::consts::FRAC_1_SQRT_2 {
        mantissa *= 2.0;
        exponent -= 1.0;
    }
    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let s2 = s * s;
    let s4 = s2 * s2;
    let odd = s2 * (ODD[0] + s4 * (ODD[1] + s4 * (ODD[2] + s4 * ODD[3])));
    let even = s4 * (EVEN[0] + s4 * (EVEN[1] + s4 * EVEN[2]));
    let half_square = 0.5 * f * f;
    exponent * LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + exponent * LN2_LOW)) - f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bits() {
        for (x, bits) in [
            (2.0, 0x3fe6_2e42_fefa_39ef),
            (3.0, 0x3ff1_93ea_7aad_030a),
            (5.0, 0x3ff9_c041_f7ed_8d33),
            (102.0, 0x4012_7ff8_df87_c7bd),
            (5002.0, 0x4021_0901_f6dc_84b9),
            (1_000_002.0, 0x402b_a18a_dcab_d9bd),
        ] {
            assert_eq!(ln(x).to_bits(), bits, "ln({x})");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    /// Every size that a cluster of a million nodes can have: an FNV hash over the bits of all logarithms, which Go's
    /// `math.Log` on amd64 gives too.
    #[test]
    fn the_bits_of_a_million_logarithms() {
        let bytes = (2..=1_000_002_u32).flat_map(|n| ln(f64::from(n)).to_bits().to_le_bytes());
        let hash = bytes.fold(0x1465_0fb0_739d_0383_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
        });
        assert_eq!(hash, 0x6651_0500_fc05_1b07);
    }
}
