//! The tables, as the original prints them.

use std::fmt::Write as _;

use supercargo_model::pod::PodPhase;
use supercargo_model::{GoDuration, Timestamp};

use super::QosAware;
use super::books::{Books, Controller, ControllerId, Nanoseconds};
use super::metric::{Measured, Reference};

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;
/// The namespace whose controllers are shown by their names alone, as the original knows no other.
const USUAL_NAMESPACE: &str = "default";

impl QosAware {
    /// A line for each controller.
    pub(super) fn controllers_table(books: &Books, now: Timestamp) -> String {
        let mut table = format!(
            "{:>20}  {:>9}  {:>20}  {:>20}  {:>20}  {:>20}\n",
            "CONTROLLER", "QOS/SLO", "TTV", "RUNNING", "WAITING", "BINDING"
        );
        for (name, _, controller) in sorted(books) {
            let measured = Measured::of(controller, None, now);
            let _ = writeln!(
                table,
                "{name:>20}  {:>4.2}/{:>4.2}  {:>20}  {:>20}  {:>20}  {:>20}",
                measured.qos(),
                controller.slo,
                duration_of_seconds(measured.time_to_violation(controller.slo)),
                duration(measured.effective + measured.discarded),
                duration(measured.waiting),
                duration(measured.binding),
            );
        }
        table
    }

    /// A line for each replica that has a pod.
    pub(super) fn replicas_table(&self, books: &Books, now: Timestamp) -> String {
        let mut table = format!(
            "{:>20}  {:>9}  {:>19}  {:>15}  {:>15}  {:>15}  {:>20}  {:>20}  {:>20}  {:>20}\n",
            "CONTROLLER",
            "QOS/SLO",
            "PREEMPTION OVERHEAD",
            "QOS APPROACH",
            "POD PHASE",
            "QOS METRIC",
            "EFF RUNNING",
            "DIS RUNNING",
            "WAITING",
            "BINDING"
        );
        for (name, _, controller) in sorted(books) {
            for (number, slot) in controller.slots.iter() {
                let Some(pod) = slot.current.as_ref().and_then(|uid| books.now().pods.get(uid)) else {
                    continue;
                };
                let measured = Measured::of(controller, Some(Reference::of(pod, controller, now)), now);
                let _ = writeln!(
                    table,
                    "{:>20}  {:>4.2}/{:>4.2}  {:>9.2}/{:<9.2}  {:>15}  {:>15}  {:>15}  {:>20}  {:>20}  {:>20}  {:>20}",
                    format!("{name}-{number}"),
                    measured.qos(),
                    pod.slo,
                    measured.preemption_overhead(),
                    self.acceptable_overhead(pod.slo, pod.acceptable_overhead),
                    controller.approach.word(),
                    phase(pod.phase),
                    float(measured.metric(pod.slo), 4),
                    duration(measured.effective),
                    duration(measured.discarded),
                    duration(measured.waiting),
                    duration(measured.binding),
                );
            }
        }
        table
    }
}

/// The controllers by the names that are shown.
pub(super) fn sorted(books: &Books) -> Vec<(String, &ControllerId, &Controller)> {
    let named = |(id, controller)| (shown_name(id), id, controller);
    let mut all: Vec<_> = books.now().controllers.iter().map(named).collect();
    all.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    all
}

/// How a controller is called in tables.
fn shown_name(id: &ControllerId) -> String {
    // What comes from a pod may not start a line of its own.
    let name: String = id.name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if *id.namespace == *USUAL_NAMESPACE { name } else { format!("{}/{name}", id.namespace) }
}

/// A number with so many decimals, as Go prints it.
pub(super) fn float(number: f64, decimals: usize) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    format!("{number:.decimals$}")
}

pub(super) fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    }
}

/// A length of time: whole seconds if it is more than one, and milliseconds otherwise, also below zero.
fn duration(length: Nanoseconds) -> String {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let unit = if length > SECOND { SECOND } else { MILLISECOND };
    GoDuration(length / unit * unit).to_string()
}

fn duration_of_seconds(seconds: f64) -> String {
    if seconds.is_infinite() { float(seconds, 0) } else { duration((seconds * SECOND as f64) as Nanoseconds) }
}
