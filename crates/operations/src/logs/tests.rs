use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tracing::{debug, error, info, trace, warn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use super::{Lines, V2};
use crate::flags::LoggingFormat;

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics while writing").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn noon() -> Timestamp {
    "2026-11-16T12:00:00.000123Z".parse().expect("a time")
}

/// What comes out if this is logged.
fn written(format: LoggingFormat, verbosity: u8, log: impl Fn()) -> Vec<String> {
    let memory = Memory::default();
    let layer = Lines::new(format, verbosity, noon, Box::new(memory.clone()));
    tracing::subscriber::with_default(Registry::default().with(layer), log);
    let bytes = memory.0.lock().expect("no test panics while writing").clone();
    String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
}

fn some_of_each() {
    error!("e");
    warn!("w");
    info!("i");
    info!(target: V2, "bound");
    debug!("d");
    trace!("t");
    info!(target: "hyper", "library");
    debug!(target: "hyper", "library");
    error!(target: "kube_client::client::builder", "a request failed");
}

#[test]
fn verbosity_decides_what_is_written() {
    for (verbosity, expected) in [(0, 3), (1, 3), (2, 5), (3, 5), (4, 7), (5, 8), (6, 9)] {
        let lines = written(LoggingFormat::Text, verbosity, some_of_each);
        assert_eq!(lines.len(), expected, "v={verbosity}: {lines:?}");
    }
}

#[test]
fn text_looks_like_klog() {
    let lines = written(LoggingFormat::Text, 2, || {
        info!(target: V2, pod = "default/web", attempts = 3, fine = true, "Successfully bound \"pod\"");
        error!(pod = "default/web", err = %"line one\nline two", "Broke");
        error!(target: "hyper", pod = "default/web", error = "x", "A library's");
    });
    let process = std::process::id();
    let (head, tail) = lines[0].split_once("] ").expect("a head");
    assert!(head.starts_with(&format!("I1116 12:00:00.000123 {process:7} logs/tests.rs:")), "{head}");
    assert_eq!(tail, r#""Successfully bound \"pod\"" pod="default/web" attempts=3 fine=true"#);
    assert!(lines[1].starts_with('E'));
    assert!(lines[1].ends_with(r#"] "Broke" err="line one\nline two" pod="default/web""#), "{}", lines[1]);
    assert!(lines[2].ends_with(r#"] "A library's" err="x" pod="default/web""#), "{}", lines[2]);
}

/// What Go's `strconv.Quote` makes of these.
#[test]
fn text_is_quoted_as_go_does() {
    for (text, quoted) in [
        ("plain", r#""plain""#),
        ("it's \"so\"", r#""it's \"so\"""#),
        ("a\\b\tc\r\n", r#""a\\b\tc\r\n""#),
        ("\u{0}\u{1b}[31m\u{7f}", r#""\x00\x1b[31m\x7f""#),
        ("\u{7}\u{8}\u{b}\u{c}", r#""\a\b\v\f""#),
        ("\u{85}ü🚢", r#""\u0085ü🚢""#),
    ] {
        let lines = written(LoggingFormat::Text, 0, || warn!(text, "m"));
        assert!(lines[0].ends_with(&format!("text={quoted}")), "{} {quoted}", lines[0]);
    }
}

#[test]
fn json_is_one_object_a_line() {
    let lines = written(LoggingFormat::Json, 2, || {
        info!(target: V2, pod = "default/web", "Bound");
        error!(err = "x", "Broke");
    });
    let objects: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects[0]["ts"], serde_json::json!(1_794_830_400_000.123));
    assert_eq!(objects[0]["msg"], "Bound");
    assert_eq!(objects[0]["v"], 2);
    assert_eq!(objects[0]["pod"], "default/web");
    assert_eq!(objects[1]["err"], "x");
    assert!(objects[1]["v"].is_null());
}
