//! Base64.

use proptest::prelude::*;

use crate::Bytes;

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
    fn printed_bytes_are_read_back(bytes: Vec<u8>) {
        prop_assert_eq!(Bytes::from_base64(&Bytes(bytes.clone()).to_base64()), Some(Bytes(bytes)));
    }
}
