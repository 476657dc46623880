//! What is counted about programs that run beside the scheduler.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::series::Series;
use super::{Metrics, outcome};

/// The metrics about programs.
#[derive(Clone, Debug)]
pub(super) struct ProgramSeries {
    starts: Series<2, Counter>,
    running: Series<1, Gauge>,
}

impl ProgramSeries {
    pub(super) fn new(all: &mut Registry) -> Self {
        ProgramSeries {
            starts: Series::counter(
                all,
                "supercargo_program_starts",
                "Number of times that a program beside the scheduler was started, or could not be",
                ["program", "result"],
            ),
            running: Series::gauge(
                all,
                "supercargo_program_running",
                "Whether a program beside the scheduler runs",
                ["program"],
            ),
        }
    }
}

impl Metrics {
    /// A program was started.
    pub fn program_started(&mut self, program: &str) {
        self.programs.starts.of([program, outcome(true)]).inc();
        self.programs.running.of([program]).set(1);
    }

    /// A program could not be started.
    pub fn program_not_started(&mut self, program: &str) {
        self.programs.starts.of([program, outcome(false)]).inc();
        self.program_ended(program);
    }

    /// A program does not run.
    pub fn program_ended(&mut self, program: &str) {
        self.programs.running.of([program]).set(0);
    }
}
