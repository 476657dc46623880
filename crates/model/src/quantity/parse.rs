//! Reading a quantity from text, with the answers and errors of Go's `ParseQuantity`.

use std::str::FromStr;

use super::big::BigDecimal;
use super::{Format, Quantity, Spelling};

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ParseQuantityError {
    #[error("an empty text is not a quantity")]
    Empty,
    #[error("quantity {input:?} is not a number followed by a suffix")]
    Format { input: Box<str> },
    #[error("quantity {input:?} has the unknown suffix {suffix:?}")]
    Suffix { input: Box<str>, suffix: Box<str> },
    #[error("quantity {input:?} has a suffix but no digits")]
    Numeric { input: Box<str> },
}

/// As many digits as every `i64` of that length can hold.
const SMALL_DIGITS_MAX: usize = 18;

/// Small amounts are no finer than this power of ten.
const NANO_SCALE: i32 = -9;

/// Errors quote no more than this many characters of the input, which may be very long.
const QUOTED_CHARACTERS: usize = 64;

/// The pieces of a text that looks like a quantity.
struct Pieces<'a> {
    negative: bool,
    /// Whether there is a digit at all. Go takes a missing number for zero in most places, but not everywhere.
    has_digits: bool,
    /// The digits before the decimal point, without leading zeros.
    integer: &'a str,
    /// The digits after the decimal point.
    fraction: &'a str,
    suffix: &'a str,
}

/// What a suffix stands for: a power of two for `BinarySi`, a power of ten for the other formats.
#[derive(Clone, Copy)]
struct Scaling {
    format: Format,
    exponent: i32,
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        if text.is_empty() {
            return Err(ParseQuantityError::Empty);
        }
        let pieces = split(text).ok_or_else(|| ParseQuantityError::Format { input: quote(text) })?;
        let scaling = interpret_suffix(pieces.suffix)
            .ok_or_else(|| ParseQuantityError::Suffix { input: quote(text), suffix: quote(pieces.suffix) })?;
        if let Some(quantity) = parse_small(text, &pieces, scaling) {
            return Ok(quantity);
        }
        if !pieces.has_digits {
            return Err(ParseQuantityError::Numeric { input: quote(text) });
        }
        Ok(parse_big(&pieces, scaling))
    }
}

/// Takes a text apart: a sign, digits around a point, letters, another sign, more digits; all of them optional.
fn split(text: &str) -> Option<Pieces<'_>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (zeros, rest) = split_while(unsigned, |byte| byte == b'0');
    let (integer, rest) = split_while(rest, |byte| byte.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_while(rest, |byte| byte.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, rest) = split_while(suffix, |byte| b"eEinumkKMGTP".contains(&byte));
    let (_, rest) = split_while(rest.strip_prefix(['+', '-']).unwrap_or(rest), |byte| byte.is_ascii_digit());
    rest.is_empty().then(|| Pieces {
        negative: text.starts_with('-'),
        has_digits: !(zeros.is_empty() && integer.is_empty() && fraction.is_empty()),
        integer,
        fraction,
        suffix,
    })
}

/// Splits after the leading bytes that are `accepted`, which must all be ASCII.
fn split_while(text: &str, accepted: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !accepted(byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn interpret_suffix(suffix: &str) -> Option<Scaling> {
    use Format::{BinarySi, DecimalExponent, DecimalSi};
    let (format, exponent) = match suffix {
        "n" => (DecimalSi, -9),
        "u" => (DecimalSi, -6),
        "m" => (DecimalSi, -3),
        "" => (DecimalSi, 0),
        "k" => (DecimalSi, 3),
        "M" => (DecimalSi, 6),
        "G" => (DecimalSi, 9),
        "T" => (DecimalSi, 12),
        "P" => (DecimalSi, 15),
        "E" => (DecimalSi, 18),
        "Ki" => (BinarySi, 10),
        "Mi" => (BinarySi, 20),
        "Gi" => (BinarySi, 30),
        "Ti" => (BinarySi, 40),
        "Pi" => (BinarySi, 50),
        "Ei" => (BinarySi, 60),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            // Go keeps the low 32 bits: "1e4294967299" is "1e3".
            (DecimalExponent, exponent as i32)
        }
    };
    Some(Scaling { format, exponent })
}

/// The small amount a text stands for, or nothing if it takes a big one.
fn parse_small(text: &str, pieces: &Pieces<'_>, scaling: Scaling) -> Option<Quantity> {
    let Pieces { integer, fraction, suffix, .. } = *pieces;
    // A missing integer part counts as the digit zero.
    let digits = integer.len().max(1) + fraction.len();
    let (factor, scale) = if scaling.format == Format::BinarySi {
        // Three decimal digits for every ten binary ones, and two to spare.
        let room = 14_usize.checked_sub(scaling.exponent as usize * 3 / 10)?;
        if !fraction.is_empty() || digits > room {
            return None;
        }
        (1_i64 << scaling.exponent, 0)
    } else if digits > SMALL_DIGITS_MAX {
        return None;
    } else {
        // Go subtracts in 32 bits, so the least exponent wraps around to the greatest scales.
        (1, scaling.exponent.wrapping_sub(fraction.len() as i32))
    };
    if scale < NANO_SCALE {
        return None;
    }

    // At most eighteen digits, so this does not overflow.
    let number =
        integer.bytes().chain(fraction.bytes()).fold(0, |number, byte| number * 10 + i64::from(byte - b'0'));
    let magnitude = number.checked_mul(factor)?;
    let mantissa = if pieces.negative { -magnitude } else { magnitude };
    let mut quantity = Quantity::small(mantissa, scale, scaling.format);

    // Go takes these for canonical and prints them as they were written, though it misses extra signs, zeros,
    // points and unusual exponents. Those must be remembered; the others print the same when formatted anew.
    let taken_for_canonical = match scaling.format {
        Format::BinarySi => number % 8 != 0,
        Format::DecimalExponent | Format::DecimalSi => {
            scale % 3 == 0 && number % 1000 != 0 && !integer.is_empty()
        }
    };
    if taken_for_canonical {
        let canonical_length = usize::from(pieces.negative) + integer.len() + suffix.len();
        let plain_suffix =
            scaling.format != Format::DecimalExponent || is_plain_exponent(suffix, scaling.exponent);
        if text.len() != canonical_length || !plain_suffix {
            quantity.spelling = Some(Box::new(Spelling(text.into())));
        }
    }
    Some(quantity)
}

/// Whether the exponent is written as it would be printed.
fn is_plain_exponent(suffix: &str, exponent: i32) -> bool {
    let Some(written) = suffix.strip_prefix('e') else { return false };
    let digits = written.strip_prefix('-').unwrap_or(written);
    // An exponent that was cut down to 32 bits does not parse as one of 32 bits, and the greatest ones wrap
    // around when printing moves up to two zeros into them.
    !digits.starts_with(['0', '+']) && exponent < i32::MAX - 2 && written.parse() == Ok(exponent)
}

fn parse_big(pieces: &Pieces<'_>, scaling: Scaling) -> Quantity {
    let digits = pieces.integer.bytes().chain(pieces.fraction.bytes()).map(|byte| byte - b'0').collect();
    let places = pieces.fraction.len() as i32;
    // The sign waits until the end, because the limits apply to the magnitude.
    let mut format = scaling.format;
    let mut magnitude = if format == Format::BinarySi {
        BigDecimal::new(false, digits, places)
            .times_power_of_two(scaling.exponent.unsigned_abs())
            .rounded_to_nano()
    } else {
        BigDecimal::new(false, digits, places.wrapping_sub(scaling.exponent)).rounded_to_nano()
    };
    if format == Format::BinarySi {
        let greatest = BigDecimal::from_small(i64::MAX, 0);
        if magnitude.compare(&greatest).is_gt() {
            magnitude = greatest;
        }
        // Binary suffixes have no fractions.
        if !magnitude.is_zero() && magnitude.magnitude() <= 0 {
            format = Format::DecimalSi;
        }
    }
    Quantity::big(if pieces.negative { magnitude.negated() } else { magnitude }, format)
}

fn quote(text: &str) -> Box<str> {
    match text.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}
