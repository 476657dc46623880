//! What a plugin may do besides answering.
//!
//! Nothing happens at once: what a plugin asks for is noted, and the scheduler carries it out when the step in which it was asked
//! has ended, in the order in which it was asked. So no plugin sees half of what another one does, and the same history leads to
//! the same acts.

use std::borrow::Cow;
use std::sync::Arc;

use supercargo_model::Timestamp;

use crate::effects::Effect;
use crate::memory::{Memories, Memory};
use crate::profile::Profile;
use crate::status::Status;

/// So many acts of one step are carried out. What is asked for beyond that is refused, and counted: a step that asks for more
/// asks in a circle.
pub const ACTS_PER_STEP_MAX: usize = 1 << 16;

/// The hands of a plugin: what it may do besides answering.
#[derive(Debug)]
pub struct Acts<'a> {
    plugin: &'static str,
    memories: &'a mut Memories,
    asked: &'a mut AskedActs,
    profiles: &'a [Profile],
}

/// What plugins asked for, and who.
#[derive(Clone, Debug, Default)]
pub struct AskedActs {
    list: Vec<(&'static str, Act)>,
    refused: usize,
}

/// Something that a plugin asks the scheduler to do.
#[derive(Clone, Debug)]
pub enum Act {
    /// See [`Acts::allow`].
    Allow(Arc<str>),
    /// See [`Acts::reject`].
    Reject(Arc<str>, Status),
    /// See [`Acts::activate`].
    Activate(Arc<str>),
    /// See [`Acts::order`].
    Order(Effect),
    /// See [`Acts::wake_at`].
    WakeAt(Timestamp),
    /// See [`Acts::wake_by`].
    WakeBy(Timestamp),
    /// See [`Acts::node_changed`].
    NodeChanged(Arc<str>),
    /// See [`Acts::count`].
    Count {
        /// What is counted.
        name: Cow<'static, str>,
        /// What tells one count of that name from another.
        labels: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    },
    /// See [`Acts::gauge`].
    Gauge {
        /// What is measured.
        name: Cow<'static, str>,
        /// What it is now.
        values: Vec<GaugeValue>,
    },
}

/// A value of a gauge, and what tells it from other values of that gauge.
#[derive(Clone, Debug, PartialEq)]
pub struct GaugeValue {
    /// The labels.
    pub labels: Vec<(Cow<'static, str>, String)>,
    /// The value.
    pub value: f64,
}

impl<'a> Acts<'a> {
    /// The hands of the plugin of that name. Only a scheduler and tests make them.
    pub fn new(plugin: &'static str, memories: &'a mut Memories, asked: &'a mut AskedActs) -> Self {
        Acts { plugin, memories, asked, profiles: &[] }
    }

    /// The same hands, of a scheduler with these profiles.
    #[must_use]
    pub fn among(self, profiles: &'a [Profile]) -> Self {
        Acts { profiles, ..self }
    }

    /// Whether a profile of this scheduler is responsible for pods with that `spec.schedulerName`.
    pub fn is_responsible_for(&self, scheduler_name: &str) -> bool {
        self.profiles.iter().any(|profile| *profile.scheduler_name == *scheduler_name)
    }

    /// Whether a profile that has this plugin is responsible for pods with that `spec.schedulerName`: then the plugin had a say in where they
    /// are.
    pub fn has_a_say_in(&self, scheduler_name: &str) -> bool {
        let has_plugin = |profile: &Profile| profile.plugins().iter().any(|known| known.name == self.plugin);
        self.profiles.iter().any(|profile| *profile.scheduler_name == *scheduler_name && has_plugin(profile))
    }

    /// What is remembered, to change it; the default if nothing is yet.
    ///
    /// In a step of a cycle the value is copied before its first change, so that the step can be undone: keep what may grow in a
    /// [`SharedMap`](crate::SharedMap), of which only the entry is copied that changes. Plugins that observe change it in place, unless
    /// a cycle or a clone of the scheduler keeps the last state.
    ///
    /// # Panics
    ///
    /// If no plugin declared in its extensions that it remembers this: what is not declared would be lost at the next reload.
    pub fn memory<M: Memory>(&mut self) -> &mut M {
        assert!(
            self.memories.is_declared(M::NAME),
            "the plugin {} remembers {} without saying so: list `.remembers::<…>()` in its `extensions`",
            self.plugin,
            M::NAME
        );
        self.memories.get_mut()
    }

    /// What is remembered, if anything is yet. What was changed in this step is seen; `context.memories` are as they were before,
    /// and withheld from plugins that observe.
    pub fn recall<M: Memory>(&self) -> Option<&M> {
        self.memories.get()
    }

    /// Lets a pod go that waits at Permit because of this plugin, by UID.
    pub fn allow(&mut self, uid: &Arc<str>) {
        self.ask(Act::Allow(uid.clone()));
    }

    /// Sends a pod back into the queue that waits at Permit, by UID, whichever plugin made it wait.
    pub fn reject(&mut self, uid: &Arc<str>, status: Status) {
        self.ask(Act::Reject(uid.clone(), status));
    }

    /// Has a pod of the queue tried as soon as possible, by UID, however long it would have waited.
    ///
    /// What is asked for by Reserve or Permit in a cycle that then fails is not done, as upstream: pods that fail and wake each other
    /// would never rest.
    pub fn activate(&mut self, uid: &Arc<str>) {
        self.ask(Act::Activate(uid.clone()));
    }

    /// Has something done in the world. Only the leader's orders go out.
    pub fn order(&mut self, effect: Effect) {
        self.ask(Act::Order(effect));
    }

    /// Has the plugin's [`Observe::woken`](crate::Observe::woken) called then, or as soon after that as possible.
    pub fn wake_at(&mut self, time: Timestamp) {
        self.ask(Act::WakeAt(time));
    }

    /// The same, unless the plugin is to be woken before that anyway. A plugin that says so whenever it is woken is woken for ever and, whoever
    /// else wakes it, not more often; and it has no time to remember, which would not be right any more once the clock is set.
    pub fn wake_by(&mut self, time: Timestamp) {
        self.ask(Act::WakeBy(time));
    }

    /// What the plugin remembers [about a node](crate::Reads::memory_of_node) has changed, by the node's name, though neither the node's pods
    /// nor its objects have: the node is looked at again, and pods that the plugin rejected are tried again.
    pub fn node_changed(&mut self, node: &Arc<str>) {
        self.ask(Act::NodeChanged(node.clone()));
    }

    /// Adds one to a count that the scheduler's metrics show.
    pub fn count(&mut self, name: impl Into<Cow<'static, str>>, labels: &[(&'static str, &str)]) {
        let labels = labels.iter().map(|(key, value)| (Cow::Borrowed(*key), Cow::Owned((*value).to_owned())));
        let act = Act::Count { name: name.into(), labels: labels.collect() };
        self.ask(act);
    }

    /// Says what a gauge of the scheduler's metrics shows from now on: these values, and none that was said before and is not repeated.
    pub fn gauge(&mut self, name: impl Into<Cow<'static, str>>, values: Vec<GaugeValue>) {
        self.ask(Act::Gauge { name: name.into(), values });
    }

    fn ask(&mut self, act: Act) {
        if self.asked.list.len() < ACTS_PER_STEP_MAX {
            self.asked.list.push((self.plugin, act));
        } else {
            self.asked.refused += 1;
        }
    }
}

impl AskedActs {
    /// How many acts wait to be carried out.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.refused == 0
    }

    /// What was asked for, by which plugin, in order; and how much of it was refused because it was too much.
    pub fn take(&mut self) -> (Vec<(&'static str, Act)>, usize) {
        (std::mem::take(&mut self.list), std::mem::take(&mut self.refused))
    }

    /// Takes back what was asked for after the first so many acts.
    pub fn undo_to(&mut self, kept: usize) {
        self.list.truncate(kept);
    }

    /// Takes back the activations that were asked for after the first so many acts.
    pub fn drop_activations_after(&mut self, kept: usize) {
        let mut place = 0;
        self.list.retain(|(_, act)| {
            place += 1;
            place <= kept || !matches!(act, Act::Activate(_))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_asks_in_a_circle_is_cut_short_and_told_of() {
        let (mut memories, mut asked) = (Memories::default(), AskedActs::default());
        let mut acts = Acts::new("Circle", &mut memories, &mut asked);
        for _ in 0..ACTS_PER_STEP_MAX + 3 {
            acts.activate(&"uid".into());
        }
        let (list, refused) = asked.take();
        assert_eq!((list.len(), refused), (ACTS_PER_STEP_MAX, 3));
        assert!(asked.is_empty());
    }

    #[test]
    #[should_panic(expected = "the plugin Forgetful remembers Tally without saying so")]
    fn what_is_remembered_must_be_declared() {
        #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
        struct Tally(u32);
        impl Memory for Tally {
            const NAME: &'static str = "Tally";
        }
        let (mut memories, mut asked) = (Memories::default(), AskedActs::default());
        let mut declared = Memories::default();
        declared.declare::<Tally>();
        Acts::new("Honest", &mut declared, &mut asked).memory::<Tally>().0 += 1;
        assert_eq!(declared.get::<Tally>().map(|tally| tally.0), Some(1));
        Acts::new("Forgetful", &mut memories, &mut asked).memory::<Tally>().0 += 1;
    }

    #[test]
    fn activations_of_a_cycle_that_fails_are_taken_back_and_nothing_else() {
        let (mut memories, mut asked) = (Memories::default(), AskedActs::default());
        let uid: Arc<str> = "uid".into();
        Acts::new("Earlier", &mut memories, &mut asked).activate(&uid);
        let mark = asked.len();
        let mut acts = Acts::new("Later", &mut memories, &mut asked);
        acts.activate(&uid);
        acts.allow(&uid);
        asked.drop_activations_after(mark);
        let (list, _) = asked.take();
        assert!(matches!(&list[..], [("Earlier", Act::Activate(_)), ("Later", Act::Allow(_))]), "{list:?}");
    }
}
