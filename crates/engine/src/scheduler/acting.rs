//! What plugins ask for besides answering, carried out when the step in which they asked has ended.

use supercargo_framework::Act;
use supercargo_model::Timestamp;

use super::Scheduler;
use super::observations::{Observation, Refusal};

impl Scheduler {
    /// Carries out what plugins have asked for, in the order in which they did. What plugins ask for meanwhile comes after that.
    pub(super) fn carry_out_acts(&mut self, now: Timestamp) {
        while !self.engine.acts.is_empty() {
            let (list, refused) = self.engine.acts.take();
            // If too much was asked for, it was by the plugin that asked last.
            let last = list.last().map_or("", |(plugin, _)| *plugin);
            for (plugin, act) in list {
                self.carry_out(plugin, act, now);
            }
            if refused > 0 {
                self.observe(Observation::ActsRefused {
                    plugin: last,
                    acts: refused,
                    refusal: Refusal::TooMany,
                });
            }
        }
    }

    fn carry_out(&mut self, plugin: &'static str, act: Act, now: Timestamp) {
        match act {
            Act::Allow(uid) => self.allow_waiting(&uid, plugin, now),
            Act::Reject(uid, status) => self.refuse_waiting(&uid, plugin, &status, now),
            Act::Activate(uid) => {
                self.with_queue(now, |queue, context| queue.activate(context, &uid));
                self.observe(Observation::Activated { plugin, uid });
            }
            Act::Order(effect) => self.order_for_plugin(plugin, effect, now),
            Act::NodeChanged(node) => {
                if self.engine.cluster.note_node(&node) {
                    self.with_queue(now, |queue, context| queue.retry_rejected_by(context, plugin));
                }
            }
            Act::WakeAt(time) => self.wake_at(plugin, time, now),
            Act::WakeBy(time) if self.observers.wake_by(plugin, time) => {}
            Act::WakeBy(time) => self.wake_at(plugin, time, now),
            Act::Gauge { name, values } => self.observe(Observation::Gauged { plugin, name, values }),
            Act::Count { name, labels } => self.observe(Observation::Counted { plugin, name, labels }),
        }
    }
}
