//! Somebody outside, who answers what a test says.

use supercargo_engine::AnswerTaken;
use supercargo_framework::{Facts, Query};

use crate::name::short;
use crate::world::World;

impl World {
    /// Somebody answers a query that a plugin declares with this text, as it comes over the wire. Returns what of it does not count, in
    /// words; or why it cannot be read, which is as if nobody had answered.
    #[track_caller]
    pub fn answer(&mut self, query: &str, text: &str) -> Result<String, String> {
        let facts = self.query(query).read(text.as_bytes(), self.now);
        let reason = facts.as_ref().err().cloned();
        let taken = self.scheduler.answered(query, facts, self.now);
        match (taken, reason) {
            (Some(taken), _) => Ok(taken.left_out.to_string()),
            (None, reason) => Err(reason.unwrap_or_default()),
        }
    }

    /// The same with facts in the plugin's own type: `Facts::per_node([("n1", Load(0.3))], world.now())`.
    #[track_caller]
    pub fn answer_facts(&mut self, query: &str, facts: Facts) -> AnswerTaken {
        let declared = self.query(query);
        assert!(declared.owns(&facts), "{declared:?} has facts of another kind or form: {facts:?}");
        self.scheduler.answered(query, Ok(facts), self.now).expect("it is asked, and these are its facts")
    }

    /// Somebody answers what is asked about a pod that is being tried, with this text; an error says why it cannot be read, and the pod
    /// is decided without it. Who says nothing lets the time of the question [pass](World::pass_time).
    #[track_caller]
    pub fn answer_about(&mut self, pod: &str, text: &str) -> Result<(), String> {
        self.questions.extend(self.scheduler.take_questions());
        let is_asked =
            |asked: &supercargo_engine::PodQuestion| short(&asked.pod.namespace, &asked.pod.name) == pod;
        let Some(place) = self.questions.iter().rposition(is_asked) else {
            panic!(
                "nobody asks about pod {pod:?}: run the scheduler first, and look whether a plugin has a question"
            )
        };
        let asked = self.questions.remove(place);
        let answer = asked.question.read(&asked.source, text.as_bytes(), self.now);
        let reason = answer.as_ref().err().cloned();
        self.scheduler.question_answered(asked.ticket, answer.map_err(|_| "unreadable"));
        reason.map_or(Ok(()), Err)
    }

    #[track_caller]
    fn query(&self, name: &str) -> Query {
        let Some(query) = self.scheduler.queries().find(|query| query.name() == name) else {
            panic!("no plugin of this configuration asks {name:?}")
        };
        query.clone()
    }
}
