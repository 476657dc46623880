//! The exponential function, the same on every machine.

use std::f64::consts::LOG2_E;

/// The logarithm of 2 in two parts: a whole exponent times the first has no error.
const LN_2_HIGH: f64 = 0.693_147_180_559_663;
const LN_2_LOW: f64 = 2.823_529_056_303_157_7e-13;
/// From here on the result is more than a number can hold.
const TOO_LARGE: f64 = 709.782_712_893_384;
/// What is left of the argument is taken to be so many times smaller, and the result squared as often as that doubles.
const SQUARINGS: i32 = 4;
/// The inverse factorials from 8 down to 1.
const TERMS: [f64; 8] = [
    2.480_158_730_158_73e-5,
    1.984_126_984_126_984e-4,
    1.388_888_888_888_889e-3,
    8.333_333_333_333_333e-3,
    4.166_666_666_666_666_4e-2,
    1.666_666_666_666_666_6e-1,
    0.5,
    1.0,
];

/// e to the power of a number, bit for bit as programs written in Go compute it on x86-64. Who multiplies the difference of two such
/// numbers by 10¹⁵ sees the last bit, and there the functions of different systems differ. This is the method of N. Shibata,
/// "Efficient evaluation methods of elementary functions suitable for SIMD computation" (2010): the argument is a multiple of the
/// logarithm of 2 and a rest, whose Taylor series is squared.
pub(super) fn exponential(x: f64) -> f64 {
    if x.is_nan() || x > TOO_LARGE {
        return if x.is_nan() { x } else { f64::INFINITY };
    }
    let exponent = (x * LOG2_E).round_ties_even();
    let rest = (-exponent).mul_add(LN_2_HIGH, x);
    let rest = (-exponent).mul_add(LN_2_LOW, rest) * 0.5f64.powi(SQUARINGS);
    let [first, others @ ..] = TERMS;
    // One less than the result: little is lost when it is squared.
    let mut less_one = rest * others.iter().fold(first, |sum, term| sum.mul_add(rest, *term));
    for _ in 1..SQUARINGS {
        less_one *= less_one + 2.0;
    }
    let mantissa = less_one.mul_add(less_one + 2.0, 1.0);
    match exponent as i32 {
        exponent if exponent < -1023 - 52 => 0.0,
        exponent if exponent <= -1023 => mantissa * 2f64.powi(exponent + 1022) * f64::MIN_POSITIVE,
        exponent if exponent >= 1024 => f64::INFINITY,
        exponent => mantissa * 2f64.powi(exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_go_s_to_the_last_bit() {
        for (x, bits) in [
            (0.0, 0x3ff0_0000_0000_0000),
            (-0.5, 0x3fe3_68b2_fc6f_960a),
            (1.0, 0x4005_bf0a_8b14_5769),
            (-7.186_049_052_516_228, 0x3f48_cecc_da2f_515f),
            (-3.1, 0x3fa7_10b0_65fb_809f),
            (-1.703_093_625_446_346, 0x3fc7_4fae_f033_e1b5),
            (-1.395, 0x3fcf_b8fe_3108_6670),
            (1.0989, 0x4008_01c4_988d_0349),
            (-2.5, 0x3fb5_0385_c094_f425),
            (-1.025, 0x3fd6_f685_7335_b17c),
            (0.55, 0x3ffb_bb67_8436_f0b5),
            (700.0, 0x7f0d_945d_f4f8_ec8e),
            (-708.5, 0x000e_6cf6_d088_97ac),
            (-740.0, 0x0000_0000_0000_0055),
            (710.0, 0x7ff0_0000_0000_0000),
            (-800.0, 0),
            (f64::NEG_INFINITY, 0),
            (f64::INFINITY, 0x7ff0_0000_0000_0000),
        ] {
            assert_eq!(exponential(x).to_bits(), bits, "{x}");
        }
        assert!(exponential(f64::NAN).is_nan());
    }
}
