//! What plugins count, and what is counted about them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Metrics;
use super::series::{OTHER, SERIES_MAX, Series};

/// The labels of a plugin's count, sorted.
type CountLabels = Vec<(String, String)>;

/// The metrics about plugins.
#[derive(Clone, Debug)]
pub(super) struct PluginSeries {
    counts: Family<CountLabels, Counter>,
    /// The counts so far; no more than [`SERIES_MAX`] of them.
    known: BTreeMap<CountLabels, Counter>,
    gauges: Family<CountLabels, Gauge<f64, AtomicU64>>,
    /// The labels of what each gauge of a plugin shows.
    shown: BTreeMap<(String, String), BTreeSet<CountLabels>>,
    panics: Series<1, Counter>,
    slow: Series<1, Counter>,
    refused: Series<2, Counter>,
}

impl PluginSeries {
    pub(super) fn new(all: &mut Registry) -> Self {
        let counts = Family::default();
        let help = "What plugins count, by the plugin, what it counts, and the plugin's own labels";
        all.register("supercargo_plugin_counts", help, Family::clone(&counts));
        let gauges = Family::default();
        let help = "What plugins measure, by the plugin, what it measures, and the plugin's own labels";
        all.register("supercargo_plugin_gauge", help, Family::clone(&gauges));
        PluginSeries {
            counts,
            known: BTreeMap::new(),
            gauges,
            shown: BTreeMap::new(),
            panics: Series::counter(
                all,
                "supercargo_plugin_panics",
                "Number of panics of plugins; their pods are tried again after a backoff",
                ["plugin"],
            ),
            slow: Series::counter(
                all,
                "supercargo_plugin_slow",
                "Number of times that a plugin computed for a second or more for one pod",
                ["plugin"],
            ),
            refused: Series::counter(
                all,
                "supercargo_plugin_acts_refused",
                "Number of things that plugins asked for and that were not done, by why",
                ["plugin", "reason"],
            ),
        }
    }

    /// Shows these values of a gauge, as many as there is room for, and no others.
    fn gauge(&mut self, key: (String, String), values: impl Iterator<Item = (CountLabels, f64)>) {
        let before = self.shown.remove(&key).unwrap_or_default();
        let others: usize = self.shown.values().map(BTreeSet::len).sum();
        let mut shown = BTreeSet::new();
        for (labels, value) in values.take(SERIES_MAX.saturating_sub(others)) {
            self.gauges.get_or_create(&labels).set(value);
            shown.insert(labels);
        }
        for gone in before.difference(&shown) {
            self.gauges.remove(gone);
        }
        self.shown.insert(key, shown);
    }

    fn count(&mut self, labels: CountLabels) {
        let labels = match self.known.get(&labels) {
            Some(counter) => {
                counter.inc();
                return;
            }
            None if self.known.len() >= SERIES_MAX => {
                labels.into_iter().map(|(name, _)| (name, OTHER.to_owned())).collect()
            }
            None => labels,
        };
        let counter = self.counts.get_or_create(&labels).clone();
        counter.inc();
        self.known.insert(labels, counter);
    }
}

impl Metrics {
    /// A plugin counted something.
    pub fn plugin_counted<'a>(
        &mut self,
        plugin: &str,
        name: &str,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        self.plugins.count(all_labels(plugin, "count", name, labels));
    }

    /// A plugin says what a gauge shows from now on; what it does not repeat is not shown any more.
    pub fn plugin_gauge<'a>(
        &mut self,
        plugin: &str,
        name: &str,
        values: impl Iterator<Item = (Vec<(&'a str, &'a str)>, f64)>,
    ) {
        let values =
            values.map(|(labels, value)| (all_labels(plugin, "gauge", name, labels.into_iter()), value));
        self.plugins.gauge((plugin.to_owned(), name.to_owned()), values);
    }

    /// A plugin panicked.
    pub fn plugin_panicked(&mut self, plugin: &str) {
        self.plugins.panics.of([plugin]).inc();
    }

    /// A plugin computed for long for one pod.
    pub fn plugin_was_slow(&mut self, plugin: &str) {
        self.plugins.slow.of([plugin]).inc();
    }

    /// So much that a plugin asked for was not done.
    pub fn plugin_acts_refused(&mut self, plugin: &str, reason: &str, acts: u64) {
        self.plugins.refused.of([plugin, reason]).inc_by(acts);
    }
}

/// The labels of a plugin's count or gauge, which is named under that label: the plugin's own, and who it is.
fn all_labels<'a>(
    plugin: &str,
    kind: &str,
    name: &str,
    own: impl Iterator<Item = (&'a str, &'a str)>,
) -> CountLabels {
    let own = own.map(|(name, value)| (label_name(name), value.to_owned()));
    let mut labels: BTreeMap<String, String> = own.collect();
    labels.insert("plugin".to_owned(), plugin.to_owned());
    labels.insert(kind.to_owned(), name.to_owned());
    labels.into_iter().collect()
}

/// A label as the text format has it: what it does not allow becomes an underscore.
fn label_name(name: &str) -> String {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let name: String = name.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect();
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name
    } else {
        format!("_{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_plugins_count_is_shown_by_their_own_labels_and_limited() {
        let (mut metrics, exposition) = Metrics::new();
        let labels = [("group", "a"), ("1st-reason", "x\"y"), ("plugin", "liar")];
        metrics.plugin_counted("Gangs", "complete", labels.into_iter());
        metrics.plugin_counted("Gangs", "complete", labels.into_iter());
        let text = exposition.text();
        let line = r#"supercargo_plugin_counts_total{_1st_reason="x\"y",count="complete",group="a",plugin="Gangs"} 2"#;
        assert!(text.lines().any(|found| found == line), "{text}");
        for number in 0..SERIES_MAX + 5 {
            metrics.plugin_counted("Gangs", &number.to_string(), [].into_iter());
        }
        let text = exposition.text();
        let series = text.lines().filter(|line| line.starts_with("supercargo_plugin_counts_total{")).count();
        assert_eq!(series, SERIES_MAX + 1);
        assert!(
            text.contains("supercargo_plugin_counts_total{count=\"other\",plugin=\"other\"} 6\n"),
            "{text}"
        );
    }

    #[test]
    fn a_gauge_shows_what_was_said_last() {
        let (mut metrics, exposition) = Metrics::new();
        let shown = || {
            let text = exposition.text();
            let lines = text.lines().filter(|line| line.starts_with("supercargo_plugin_gauge{"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let line = |controller: &str, value: &str| {
            format!(
                "supercargo_plugin_gauge{{controller=\"{controller}\",gauge=\"qos\",plugin=\"QosAware\"}} {value}"
            )
        };
        let mut say = |values: &[(&str, f64)]| {
            let values = values.iter().map(|(controller, value)| (vec![("controller", *controller)], *value));
            metrics.plugin_gauge("QosAware", "qos", values);
        };
        say(&[("a", 0.5), ("b", 1.0)]);
        let mut both = shown();
        both.sort();
        assert_eq!(both, [line("a", "0.5"), line("b", "1.0")]);
        say(&[("a", 0.25)]);
        assert_eq!(shown(), [line("a", "0.25")]);
        let many: Vec<String> = (0..SERIES_MAX + 5).map(|number| number.to_string()).collect();
        say(&many.iter().map(|name| (name.as_str(), 1.0)).collect::<Vec<_>>());
        assert_eq!(shown().len(), SERIES_MAX);
        say(&[]);
        assert!(shown().is_empty());
    }
}
