//! `/metrics/slis`: how often each health check was made, and how it went, under upstream's names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::metrics::process_start;

/// What health checks said. There are no more series than checks.
#[derive(Clone, Debug, Default)]
pub(super) struct HealthRecord(Arc<Mutex<BTreeMap<Series, Counts>>>);

/// The name of a check, and of the page that it is on.
type Series = (&'static str, String);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    is_well: bool,
    successes: u64,
    errors: u64,
}

impl HealthRecord {
    pub(super) fn note(&self, check: &'static str, page: &str, is_well: bool) {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = record.entry((check, page.to_owned())).or_default();
        counts.is_well = is_well;
        if is_well {
            counts.successes += 1;
        } else {
            counts.errors += 1;
        }
    }

    /// The page.
    pub(super) fn text(&self) -> String {
        let record = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = String::new();
        if !record.is_empty() {
            text.push_str(
                "# HELP kubernetes_healthcheck This metric records the result of a single healthcheck.\n\
                 # TYPE kubernetes_healthcheck gauge\n",
            );
        }
        for ((check, page), counts) in &record {
            let value = u8::from(counts.is_well);
            text.push_str(&format!("kubernetes_healthcheck{{name=\"{check}\",type=\"{page}\"}} {value}\n"));
        }
        if !record.is_empty() {
            text.push_str(
                "# HELP kubernetes_healthchecks_total This metric records the results of all healthcheck.\n\
                 # TYPE kubernetes_healthchecks_total counter\n",
            );
        }
        for ((check, page), counts) in &record {
            for (status, times) in [("error", counts.errors), ("success", counts.successes)] {
                if times > 0 {
                    text.push_str(&format!(
                        "kubernetes_healthchecks_total{{name=\"{check}\",status=\"{status}\",type=\"{page}\"}} {times}\n"
                    ));
                }
            }
        }
        text + &process_start()
    }
}
