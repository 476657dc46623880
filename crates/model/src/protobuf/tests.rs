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

use super::{Fields, Malformed, Value, in_json};
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

/// What Go's `json.Marshal` made of each.
#[test]
fn texts_that_are_not_utf_8_are_what_they_are_in_json() {
    for (bytes, expected) in [
        (&b"a\xff"[..], "a\u{fffd}"),
        (b"\xff\xfeb", "\u{fffd}\u{fffd}b"),
        (b"\xe2\x82a", "\u{fffd}\u{fffd}a"),
        (b"\xe2\x82", "\u{fffd}\u{fffd}"),
        (b"\xf0\x9f\x98", "\u{fffd}\u{fffd}\u{fffd}"),
        (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
        (b"\xc0\xaf", "\u{fffd}\u{fffd}"),
        (b"\xf4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        (b"\x80\xc3\xa9\xc3", "\u{fffd}é\u{fffd}"),
        (b"\xf0\x80\x80A", "\u{fffd}\u{fffd}\u{fffd}A"),
    ] {
        assert_eq!(in_json(bytes), expected, "{bytes:02x?}");
        assert_eq!(Value::Bytes(bytes).text().as_deref(), Ok(expected));
    }
}

/// A message of fields that are short texts or messages.
fn message_of(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let field = |(number, value): &(u8, &[u8])| {
        let length = u8::try_from(value.len()).ok().filter(|length| *length < 0x80).expect("a short text");
        [&[number << 3 | 2, length], *value].concat()
    };
    fields.iter().flat_map(field).collect()
}

#[test]
fn objects_with_such_texts_are_the_same_from_both() {
    let pair = |key: &[u8], value: &[u8]| message_of(&[(1, key), (2, value)]);
    let decoder = Decoder::default().keeping_progress(true);
    let check = |kind: KindId, protobuf: &[u8], json: &str| {
        let from_json = decoder.decode_kind(json, kind).expect("Go wrote it");
        let from_protobuf = decoder.decode_protobuf(protobuf, kind).expect("Go wrote it");
        assert_eq!(words(&from_protobuf), words(&from_json));
    };
    // Of keys that become one, the last counts; both notations have them in the order of their bytes.
    let metadata = [
        message_of(&[(1, b"p"), (3, b"default"), (5, b"u")]),
        message_of(&[
            (12, &pair(b"a\xfe", b"1")),
            (12, &pair(b"a\xff", b"2")),
            (12, &pair(b"b", b"\xe2\x82")),
        ]),
    ];
    let status = message_of(&[(2, &message_of(&[(1, b"PodScheduled"), (2, b"False"), (6, b"no\xff")]))]);
    let spec = message_of(&[(2, &message_of(&[(1, b"c"), (2, b"image\xc0\xaf")])), (10, b"n")]);
    let pod = message_of(&[(1, &metadata.concat()), (2, &spec), (3, &status)]);
    check(
        KindId::POD,
        &pod,
        r#"{"metadata":{"name":"p","namespace":"default","uid":"u","annotations":{"a\ufffd":"1","a\ufffd":"2","b":"\ufffd\ufffd"}},
            "spec":{"containers":[{"name":"c","image":"image\ufffd\ufffd"}],"nodeName":"n"},
            "status":{"conditions":[{"type":"PodScheduled","status":"False","message":"no\ufffd"}]}}"#,
    );
    let metadata = [message_of(&[(1, b"n")]), message_of(&[(11, &pair(b"a", b"\xff"))])].concat();
    let amount = message_of(&[(1, b"x\xff"), (2, &message_of(&[(1, b"5")]))]);
    let status = message_of(&[(1, &amount), (8, &message_of(&[(1, b"image\xff")]))]);
    check(
        KindId::NODE,
        &message_of(&[(1, &metadata), (3, &status)]),
        r#"{"metadata":{"name":"n","labels":{"a":"\ufffd"}},
            "status":{"capacity":{"x\ufffd":"5"},"images":[{"names":["image\ufffd"]}]}}"#,
    );
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
