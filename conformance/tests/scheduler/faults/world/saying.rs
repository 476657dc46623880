//! What is said about pods: one thing after the other for each, and only the newest of what waits.

use supercargo_engine::Order;
use supercargo_framework::{Conclusion, Effect, Nomination};

use super::super::orders::{OrderKind, about};
use super::super::server::Refusal;
use super::{Answer, Reply, World};

impl World {
    /// As in the performer, what was to be said about a pod and was not sent yet goes unsaid when the pod is to be bound.
    pub(super) fn drop_outdated(&mut self, effect: &Effect) {
        let Effect::Bind { pod, .. } = effect else { return };
        if let Some(outdated) = self.take_unsent(&pod.uid) {
            self.coverage.met("dropped for a binding", OrderKind::Status);
            self.reply_unsent(&outdated, Conclusion::not_done("the pod gets a node"));
        }
    }

    /// As in the performer, what is newly to be said about a pod takes the place of what was not sent yet, and says that as well.
    pub(super) fn with_older(&mut self, mut order: Order) -> Order {
        let Effect::UpdateStatus { pod, condition, nomination } = &mut order.effect else { return order };
        let Some(older) = self.take_unsent(&pod.uid) else { return order };
        if let Effect::UpdateStatus { condition: old_condition, nomination: old_nomination, .. } =
            &older.effect
        {
            if condition.is_none() {
                condition.clone_from(old_condition);
            }
            if *nomination == Nomination::Keep {
                nomination.clone_from(old_nomination);
            }
        }
        self.coverage.met("replaced by a newer one", OrderKind::Status);
        self.reply_unsent(&older, Conclusion::Done);
        order
    }

    /// What was to be said about a pod, and waits.
    fn take_unsent(&mut self, uid: &str) -> Option<Order> {
        let is_it = |order: &Order| {
            let (kind, _, about) = about(&order.effect);
            kind == OrderKind::Status && about == uid
        };
        let place = self.open.iter().position(is_it)?;
        Some(self.open.swap_remove(place))
    }

    fn reply_unsent(&mut self, order: &Order, conclusion: Conclusion) {
        let Some(ticket) = order.ticket else { return };
        let (kind, _, uid) = about(&order.effect);
        let version = self.server.pod_with_uid(&uid).map_or(0, |pod| pod.version);
        let about = (kind, uid, version);
        let answer = Answer::Concluded(conclusion);
        self.replies.push(Reply { ticket, answer, about, landing: None, comes_twice: false, is_sent: false });
    }

    /// Whether something is being said about a pod: what is to be said next waits for that.
    pub(super) fn is_being_said(&self, uid: &str) -> bool {
        let is_it = |reply: &Reply| reply.about.0 == OrderKind::Status && reply.about.1 == uid;
        self.replies.iter().any(|reply| reply.is_sent && !reply.is_repeated() && is_it(reply))
    }

    pub(super) fn update_status(&mut self, effect: &Effect) -> Result<(), Refusal> {
        let Effect::UpdateStatus { pod, condition, nomination } = effect else { return Ok(()) };
        let condition =
            condition.as_ref().map(|condition| (condition.reason.to_string(), condition.message.clone()));
        let nominated = match nomination {
            Nomination::Keep => None,
            Nomination::Clear => Some(None),
            Nomination::Node(node) => Some(Some(node.to_string())),
        };
        self.server.set_status((&pod.name, &pod.uid), condition, nominated)
    }
}
