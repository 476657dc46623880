//! Pods that a look-up has found to be gone before a watch or a list has told so. They are not tried meanwhile, whatever older states of
//! them are told.
//!
//! A look-up can be wrong: a proxy says that there is no such pod, or a server that lags behind. So they are looked up again, for as long as
//! nobody else says that they are gone, and a pod that is there after all goes on as if it had just come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use supercargo_framework::Effect;
use supercargo_model::{Decoded, Pod, PodWords, Timestamp};

use super::observations::Observation;
use super::{Scheduler, Waiter};

/// A pod that was found to be gone is looked up again after so long; each further wait is twice as long. As a rule the watch tells sooner.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait. So long an answer is waited for, too.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The pods that look-ups have found to be gone.
#[derive(Clone, Debug, Default)]
pub(super) struct GonePods {
    by_uid: FxHashMap<Arc<str>, GonePod>,
    /// When they are looked up again.
    due: BTreeSet<(Timestamp, Arc<str>)>,
}

#[derive(Clone, Debug)]
struct GonePod {
    pod: Arc<Pod>,
    /// When it is looked up again; none if it cannot come back.
    due: Option<Timestamp>,
    wait: Duration,
    /// The number of the look-up that is under way, or was last: older ones say nothing.
    look_up: u64,
}

/// What a look-up found out about a pod.
pub(super) enum Found {
    /// The pod has a node.
    Bound(Box<PodWords>),
    /// The pod has no node.
    Unbound(Box<PodWords>),
    /// There is no such pod.
    Gone,
    /// The pod is there, and will never be bound again: it has run its course, or is on its way out without a node.
    Over,
}

impl GonePods {
    pub(super) fn contains(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub(super) fn uids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_uid.keys()
    }

    pub(super) fn insert(&mut self, pod: Arc<Pod>, now: Timestamp) {
        let (uid, due) = (pod.uid.clone(), now.after(FIRST_WAIT));
        self.remove(&uid);
        self.due.insert((due, uid.clone()));
        self.by_uid.insert(uid, GonePod { pod, due: Some(due), wait: FIRST_WAIT, look_up: 0 });
    }

    pub(super) fn remove(&mut self, uid: &str) {
        if let Some((uid, gone)) = self.by_uid.remove_entry(uid) {
            gone.due.map(|due| self.due.remove(&(due, uid)));
        }
    }

    /// A list names all pods that there are: it is known to everybody that others are gone.
    pub(super) fn retain(&mut self, is_listed: impl Fn(&str) -> bool) {
        self.by_uid.retain(|uid, _| is_listed(uid));
        self.due.retain(|(_, uid)| is_listed(uid));
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The clock was set: moves all points in time along.
    pub(super) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        self.by_uid.values_mut().filter_map(|gone| gone.due.as_mut()).for_each(moved);
        self.due = self.by_uid.iter().filter_map(|(uid, gone)| Some((gone.due?, uid.clone()))).collect();
    }

    /// A pod that is to be looked up by now, which is noted as being done with that number.
    fn take_due(&mut self, number: u64, now: Timestamp) -> Option<Arc<Pod>> {
        self.due.first().filter(|(due, _)| *due <= now)?;
        let (_, uid) = self.due.pop_first()?;
        let gone = self.by_uid.get_mut(&uid)?;
        let due = now.after(LONGEST_WAIT);
        (gone.due, gone.look_up) = (Some(due), number);
        self.due.insert((due, uid));
        Some(gone.pod.clone())
    }

    /// A look-up says nothing else. The pod is looked up again, as long as it can come back.
    fn stay(&mut self, uid: &Arc<str>, can_come_back: bool, now: Timestamp) {
        let Some(gone) = self.by_uid.get_mut(uid) else { return };
        gone.wait = gone.wait.saturating_mul(2).min(LONGEST_WAIT);
        let due = can_come_back.then(|| now.after(gone.wait));
        if let Some(before) = std::mem::replace(&mut gone.due, due) {
            self.due.remove(&(before, uid.clone()));
        }
        self.due.extend(due.map(|due| (due, uid.clone())));
    }
}

impl Scheduler {
    /// Looks those pods up again that are due.
    pub(super) fn look_for_gone_pods(&mut self, now: Timestamp) {
        loop {
            let number = self.last_round + 1;
            let Some(pod) = self.gone.take_due(number, now) else { return };
            self.last_round = number;
            let waiter = Waiter::GonePod { uid: pod.uid.clone(), look_up: number };
            self.order_and_wait(Effect::LookUp { pod }, waiter);
        }
    }

    /// What became of a pod that was found to be gone.
    pub(super) fn hear_of_gone_pod(
        &mut self,
        uid: &Arc<str>,
        look_up: u64,
        found: Result<Option<Decoded>, String>,
        now: Timestamp,
    ) {
        let known = self.gone.by_uid.get(uid).filter(|gone| gone.look_up == look_up);
        let Some(pod) = known.map(|gone| gone.pod.clone()) else {
            return self.observe(Observation::AnswerDropped);
        };
        match found.and_then(|found| self.read(&pod, found)) {
            Ok(Found::Bound(words) | Found::Unbound(words)) => {
                self.gone.remove(uid);
                self.put(Decoded::Pod(words), now);
            }
            Ok(Found::Over) => self.gone.stay(uid, false, now),
            Ok(Found::Gone) => self.gone.stay(uid, true, now),
            Err(error) => {
                self.observe(Observation::LookUpFailed { pod, error });
                self.gone.stay(uid, true, now);
            }
        }
    }

    /// What an object that was looked up says about a pod. An error if it says nothing, because it is not what was asked for.
    pub(super) fn read(&self, pod: &Pod, found: Option<Decoded>) -> Result<Found, String> {
        let words = match found {
            None => return Ok(Found::Gone),
            Some(Decoded::Pod(words)) => words,
            Some(_) => return Err(format!("the answer is not pod {}, nor any other", pod.key())),
        };
        let metadata = words.metadata();
        if metadata.uid.is_empty() || *metadata.name != *pod.name || *metadata.namespace != *pod.namespace {
            return Err(format!(
                "the answer is not pod {}, but names {:?} in namespace {:?} with UID {:?}",
                pod.key(),
                metadata.name,
                metadata.namespace,
                metadata.uid
            ));
        }
        Ok(if *metadata.uid != *pod.uid {
            Found::Gone
        } else if words.is_finished() {
            Found::Over
        } else if words.node_name().is_some() {
            Found::Bound(words)
        } else if metadata.deletion_timestamp.is_some() {
            // The API server binds no pod that is being deleted.
            Found::Over
        } else {
            Found::Unbound(words)
        })
    }
}
