//! What goes over the wire.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use supercargo_framework::{ExtenderAnswer, ExtenderQuestion};
use supercargo_testkit::pod;

use super::{
    Limits, Running, Stage, WireNames, asked_nodes, asked_pod, cluster, one, question_of, sized, victims,
};
use crate::ExtenderClient;

fn known() -> supercargo_model::Cluster {
    cluster(
        vec![sized("a", "4"), sized("b", "4"), sized("full", "1")],
        vec![one("runs").on("full").uid("r"), pod("half").cpu("2").on("b")],
    )
}

fn nodes() -> Vec<supercargo_testkit::NodeBuilder> {
    vec![sized("a", "4"), sized("b", "4"), sized("full", "1")]
}

#[tokio::test]
async fn our_client_understands_our_server() {
    let running = Running::with(known()).await;
    for node_cache_capable in [true, false] {
        let client = ExtenderClient::new(&running.extender(node_cache_capable)).expect("can be set up");
        let answer = client.ask(&question_of(one("p"), nodes())).await;
        let expected = ExtenderAnswer::Filtered {
            kept: vec!["a".into(), "b".into()],
            failed: BTreeMap::from([("full".into(), "Insufficient cpu".to_owned())]),
            unresolvable: BTreeMap::new(),
        };
        assert_eq!(answer, Ok(expected), "{node_cache_capable}");

        let question = ExtenderQuestion::Prioritize { pod: asked_pod(one("p")), nodes: asked_nodes(nodes()) };
        let Ok(ExtenderAnswer::Prioritized(scores)) = client.ask(&question).await else {
            panic!("no scores")
        };
        let names: Vec<&str> = scores.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a", "b", "full"]);
        assert!(scores[0].1 > scores[1].1 && scores[0].1 <= 10, "{scores:?}");

        let question = ExtenderQuestion::Preempt {
            pod: asked_pod(one("p").priority(5)),
            victims: BTreeMap::from([("full".into(), victims(vec![one("runs").on("full").uid("r")], 1))]),
        };
        let left = BTreeMap::from([("full".into(), (vec!["r".into()], 1))]);
        assert_eq!(client.ask(&question).await, Ok(ExtenderAnswer::Preempted(left)));

        let bind =
            |node: &str| ExtenderQuestion::Bind { pod: asked_pod(one("p").uid("u")), node: node.into() };
        assert_eq!(client.ask(&bind("a")).await, Ok(ExtenderAnswer::Bound));
        let refused = client.ask(&bind("taken")).await.map_err(|failure| failure.error().to_owned());
        assert_eq!(refused, Err("the node is taken".to_owned()));
    }
    let bound = running.stage.bound.lock().expect("no panic").clone();
    assert_eq!(bound, ["default/p u on a"; 2]);
    let answered = running.answered();
    assert_eq!(answered.iter().filter(|line| line.ends_with(": answered")).count(), 8, "{answered:?}");
    assert_eq!(answered.iter().filter(|line| **line == "bind: failed").count(), 2, "{answered:?}");
}

/// A question with the names of its fields as some version writes them.
fn written(names: [&str; 2], list: &str) -> String {
    let pod = Value::from(one("p"));
    json!({ names[0]: pod, names[1]: ["full", "a"], list: null }).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_read_in_any_case_and_written_in_one() {
    let questions = [
        written(["Pod", "NodeNames"], "Nodes"),
        written(["pod", "nodenames"], "nodes"),
        written(["pod", "nodeNames"], "NODES"),
    ];
    let stage = || Stage { cluster: Some(known()), ..Stage::default() };
    let running = Running::start(stage(), WireNames::Go, Limits::default()).await;
    let old = Running::start(stage(), WireNames::Legacy, Limits::default()).await;
    for question in questions {
        let (status, body) = running.post("/filter", &question);
        let expected = r#"{"Nodes":null,"NodeNames":["a"],"FailedNodes":{"full":"Insufficient cpu"},"FailedAndUnresolvableNodes":{},"Error":""}"#;
        assert_eq!((status, body.as_str()), (200, expected), "{question}");
        let (_, body) = old.post("/filter", &question);
        let expected =
            r#"{"nodes":null,"nodenames":["a"],"failedNodes":{"full":"Insufficient cpu"},"error":""}"#;
        assert_eq!(body, expected, "{question}");
        let (_, body) = running.post("/prioritize", &question);
        assert!(body.starts_with(r#"[{"Host":"full","Score":"#), "{body}");
        let (_, body) = old.post("/prioritize", &question);
        assert!(body.starts_with(r#"[{"host":"full","score":"#), "{body}");
    }
    let victims = json!({ "full": { "pods": [{ "uid": "r" }], "numPDBViolations": 1 } });
    let question =
        json!({ "pod": Value::from(one("p").priority(5)), "nodeNameToMetaVictims": victims }).to_string();
    let (_, body) = running.post("/preempt", &question);
    assert_eq!(body, r#"{"NodeNameToMetaVictims":{"full":{"Pods":[{"UID":"r"}],"NumPDBViolations":1}}}"#);
    let (_, body) = old.post("/preempt", &question);
    assert_eq!(body, r#"{"nodeNameToMetaVictims":{"full":{"pods":[{"uid":"r"}],"numPDBViolations":1}}}"#);
    let question = r#"{"podName": "p", "podNamespace": "n", "podUID": "u", "node": "a"}"#;
    assert_eq!(running.post("/bind", question).1, r#"{"Error":""}"#);
    assert_eq!(old.post("/bind", question).1, r#"{"error":""}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_understood_gets_the_answers_of_the_sample() {
    let running = Running::with(known()).await;
    for body in ["", "<html>", "{", "[]", "5", r#"{"Pod": "#, r#"{"Pod": tru}"#, "\u{feff}{}"] {
        let (status, answer) = running.post("/filter", body);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let error = answer["Error"].as_str().unwrap_or_default();
        assert!(status == 200 && error.starts_with("cannot understand the question: "), "{body}: {answer}");
        assert_eq!((&answer["NodeNames"], &answer["Nodes"]), (&Value::Null, &Value::Null));
        assert_eq!(running.post("/prioritize", body), (200, "[]".to_owned()), "{body}");
        let (status, answer) = running.post("/preempt", body);
        assert!(status == 400 && answer.starts_with("cannot understand the question: "), "{body}: {answer}");
        let (status, answer) = running.post("/bind", body);
        assert!(status == 200 || body.is_empty(), "{body}: {answer}");
    }
    let answered = running.answered();
    assert!(
        answered.iter().all(|line| line.ends_with(": malformed") || line.starts_with("bind")),
        "{answered:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_know_the_cluster_says_so() {
    let stage = Stage { ignorance: Some("pods are not listed yet"), ..Stage::default() };
    let running = Running::start(stage, WireNames::Go, Limits::default()).await;
    let question = written(["Pod", "NodeNames"], "Nodes");
    let (status, answer) = running.post("/filter", &question);
    assert!(status == 200 && answer.contains(r#""Error":"pods are not listed yet""#), "{answer}");
    assert_eq!(running.post("/prioritize", &question), (200, "[]".to_owned()));
    let preempt = json!({ "Pod": Value::from(one("p")), "NodeNameToMetaVictims": {} }).to_string();
    assert_eq!(running.post("/preempt", &preempt), (500, "pods are not listed yet\n".to_owned()));
    assert_eq!(running.answered(), ["filter: failed", "prioritize: failed", "preempt: failed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_is_welcome_and_nothing_else_is_there() {
    let running = Running::with(known()).await;
    let get =
        |path: &str| running.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    assert_eq!(get("/"), (200, "Welcome!\n".to_owned()));
    assert_eq!(get("/filter").0, 405);
    assert_eq!(get("/elsewhere").0, 404);
}
