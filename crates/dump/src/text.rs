//! From bytes to text.

/// The text of a file: UTF-8, or UTF-16 as Windows' shells write it. All line ends become line feeds, which changes neither
/// what YAML and JSON mean nor where anything stands. Whoever has seen all bytes says whether a carriage return may be among
/// them: to look for one takes as long as to read a large file.
pub fn to_text(bytes: Vec<u8>, may_have_carriage_returns: bool) -> Result<String, String> {
    let text = match &bytes[..] {
        [0x1f, 0x8b, ..] => return Err("is compressed; unpack it first, for example with gunzip".to_owned()),
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
            return Err("is written in UTF-32; write it in UTF-8".to_owned());
        }
        [0xff, 0xfe, rest @ ..] => from_utf16(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => from_utf16(rest, u16::from_be_bytes)?,
        // Without a mark at the start, the zeros of the first letters show it.
        [1..=255, 0, 1..=255, 0, ..] => from_utf16(&bytes, u16::from_le_bytes)?,
        [0, 1..=255, 0, 1..=255, ..] => from_utf16(&bytes, u16::from_be_bytes)?,
        _ => {
            let text = from_utf8(bytes)?;
            return Ok(if may_have_carriage_returns { with_line_feeds(text) } else { text });
        }
    };
    Ok(with_line_feeds(text))
}

fn from_utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        format!("is not text: line {line} is not UTF-8")
    })
}

fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, String> {
    let not_text = || "is not text: it begins like UTF-16, and is not".to_owned();
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<String, _>>();
    if rest.is_empty() { text.map_err(|_| not_text()) } else { Err(not_text()) }
}

fn with_line_feeds(text: String) -> String {
    let Some(first) = memchr::memchr(b'\r', text.as_bytes()) else { return text };
    let mut bytes = text.into_bytes();
    let mut end = first;
    for at in first..bytes.len() {
        match bytes[at] {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => continue,
            b'\r' => bytes[end] = b'\n',
            other => bytes[end] = other,
        }
        end += 1;
    }
    bytes.truncate(end);
    String::from_utf8(bytes).expect("only carriage returns have gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_encodings_come_to_the_same() {
        let expected = "a: ü\n\nb: c\n";
        let little: Vec<u8> = expected.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = expected.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [
            expected.as_bytes().to_vec(),
            expected.replace('\n', "\r\n").into_bytes(),
            expected.replace('\n', "\r").into_bytes(),
            [&[0xff, 0xfe][..], &little].concat(),
            [&[0xfe, 0xff][..], &big].concat(),
            little,
            big,
        ] {
            assert_eq!(to_text(bytes.clone(), true).as_deref(), Ok(expected), "{bytes:?}");
        }
        assert_eq!(to_text(Vec::new(), false).as_deref(), Ok(""));
        assert_eq!(to_text(b"\r".to_vec(), true).as_deref(), Ok("\n"));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for (bytes, expected) in [
            (&b"a\nb\n\xff\n"[..], "is not text: line 3 is not UTF-8"),
            (&[0x1f, 0x8b, 8, 0], "is compressed; unpack it first, for example with gunzip"),
            (&[0xff, 0xfe, b'a'], "is not text: it begins like UTF-16, and is not"),
            (&[0xff, 0xfe, 0, 0xd8], "is not text: it begins like UTF-16, and is not"),
            (&[0xff, 0xfe, 0, 0, b'a', 0, 0, 0], "is written in UTF-32; write it in UTF-8"),
        ] {
            assert_eq!(to_text(bytes.to_vec(), true), Err(expected.to_owned()), "{bytes:?}");
        }
    }
}
