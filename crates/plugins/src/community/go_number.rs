//! Numbers as Go's `strconv.ParseFloat` reads them.

/// How many whole units of so many to a number; none if the text is no number, or one that 64 bits do not hold.
pub(super) fn parse(text: &str, units: f64) -> Option<i64> {
    let value = float(text)? * units;
    // The limits themselves are powers of two, which floating point numbers hold; so is the one that stands for nodes that do not say.
    let is_held = value > i64::MIN as f64 && value < i64::MAX as f64;
    is_held.then_some(value as i64)
}

/// The number; none if the text is none, or one that is too large.
pub(super) fn float(text: &str) -> Option<f64> {
    let digits = without_underscores(text)?;
    let value: f64 = match hexadecimal(&digits) {
        Some(value) => value?,
        None => digits.parse().ok()?,
    };
    // `Inf` in letters is meant to be infinite; digits that come to it are too large.
    let is_too_large = value.is_infinite() && digits.bytes().any(|byte| byte.is_ascii_digit());
    (!is_too_large).then_some(value)
}

/// Go allows an underscore between two digits, and after `0x`.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let front = unsigned.as_bytes().get(..2).filter(|_| unsigned.len() > 2);
    let is_hexadecimal = front.is_some_and(|front| front.eq_ignore_ascii_case(b"0x"));
    let prefix_end = text.len() - unsigned.len() + 2;
    let is_digit = |index: usize| match bytes.get(index) {
        // The `x` of the prefix counts as a digit here.
        Some(b'x' | b'X') => is_hexadecimal && index + 1 == prefix_end,
        Some(byte) if is_hexadecimal => byte.is_ascii_hexdigit(),
        Some(byte) => byte.is_ascii_digit(),
        None => false,
    };
    let is_placed = |index: usize| index > 0 && is_digit(index - 1) && is_digit(index + 1);
    let underscores = || bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    underscores().all(|(index, _)| is_placed(index)).then(|| text.replace('_', ""))
}

/// A number such as `0x1.8p3`: a mantissa in base 16 and a power of two. None if it is not written like that, and none inside if
/// it is, but wrongly.
fn hexadecimal(text: &str) -> Option<Option<f64>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"))?;
    let read = || {
        let (mantissa, exponent) = rest.split_once(['p', 'P'])?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut value = 0.0;
        for digit in whole.chars().chain(fraction.chars()) {
            value = value * 16.0 + f64::from(digit.to_digit(16)?);
        }
        let exponent: i32 = exponent.parse().ok()?;
        let shift = exponent.saturating_sub(4 * i32::try_from(fraction.len()).ok()?);
        let value = value * 2_f64.powi(shift);
        Some(if text.starts_with('-') { -value } else { value })
    };
    Some(read())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("10", Some(10)),
            ("-2.9", Some(-2)),
            ("+1e3", Some(1_000)),
            (".5", Some(0)),
            ("5.", Some(5)),
            ("1_000", Some(1_000)),
            ("1_0.2_5", Some(10)),
            ("0x1p4", Some(16)),
            ("0x1.8p3", Some(12)),
            ("-0X_Fp0", Some(-15)),
            ("_1", None),
            ("1_", None),
            ("1__0", None),
            ("1_.0", None),
            ("0x1", None),
            ("0xp1", None),
            ("0x1.gp1", None),
            (" 1", None),
            ("", None),
            ("nan", None),
            ("Inf", None),
            ("1e30", None),
            ("-9223372036854775808", None),
            ("9223372036854774784", Some(9_223_372_036_854_774_784)),
            ("1e", None),
            ("one", None),
            ("१", None),
            ("0१", None),
        ] {
            assert_eq!(parse(text, 1.0), expected, "{text:?}");
        }
        for (text, expected) in [("0x1p-1", Some(0.5)), ("1e400", None), ("-inf", Some(f64::NEG_INFINITY))] {
            assert_eq!(float(text), expected, "{text:?}");
        }
    }
}
