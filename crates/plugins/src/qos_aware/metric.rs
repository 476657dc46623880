//! How a controller does, and how long it takes until it violates its SLO.

use supercargo_model::{Pod, Timestamp};

use super::books::{Controller, Incarnation, Nanoseconds, State, Times};
use super::terms::{Approach, Terms, is_system};

/// What binding a pod is taken to cost as long as nobody knows: 2.4 s.
const USUAL_OVERHEAD: Nanoseconds = 2_400_000_000;

/// The times of a controller by its approach, at some moment and from the point of view of one of its pods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) approach: Approach,
    /// Time run that counts, and time run that does not.
    pub(super) effective: Nanoseconds,
    pub(super) discarded: Nanoseconds,
    pub(super) waiting: Nanoseconds,
    pub(super) binding: Nanoseconds,
    /// What binding one more pod is likely to cost.
    overhead: Nanoseconds,
    /// How many pods run, and how many wait.
    running: u32,
    pending: u32,
    replicas: u32,
    /// Whether the pod in question runs: then the question is what would be without it.
    is_reference_running: bool,
}

/// The pod from whose point of view a controller is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference<'a> {
    /// The times of its slot, if they are known.
    slot: Option<&'a Times>,
    /// How long it has run, if it runs.
    ran: Option<Nanoseconds>,
}

impl<'a> Reference<'a> {
    /// A pod that is known.
    pub(super) fn of(pod: &Incarnation, controller: &'a Controller, now: Timestamp) -> Self {
        let slot = controller.slots.get(&pod.slot).map(|slot| &slot.times);
        Reference { slot, ran: pod.life.running.map(|_| pod.life.running(now)) }
    }
}

impl Measured {
    /// A controller, from the point of view of a pod or of none.
    pub(super) fn of(controller: &Controller, reference: Option<Reference<'_>>, now: Timestamp) -> Self {
        let approach = controller.approach;
        let own = reference.and_then(|reference| reference.slot);
        let times = own.filter(|_| approach == Approach::Independent).unwrap_or(&controller.times);
        let ran = reference.and_then(|reference| reference.ran);
        let (effective, discarded) = match approach {
            Approach::Independent | Approach::Average => (times.running(now), 0),
            Approach::Aggregate => {
                // What the pod in question ran is lost if it is evicted.
                let kept = times.kept(now) - ran.unwrap_or(0);
                (kept.max(0), times.running(now) - kept.max(0))
            }
            Approach::Concurrent => {
                let together = controller.together.at(now, controller.replicas);
                (together.effective(), together.discarded())
            }
        };
        Measured {
            approach,
            effective,
            discarded,
            waiting: times.waiting(now),
            binding: times.binding(),
            overhead: likely_overhead(times.binding(), times.incarnations()),
            running: controller.running,
            pending: controller.pending,
            replicas: controller.replicas,
            is_reference_running: ran.is_some(),
        }
    }

    /// A controller of which nothing is known but a pod that waits.
    fn of_newcomer(pod: &Pod, terms: &Terms<'_>, now: Timestamp) -> Self {
        let waiting = pod.created_at.map_or(0, |created| super::books::between(created, now));
        Measured {
            approach: terms.approach,
            effective: 0,
            discarded: 0,
            waiting,
            binding: 0,
            overhead: USUAL_OVERHEAD,
            running: 0,
            pending: 1,
            replicas: 1,
            is_reference_running: false,
        }
    }

    fn total(&self) -> Nanoseconds {
        self.effective + self.discarded + self.waiting + self.binding
    }

    /// The share of its time that the controller ran so that it counts.
    pub(super) fn qos(&self) -> f64 {
        share(self.effective, self.total())
    }

    /// In how many seconds the controller violates its SLO; below 0, how many it has to make up for.
    pub(super) fn metric(&self, slo: f64) -> f64 {
        if slo <= 0.0 {
            // It asks for nothing, so nothing violates it.
            return f64::INFINITY;
        }
        let (effective, total) = (seconds(self.effective), seconds(self.total()));
        let overhead = seconds(self.overhead);
        let debt = effective / slo - total - overhead;
        match self.approach {
            Approach::Independent => debt,
            Approach::Average | Approach::Aggregate => {
                let qos = self.qos();
                if qos < slo {
                    return debt;
                }
                if qos > slo { self.time_left(slo, effective, total) - overhead } else { 0.0 }
            }
            Approach::Concurrent if self.qos() < slo => debt,
            Approach::Concurrent => {
                let replicas = f64::from(self.replicas.max(1));
                effective / (replicas * slo) - total / replicas
            }
        }
    }

    /// How long it takes until the share that runs now has brought the average down to the SLO.
    fn time_left(&self, slo: f64, effective: f64, total: f64) -> f64 {
        let staying = f64::from(self.running) - f64::from(u8::from(self.is_reference_running));
        let all = f64::from(self.running + self.pending);
        if all == 0.0 || staying / all >= slo {
            return f64::INFINITY;
        }
        (effective - slo * total) / (all * slo - staying)
    }

    /// How long, in seconds, the controller could do nothing until it violates its SLO, bindings aside: what the table shows.
    pub(super) fn time_to_violation(&self, slo: f64) -> f64 {
        if slo <= 0.0 {
            return f64::INFINITY;
        }
        seconds(self.effective) / slo - seconds(self.effective + self.discarded + self.waiting)
    }

    /// Which share of its time on nodes the controller has lost to preemption.
    pub(super) fn preemption_overhead(&self) -> f64 {
        let lost = match self.approach {
            Approach::Aggregate => self.binding + self.discarded,
            _ => self.binding,
        };
        share(lost, self.binding + self.effective + self.discarded)
    }

    pub(super) fn replicas(&self) -> u32 {
        self.replicas
    }
}

impl State {
    /// The metric of a pod, in seconds: of its controller, from its point of view.
    pub(super) fn metric(&self, pod: &Pod, now: Timestamp) -> f64 {
        if is_system(pod) {
            return f64::NEG_INFINITY;
        }
        let known = self.pods.get(&pod.uid);
        match known.and_then(|known| Some((known, self.controllers.get(&known.controller)?))) {
            None => self.waiting_metric(pod, &Terms::of(pod), now),
            Some((known, controller)) => {
                let reference = Reference::of(known, controller, now);
                Measured::of(controller, Some(reference), now).metric(known.slo)
            }
        }
    }

    /// The same for a pod that waits, and is none of the system's; less has to be looked up.
    pub(super) fn waiting_metric(&self, pod: &Pod, terms: &Terms<'_>, now: Timestamp) -> f64 {
        let newcomer = || Measured::of_newcomer(pod, terms, now).metric(terms.slo);
        let Some(controller) = self.controller_of(pod, terms) else { return newcomer() };
        if controller.approach != Approach::Independent {
            return Measured::of(controller, None, now).metric(terms.slo);
        }
        // Its slot counts, if it has one by then.
        let slot = self.pods.get(&pod.uid).and_then(|known| controller.slots.get(&known.slot));
        slot.map_or_else(newcomer, |slot| {
            let reference = Reference { slot: Some(&slot.times), ran: None };
            Measured::of(controller, Some(reference), now).metric(terms.slo)
        })
    }
}

/// What binding one more pod costs, if it costs what it cost on average.
fn likely_overhead(binding: Nanoseconds, incarnations: u64) -> Nanoseconds {
    if binding > 0 { binding / Nanoseconds::from(incarnations.max(1)) } else { USUAL_OVERHEAD }
}

pub(super) fn seconds(length: Nanoseconds) -> f64 {
    // Processors convert numbers of 64 bits, and up to three hundred years are such; the result is the same.
    let nanoseconds = i64::try_from(length).map_or(length as f64, |length| length as f64);
    nanoseconds / 1e9
}

/// A part of a whole; nothing of nothing.
fn share(part: Nanoseconds, whole: Nanoseconds) -> f64 {
    if whole == 0 { 0.0 } else { seconds(part) / seconds(whole) }
}
