//! Plugins that panic, or compute for long: the pod pays for it, and everybody is told who it was.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::witness;
use supercargo_model::{Pod, Timestamp};

use super::Scheduler;
use super::attempts::Failure;
use super::observations::Observation;
use crate::engine::Checkpoint;

/// A plugin that computes for so long for one pod is told of.
const SLOW: Duration = Duration::from_secs(1);
/// Who was slow in a decision is found out by deciding once more, so no more often than this.
const SLOW_ASKED_EVERY: Duration = Duration::from_secs(60);

/// A plugin panicked.
#[derive(Debug, thiserror::Error)]
#[error("plugin {plugin:?} panicked: {message}")]
pub struct Panicked {
    plugin: &'static str,
    message: String,
}

impl Panicked {
    /// What the pod gets to hear.
    pub(super) fn failure(&self) -> Failure {
        Failure::error(self.to_string())
    }
}

/// Does something in which plugins run. If one of them panics, who it was; a panic that is no plugin's goes on.
pub fn caught<R>(act: impl FnOnce() -> R) -> Result<R, Panicked> {
    // Whatever was changed half-way is the caller's business, who knows what that can be.
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| match witness::running() {
        None => resume_unwind(panic),
        Some(plugin) => {
            witness::set_running(None);
            Panicked { plugin, message: message_of(&*panic) }
        }
    })
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it did not say why".to_owned())
}

impl Scheduler {
    /// Does something in which plugins act for a pod. If one of them panics, what they changed and asked for is taken back; and whoever
    /// takes long is told of.
    pub(super) fn caught_acting<R>(
        &mut self,
        pod: &Arc<Pod>,
        act: impl FnOnce(&mut Self) -> R,
    ) -> Result<R, Panicked> {
        let checkpoint = self.engine.checkpoint();
        let (result, laps) = witness::time(self.stopwatch.0, SLOW, || caught(|| act(self)));
        if let Err(panicked) = &result {
            self.take_back_acts(checkpoint, pod, panicked);
        }
        self.tell_of_slow(pod, &laps);
        result
    }

    fn take_back_acts(&mut self, checkpoint: Checkpoint, pod: &Arc<Pod>, panicked: &Panicked) {
        self.engine.restore(checkpoint);
        self.tell_of_panic(pod, panicked);
    }

    /// A plugin panicked for a pod.
    pub(super) fn tell_of_panic(&mut self, pod: &Arc<Pod>, panicked: &Panicked) {
        let Panicked { plugin, message } = panicked;
        self.observe(Observation::PluginPanicked { plugin, pod: pod.clone(), message: message.clone() });
    }

    /// A decision took so long. If that was long, finds out who is to blame.
    pub(super) fn look_for_slow(&mut self, pod: &Arc<Pod>, took: Duration, now: Timestamp) {
        let was_asked = self.slow_asked.is_some_and(|asked| now.since(asked) < SLOW_ASKED_EVERY);
        if took < SLOW || was_asked {
            return;
        }
        self.slow_asked = Some(now);
        let (_, laps) =
            witness::time(self.stopwatch.0, SLOW, || caught(|| self.engine.decide_once_more(pod, now)));
        self.tell_of_slow(pod, &laps);
    }

    fn tell_of_slow(&mut self, pod: &Arc<Pod>, laps: &[(&'static str, Duration)]) {
        for (plugin, took) in laps {
            self.observe(Observation::PluginSlow { plugin, pod: pod.clone(), took: *took });
        }
    }
}
