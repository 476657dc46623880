//! Watches of a server that does all the things that servers do.

mod chaos;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use supercargo_engine::Everything;
use supercargo_model::kinds::Namespace;
use supercargo_model::{Decoded, Decoder, Kind, ReadableKind};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{PODS, PODS_NOT_FINISHED, WatchEvent, WatchRequest, Watched, watch};
use crate::client::ApiServer;
use crate::fake::{Answer, Asked, Fake, Writer};

const END: &str = r#""annotations":{"k8s.io/initial-events-end":"true"},"#;

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
        let (streams, writers) = mpsc::unbounded_channel();
        let fake = Fake::numbered(move |number, asked| {
            script(number, asked).unwrap_or_else(|| {
                let (writer, answer) = Answer::streamed();
                let _ = streams.send(writer);
                answer
            })
        });
        let decoder = Arc::new(Decoder::new([ReadableKind::of::<Namespace>()], false));
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(watch(ApiServer::new(fake.client(), None), request, decoder, 1, sender));
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
            Watched::Listed(None) => "listed".to_owned(),
            Watched::Listed(Some(Everything::Objects(_, keys))) => {
                let names: Vec<_> = keys.iter().map(|key| &*key.name).collect();
                format!("listed {names:?}")
            }
            Watched::Listed(Some(Everything::Pods(uids) | Everything::Nodes(uids))) => {
                format!("listed {uids:?}")
            }
            Watched::Stalled { reason } => format!("stalled: {reason}"),
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
        r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
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
    trial.check(&["put c"]).await;
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
            4 if asked.query.contains("limit") => Some(page(&["b"], 20, "")),
            _ => None,
        });
        trial.check(&["began", "put a", "put b", "put c", "listed"]).await;
        // The server has forgotten, and streams are not tried again.
        trial.check(&["began", "put b", r#"listed ["b"]"#]).await;
        trial.stream().await;
        let first_page = "GET /api/v1/namespaces?limit=500";
        let second_page = "GET /api/v1/namespaces?limit=500&continue=next%2Fpage";
        assert_eq!(trial.asked(), [STREAMED, first_page, second_page, &resumed(9), first_page, &resumed(20)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_how_to_end_a_list_is_asked_for_pages() {
    let mut trial = Trial::new(|number, asked| {
        (number > 0 && asked.query.contains("limit")).then(|| page(&["a"], 9, ""))
    });
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(3, "")]);
    trial.check(&["began", "put a", "began", "put a", r#"listed ["a"]"#]).await;
    assert_eq!(trial.asked()[..2], [STREAMED, "GET /api/v1/namespaces?limit=500"]);
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

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_empty_until_it_is() {
    let is_served = Arc::new(AtomicBool::new(false));
    let served = is_served.clone();
    let started = Instant::now();
    let mut trial = Trial::new(move |_, _| {
        (!served.load(Ordering::SeqCst)).then(|| Answer::plain(404, "404 page not found"))
    });
    trial.check(&["began", "listed"]).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(150)).await;
    assert_eq!(trial.asked().len(), 3);
    is_served.store(true, Ordering::SeqCst);
    let writer = trial.stream().await;
    assert_eq!(started.elapsed().as_secs(), 180);
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
    trial.check(&["began", "put a", r#"listed ["a"]"#]).await;
    // Its definition is removed, and the objects with it.
    is_served.store(false, Ordering::SeqCst);
    write(&writer, [event("DELETED", "a", 8)]);
    drop(writer);
    trial.check(&["removed a", "began", "listed []"]).await;
}

#[tokio::test(start_paused = true)]
async fn who_may_not_watch_is_told_what_to_grant_and_tries_again() {
    let resources = r#"{"resources":[{"name":"namespaces"},{"name":"namespaces/status"}]}"#;
    let mut trial = Trial::new(move |number, asked| match number {
        _ if asked.path == "/api/v1" => Some(Answer::ok(resources)),
        0 | 2 => Some(Answer::status(403, "namespaces is forbidden: User \"x\" cannot watch")),
        _ => None,
    });
    let told = trial.told().await;
    assert!(told.contains("User \"x\" cannot watch"), "{told}");
    assert!(
        told.contains(r#"{apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"]}"#),
        "{told}"
    );
    let writer = trial.stream().await;
    write(&writer, [bookmark(7, END)]);
    trial.check(&["began", "listed"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_neither_exists_nor_may_be_watched_does_not_exist() {
    let mut trial = Trial::new(move |_, asked| match &*asked.path {
        "/api/v1" => Some(Answer::ok(r#"{"resources":[{"name":"pods"}]}"#)),
        _ => Some(Answer::status(403, "forbidden")),
    });
    trial.check(&["began", "listed"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_left_out() {
    let mut trial = Trial::new(|_, _| None);
    let writer = trial.stream().await;
    let odd = Bytes::from_static(
        b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":5,\"resourceVersion\":\"9\"}}}\n",
    );
    write(&writer, [event("ADDED", "a", 1), odd.clone(), bookmark(7, END), odd]);
    drop(writer);
    trial.check(&["began", "put a", "listed"]).await;
    trial.stream().await;
    assert_eq!(trial.asked(), [STREAMED, &resumed(9)]);
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
    let writer = trial.stream().await;
    write(&writer, [bookmark(3, END)]);
    trial.check(&["began", "listed []"]).await;
    assert_eq!(trial.asked()[6], STREAMED);
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
