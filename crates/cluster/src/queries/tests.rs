use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use supercargo_client::fake::{Answer, Fake};
use supercargo_framework::{QuerySource, fact_kind};
use supercargo_model::{Kind, KindId, Timestamp};
use tokio::time::timeout;

use super::*;
use crate::tasks::Supervisor;

#[derive(Debug, PartialEq, Deserialize)]
struct Load(i64);

impl Kind for Load {
    const ID: KindId = fact_kind("Load", "loads");
}

fn query(name: &str) -> Query {
    let query = Query::per_node::<Load>(name, QuerySource::NodeMetrics, |answer, nodes| {
        for usage in answer.node_metrics()? {
            nodes.put_at(&usage.node, Load(usage.milli_cpu), usage.at);
        }
        Ok(())
    });
    query.every(Duration::from_secs(10)).within(Duration::from_secs(5))
}

/// Queries of a metrics API that is up or down.
struct Bench {
    queries: Queries,
    heard: mpsc::Receiver<QueryHeard>,
    is_up: Arc<AtomicBool>,
    fake: Fake,
    _supervisor: Supervisor,
}

impl Bench {
    fn new() -> Self {
        let is_up = Arc::new(AtomicBool::new(true));
        let up = is_up.clone();
        let fake = Fake::new(move |_| match up.load(Ordering::SeqCst) {
            true => Answer::ok(r#"{"items": []}"#),
            false => Answer::status(503, "down"),
        });
        let supervisor = Supervisor::new();
        let (server, clock) = (ApiServer::new(fake.service(), None), Clock::from_fn(Timestamp::default));
        let (queries, heard) = Queries::new(server, clock, 7, supervisor.tasks());
        Bench { queries, heard, is_up, fake, _supervisor: supervisor }
    }

    /// How long it takes until something is heard of a query; takes note of it.
    async fn next(&mut self) -> (Duration, QueryHeard) {
        let began = Instant::now();
        let heard = self.heard.recv().await.expect("somebody asks");
        let outcome =
            heard.asked.answer.as_ref().map(|facts| facts.warnings().to_vec()).map_err(Clone::clone);
        let taken = AnswerTaken { facts: 3, changed: 0, gone: 0, left_out: Default::default() };
        self.queries.note(&heard.query, &outcome, outcome.is_ok().then_some(&taken));
        (began.elapsed(), heard)
    }

    fn lines(&self) -> Vec<String> {
        let words = |line: QueryLine| match line.reason {
            Some(reason) => format!("{} ({reason})", line.summary),
            None => line.summary,
        };
        self.queries.statuses().lines().into_iter().map(words).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_query_is_asked_in_its_interval_and_less_often_while_it_fails() {
    let mut bench = Bench::new();
    bench.queries.ask(&[query("load")]);
    assert_eq!(bench.lines(), ["query load: no answer in 0 s"]);
    let (wait, _) = bench.next().await;
    assert!(wait < FIRST_WAIT_MAX, "{wait:?}");
    for _ in 0..3 {
        let (wait, heard) = bench.next().await;
        assert_eq!(wait.as_secs(), 10);
        assert!(heard.asked.answer.is_ok() && bench.queries.is_current(&heard));
    }
    sleep(Duration::from_secs(4)).await;
    assert_eq!(bench.lines(), ["query load: 3 facts, answered 4 s ago"]);

    bench.is_up.store(false, Ordering::SeqCst);
    bench.next().await;
    for expected in [10, 15, 22, 33, 40, 40, 40] {
        let (wait, heard) = bench.next().await;
        let range = expected..=expected * 11 / 10 + 1;
        assert!(range.contains(&wait.as_secs()), "{wait:?} for {expected} s");
        assert!(heard.asked.answer.is_err());
    }
    let lines = bench.lines();
    assert!(lines[0].starts_with("query load: 3 facts, answered 2"), "{lines:?}");
    assert!(lines[0].ends_with("failed 8 times since (the metrics API: down)"), "{lines:?}");

    bench.is_up.store(true, Ordering::SeqCst);
    bench.next().await;
    assert_eq!(bench.lines(), ["query load: 3 facts, answered 0 s ago"]);
    assert_eq!(bench.next().await.0.as_secs(), 10);
    bench.queries.statuses().note_facts(&[("load".to_owned(), 1)].into());
    assert_eq!(bench.lines(), ["query load: 1 facts, answered 0 s ago"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_changes_with_the_plugins() {
    let mut bench = Bench::new();
    let one = query("one");
    bench.queries.ask(std::slice::from_ref(&one));
    let (_, first) = bench.next().await;
    // Nothing changes for a query that stays.
    bench.queries.ask(&[one.clone(), query("two")]);
    assert!(bench.queries.is_current(&first));
    assert_eq!(bench.next().await.1.query, "two");
    let lines = bench.lines();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("3 facts")), "{lines:?}");

    // One that is asked more often is another task, but what is known of it stays.
    let often = one.every(Duration::from_secs(2));
    bench.queries.ask(std::slice::from_ref(&often));
    assert!(!bench.queries.is_current(&first), "what it still says counts for nothing");
    assert!(bench.lines().len() == 1 && bench.lines()[0].contains("3 facts"), "{:?}", bench.lines());
    bench.next().await;
    let (wait, heard) = bench.next().await;
    assert_eq!((&*heard.query, wait.as_secs()), ("one", 2));

    bench.queries.ask(&[]);
    let asked = bench.fake.requests().len();
    assert!(timeout(Duration::from_secs(100), bench.heard.recv()).await.is_err());
    assert_eq!((bench.lines(), bench.fake.requests().len()), (vec![], asked));
}

#[tokio::test(start_paused = true)]
async fn queries_that_begin_together_are_not_asked_together() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..10).map(|number| format!("q{number}")).collect();
    let began = Instant::now();
    bench.queries.ask(&names.iter().map(|name| query(name)).collect::<Vec<_>>());
    let mut moments = Vec::new();
    for _ in &names {
        bench.next().await;
        moments.push(began.elapsed().as_millis());
    }
    moments.dedup();
    assert!(moments.len() > 5, "{moments:?}");
}
