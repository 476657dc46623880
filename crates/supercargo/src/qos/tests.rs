use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use supercargo_plugins::Plugins;

use crate::outcome::Outcome;

/// Somebody who answers each question with a text, and says what was asked.
fn answering(texts: &'static [&'static str]) -> (SocketAddr, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    let answer = move || {
        let mut asked = Vec::new();
        for text in texts {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            let mut head = [0; 4096];
            let length = stream.read(&mut head).expect("it can be read");
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            asked.push(head.lines().next().unwrap_or_default().to_owned());
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
            write!(stream, "{head} {}\r\n\r\n{text}", text.len()).expect("it can be written");
        }
        asked
    };
    #[expect(clippy::disallowed_methods, reason = "the other side of a connection needs a thread of its own")]
    let thread = std::thread::spawn(answer);
    (address, thread)
}

fn qos(words: &[&str]) -> Outcome {
    let words = ["supercargo", "qos"].iter().chain(words);
    crate::outcome_of(words.map(|word| (*word).to_owned()), |_: &mut Plugins| Ok(()))
}

#[test]
fn the_table_is_printed_once() {
    let (address, asked) =
        answering(&["a table\n", "replicas\n", "{}\n", r#"{"last": 2, "lines": ["x", "y"]}"#, "<html>"]);
    let address = address.to_string();
    let print = |flags: &[&str]| qos(&[&["--address", &address], flags].concat());
    for (flags, printed) in [
        (&[][..], "a table\n"),
        (&["--replicas"], "replicas\n"),
        (&["--json"], "{}\n"),
        (&["--log"], "x\ny\n"),
    ] {
        let outcome = print(flags);
        assert_eq!((outcome.code, &*outcome.stdout), (0, printed), "{flags:?}: {}", outcome.stderr);
    }
    let wrong = print(&["--log"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("answers, but not as QosAware does"), "{}", wrong.stderr);
    let asked = asked.join().expect("all was asked");
    assert_eq!(
        asked,
        [
            "GET / HTTP/1.1",
            "GET /?replicas HTTP/1.1",
            "GET /?output=json HTTP/1.1",
            "GET /log?output=json&after=0 HTTP/1.1",
            "GET /log?output=json&after=0 HTTP/1.1",
        ]
    );
}

#[test]
fn nobody_there_is_an_error_that_says_what_to_look_at() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    drop(listener);
    let outcome = qos(&["--address", &address]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("does its profile enable QosAware"), "{}", outcome.stderr);
    assert_eq!(qos(&["--address", "nowhere"]).code, 2);
    assert_eq!(qos(&["--json", "--log"]).code, 2);
}
