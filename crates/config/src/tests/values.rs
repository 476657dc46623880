//! Durations and base64.

use proptest::prelude::*;

use supercargo_framework::GoDuration;

use crate::Bytes;

#[test]
fn durations_are_read_and_printed_as_go_does() {
    for (text, nanoseconds, printed) in [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("-0", 0, "0s"),
        ("15s", 15_000_000_000, "15s"),
        ("1m30s", 90_000_000_000, "1m30s"),
        ("90s", 90_000_000_000, "1m30s"),
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("+5s", 5_000_000_000, "5s"),
        ("-1.5s", -1_500_000_000, "-1.5s"),
        (".5s", 500_000_000, "500ms"),
        ("1.s", 1_000_000_000, "1s"),
        ("1ns", 1, "1ns"),
        ("1500us", 1_500_000, "1.5ms"),
        ("3\u{b5}s", 3_000, "3\u{b5}s"),
        ("3\u{3bc}s", 3_000, "3\u{b5}s"),
        ("0.100000000000000000000h", 360_000_000_000, "6m0s"),
        ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
    ] {
        assert_eq!(text.parse(), Ok(GoDuration(nanoseconds)), "{text}");
        assert_eq!(GoDuration(nanoseconds).to_string(), printed, "{text}");
    }
}

#[test]
fn what_is_no_duration_is_refused_in_gos_words() {
    for (text, error) in [
        ("", "time: invalid duration \"\""),
        ("-", "time: invalid duration \"-\""),
        ("s", "time: invalid duration \"s\""),
        (".s", "time: invalid duration \".s\""),
        ("5", "time: missing unit in duration \"5\""),
        ("5.", "time: missing unit in duration \"5.\""),
        ("5d", "time: unknown unit \"d\" in duration \"5d\""),
        ("5 s", "time: unknown unit \" s\" in duration \"5 s\""),
        ("1m-3s", "time: unknown unit \"m-\" in duration \"1m-3s\""),
        ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
        ("99999999999999999999h", "time: invalid duration \"99999999999999999999h\""),
        ("3000000h", "time: invalid duration \"3000000h\""),
    ] {
        assert_eq!(text.parse::<GoDuration>().map_err(|error| error.to_string()), Err(error.to_owned()));
    }
}

#[test]
fn base64_is_padded() {
    for (text, bytes) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc"), ("YWJjZA==", "abcd")] {
        assert_eq!(Bytes::from_base64(text), Some(Bytes(bytes.into())), "{text}");
        assert_eq!(Bytes(bytes.into()).to_base64(), text);
    }
    assert_eq!(Bytes::from_base64("YW\nJj\r\n"), Some(Bytes("abc".into())));
    for bad in ["YQ", "!!!!", "=", "====", "YQ==YQ==", "Y===", "ä==="] {
        assert_eq!(Bytes::from_base64(bad), None, "{bad}");
    }
    assert_eq!(format!("{:?}", Bytes(vec![1, 2])), "2 bytes", "keys stay out of logs");
}

proptest! {
    #[test]
    fn printed_durations_are_read_back(nanoseconds: i64) {
        let duration = GoDuration(nanoseconds);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9.a-zµ]{0,12}") {
        if let Ok(duration) = text.parse::<GoDuration>() {
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }

    #[test]
    fn printed_bytes_are_read_back(bytes: Vec<u8>) {
        prop_assert_eq!(Bytes::from_base64(&Bytes(bytes.clone()).to_base64()), Some(Bytes(bytes)));
    }
}
