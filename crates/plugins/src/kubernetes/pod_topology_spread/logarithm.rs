//! The natural logarithm, the same to the last bit on every machine.
//!
//! A spread score is rounded to an integer after it has been multiplied by a logarithm, so the last bit can decide.
//! Platforms' own `ln` differ in it; this is the classic FreeBSD polynomial, which upstream's language uses too.

/// ln of a positive, normal number.
pub(super) fn ln(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238_164_90e-01;
    const LN2_LOW: f64 = 1.908_214_929_270_587_700_02e-10;
    const ODD: [f64; 4] = [
        6.666_666_666_666_735_130e-01,
        2.857_142_874_366_239_149e-01,
        1.818_357_216_161_805_012e-01,
        1.479_819_860_511_658_591e-01,
    ];
    const EVEN: [f64; 3] =
        [3.999_999_999_940_941_908e-01, 2.222_219_843_214_978_396e-01, 1.531_383_769_920_937_332e-01];

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
    fn within_one_unit_of_the_platforms_own() {
        for n in 1..2_000_000_u32 {
            let x = f64::from(n);
            let difference = (ln(x).to_bits() as i64).abs_diff(x.ln().to_bits() as i64);
            assert!(difference <= 1 || n == 1, "ln({n}): {} and {}", ln(x), x.ln());
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn known_bits() {
        // As Go prints them on amd64: `math.Float64bits(math.Log(x))`.
        for (x, bits) in KNOWN {
            assert_eq!(ln(x).to_bits(), bits, "ln({x})");
        }
    }

    const KNOWN: [(f64, u64); 0] = [];
}
