//! Whom plugins want to hear from, asked by a scheduler that runs.

use serde::Deserialize;
use supercargo_framework::{Query, QuerySource, Reads, fact_kind};
use supercargo_model::{Kind, KindId};

use super::reload::Reloaded;
use super::*;

/// What a node uses, in thousandths of a core.
#[derive(Debug, PartialEq, Deserialize)]
struct Usage(i64);

impl Kind for Usage {
    const ID: KindId = fact_kind("Usage", "usages");
}

/// Lets no pod go where more than a core is used; where nobody knows, all may go.
struct Idle;

impl Plugin for Idle {
    const NAME: &'static str = "Idle";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Idle
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        let usage = Query::per_node::<Usage>("usage", QuerySource::NodeMetrics, |answer, nodes| {
            for usage in answer.node_metrics()? {
                nodes.put_at(&usage.node, Usage(usage.milli_cpu), usage.at);
            }
            Ok(())
        });
        Reads::nothing().query(usage.every(Duration::from_secs(10)))
    }
}

impl Filter for Idle {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match cycle.object_of::<Usage>(node) {
            Some(Usage(milli_cpu)) if *milli_cpu > 1000 => Status::unschedulable("node(s) were not idle"),
            _ => Status::success(),
        }
    }
}

const IDLE: &str = "{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: '*'}], \
    enabled: [{name: PrioritySort}, {name: Idle}, {name: DefaultBinder}]}}}";
const PLAIN: &str = "{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: '*'}], \
    enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}}";

fn registry() -> Registry {
    let mut registry = supercargo_plugins::registry();
    registry.register::<Idle>().expect("nobody else has the name");
    registry
}

/// What the metrics API says at some second of the test, which began about when the clock had this time.
fn metrics(began: Instant, cpu: &str) -> Option<String> {
    let seconds = began.elapsed().as_secs();
    let time = format!("2027-01-15T08:{:02}:{:02}Z", seconds / 60, seconds % 60);
    let item = |node: &str| {
        format!(
            r#"{{"metadata":{{"name":"{node}"}},"timestamp":"{time}","usage":{{"cpu":"{cpu}","memory":"1Gi"}}}}"#
        )
    };
    Some(format!(r#"{{"items":[{},{}]}}"#, item("n1"), item("another")))
}

fn shows(reloaded: &Reloaded, line: &str) -> bool {
    reloaded.exposition.text().lines().any(|found| found == line)
}

#[tokio::test(start_paused = true)]
async fn pods_go_by_what_was_answered_and_without_it_when_nobody_answers() {
    let began = Instant::now();
    let reloaded = Reloaded::start_with(registry(), IDLE).await;
    reloaded.server.set_node_metrics(metrics(began, "3"));
    sleep(Duration::from_secs(20)).await;
    reloaded.server.add_pod("a");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(reloaded.server.bound(), [""; 0], "the node is busy");
    assert!(shows(&reloaded, "supercargo_query_facts{query=\"usage\"} 1"), "{}", reloaded.exposition.text());
    let line = &reloaded.queries.lines()[0].summary;
    assert!(
        line.starts_with("query usage: 1 facts, answered") && line.ends_with("1 of unknown nodes"),
        "{line}"
    );

    reloaded.server.set_node_metrics(metrics(began, "500m"));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(reloaded.server.bound(), ["a on n1"], "the node is idle");

    reloaded.server.set_node_metrics(metrics(began, "3"));
    sleep(Duration::from_secs(12)).await;
    reloaded.server.add_pod("b");
    reloaded.server.set_node_metrics(None);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(reloaded.server.bound().len(), 1, "what was answered is fresh");
    sleep(Duration::from_secs(30)).await;
    assert_eq!(reloaded.server.bound()[1..], ["b on n1"], "nobody knows any more whether the node is busy");
    let text = reloaded.exposition.text();
    assert!(shows(&reloaded, "supercargo_query_facts{query=\"usage\"} 0"), "{text}");
    assert!(text.contains("supercargo_query_answers_total{query=\"usage\",result=\"refused\"} "), "{text}");
    assert!(
        text.contains("supercargo_query_left_out_total{query=\"usage\",reason=\"unknown node\"} "),
        "{text}"
    );
    let line = &reloaded.queries.lines()[0];
    assert!(line.reason.as_ref().is_some_and(|reason| reason.contains("metrics-server")), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reload_begins_and_ends_queries_and_does_not_wait_for_answers() {
    let began = Instant::now();
    let reloaded = Reloaded::start_with(registry(), PLAIN).await;
    assert_eq!((reloaded.server.metrics_asked(), reloaded.queries.lines().len()), (0, 0));
    // Nobody serves it, which keeps no configuration from being taken up.
    reloaded.write(&[IDLE]);
    sleep(Duration::from_secs(3)).await;
    assert!(reloaded.server.metrics_asked() > 0 && reloaded.queries.lines().len() == 1);
    reloaded.server.add_pod("a");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(reloaded.server.bound(), ["a on n1"]);
    reloaded.server.set_node_metrics(metrics(began, "3"));
    sleep(Duration::from_secs(15)).await;
    reloaded.server.add_pod("b");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(reloaded.server.bound().len(), 1);
    reloaded.write(&[PLAIN]);
    sleep(Duration::from_secs(15)).await;
    assert_eq!(reloaded.server.bound()[1..], ["b on n1"]);
    let asked = reloaded.server.metrics_asked();
    sleep(Duration::from_secs(100)).await;
    assert_eq!((reloaded.server.metrics_asked(), reloaded.queries.lines().len()), (asked, 0));
    assert!(shows(&reloaded, "supercargo_query_facts{query=\"usage\"} 0"));
}
