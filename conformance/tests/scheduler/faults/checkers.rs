//! What must hold after every step, whatever happened. The numbers are those of `docs/reference/guarantees.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_engine::PodPlace;

use super::orders::Ordered;
use super::plugins::KnownPods;
use super::world::World;

/// Something that must hold.
pub(super) trait Checker {
    /// What it is called in messages.
    fn name(&self) -> &'static str;

    /// Looks at the world after a step; an error says what is wrong.
    fn check(&mut self, world: &mut World) -> Result<(), String>;
}

/// C1: a pod has one binding at a time, and none once one of ours has bound it, or the watch has said that it is bound.
pub(super) struct OneBinding;

/// C2: no binding fills a node beyond what it has, as long as nobody else binds pods or changes nodes.
pub(super) struct NoNodeOver;

/// C3: a pod that the watch has said to be bound counts on its node.
pub(super) struct ToldIsCounted;

/// C4: a pod that counts without the watch's word is being bound, or is bound at the server.
pub(super) struct CountedIsBound;

/// C5: a replica that does not lead writes nothing.
pub(super) struct FollowersOnlyRead;

/// C6: nobody is evicted for a pod that is known to be bound.
pub(super) struct NoVictimsForBound;

/// C7: an answer counts once, for the step that asked: a pod is said to be scheduled only if the server has bound it.
pub(super) struct ScheduledIsTrue;

/// C8, as long as faults go on: a pod that is held back while its victims are evicted has victims that are. When faults have ended, every
/// pod that fits is bound: `at_rest` in `mod.rs`.
pub(super) struct HeldForVictims;

/// C9: a plugin that observes knows the pods that the scheduler knows, and where they are by what the API server says.
pub(super) struct ObserversKnow;

/// C10: when nothing fails any more, every pod that waits says what was last meant about why it waits.
pub(super) struct MeantIsSaid;

/// C11: what the scheduler keeps stays within its limits, and room is kept for nobody who does not wait for it.
pub(super) struct BoundedBooks;

pub(super) fn all() -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(OneBinding),
        Box::new(NoNodeOver),
        Box::new(ToldIsCounted),
        Box::new(CountedIsBound),
        Box::new(FollowersOnlyRead),
        Box::new(NoVictimsForBound),
        Box::new(ScheduledIsTrue),
        Box::new(HeldForVictims),
        Box::new(ObserversKnow),
        Box::new(MeantIsSaid),
        Box::new(BoundedBooks),
    ]
}

impl Checker for OneBinding {
    fn name(&self) -> &'static str {
        "C1"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        for taken in &world.taken {
            let Ordered::Bind { uid } = &taken.what else { continue };
            if taken.was_bound || taken.was_bound_by_us {
                return Err(format!("{uid} is bound, and is to be bound again"));
            }
            if taken.bindings > 1 {
                return Err(format!("{uid} is being bound twice at once"));
            }
        }
        let twice = world.server.bindings.iter().find(|(_, nodes)| nodes.len() > 1);
        twice.map_or(Ok(()), |(uid, nodes)| Err(format!("{uid} was bound to {nodes:?}")))
    }
}

impl Checker for NoNodeOver {
    fn name(&self) -> &'static str {
        "C2"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        if world.setup.has_others || world.over.is_empty() {
            return Ok(());
        }
        Err(format!("there is more on {} than it has", world.over.join(" and ")))
    }
}

impl Checker for ToldIsCounted {
    fn name(&self) -> &'static str {
        "C3"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        let cluster = world.scheduler.cluster();
        for (uid, node) in &world.told {
            let Some(node) = node else { continue };
            let Some(row) = cluster.row_of(node) else { continue };
            if !cluster.node(row).pods().iter().any(|pod| *pod.uid == **uid) {
                return Err(format!("{uid} is bound to {node}, and does not count there"));
            }
        }
        Ok(())
    }
}

impl Checker for CountedIsBound {
    fn name(&self) -> &'static str {
        "C4"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        let books = world.scheduler.books();
        let cluster = world.scheduler.cluster();
        for node in cluster.nodes() {
            for pod in node.pods() {
                let is_told =
                    world.told.get(&*pod.uid).is_some_and(|told| told.as_deref() == Some(&**node.name()));
                if is_told || books.binding.contains(&pod.uid) {
                    continue;
                }
                // The server knows it better than the watch, or the watch has yet to tell that it is gone.
                let is_right = match world.server.pod_with_uid(&pod.uid) {
                    Some(known) => known.node.as_deref() == Some(&**node.name()),
                    None => world.told.contains_key(&*pod.uid),
                };
                if !is_right {
                    return Err(format!("{} counts on {}, and nobody binds it there", pod.uid, node.name()));
                }
            }
        }
        Ok(())
    }
}

impl Checker for FollowersOnlyRead {
    fn name(&self) -> &'static str {
        "C5"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        let written = world.taken.iter().find(|taken| !taken.led && !matches!(taken.what, Ordered::Read));
        written.map_or(Ok(()), |taken| Err(format!("a replica that follows orders {:?}", taken.what)))
    }
}

impl Checker for NoVictimsForBound {
    fn name(&self) -> &'static str {
        "C6"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        let is_bound = |uid: &str| world.told.get(uid).is_some_and(Option::is_some);
        for taken in &world.taken {
            if let Ordered::Evict { preemptor } = &taken.what
                && taken.was_bound
            {
                return Err(format!("a victim is evicted for {preemptor}, which is bound"));
            }
        }
        let books = world.scheduler.books();
        let bound = books.preempting.iter().find(|uid| is_bound(uid));
        bound.map_or(Ok(()), |uid| Err(format!("victims are being evicted for {uid}, which is bound")))
    }
}

impl Checker for ScheduledIsTrue {
    fn name(&self) -> &'static str {
        "C7"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        for taken in &world.taken {
            if let Ordered::Scheduled { uid, node } = &taken.what
                && !world.server.bindings.get(uid).is_some_and(|nodes| nodes.contains(node))
            {
                return Err(format!(
                    "{uid} is said to be scheduled to {node}, and the server knows nothing of it"
                ));
            }
        }
        Ok(())
    }
}

impl Checker for HeldForVictims {
    fn name(&self) -> &'static str {
        "C8"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        let preempting = world.scheduler.books().preempting;
        let (waiting, _) = world.scheduler.all_whereabouts(usize::MAX, world.now());
        for (pod, found) in waiting {
            let PodPlace::Held { plugin: None, reason, .. } = found.place else { continue };
            if reason.contains("being evicted") && !preempting.contains(&pod.uid) {
                return Err(format!("{} waits until its victims are evicted, and none is", pod.uid));
            }
        }
        Ok(())
    }
}

impl Checker for ObserversKnow {
    fn name(&self) -> &'static str {
        "C9"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        let books = world.scheduler.books();
        let mut expected: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
        for node in world.scheduler.cluster().nodes() {
            for pod in node.pods() {
                let is_assumed = books.binding.contains(&pod.uid) || books.unconfirmed.contains(&pod.uid);
                let name = if is_assumed { "".into() } else { node.name().clone() };
                expected.insert(pod.uid.clone(), name);
            }
        }
        let (waiting, untold) = world.scheduler.all_whereabouts(usize::MAX, world.now());
        assert_eq!(untold, 0, "there is no limit");
        for (pod, _) in waiting {
            expected.entry(pod.uid.clone()).or_insert_with(|| "".into());
        }
        let known = world.scheduler.memories().get::<KnownPods>().cloned().unwrap_or_default().0;
        for (uid, node) in &expected {
            if known.get(uid) != Some(node) {
                return Err(format!("{uid} is on {node:?}, and the plugin knows {:?}", known.get(uid)));
            }
        }
        match known.iter().find(|(uid, _)| !world.told.contains_key(&***uid)) {
            Some((uid, _)) => Err(format!("{uid} is gone, and the plugin does not know")),
            None => Ok(()),
        }
    }
}

impl Checker for MeantIsSaid {
    fn name(&self) -> &'static str {
        "C10"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        if !world.is_at_rest {
            return Ok(());
        }
        for pod in world.server.pods().filter(|pod| pod.node.is_none()) {
            let Some(meant) = world.meant.get(&pod.uid) else { continue };
            let said = pod.condition.as_ref().map(|(_, message)| message);
            if said != Some(meant) {
                return Err(format!("{} is to say {meant:?}, and says {said:?}", pod.uid));
            }
        }
        Ok(())
    }
}

impl Checker for BoundedBooks {
    fn name(&self) -> &'static str {
        "C11"
    }

    fn check(&mut self, world: &mut World) -> Result<(), String> {
        /// The queue's own limit.
        const HAPPENINGS_MAX: usize = 10_000;
        let books = world.scheduler.books();
        let (open, pods) = (world.open_tickets(), world.told.len());
        if books.tickets > open {
            return Err(format!("{} answers are waited for, and {open} can come", books.tickets));
        }
        let (waiting, _) = world.scheduler.all_whereabouts(usize::MAX, world.now());
        let waiting: BTreeSet<Arc<str>> = waiting.into_iter().map(|(pod, _)| pod.uid.clone()).collect();
        let cluster = world.scheduler.cluster();
        if let Some(pod) =
            cluster.nominated().flat_map(|(_, pods)| pods).find(|pod| !waiting.contains(&pod.uid))
        {
            return Err(format!("{} is nominated, and does not wait", pod.uid));
        }
        if let Some(uid) = books.over.iter().find(|uid| !world.told.contains_key(&***uid)) {
            return Err(format!(
                "{uid} is remembered as never to be bound, and everybody knows that it is gone"
            ));
        }
        if books.happenings > HAPPENINGS_MAX {
            return Err(format!("{} events are kept", books.happenings));
        }
        let lengths = world.scheduler.queue_lengths();
        let queued = lengths.active + lengths.backoff + lengths.unschedulable + lengths.gated;
        if queued > pods {
            return Err(format!("{queued} pods wait, and there are {pods}"));
        }
        Ok(())
    }
}
