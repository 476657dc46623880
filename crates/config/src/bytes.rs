//! Bytes that stand in a configuration as base64.

use std::fmt;

use serde::{Serialize, Serializer};

/// Bytes, written as padded base64.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Bytes {
    /// Reads base64 as Go does: padding is required, line breaks are skipped.
    pub fn from_base64(text: &str) -> Option<Self> {
        let symbols: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        if !symbols.len().is_multiple_of(4) {
            return None;
        }
        let padding = symbols.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
        let digits = &symbols[..symbols.len() - padding];
        let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3);
        for group in digits.chunks(4) {
            let mut word = 0_u32;
            for symbol in group {
                let digit = ALPHABET.iter().position(|known| known == symbol)?;
                word = (word << 6) | u32::try_from(digit).expect("the alphabet has 64 symbols");
            }
            word <<= 6 * (4 - group.len());
            bytes.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
        }
        Some(Bytes(bytes))
    }

    /// Writes base64.
    pub fn to_base64(&self) -> String {
        let mut text = String::with_capacity(self.0.len().div_ceil(3) * 4);
        for group in self.0.chunks(3) {
            let mut word = [0; 4];
            word[1..=group.len()].copy_from_slice(group);
            let word = u32::from_be_bytes(word);
            for digit in 0..4 {
                let symbol = ALPHABET[(word >> (18 - 6 * digit)) as usize & 63];
                text.push(if digit <= group.len() { char::from(symbol) } else { '=' });
            }
        }
        text
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Bytes {
    // They may be a private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}
