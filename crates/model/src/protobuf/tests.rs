//! What is read from protobuf is what is read from JSON.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Fields, Malformed, Value};
use crate::{Cluster, Decoded, Decoder, KindId};

/// An object that Kubernetes' own code filled in at random, and wrote both ways.
#[derive(Deserialize)]
struct Written<'a> {
    kind: &'a str,
    #[serde(borrow)]
    json: &'a RawValue,
    protobuf: &'a str,
}

/// The objects that are kept, or those of the file that `PROTOBUF_OBJECTS` names, for more of them.
fn lines() -> Vec<String> {
    let kept = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/protobuf/objects.jsonl.gz");
    let path = std::env::var_os("PROTOBUF_OBJECTS").map_or_else(kept, PathBuf::from);
    let file = BufReader::new(GzDecoder::new(File::open(path).expect("the objects are there")));
    file.lines().map(|line| line.expect("gzipped text")).collect()
}

fn message(line: &str) -> (KindId, Vec<u8>, &str) {
    let written: Written<'_> = serde_json::from_str(line).expect("an object");
    let kind = if written.kind == "Pod" { KindId::POD } else { KindId::NODE };
    (kind, STANDARD.decode(written.protobuf).expect("base64"), written.json.get())
}

/// What was read of an object, word by word.
fn words(decoded: &Decoded) -> String {
    format!("{decoded:#?}")
}

#[test]
fn objects_are_the_same_from_both() {
    let decoder = Decoder::default().keeping_progress(true);
    let lines = lines();
    assert!(lines.len() >= 30, "there are objects");
    for line in lines {
        let (kind, protobuf, json) = message(&line);
        let from_json = decoder.decode_kind(json, kind).expect("Kubernetes wrote it");
        let from_protobuf = decoder.decode_protobuf(&protobuf, kind).expect("Kubernetes wrote it");
        let (from_json, from_protobuf) = (words(&from_json), words(&from_protobuf));
        if from_json != from_protobuf {
            let differ = from_json.lines().zip(from_protobuf.lines()).filter(|(a, b)| a != b).take(5);
            panic!("{:#?}\n{json}", differ.collect::<Vec<_>>());
        }
    }
}

#[test]
fn whoever_wants_texts_reads_no_protobuf() {
    let pod_and_node = [KindId::POD, KindId::NODE];
    assert_eq!(pod_and_node.map(|kind| Decoder::new([], false).reads_protobuf(kind)), [true; 2]);
    assert_eq!(pod_and_node.map(|kind| Decoder::new([], true).reads_protobuf(kind)), [false; 2]);
}

#[test]
fn what_is_no_protobuf_is_an_error() {
    for (bytes, expected) in [
        (&b"\x0a\x05abc"[..], "it ends in the middle of a field"),
        (b"\x0a", "it ends in the middle of a field"),
        (b"\x08\xff", "it ends in the middle of a field"),
        (b"\x09\x01\x02", "it ends in the middle of a field"),
        (b"\x0b", "a field of a kind that Kubernetes does not use"),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number of more than 64 bits"),
        (b"\xf8\xff\xff\xff\xff\xff\xff\x01\x01", "a field of a number that is too large"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "it ends in the middle of a field"),
    ] {
        assert_eq!(Fields::of(bytes).last(1), Err(Malformed(expected)), "{bytes:02x?}");
        assert!(Decoder::default().decode_protobuf(bytes, KindId::POD).is_err(), "{bytes:02x?}");
    }
    let fields: Vec<_> = Fields::of(b"\x08\x96\x01\x12\x02ab\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0").collect();
    let values = [Value::Number(150), Value::Bytes(b"ab"), Value::Number(1), Value::Number(2)];
    assert_eq!(fields, (1..=4).zip(values).map(Ok).collect::<Vec<_>>());
}

proptest! {
    /// Whatever comes, nothing panics.
    #[test]
    fn bytes_that_were_changed_are_read_or_refused(number in 0..30usize, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>()) {
        thread_local!(static LINES: Vec<String> = lines());
        let (kind, mut protobuf, _) = LINES.with(|lines| {
            let (kind, protobuf, json) = message(&lines[number]);
            (kind, protobuf, json.len())
        });
        prop_assume!(!protobuf.is_empty());
        for (place, byte) in changes {
            let place = place.index(protobuf.len());
            protobuf[place] = byte;
        }
        if number % 3 == 0 {
            protobuf.truncate(cut.index(protobuf.len()));
        }
        if let Ok(Decoded::Pod(words)) = Decoder::default().decode_protobuf(&protobuf, kind) {
            Cluster::default().interner().pod(*words);
        }
    }
}
