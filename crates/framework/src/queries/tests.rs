use std::fmt::Write as _;

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Load(f64);

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

/// The time of all tests, in seconds.
const NOW: i64 = 1_000_000;

fn now() -> Timestamp {
    Timestamp::from_seconds(NOW)
}

fn prometheus() -> PrometheusSource {
    PrometheusSource::new(Endpoint::new("http://127.0.0.1:9090"), "load")
}

fn by_instance(source: impl Into<QuerySource>) -> Query {
    Query::per_node::<Load>("load", source, |answer, nodes| {
        nodes.put_latest(answer.series()?, "instance", Load);
        Ok(())
    })
    .fresh_for(Duration::from_secs(90))
}

/// The facts in a line: `node value @age`, and what was left out.
fn words(query: &Query, body: &str) -> String {
    let facts = match query.read(body.as_bytes(), now()) {
        Ok(facts) => facts,
        Err(reason) => return format!("error: {reason}"),
    };
    assert!(query.owns(&facts));
    let (left_out, warnings) = (facts.left_out().clone(), facts.warnings().to_vec());
    let mut words: Vec<String> = facts
        .into_list()
        .iter()
        .map(|fact| {
            let Load(value) = fact.object.get::<Load>().expect("it is one");
            format!("{} {value} @{}", fact.object.key.name, now().since(fact.at).as_secs())
        })
        .collect();
    words.extend((!left_out.is_empty()).then(|| format!("without {left_out}")));
    words.extend(warnings.iter().map(|warning| format!("warns: {warning}")));
    words.join("; ")
}

fn vector(samples: &[(&str, f64, &str)]) -> String {
    let result: Vec<_> = samples
        .iter()
        .map(|(instance, age, value)| json!({"metric": {"instance": instance}, "value": [NOW as f64 - age, value]}))
        .collect();
    json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string()
}

#[test]
fn what_prometheus_answers_is_read_and_what_does_not_count_is_counted() {
    let table = [
        (vector(&[]), ""),
        (vector(&[("n1", 0.0, "0.5"), ("n2:9100", 10.0, "1")]), "n1 0.5 @0; n2:9100 1 @10"),
        (vector(&[("n1", 89.9, "1"), ("n2", 90.0, "1"), ("n3", 86_400.0, "1")]), "n1 1 @89; without 2 too old"),
        (vector(&[("n1", -30.0, "1"), ("n2", -31.0, "1"), ("n3", -1e300, "1")]), "n1 1 @0; without 2 from the future"),
        (
            vector(&[("n1", 0.0, "NaN"), ("n2", 0.0, "+Inf"), ("n3", 0.0, "many"), ("n4", 0.0, "-2e3")]),
            "n4 -2000 @0; without 3 no finite numbers",
        ),
        (vector(&[("", 0.0, "1"), ("n2", 0.0, "1")]), "n2 1 @0; without 1 without a node"),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"n1"},"histogram":[1,{}]}]}}"#.to_owned(),
            "without 1 no finite numbers",
        ),
        (
            r#"{"status":"success","warnings":["one store \u001b is down"],"data":{"resultType":"vector","result":[]}}"#.to_owned(),
            r"warns: one store \u001b is down",
        ),
        (
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.to_owned(),
            r#"error: Prometheus says "error": bad_data: parse error"#,
        ),
        (r#"{"status":"success"}"#.to_owned(), "error: Prometheus says that all went well, and sends no data"),
        (
            r#"{"status":"success","data":{"resultType":"string","result":[1,"x"]}}"#.to_owned(),
            "error: Prometheus answers with a string and no number: use another expression",
        ),
        (String::new(), "error: the answer is empty"),
        (" \r\n".to_owned(), "error: the answer is empty"),
        (
            "<html>no".to_owned(),
            r#"error: the answer is not what it should be: expected value at line 1 column 1; it begins with "<html>no""#,
        ),
    ];
    for (body, expected) in table {
        assert_eq!(words(&by_instance(prometheus()), &body), expected, "{body}");
    }
    let cut = &vector(&[("n1", 0.0, "1")])[..40];
    assert!(
        words(&by_instance(prometheus()), cut).starts_with("error: the answer is not what it should be: EOF")
    );
}

#[test]
fn a_range_counts_if_its_newest_sample_is_fresh() {
    let range = prometheus().over(Duration::from_secs(600), Duration::from_secs(60));
    let query = Query::per_node::<Load>("load", range, |answer, nodes| {
        for series in answer.series()? {
            let sum: f64 = series.samples().iter().map(|sample| sample.value).sum();
            let (node, latest) = (series.label("node").unwrap_or_default(), series.latest());
            nodes.put_at(node, Load(sum), latest.ok_or("a series has samples")?.at);
        }
        Ok(())
    })
    .fresh_for(Duration::from_secs(90));
    let series = |node: &str, samples: &[(i64, &str)]| {
        let values: Vec<_> = samples.iter().map(|(age, value)| json!([NOW - age, value])).collect();
        json!({"metric": {"node": node}, "values": values})
    };
    let body = json!({"status": "success", "data": {"resultType": "matrix", "result": [
        series("n1", &[(600, "1"), (300, "NaN"), (60, "2")]),
        series("n2", &[(600, "1"), (100, "2")]),
        series("n3", &[(60, "4"), (-300, "8")]),
    ]}});
    assert_eq!(
        words(&query, &body.to_string()),
        "n1 3 @60; n3 4 @60; without 2 too old, 1 from the future, 1 no finite numbers"
    );
}

#[test]
fn what_the_metrics_api_answers_is_read() {
    let query = Query::per_node::<Load>("load", QuerySource::NodeMetrics, |answer, nodes| {
        for usage in answer.node_metrics()? {
            nodes.put_at(&usage.node, Load(usage.milli_cpu as f64 + usage.memory as f64 / 1024.0), usage.at);
        }
        Ok(())
    });
    let item = |node: &str, time: &str, cpu: &str| json!({"metadata": {"name": node}, "timestamp": time, "window": "20s", "usage": {"cpu": cpu, "memory": "2Ki"}});
    let list = json!({"kind": "NodeMetricsList", "items": [
        item("n1", "1970-01-12T13:46:30Z", "156340245n"), item("n2", "1970-01-11T13:46:30Z", "1")]});
    assert_eq!(words(&query, &list.to_string()), "n1 159 @10; without 1 too old");
    let nameless = json!({"timestamp": "1970-01-12T13:46:30Z", "usage": {"cpu": "1", "memory": "1"}});
    let odd = json!({"items": [item("n1", "1970-01-12T13:46:30Z", "lots"), nameless, 7, item("n2", "1970-01-12T13:46:30Z", "1")]});
    assert_eq!(words(&query, &odd.to_string()), "n2 1002 @10; without 3 that cannot be read");
    for nonsense in [r#"{"items": 7}"#, r#"{"items": [{"timestamp"]}"#, "[]", "{}"] {
        assert!(
            words(&query, nonsense).starts_with("error: the answer is not what it should be"),
            "{nonsense}"
        );
    }
}

#[test]
fn text_is_read_by_the_plugin_with_its_parameters() {
    let source = LineSource::new("agent:8765", "getSuggestion");
    let query = Query::per_node::<Load>("suggestion", source, |answer, nodes| {
        let factor: f64 = answer.parameter("factor").parse().map_err(|_| "factor is no number".to_owned())?;
        for (node, score) in answer.json::<BTreeMap<String, f64>>()? {
            nodes.put(&node, Load(score * factor));
        }
        Ok(())
    });
    let text = r#"{"10.0.0.1": 10, "10.0.0.2": 1}"#;
    assert_eq!(words(&query.clone().with("factor", "2"), text), "10.0.0.1 20 @0; 10.0.0.2 2 @0");
    assert_eq!(words(&query, text), "error: factor is no number");
    let series = Query::whole::<Load>("one", HttpSource::get(Endpoint::new("http://a")), |answer| {
        answer.series().map(|_| Load(0.0))
    });
    let error = "error: only Prometheus answers with series: the plugin expects another source";
    assert_eq!(words(&series, text), error);
    assert!(query.read(b"\xff\xfe", now()).is_err_and(|error| error.starts_with("the answer is no text")));
}

#[test]
fn a_whole_answer_is_as_old_as_its_oldest_series() {
    let query = Query::whole::<Load>("total", prometheus(), |answer| {
        Ok(Load(answer.series()?.iter().filter_map(Series::latest).map(|sample| sample.value).sum()))
    });
    assert_eq!(words(&query, &vector(&[("a", 5.0, "1"), ("b", 20.0, "2")])), "total 3 @20");
    let scalar = format!(r#"{{"status":"success","data":{{"resultType":"scalar","result":[{NOW},"7"]}}}}"#);
    assert_eq!(words(&query, &scalar), "total 7 @0");
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_reason() {
    let http = |url: &str| by_instance(HttpSource::get(Endpoint::new(url)));
    let of = |endpoint: Endpoint| by_instance(HttpSource::get(endpoint));
    let good = || Endpoint::new("https://a.b:1/c?d=e");
    let line = |address: &str, line: &str| by_instance(LineSource::new(address, line));
    let seconds = Duration::from_secs;
    let files = |cert: Option<&str>, key: Option<&str>| QueryTls {
        cert_file: cert.map(PathBuf::from),
        key_file: key.map(PathBuf::from),
        ..QueryTls::default()
    };
    let insecure = QueryTls { insecure_skip_verify: true, ..QueryTls::default() };
    let table = [
        (http("http://[::1]:80/x"), ""),
        (of(good().header("X-Scope-OrgID", "a b").bearer_token_file("/t").tls(insecure.clone())), ""),
        (line("localhost:8765", "getSuggestion"), ""),
        (http(""), "url: an address such as"),
        (http("prometheus:9090"), "begins with http://"),
        (http("ftp://a"), "begins with http://"),
        (http("http://"), r#""" is no name of a host"#),
        (http("http://a b"), "' ' cannot be part"),
        (http("http://a:99999"), r#""99999" is no port"#),
        (http("http://a:"), r#""" is no port"#),
        (http("http://[::g]"), "is no IPv6 address"),
        (http("http://me:secret@a"), "use headers or bearerTokenFile"),
        (http("http://a#b"), "no part behind #"),
        (of(good().header("a b", "c")), r#""a b" is no name of a header"#),
        (of(good().header("Host", "c")), "set by the client itself"),
        (of(good().header("a", "c\n")), "the value of a has characters"),
        (of(good().header("authorization", "c").bearer_token_file("/t")), "Authorization already"),
        (of(good().tls(files(Some("/c"), None))), "certFile and keyFile belong together"),
        (of(good().tls(QueryTls { ca_file: Some("/c".into()), ..insecure.clone() })), "makes caFile useless"),
        (of(Endpoint::new("http://a").tls(insecure)), "the address is not https"),
        (line("localhost", "x"), "the port is missing"),
        (line("localhost:1", "x\ny"), "no line end in it"),
        (by_instance(PrometheusSource::new(Endpoint::new("http://a?b=c"), "up")), "has a query already"),
        (by_instance(PrometheusSource::new(Endpoint::new("http://a"), " ")), "an expression has"),
        (by_instance(prometheus().over(seconds(60), seconds(61))), "a range of 60s in steps of 61s"),
        (by_instance(prometheus().over(seconds(11_001), seconds(1))), "a range of"),
        (by_instance(prometheus().over(seconds(60), Duration::ZERO)), "a range of"),
        (by_instance(prometheus()).every(Duration::ZERO), "an interval of 0ns is not from 100ms"),
        (by_instance(prometheus()).within(seconds(301)), "a deadline of 301s"),
        (by_instance(prometheus()).every(seconds(100)), "an age of 90s is not from 100s"),
        (by_instance(prometheus()).at_most(0), "a limit of 0 bytes"),
        (Query::whole::<Load>("a b", prometheus(), |_| Ok(Load(0.0))), "a query is named by"),
    ];
    for (query, expected) in table {
        let problem = query.validate().err().unwrap_or_default();
        assert!(
            problem.contains(expected) && problem.is_empty() == expected.is_empty(),
            "{query:?}: {problem}"
        );
    }
}

#[test]
fn an_endpoint_in_arguments_says_what_is_wrong_at_its_path_and_keeps_secrets() {
    let text = json!({"url": "http://a", "headers": {"X-Key": "secret\u{7f}"}, "tls": {"caFile": "/c"}});
    let endpoint: Endpoint = serde_json::from_value(text).expect("it can be read");
    let mut problems = crate::FieldProblems::default();
    endpoint.validate("prometheus", &mut problems);
    Endpoint::default().validate("", &mut problems);
    let mut found = String::new();
    for problem in problems.into_vec() {
        writeln!(found, "{problem}").expect("strings take everything");
    }
    assert_eq!(
        found,
        "prometheus.headers: Forbidden: the value of X-Key has characters that no header can have\n\
         prometheus.tls: Forbidden: the address is not https, so that nothing is secured: change one of them\n\
         url: Required value: an address such as http://prometheus.monitoring:9090\n"
    );
    assert!(!format!("{endpoint:?}").contains("secret"));
    let again = serde_json::to_value(&endpoint).expect("it can be written");
    assert_eq!(serde_json::from_value::<Endpoint>(again).expect("and read"), endpoint);
}

#[test]
fn queries_are_told_apart_by_all_that_is_asked() {
    let query = by_instance(prometheus());
    assert_eq!(query, query.clone());
    let slower = query.clone().every(Duration::from_secs(31));
    assert!(query != slower && query.asks_the_same(&slower), "the answers mean the same");
    let other = by_instance(prometheus().over(Duration::from_secs(60), Duration::from_secs(1)));
    assert!(!query.asks_the_same(&other) && !query.asks_the_same(&query.clone().with("a", "b")));
}
