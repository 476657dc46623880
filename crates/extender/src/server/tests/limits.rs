//! Questions that are too long, too slow, or too many.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tokio::time::Instant;

use super::{Limits, Running, Stage, WireNames, cluster, sized};

const SMALL: usize = 100_000;
/// How long a question may take where that is what a test is about.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a machine that has other things to do may take for what takes no time.
const BUSY: Duration = Duration::from_secs(120);

async fn running(limits: Limits) -> Running {
    let stage = Stage { cluster: Some(cluster(vec![sized("a", "4")], vec![])), ..Stage::default() };
    Running::start(stage, WireNames::Go, limits).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_a_gibibyte_is_refused_before_it_is_read() {
    let running = running(Limits::default()).await;
    let head =
        format!("POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{{\"Pod\":", 1_u64 << 30);
    let (status, answer) = running.send(&head);
    assert_eq!((status, answer.as_str()), (413, "the question has more than 134217728 bytes\n"));
    assert_eq!(running.answered(), ["filter: refused"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_say_how_long_it_is_is_read_up_to_the_limit() {
    let running = running(Limits { body_bytes_max: SMALL, ..Limits::default() }).await;
    let mut stream = TcpStream::connect(running.address).expect("it listens");
    let head = "POST /prioritize HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it is taken");
    let chunk = format!("2710\r\n{}\r\n", "x".repeat(10_000));
    let mut sent = 0;
    // Sooner or later the other side has had enough, and does not take more.
    while sent < 1 << 30 && stream.write_all(chunk.as_bytes()).is_ok() {
        sent += chunk.len();
    }
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(running.answered(), ["prioritize: refused"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_slow_is_not_waited_for_and_delays_nobody() {
    let limits = Limits { question_timeout: PATIENCE, questions_max: 1, ..Limits::default() };
    let running = running(limits).await;
    let half = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{";
    let mut slow: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut stream = TcpStream::connect(running.address).expect("it listens");
            stream.write_all(half.as_bytes()).expect("it is taken");
            stream
        })
        .collect();
    let began = Instant::now();
    assert_eq!(running.post("/prioritize", "garbage"), (200, "[]".to_owned()));
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    for stream in &mut slow {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is text");
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_bodies_together_have_a_limit() {
    let limits = Limits {
        body_bytes_max: SMALL,
        bodies_bytes_max: SMALL,
        question_timeout: BUSY,
        ..Limits::default()
    };
    let running = running(limits).await;
    let head = |length: usize| {
        format!("POST /filter HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut first = TcpStream::connect(running.address).expect("it listens");
    first.write_all(head(90_000).as_bytes()).expect("it is taken");
    first.write_all("x".repeat(80_000).as_bytes()).expect("it is taken");
    let second = || running.send(&(head(90_000) + &"y".repeat(90_000)));
    // The first one is being read by and by.
    let began = Instant::now();
    while second().0 != 503 {
        assert!(began.elapsed() < BUSY, "the first one is not held");
    }
    drop(first);
    while second().0 != 200 {
        assert!(began.elapsed() < BUSY, "what the first one held is not given back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_ends_the_connection() {
    let running = running(Limits::default()).await;
    for text in [
        "\0\u{1}\u{2}garbage\r\n\r\n",
        "POST /filter\r\n\r\n",
        "POST /filter HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ] {
        assert_eq!(running.send(text).0, 400, "{text:?}");
    }
    assert_eq!(running.post("/prioritize", "garbage").0, 200, "and nobody else's");
}
