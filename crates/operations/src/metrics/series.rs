//! A metric with labels, and the handles that have been used.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// How many series a metric has at most. What comes later is counted together, as `other`: labels come partly from outside,
/// and a scrape must stay small.
pub(super) const SERIES_MAX: usize = 2_000;

/// What stands for everything beyond [`SERIES_MAX`].
pub(super) const OTHER: &str = "other";

type Labels<const N: usize> = [(&'static str, String); N];

/// Makes new series of a metric.
#[derive(Clone)]
pub(super) struct Make<M>(fn() -> M);

impl<M> MetricConstructor<M> for Make<M> {
    fn new_metric(&self) -> M {
        (self.0)()
    }
}

impl<M> std::fmt::Debug for Make<M> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Make")
    }
}

/// A metric with `N` labels.
#[derive(Clone, Debug)]
pub(super) struct Series<const N: usize, M> {
    names: [&'static str; N],
    family: Family<Labels<N>, M, Make<M>>,
    /// The handles used so far, sorted by the labels' values.
    known: Vec<([Box<str>; N], M)>,
}

impl<const N: usize> Series<N, Counter> {
    /// A counter. The name is without `_total`, which the text gets.
    pub(super) fn counter(registry: &mut Registry, name: &str, help: &str, names: [&'static str; N]) -> Self {
        Series::new(registry, name, help, names, Counter::default)
    }
}

impl<const N: usize> Series<N, Gauge> {
    pub(super) fn gauge(registry: &mut Registry, name: &str, help: &str, names: [&'static str; N]) -> Self {
        Series::new(registry, name, help, names, Gauge::default)
    }
}

impl<const N: usize, M: Clone> Series<N, M>
where
    Family<Labels<N>, M, Make<M>>: Metric,
{
    fn new(
        registry: &mut Registry,
        name: &str,
        help: &str,
        names: [&'static str; N],
        make: fn() -> M,
    ) -> Self {
        let family = Family::new_with_constructor(Make(make));
        registry.register(name, help, family.clone());
        Series { names, family, known: Vec::new() }
    }
}

impl<const N: usize, M: Clone> Series<N, M> {
    /// The series with these values. One that has been used before is found without a lock and without allocating.
    pub(super) fn of(&mut self, values: [&str; N]) -> &M {
        let values = match self.position(values) {
            Ok(index) => return &self.known[index].1,
            Err(_) if self.known.len() >= SERIES_MAX => [OTHER; N],
            Err(_) => values,
        };
        let index = self.position(values).unwrap_or_else(|index| {
            let mut labels = self.names.map(|name| (name, String::new()));
            for ((_, label), value) in labels.iter_mut().zip(values) {
                value.clone_into(label);
            }
            let metric = self.family.get_or_create(&labels).clone();
            self.known.insert(index, (values.map(Box::from), metric));
            index
        });
        &self.known[index].1
    }

    fn position(&self, values: [&str; N]) -> Result<usize, usize> {
        self.known.binary_search_by(|(known, _)| known.iter().map(AsRef::as_ref).cmp(values))
    }
}

impl<const N: usize> Series<N, Histogram> {
    /// A histogram with these upper bounds.
    pub(super) fn histogram(
        registry: &mut Registry,
        name: &str,
        help: &str,
        names: [&'static str; N],
        make: fn() -> Histogram,
    ) -> Self {
        Series::new(registry, name, help, names, make)
    }
}

/// A histogram whose buckets grow by a factor, multiplied step by step as Go's `ExponentialBuckets` does: the bounds are
/// labels, and must be the same to the last digit.
pub(super) fn buckets(start: f64, factor: f64, count: usize) -> Histogram {
    Histogram::new(std::iter::successors(Some(start), |bound| Some(bound * factor)).take(count))
}
