//! Files that a command reads; `-` is standard input.

use std::fs::File;
use std::io::{self, Read};

use anyhow::{Context, anyhow, bail};
use supercargo_dump::{STANDARD_INPUT, to_text};

/// A file is held in memory as a whole; a larger one is refused instead of filling it. kubectl's JSON of
/// almost half a million pods fits.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// What messages call a file.
pub(crate) fn display_name(file: &str) -> &str {
    if file == "-" { STANDARD_INPUT } else { file }
}

pub(crate) fn read(file: &str) -> anyhow::Result<String> {
    let name = display_name(file);
    if file == "-" {
        return read_at_most(io::stdin().lock(), 0, FILE_BYTES_MAX, name);
    }
    let opened = File::open(file).with_context(|| format!("cannot read {name}"))?;
    // What has no length, such as a pipe, says 0.
    let length = opened.metadata().map_or(0, |metadata| metadata.len());
    read_at_most(opened, length, FILE_BYTES_MAX, name)
}

/// Reads text of about that length, but no more than the limit.
fn read_at_most(input: impl Read, length: u64, limit: u64, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if length <= limit {
        bytes.reserve(length as usize);
        input.take(limit + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    }
    if length > limit || bytes.len() as u64 > limit {
        bail!("{name} is larger than {limit} bytes; split it, by namespace for example, and name all parts");
    }
    to_text(bytes).map_err(|reason| anyhow!("{name} {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused() {
        let read = |text: &str, length| read_at_most(text.as_bytes(), length, 4, "pods.yaml");
        for (text, length) in [("", 0), ("abcd", 0), ("abcd", 4), ("abcd", 2)] {
            assert_eq!(read(text, length).expect("is small enough"), text);
        }
        for (text, length) in [("abcde", 0), ("abcde", 5), ("", 5)] {
            let error = read(text, length).expect_err("is too large").to_string();
            assert_eq!(
                error,
                "pods.yaml is larger than 4 bytes; split it, by namespace for example, and name all parts"
            );
        }
    }
}
