//! Printing a quantity in the form Go gives it.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use super::big::BigDecimal;
use super::{Amount, Format, Quantity, small};

/// Binary quantities of more digits than this are printed as decimal ones. Go divides by 1024 once for every
/// three digits, which takes it minutes long before it comes here.
const BINARY_DIGITS_MAX: i64 = 1 << 16;

/// Below this magnitude a binary quantity is printed as a decimal one.
const LEAST_BINARY: i64 = 1024;

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(spelling) = &self.spelling {
            return formatter.write_str(&spelling.0);
        }
        if self.is_zero() {
            return formatter.write_str("0");
        }
        match &self.amount {
            &Amount::Small { mantissa, scale } => write_small(formatter, mantissa, scale, self.format),
            Amount::Big(big) => write_big(formatter, big, self.format),
        }
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Quantity({self})")
    }
}

fn write_small(formatter: &mut fmt::Formatter<'_>, mantissa: i64, scale: i32, format: Format) -> fmt::Result {
    let is_binary = format == Format::BinarySi
        && [-LEAST_BINARY, LEAST_BINARY].map(|limit| small::compare((mantissa, scale), (limit, 0)))
            != [Some(Ordering::Greater), Some(Ordering::Less)];
    // A fraction has no binary suffix, so it is printed as a decimal rather than rounded.
    if is_binary && let Some(value) = exact_integer(mantissa, scale) {
        let Some(value) = value else {
            return write_big(formatter, &BigDecimal::from_small(mantissa, scale), format);
        };
        // Go negates before it divides, and the least `i64` stays negative: it is printed without a suffix.
        let mut powers = 0;
        let mut magnitude = value;
        while value != i64::MIN && magnitude % 1024 == 0 {
            magnitude /= 1024;
            powers += 1;
        }
        return write!(formatter, "{magnitude}{}", binary_suffix(powers));
    }

    let decimal_format = if format == Format::BinarySi { Format::DecimalSi } else { format };
    let (digits, exponent) = small::significant(mantissa, scale);
    // Go counts exponents in 32 bits, and steps down to a multiple of three at once.
    let exponent = exponent as i32;
    let (factor, step) = match exponent % 3 {
        1 | -2 => (10, 1),
        2 | -1 => (100, 2),
        _ => (1, 0),
    };
    match digits.checked_mul(factor) {
        Some(digits) => {
            write!(formatter, "{digits}")?;
            write_decimal_suffix(formatter, exponent.wrapping_sub(step), decimal_format)
        }
        None => write_decimal(formatter, &BigDecimal::from_small(mantissa, scale), decimal_format),
    }
}

/// The amount if it is an integer, and in that `None` if it does not fit.
#[expect(clippy::option_option, reason = "not an integer and not an i64 are different answers")]
fn exact_integer(mantissa: i64, scale: i32) -> Option<Option<i64>> {
    if scale < 0 {
        let (value, exact) = small::round_up(mantissa, scale.unsigned_abs());
        exact.then_some(Some(value))
    } else {
        Some(small::scale_up(mantissa, scale).ok())
    }
}

fn write_big(formatter: &mut fmt::Formatter<'_>, big: &BigDecimal, format: Format) -> fmt::Result {
    if format != Format::BinarySi {
        return write_decimal(formatter, big, format);
    }
    let is_binary = big.compare(&BigDecimal::from_small(LEAST_BINARY, 0)).is_ge()
        || big.compare(&BigDecimal::from_small(-LEAST_BINARY, 0)).is_le();
    if !is_binary || !big.is_integer() || big.magnitude() > BINARY_DIGITS_MAX {
        return write_decimal(formatter, big, Format::DecimalSi);
    }

    let mut digits = big.digits().to_vec();
    digits.resize(big.magnitude() as usize, 0);
    let mut powers = 0;
    while let Some(quotient) = divide_by_1024(&digits) {
        digits = quotient;
        powers += 1;
    }
    write_digits(formatter, big.is_negative(), &digits)?;
    formatter.write_str(binary_suffix(powers))
}

/// The quotient of a positive integer by 1024, if it is an integer.
fn divide_by_1024(digits: &[u8]) -> Option<Vec<u8>> {
    // 1024 divides ten to the tenth, so the last ten digits tell.
    let last = &digits[digits.len().saturating_sub(10)..];
    if last.iter().fold(0, |value, digit| value * 10 + u64::from(*digit)) % 1024 != 0 {
        return None;
    }
    let mut remainder = 0_u16;
    let mut quotient = Vec::with_capacity(digits.len());
    for digit in digits {
        let dividend = remainder * 10 + u16::from(*digit);
        // The remainder was below 1024, so the quotient is a single digit.
        let next = (dividend / 1024) as u8;
        if next != 0 || !quotient.is_empty() {
            quotient.push(next);
        }
        remainder = dividend % 1024;
    }
    Some(quotient)
}

fn write_decimal(formatter: &mut fmt::Formatter<'_>, big: &BigDecimal, format: Format) -> fmt::Result {
    write_digits(formatter, big.is_negative(), big.digits())?;
    let mut exponent = big.exponent() as i32;
    while exponent % 3 != 0 {
        formatter.write_char('0')?;
        exponent = exponent.wrapping_sub(1);
    }
    write_decimal_suffix(formatter, exponent, format)
}

fn write_digits(formatter: &mut fmt::Formatter<'_>, negative: bool, digits: &[u8]) -> fmt::Result {
    if negative {
        formatter.write_char('-')?;
    }
    digits.iter().try_for_each(|digit| formatter.write_char(char::from(b'0' + digit)))
}

/// Exponents that have no suffix get none, as in Go: what it prints for "1000E" is "1".
fn write_decimal_suffix(formatter: &mut fmt::Formatter<'_>, exponent: i32, format: Format) -> fmt::Result {
    if format == Format::DecimalExponent {
        return if exponent == 0 { Ok(()) } else { write!(formatter, "e{exponent}") };
    }
    formatter.write_str(match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    })
}

fn binary_suffix(powers_of_1024: u32) -> &'static str {
    match powers_of_1024 {
        1 => "Ki",
        2 => "Mi",
        3 => "Gi",
        4 => "Ti",
        5 => "Pi",
        6 => "Ei",
        _ => "",
    }
}
