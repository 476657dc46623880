//! Whether a pod was bound, when the answer to its binding does not say so: the API server itself is asked, until it answers.
//!
//! A binding that was answered by an error may have been made all the same: the error may be that of a proxy, of a time-out,
//! or of a second try. So the pod keeps its room until it is known not to be bound. The watch may know first; then there is
//! nothing left to ask.

use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::{Conclusion, EXTENDER_SETTLES_AFTER, Effect};
use supercargo_model::{Decoded, Pod, PodWords, Timestamp};

use super::steps::{Asked, not_leading};
use super::{Evidence, Pause, Stage};
use crate::planted::{Bug, is_planted};
use crate::scheduler::attempts::Failure;
use crate::scheduler::observations::Observation;
use crate::scheduler::{Scheduler, Waiter};

/// An order that was given up without an answer may still be carried out for so long: the API server ends a request soon
/// after its connection is closed.
const ORDER_SETTLES_AFTER: Duration = Duration::from_secs(5);
/// How long the answer to a look-up is waited for; then the pod is looked up again.
const LOOK_UP_PATIENCE: Duration = Duration::from_secs(60);
/// The first wait after a look-up that failed, or did not find the pod; each further one is twice as long.
const LOOK_UP_BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// The longest such wait.
const LOOK_UP_BACKOFF_MAX: Duration = Duration::from_secs(30);

/// A binding whose outcome is not known.
#[derive(Clone, Debug)]
pub(super) struct Unresolved {
    /// How the binding goes on if the pod is not bound.
    onward: Onward,
    /// How many look-ups have failed in a row, or not found the pod.
    failures: u32,
    look_up: LookUp,
    /// When the API server was last asked. What it says counts as long as no order has ended since.
    asked_at: Option<Timestamp>,
}

/// What a look-up found out about a pod.
enum Found {
    /// The pod has a node.
    Bound(Box<PodWords>),
    /// The pod has no node.
    Unbound,
    /// The pod is there, and will never be bound again: it has run its course, or is on its way out without a node.
    Over,
    /// There is no such pod, or another one of that name. It is gone, or a proxy or a server that lags behind has answered.
    Nothing,
}

/// How a binding goes on once its pod is known not to be bound.
#[derive(Clone, Debug)]
pub(super) enum Onward {
    /// The pod goes back into the queue.
    Fail(Failure),
    /// The next extender that binds, from this place of the configuration on, is asked; or else the plugins.
    Extender(usize),
    /// The Bind plugin of this number binds the pod.
    Plugin(usize),
}

#[derive(Clone, Debug)]
enum LookUp {
    /// The API server was asked, and has until then to answer.
    Asked { until: Timestamp },
    /// The API server is asked then.
    Due { at: Timestamp },
}

impl Unresolved {
    pub(super) fn deadline(&self) -> Timestamp {
        match self.look_up {
            LookUp::Asked { until } => until,
            LookUp::Due { at } => at,
        }
    }

    /// The clock was set: moves all points in time along.
    pub(super) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        self.asked_at.iter_mut().for_each(&moved);
        let (LookUp::Asked { until: time } | LookUp::Due { at: time }) = &mut self.look_up;
        moved(time);
    }

    /// The extenders of the configuration are others now: the plugins bind the pod if it has to be bound again.
    pub(super) fn forget_extenders(&mut self) {
        if let Onward::Extender(_) = self.onward {
            self.onward = Onward::Plugin(0);
        }
    }
}

impl Scheduler {
    /// Goes on after a binder that did not bind the pod for sure; looks the pod up first if it may be bound.
    pub(super) fn settle(&mut self, uid: &Arc<str>, onward: Onward, now: Timestamp) {
        let Some(binding) = self.bindings.get(uid) else { return };
        let is_hasty = match &onward {
            Onward::Fail(_) => is_planted(Bug::ErrorsMeanUnbound),
            Onward::Extender(_) | Onward::Plugin(_) => is_planted(Bug::NextBinderAtOnce),
        };
        if binding.evidence.is_unbound() || is_hasty {
            return self.go_onward(uid, onward, now);
        }
        let (pod, node) = (binding.pod.clone(), binding.node.clone());
        let error = match &onward {
            Onward::Fail(failure) => failure.message.clone(),
            Onward::Extender(_) | Onward::Plugin(_) => "the binder gave up".to_owned(),
        };
        self.observe(Observation::BindingUnknown { pod, node, error });
        let look_up = LookUp::Due { at: now };
        let unresolved = Unresolved { onward, failures: 0, look_up, asked_at: None };
        self.bindings.change(uid, |binding| binding.stage = Stage::Unresolved(Box::new(unresolved)));
        self.look_up(uid, now);
    }

    /// The pod is not bound: its binding goes on, or ends.
    fn go_onward(&mut self, uid: &Arc<str>, onward: Onward, now: Timestamp) {
        let onward = if self.leads { onward } else { Onward::Fail(not_leading()) };
        let stage = match onward {
            Onward::Fail(failure) => return self.fail_binding(uid, failure, now),
            Onward::Extender(from) => Stage::SeekBinder(from),
            Onward::Plugin(number) => Stage::Bind(number, Pause::default()),
        };
        self.bindings.change(uid, |binding| {
            (binding.stage, binding.evidence) = (stage, Evidence::default());
        });
        self.go_on(uid, None, now);
    }

    fn look_up(&mut self, uid: &Arc<str>, now: Timestamp) {
        let until = now.after(LOOK_UP_PATIENCE);
        let pod = self.change_unresolved(uid, |unresolved| {
            (unresolved.look_up, unresolved.asked_at) = (LookUp::Asked { until }, Some(now));
        });
        let Some((pod, asked)) = pod.zip(self.next_round(uid, 1)) else { return };
        self.order_and_wait(Effect::LookUp { pod }, Waiter::LookUp(asked));
    }

    /// A look-up is due, or was not answered.
    pub(super) fn look_up_again(&mut self, uid: &Arc<str>, now: Timestamp) {
        let is_unanswered = |unresolved: &Unresolved| matches!(unresolved.look_up, LookUp::Asked { .. });
        let unanswered = match self.bindings.get(uid).map(|binding| &binding.stage) {
            Some(Stage::Unresolved(unresolved)) => is_unanswered(unresolved),
            _ => return,
        };
        if unanswered {
            self.look_up_failed(uid, "no answer in time".to_owned(), now);
        } else {
            self.look_up(uid, now);
        }
    }

    /// The API server said what became of a pod, or could not be asked.
    pub(in crate::scheduler) fn resolve(
        &mut self,
        asked: &Asked,
        found: Result<Option<Decoded>, String>,
        now: Timestamp,
    ) {
        let uid = asked.uid();
        let is_current = self.bindings.get(uid).is_some_and(|binding| asked.is_current(binding));
        if !is_current {
            return self.observe(Observation::AnswerDropped);
        }
        let Some(pod) = self.bindings.get(uid).map(|binding| binding.pod.clone()) else { return };
        match found.and_then(|found| self.read(&pod, found)) {
            Err(error) => self.look_up_failed(uid, error, now),
            Ok(Found::Bound(words)) => {
                let pod = Arc::new(self.engine.cluster.interner().pod(*words));
                self.put_bound_pod(&pod, now);
            }
            Ok(Found::Unbound) => self.found_unbound(uid, now),
            Ok(Found::Over) => {
                self.remove_pod(uid, now);
                self.over.insert(uid.clone());
            }
            // Only a watch or a list says so for sure, which ends the binding.
            Ok(Found::Nothing) => _ = self.look_up_later(uid, now),
        }
    }

    /// What an object that was looked up says about a pod. An error if it says nothing, because it is not what was asked for.
    fn read(&self, pod: &Pod, found: Option<Decoded>) -> Result<Found, String> {
        let words = match found {
            None => return Ok(Found::Nothing),
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
            Found::Nothing
        } else if words.is_finished() {
            Found::Over
        } else if words.node_name().is_some() {
            Found::Bound(words)
        } else if metadata.deletion_timestamp.is_some() {
            // The API server binds no pod that is being deleted.
            Found::Over
        } else {
            Found::Unbound
        })
    }

    fn found_unbound(&mut self, uid: &Arc<str>, now: Timestamp) {
        let onward = self.bindings.change(uid, |binding| match &mut binding.stage {
            Stage::Unresolved(unresolved) => {
                let evidence = binding.evidence;
                if !unresolved.asked_at.is_some_and(|asked_at| evidence.is_settled_at(asked_at)) {
                    // An order may have been carried out since: the pod is looked up once more when none can be on its way. The answer to
                    // one that is open may say when that is.
                    let at = evidence.settles(now).unwrap_or_else(|| now.after(LOOK_UP_BACKOFF_MAX));
                    (unresolved.look_up, unresolved.failures) = (LookUp::Due { at }, 0);
                    return None;
                }
                let failure = Failure::error(String::new());
                Some(std::mem::replace(&mut unresolved.onward, Onward::Fail(failure)))
            }
            _ => None,
        });
        if let Some(onward) = onward.flatten() {
            self.go_onward(uid, onward, now);
        }
    }

    /// An order of a binding was answered. If the binding is unresolved, what was looked up before that says nothing of the order, unless
    /// it was refused; and now the pod can be looked up for good, if that was the last order.
    pub(super) fn take_evidence(&mut self, asked: &Asked, conclusion: &Conclusion, now: Timestamp) {
        let lands_within = if asked.is_of_extender { EXTENDER_SETTLES_AFTER } else { ORDER_SETTLES_AFTER };
        self.bindings.change(asked.uid(), |binding| {
            binding.evidence.answered(conclusion, lands_within, now);
            let Stage::Unresolved(unresolved) = &mut binding.stage else { return };
            if !matches!(conclusion, Conclusion::Refused { .. }) {
                unresolved.asked_at = None;
            }
            if let (Some(settles), LookUp::Due { at }) =
                (binding.evidence.settles(now), &mut unresolved.look_up)
            {
                *at = settles;
            }
        });
    }

    fn look_up_failed(&mut self, uid: &Arc<str>, error: String, now: Timestamp) {
        if let Some(pod) = self.look_up_later(uid, now) {
            self.observe(Observation::LookUpFailed { pod, error });
        }
    }

    /// The pod is looked up again after a while, which is longer each time.
    fn look_up_later(&mut self, uid: &Arc<str>, now: Timestamp) -> Option<Arc<Pod>> {
        self.change_unresolved(uid, |unresolved| {
            let doublings = unresolved.failures.min(u32::BITS - 1);
            let wait = LOOK_UP_BACKOFF_FIRST.saturating_mul(1 << doublings).min(LOOK_UP_BACKOFF_MAX);
            unresolved.failures = unresolved.failures.saturating_add(1);
            unresolved.look_up = LookUp::Due { at: now.after(wait) };
        })
    }

    /// Changes an unresolved binding; its pod, or none if the binding is at another stage.
    fn change_unresolved(&mut self, uid: &str, act: impl FnOnce(&mut Unresolved)) -> Option<Arc<Pod>> {
        let changed = self.bindings.change(uid, |binding| match &mut binding.stage {
            Stage::Unresolved(unresolved) => {
                act(unresolved);
                Some(binding.pod.clone())
            }
            _ => None,
        });
        changed.flatten()
    }
}
