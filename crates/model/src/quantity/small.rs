//! Arithmetic on small amounts, each a mantissa and the power of ten it is multiplied by.
//!
//! Go subtracts scales in 32 bits, where the difference of two extreme ones wraps around; so it does here.

use std::cmp::Ordering;

/// The largest power of ten that an `i64` holds.
const LARGEST_POWER: u32 = 18;

/// The amount with `places` decimal places, as an integer, rounded away from zero.
pub(super) fn scaled_value(mantissa: i64, scale: i32, places: u8) -> i64 {
    let target = -i32::from(places);
    if scale < target {
        round_up(mantissa, target.wrapping_sub(scale).unsigned_abs()).0
    } else {
        match scale_up(mantissa, scale.wrapping_sub(target)) {
            Ok(value) | Err(Overflow(value)) => value,
        }
    }
}

/// The sum, or nothing where it has to be a big amount.
pub(super) fn add(left: (i64, i32), right: (i64, i32)) -> Option<(i64, i32)> {
    if right.0 == 0 {
        return Some(left);
    }
    if left.0 == 0 {
        return Some(right);
    }
    let (coarse, fine) = if left.1 > right.1 { (left, right) } else { (right, left) };
    let coarse = scale_up(coarse.0, coarse.1.wrapping_sub(fine.1)).ok()?;
    Some((coarse.checked_add(fine.0)?, fine.1))
}

/// The order of two amounts whose scales are close enough to be compared in 128 bits.
pub(super) fn compare(left: (i64, i32), right: (i64, i32)) -> Option<Ordering> {
    if left.1 == right.1 {
        return Some(left.0.cmp(&right.0));
    }
    let gap = left.1.abs_diff(right.1);
    if gap > LARGEST_POWER {
        return None;
    }
    let factor = i128::from(10_i64.pow(gap));
    let (left_mantissa, right_mantissa) = (i128::from(left.0), i128::from(right.0));
    Some(if left.1 > right.1 {
        (left_mantissa * factor).cmp(&right_mantissa)
    } else {
        left_mantissa.cmp(&(right_mantissa * factor))
    })
}

/// The same number with the trailing zeros of its mantissa moved into the exponent.
pub(super) fn significant(mantissa: i64, scale: i32) -> (i64, i64) {
    if mantissa == 0 {
        return (0, 0);
    }
    let (mut mantissa, mut exponent) = (mantissa, i64::from(scale));
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    (mantissa, exponent)
}

/// The mantissa divided by a power of ten and rounded away from zero, and whether that was exact.
pub(super) fn round_up(mantissa: i64, power: u32) -> (i64, bool) {
    if power > LARGEST_POWER {
        return (mantissa.signum(), mantissa == 0);
    }
    let divisor = 10_i64.pow(power);
    let exact = mantissa % divisor == 0;
    let away_from_zero = if exact { 0 } else { mantissa.signum() };
    (mantissa / divisor + away_from_zero, exact)
}

/// A product that does not fit, with the number Go goes on with when it does not look at that.
pub(super) struct Overflow(i64);

/// The mantissa times a power of ten. Go takes a negative power, which is a wrapped difference, for zero.
pub(super) fn scale_up(mantissa: i64, power: i32) -> Result<i64, Overflow> {
    if mantissa == 0 || power <= 0 {
        return Ok(mantissa);
    }
    let product = u32::try_from(power)
        .ok()
        .and_then(|power| 10_i64.checked_pow(power))
        .and_then(|factor| mantissa.checked_mul(factor));
    product.ok_or(Overflow(match power {
        // Go multiplies by these powers at once and leaves the wrapped product behind; all others it multiplies
        // by ten at a time, and leaves zero behind. The least `i64` is refused before any multiplication.
        1 | 2 | 3 | 6 | 9 if mantissa != i64::MIN => {
            mantissa.wrapping_mul(10_i64.wrapping_pow(power.unsigned_abs()))
        }
        _ => 0,
    }))
}
