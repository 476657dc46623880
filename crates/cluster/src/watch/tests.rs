//! Watches of a server that does all the things that servers do.

mod chaos;
mod protobuf;
mod serving;
mod silence;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use supercargo_model::kinds::Namespace;
use supercargo_model::{Decoded, Decoder, Everything, Kind, ReadableKind};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{PODS, PODS_NOT_FINISHED, WatchEvent, WatchRequest, Watched, watch};
use supercargo_client::ApiServer;
use supercargo_client::fake::{Answer, Asked, Fake, Writer};

const END: &str = r#""annotations":{"k8s.io/initial-events-end":"true"},"#;

/// What a list says that it is.
const LIST: &str = r#""kind":"NamespaceList","apiVersion":"v1""#;

/// How long a test waits for what should come; virtual time, so no test takes that long.
const PATIENCE: Duration = Duration::from_secs(3600);

struct Trial {
    fake: Fake,
    receiver: mpsc::Receiver<WatchEvent>,
    writers: mpsc::UnboundedReceiver<Writer>,
}

impl Trial {
    /// Watches namespaces. The server answers what `script` says to the numbered requests, and `None` stands for a stream that
    /// the test writes.
    fn new(script: impl Fn(usize, &Asked) -> Option<Answer> + Send + Sync + 'static) -> Self {
        Trial::of(WatchRequest { kind: Namespace::ID, field_selector: None, is_known: false }, script)
    }

    fn of(
        request: WatchRequest,
        script: impl Fn(usize, &Asked) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        Trial::answering(None, request, script)
    }

    /// The same; streams are of this type.
    fn answering(
        content_type: Option<&'static str>,
        request: WatchRequest,
        script: impl Fn(usize, &Asked) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let (streams, writers) = mpsc::unbounded_channel();
        let fake = Fake::numbered(move |number, asked| {
            script(number, asked).unwrap_or_else(|| {
                let (writer, answer) = Answer::streamed();
                let _ = streams.send(writer);
                match content_type {
                    None => answer,
                    Some(content_type) => answer.with_header("content-type", content_type),
                }
            })
        });
        let decoder = Arc::new(Decoder::new([ReadableKind::of::<Namespace>()], false));
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(watch(ApiServer::new(fake.service(), None), request, decoder, 1, sender));
        Trial { fake, receiver, writers }
    }

    /// The next stream that the server writes.
    async fn stream(&mut self) -> Writer {
        timeout(PATIENCE, self.writers.recv())
            .await
            .expect("a stream is asked for")
            .expect("the server is there")
    }

    /// What is told next, in short.
    async fn told(&mut self) -> String {
        let event = timeout(PATIENCE, self.receiver.recv()).await.expect("something is told");
        match event.expect("the watch goes on").watched {
            Watched::Began => "began".to_owned(),
            Watched::Put(object) => format!("put {}", name(&object)),
            Watched::Removed(object) => format!("removed {}", name(&object)),
            Watched::Unreadable => "unreadable".to_owned(),
            Watched::Listed(None) => "listed".to_owned(),
            Watched::Listed(Some(Everything::Objects(_, keys))) => {
                let names: Vec<_> = keys.iter().map(|key| &*key.name).collect();
                format!("listed {names:?}")
            }
            Watched::Listed(Some(Everything::Pods(uids) | Everything::Nodes(uids))) => {
                format!("listed {uids:?}")
            }
            Watched::Unserved => "unserved".to_owned(),
            Watched::Served => "served".to_owned(),
            Watched::Stalled { reason } => format!("stalled: {reason}"),
            Watched::Resumed => "resumed".to_owned(),
        }
    }

    async fn check(&mut self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.told().await, *expected);
        }
    }

    /// What was asked, without what chance decides.
    fn asked(&self) -> Vec<String> {
        let line = |asked: &Asked| {
            let line = asked.line();
            let (before, after) = line.split_once("&timeoutSeconds=").unwrap_or((&line, ""));
            format!("{before}{}", after.trim_start_matches(|letter: char| letter.is_ascii_digit()))
        };
        self.fake.requests().iter().map(line).collect()
    }
}

fn name(object: &Decoded) -> String {
    match object {
        Decoded::Pod(pod) => pod.metadata().name.clone(),
        Decoded::Node(node) => node.metadata().name.clone(),
        Decoded::Object(object) => object.key.name.to_string(),
        Decoded::Unread { .. } => "unread".to_owned(),
    }
}

fn object(name: &str, version: u32) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","uid":"uid-{name}","resourceVersion":"{version}"}}}}"#)
}

fn event(kind: &str, name: &str, version: u32) -> Bytes {
    format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", object(name, version)).into()
}

fn bookmark(version: u32, annotations: &str) -> Bytes {
    format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{{annotations}\"resourceVersion\":\"{version}\"}}}}}}\n").into()
}

fn gone() -> Bytes {
    let status = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}"#;
    format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").into()
}

fn page(names: &[&str], version: u32, next: &str) -> Answer {
    let items: Vec<String> = names.iter().map(|name| object(name, 1)).collect();
    let items = items.join(",");
    Answer::ok(&format!(
        r#"{{{LIST},"metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
    ))
}

fn write(writer: &Writer, lines: impl IntoIterator<Item = Bytes>) {
    for line in lines {
        let _ = writer.send(Ok(line));
    }
}

const STREAMED: &str = "GET /api/v1/namespaces?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

fn resumed(version: u32) -> String {
    format!("GET /api/v1/namespaces?watch=1&allowWatchBookmarks=true&resourceVersion={version}")
}

#[tokio::test(start_paused = true)]
async fn a_stream_lists_and_then_follows() {
    let mut trial = Trial::new(|_, _| None);
    let writer = trial.stream().await;
    write(
        &writer,
        [event("ADDED", "a", 1), event("ADDED", "b", 2), event("MODIFIED", "a", 5), bookmark(7, END)],
    );
    trial.check(&["began", "put a", "put b", "put a", "listed"]).await;
    write(&writer, [event("ADDED", "c", 8), event("MODIFIED", "a", 9), event("DELETED", "b", 10)]);
    trial.check(&["put c", "put a", "removed b"]).await;
    assert_eq!(trial.asked(), [STREAMED]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_is_taken_up_where_it_was() {
    let mut trial = Trial::new(|_, _| None);
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END), event("ADDED", "b", 8)]);
    // Half a line is no event.
    write(&writer, [event("ADDED", "c", 9).slice(..40)]);
    let _ = writer.send(Err(std::io::ErrorKind::ConnectionReset.into()));
    trial.check(&["began", "put a", "listed", "put b"]).await;
    assert!(trial.told().await.starts_with("stalled"));
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "c", 9), bookmark(20, "")]);
    drop(writer);
    trial.check(&["put c", "resumed"]).await;
    // The server ended it in good order: no reason to wait, and a bookmark counts.
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "d", 21)]);
    trial.check(&["put d"]).await;
    assert_eq!(trial.asked(), [STREAMED, &resumed(8), &resumed(20)]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_begins_anew_and_tells_what_vanished() {
    let mut trial = Trial::new(|_, _| None);
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), event("ADDED", "b", 2)]);
    drop(writer);
    trial.check(&["began", "put a", "put b"]).await;
    assert_eq!(trial.told().await, "stalled: the server broke off in the middle of a list");
    let writer = trial.stream().await;
    write(
        &writer,
        [event("ADDED", "a", 1), event("ADDED", "c", 3), event("DELETED", "c", 4), bookmark(7, END)],
    );
    trial.check(&["began", "put a", "put c", "removed c", r#"listed ["a"]"#]).await;
    assert_eq!(trial.asked(), [STREAMED, STREAMED]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_streams_no_lists_is_asked_for_pages() {
    for code in [400, 422] {
        let mut trial = Trial::new(move |number, asked| match number {
            0 => Some(Answer::status(code, "sendInitialEvents is forbidden")),
            1 => Some(page(&["a", "b"], 0, "next/page")),
            2 => Some(page(&["c"], 9, "")),
            3 => Some(Answer::status(410, "too old")),
            4 => Some(Answer::status(code, "sendInitialEvents is forbidden")),
            5 if asked.query.contains("limit") => Some(page(&["b"], 20, "")),
            _ => None,
        });
        trial.check(&["began", "put a", "put b", "put c", "listed"]).await;
        // The server has forgotten. A stream is tried for each list: the server may be another one by now.
        trial.check(&["began", "put b", r#"listed ["b"]"#]).await;
        trial.stream().await;
        let first_page = "GET /api/v1/namespaces?limit=500";
        let second_page = "GET /api/v1/namespaces?limit=500&continue=next%2Fpage";
        assert_eq!(
            trial.asked(),
            [STREAMED, first_page, second_page, &resumed(9), STREAMED, first_page, &resumed(20)]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_falls_silent_is_read_in_pages_but_the_next_one_is_not() {
    let mut trial = Trial::new(|number, asked| match number {
        1 => {
            assert_eq!(asked.line(), "GET /api/v1/namespaces?limit=500");
            Some(page(&["a"], 9, ""))
        }
        2 => Some(Answer::status(410, "too old")),
        _ => None,
    });
    let started = Instant::now();
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(3, "")]);
    trial.check(&["began", "put a", "began", "put a", r#"listed ["a"]"#]).await;
    assert_eq!(started.elapsed().as_secs(), 30);
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(20, END)]);
    trial.check(&["began", "put a", r#"listed ["a"]"#]).await;
    assert_eq!(trial.asked()[2..], [resumed(9), STREAMED.to_owned()]);
}

/// What is not in a list is gone, so whatever else comes with 200 is none.
#[tokio::test(start_paused = true)]
async fn what_is_no_list_empties_nothing() {
    let metadata = r#""metadata":{"resourceVersion":"9"}"#;
    for (body, reason) in [
        (r#"{"metadata":{}}"#.to_owned(), "missing field"),
        (
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"items":[]}"#.to_owned(),
            "a list of v1 Namespace is expected",
        ),
        (
            format!(r#"{{"kind":"NodeList","apiVersion":"v1",{metadata},"items":[]}}"#),
            "this is \"v1\" \"NodeList\"",
        ),
        (format!(r#"{{{LIST},{metadata}}}"#), "missing field `items`"),
        (format!(r#"{{{LIST},"metadata":{{}},"items":null}}"#), "no resourceVersion to go on from"),
    ] {
        let mut trial = Trial::new(move |number, asked| match number {
            1 => Some(Answer::status(410, "too old")),
            _ if asked.query.contains("sendInitialEvents") && number > 1 => {
                Some(Answer::status(422, "no streams"))
            }
            3 => Some(Answer::ok(&body)),
            4 => Some(page(&["a"], 20, "")),
            _ => None,
        });
        let writer = trial.stream().await;
        write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
        drop(writer);
        trial.check(&["began", "put a", "listed"]).await;
        let told = trial.told().await;
        assert!(told.starts_with("stalled: unreadable list: ") && told.contains(reason), "{told}");
        trial.check(&["began", "put a", r#"listed ["a"]"#]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_no_api_server_writes_ends_a_watch() {
    let mut trial = Trial::new(|_, _| None);
    let no_place =
        format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{{}}}}}}}\n", END.trim_end_matches(','));
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), no_place.into()]);
    trial.check(&["began", "put a"]).await;
    let told = trial.told().await;
    assert!(told.ends_with("a list ends without a resourceVersion to go on from"), "{told}");
    let writer = trial.stream().await;
    let other =
        r#"{"type":"DELETED","object":{"kind":"Node","metadata":{"name":"a","resourceVersion":"8"}}}"#;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END), format!("{other}\n").into()]);
    trial.check(&["began", "put a", r#"listed ["a"]"#]).await;
    let told = trial.told().await;
    assert!(told.ends_with("it is about an object of another kind"), "{told}");
    trial.stream().await;
    assert_eq!(trial.asked(), [STREAMED, STREAMED, &resumed(7)]);
}

#[tokio::test(start_paused = true)]
async fn pages_that_become_too_old_are_replaced_by_a_whole_list() {
    let mut trial = Trial::new(|number, _| match number {
        0 => Some(Answer::status(422, "sendInitialEvents is forbidden")),
        1 => Some(page(&["a", "b"], 5, "next")),
        2 => Some(Answer::status(410, "the continue parameter is too old")),
        3 => Some(page(&["b", "c"], 9, "")),
        _ => None,
    });
    let started = Instant::now();
    trial.check(&["began", "put a", "put b", "began", "put b", "put c", r#"listed ["b", "c"]"#]).await;
    assert_eq!(started.elapsed(), Duration::ZERO, "nothing has failed that a wait would mend");
    trial.stream().await;
    let first_page = "GET /api/v1/namespaces?limit=500";
    let second_page = "GET /api/v1/namespaces?limit=500&continue=next";
    let whole = "GET /api/v1/namespaces";
    assert_eq!(trial.asked(), [STREAMED, first_page, second_page, whole, &resumed(9)]);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_forgotten_is_listed_again() {
    let mut trial = Trial::new(|number, _| (number == 2).then(|| Answer::status(410, "too old")));
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END), gone()]);
    trial.check(&["began", "put a", "listed"]).await;
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "b", 9), bookmark(11, END)]);
    drop(writer);
    trial.check(&["began", "put b", r#"listed ["b"]"#]).await;
    let writer = trial.stream().await;
    write(&writer, [bookmark(15, END)]);
    trial.check(&["began", "listed []"]).await;
    assert_eq!(trial.asked(), [STREAMED, STREAMED, &resumed(11), STREAMED]);
}

/// A server without bookmarks, which ends watches when it was asked to.
fn quiet_server(number: usize, asked: &Asked) -> Option<Answer> {
    let (writer, answer) = Answer::streamed();
    if number == 0 {
        write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
    }
    let parameter = asked.query.split('&').find_map(|pair| pair.strip_prefix("timeoutSeconds="));
    let seconds = parameter.and_then(|seconds| seconds.parse().ok()).expect("a time-out");
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        drop(writer);
    });
    Some(answer)
}

#[tokio::test(start_paused = true)]
async fn an_idle_kind_without_bookmarks_goes_on_from_its_revision() {
    let mut trial = Trial::new(quiet_server);
    trial.check(&["began", "put a", "listed"]).await;
    let told = timeout(Duration::from_secs(3600), trial.receiver.recv()).await;
    assert!(told.is_err(), "{told:?}");
    let asked = trial.asked();
    assert_eq!(asked[0], STREAMED);
    assert!(asked[1..].iter().all(|line| *line == resumed(7)), "{asked:?}");
    let per_hour = asked.len();
    assert!((90..=121).contains(&per_hour), "{per_hour} requests");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_patience_gets_it() {
    let mut trial = Trial::new(|number, _| match number {
        0 => Some(Answer::status(429, "too many requests").with_header("retry-after", "17")),
        _ => None,
    });
    let started = Instant::now();
    trial.check(&["stalled: too many requests"]).await;
    trial.stream().await;
    assert_eq!(started.elapsed().as_secs(), 17);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_stays_as_it_was_known() {
    let odd = |name: &str| format!(r#"{{"metadata":{{"name":{name},"labels":5,"resourceVersion":"9"}}}}"#);
    let told =
        |kind: &str, name: &str| Bytes::from(format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", odd(name)));
    let pages = [odd(r#""a""#), object("c", 12), odd("5")];
    let mut trial = Trial::new(move |number, _| {
        let items = &pages[..if number < 4 { 2 } else { 3 }].join(",");
        let list = format!(r#"{{{LIST},"metadata":{{"resourceVersion":"20"}},"items":[{items}]}}"#);
        match number {
            2 | 5 => Some(Answer::status(422, "no streams")),
            3 | 6 => Some(Answer::ok(&list)),
            _ => None,
        }
    });
    let writer = trial.stream().await;
    write(
        &writer,
        [event("ADDED", "a", 1), told("ADDED", "5"), bookmark(7, END), told("MODIFIED", r#""a""#)],
    );
    drop(writer);
    trial.check(&["began", "put a", "unreadable", "listed", "unreadable"]).await;
    let writer = trial.stream().await;
    write(&writer, [gone()]);
    trial.check(&["began", "unreadable", "put c", r#"listed ["a", "c"]"#]).await;
    let writer = trial.stream().await;
    // What is not known may be any.
    write(&writer, [told("DELETED", r#""a""#), gone()]);
    trial.check(&["removed a", "began", "unreadable", "put c", "unreadable", "listed"]).await;
    trial.stream().await;
    assert_eq!(trial.asked()[1], resumed(9));
}

#[tokio::test(start_paused = true)]
async fn a_place_that_the_server_refuses_again_and_again_is_given_up() {
    let mut trial = Trial::new(|number, _| {
        (1..=5).contains(&number).then(|| Answer::status(504, "Too large resource version: 7, current: 3"))
    });
    let writer = trial.stream().await;
    write(&writer, [bookmark(7, END)]);
    drop(writer);
    trial.check(&["began", "listed", "stalled: Too large resource version: 7, current: 3"]).await;
    // The same is not told again and again.
    let writer = trial.stream().await;
    write(&writer, [bookmark(3, END)]);
    trial.check(&["began", "listed []"]).await;
    assert_eq!(trial.asked()[6], STREAMED);
}

#[tokio::test(start_paused = true)]
async fn why_a_watch_is_stalled_is_told_anew_when_the_reason_is_another_one() {
    let mut trial = Trial::new(|number, _| match number {
        0 | 1 => Some(Answer::status(500, "not now")),
        2 | 3 => Some(Answer::status(401, "Unauthorized")),
        _ => None,
    });
    trial.check(&["stalled: not now", "stalled: Unauthorized"]).await;
    let writer = trial.stream().await;
    write(&writer, [bookmark(3, END)]);
    trial.check(&["began", "listed"]).await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_not_repeated_in_a_hurry() {
    let trial = Trial::new(|_, _| Some(Answer::status(500, "no")));
    tokio::time::sleep(Duration::from_secs(300)).await;
    let count = trial.asked().len();
    assert!((10..30).contains(&count), "{count} requests");

    // A server that gives no answer may be back any moment.
    let trial = Trial::new(|_, _| {
        let (writer, answer) = Answer::streamed();
        let _ = writer.send(Err(std::io::ErrorKind::ConnectionReset.into()));
        Some(answer)
    });
    drop(trial.writers);
    let mut receiver = trial.receiver;
    tokio::spawn(async move { while receiver.recv().await.is_some() {} });
    tokio::time::sleep(Duration::from_secs(300)).await;
    let count = trial.fake.requests().len();
    assert!((100..160).contains(&count), "{count} requests");
}

#[tokio::test(start_paused = true)]
async fn pods_are_those_that_still_run() {
    let request = WatchRequest { kind: PODS, field_selector: Some(PODS_NOT_FINISHED), is_known: false };
    let mut trial = Trial::of(request, |_, _| None);
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END), gone()]);
    trial.check(&["began", "put a", "listed"]).await;
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
    trial.check(&["began", "put a", r#"listed {"uid-a"}"#]).await;
    let asked = trial.asked();
    assert!(
        asked[0].ends_with("&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"),
        "{asked:?}"
    );
}
