//! What Go answers, in tables; the laws that hold for every quantity are in `laws`.

mod laws;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{text:?} should parse: {error}"))
}

#[test]
fn a_quantity_is_four_words() {
    assert!(size_of::<Quantity>() <= 32);
}

#[test]
fn values_round_up_and_overflow_as_in_go() {
    // text, value, value in thousandths
    let expected = [
        ("0", 0, 0),
        ("100m", 1, 100),
        ("-100m", -1, -100),
        ("1.5", 2, 1500),
        ("128Mi", 134_217_728, 134_217_728_000),
        ("1n", 1, 1),
        ("0.1n", 1, 1),
        ("1e-20", 1, 1),
        // A negative amount that does not take the short way gains one.
        ("-1.50000000000000000001", 0, -1499),
        ("-0.1Pi", 8_935_141_661, 8_935_141_660_704),
        // Overflow leaves a wrapped product or nothing, depending on the power of ten.
        ("999999999999999999", 999_999_999_999_999_999, 3_875_820_019_684_211_736),
        ("9E", 9_000_000_000_000_000_000, 0),
        ("10E", 0, 0),
        ("9Ei", i64::MAX, -1000),
        ("9223372036854775808", i64::MIN, 0),
        // Exponents are cut down to 32 bits.
        ("1e4294967299", 1000, 1_000_000),
        ("1e2147483647", 0, 1),
        ("1.5e-2147483648", 0, 15),
    ];
    for (text, value, milli_value) in expected {
        let quantity = quantity(text);
        assert_eq!((quantity.value(), quantity.milli_value()), (value, milli_value), "{text}");
    }
}

#[test]
fn quantities_print_as_in_go() {
    let expected = [
        // canonical forms
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("1.0e3", "1e3"),
        ("12000", "12k"),
        ("-0", "0"),
        ("9Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        ("7Ei", "7Ei"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        // printed as written, although not canonical
        ("+1", "+1"),
        ("001", "001"),
        ("1.", "1."),
        ("1.500", "1.500"),
        ("1.123", "1.123"),
        ("1E3", "1E3"),
        ("1e0", "1e0"),
        ("1e+3", "1e+3"),
        ("+1Ki", "+1Ki"),
        ("1.Ki", "1.Ki"),
        // no suffix is large enough
        ("1000E", "1"),
    ];
    for (text, printed) in expected {
        assert_eq!(quantity(text).to_string(), printed, "{text}");
        let json = serde_json::to_string(&quantity(text)).expect("a string is always written");
        assert_eq!(json, format!("\"{printed}\""));
    }
    assert_eq!(Quantity::new(i64::MIN, Format::BinarySi).to_string(), "-9223372036854775808");
    assert_eq!(format!("{:?}", Quantity::milli(1500)), "Quantity(1500m)");
}

#[test]
fn arithmetic_forgets_the_spelling() {
    let mut sum = quantity("1.500");
    sum += &quantity("0");
    assert_eq!(sum.to_string(), "1500m");
    assert_eq!((-quantity("+1")).to_string(), "-1");
}

#[test]
fn texts_without_a_number_are_zero_if_the_suffix_is_small() {
    for text in ["+", "-", ".", "-.", "e3", "E", "k", "Ki", "Ti", "+m"] {
        assert!(quantity(text).is_zero(), "{text}");
    }
}

#[test]
fn errors_tell_the_cases_apart() {
    let kind = |text: &str| match text.parse::<Quantity>() {
        Ok(_) => "none",
        Err(ParseQuantityError::Empty) => "empty",
        Err(ParseQuantityError::Format { .. }) => "format",
        Err(ParseQuantityError::Suffix { .. }) => "suffix",
        Err(ParseQuantityError::Numeric { .. }) => "numeric",
    };
    assert_eq!(kind(""), "empty");
    for text in [" 1", "1 ", "1_0", "1.2.3", "---1", "0x10", "1KiB", "٣", "é", "1é"] {
        assert_eq!(kind(text), "format", "{text}");
    }
    for text in ["1e", "1e+", "1i", "1iK", "1mm", "1+5", "--1", "e", "1e9223372036854775808", "1K"] {
        assert_eq!(kind(text), "suffix", "{text}");
    }
    for text in ["Pi", "Ei", "-.Ei", "e-10", ".e-10"] {
        assert_eq!(kind(text), "numeric", "{text}");
    }
    assert_eq!(
        "1KB".parse::<Quantity>().map_err(|error| error.to_string()),
        Err("quantity \"1KB\" is not a number followed by a suffix".to_owned())
    );
    assert_eq!(
        "1mm".parse::<Quantity>().map_err(|error| error.to_string()),
        Err("quantity \"1mm\" has the unknown suffix \"mm\"".to_owned())
    );
}

#[test]
fn sums_take_the_format_of_the_first_that_is_not_zero() {
    let sum = |left: &str, right: &str| {
        let mut sum = quantity(left);
        sum += &quantity(right);
        sum.to_string()
    };
    assert_eq!(sum("1Gi", "1G"), "2073741824");
    assert_eq!(sum("0", "1Gi"), "1Gi");
    assert_eq!(sum("1k", "24"), "1024");
    assert_eq!(sum("1Ki", "1k"), "2024");
    assert_eq!(sum("1Ki", "1"), "1025");
    assert_eq!(sum("1Ki", "500m"), "1024500m");
    assert_eq!(sum("0e3", "100m"), "100m");
    assert_eq!(sum("1e3", "1Ki"), "2024");

    let mut difference = quantity("0");
    difference -= &Quantity::from(i64::MIN);
    assert_eq!(difference, Quantity::from(i64::MIN));
}

#[test]
fn json_may_hold_strings_numbers_and_null() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json).map(|quantity| quantity.to_string()).ok();
    assert_eq!(read("\"100m\"").as_deref(), Some("100m"));
    assert_eq!(read("\" 1Gi \"").as_deref(), Some("1Gi"));
    assert_eq!(read("4").as_deref(), Some("4"));
    assert_eq!(read("-4000").as_deref(), Some("-4k"));
    assert_eq!(read("0.5").as_deref(), Some("500m"));
    assert_eq!(read("1e-7").as_deref(), Some("100e-9"));
    assert_eq!(read("1e30").as_deref(), Some("1e30"));
    assert_eq!(read("18446744073709551615").as_deref(), Some("18446744073709551615"));
    assert_eq!(read("null").as_deref(), Some("0"));
    assert_eq!(read("\"1\\n\""), None);
    assert_eq!(read("\"\""), None);
    assert_eq!(read("true"), None);
    assert_eq!(read("[]"), None);
}

#[test]
fn extreme_texts_cost_no_more_than_their_length() {
    let long = "9".repeat(10_000);
    for text in [
        "1e999999999999",
        "-1234567890123456789e2147483000",
        "1e-2147483647",
        "0e2147483647",
        &long,
        &format!("{long}.{long}Ei"),
        &format!("{long}e-2147483648"),
        &format!("0.{long}e-2147483640"),
    ] {
        let mut quantity = quantity(text);
        let (value, milli_value) = (quantity.value(), quantity.milli_value());
        quantity += &Quantity::new(2048, Format::BinarySi);
        quantity -= &Quantity::milli(1);
        assert!(quantity == quantity.clone() && !quantity.to_string().is_empty(), "{value} {milli_value}");
    }
    let mut mixed = Quantity::new(2048, Format::BinarySi);
    mixed += &quantity("1e2147483600");
    assert!(mixed > quantity("1e2147483599") && !mixed.to_string().is_empty());
}
