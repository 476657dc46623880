//! Laws that hold for every quantity, checked against integers of any size.

use std::hash::BuildHasher;

use num_bigint::BigInt;
use num_integer::Integer;
use proptest::prelude::*;
use rustc_hash::FxBuildHasher;

use super::*;

/// Exponents in these tests stay within this, so that the model can count in units of ten to its negative.
const MODEL_PLACES: i32 = 60;

/// A text and the number it stands for, in units of ten to the power of minus `MODEL_PLACES`.
#[derive(Clone, Debug)]
struct Written {
    text: String,
    units: BigInt,
    is_binary: bool,
}

fn written() -> impl Strategy<Value = Written> {
    let suffix = prop_oneof![
        (0_usize..16)
            .prop_map(|index| {
                [
                    ("", 10, 0),
                    ("n", 10, -9),
                    ("u", 10, -6),
                    ("m", 10, -3),
                    ("k", 10, 3),
                    ("M", 10, 6),
                    ("G", 10, 9),
                    ("T", 10, 12),
                    ("P", 10, 15),
                    ("E", 10, 18),
                    ("Ki", 2, 10),
                    ("Mi", 2, 20),
                    ("Gi", 2, 30),
                    ("Ti", 2, 40),
                    ("Pi", 2, 50),
                    ("Ei", 2, 60),
                ][index]
            })
            .prop_map(|(text, base, exponent)| (text.to_owned(), base, exponent)),
        (-30_i32..30).prop_map(|exponent| (format!("e{exponent}"), 10, exponent)),
    ];
    ("[+-]?", "[0-9]{1,25}", "(\\.[0-9]{0,20})?", suffix).prop_map(|(sign, integer, fraction, suffix)| {
        let (suffix, base, exponent) = suffix;
        let fraction_digits = fraction.trim_start_matches('.');
        let unscaled: BigInt = format!("{integer}{fraction_digits}").parse().expect("digits are an integer");
        let binary = if base == 2 { BigInt::from(2).pow(exponent.unsigned_abs()) } else { BigInt::from(1) };
        let decimal = if base == 2 { 0 } else { exponent } - fraction_digits.len() as i32 + MODEL_PLACES;
        let magnitude = unscaled * binary * ten_to(decimal);
        let units = if sign == "-" { -magnitude } else { magnitude };
        Written { text: format!("{sign}{integer}{fraction}{suffix}"), units, is_binary: base == 2 }
    })
}

fn ten_to(power: i32) -> BigInt {
    BigInt::from(10).pow(u32::try_from(power).expect("the model has places enough"))
}

/// The number Go keeps: rounded away from zero to nanos, and capped if the suffix is binary.
fn stored(written: &Written) -> BigInt {
    let nano = ten_to(MODEL_PLACES - 9);
    let magnitude = written.units.magnitude().clone().into();
    let rounded = Integer::div_ceil(&magnitude, &nano) * nano;
    let greatest = BigInt::from(i64::MAX) * ten_to(MODEL_PLACES);
    let capped = if written.is_binary { rounded.min(greatest) } else { rounded };
    if written.units < BigInt::ZERO { -capped } else { capped }
}

/// The number a quantity is, in the units of the model, found through its own printed exponent form.
fn units(quantity: &Quantity) -> BigInt {
    let mut plain = Quantity::new(0, Format::DecimalExponent);
    // Adding to a zero would take over the format, so it starts from one and goes back.
    plain += &Quantity::new(1, Format::DecimalExponent);
    plain += quantity;
    let printed = plain.to_string();
    let (mantissa, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
    let mantissa: BigInt = mantissa.parse().expect("a canonical mantissa is an integer");
    let exponent: i32 = exponent.parse().expect("a canonical exponent is an integer");
    mantissa * ten_to(exponent + MODEL_PLACES) - ten_to(MODEL_PLACES)
}

fn ceiling(units: &BigInt, places: i32) -> BigInt {
    Integer::div_ceil(units, &ten_to(MODEL_PLACES - places))
}

proptest! {
    #[test]
    fn parsing_keeps_the_number(written in written()) {
        prop_assert_eq!(units(&quantity(&written.text)), stored(&written));
    }

    #[test]
    fn positive_values_in_range_are_rounded_up(written in written()) {
        let (quantity, stored) = (quantity(&written.text), stored(&written));
        if stored >= BigInt::ZERO {
            for (places, value) in [(0, quantity.value()), (3, quantity.milli_value())] {
                let exact = ceiling(&stored, places);
                if exact <= BigInt::from(i64::MAX) {
                    prop_assert_eq!(BigInt::from(value), exact);
                }
            }
        }
    }

    #[test]
    fn sums_and_differences_are_exact(left in written(), right in written()) {
        let (left_quantity, right_quantity) = (quantity(&left.text), quantity(&right.text));
        let mut sum = left_quantity.clone();
        sum += &right_quantity;
        prop_assert_eq!(units(&sum), stored(&left) + stored(&right));
        let mut difference = left_quantity.clone();
        difference -= &right_quantity;
        prop_assert_eq!(units(&difference), stored(&left) - stored(&right));
        prop_assert_eq!(units(&-left_quantity), -stored(&left));
    }

    #[test]
    fn order_and_hash_follow_the_number(left in written(), right in written()) {
        let (left_quantity, right_quantity) = (quantity(&left.text), quantity(&right.text));
        prop_assert_eq!(left_quantity.cmp(&right_quantity), stored(&left).cmp(&stored(&right)));
    }

    #[test]
    fn equal_quantities_hash_alike(written in written(), zeros in 0_usize..30) {
        let hasher = FxBuildHasher;
        let quantity = quantity(&written.text);
        // The same number by another route, with as many more digits as make it a big amount.
        let mut other = super::quantity(&format!("1{}", "0".repeat(zeros)));
        other += &quantity;
        other -= &super::quantity(&format!("1e{zeros}"));
        prop_assert_eq!(&quantity, &other);
        prop_assert_eq!(hasher.hash_one(&quantity), hasher.hash_one(&other));
    }

    #[test]
    fn what_is_printed_parses_to_the_same(written in written()) {
        let quantity = quantity(&written.text);
        // Above this, decimal quantities are printed without their suffix.
        let printable = BigInt::from(10).pow(21) * ten_to(MODEL_PLACES);
        if quantity.format() == Format::DecimalExponent || stored(&written).magnitude() < printable.magnitude() {
            let printed = quantity.to_string();
            let again = super::quantity(&printed);
            prop_assert_eq!(&again, &quantity);
            prop_assert_eq!(again.to_string(), printed);
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        exercise(&text);
    }

    #[test]
    fn no_text_like_a_quantity_panics(text in "[0-9.+\\-eEinumkKMGTPi ]{0,24}") {
        exercise(&text);
    }

    #[test]
    fn no_exponent_panics(text in "[+-]?[0-9]{0,30}\\.?[0-9]{0,12}[eE][+-]?[0-9]{1,20}") {
        exercise(&text);
    }
}

fn exercise(text: &str) {
    let Ok(quantity) = text.parse::<Quantity>() else { return };
    let mut sum = -quantity.clone();
    for other in [Quantity::milli(1), Quantity::new(i64::MIN, Format::BinarySi), quantity.clone()] {
        sum += &other;
        sum -= &quantity;
        assert_eq!(sum.cmp(&quantity), quantity.cmp(&sum).reverse());
        if text.len() < 8 {
            assert!(!sum.to_string().is_empty());
        }
    }
    assert!(!quantity.to_string().is_empty());
    let _overflow_does_not_panic = (quantity.value(), quantity.milli_value(), sum.value(), sum.milli_value());
}
