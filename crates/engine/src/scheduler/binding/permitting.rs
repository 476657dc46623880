//! Pods that wait at Permit, and what ends that: a plugin's word, something that happens, or time.

use std::sync::Arc;

use supercargo_framework::{News, PermitDecision, Status};
use supercargo_model::{GoDuration, Timestamp};

use super::{Binding, PermitWait, Stage, failure};
use crate::scheduler::Scheduler;
use crate::scheduler::attempts::Failure;

/// What follows from a plugin's second thought about a pod that waits.
enum Thought {
    /// The plugin lets the pod go.
    Allowed,
    /// The pod waits on as it did.
    Unchanged,
    /// The pod waits for something else, or until another time.
    Waits(PermitWait),
    Refused(Failure),
}

impl Binding {
    /// Whether the pod waits to be permitted to go to its node.
    pub(in crate::scheduler) fn waits_at_permit(&self) -> bool {
        matches!(self.stage, Stage::Permit(_))
    }
}

impl Scheduler {
    /// A plugin lets a pod go that waits for it.
    pub(in crate::scheduler) fn allow_waiting(&mut self, uid: &Arc<str>, plugin: &str, now: Timestamp) {
        let is_allowed = self.bindings.change(uid, |binding| match &mut binding.stage {
            Stage::Permit(waits) => {
                waits.retain(|wait| wait.plugin != plugin);
                true
            }
            _ => false,
        });
        if is_allowed == Some(true) {
            self.go_on(uid, None, now);
        }
    }

    /// A plugin refuses a pod that waits at Permit, for it or for another plugin.
    pub(in crate::scheduler) fn refuse_waiting(
        &mut self,
        uid: &str,
        plugin: &'static str,
        status: &Status,
        now: Timestamp,
    ) {
        if self.bindings.get(uid).is_some_and(Binding::waits_at_permit) {
            self.fail_binding(uid, failure(status, plugin, "Permit"), now);
        }
    }

    /// The time of a pod that waits at Permit is over, whatever the clock says.
    pub(in crate::scheduler) fn time_out_permit(&mut self, uid: &Arc<str>, now: Timestamp) {
        self.reconsider_permit(uid, &News::TimedOut, |_| true, now);
    }

    /// Asks the plugins again that a pod waits for, as far as the news concern them.
    pub(super) fn reconsider_permit(
        &mut self,
        uid: &Arc<str>,
        news: &News<'_>,
        concerned: impl Fn(&PermitWait) -> bool,
        now: Timestamp,
    ) {
        let Some(Stage::Permit(waits)) = self.bindings.get(uid).map(|binding| &binding.stage) else { return };
        let asked: Vec<(&'static str, GoDuration)> = waits
            .iter()
            .filter(|wait| concerned(wait))
            .map(|wait| (wait.plugin, GoDuration(i64::try_from(wait.timeout.as_nanos()).unwrap_or(i64::MAX))))
            .collect();
        for (plugin, timeout) in asked {
            // What another plugin said may have let the pod go.
            let stage = self.bindings.get(uid).map(|binding| &binding.stage);
            let Some(Stage::Permit(waits)) = stage else { return };
            if !waits.iter().any(|wait| wait.plugin == plugin) {
                continue;
            }
            let thought = match self.second_thought(uid, plugin, news, now) {
                Thought::Unchanged if matches!(news, News::TimedOut) => {
                    let message =
                        format!("rejected due to timeout after waiting {timeout} at plugin {plugin}");
                    Thought::Refused(Failure::rejected(plugin, &message))
                }
                thought => thought,
            };
            match thought {
                Thought::Unchanged => {}
                Thought::Allowed => self.allow_waiting(uid, plugin, now),
                Thought::Waits(wait) => {
                    self.bindings.change(uid, |binding| {
                        if let Stage::Permit(waits) = &mut binding.stage
                            && let Some(place) = waits.iter_mut().find(|known| known.plugin == plugin)
                        {
                            *place = wait;
                        }
                    });
                }
                Thought::Refused(failure) => return self.fail_binding(uid, failure, now),
            }
        }
    }

    fn second_thought(
        &mut self,
        uid: &str,
        plugin: &'static str,
        news: &News<'_>,
        now: Timestamp,
    ) -> Thought {
        let taken = self.bindings.change(uid, |binding| {
            let state = std::mem::take(&mut binding.state);
            (binding.pod.clone(), binding.node.clone(), binding.profile.clone(), binding.began, state)
        });
        let Some((pod, node, profile, began, mut state)) = taken else { return Thought::Unchanged };
        // A pod whose node is gone is told so when it goes there.
        let row = self.engine.cluster.snapshot().row_of(&node);
        let decision = self.caught_acting(&pod, |scheduler| {
            let engine = &mut scheduler.engine;
            engine.with_cycle_of(profile.as_deref(), &pod, &mut state, now, |profile, cycle, acting| {
                let named = profile.permit.iter().find(|named| named.name == plugin)?;
                let node = cycle.cluster().node(row?);
                named.run(|permit| permit.reconsider(cycle, &mut acting.of(plugin), node, news))
            })
        });
        self.bindings.change(uid, |binding| binding.state = state);
        let decision = match decision {
            Ok(decision) => decision,
            Err(panicked) => return Thought::Refused(panicked.failure()),
        };
        match decision {
            None => Thought::Unchanged,
            Some(PermitDecision::Allow) => Thought::Allowed,
            Some(PermitDecision::Reject(status)) => Thought::Refused(failure(&status, plugin, "Permit")),
            Some(PermitDecision::Wait { until, events }) => {
                let wait = PermitWait::new(plugin, until, events, began, now);
                // A plugin whose wait has ended already would be asked again and again.
                if wait.deadline > now { Thought::Waits(wait) } else { Thought::Unchanged }
            }
        }
    }
}
