//! The client against an extender on the loopback device.

mod tls;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use supercargo_config::Extender;
use supercargo_framework::{AskFailure, AskedNode, ExtenderAnswer, ExtenderQuestion, NodeVictims};
use supercargo_model::GoDuration;
use supercargo_model::{Pod, RawObject};

use crate::ExtenderClient;
use supercargo_client::loopback::{LoopbackServer, Play};

/// A pod whose text is not how anybody would write it anew.
fn pod(name: &str) -> Arc<Pod> {
    let text =
        format!(r#"{{"kind":  "Pod", "apiVersion": "v1", "metadata": {{"name": "{name}"}}, "odd": 1e2}}"#);
    Arc::new(Pod {
        name: name.into(),
        namespace: "space".into(),
        uid: format!("uid-{name}").into(),
        raw: Some(Arc::new(RawObject::new(text))),
        ..Pod::default()
    })
}

fn nodes(names: &[&str]) -> Vec<AskedNode> {
    let node = |name: &&str| AskedNode {
        name: (*name).into(),
        raw: Some(Arc::new(RawObject::new(format!(r#"{{"metadata":  {{"name": "{name}"}}}}"#)))),
    };
    names.iter().map(node).collect()
}

fn filter(names: &[&str]) -> ExtenderQuestion {
    ExtenderQuestion::Filter { pod: pod("a"), nodes: nodes(names) }
}

fn prioritize(names: &[&str]) -> ExtenderQuestion {
    ExtenderQuestion::Prioritize { pod: pod("a"), nodes: nodes(names) }
}

fn bind() -> ExtenderQuestion {
    ExtenderQuestion::Bind { pod: pod("a"), node: "n".into() }
}

fn preempt() -> ExtenderQuestion {
    let victims = |names: &[&str], budget_violations| NodeVictims {
        pods: names.iter().map(|name| pod(name)).collect(),
        budget_violations,
    };
    ExtenderQuestion::Preempt {
        pod: pod("a"),
        victims: BTreeMap::from([("m".into(), victims(&["v"], 0)), ("n".into(), victims(&["w", "x"], 1))]),
    }
}

fn extender(url: &str) -> Extender {
    Extender {
        url_prefix: url.to_owned(),
        filter_verb: "filter".to_owned(),
        prioritize_verb: "prioritize".to_owned(),
        preempt_verb: "preempt".to_owned(),
        bind_verb: "bind".to_owned(),
        weight: 1,
        // The machine that runs the tests may have other things to do.
        http_timeout: GoDuration::from_seconds(60),
        ..Extender::default()
    }
}

fn that_knows_nodes(url: &str) -> Extender {
    Extender { node_cache_capable: true, ..extender(url) }
}

async fn ask(extender: &Extender, question: &ExtenderQuestion) -> Result<ExtenderAnswer, String> {
    ExtenderClient::new(extender)
        .expect("can be set up")
        .ask(question)
        .await
        .map_err(|failure| failure.error().to_owned())
}

fn kept(names: &[&str]) -> ExtenderAnswer {
    filtered(names, &[], &[])
}

fn filtered(kept: &[&str], failed: &[(&str, &str)], unresolvable: &[(&str, &str)]) -> ExtenderAnswer {
    let map = |entries: &[(&str, &str)]| {
        entries.iter().map(|(name, reason)| ((*name).into(), (*reason).to_owned())).collect()
    };
    ExtenderAnswer::Filtered {
        kept: kept.iter().map(|name| (*name).into()).collect(),
        failed: map(failed),
        unresolvable: map(unresolvable),
    }
}

#[tokio::test]
async fn whole_nodes_are_sent_as_they_came() {
    let server = LoopbackServer::http(Play::ok(
        r#"{"Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n", "labels": {}}, "spec": {}}]},
            "NodeNames": ["is passed over"], "FailedNodes": {"m": "full"},
            "FailedAndUnresolvableNodes": {"o": "never"}, "Error": ""}"#,
    ))
    .await;
    let url = format!("{}/some/where//", server.url());
    let answer = ask(&extender(&url), &filter(&["m", "n", "o"])).await;
    assert_eq!(answer, Ok(filtered(&["n"], &[("m", "full")], &[("o", "never")])));

    let received = server.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].line, "POST /some/where/filter HTTP/1.1");
    assert_eq!(
        received[0].headers,
        [
            format!("content-length: {}", received[0].body.len()),
            "content-type: application/json".to_owned(),
            format!("host: 127.0.0.1:{}", server.port()),
            concat!("user-agent: supercargo/", env!("CARGO_PKG_VERSION")).to_owned(),
        ]
    );
    assert_eq!(
        received[0].body,
        concat!(
            r#"{"Pod":{"kind":  "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "odd": 1e2},"#,
            r#""Nodes":{"metadata":{},"items":[{"metadata":  {"name": "m"}},{"metadata":  {"name": "n"}},"#,
            r#"{"metadata":  {"name": "o"}}]},"NodeNames":null}"#,
        )
    );
}

#[tokio::test]
async fn names_are_sent_to_who_knows_the_nodes() {
    for body in [
        r#"{"NodeNames": ["n", "m"], "FailedNodes": null, "Error": ""}"#,
        r#"{"nodeNames": ["n", "m"], "failedNodes": {}}"#,
        r#"{"nodenames": ["n", "m"], "nodes": {"items": [{"metadata": {"name": "is passed over"}}]}}"#,
        r#"{"nodes": {"items": [{"metadata": {"name": "n"}}, {"metadata": {"name": "m"}}]}}"#,
    ] {
        let server = LoopbackServer::http(Play::ok(body)).await;
        let answer = ask(&that_knows_nodes(&server.url()), &filter(&["m", "n", "o"])).await;
        assert_eq!(answer, Ok(kept(&["n", "m"])), "{body}");
        let sent = server.received()[0].json();
        assert_eq!(sent["NodeNames"], json!(["m", "n", "o"]));
        assert_eq!(sent["Nodes"], json!(null));
        assert_eq!(sent["Pod"]["metadata"]["name"], "a");
    }
}

#[tokio::test]
async fn nothing_said_means_no_node_is_left() {
    for body in ["{}", "null", r#"{"Nodes": null, "NodeNames": null}"#, r#"{"Nodes": {}}"#] {
        let server = LoopbackServer::http(Play::ok(body)).await;
        assert_eq!(ask(&extender(&server.url()), &filter(&["m"])).await, Ok(kept(&[])), "{body}");
        assert_eq!(ask(&that_knows_nodes(&server.url()), &filter(&["m"])).await, Ok(kept(&[])), "{body}");
    }
    // As upstream: who was sent nodes is expected to send nodes.
    let server = LoopbackServer::http(Play::ok(r#"{"NodeNames": ["m"]}"#)).await;
    assert_eq!(ask(&extender(&server.url()), &filter(&["m"])).await, Ok(kept(&[])));
}

#[tokio::test]
async fn only_nodes_that_were_asked_about_can_be_kept() {
    let server = LoopbackServer::http(Play::ok(r#"{"NodeNames": ["m", "else"]}"#)).await;
    let url = server.url();
    let complaint = |url: &str| {
        format!(r#"extender "{url}" claims a filtered node "else" which is not found in the input node list"#)
    };
    assert_eq!(ask(&that_knows_nodes(&url), &filter(&["m"])).await, Err(complaint(&url)));
    let body = r#"{"Nodes": {"items": [{"metadata": {"name": "else"}}]}}"#;
    let server = LoopbackServer::http(Play::ok(body)).await;
    let url = server.url();
    assert_eq!(ask(&extender(&url), &filter(&["m"])).await, Err(complaint(&url)));
}

#[tokio::test]
async fn an_error_in_the_answer_is_one() {
    for body in [r#"{"NodeNames": ["m"], "Error": "out of order"}"#, r#"{"error": "out of order"}"#] {
        let server = LoopbackServer::http(Play::ok(body)).await;
        for question in [filter(&["m"]), bind()] {
            let answer = ask(&that_knows_nodes(&server.url()), &question).await;
            assert_eq!(answer, Err("out of order".to_owned()), "{body}");
        }
    }
}

#[tokio::test]
async fn scores_are_taken_as_they_come() {
    for body in [
        r#"[{"Host": "m", "Score": 10}, {"Host": "n", "Score": -3}, {"Host": "else", "Score": 1000}]"#,
        r#"[{"host": "m", "score": 10}, {"host": "n", "score": -3}, {"host": "else", "score": 1000}]"#,
    ] {
        let server = LoopbackServer::http(Play::ok(body)).await;
        let answer = ask(&that_knows_nodes(&server.url()), &prioritize(&["m", "n"])).await;
        let scores = vec![("m".into(), 10), ("n".into(), -3), ("else".into(), 1000)];
        assert_eq!(answer, Ok(ExtenderAnswer::Prioritized(scores)), "{body}");
        assert_eq!(server.received()[0].line, "POST /prioritize HTTP/1.1");
        assert_eq!(server.received()[0].json()["NodeNames"], json!(["m", "n"]));
    }
    let server = LoopbackServer::http(Play::ok("null")).await;
    let answer = ask(&extender(&server.url()), &prioritize(&["m"])).await;
    assert_eq!(answer, Ok(ExtenderAnswer::Prioritized(Vec::new())));
    assert_eq!(server.received()[0].json()["Nodes"]["items"][0]["metadata"]["name"], "m");
}

#[tokio::test]
async fn binding_is_left_to_the_extender() {
    for body in ["{}", r#"{"Error": ""}"#, "null"] {
        let server = LoopbackServer::http(Play::ok(body)).await;
        assert_eq!(ask(&extender(&server.url()), &bind()).await, Ok(ExtenderAnswer::Bound), "{body}");
        assert_eq!(server.received()[0].line, "POST /bind HTTP/1.1");
        assert_eq!(
            server.received()[0].body,
            r#"{"PodName":"a","PodNamespace":"space","PodUID":"uid-a","Node":"n"}"#
        );
    }
}

#[tokio::test]
async fn victims_are_sent_whole_or_by_uid() {
    let body =
        r#"{"NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 1}, "m": {}}}"#;
    let left = BTreeMap::from([("m".into(), (Vec::new(), 0)), ("n".into(), (vec!["uid-x".into()], 1))]);
    let server = LoopbackServer::http(Play::ok(body)).await;
    let answer = ask(&that_knows_nodes(&server.url()), &preempt()).await;
    assert_eq!(answer, Ok(ExtenderAnswer::Preempted(left.clone())));
    let sent = server.received()[0].json();
    assert_eq!(server.received()[0].line, "POST /preempt HTTP/1.1");
    assert_eq!(sent["Pod"]["metadata"]["name"], "a");
    assert_eq!(sent["NodeNameToVictims"], json!(null));
    assert_eq!(
        sent["NodeNameToMetaVictims"],
        json!({
            "m": { "Pods": [{ "UID": "uid-v" }], "NumPDBViolations": 0 },
            "n": { "Pods": [{ "UID": "uid-w" }, { "UID": "uid-x" }], "NumPDBViolations": 1 },
        })
    );

    let body =
        r#"{"nodeNameToMetaVictims": {"n": {"pods": [{"uid": "uid-x"}], "numPDBViolations": 1}, "m": null}}"#;
    let server = LoopbackServer::http(Play::ok(body)).await;
    let answer = ask(&extender(&server.url()), &preempt()).await;
    assert_eq!(answer, Ok(ExtenderAnswer::Preempted(left)));
    let sent = server.received()[0].json();
    assert_eq!(sent["NodeNameToMetaVictims"], json!(null));
    assert_eq!(sent["NodeNameToVictims"]["m"]["Pods"][0]["metadata"]["name"], "v");
    assert_eq!(sent["NodeNameToVictims"]["n"]["Pods"][1]["odd"], 1e2);
    assert_eq!(sent["NodeNameToVictims"]["n"]["NumPDBViolations"], 1);
}

#[tokio::test]
async fn without_a_verb_nobody_is_asked() {
    let url = "http://127.0.0.1:1".to_owned();
    let none = Extender { url_prefix: url, ..Extender::default() };
    assert_eq!(ask(&none, &filter(&["m", "n"])).await, Ok(kept(&["m", "n"])));
    let zeros = vec![("m".into(), 0), ("n".into(), 0)];
    assert_eq!(ask(&none, &prioritize(&["m", "n"])).await, Ok(ExtenderAnswer::Prioritized(zeros)));
    let complaint =
        "preempt verb is not defined for extender http://127.0.0.1:1 but run into ProcessPreemption";
    assert_eq!(ask(&none, &preempt()).await, Err(complaint.to_owned()));
    assert_eq!(ask(&none, &bind()).await, Err("unexpected empty bindVerb in extender".to_owned()));
}

#[tokio::test]
async fn other_codes_than_200_are_errors() {
    for (status, code) in [
        ("500 Internal Server Error", 500),
        ("404 Not Found", 404),
        ("204 No Content", 204),
        ("201 Created", 201),
        ("302 Found\r\nLocation: /elsewhere", 302),
    ] {
        let server = LoopbackServer::http(Play::status(status, "{}")).await;
        let url = server.url();
        let answer = ask(&extender(&url), &filter(&["m"])).await;
        assert_eq!(answer, Err(format!("failed filter with extender at URL {url}/filter, code {code}")));
    }
}

/// Whoever answers for an extender does not know whether it will bind the pod.
#[tokio::test]
async fn what_a_gateway_says_is_no_answer_of_the_extender() {
    for (code, is_answered) in [
        (400, true),
        (404, true),
        (408, false),
        (429, true),
        (500, true),
        (501, true),
        (502, false),
        (503, false),
        (504, false),
        (524, false),
    ] {
        let server = LoopbackServer::http(Play::status(&format!("{code} Or So"), "{}")).await;
        let client = ExtenderClient::new(&extender(&server.url())).expect("can be set up");
        let message = format!("failed bind with extender at URL {}/bind, code {code}", server.url());
        let expected =
            if is_answered { AskFailure::Answered(message) } else { AskFailure::Unanswered(message) };
        assert_eq!(client.ask(&bind()).await, Err(expected));
    }
}

#[tokio::test]
async fn garbage_is_an_error() {
    for body in
        ["", "<html>", r#"{"NodeNames": "#, r#"{"NodeNames": "m"}"#, "[]", r#"{"Nodes": []}"#, "\u{feff}{}"]
    {
        let server = LoopbackServer::http(Play::ok(body)).await;
        let error = ask(&that_knows_nodes(&server.url()), &filter(&["m"])).await.expect_err(body);
        let beginning = format!(
            "cannot understand the answer to filter of the extender at URL {}/filter: ",
            server.url()
        );
        assert!(error.starts_with(&beginning), "{body}: {error}");
    }
    let server = LoopbackServer::http(Play::Cut("what?\r\n\r\n".to_owned())).await;
    let error = ask(&extender(&server.url()), &bind()).await.expect_err("is no HTTP");
    assert!(error.starts_with(&format!(r#"Post "{}/bind": "#, server.url())), "{error}");
}

#[tokio::test]
async fn an_answer_comes_in_time_or_not_at_all() {
    let impatient = |server: &LoopbackServer| Extender {
        http_timeout: GoDuration(50_000_000),
        ..extender(&server.url())
    };
    let server = LoopbackServer::http(Play::Unfinished(String::new())).await;
    let answer = ask(&impatient(&server), &filter(&["m"])).await;
    let complaint = format!(
        r#"Post "{}/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"#,
        server.url()
    );
    assert_eq!(answer, Err(complaint));
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{";
    let server = LoopbackServer::http(Play::Unfinished(half.to_owned())).await;
    let error = ask(&impatient(&server), &filter(&["m"])).await.expect_err("half an answer is none");
    assert!(error.contains("context deadline exceeded"), "{error}");
}

#[tokio::test]
async fn half_an_answer_is_none() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}";
    let server = LoopbackServer::http(Play::Cut(half.to_owned())).await;
    let error = ask(&extender(&server.url()), &bind()).await.expect_err("half an answer is none");
    let beginning = format!("cannot read the answer to bind of the extender at URL {}/bind: ", server.url());
    assert!(error.starts_with(&beginning), "{error}");
    // A question that may have been heard is not asked again.
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn nobody_there_is_an_error() {
    // The port was free a moment ago, and nobody listens there any more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    drop(listener);
    let error = ask(&extender(&url), &filter(&["m"])).await.expect_err("nobody listens");
    assert!(error.starts_with(&format!(r#"Post "{url}/filter": "#)), "{error}");
    assert!(error.to_lowercase().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn an_address_that_is_none_shows_when_it_is_used() {
    for (url, complaint) in [
        ("ftp://host", r#"Post "ftp://host/bind": unsupported protocol scheme "ftp""#),
        ("", r#"Post "/bind": unsupported protocol scheme """#),
        ("http://a b", r#"Post "http://a b/bind": "#),
    ] {
        let error = ask(&extender(url), &bind()).await.expect_err(url);
        assert!(error.starts_with(complaint), "{error}");
    }
}

#[tokio::test]
async fn an_answer_has_a_limit() {
    let long = format!(r#"{{"Error": "", "more": "{}"}}"#, "x".repeat(1000));
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
        long.len()
    );
    for answer in [Play::ok(&long), Play::Whole(chunked)] {
        let server = LoopbackServer::http(answer).await;
        let mut client = ExtenderClient::new(&extender(&server.url())).expect("can be set up");
        assert_eq!(client.ask(&bind()).await, Ok(ExtenderAnswer::Bound));
        client.answer_bytes_max = long.len() - 1;
        let url = server.url();
        let complaint = format!(
            "cannot read the answer to bind of the extender at URL {url}/bind: it has more than {} bytes",
            long.len() - 1
        );
        assert_eq!(client.ask(&bind()).await, Err(AskFailure::Answered(complaint)));
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = LoopbackServer::http(Play::ok("{}")).await;
    let client = ExtenderClient::new(&extender(&server.url())).expect("can be set up");
    for _ in 0..5 {
        assert_eq!(client.ask(&bind()).await, Ok(ExtenderAnswer::Bound));
    }
    assert_eq!((server.received().len(), server.connections()), (5, 1));
    assert_eq!(client.name(), server.url());
    // Whoever asks may do so from another thread.
    let answer = tokio::spawn(async move { client.ask(&preempt()).await }).await.expect("is not cancelled");
    assert_eq!(answer, Ok(ExtenderAnswer::Preempted(BTreeMap::new())));
}

#[tokio::test]
async fn objects_must_have_been_kept() {
    let extender = extender("http://127.0.0.1:1");
    let bare = Arc::new(Pod { raw: None, ..(*pod("a")).clone() });
    let question = ExtenderQuestion::Filter { pod: bare, nodes: Vec::new() };
    let complaint = r#"cannot ask an extender about pod "a": its text has not been kept"#;
    assert_eq!(ask(&extender, &question).await, Err(complaint.to_owned()));
    let node = AskedNode { name: "n".into(), raw: None };
    let question = ExtenderQuestion::Filter { pod: pod("a"), nodes: vec![node] };
    let complaint = r#"cannot ask an extender about node "n": its text has not been kept"#;
    assert_eq!(ask(&extender, &question).await, Err(complaint.to_owned()));
}
