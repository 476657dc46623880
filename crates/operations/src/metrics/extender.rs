//! What `supercargo extender` counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::series::{Series, buckets};
use super::{Exposition, count};

/// What an extender writes to. Clones write to the same.
#[derive(Clone, Debug)]
pub struct ExtenderMetrics(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    questions: Series<2, Counter>,
    seconds: Series<1, Histogram>,
    watch_restarts: Series<1, Counter>,
    nodes: Series<0, Gauge>,
    pods: Series<0, Gauge>,
}

impl ExtenderMetrics {
    /// All metrics, and what a scrape reads of them. Those of these verbs and outcomes are there from the start: an alert on a rate wants
    /// to see the zero.
    pub fn new(verbs: &[&str], outcomes: &[&str]) -> (Self, Exposition) {
        let mut registry = Registry::default();
        let all = &mut registry;
        let mut counted = Counted {
            questions: Series::counter(
                all,
                "supercargo_extender_questions",
                "Number of questions of a scheduler, by what was asked and how it was answered",
                ["outcome", "verb"],
            ),
            seconds: Series::histogram(
                all,
                "supercargo_extender_question_duration_seconds",
                "Time from the head of a question to its answer, by what was asked",
                ["verb"],
                || buckets(0.000_05, 2.0, 18),
            ),
            watch_restarts: Series::counter(
                all,
                "supercargo_watch_restarts",
                "Number of times a watch had to list everything again, by kind",
                ["kind"],
            ),
            nodes: Series::gauge(all, "supercargo_extender_nodes", "Number of nodes that are known", []),
            pods: Series::gauge(
                all,
                "supercargo_extender_bound_pods",
                "Number of bound pods that are known",
                [],
            ),
        };
        for verb in verbs {
            for outcome in outcomes {
                counted.questions.of([outcome, verb]);
            }
            counted.seconds.of([verb]);
        }
        (ExtenderMetrics(Arc::new(Mutex::new(counted))), Exposition { registry: Arc::new(registry) })
    }

    /// A question was answered.
    pub fn answered(&self, verb: &str, outcome: &str, took: Duration) {
        let mut counted = self.lock();
        counted.questions.of([outcome, verb]).inc();
        counted.seconds.of([verb]).observe(took.as_secs_f64());
    }

    /// A watch had to list everything again.
    pub fn watch_restarted(&self, kind: &str) {
        self.lock().watch_restarts.of([kind]).inc();
    }

    /// So many nodes and bound pods are known.
    pub fn stands(&self, nodes: usize, pods: usize) {
        let mut counted = self.lock();
        counted.nodes.of([]).set(count(nodes));
        counted.pods.of([]).set(count(pods));
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
