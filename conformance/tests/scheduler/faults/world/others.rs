//! What users, other writers and kubelets do, aimed at pods on every step of their way.

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_engine::{Order, PodPlace};
use supercargo_framework::Effect;

use super::super::coverage::PodStep;
use super::super::orders::{OrderKind, about};
use super::super::plan::{Act, Draw};
use super::super::plugins::{AWAITS, GANG, HELD, PREPARED};
use super::{PODS_MAX, Reply, World};

impl World {
    pub(super) fn add_pod(&mut self, draw: &mut Draw) {
        if self.server.pods().count() >= PODS_MAX {
            return;
        }
        self.created += 1;
        let labels = match draw.below(10) {
            0 | 1 => vec![GANG],
            2 | 3 => vec![PREPARED],
            4 | 5 => vec![GANG, PREPARED],
            6 => vec![HELD],
            7 => vec![AWAITS],
            _ => Vec::new(),
        };
        let name = format!("p{}", self.created);
        self.server.create(&name, 1 + draw.below(2), draw.below(3) as i32, labels);
    }

    pub(super) fn foreign_bind(&mut self, draw: &mut Draw) {
        let Some((name, uid, step)) = self.draw_pod(draw) else { return };
        let nodes = self.server.node_names();
        if let Some(node) = draw.pick(&nodes)
            && self.server.bind(&name, &uid, node).is_ok()
        {
            self.coverage.met("bound by another", step);
        }
    }

    pub(super) fn lose_pod(&mut self, act: Act, draw: &mut Draw) {
        let Some((name, uid, step)) = self.draw_pod(draw) else { return };
        if self.server.pod(&name).is_none_or(|pod| pod.uid != uid) {
            return;
        }
        if act == Act::DeletePod {
            self.coverage.met("deleted", step);
            self.server.delete(&name, draw.below(2) == 0);
        } else {
            self.coverage.met("recreated", step);
            self.server.recreate(&name);
        }
    }

    pub(super) fn lose_node(&mut self, act: Act, draw: &mut Draw) {
        let aims: Vec<(PodStep, String)> =
            self.steps().into_iter().filter_map(|(_, _, step, node)| Some((step, node?))).collect();
        let mut kinds: Vec<PodStep> = aims.iter().map(|(step, _)| *step).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let aimed = draw.pick(&kinds).and_then(|kind| aims.iter().find(|(step, _)| step == kind));
        let nodes = self.server.node_names();
        let Some(name) = aimed.map(|(_, node)| node.clone()).or_else(|| draw.pick(&nodes).cloned()) else {
            return;
        };
        let Some(cpu) = self.server.cpu_of(&name) else { return };
        let fault = if act == Act::ShrinkNode { "node smaller" } else { "node gone" };
        for (step, _) in aims.iter().filter(|(_, node)| *node == name) {
            self.coverage.met(fault, step);
        }
        self.server.remove_node(&name);
        if act == Act::ShrinkNode {
            self.server.put_node(&name, cpu.saturating_sub(1).max(1));
        }
    }

    pub(super) fn end_pods(&mut self) {
        let leaving = self.server.pods().filter(|pod| pod.is_terminating);
        for name in leaving.map(|pod| pod.name.clone()).collect::<Vec<_>>() {
            self.server.remove(&name);
        }
    }

    /// Whether a pod is being evicted, for whatever other pod.
    pub(super) fn is_being_evicted(&self, uid: &str) -> bool {
        let is_open =
            |order: &Order| matches!(&order.effect, Effect::Evict { victim, .. } if *victim.uid == *uid);
        let is_sent = |reply: &Reply| reply.about.0 == OrderKind::Evict && reply.about.1 == uid;
        self.open.iter().any(is_open)
            || self.replies.iter().any(|reply| !reply.is_repeated() && is_sent(reply))
    }

    /// How many orders that can bind a pod are under way.
    pub(super) fn bindings_under_way(&self, uid: &str) -> usize {
        let is_bind = |kind: OrderKind| matches!(kind, OrderKind::Bind | OrderKind::ExtenderBind);
        let open = self.open.iter().filter(|order| {
            let (kind, _, about) = about(&order.effect);
            is_bind(kind) && about == uid
        });
        let sent = self
            .replies
            .iter()
            .filter(|reply| !reply.is_repeated() && is_bind(reply.about.0) && reply.about.1 == uid);
        open.count() + sent.count()
    }

    /// A pod on a step that is drawn among those that pods are on, so that rare steps are met as often as others.
    pub(super) fn draw_pod(&mut self, draw: &mut Draw) -> Option<(String, String, PodStep)> {
        let pods = self.steps();
        let mut kinds: Vec<PodStep> = pods.iter().map(|(_, _, step, _)| *step).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind = *draw.pick(&kinds)?;
        let among: Vec<_> = pods.into_iter().filter(|(_, _, step, _)| *step == kind).collect();
        draw.pick(&among).map(|(name, uid, step, _)| (name.clone(), uid.clone(), *step))
    }

    /// How far each pod without a confirmed node has come, and to which node.
    pub(super) fn steps(&mut self) -> Vec<(String, String, PodStep, Option<String>)> {
        let books = self.scheduler.books();
        let pods: Vec<(String, String, Option<String>)> =
            self.server.pods().map(|pod| (pod.name.clone(), pod.uid.clone(), pod.node.clone())).collect();
        let mut steps = Vec::new();
        for (name, uid, at_server) in pods {
            if books.unconfirmed.contains(&*uid) {
                steps.push((name, uid, PodStep::Unconfirmed, at_server));
                continue;
            }
            let Some(found) = self.scheduler.whereabouts("default", &name, self.now) else { continue };
            if *found.uid != *uid {
                continue;
            }
            let (step, node) = self.step_at(&uid, found.place);
            steps.push((name, uid, step, node.map(|node| node.to_string())));
        }
        steps
    }

    fn step_at(&self, uid: &str, place: PodPlace) -> (PodStep, Option<Arc<str>>) {
        match place {
            PodPlace::Tried { .. } => (PodStep::Decided, None),
            PodPlace::Permit { node, .. } => (PodStep::Permit, Some(node)),
            PodPlace::PreBind { node, .. } => (PodStep::PreBind, Some(node)),
            PodPlace::Binding { node, .. } => {
                let is_open = self.open.iter().any(|order| {
                    let (kind, _, about) = about(&order.effect);
                    kind != OrderKind::Status && about == uid
                });
                (if is_open { PodStep::Ordered } else { PodStep::Sent }, Some(node))
            }
            PodPlace::Unresolved { node, .. } => (PodStep::Unresolved, Some(node)),
            PodPlace::Active { .. }
            | PodPlace::Backoff { .. }
            | PodPlace::Unschedulable { .. }
            | PodPlace::Held { .. } => (PodStep::Queued, None),
        }
    }

    /// How far each pod has come that the scheduler knows and that has no confirmed node, by UID, whether the server has it or not.
    pub(super) fn known_steps(&mut self) -> BTreeMap<String, PodStep> {
        let books = self.scheduler.books();
        let (places, _) = self.scheduler.all_whereabouts(usize::MAX, self.now);
        let mut steps: BTreeMap<String, PodStep> =
            books.unconfirmed.iter().map(|uid| (uid.to_string(), PodStep::Unconfirmed)).collect();
        for (pod, found) in places {
            let (step, _) = self.step_at(&pod.uid, found.place);
            steps.entry(pod.uid.to_string()).or_insert(step);
        }
        steps
    }

    pub(super) fn meet_all(&mut self, fault: &'static str) {
        for (_, _, step, _) in self.steps() {
            self.coverage.met(fault, step);
        }
    }
}
