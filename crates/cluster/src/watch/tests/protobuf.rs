//! Pods are watched in protobuf where the server writes it.

use super::*;

const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// A message of fields that are texts or messages.
fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let field = |(number, value): &(u8, &[u8])| {
        let mut bytes = vec![number << 3 | 2];
        let mut length = value.len();
        while length >= 0x80 {
            bytes.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        [&*bytes, value].concat()
    };
    fields.iter().flat_map(field).collect()
}

/// An event as servers write it, with its length before it.
fn frame(kind: &str, object: &[u8]) -> Bytes {
    let object_kind = message(&[(1, b"v1"), (2, b"Pod")]);
    let unknown = message(&[(1, &object_kind), (2, object)]);
    let extension = message(&[(1, &[b"k8s\0", &*unknown].concat())]);
    let event = message(&[(1, kind.as_bytes()), (2, &extension)]);
    let length = u32::try_from(event.len()).expect("short").to_be_bytes();
    [&length, &*event].concat().into()
}

fn metadata(name: &str, version: u32, more: &[u8]) -> Vec<u8> {
    let (uid, version) = (format!("uid-{name}"), version.to_string());
    let metadata = message(&[(1, name.as_bytes()), (5, uid.as_bytes()), (6, version.as_bytes())]);
    message(&[(1, &[&*metadata, more].concat())])
}

fn event(kind: &str, name: &str, version: u32) -> Bytes {
    frame(kind, &metadata(name, version, b""))
}

fn bookmark(version: u32, ends_list: bool) -> Bytes {
    let end = message(&[(12, &message(&[(1, b"k8s.io/initial-events-end"), (2, b"true")]))]);
    frame("BOOKMARK", &metadata("", version, if ends_list { &end } else { b"" }))
}

/// A `Status` with the code 410.
fn gone() -> Bytes {
    let status = [message(&[(2, b"Failure"), (3, b"too old resource version")]), vec![6 << 3, 0x9a, 0x03]];
    frame("ERROR", &status.concat())
}

fn trial() -> Trial {
    let request = WatchRequest { kind: PODS, field_selector: None, is_known: false };
    Trial::answering(Some(CONTENT_TYPE), request, |_, _| None)
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_for_pods_and_its_events_are_told() {
    let mut trial = trial();
    let writer = trial.stream().await;
    let accept = trial.fake.requests()[0].header("accept");
    assert_eq!(accept, "application/vnd.kubernetes.protobuf;stream=watch, application/json");
    write(&writer, [event("ADDED", "a", 1), event("ADDED", "b", 2), bookmark(7, true)]);
    trial.check(&["began", "put a", "put b", "listed"]).await;
    write(&writer, [event("MODIFIED", "a", 8), event("DELETED", "b", 9), bookmark(12, false)]);
    trial.check(&["put a", "removed b"]).await;
    drop(writer);
    let writer = trial.stream().await;
    assert_eq!(trial.asked()[1], resumed(12).replace("namespaces", "pods"));
    write(&writer, [event("ADDED", "c", 13), gone()]);
    trial.check(&["put c"]).await;
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "c", 13), bookmark(20, true)]);
    trial.check(&["began", "put c", r#"listed {"uid-c"}"#]).await;
    assert_eq!(trial.asked()[2], STREAMED.replace("namespaces", "pods"));
}

/// A pod whose specification is no message.
fn odd(kind: &str, name: &str, version: u32) -> Bytes {
    frame(kind, &[metadata(name, version, b""), message(&[(2, b"\xff")])].concat())
}

/// A pod of which nobody can say which one it is.
fn nameless(kind: &str) -> Bytes {
    frame(kind, &message(&[(1, b"\xff")]))
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_read_stays_as_it_was_known_until_it_goes() {
    let mut trial = trial();
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), event("ADDED", "b", 2), odd("ADDED", "new", 3)]);
    write(&writer, [bookmark(7, true), odd("MODIFIED", "a", 8), odd("MODIFIED", "b", 9)]);
    trial.check(&["began", "put a", "put b", "unreadable", "listed", "unreadable", "unreadable"]).await;
    // Nothing is told twice because of them.
    drop(writer);
    let writer = trial.stream().await;
    assert_eq!(trial.asked()[1], resumed(9).replace("namespaces", "pods"));
    // Their names are in the list; that of one which goes meanwhile is not.
    write(&writer, [gone()]);
    let writer = trial.stream().await;
    write(&writer, [odd("ADDED", "a", 8), odd("ADDED", "b", 9), odd("ADDED", "new", 3)]);
    write(&writer, [odd("DELETED", "new", 11), bookmark(12, true)]);
    trial.check(&["began", "unreadable", "unreadable", "unreadable", "removed new"]).await;
    trial.check(&[r#"listed {"uid-a", "uid-b"}"#]).await;
    write(&writer, [odd("DELETED", "a", 13), event("MODIFIED", "b", 14)]);
    trial.check(&["removed a", "put b"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_pod_that_nobody_knows_says_of_none_that_it_is_gone() {
    let mut trial = trial();
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, true), nameless("MODIFIED"), nameless("DELETED")]);
    trial.check(&["began", "put a", "listed", "unreadable", "unreadable"]).await;
    write(&writer, [gone()]);
    let writer = trial.stream().await;
    write(&writer, [nameless("ADDED"), event("ADDED", "b", 8), bookmark(12, true), gone()]);
    trial.check(&["began", "unreadable", "put b", "listed"]).await;
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "b", 8), nameless("DELETED"), bookmark(20, true)]);
    trial.check(&["began", "put b", "unreadable", r#"listed {"uid-b"}"#]).await;
}

#[tokio::test(start_paused = true)]
async fn texts_that_are_not_utf_8_hide_no_pod() {
    let mut trial = trial();
    let writer = trial.stream().await;
    let annotation = message(&[(12, &message(&[(1, b"key"), (2, b"a\xff")]))]);
    let pod = |kind: &str, version: u32| frame(kind, &metadata("a", version, &annotation));
    write(&writer, [pod("ADDED", 1), bookmark(7, true), pod("MODIFIED", 8), pod("DELETED", 9)]);
    trial.check(&["began", "put a", "listed", "put a", "removed a"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_protobuf_is_told_in_its_words() {
    let status = [
        message(&[(2, b"Failure"), (3, b"pods is forbidden: User \"x\" cannot watch"), (4, b"Forbidden")]),
        vec![6 << 3, 0x93, 0x03],
    ];
    let kind = message(&[(1, b"v1"), (2, b"Status")]);
    let body = [b"k8s\0", &*message(&[(1, &kind), (2, &status.concat())])].concat();
    let request = WatchRequest { kind: PODS, field_selector: None, is_known: false };
    let mut trial = Trial::answering(Some(CONTENT_TYPE), request, move |number, _| {
        (number == 0).then(|| Answer::bytes(403, &body))
    });
    let rule = r#"{apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"]}"#;
    let expected = format!("pods is forbidden: User \"x\" cannot watch; grant the scheduler the rule {rule}");
    trial.check(&[&format!("stalled: {expected}")]).await;
    let writer = trial.stream().await;
    // A message that a terminal would obey.
    write(&writer, [frame("ERROR", &message(&[(3, b"\x1b[2Jno\xff\n")]))]);
    trial.check(&["stalled: the server ended the watch: 0 \\u001b[2Jno\u{fffd}\\n"]).await;
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_read_from_json_are_asked_for_in_json() {
    let mut trial = Trial::new(|_, _| None);
    trial.stream().await;
    assert!(!trial.fake.requests()[0].header("accept").contains("protobuf"));
}
