//! Files that a command reads; `-` is standard input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;

use anyhow::{Context, anyhow};
use supercargo_dump::{STANDARD_INPUT, to_text};

/// A file is held in memory as a whole; a larger one is refused instead of filling it. kubectl's JSON of
/// almost half a million pods fits.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// So much is read at a time: what was read is looked through while the processor's cache still holds it.
const BLOCK_BYTES: usize = 256 << 10;
/// A file of this length or more is read in parts.
const PARTS_BYTES_MIN: u64 = 16 << 20;
/// So many parts are read at the same time; more would wait for the memory.
const PARTS: usize = 4;

/// What messages call a file.
pub(crate) fn display_name(file: &str) -> &str {
    if file == "-" { STANDARD_INPUT } else { file }
}

pub(crate) fn read(file: &str) -> anyhow::Result<String> {
    let name = display_name(file);
    if file == "-" {
        return read_at_most(io::stdin().lock(), Content::default(), FILE_BYTES_MAX, name);
    }
    let mut opened = File::open(file).with_context(|| format!("cannot read {name}"))?;
    // What has no length, such as a pipe, says 0.
    let length = opened.metadata().map_or(0, |metadata| metadata.len());
    if length > FILE_BYTES_MAX {
        return Err(too_large(FILE_BYTES_MAX, name));
    }
    let begun = if length < PARTS_BYTES_MIN {
        Ok(Content::default())
    } else {
        read_in_parts(&mut opened, length as usize)
    };
    let begun = begun.with_context(|| format!("cannot read {name}"))?;
    read_at_most(opened, begun, FILE_BYTES_MAX, name)
}

/// What was read so far.
#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    has_carriage_returns: bool,
}

impl Content {
    /// Reads on, up to the end of the input.
    fn read_to_end(&mut self, mut input: impl Read) -> io::Result<()> {
        loop {
            let length = input.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut self.bytes)?;
            if length == 0 {
                return Ok(());
            }
            let block = &self.bytes[self.bytes.len() - length..];
            self.has_carriage_returns = self.has_carriage_returns || has_carriage_return(block);
        }
    }
}

/// Reads so much of a file, in parts and at the same time: to copy a large file takes as long as to make sense of it.
fn read_in_parts(file: &mut File, length: usize) -> io::Result<Content> {
    let mut bytes = vec![0; length];
    let part_bytes = length.div_ceil(PARTS);
    let parts = std::thread::scope(|scope| {
        let parts = bytes.chunks_mut(part_bytes).enumerate();
        let file = &*file;
        let parts: Vec<_> = parts
            .map(|(number, part)| scope.spawn(move || read_part(file, number * part_bytes, part)))
            .collect();
        parts.into_iter().map(|part| part.join().expect("reading does not panic")).collect::<Vec<_>>()
    });
    let mut has_carriage_returns = false;
    for part in parts {
        has_carriage_returns |= part?;
    }
    file.seek(SeekFrom::Start(length as u64))?;
    Ok(Content { bytes, has_carriage_returns })
}

/// Fills a part with what stands there in a file; whether a carriage return is among it.
fn read_part(file: &File, mut offset: usize, part: &mut [u8]) -> io::Result<bool> {
    let mut has_carriage_returns = false;
    for block in part.chunks_mut(BLOCK_BYTES) {
        file.read_exact_at(block, offset as u64)?;
        has_carriage_returns = has_carriage_returns || has_carriage_return(block);
        offset += block.len();
    }
    Ok(has_carriage_returns)
}

fn has_carriage_return(block: &[u8]) -> bool {
    memchr::memchr(b'\r', block).is_some()
}

/// Reads on to the end, but no more than the limit in all.
fn read_at_most(input: impl Read, begun: Content, limit: u64, name: &str) -> anyhow::Result<String> {
    let mut content = begun;
    let rest = limit + 1 - content.bytes.len() as u64;
    content.read_to_end(input.take(rest)).with_context(|| format!("cannot read {name}"))?;
    if content.bytes.len() as u64 > limit {
        return Err(too_large(limit, name));
    }
    to_text(content.bytes, content.has_carriage_returns).map_err(|reason| anyhow!("{name} {reason}"))
}

fn too_large(limit: u64, name: &str) -> anyhow::Error {
    anyhow!("{name} is larger than {limit} bytes; split it, by namespace for example, and name all parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused() {
        let read = |text: &str| read_at_most(text.as_bytes(), Content::default(), 4, "pods.yaml");
        for text in ["", "abc", "abcd"] {
            assert_eq!(read(text).expect("is small enough"), text);
        }
        let error = read("abcde").expect_err("is too large").to_string();
        assert_eq!(
            error,
            "pods.yaml is larger than 4 bytes; split it, by namespace for example, and name all parts"
        );
    }

    #[test]
    fn a_file_that_is_read_in_parts_is_read_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pods.yaml");
        let line = "0123456789abcdef\r\n";
        let text = line.repeat((PARTS_BYTES_MIN as usize + 12_345) / line.len());
        for written in [text.clone(), text.replace('\r', "")] {
            std::fs::write(&path, &written).expect("it is written");
            let read = read(path.to_str().expect("a name")).expect("it is read");
            assert!(read == written.replace("\r\n", "\n"), "{} bytes became {}", written.len(), read.len());
        }
    }

    #[test]
    fn what_a_file_has_beyond_its_parts_is_read_as_well() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pods.yaml");
        std::fs::write(&path, "0123456789\r").expect("it is written");
        let mut file = File::open(&path).expect("it is there");
        let begun = read_in_parts(&mut file, 7).expect("it is longer");
        assert_eq!((&begun.bytes[..], begun.has_carriage_returns), (&b"0123456"[..], false));
        assert_eq!(read_at_most(file, begun, 100, "pods.yaml").expect("it is text"), "0123456789\n");
        let mut file = File::open(&path).expect("it is there");
        assert!(read_in_parts(&mut file, 12).is_err(), "it became shorter");
    }
}
