//! What is counted about queries: whom plugins want to hear from.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Metrics;
use super::series::{Series, buckets};

/// The metrics about queries.
#[derive(Clone, Debug)]
pub(super) struct QuerySeries {
    answers: Series<2, Counter>,
    duration: Series<1, Histogram>,
    answer_bytes: Series<1, Gauge>,
    last_answer: Series<1, Gauge>,
    facts: Series<1, Gauge>,
    left_out: Series<2, Counter>,
    questions: Series<2, Counter>,
}

impl QuerySeries {
    pub(super) fn new(all: &mut Registry) -> Self {
        QuerySeries {
            answers: Series::counter(
                all,
                "supercargo_query_answers",
                "Number of times that a query was asked, by what came of it",
                ["query", "result"],
            ),
            duration: Series::histogram(
                all,
                "supercargo_query_duration_seconds",
                "How long it took to ask a query and to read the answer, or to give up",
                ["query"],
                || buckets(0.001, 2.0, 18),
            ),
            answer_bytes: Series::gauge(
                all,
                "supercargo_query_answer_bytes",
                "How long the last answer to a query was",
                ["query"],
            ),
            last_answer: Series::gauge(
                all,
                "supercargo_query_last_answer_timestamp_seconds",
                "When a query was answered at last, in seconds since the epoch; its age is time() minus this",
                ["query"],
            ),
            facts: Series::gauge(
                all,
                "supercargo_query_facts",
                "Number of facts of a query that are fresh, and go into decisions",
                ["query"],
            ),
            left_out: Series::counter(
                all,
                "supercargo_query_left_out",
                "Number of things that a query was answered and that do not count, by why",
                ["query", "reason"],
            ),
            questions: Series::counter(
                all,
                "supercargo_question_answers",
                "Number of times that somebody was asked about a pod, by what came of it",
                ["question", "result"],
            ),
        }
    }
}

impl Metrics {
    /// A query was asked: what came of it, and how long that took.
    pub fn query_asked(&mut self, query: &str, result: &str, took: Duration) {
        self.queries.answers.of([query, result]).inc();
        self.queries.duration.of([query]).observe(took.as_secs_f64());
    }

    /// A query was answered, at so many seconds since the epoch: how long the answer is.
    pub fn query_answered(&mut self, query: &str, bytes: usize, seconds: i64) {
        self.queries.answer_bytes.of([query]).set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.queries.last_answer.of([query]).set(seconds);
    }

    /// How many facts of a query there are.
    pub fn query_facts(&mut self, query: &str, facts: usize) {
        self.queries.facts.of([query]).set(i64::try_from(facts).unwrap_or(i64::MAX));
    }

    /// Somebody was asked about a pod.
    pub fn question_asked(&mut self, question: &str, result: &str) {
        self.queries.questions.of([question, result]).inc();
    }

    /// So much of an answer does not count.
    pub fn query_left_out(&mut self, query: &str, reason: &str, times: u64) {
        self.queries.left_out.of([query, reason]).inc_by(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_counted_by_what_came_of_it() {
        let (mut metrics, exposition) = Metrics::new();
        metrics.query_asked("load", "success", Duration::from_millis(3));
        metrics.query_asked("load", "timeout", Duration::from_secs(5));
        metrics.query_answered("load", 4096, 1_800_000_000);
        metrics.query_facts("load", 5000);
        metrics.query_left_out("load", "unknown node", 2);
        let text = exposition.text();
        for line in [
            r#"supercargo_query_answers_total{query="load",result="success"} 1"#,
            r#"supercargo_query_answers_total{query="load",result="timeout"} 1"#,
            r#"supercargo_query_duration_seconds_count{query="load"} 2"#,
            r#"supercargo_query_answer_bytes{query="load"} 4096"#,
            r#"supercargo_query_last_answer_timestamp_seconds{query="load"} 1800000000"#,
            r#"supercargo_query_facts{query="load"} 5000"#,
            r#"supercargo_query_left_out_total{query="load",reason="unknown node"} 2"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
        }
    }
}
