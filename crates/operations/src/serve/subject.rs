//! Whom a client certificate names.
//!
//! Only the subject of a certificate is read, and only after rustls has verified it; so this reader need not judge certificates, only
//! never misread one: whatever it does not understand it refuses.

use super::access::User;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const VERSION: u8 = 0xa0;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The types of text that are UTF-8, or part of it: UTF8String, PrintableString, IA5String.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// The user that a certificate names: its common name, with its organizations as groups. None if it has no name, or one
/// that cannot be read.
pub(super) fn user(certificate: &[u8]) -> Option<User> {
    let mut outer = Reader(certificate);
    let mut signed = Reader(outer.take(SEQUENCE)?);
    let mut body = Reader(signed.take(SEQUENCE)?);
    if body.0.first() == Some(&VERSION) {
        body.any()?;
    }
    // The serial number, the signature's algorithm, the issuer and the validity.
    for _ in 0..4 {
        body.any()?;
    }
    let mut subject = Reader(body.take(SEQUENCE)?);
    let mut user = User::default();
    while !subject.0.is_empty() {
        let mut names = Reader(subject.take(SET)?);
        while !names.0.is_empty() {
            let mut pair = Reader(names.take(SEQUENCE)?);
            let kind = pair.take(OBJECT_IDENTIFIER)?;
            let (tag, value) = pair.any()?;
            if kind != COMMON_NAME && kind != ORGANIZATION {
                continue;
            }
            if !TEXTS.contains(&tag) {
                return None;
            }
            let value = std::str::from_utf8(value).ok()?.to_owned();
            // Of several common names Go takes the last.
            if kind == COMMON_NAME {
                user.name = value;
            } else {
                user.groups.push(value);
            }
        }
    }
    (!user.name.is_empty()).then_some(user)
}

/// What is left to read of some DER.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The contents of the next value, if it is of this type.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, contents) = self.any()?;
        (found == tag).then_some(contents)
    }

    /// The next value: its type and its contents.
    fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&length, mut rest) = rest.split_first()?;
        let mut bytes = usize::from(length);
        if length >= 0x80 {
            // So many bytes of length follow; four are more than any certificate has, and none is not DER.
            let count = usize::from(length & 0x7f);
            if count == 0 || count > 4 {
                return None;
            }
            let (digits, after) = rest.split_at_checked(count)?;
            bytes = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            rest = after;
        }
        let (contents, after) = rest.split_at_checked(bytes)?;
        self.0 = after;
        Some((tag, contents))
    }
}
