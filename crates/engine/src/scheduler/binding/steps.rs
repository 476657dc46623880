//! The steps of a binding, and the answers that they wait for.

use std::sync::Arc;

use supercargo_framework::{Conclusion, Effect, ExtenderQuestion, News, Point, Status, Step};
use supercargo_model::{ObjectKey, Pod, Standing, Timestamp};

use super::resolving::Onward;
use super::{Binder, Binding, Pause, QueueEntry, Stage, failure};
use crate::planted::{Bug, is_planted};
use crate::scheduler::attempts::Failure;
use crate::scheduler::bindings::Fence;
use crate::scheduler::happenings::Happening;
use crate::scheduler::observations::Observation;
use crate::scheduler::{Scheduler, Waiter};

/// Whose answer an order brings: that of one round of one binding. No other round, nor another binding of the same pod, takes it.
#[derive(Clone, Debug)]
pub(in crate::scheduler) struct Asked {
    uid: Arc<str>,
    binding: u64,
    round: u64,
    /// Whether the order can bind the pod.
    is_bind: bool,
    /// Whether it is an extender that binds it then.
    pub(super) is_of_extender: bool,
}

/// How far a step has come.
enum Stepped {
    /// There is another step.
    On,
    Bound,
    /// The binding ends, or goes on with another binder.
    Ended(Onward),
    /// The step waits, also for these effects to be carried out.
    Waits(Vec<Effect>),
}

impl Scheduler {
    /// Takes a binding as far as it goes without waiting, beginning with the news of what it waited for. No step begins twice, and none is
    /// resumed that has not begun.
    pub(super) fn go_on(&mut self, uid: &Arc<str>, mut news: Option<News<'_>>, now: Timestamp) {
        loop {
            let Some(binding) = self.bindings.get(uid) else { return };
            match &binding.stage {
                Stage::Permit(waits) if !waits.is_empty() => return,
                Stage::Extender(_) | Stage::Unresolved(_) => return,
                Stage::Permit(_) => self.leave_permit(uid, now),
                Stage::PreBind(_, pause) | Stage::Bind(_, pause)
                    if pause.is_begun != news.is_some() && !is_planted(Bug::NewsNests) =>
                {
                    return;
                }
                Stage::PreBind(number, _) if news.is_none() && self.is_prepared(binding, *number) => {
                    self.leave_pre_bind(uid, now);
                }
                Stage::SeekBinder(from) => {
                    let from = *from;
                    if self.ask_binder(uid, from, now) {
                        return;
                    }
                }
                Stage::PreBind(..) | Stage::Bind(..) => match self.step(uid, news.take(), now) {
                    Stepped::On => {}
                    Stepped::Bound => return self.bound(uid, now),
                    Stepped::Ended(onward) => return self.settle(uid, onward, now),
                    Stepped::Waits(effects) => return self.give(uid, effects, now),
                },
            }
        }
    }

    /// Orders what a step wants done.
    fn give(&mut self, uid: &Arc<str>, effects: Vec<Effect>, now: Timestamp) {
        if !self.leads && !effects.is_empty() {
            return self.settle(uid, Onward::Fail(not_leading()), now);
        }
        let Some(asked) = self.next_round(uid, effects.len()) else { return };
        for effect in effects {
            self.order_and_wait(effect, Waiter::Binding(asked.clone()));
        }
    }

    /// From now on only answers to what is ordered next count for this binding: so many orders.
    pub(super) fn next_round(&mut self, uid: &Arc<str>, orders: usize) -> Option<Asked> {
        self.last_round += 1;
        let round = self.last_round;
        self.bindings.change(uid, |binding| {
            binding.round = round;
            let is_bind = matches!(binding.stage, Stage::Bind(..) | Stage::Extender(_));
            if is_bind {
                binding.evidence.ordered(orders);
            }
            let is_of_extender = matches!(binding.stage, Stage::Extender(_));
            Asked { uid: uid.clone(), binding: binding.number, round, is_bind, is_of_extender }
        })
    }

    /// All plugins allow the pod to go to its node. It leaves the queue's books: it is not tried any more.
    fn leave_permit(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some((has_waited, took)) = self.bindings.change(uid, |binding| {
            let took = now.since(binding.began);
            (binding.stage, binding.began) = (Stage::PreBind(0, Pause::default()), now);
            (binding.has_waited, took)
        }) else {
            return;
        };
        if let Some(waiting) = self.with_queue(now, |queue, context| queue.remove(context, uid)) {
            self.bindings.change(uid, |binding| binding.entry = QueueEntry::Held(waiting));
        }
        if has_waited {
            if let Some(pod) = self.bindings.get(uid).map(|binding| binding.pod.clone()) {
                self.engine.cluster.set_standing(&pod, Standing::Bound);
            }
            self.observe(Observation::PermitWaited { result: "Success", took });
        }
    }

    /// Whether no PreBind plugin from that one on has anything to do for the pod of a binding.
    fn is_prepared(&self, binding: &Binding, number: usize) -> bool {
        let pod = &binding.pod;
        self.profile_or_own(binding.profile.as_deref(), pod).is_some_and(|profile| {
            profile.pre_bind.iter().skip(number).all(|named| !profile.concerns(named, pod))
        })
    }

    /// All plugins have prepared what the pod needs on its node.
    fn leave_pre_bind(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(pod) = self.bindings.get(uid).map(|binding| binding.pod.clone()) else { return };
        let stage = self.first_binder(&pod);
        let took = self.bindings.change(uid, |binding| {
            binding.stage = stage;
            now.since(std::mem::replace(&mut binding.began, now))
        });
        self.observe_point(Point::PreBind, &pod, "Success", took.unwrap_or_default());
    }

    /// Asks the first extender from a place of the configuration on that binds the pod; false if there is none, so that the
    /// plugins bind it.
    fn ask_binder(&mut self, uid: &Arc<str>, from: usize, now: Timestamp) -> bool {
        let Some(binding) = self.bindings.get(uid) else { return true };
        let Some(extender) = self.binder(from, &binding.pod) else {
            self.bindings.change(uid, |binding| binding.stage = Stage::Bind(0, Pause::default()));
            return false;
        };
        let (pod, node) = (binding.pod.clone(), binding.node.clone());
        self.bindings.change(uid, |binding| binding.stage = Stage::Extender(Binder::Configured(extender)));
        let question = ExtenderQuestion::Bind { pod, node };
        self.give(uid, vec![Effect::Ask { extender, question }], now);
        true
    }

    /// Does one step of a binding that is at PreBind or Bind.
    fn step(&mut self, uid: &Arc<str>, news: Option<News<'_>>, now: Timestamp) -> Stepped {
        let Some(binding) = self.bindings.get(uid) else {
            return Stepped::Ended(Onward::Fail(Failure::error("the binding has ended".to_owned())));
        };
        let (pod, node, profile) = (binding.pod.clone(), binding.node.clone(), binding.profile.clone());
        let Some(row) = self.engine.cluster.snapshot().row_of(&node) else {
            return Stepped::Ended(Onward::Fail(Failure::error(format!("node {node:?} not found"))));
        };
        let taken = self.bindings.change(uid, |binding| {
            let stage = std::mem::replace(&mut binding.stage, Stage::SeekBinder(0));
            (std::mem::take(&mut binding.state), stage)
        });
        let (mut state, mut stage) = taken.expect("the binding was just seen");
        let stepped = self.caught_acting(&pod, |scheduler| {
            let engine = &mut scheduler.engine;
            engine.with_cycle_of(profile.as_deref(), &pod, &mut state, now, |profile, cycle, _| {
                let node = cycle.cluster().node(row);
                let (number, step, (name, plugin)) = match &stage {
                    Stage::PreBind(number, _) => {
                        // If no plugin is left, or none has anything to do, there is no step.
                        let Some(named) = profile.pre_bind.get(*number) else { return Stepped::On };
                        let step = match &news {
                            _ if !profile.concerns(named, &pod) => Step::Done(Status::skip()),
                            None => named.run(|plugin| plugin.pre_bind(cycle, node)),
                            Some(news) => named.run(|plugin| plugin.resume(cycle, node, news)),
                        };
                        (*number, step, (named.name, named.number))
                    }
                    Stage::Bind(number, _) => {
                        let Some(named) = profile.bind.get(*number) else {
                            let error = "no Bind plugin took the pod; enable DefaultBinder as the last one";
                            return Stepped::Ended(Onward::Fail(Failure::error(error.to_owned())));
                        };
                        let step = match &news {
                            None => named.run(|plugin| plugin.bind(cycle, node)),
                            Some(News::Changed(_)) if is_planted(Bug::NewsNests) => {
                                Step::Done(Status::success())
                            }
                            Some(news) => named.run(|plugin| plugin.resume(cycle, node, news)),
                        };
                        (*number, step, (named.name, named.number))
                    }
                    Stage::Permit(_) | Stage::SeekBinder(_) | Stage::Extender(_) | Stage::Unresolved(_) => {
                        unreachable!("only PreBind and Bind have steps")
                    }
                };
                let is_bind = matches!(stage, Stage::Bind(..));
                let at = |number, pause| {
                    if is_bind { Stage::Bind(number, pause) } else { Stage::PreBind(number, pause) }
                };
                match step {
                    Step::Done(status) if status.is_success() && is_bind => Stepped::Bound,
                    Step::Done(status) if is_bind && status.is_skip() => {
                        Stepped::Ended(Onward::Plugin(number + 1))
                    }
                    Step::Done(status) if status.is_success() || status.is_skip() => {
                        stage = at(number + 1, Pause::default());
                        Stepped::On
                    }
                    Step::Done(status) => {
                        let point = if is_bind { "Bind" } else { "PreBind" };
                        Stepped::Ended(Onward::Fail(failure(&status, name, point)))
                    }
                    Step::Wait { effects, events, deadline } => {
                        let writes = &profile.plugins()[plugin].writes;
                        if let Some(effect) = effects.iter().find(|effect| !writes.cover(effect)) {
                            return Stepped::Ended(Onward::Fail(Failure::error(undeclared(name, effect))));
                        }
                        stage = at(
                            number,
                            Pause {
                                is_begun: true,
                                orders: effects.len(),
                                events,
                                deadline,
                                objects: Vec::new(),
                            },
                        );
                        Stepped::Waits(effects)
                    }
                }
            })
        });
        let stepped = stepped.unwrap_or_else(|panicked| Stepped::Ended(Onward::Fail(panicked.failure())));
        self.bindings.change(uid, |binding| (binding.state, binding.stage) = (state, stage));
        stepped
    }

    /// An order of a step ended.
    pub(in crate::scheduler) fn conclude_step(
        &mut self,
        asked: &Asked,
        conclusion: &Conclusion,
        now: Timestamp,
    ) {
        let uid = &asked.uid;
        let is_of_binding =
            |binding: &Binding| binding.number == asked.binding || is_planted(Bug::UnfencedAnswers);
        if asked.is_bind && self.bindings.get(uid).is_some_and(is_of_binding) {
            self.take_evidence(asked, conclusion, now);
        }
        let current = self.bindings.change(uid, |binding| {
            if !is_of_binding(binding) {
                return None;
            }
            if binding.round != asked.round && !is_planted(Bug::UnfencedAnswers) {
                return None;
            }
            match &mut binding.stage {
                Stage::Extender(binder) => Some((Some(*binder), 0)),
                Stage::PreBind(_, pause) | Stage::Bind(_, pause) => {
                    pause.orders = pause.orders.saturating_sub(1);
                    pause.objects.extend(conclusion.object().cloned());
                    Some((None, pause.orders))
                }
                Stage::Permit(_) | Stage::SeekBinder(_) | Stage::Unresolved(_) => None,
            }
        });
        match (current.flatten(), conclusion.error()) {
            (None, _) => self.answered_late(uid, conclusion),
            (Some((Some(binder), _)), error) => self.conclude_extender(uid, binder, error, now),
            (Some((None, _)), Some(error)) => {
                self.go_on(uid, Some(News::Failed { error, code: conclusion.code() }), now);
            }
            (Some((None, 0)), None) => {
                let objects = self.bindings.change(uid, Binding::take_objects).unwrap_or_default();
                self.go_on(uid, Some(News::Succeeded { objects: &objects }), now);
            }
            (Some((None, _)), None) => {}
        }
    }

    /// An answer came that no step waits for any more. That an order was done which the watch has confirmed already is no
    /// news; any other late answer is counted, and changes nothing.
    pub(in crate::scheduler) fn answered_late(&mut self, uid: &str, conclusion: &Conclusion) {
        let is_known = self.engine.cluster.bound_pod(uid).is_some() && !self.bindings.contains(uid);
        if !(is_known && conclusion.is_done()) {
            self.observe(Observation::AnswerDropped);
        }
    }

    /// An extender has bound the pod, or not.
    fn conclude_extender(&mut self, uid: &Arc<str>, binder: Binder, error: Option<&str>, now: Timestamp) {
        let Some(error) = error else { return self.bound(uid, now) };
        let onward = match binder {
            Binder::Configured(number) if self.is_ignorable(number) => Onward::Extender(number + 1),
            Binder::Configured(_) | Binder::Former => Onward::Fail(Failure::error(error.to_owned())),
        };
        self.settle(uid, onward, now);
    }

    /// Something happened to an object that a binding waits for: it goes on, if it has not done so meanwhile because of another one.
    pub(in crate::scheduler) fn resume_binding(
        &mut self,
        fence: &Fence,
        happening: &Happening,
        object: &ObjectKey,
        now: Timestamp,
    ) {
        let (uid, event) = (&fence.uid, &happening.event);
        let still_waits = |binding: &&Binding| {
            (fence.is_of(binding) && binding.hears(event, object)) || is_planted(Bug::NewsNests)
        };
        let Some(binding) = self.bindings.get(uid).filter(still_waits) else { return };
        let news = News::Changed(happening.what.change());
        if binding.waits_at_permit() {
            self.reconsider_permit(uid, &news, |wait| wait.hears(event, object), now);
        } else {
            self.go_on(uid, Some(news), now);
        }
    }

    /// A binding has waited too long: at Permit, for what a step waits for, or for the API server's word.
    pub(in crate::scheduler) fn time_out(&mut self, fence: &Fence, now: Timestamp) {
        let uid = &fence.uid;
        // What became of a binding that was due before it may have ended it, or taken it further.
        let is_due = |binding: &&Binding| {
            fence.is_of(binding) && binding.deadline().is_some_and(|deadline| deadline <= now)
        };
        let Some(binding) = self.bindings.get(uid).filter(is_due) else { return };
        match &binding.stage {
            Stage::Permit(_) => {
                self.reconsider_permit(uid, &News::TimedOut, |wait| wait.deadline <= now, now);
            }
            Stage::Unresolved(_) => self.look_up_again(uid, now),
            Stage::PreBind(..) | Stage::Bind(..) => self.go_on(uid, Some(News::TimedOut), now),
            Stage::SeekBinder(_) | Stage::Extender(_) => {}
        }
    }

    /// Takes note of a newer state of a pod that is on its way.
    pub(in crate::scheduler) fn refresh_binding(&mut self, pod: &Arc<Pod>) {
        let is_in_flight = self.bindings.change(&pod.uid, |binding| match &mut binding.entry {
            QueueEntry::Held(waiting) => {
                waiting.queued.pod = pod.clone();
                false
            }
            QueueEntry::InFlight => true,
        });
        // As upstream, a pod that has a node is not tried again because it changes.
        if is_in_flight == Some(true)
            && let Some(slot) = self.queue.in_flight_slot(&pod.uid)
        {
            self.queue.get_mut(slot).queued.pod = pod.clone();
        }
    }
}

impl Asked {
    /// The pod whose binding asked.
    pub(in crate::scheduler) fn uid(&self) -> &Arc<str> {
        &self.uid
    }

    /// Whether a binding still waits for the answer.
    pub(super) fn is_current(&self, binding: &Binding) -> bool {
        binding.number == self.binding && binding.round == self.round
    }
}

/// Why an order of a plugin is not carried out that the plugin did not declare.
pub(in crate::scheduler) fn undeclared(plugin: &str, effect: &Effect) -> String {
    format!("plugin {plugin:?} wants to {}, but does not declare that it writes this", effect.words())
}

pub(super) fn not_leading() -> Failure {
    Failure::error("this replica does not lead any more".to_owned())
}
