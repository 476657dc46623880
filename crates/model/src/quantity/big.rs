//! Decimals of any length, for the amounts a small one cannot hold.
//!
//! They are kept as decimal digits. That makes the operations quantities need (reading, printing, moving the
//! decimal point, rounding to a decimal place) linear in the number of digits written down, whatever the
//! exponent: "1e-1000000" is one digit here, where Go computes a million of them.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The number is `digits` times ten to the power of `exponent`.
#[derive(Clone, Debug)]
pub(super) struct BigDecimal {
    negative: bool,
    /// Digits as numbers from 0 to 9, the most significant first, with no zero at either end; none for zero.
    digits: Vec<u8>,
    exponent: i64,
    /// The number of decimal places Go stores the number with, counting the zeros that are not in `digits`.
    /// The number does not depend on it, but how Go rounds and overflows does.
    scale: i32,
}

/// Sums of more digits than this keep only the larger operand. Go computes them, but from about here on in
/// minutes and gigabytes, so there is no answer of its to reproduce.
const SUM_DIGITS_MAX: u64 = 1 << 24;

/// Every parsed amount is rounded to this many decimal places.
const NANO_PLACES: i32 = 9;

impl BigDecimal {
    /// The number whose digits, written one after the other, are `digits` with the last `scale` of them after
    /// the decimal point.
    pub(super) fn new(negative: bool, digits: Vec<u8>, scale: i32) -> Self {
        let exponent = -i64::from(scale);
        Self { negative, digits, exponent, scale }.normalised()
    }

    pub(super) fn from_small(mantissa: i64, scale: i32) -> Self {
        let digits = mantissa.unsigned_abs().to_string().bytes().map(|digit| digit - b'0').collect();
        let decimal = Self {
            negative: mantissa < 0,
            digits,
            exponent: i64::from(scale),
            // Negating the scale wraps around in Go.
            scale: scale.wrapping_neg(),
        };
        decimal.normalised()
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(super) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(super) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    pub(super) fn digits(&self) -> &[u8] {
        &self.digits
    }

    pub(super) fn exponent(&self) -> i64 {
        self.exponent
    }

    /// The power of ten that is greater than the number, and no more than ten times so.
    pub(super) fn magnitude(&self) -> i64 {
        self.exponent + self.digits.len() as i64
    }

    pub(super) fn negated(mut self) -> Self {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    /// The number times two to the power of `exponent`, which is at most 60 (the exponent of `Ei`).
    pub(super) fn times_power_of_two(mut self, exponent: u32) -> Self {
        let mut carry = 0_u128;
        for digit in self.digits.iter_mut().rev() {
            let product = (u128::from(*digit) << exponent) + carry;
            *digit = (product % 10) as u8;
            carry = product / 10;
        }
        let mut leading = Vec::new();
        while carry > 0 {
            leading.push((carry % 10) as u8);
            carry /= 10;
        }
        self.digits.splice(0..0, leading.into_iter().rev());
        self.normalised()
    }

    /// The number rounded away from zero to nano precision. Zero stays as it was written, scale included.
    pub(super) fn rounded_to_nano(mut self) -> Self {
        if self.is_zero() {
            return self;
        }
        let nano = -i64::from(NANO_PLACES);
        if self.exponent < nano {
            let kept = usize::try_from(self.magnitude() - nano).unwrap_or(0);
            self.digits.truncate(kept);
            self.exponent = nano;
            self.increment();
        }
        self.scale = NANO_PLACES;
        self.normalised()
    }

    /// The sum. Its scale is the greater of the two.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (larger, smaller) =
            if self.compare_magnitude(other) == Ordering::Less { (other, self) } else { (self, other) };
        let lowest = self.exponent.min(other.exponent);
        let length = larger.magnitude().abs_diff(lowest);
        if smaller.is_zero() || length > SUM_DIGITS_MAX {
            return Self { scale, ..larger.clone() };
        }

        // One digit more than the larger operand has, for the carry.
        let mut digits = vec![0; length as usize + 1];
        digits[1..=larger.digits.len()].copy_from_slice(&larger.digits);
        // Positions are counted from the last digit, which stands for ten to the power of `lowest`.
        let offset = smaller.exponent.abs_diff(lowest) as usize;
        let mut addends = smaller.digits.iter().rev();
        let mut carry = 0;
        for digit in digits.iter_mut().rev().skip(offset) {
            let addend = addends.next();
            if addend.is_none() && carry == 0 {
                break;
            }
            let addend = addend.copied().unwrap_or(0) + carry;
            if larger.negative == smaller.negative {
                carry = (*digit + addend) / 10;
                *digit = (*digit + addend) % 10;
            } else {
                carry = u8::from(*digit < addend);
                *digit = *digit + 10 * carry - addend;
            }
        }
        Self { negative: larger.negative, digits, exponent: lowest, scale }.normalised()
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let zero_last = other.is_zero().cmp(&self.is_zero());
        // Without zeros at the end, the longer of two numbers that begin alike is the greater.
        zero_last
            .then_with(|| self.magnitude().cmp(&other.magnitude()))
            .then_with(|| self.digits.cmp(&other.digits))
    }

    /// Go's conversion to an integer with `places` implied decimal places. It looks at the number as an integer
    /// with `scale` implied places, and what it does depends on how the two counts compare.
    pub(super) fn scaled_value(&self, places: u8) -> i64 {
        let dropped = i64::from(self.scale) - i64::from(places);
        let unscaled = self.exponent + i64::from(self.scale);
        if dropped <= 0 {
            return self.low_bits(unscaled).wrapping_mul(power_of_ten(dropped.unsigned_abs()));
        }
        if dropped < 19 && self.is_below_max(unscaled) {
            // This is where negative numbers go, even those that are out of range: one is added to a quotient
            // that was already rounded up by truncation.
            let (value, divisor) = (self.low_bits(unscaled), power_of_ten(dropped.unsigned_abs()));
            return value / divisor + i64::from(value % divisor != 0);
        }
        let shift = self.exponent + i64::from(places);
        let rounds_up = shift < 0 && !self.negative && !self.is_zero();
        self.low_bits(shift).wrapping_add(i64::from(rounds_up))
    }

    /// The mantissa and exponent `small::significant` gives for the same number, if it has any.
    pub(super) fn as_significant(&self) -> Option<(i64, i64)> {
        if self.digits.len() > 19 {
            return None;
        }
        let magnitude = self.digits.iter().fold(0_i128, |value, digit| value * 10 + i128::from(*digit));
        let mantissa = i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()?;
        Some((mantissa, self.exponent))
    }

    pub(super) fn hash_digits<H: Hasher>(&self, state: &mut H) {
        (self.negative, &self.digits, self.exponent).hash(state);
    }

    /// The low 64 bits, in two's complement, of the number whose digits have `shift` zeros appended, or as many
    /// digits taken away if that is negative.
    fn low_bits(&self, shift: i64) -> i64 {
        let dropped = usize::try_from(shift.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let kept = self.digits.len().saturating_sub(dropped);
        let bits = self.digits[..kept]
            .iter()
            .fold(0_i64, |bits, digit| bits.wrapping_mul(10).wrapping_add(i64::from(*digit)));
        // Sixty-four factors of ten contain as many of two, and leave nothing in the low bits.
        let zeros = shift.clamp(0, 64) as u32;
        let bits = bits.wrapping_mul(10_i64.wrapping_pow(zeros));
        if self.negative { bits.wrapping_neg() } else { bits }
    }

    /// Whether the digits with `zeros` zeros appended are less than the greatest `i64`.
    fn is_below_max(&self, zeros: i64) -> bool {
        let shifted = Self { digits: self.digits.clone(), exponent: zeros, ..*self };
        shifted.compare(&Self::from_small(i64::MAX, 0)) == Ordering::Less
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
    }

    fn normalised(mut self) -> Self {
        let leading = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..leading);
        let trailing = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        self.digits.truncate(self.digits.len() - trailing);
        self.exponent += trailing as i64;
        if self.digits.is_empty() {
            self.exponent = 0;
            self.negative = false;
        }
        self
    }
}

/// A power of ten, or what Go's conversion from a floating-point number gives on amd64 for one that does not
/// fit.
fn power_of_ten(power: u64) -> i64 {
    u32::try_from(power).ok().and_then(|power| 10_i64.checked_pow(power)).unwrap_or(i64::MIN)
}
