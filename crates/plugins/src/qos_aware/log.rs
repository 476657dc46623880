//! The log: a line for each pod that has ended, as comma-separated values, with how its controller did by then.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Memory, SharedMap};
use supercargo_model::Timestamp;

use super::books::{Nanoseconds, State};
use super::metric::{Measured, Reference};
use super::table::float;
use super::terms::Approach;

/// So many lines are kept, the last ones.
pub(super) const LINES_MAX: usize = 1_000;

/// What has ended lately. It is not saved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct EndedLog {
    /// How many lines there ever were: the number of the last one.
    pub(super) count: u64,
    pub(super) lines: SharedMap<u64, Line>,
    /// The pod of the last line.
    last: Arc<str>,
}

impl Memory for EndedLog {
    const NAME: &'static str = "QosAware/Log";
}

/// A pod that has ended, and how its controller did by then.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Line {
    at_seconds: i64,
    namespace: Arc<str>,
    pod: Arc<str>,
    controller: Arc<str>,
    slo: f64,
    slot: u32,
    approach: Approach,
    created_seconds: i64,
    waiting_ms: i64,
    binding_ms: i64,
    running_ms: i64,
    has_succeeded: bool,
    after: After,
}

/// How a controller does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct After {
    qos: f64,
    metric: f64,
    waiting_ms: i64,
    binding_ms: i64,
    effective_ms: i64,
    discarded_ms: i64,
}

impl EndedLog {
    pub(super) fn add(&mut self, uid: &Arc<str>, line: Line) {
        self.count += 1;
        self.lines.insert(self.count, line);
        self.last = uid.clone();
        if self.lines.len() > LINES_MAX
            && let Some(first) = self.lines.first().map(|(number, _)| *number)
        {
            self.lines.remove(&first);
        }
    }

    /// The pod of the last line had succeeded.
    pub(super) fn succeed(&mut self, uid: &str, measured: Option<&Measured>) {
        if *self.last != *uid {
            return;
        }
        let number = self.count;
        if let Some(line) = self.lines.get_mut(&number) {
            line.has_succeeded = true;
            if let Some(measured) = measured {
                line.after = After::of(measured, line.slo);
            }
        }
    }

    /// The lines after one, as text.
    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = String> {
        self.lines.iter().filter(move |(known, _)| **known > number).map(|(_, line)| line.text())
    }
}

impl Line {
    /// What there is to say of a pod that ends now.
    pub(super) fn of(state: &State, uid: &Arc<str>, now: Timestamp) -> Option<Self> {
        let pod = state.pods.get(uid)?;
        let controller = state.controllers.get(&pod.controller)?;
        let measured = Measured::of(controller, Some(Reference::of(pod, controller, now)), now);
        Some(Line {
            at_seconds: now.seconds(),
            namespace: pod.controller.namespace.clone(),
            pod: pod.name.clone(),
            controller: pod.controller.name.clone(),
            slo: pod.slo,
            slot: pod.slot,
            approach: controller.approach,
            created_seconds: pod.life.created.seconds(),
            waiting_ms: milliseconds(pod.life.waiting(now)),
            binding_ms: milliseconds(pod.life.binding()),
            running_ms: milliseconds(pod.life.running(now)),
            has_succeeded: false,
            after: After::of(&measured, pod.slo),
        })
    }

    fn text(&self) -> String {
        let After { qos, metric, waiting_ms, binding_ms, effective_ms, discarded_ms } = self.after;
        let pod = quoted(&format!("{}_{}", self.pod, self.namespace));
        let mut line = format!("{},{pod},{},{:.6}", self.at_seconds, quoted(&self.controller), self.slo);
        let _ = write!(line, ",{},{},{}", self.slot, self.approach.word(), self.created_seconds);
        let _ = write!(line, ",{},{},{}", self.waiting_ms, self.binding_ms, self.running_ms);
        let _ = write!(line, ",{},{qos:.6},{}", self.has_succeeded, float(metric, 6));
        let _ = write!(line, ",{waiting_ms},{binding_ms},{effective_ms},{discarded_ms}");
        line
    }
}

impl After {
    fn of(measured: &Measured, slo: f64) -> Self {
        After {
            qos: measured.qos(),
            metric: measured.metric(slo),
            waiting_ms: milliseconds(measured.waiting),
            binding_ms: milliseconds(measured.binding),
            effective_ms: milliseconds(measured.effective),
            discarded_ms: milliseconds(measured.discarded),
        }
    }
}

/// A value as it stands in a line: in quotes if it would end before its end.
fn quoted(value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

fn milliseconds(length: Nanoseconds) -> i64 {
    i64::try_from(length / 1_000_000).unwrap_or(i64::MAX)
}
