//! Questions about one pod: it waits for the answers for a while, and others are tried meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use supercargo_framework::{LeftOut, PodAnswer, QuerySource, Question, witness};
use supercargo_model::{Object, Pod, Timestamp};

use super::catching::caught;
use super::heap::Slot;
use super::observations::Observation;
use super::queue_context::profile_of;
use super::replacing::EndAttempt;
use super::{Scheduler, Ticket};
use crate::decision::Decision;

/// For so many pods questions are asked at a time. If there are so many, no further pod is tried until one of them is answered, or has waited
/// long enough.
const INQUIRIES_MAX: usize = 256;

/// A question about a pod, for the driver to ask.
#[derive(Clone, Debug)]
pub struct PodQuestion {
    /// The number under which the answer is told.
    pub ticket: Ticket,
    /// The pod.
    pub pod: Arc<Pod>,
    /// The question: how long the answer may take, and how it is read.
    pub question: Question,
    /// Who is asked, and what.
    pub source: QuerySource,
}

/// The pods that wait for answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Inquiries {
    pods: BTreeMap<Arc<str>, Inquiry>,
    /// Whose question each number is.
    tickets: BTreeMap<Ticket, (Arc<str>, Question)>,
    /// When each pod has waited long enough.
    ends: BTreeSet<(Timestamp, Arc<str>)>,
    /// The pods that wait for nothing any more, and are tried next.
    ready: VecDeque<Arc<str>>,
    /// What the driver has not taken yet.
    questions: Vec<PodQuestion>,
}

/// A pod that waits for answers.
#[derive(Clone, Debug)]
struct Inquiry {
    slot: Slot,
    open: BTreeSet<Ticket>,
    until: Timestamp,
    answers: Vec<(String, PodAnswer)>,
}

impl Inquiries {
    /// When the first pod has waited long enough.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Whether no further pod is to be asked about.
    pub(super) fn is_full(&self) -> bool {
        self.pods.len() >= INQUIRIES_MAX
    }

    /// The clock was set: moves all points in time along.
    pub(super) fn move_times(&mut self, moved: impl Fn(&mut Timestamp)) {
        for inquiry in self.pods.values_mut() {
            moved(&mut inquiry.until);
        }
        self.ends = self
            .pods
            .iter()
            .filter(|(_, inquiry)| !inquiry.open.is_empty())
            .map(|(uid, inquiry)| (inquiry.until, uid.clone()))
            .collect();
    }

    /// What is still asked about a pod counts for nothing.
    fn forget(&mut self, uid: &Arc<str>) {
        let Some(inquiry) = self.pods.remove(uid) else { return };
        self.ends.remove(&(inquiry.until, uid.clone()));
        for ticket in inquiry.open {
            self.tickets.remove(&ticket);
        }
    }

    /// A pod waits for nothing any more.
    fn make_ready(&mut self, uid: &Arc<str>) {
        if let Some(inquiry) = self.pods.get_mut(uid) {
            self.ends.remove(&(inquiry.until, uid.clone()));
            for ticket in std::mem::take(&mut inquiry.open) {
                self.tickets.remove(&ticket);
            }
            self.ready.push_back(uid.clone());
        }
    }
}

impl Scheduler {
    /// The questions about pods that are to be asked now.
    pub fn take_questions(&mut self) -> Vec<PodQuestion> {
        std::mem::take(&mut self.inquiries.questions)
    }

    /// What was answered to a question about a pod, read; or, in a word, why there is no answer. What comes too late changes nothing.
    pub fn question_answered(&mut self, ticket: Ticket, answer: Result<PodAnswer, &'static str>) {
        let Some((uid, question)) = self.inquiries.tickets.remove(&ticket) else {
            return self.observe(Observation::AnswerDropped);
        };
        let question = question.name().to_owned();
        let Some(inquiry) = self.inquiries.pods.get_mut(&uid) else { return };
        inquiry.open.remove(&ticket);
        let is_last = inquiry.open.is_empty();
        match answer {
            // Whether anything of it counts is known when the pod is decided.
            Ok(answer) => inquiry.answers.push((question, answer)),
            Err(result) => self.note_asked(question, result, LeftOut::default()),
        }
        if is_last {
            self.inquiries.make_ready(&uid);
        }
    }

    /// Asks what plugins want to know about a pod; false if they want to know nothing, so that it can be decided at once.
    pub(super) fn inquire(&mut self, slot: Slot, pod: &Arc<Pod>, now: Timestamp) -> bool {
        let asked = self.questions_about(pod);
        if asked.is_empty() {
            return false;
        }
        // A pod of this UID that was forgotten, and came again.
        self.inquiries.forget(&pod.uid);
        let deadline = asked.iter().map(|(question, _)| question.deadline()).max().unwrap_or_default();
        let until = now.after(deadline);
        let mut open = BTreeSet::new();
        for (question, source) in asked {
            self.last_ticket += 1;
            let ticket = Ticket(self.last_ticket);
            open.insert(ticket);
            self.inquiries.tickets.insert(ticket, (pod.uid.clone(), question.clone()));
            self.inquiries.questions.push(PodQuestion { ticket, pod: pod.clone(), question, source });
        }
        self.inquiries.ends.insert((until, pod.uid.clone()));
        let inquiry = Inquiry { slot, open, until, answers: Vec::new() };
        self.inquiries.pods.insert(pod.uid.clone(), inquiry);
        true
    }

    /// What is asked about a pod, of whom. A plugin that panics, or whose source cannot be asked, goes without an answer.
    fn questions_about(&mut self, pod: &Arc<Pod>) -> Vec<(Question, QuerySource)> {
        let Some(number) = profile_of(self.engine.profiles(), pod) else { return Vec::new() };
        let profile = &self.engine.profiles()[number];
        if profile.reads.as_ref().is_none_or(|reads| reads.questions.is_empty()) {
            return Vec::new();
        }
        let declared: Vec<(&'static str, Question)> = profile
            .plugins()
            .iter()
            .flat_map(|plugin| plugin.reads.questions.iter().map(|question| (plugin.name, question.clone())))
            .collect();
        let mut asked = Vec::new();
        for (plugin, question) in declared {
            match caught(|| witness::run(plugin, || question.ask(pod))) {
                Ok(None) => {}
                Ok(Some(source)) if source.validate().is_ok() => asked.push((question, source)),
                Ok(Some(_)) => self.note_asked(question.name().to_owned(), "unaskable", LeftOut::default()),
                Err(panicked) => self.tell_of_panic(pod, &panicked),
            }
        }
        asked
    }

    /// The pods that have waited long enough are decided without what was not answered.
    pub(super) fn end_inquiries(&mut self, now: Timestamp) {
        while let Some((end, uid)) = self.inquiries.ends.first().cloned()
            && end <= now
        {
            let open = self.inquiries.pods.get(&uid).map(|inquiry| inquiry.open.clone()).unwrap_or_default();
            for ticket in open {
                if let Some((_, question)) = self.inquiries.tickets.remove(&ticket) {
                    self.note_asked(question.name().to_owned(), "timeout", LeftOut::default());
                }
            }
            self.inquiries.make_ready(&uid);
        }
    }

    /// Decides a pod that waits for answers no longer, with those that came. None if there is no such pod.
    pub(super) fn decide_next_asked(&mut self, now: Timestamp) -> Option<Decision> {
        while let Some(uid) = self.inquiries.ready.pop_front() {
            let Some(Inquiry { slot, answers, .. }) = self.inquiries.pods.remove(&uid) else { continue };
            // It may have gone meanwhile, or been bound by somebody else.
            if !self.queue.is_in_flight(&uid, slot) {
                continue;
            }
            let pod = self.queue.get(slot).queued.pod.clone();
            if self.skips_deleted(&pod, now) {
                continue;
            }
            let objects = self.answers_of(&pod, answers);
            let decision = self.try_pod(slot, &pod, objects, now);
            if decision.is_some() || self.consultation.is_some() {
                return decision;
            }
        }
        None
    }

    /// Does something while the answers about a pod are there: nobody else sees them.
    pub(super) fn with_answers<R>(&mut self, answers: &[Object], act: impl FnOnce(&mut Self) -> R) -> R {
        for object in answers {
            self.engine.cluster.put_object(object.clone());
        }
        // Whoever catches the panic of a plugin goes on with this cluster.
        let result = catch_unwind(AssertUnwindSafe(|| act(self)));
        for object in answers {
            self.engine.cluster.remove_object(object.kind, &object.key);
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The objects that answers about a pod are while it is decided.
    fn answers_of(&mut self, pod: &Pod, answers: Vec<(String, PodAnswer)>) -> Vec<Object> {
        let mut objects = Vec::new();
        for (question, answer) in answers {
            let mut left_out = LeftOut::default();
            let object = answer.into_object(pod, self.engine.cluster.snapshot(), &mut left_out);
            let result = if object.is_some() { "success" } else { "unknown nodes" };
            self.note_asked(question, result, left_out);
            objects.extend(object);
        }
        objects
    }

    /// Breaks off all attempts for which somebody is being asked. What becomes of their pods is up to the queue.
    pub(super) fn break_off_inquiries(&mut self, now: Timestamp, end: EndAttempt) {
        let inquiries = std::mem::take(&mut self.inquiries);
        for (uid, inquiry) in inquiries.pods {
            if self.queue.is_in_flight(&uid, inquiry.slot) {
                self.with_queue(now, |queue, context| end(queue, context, inquiry.slot));
            }
        }
    }

    fn note_asked(&mut self, question: String, result: &'static str, left_out: LeftOut) {
        self.observe(Observation::QuestionAsked { question, result, left_out });
    }
}
