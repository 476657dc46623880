mod tls;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use supercargo_client::ApiServer;
use supercargo_client::fake::{Answer, Fake};
use supercargo_client::loopback::{LoopbackServer, Play, head};
use supercargo_framework::{
    Endpoint, HttpSource, LineSource, PrometheusSource, Query, QuerySource, Question, fact_kind,
};
use supercargo_model::{Kind, KindId, Timestamp};

use crate::{Asked, Asker, FailureKind, Inquirer};

/// The time of all tests, in seconds.
const NOW: i64 = 1_000_000;

#[derive(Debug, PartialEq, Deserialize)]
struct Load(f64);

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

/// Asks for loads by node, of whatever source.
fn query(source: impl Into<QuerySource>) -> Query {
    let query = Query::per_node::<Load>("load", source, |answer, nodes| {
        if let Ok(series) = answer.series() {
            nodes.put_latest(series, "instance", Load);
        } else if let Ok(usages) = answer.node_metrics() {
            for usage in usages {
                nodes.put_at(&usage.node, Load(usage.milli_cpu as f64), usage.at);
            }
        } else {
            assert!(!answer.text()?.contains("panic"), "asked to by a test");
            for (node, load) in answer.json::<BTreeMap<String, f64>>()? {
                nodes.put(&node, Load(load));
            }
        }
        Ok(())
    });
    query.within(Duration::from_secs(10)).at_most(1 << 20)
}

/// An API server that nobody asks.
fn nobody() -> ApiServer {
    ApiServer::new(Fake::new(|_| Answer::never()).service(), None)
}

async fn ask(query: Query) -> Asked {
    Asker::new(query, &nobody()).ask(|| Timestamp::from_seconds(NOW)).await
}

/// What came of it: the facts, or why there are none.
fn words(asked: &Asked) -> Result<String, (FailureKind, String)> {
    let facts = asked.answer.clone().map_err(|failure| (failure.kind, failure.reason))?;
    let left_out = facts.left_out().to_string();
    let mut words: Vec<String> = facts
        .into_list()
        .iter()
        .map(|fact| format!("{} {}", fact.object.key.name, fact.object.get::<Load>().expect("it is one").0))
        .collect();
    words.extend((!left_out.is_empty()).then(|| format!("without {left_out}")));
    Ok(words.join("; "))
}

fn vector(age: i64, value: &str) -> String {
    format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{"instance":"n1"}},"value":[{},"{value}"]}}]}}}}"#,
        NOW - age
    )
}

fn prometheus(url: &str) -> PrometheusSource {
    PrometheusSource::new(Endpoint::new(url), "load")
}

#[tokio::test]
async fn whatever_a_server_does_there_is_an_answer_or_a_reason_in_time() {
    let good = vector(0, "0.5");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let large = 1_u64 << 30;
    let located = "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n";
    let gzip = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}";
    let errors = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
    use FailureKind::{Cut, Redirected, Refused, TimedOut, TooLong, Unreadable};
    let table = [
        (Play::ok(&good), Ok("n1 0.5")),
        (Play::ok(&vector(86_400, "0.5")), Ok("without 1 too old")),
        (Play::ok(&vector(0, "NaN")), Ok("without 1 no finite numbers")),
        (Play::ok(""), Err((Unreadable, "the answer is empty"))),
        (Play::ok("<html>Log in</html>"), Err((Unreadable, "it begins with \"<html>Log in</html>\""))),
        (Play::ok(errors), Err((Unreadable, "Prometheus says \"error\": bad_data: parse error"))),
        (
            Play::status("400 Bad Request", errors),
            Err((Refused, "answers 400 Bad Request: {\"status\":\"error\"")),
        ),
        (Play::status("503 Service Unavailable", ""), Err((Refused, "answers 503 Service Unavailable"))),
        (Play::status("204 No Content", ""), Err((Refused, "answers 204 No Content"))),
        (Play::Whole(located.to_owned()), Err((Redirected, "points to http://elsewhere/"))),
        (Play::Cut(String::new()), Err((Cut, "connection closed before message completed"))),
        (Play::Cut("HTTP/1.1 200".to_owned()), Err((Cut, ""))),
        (Play::Cut("hello\r\n\r\n".to_owned()), Err((Cut, "invalid HTTP version parsed"))),
        (Play::Cut(head("200 OK", good.len() + 1) + &good), Err((Cut, "broke off its answer"))),
        (Play::Cut(format!("{chunked}5\r\n{{\"sta\r\n")), Err((Cut, "broke off its answer"))),
        (Play::Unfinished(String::new()), Err((TimedOut, "gave no whole answer within 200ms"))),
        (Play::Unfinished(head("200 OK", 10) + "{"), Err((TimedOut, "gave no whole answer within 200ms"))),
        (
            Play::Unfinished(head("500 Internal Server Error", 10)),
            Err((Refused, "answers 500 Internal Server Error")),
        ),
        (
            Play::Flood(head("200 OK", usize::try_from(large).expect("it fits"))),
            Err((TooLong, "more than 1048576 bytes")),
        ),
        (Play::Flood(format!("{chunked}{large:x}\r\n")), Err((TooLong, "more than 1048576 bytes"))),
        (Play::Whole(gzip.to_owned()), Err((Unreadable, "answers compressed (gzip)"))),
    ];
    for (play, expected) in table {
        let server = LoopbackServer::http(play.clone()).await;
        let is_slow = matches!(play, Play::Unfinished(_));
        let deadline = if is_slow { Duration::from_millis(200) } else { Duration::from_secs(10) };
        let asked = ask(query(prometheus(&server.url())).within(deadline)).await;
        match (words(&asked), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{play:?}"),
            (Err((found, reason)), Err((expected, part))) => {
                assert_eq!(found, expected, "{play:?}: {reason}");
                assert!(reason.contains(part), "{play:?}: {reason}");
                assert_eq!(
                    reason.contains(&server.url()),
                    found != Unreadable || part.contains("gzip"),
                    "{reason}"
                );
            }
            (found, expected) => panic!("{play:?}: {found:?} instead of {expected:?}"),
        }
        assert!(asked.took < Duration::from_secs(8), "{play:?}: {:?}", asked.took);
        assert!(server.sent() < 64 << 20, "{} bytes were read of a flood", server.sent());
    }
}

#[tokio::test]
async fn nobody_there_is_a_reason_too() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it listens").to_string();
    drop(listener);
    let sources: [(QuerySource, &str); 3] = [
        (prometheus(&format!("http://{address}")).into(), "refused"),
        (LineSource::new(&*address, "x").into(), "refused"),
        (HttpSource::get(Endpoint::new("http://no-such-host.invalid/")).into(), "no-such-host.invalid"),
    ];
    for (source, part) in sources {
        let (kind, reason) = words(&ask(query(source)).await).expect_err("nobody is there");
        assert_eq!(kind, FailureKind::Unreachable, "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn requests_have_the_headers_the_body_and_the_token_of_the_moment() {
    let server = LoopbackServer::http(Play::ok(r#"{"n1": 1}"#)).await;
    let folder = tempfile::tempdir().expect("there is room for files");
    let token = folder.path().join("token");
    std::fs::write(&token, "first\n").expect("it can be written");
    let endpoint =
        Endpoint::new(server.url() + "/load?a=b").header("X-Scope-OrgID", "Me").bearer_token_file(&token);
    let post = HttpSource::post(endpoint, "application/json", r#"{"window":"5m"}"#);
    let asker = Asker::new(query(post), &nobody());
    let now = || Timestamp::from_seconds(NOW);
    assert_eq!(words(&asker.ask(now).await), Ok("n1 1".to_owned()));
    std::fs::write(&token, "second").expect("it can be written");
    assert_eq!(words(&asker.ask(now).await), Ok("n1 1".to_owned()));
    let received = server.received();
    for (request, token) in received.iter().zip(["first", "second"]) {
        assert_eq!(request.line, "POST /load?a=b HTTP/1.1");
        assert_eq!(request.body, r#"{"window":"5m"}"#);
        let has = |text: String| request.headers.contains(&text);
        assert!(has(format!("authorization: Bearer {token}")), "{request:?}");
        assert!(has("x-scope-orgid: Me".to_owned()), "{request:?}");
        assert!(has("content-type: application/json".to_owned()), "{request:?}");
        assert!(has(format!("host: {}", server.address())), "{request:?}");
        assert!(!request.headers.iter().any(|header| header.starts_with("accept-encoding")), "{request:?}");
    }
    assert_eq!((received.len(), server.connections()), (2, 1), "one connection is enough");

    for content in [Some(" \n"), Some("a\nb"), None] {
        match content {
            Some(content) => std::fs::write(&token, content).expect("it can be written"),
            None => std::fs::remove_file(&token).expect("it can be removed"),
        }
        let (kind, reason) = words(&asker.ask(now).await).expect_err("there is no token");
        assert_eq!(kind, FailureKind::Credentials, "{reason}");
    }
    assert_eq!(server.received().len(), 2, "nothing is asked without it");
    std::fs::create_dir(&token).expect("there is room");
    let (_, reason) = words(&asker.ask(now).await).expect_err("a folder is no token");
    assert!(reason.ends_with("it is not a file"), "{reason}");
}

#[tokio::test]
async fn a_line_is_answered_by_a_line_or_by_the_end() {
    use FailureKind::{TimedOut, TooLong, Unreadable};
    let table = [
        (Play::Unfinished("{\"10.0.0.1\": 10}\n".to_owned()), Ok("10.0.0.1 10")),
        (Play::Unfinished("{\"n1\": 1}\r\nmore".to_owned()), Ok("n1 1")),
        (Play::Cut("{\"n1\": 1}".to_owned()), Ok("n1 1")),
        (Play::Cut("{\"n1\": ".to_owned()), Err((Unreadable, "EOF while parsing"))),
        (Play::Cut(String::new()), Err((Unreadable, "the answer is empty"))),
        (
            Play::Cut("panic".to_owned()),
            Err((Unreadable, "the plugin panicked when it read the answer: asked to by a test")),
        ),
        (Play::Unfinished("{".to_owned()), Err((TimedOut, "gave no whole answer within 200ms"))),
        (Play::Flood(String::new()), Err((TooLong, "more than 1048576 bytes"))),
    ];
    for (play, expected) in table {
        let server = LoopbackServer::lines(play.clone()).await;
        let deadline =
            Duration::from_millis(if matches!(expected, Err((TimedOut, _))) { 200 } else { 10_000 });
        let source = LineSource::new(server.address(), "getSuggestion");
        let found = words(&ask(query(source).within(deadline)).await);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{play:?}"),
            (Err((found, reason)), Err((expected, part))) => {
                assert!(found == expected && reason.contains(part), "{play:?}: {reason}");
            }
            (found, expected) => panic!("{play:?}: {found:?} instead of {expected:?}"),
        }
        let asked: Vec<String> = server.received().into_iter().map(|received| received.line).collect();
        assert_eq!(asked, ["getSuggestion"]);
        assert!(server.sent() < 64 << 20, "{} bytes were read of a flood", server.sent());
    }
}

#[tokio::test]
async fn the_metrics_api_is_asked_through_the_api_server() {
    let list = r#"{"items":[{"metadata":{"name":"n1"},"timestamp":"1970-01-12T13:46:30Z","usage":{"cpu":"250m","memory":"1Gi"}}]}"#;
    let fake = Fake::numbered(move |number, _| match number {
        0 => Answer::ok(list),
        1 => Answer::status(404, "the server could not find the requested resource"),
        2 => Answer::status(403, "nodes.metrics.k8s.io is forbidden"),
        3 => Answer::status(503, "the server is currently unable to handle the request"),
        4 => {
            let (writer, answer) = Answer::streamed();
            writer.send(Ok(Bytes::from_static(b"{\"items\": ["))).expect("it is read");
            writer.send(Err(std::io::Error::other("reset"))).expect("it is read");
            answer
        }
        5 => Answer::ok(&"x".repeat(2 << 20)),
        _ => Answer::never(),
    });
    let server = ApiServer::new(fake.service(), None);
    let asker = Asker::new(query(QuerySource::NodeMetrics).within(Duration::from_millis(500)), &server);
    use FailureKind::{Cut, Refused, TimedOut, TooLong};
    let table = [
        Ok("n1 250"),
        Err((Refused, "install metrics-server")),
        Err((Refused, "is forbidden")),
        Err((Refused, "unable to handle the request")),
        Err((Cut, "the metrics API broke off its answer: reset")),
        Err((TooLong, "the metrics API answers with more than")),
        Err((TimedOut, "the metrics API gave no whole answer within 500ms")),
    ];
    for expected in table {
        let found = words(&asker.ask(|| Timestamp::from_seconds(NOW)).await);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err((found, reason)), Err((expected, part))) => {
                assert!(found == expected && reason.contains(part), "{found:?} {reason}");
            }
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }
    let asked = fake.requests();
    assert!(asked.iter().all(|asked| asked.line() == "GET /apis/metrics.k8s.io/v1beta1/nodes"));
    assert_eq!(server.missing_rights().check(), Ok(()), "a scheduler does its work without metrics");
}

#[tokio::test]
async fn a_question_about_a_pod_is_answered_or_not_in_time() {
    let question = Question::whole::<Load>(
        "advice",
        |_| None,
        |answer| {
            assert!(!answer.text()?.contains("panic"), "asked to by a test");
            answer.json().map(Load)
        },
    );
    let question = question.within(Duration::from_millis(200)).at_most(100);
    let table = [
        (Play::Cut("0.5".to_owned()), Ok(())),
        (Play::Cut("high".to_owned()), Err(FailureKind::Unreadable)),
        (Play::Cut("panic".to_owned()), Err(FailureKind::Unreadable)),
        (Play::Cut(String::new()), Err(FailureKind::Unreadable)),
        (Play::Unfinished("0.".to_owned()), Err(FailureKind::TimedOut)),
        (Play::Cut("1".repeat(101)), Err(FailureKind::TooLong)),
    ];
    for (play, expected) in table {
        let server = LoopbackServer::lines(play.clone()).await;
        let source = LineSource::new(server.address(), "getSuggestion").into();
        let inquirer = Inquirer::new(&nobody());
        let found = inquirer.ask(&question, &source, Timestamp::from_seconds(NOW)).await;
        assert_eq!(found.map(|_| ()).map_err(|failure| failure.kind), expected, "{play:?}");
    }
}
