//! The subcommand, without a cluster behind it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use clap::Parser as _;
use serde_json::{Value, json};
use supercargo_cluster::Supervisor;

use super::{Extender, ExtenderOptions, listen_address};
use crate::loaded_config::LoadedConfig;
use crate::{Command, CommandLine};

fn options(words: &[&str]) -> Result<ExtenderOptions, clap::Error> {
    let words = ["supercargo", "extender"].iter().chain(words);
    match CommandLine::try_parse_from(words)?.command {
        Command::Extender(options) => Ok(*options),
        other => panic!("not an extender: {other:?}"),
    }
}

#[test]
fn an_address_may_be_left_out() {
    let table = [
        (":8888", Some("0.0.0.0:8888")),
        ("127.0.0.1:80", Some("127.0.0.1:80")),
        ("[::1]:0", Some("[::1]:0")),
        ("8888", None),
        (":", None),
        (":99999", None),
        ("localhost:8888", None),
    ];
    for (text, expected) in table {
        let expected = expected.map(|address| address.parse::<SocketAddr>().expect("an address"));
        assert_eq!(listen_address(text).ok(), expected, "{text}");
    }
    assert!(options(&[]).expect("flags").listen.ip().is_loopback(), "nobody else is answered unless told so");
}

#[test]
fn flags_that_make_no_sense_together_are_refused() {
    for words in [
        &["--without-cluster", "--kubeconfig", "k"][..],
        &["--without-cluster", "--serve-bind"],
        &["--tls-cert-file", "c"],
        &["--tls-private-key-file", "k"],
        &["--client-ca-file", "c"],
    ] {
        assert!(options(words).is_err(), "{words:?}");
    }
    assert!(
        options(&["--tls-cert-file", "c", "--tls-private-key-file", "k", "--client-ca-file", "a"]).is_ok()
    );
}

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_nodes_are_answered_without_a_cluster() {
    let mut options = options(&["--without-cluster", "--listen", "127.0.0.1:0"]).expect("flags");
    options.program = "lucky".to_owned();
    let config = LoadedConfig::from_file(None, &supercargo_plugins::registry()).expect("the default");
    let supervisor = Supervisor::new();
    let extender = Extender::start(&options, config, None, &supervisor.tasks()).expect("it starts");
    let address = extender.address;
    let get = |path: &str| {
        exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
    };
    let post = |path: &str, body: &Value| {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        serde_json::from_str::<Value>(&exchange(address, &(head + &body))).expect("JSON")
    };
    assert_eq!(get("/"), "Welcome to lucky!\n");
    assert_eq!((get("/healthz"), get("/readyz")), ("ok".to_owned(), "ok".to_owned()));
    let node = |name: &str, is_unschedulable: bool| {
        json!({
            "metadata": { "name": name },
            "spec": { "unschedulable": is_unschedulable },
            "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "110" } },
        })
    };
    let pod = json!({ "metadata": { "name": "p", "uid": "u" }, "spec": { "containers": [{ "name": "c" }] } });
    let question = json!({ "Pod": pod, "Nodes": { "items": [node("a", false), node("b", true)] } });
    let answer = post("/filter", &question);
    assert_eq!(answer["Nodes"]["items"], json!([node("a", false)]));
    assert_eq!(answer["FailedAndUnresolvableNodes"], json!({ "b": "node(s) were unschedulable" }));
    assert_eq!(answer["Error"], "");
    let scores = post("/prioritize", &question);
    assert_eq!(scores.as_array().map(Vec::len), Some(2));
    let bound = post("/bind", &json!({ "PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "a" }));
    assert!(bound["Error"].as_str().is_some_and(|error| error.contains("--serve-bind")), "{bound}");
    let metrics = get("/metrics");
    for line in [
        r#"supercargo_extender_questions_total{outcome="answered",verb="filter"} 1"#,
        r#"supercargo_extender_questions_total{outcome="failed",verb="bind"} 1"#,
        r#"supercargo_extender_questions_total{outcome="malformed",verb="preempt"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    extender.stop().await;
    assert!(TcpStream::connect(address).is_err(), "it listens no more");
}
