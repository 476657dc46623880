//! What becomes of memories that plugins want saved.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::series::Series;
use super::{Metrics, outcome};

/// The metrics about saved memories.
#[derive(Clone, Debug)]
pub(super) struct MemorySeries {
    saves: Series<1, Counter>,
    conflicts: Series<0, Counter>,
    bytes: Series<0, Gauge>,
    saved_at: Series<0, Gauge>,
    unsaved: Series<2, Counter>,
    loads: Series<1, Counter>,
    dropped: Series<2, Counter>,
}

impl MemorySeries {
    pub(super) fn new(all: &mut Registry) -> Self {
        MemorySeries {
            saves: Series::counter(
                all,
                "supercargo_memory_saves",
                "Number of times that what plugins remember was written to the cluster, or could not be",
                ["result"],
            ),
            conflicts: Series::counter(
                all,
                "supercargo_memory_save_conflicts",
                "Number of times that somebody else had written meanwhile and was overwritten",
                [],
            ),
            bytes: Series::gauge(
                all,
                "supercargo_memory_saved_bytes",
                "Bytes of what plugins remember, when it was last written",
                [],
            ),
            saved_at: Series::gauge(
                all,
                "supercargo_memory_saved_timestamp_seconds",
                "Seconds since the epoch at which what plugins remember was last written, by this replica or the one before",
                [],
            ),
            unsaved: Series::counter(
                all,
                "supercargo_memory_unsaved",
                "Number of times that a memory was not among what was written, because it is too large or cannot be written",
                ["plugin", "memory"],
            ),
            loads: Series::counter(
                all,
                "supercargo_memory_loads",
                "Number of times that what was saved was read before the first decision, or could not be in time",
                ["result"],
            ),
            dropped: Series::counter(
                all,
                "supercargo_memory_dropped",
                "Number of saved memories that were not restored, by why",
                ["plugin", "reason"],
            ),
        }
    }
}

impl Metrics {
    /// What plugins remember was written: so many bytes, at so many seconds since the epoch.
    pub fn memories_saved(&mut self, bytes: usize, at_seconds: i64, had_conflict: bool) {
        let memories = &mut self.memories;
        memories.saves.of([outcome(true)]).inc();
        memories.conflicts.of([]).inc_by(u64::from(had_conflict));
        memories.bytes.of([]).set(i64::try_from(bytes).unwrap_or(i64::MAX));
        memories.saved_at.of([]).set(at_seconds);
    }

    /// What plugins remember could not be written.
    pub fn memories_not_saved(&mut self) {
        self.memories.saves.of([outcome(false)]).inc();
    }

    /// A memory was not among what was written.
    pub fn memory_unsaved(&mut self, plugin: &str, memory: &str) {
        self.memories.unsaved.of([plugin, memory]).inc();
    }

    /// What was saved was read, or could not be; and when it was written, if that is known.
    pub fn memories_loaded(&mut self, success: bool, saved_at_seconds: Option<i64>) {
        self.memories.loads.of([outcome(success)]).inc();
        if let Some(seconds) = saved_at_seconds {
            self.memories.saved_at.of([]).set(seconds);
        }
    }

    /// A saved memory was not restored.
    pub fn memory_dropped(&mut self, plugin: &str, reason: &str) {
        self.memories.dropped.of([plugin, reason]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_memories_is_shown() {
        let (mut metrics, exposition) = Metrics::new();
        metrics.memories_loaded(true, Some(7));
        metrics.memories_loaded(false, None);
        metrics.memories_saved(120, 9, true);
        metrics.memories_not_saved();
        metrics.memory_unsaved("P", "M");
        metrics.memory_dropped("P", "version");
        let text = exposition.text();
        for line in [
            "supercargo_memory_loads_total{result=\"success\"} 1",
            "supercargo_memory_loads_total{result=\"error\"} 1",
            "supercargo_memory_saves_total{result=\"success\"} 1",
            "supercargo_memory_saves_total{result=\"error\"} 1",
            "supercargo_memory_save_conflicts_total 1",
            "supercargo_memory_saved_bytes 120",
            "supercargo_memory_saved_timestamp_seconds 9",
            "supercargo_memory_unsaved_total{plugin=\"P\",memory=\"M\"} 1",
            "supercargo_memory_dropped_total{plugin=\"P\",reason=\"version\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
