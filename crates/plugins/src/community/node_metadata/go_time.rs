//! Times as Go's `time.Parse` reads them: by a layout that shows how the second of January 2006, 15:04:05, would be written.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A layout, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Text that stands there as it is.
    Literal(String),
    Field(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Year,
    /// Two digits: 69 to 99 are of the last century.
    ShortYear,
    /// One or two digits; two if it says so.
    Month {
        is_padded: bool,
    },
    MonthName {
        is_long: bool,
    },
    Weekday {
        is_long: bool,
    },
    Day {
        is_padded: bool,
        may_be_blank: bool,
    },
    DayOfYear {
        may_be_blank: bool,
    },
    Hour,
    HalfDayHour {
        is_padded: bool,
    },
    Minute {
        is_padded: bool,
    },
    Second {
        is_padded: bool,
    },
    /// A separator and so many digits.
    Fraction {
        digits: usize,
    },
    /// A separator and any number of digits, or nothing.
    FractionIfAny,
    Half {
        is_lower: bool,
    },
    Zone {
        is_z_for_utc: bool,
        has_colons: bool,
        parts: usize,
    },
    ZoneName,
}

/// What the fields of a text say.
#[derive(Default)]
struct Parts {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    offset: i64,
}

/// How fields are written in a layout. The first that fits counts, so longer ones come first.
const FIELDS: [(&str, Field); 33] = [
    ("January", Field::MonthName { is_long: true }),
    ("Jan", Field::MonthName { is_long: false }),
    ("Monday", Field::Weekday { is_long: true }),
    ("Mon", Field::Weekday { is_long: false }),
    ("MST", Field::ZoneName),
    ("002", Field::DayOfYear { may_be_blank: false }),
    ("01", Field::Month { is_padded: true }),
    ("02", Field::Day { is_padded: true, may_be_blank: false }),
    ("03", Field::HalfDayHour { is_padded: true }),
    ("04", Field::Minute { is_padded: true }),
    ("05", Field::Second { is_padded: true }),
    ("06", Field::ShortYear),
    ("15", Field::Hour),
    ("1", Field::Month { is_padded: false }),
    ("2006", Field::Year),
    ("2", Field::Day { is_padded: false, may_be_blank: false }),
    ("__2", Field::DayOfYear { may_be_blank: true }),
    ("_2", Field::Day { is_padded: false, may_be_blank: true }),
    ("3", Field::HalfDayHour { is_padded: false }),
    ("4", Field::Minute { is_padded: false }),
    ("5", Field::Second { is_padded: false }),
    ("PM", Field::Half { is_lower: false }),
    ("pm", Field::Half { is_lower: true }),
    ("-07:00:00", zone(false, true, 3)),
    ("-070000", zone(false, false, 3)),
    ("-07:00", zone(false, true, 2)),
    ("-0700", zone(false, false, 2)),
    ("-07", zone(false, false, 1)),
    ("Z07:00:00", zone(true, true, 3)),
    ("Z070000", zone(true, false, 3)),
    ("Z07:00", zone(true, true, 2)),
    ("Z0700", zone(true, false, 2)),
    ("Z07", zone(true, false, 1)),
];

const fn zone(is_z_for_utc: bool, has_colons: bool, parts: usize) -> Field {
    Field::Zone { is_z_for_utc, has_colons, parts }
}

impl Layout {
    pub(super) fn new(text: &str) -> Self {
        let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(first) = rest.chars().next() {
            match field_at(rest) {
                Some((length, field)) => {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Field(field));
                    rest = &rest[length..];
                }
                None => {
                    literal.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Layout(pieces)
    }

    /// The time that a text says, in whole seconds since 1970; none if it is not written like that.
    pub(super) fn parse(&self, text: &str) -> Option<i64> {
        let (mut parts, mut rest) = (Parts::default(), text);
        for (index, piece) in self.0.iter().enumerate() {
            rest = match piece {
                Piece::Literal(literal) => skip(literal, rest)?,
                Piece::Field(field) => parts.read(*field, rest)?,
            };
            // A fraction may follow the seconds though the layout has none.
            let is_second = matches!(piece, Piece::Field(Field::Second { .. }));
            let next_is_fraction = matches!(
                self.0.get(index + 1),
                Some(Piece::Field(Field::Fraction { .. } | Field::FractionIfAny))
            );
            if is_second && !next_is_fraction {
                rest = fraction_if_any(rest);
            }
        }
        if rest.is_empty() { parts.seconds() } else { None }
    }
}

/// The field that a layout begins with, and its length.
fn field_at(layout: &str) -> Option<(usize, Field)> {
    let bytes = layout.as_bytes();
    if let [b'.' | b',', digit @ (b'0' | b'9'), ..] = bytes {
        let digits = bytes[1..].iter().take_while(|byte| *byte == digit).count();
        // Fractions end where the digits end.
        if !bytes.get(1 + digits).is_some_and(u8::is_ascii_digit) {
            let field = if *digit == b'0' { Field::Fraction { digits } } else { Field::FractionIfAny };
            return Some((1 + digits, field));
        }
        return None;
    }
    // `_2006` is an underscore and a year, and `Janus` no month.
    if layout.starts_with("_2006") {
        return None;
    }
    let (text, field) = FIELDS.iter().find(|(text, _)| layout.starts_with(text))?;
    let is_word = matches!(field, Field::MonthName { is_long: false } | Field::Weekday { is_long: false });
    if is_word && bytes.get(text.len()).is_some_and(u8::is_ascii_lowercase) {
        return None;
    }
    Some((text.len(), *field))
}

/// Skips what stands there as it is; a blank stands for any number of them.
fn skip<'a>(mut literal: &str, mut text: &'a str) -> Option<&'a str> {
    while let Some(first) = literal.chars().next() {
        if first == ' ' {
            if !text.is_empty() && !text.starts_with(' ') {
                return None;
            }
            (literal, text) = (literal.trim_start_matches(' '), text.trim_start_matches(' '));
            continue;
        }
        (literal, text) = (&literal[first.len_utf8()..], text.strip_prefix(first)?);
    }
    Some(text)
}

impl Parts {
    /// Reads a field from the front of a text; what is left of the text.
    fn read<'a>(&mut self, field: Field, text: &'a str) -> Option<&'a str> {
        let rest = match field {
            Field::Year => {
                let rest = digits(text, 4)?;
                self.year = rest.0;
                rest.1
            }
            Field::ShortYear => {
                let (year, rest) = digits(text, 2)?;
                self.year = if year >= 69 { 1900 + year } else { 2000 + year };
                rest
            }
            Field::Month { is_padded } => set(&mut self.month, number(text, is_padded)?),
            Field::MonthName { is_long } => {
                let (month, rest) = name(&MONTHS, is_long, text)?;
                self.month = Some(month + 1);
                rest
            }
            Field::Weekday { is_long } => name(&DAYS, is_long, text)?.1,
            Field::Day { is_padded, may_be_blank } => {
                let text = if may_be_blank { text.strip_prefix(' ').unwrap_or(text) } else { text };
                set(&mut self.day, number(text, is_padded)?)
            }
            Field::DayOfYear { may_be_blank: false } => set(&mut self.day_of_year, digits(text, 3)?),
            Field::DayOfYear { may_be_blank: true } => {
                let blanks = text.bytes().take(2).take_while(|byte| *byte == b' ').count();
                let text = &text[blanks..];
                set(&mut self.day_of_year, (1..=3).rev().find_map(|count| digits(text, count))?)
            }
            Field::Hour => within(&mut self.hour, number(text, false)?, 0..24)?,
            Field::HalfDayHour { is_padded } => within(&mut self.hour, number(text, is_padded)?, 0..13)?,
            Field::Minute { is_padded } => within(&mut self.minute, number(text, is_padded)?, 0..60)?,
            Field::Second { is_padded } => within(&mut self.second, number(text, is_padded)?, 0..60)?,
            Field::Fraction { digits: count } => {
                let digits_at = text.strip_prefix(['.', ','])?;
                digits(digits_at, count)?.1
            }
            Field::FractionIfAny => fraction_if_any(text),
            Field::Half { is_lower } => {
                let (half, rest) = text.split_at_checked(2)?;
                let names = if is_lower { ["am", "pm"] } else { ["AM", "PM"] };
                self.is_afternoon = Some(names.iter().position(|name| *name == half)? == 1);
                rest
            }
            Field::Zone { is_z_for_utc, has_colons, parts } => match text.strip_prefix('Z') {
                Some(rest) if is_z_for_utc => rest,
                _ => self.read_offset(text, has_colons, parts)?,
            },
            // What nobody knows stands for no offset, as upstream.
            Field::ZoneName => &text[zone_name_length(text)?..],
        };
        Some(rest)
    }

    fn read_offset<'a>(&mut self, text: &'a str, has_colons: bool, parts: usize) -> Option<&'a str> {
        let sign = match text.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (mut rest, mut offset) = (&text[1..], 0);
        for (part, limit) in [24, 60, 60].into_iter().take(parts).enumerate() {
            if part > 0 && has_colons {
                rest = rest.strip_prefix(':')?;
            }
            let (value, after) = digits(rest, 2)?;
            if value > limit {
                return None;
            }
            (offset, rest) = (offset + value * [3_600, 60, 1][part], after);
        }
        self.offset = sign * offset;
        Some(rest)
    }

    fn seconds(&self) -> Option<i64> {
        let is_leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let (month, day) = match self.day_of_year {
            Some(day_of_year) => {
                let (month, day) = month_and_day(day_of_year, is_leap)?;
                let agrees = self.month.is_none_or(|known| known == month)
                    && self.day.is_none_or(|known| known == day);
                agrees.then_some((month, day))?
            }
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
        };
        let is_day = (1..=12).contains(&month) && (1..=days_in(month, is_leap)).contains(&day);
        let hour = match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let seconds = (hour * 60 + self.minute) * 60 + self.second - self.offset;
        is_day.then(|| days_since_1970(self.year, month, day) * 86_400 + seconds)
    }
}

fn set<'a>(field: &mut Option<i64>, (value, rest): (i64, &'a str)) -> &'a str {
    *field = Some(value);
    rest
}

fn within<'a>(
    field: &mut i64,
    (value, rest): (i64, &'a str),
    range: std::ops::Range<i64>,
) -> Option<&'a str> {
    *field = value;
    range.contains(&value).then_some(rest)
}

/// How long the name of a time zone is at the beginning of a text, if there is one: three capitals, four or five that end in `T`, a few
/// others, and hours such as `+03` instead of a name or after `GMT`.
fn zone_name_length(text: &str) -> Option<usize> {
    if ["ChST", "MeST", "WITA"].iter().any(|name| text.starts_with(name)) {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix("GMT") {
        return Some(3 + hours_length(rest).unwrap_or(0));
    }
    if text.starts_with("UTC") {
        return Some(3);
    }
    let capitals = text.bytes().take_while(u8::is_ascii_uppercase).count();
    match capitals {
        3 => Some(3),
        4 | 5 => text[..capitals].ends_with('T').then_some(capitals),
        _ => hours_length(text).filter(|_| text.len() >= 3),
    }
}

/// How long hours with a sign are, up to 23 of them.
fn hours_length(text: &str) -> Option<usize> {
    let hours = text.strip_prefix(['+', '-'])?;
    let length = hours.bytes().take_while(u8::is_ascii_digit).count();
    let count: u64 = hours[..length].parse().ok()?;
    (count <= 23).then_some(1 + length)
}

/// Exactly so many digits.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (number.parse().unwrap_or(i64::MAX), rest))
}

/// One digit or two; two if the number is padded.
fn number(text: &str, is_padded: bool) -> Option<(i64, &str)> {
    digits(text, 2).or_else(|| if is_padded { None } else { digits(text, 1) })
}

/// The number of the name that a text begins with, in whatever case.
fn name<'a>(names: &[&str], is_long: bool, text: &'a str) -> Option<(i64, &'a str)> {
    names.iter().zip(0..).find_map(|(name, number)| {
        let name = if is_long { name } else { &name[..3] };
        let (front, rest) = text.split_at_checked(name.len())?;
        front.eq_ignore_ascii_case(name).then_some((number, rest))
    })
}

fn fraction_if_any(text: &str) -> &str {
    match text.strip_prefix(['.', ',']) {
        Some(digits) if digits.starts_with(|first: char| first.is_ascii_digit()) => {
            digits.trim_start_matches(|digit: char| digit.is_ascii_digit())
        }
        _ => text,
    }
}

fn days_in(month: i64, is_leap: bool) -> i64 {
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn month_and_day(day_of_year: i64, is_leap: bool) -> Option<(i64, i64)> {
    let mut day = day_of_year;
    for month in 1..=12 {
        if day <= days_in(month, is_leap) {
            return (day > 0).then_some((month, day));
        }
        day -= days_in(month, is_leap);
    }
    None
}

/// The number of a day of the Gregorian calendar, by years that begin in March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_by_their_layout() {
        const RFC_3339: &str = "2006-01-02T15:04:05Z07:00";
        for (layout, text, expected) in [
            (RFC_3339, "1970-01-01T00:00:10Z", Some(10)),
            (RFC_3339, "1970-01-01T00:00:10.75Z", Some(10)),
            (RFC_3339, "1970-01-01T02:00:00+02:00", Some(0)),
            (RFC_3339, "2024-02-29T12:00:00Z", Some(1_709_208_000)),
            (RFC_3339, "2023-02-29T12:00:00Z", None),
            (RFC_3339, "1970-01-01T00:00:10", None),
            (RFC_3339, "1970-01-01T24:00:00Z", None),
            ("2006-01-02", "2025-11-01", Some(1_761_955_200)),
            ("2006-01-02", "2025-11-1", None),
            ("2006-01-02", "2025-11-01 ", None),
            ("20060102", "20251101", Some(1_761_955_200)),
            ("Jan-2-2006", "Nov-1-2025", Some(1_761_955_200)),
            ("Jan-2-2006", "nov-01-2025", Some(1_761_955_200)),
            ("Jan_2_2006", "Nov 1_2025", Some(1_761_955_200)),
            ("Jan_2_2006", "Nov_1_2025", None),
            ("January 2, 2006", "November   1, 2025", Some(1_761_955_200)),
            ("Mon Jan 2 15:04:05 MST 2006", "Sat Nov 1 00:00:00 UTC 2025", Some(1_761_955_200)),
            ("2006-01-02 MST", "2025-11-01 WITA", Some(1_761_955_200)),
            ("2006-01-02 MST", "2025-11-01 ChST", Some(1_761_955_200)),
            ("2006-01-02 MST", "2025-11-01 GMT+3", Some(1_761_955_200)),
            ("2006-01-02 MST", "2025-11-01 GMT+24", None),
            ("2006-01-02 MST", "2025-11-01 -03", Some(1_761_955_200)),
            ("2006-01-02 MST", "2025-11-01 +3", None),
            ("2006-01-02 MST", "2025-11-01 XYZW", None),
            ("2006-01-02 MST", "2025-11-01 AB", None),
            ("02.01.06 3:04PM", "01.11.25 12:00AM", Some(1_761_955_200)),
            ("02.01.06 3:04PM", "01.11.25 12:00am", None),
            ("02.01.06 3:04pm", "01.11.25 12:00am", Some(1_761_955_200)),
            ("2006 002", "2025 305", Some(1_761_955_200)),
            ("2006 __2", "2025  32", Some(1_738_368_000)),
            ("2006-01-02T15-04-05Z", "2025-11-01T00-00-00Z", Some(1_761_955_200)),
            ("2006-01-02 15:04:05.000 -0700", "2025-11-01 01:00:00.123 +0100", Some(1_761_955_200)),
            ("15:04:05.999", "00:00:01", Some(-62_167_219_199)),
            ("", "", Some(-62_167_219_200)),
            ("", "x", None),
            ("2006", "ſſſſ", None),
        ] {
            assert_eq!(Layout::new(layout).parse(text), expected, "{layout:?} {text:?}");
        }
    }
}
