//! Another configuration, while pods wait and are on their way.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{Nomination, Profile};
use supercargo_model::{Pod, Timestamp};

use super::heap::Slot;
use super::queue::{Patience, Queue};
use super::queue_context::QueueContext;
use super::{ExtenderSettings, Scheduler, SchedulerOptions, Waiter};

/// What the queue does with a pod whose attempt is broken off.
pub(super) type EndAttempt = fn(&mut Queue, &QueueContext<'_>, Slot);

impl Scheduler {
    /// Goes on with other profiles, options and extenders.
    ///
    /// The queue stays: pods that waited for something to happen are tried again, and pods that nobody is responsible for any
    /// more are held until somebody is. Pods that were given a node go there by the plugins that gave it to them. What plugins
    /// remember stays for all that are still there. An attempt for which extenders are being asked begins anew.
    ///
    /// Pods that no profile was responsible for before are not known here: whoever adds a profile puts all pods again.
    pub fn replace_profiles(
        &mut self,
        profiles: Vec<Profile>,
        options: SchedulerOptions,
        extenders: Vec<ExtenderSettings>,
        now: Timestamp,
    ) {
        self.break_off_consultation(now, Queue::break_off);
        self.break_off_inquiries(now, Queue::break_off);
        self.leave_to_old_profiles();
        let used: Vec<Arc<Profile>> =
            self.bindings.iter().filter_map(|binding| binding.profile.clone()).collect();
        if self.engine.replace(profiles, options.engine, &used) {
            self.tell_all_standings();
        }
        self.extenders = extenders;
        let SchedulerOptions { initial_backoff, max_backoff, max_unschedulable, .. } = options;
        let patience = Patience { initial_backoff, max_backoff, max_unschedulable };
        let orphans = self.with_queue(now, |queue, context| queue.renew(context, patience));
        for slot in orphans {
            let message = no_profile(&self.queue.get(slot).queued.pod);
            self.tell_unscheduled(slot, "Unschedulable", message, Nomination::Clear, now);
        }
        self.replace_queries(now);
        self.replace_observers();
        self.start_observers(now);
        self.carry_out_acts(now);
    }

    /// Extenders' places in the configuration may be other ones now, so that their answers mean nothing.
    pub(super) fn break_off_consultation(&mut self, now: Timestamp, end: EndAttempt) {
        self.tickets.retain(|_, waiter| !matches!(waiter, Waiter::Consultation { .. }));
        let Some(consultation) = self.consultation.take() else { return };
        let (uid, slot) = consultation.pod_and_slot();
        if self.queue.is_in_flight(uid, slot) {
            self.with_queue(now, |queue, context| end(queue, context, slot));
        }
    }

    /// Lets bindings that are under way go on with the plugins that they began with.
    fn leave_to_old_profiles(&mut self) {
        let mut kept: FxHashMap<&str, Arc<Profile>> = FxHashMap::default();
        let profiles = self.engine.profiles();
        self.bindings.change_all(|binding| {
            binding.leave_to(|name| {
                let profile = profiles.iter().find(|profile| profile.scheduler_name == name)?;
                Some(kept.entry(&profile.scheduler_name).or_insert_with(|| Arc::new(profile.clone())).clone())
            });
        });
    }
}

/// Why a pod is held that nobody is responsible for.
pub(super) fn no_profile(pod: &Pod) -> String {
    format!("no profile is responsible for schedulerName {:?} any more", pod.spec.scheduler_name)
}
