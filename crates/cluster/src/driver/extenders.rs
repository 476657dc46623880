//! Extenders are asked by tasks of their own, and what they answer is told to the scheduler.

use std::time::Duration;

use supercargo_engine::{Observer, Ticket};
use supercargo_framework::{AskFailure, EXTENDER_SETTLES_AFTER, ExtenderAnswer, ExtenderQuestion};

use super::Driver;

/// What an extender answered to an order.
pub(super) type Answered = (Ticket, Result<ExtenderAnswer, AskFailure>);

impl<O: Observer> Driver<O> {
    pub(super) fn hear(&mut self, (ticket, answer): Answered) {
        if let Err(error) = &answer {
            self.log.extender_failed(&error.to_string());
        }
        let (now, began) = (self.clock.now(), self.started.elapsed());
        if let Some(decision) = self.scheduler.answer(ticket, answer, now) {
            let (pace, scheduler, mut surroundings) = self.parts();
            pace.tell(scheduler, &decision, began, &mut surroundings);
        }
    }

    pub(super) fn ask(&self, ticket: Ticket, extender: usize, question: ExtenderQuestion) {
        let (client, answered) = (self.extenders.get(extender).cloned(), self.answered.clone());
        let gate = self.gate.clone();
        self.tasks.spawn_finite("question to an extender", async move {
            // An extender may bind the pod, so it is asked under the same condition as the API server.
            let answer = match (client, gate.pass()) {
                (_, None) => Err(AskFailure::Answered("this replica does not hold the lease".to_owned())),
                (None, Some(passage)) => {
                    passage.answered();
                    Err(AskFailure::Answered("the configuration has no such extender".to_owned()))
                }
                (Some(client), Some(passage)) => {
                    let binds = matches!(question, ExtenderQuestion::Bind { .. });
                    let settles_after = if binds { EXTENDER_SETTLES_AFTER } else { Duration::ZERO };
                    let passage = passage.settling_after(settles_after);
                    let answer = client.ask(&question).await;
                    if !matches!(answer, Err(AskFailure::Unanswered(_))) {
                        passage.answered();
                    }
                    answer
                }
            };
            // It is no error if the driver has stopped and takes no answer.
            let _ = answered.send((ticket, answer));
        });
    }
}
