//! A server that breaks off anywhere, forgets, and refuses: whatever it does, a watch ends up knowing what there is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;

use super::*;
use crate::backoff::Chance;

/// How many requests are answered badly, before the server comes to its senses.
const BAD_REQUESTS: usize = 60;

/// What is there: names and versions.
type State = BTreeMap<String, u32>;

struct Chaos {
    chance: Chance,
    version: u32,
    /// What happened: the version, the kind of event, and the name.
    log: Vec<(u32, &'static str, String)>,
    state: State,
    /// What happened up to here is forgotten.
    forgotten: u32,
    streams_lists: bool,
}

impl Chaos {
    fn happens(&mut self, probability: f64) -> bool {
        self.chance.fraction() < probability
    }

    fn below(&mut self, count: usize) -> usize {
        ((self.chance.fraction() * count as f64) as usize).min(count.saturating_sub(1))
    }

    fn change(&mut self) {
        self.version += 1;
        let name = format!("n{}", self.below(12));
        let kind = match self.state.contains_key(&name) {
            true if self.happens(0.4) => "DELETED",
            true => "MODIFIED",
            false => "ADDED",
        };
        match kind {
            "DELETED" => self.state.remove(&name),
            _ => self.state.insert(name.clone(), self.version),
        };
        self.log.push((self.version, kind, name));
    }

    fn changes_since(&self, version: u32) -> String {
        let lines = self.log.iter().filter(|(at, ..)| *at > version);
        lines.map(|(at, kind, name)| text(&event(kind, name, *at))).collect()
    }

    fn answer(&mut self, asked: &Asked, is_bad: bool) -> Option<Answer> {
        if is_bad {
            for _ in 0..self.below(6) {
                self.change();
            }
            if self.happens(0.1) {
                self.forgotten = self.version;
            }
            if self.happens(0.1) {
                return Some(Answer::status(if self.happens(0.5) { 500 } else { 429 }, "not now"));
            }
        }
        let parameter =
            |name: &str| asked.query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let is_watch = parameter("watch").is_some();
        if !is_watch {
            return Some(self.page(parameter("continue"), is_bad));
        }
        let mut lines = String::new();
        if parameter("sendInitialEvents").is_some() {
            if !self.streams_lists {
                return Some(Answer::status(422, "no streams"));
            }
            for (name, version) in &self.state {
                lines.push_str(&text(&event("ADDED", name, *version)));
            }
            // Some things happen before the list is complete, and some after.
            let listed = self.version;
            if is_bad {
                self.change();
            }
            lines.push_str(&self.changes_since(listed));
            lines.push_str(&text(&bookmark(self.version, END)));
        } else {
            let from =
                parameter("resourceVersion").and_then(|version| version.parse().ok()).expect("a version");
            if from < self.forgotten {
                let by_status = self.happens(0.5);
                return Some(if by_status {
                    Answer::status(410, "gone")
                } else {
                    Answer::ok(&text(&gone()))
                });
            }
            lines.push_str(&self.changes_since(from));
        }
        if !is_bad {
            return self.stay(&lines);
        }
        let before = self.version;
        self.change();
        lines.push_str(&self.changes_since(before));
        if self.happens(0.3) {
            let _ = write!(lines, "{}", text(&bookmark(self.version, "")));
        }
        if self.happens(0.3) {
            lines.push_str("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":[]}}}\n");
        }
        // It breaks off anywhere, with or without an error.
        let end = if self.happens(0.6) { self.below(lines.len() + 1) } else { lines.len() };
        let (writer, answer) = Answer::streamed();
        let size = 1 + self.below(200);
        for piece in lines.as_bytes()[..end].chunks(size) {
            let _ = writer.send(Ok(Bytes::copy_from_slice(piece)));
        }
        if self.happens(0.5) {
            let _ = writer.send(Err(std::io::ErrorKind::ConnectionReset.into()));
        }
        Some(answer)
    }

    /// A stream that does not end.
    fn stay(&mut self, lines: &str) -> Option<Answer> {
        let (writer, answer) = Answer::streamed();
        let _ = writer.send(Ok(Bytes::copy_from_slice(lines.as_bytes())));
        tokio::spawn(async move { writer.closed().await });
        Some(answer)
    }

    /// Pages of a list are of one moment; the token says which, and how many came before.
    fn page(&mut self, token: Option<&str>, is_bad: bool) -> Answer {
        let (version, skip) = match token.and_then(|token| token.split_once('-')) {
            Some((version, skip)) => (version.parse().expect("a version"), skip.parse().expect("a number")),
            None => (self.version, 0),
        };
        if version < self.forgotten || (is_bad && self.happens(0.1)) {
            return Answer::status(410, "the continue parameter is too old");
        }
        let mut then = State::new();
        for (at, kind, name) in self.log.iter().filter(|(at, ..)| *at <= version) {
            match *kind {
                "DELETED" => then.remove(name),
                _ => then.insert(name.clone(), *at),
            };
        }
        let items: Vec<String> =
            then.iter().skip(skip).take(3).map(|(name, version)| object(name, *version)).collect();
        let next = if skip + 3 < then.len() { format!("{version}-{}", skip + 3) } else { String::new() };
        let items = items.join(",");
        Answer::ok(&format!(
            r#"{{"kind":"NamespaceList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
        ))
    }
}

fn text(line: &Bytes) -> String {
    String::from_utf8(line.to_vec()).expect("lines are text")
}

/// What somebody who listens to a watch knows.
#[derive(Default)]
struct Listener {
    known: State,
    lists: usize,
    is_listing: bool,
}

impl Listener {
    fn hear(&mut self, watched: Watched) {
        match watched {
            Watched::Began => self.is_listing = true,
            Watched::Put(object) => {
                let (name, version) = (name(&object), version(&object));
                let before = self.known.insert(name.clone(), version);
                // A list repeats what there is; after it nothing comes twice, and nothing goes back.
                assert!(
                    self.is_listing || before.is_none_or(|before| before < version),
                    "{name}: {before:?}, {version}"
                );
            }
            Watched::Removed(object) => {
                let known = self.known.remove(&name(&object));
                assert!(self.is_listing || known.is_some(), "{} went twice", name(&object));
            }
            Watched::Listed(everything) => {
                if let Some(Everything::Objects(_, keys)) = everything {
                    self.known.retain(|name, _| keys.iter().any(|key| *key.name == **name));
                }
                self.is_listing = false;
                self.lists += 1;
            }
            Watched::Unserved | Watched::Served => panic!("nothing says that the kind is not served"),
            Watched::Stalled { .. } | Watched::Resumed | Watched::Unreadable => {}
        }
    }
}

fn version(object: &Decoded) -> u32 {
    let Decoded::Object(object) = object else { panic!("{object:?} is no namespace") };
    let namespace = object.get::<Namespace>().expect("namespaces are watched");
    namespace.metadata.resource_version.parse().expect("versions are numbers")
}

/// How many lists it took, after which what is known is what there is.
async fn survive(seed: u64, streams_lists: bool) -> usize {
    let chaos = Arc::new(Mutex::new(Chaos {
        chance: Chance::new(seed),
        version: 1,
        log: Vec::new(),
        state: State::new(),
        forgotten: 0,
        streams_lists,
    }));
    let server = chaos.clone();
    let mut trial = Trial::new(move |number, asked| {
        server.lock().expect("no test panics here").answer(asked, number < BAD_REQUESTS)
    });
    let mut listener = Listener::default();
    // Whoever hears nothing for so long, after the server has come to its senses, hears nothing any more.
    let quiet = Duration::from_secs(200);
    while let Ok(event) = timeout(quiet, trial.receiver.recv()).await {
        listener.hear(event.expect("the watch goes on").watched);
    }
    assert!(trial.fake.requests().len() > BAD_REQUESTS, "seed {seed}");
    assert!(!listener.is_listing, "seed {seed}");
    assert_eq!(listener.known, chaos.lock().expect("no test panics here").state, "seed {seed}");
    listener.lists
}

#[tokio::test(start_paused = true)]
async fn whatever_a_server_does_nothing_is_lost_and_nothing_comes_twice() {
    let mut lists = 0;
    for seed in 0..150 {
        lists += survive(seed, seed % 3 != 0).await;
    }
    // Most of the time it goes on from where it was.
    assert!((300..3000).contains(&lists), "{lists} lists");
}
