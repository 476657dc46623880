use super::*;

#[test]
fn reads_and_prints_as_go_does() {
    for (text, nanoseconds, printed) in [
        ("0", 0, "0s"),
        ("-0", 0, "0s"),
        ("15s", 15_000_000_000, "15s"),
        ("1m30s", 90_000_000_000, "1m30s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("250ms", 250_000_000, "250ms"),
        ("1.s", 1_000_000_000, "1s"),
        ("1.5µs", 1_500, "1.5µs"),
        ("3\u{3bc}s", 3_000, "3\u{b5}s"),
        ("7ns", 7, "7ns"),
        ("-2m22.541s", -142_541_000_000, "-2m22.541s"),
        ("+.5s", 500_000_000, "500ms"),
        ("0.18446744073709551619s", 184_467_440, "184.46744ms"),
        ("0.100000000000000000000h", 360_000_000_000, "6m0s"),
        ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
    ] {
        let duration: GoDuration = text.parse().expect(text);
        assert_eq!((duration.0, duration.to_string().as_str()), (nanoseconds, printed), "{text}");
    }
}

#[test]
fn what_is_no_duration_is_refused_in_gos_words() {
    for (text, problem) in [
        ("", "invalid"),
        ("-", "invalid"),
        ("s", "invalid"),
        (".s", "invalid"),
        ("9223372036854775808ns", "invalid"),
        ("99999999999999999999h", "invalid"),
        ("3000000h", "invalid"),
        ("1", "missing unit in"),
        ("5.", "missing unit in"),
        ("1s2", "missing unit in"),
        ("1x", "unknown unit \"x\" in"),
        ("5 s", "unknown unit \" s\" in"),
        ("1m-3s", "unknown unit \"m-\" in"),
        ("1e3s", "unknown unit \"e\" in"),
        ("1..2s", "missing unit in"),
    ] {
        let error = text.parse::<GoDuration>().expect_err(text).to_string();
        assert_eq!(error, format!("time: {problem} duration {text:?}"));
    }
    assert!("１s".parse::<GoDuration>().is_err(), "only these ten are digits");
}

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn seeded() -> Config {
    Config { failure_persistence: None, rng_seed: RngSeed::Fixed(1), cases: 4096, ..Config::default() }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn what_is_printed_reads_as_what_it_was(nanoseconds in any::<i64>(), shift in 0..63u32) {
        let duration = GoDuration(nanoseconds >> shift);
        prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
    }

    #[test]
    fn no_text_is_too_odd_to_be_refused(text in "[-+]?([0-9]{0,20}(\\.[0-9]{0,25})?(ns|us|µs|μs|ms|s|m|h|x|)){0,4}") {
        if let Ok(duration) = text.parse::<GoDuration>() {
            prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
        }
    }

    #[test]
    fn any_text_can_be_tried(text in any::<String>()) {
        let _ = text.parse::<GoDuration>();
    }
}
