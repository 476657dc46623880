//! Objects of which a part is worked out here: which of them may say something that is not true any more, and what people were told
//! about them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use supercargo_framework::{Acts, Conclusion, Context, Effect, Memory, SharedMap};
use supercargo_model::{KindId, ObjectKey, Timestamp};

use crate::community::controllers::{RETRY_PAUSE, notice};

/// So many names are looked at whenever the plugin is woken; the others a moment later.
const NAMES_PER_WAKE_MAX: usize = 1000;
/// How much later.
const NEXT_PAUSE: Duration = Duration::from_secs(1);
/// What is said about so many objects is remembered, so that it is not said again.
const TOLD_MAX: usize = 10_000;
/// A write that was not answered for so long holds nothing up any more: its answer may never come.
const ANSWER_PAUSE: Duration = Duration::from_secs(300);

/// What a plugin remembers of the objects that it keeps true.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StaleObjects {
    /// The names of those that are to be looked at again.
    names: SharedMap<String, ()>,
    /// The name that was looked at last: it goes on after that.
    last_taken: String,
    /// The names of those of which something is being written. They are not looked at meanwhile, or the same would be written again.
    writing: SharedMap<String, Writing>,
    /// When the plugin is woken next.
    wakes_at: Option<Timestamp>,
    /// What people were told about an object last, with its UID.
    told: SharedMap<String, String>,
}

/// Writes that were not answered yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Writing {
    count: usize,
    since: Timestamp,
}

impl StaleObjects {
    /// The plugin is woken that much earlier, or later.
    pub(crate) fn clock_was_set(&mut self, seconds: i64) {
        self.wakes_at = self.wakes_at.map(|wakes_at| wakes_at.moved(seconds));
    }
}

/// A memory that has such objects.
pub(crate) trait KeepsTrue: Memory {
    /// What is remembered.
    fn objects(&self) -> &StaleObjects;
    /// The same, to change it.
    fn objects_mut(&mut self) -> &mut StaleObjects;
}

/// Something that is wrong with an object.
pub(crate) struct Problem {
    /// The reason of the event: a word.
    pub(crate) reason: &'static str,
    /// The note of the event: a sentence that says what to do.
    pub(crate) note: String,
}

/// An object that people are told about.
pub(crate) struct Told<'a> {
    pub(crate) reporter: &'static str,
    pub(crate) kind: KindId,
    pub(crate) key: &'a ObjectKey,
    pub(crate) uid: &'a str,
}

/// The plugin begins, or begins anew: nobody was told by this replica, which perhaps did not lead, and what it wrote and asked for may be lost.
pub(crate) fn begin_anew<M: KeepsTrue>(acts: &mut Acts<'_>) {
    if acts.recall::<M>().is_some() {
        *acts.memory::<M>().objects_mut() = StaleObjects::default();
    }
}

/// Has the objects of a name looked at when so much time has passed.
pub(crate) fn mark_stale<M: KeepsTrue>(
    context: &Context<'_>,
    name: &str,
    pause: Duration,
    acts: &mut Acts<'_>,
) {
    let at = context.now.after(pause);
    // What waits for something slow is looked at sooner if something quick happens meanwhile.
    let is_in_time = |memory: &M| {
        let StaleObjects { names, wakes_at, .. } = memory.objects();
        wakes_at.is_some_and(|planned| planned <= at) && names.find(|known| (**known).cmp(name)).is_some()
    };
    if !acts.recall::<M>().is_some_and(is_in_time) {
        acts.memory::<M>().objects_mut().names.insert(name.to_owned(), ());
        plan_wake::<M>(at, acts);
    }
}

/// The names to look at now, in order; the rest is left for later.
pub(crate) fn take_stale<M: KeepsTrue>(context: &Context<'_>, acts: &mut Acts<'_>) -> Vec<String> {
    if acts.recall::<M>().is_none() {
        return Vec::new();
    }
    let objects = acts.memory::<M>().objects_mut();
    objects.writing.retain(|_, writing| context.now.since(writing.since) < ANSWER_PAUSE);
    let StaleObjects { names, last_taken, writing, .. } = &*objects;
    let free = || names.iter().map(|(name, ())| name).filter(|name| !writing.contains_key(name));
    let round = free().filter(|name| *name > last_taken).chain(free().filter(|name| *name <= last_taken));
    let mut names: Vec<String> = round.take(NAMES_PER_WAKE_MAX).cloned().collect();
    let is_left = names.len() == NAMES_PER_WAKE_MAX;
    if let Some(last) = names.last() {
        objects.last_taken.clone_from(last);
    }
    objects.wakes_at = None;
    for name in &names {
        objects.names.remove(name);
    }
    if !objects.names.is_empty() {
        let pause = if is_left { NEXT_PAUSE } else { ANSWER_PAUSE };
        plan_wake::<M>(context.now.after(pause), acts);
    }
    names.sort_unstable();
    names
}

/// Has the plugin woken then, unless it is woken before that anyway.
fn plan_wake<M: KeepsTrue>(at: Timestamp, acts: &mut Acts<'_>) {
    let objects = acts.memory::<M>().objects_mut();
    if objects.wakes_at.is_none_or(|planned| at < planned) {
        objects.wakes_at = Some(at);
        acts.wake_at(at);
    }
}

/// Tells what is wrong with an object, unless that was told before.
pub(crate) fn tell<M: KeepsTrue>(about: &Told<'_>, problems: Vec<Problem>, acts: &mut Acts<'_>) {
    let Told { reporter, kind, key, uid } = about;
    let name = format!("{}/{}/{}", kind.group, key.namespace, key.name);
    let notes = problems.iter().map(|problem| problem.note.as_str()).collect::<Vec<_>>().join("\n");
    // Another object of the same name is another matter.
    let said = (!notes.is_empty()).then(|| format!("{uid}\n{notes}"));
    let told = acts.recall::<M>().and_then(|memory| memory.objects().told.get(&name));
    if told == said.as_ref() {
        return;
    }
    let told = &mut acts.memory::<M>().objects_mut().told;
    match said {
        None => {
            told.remove(&name);
        }
        Some(said) => {
            if told.len() >= TOLD_MAX {
                *told = SharedMap::default();
            }
            told.insert(name, said);
        }
    }
    for Problem { reason, note } in problems {
        acts.order(notice(reporter, *kind, key, uid, true, reason, note));
    }
}

/// Writes something into an object, or its status.
pub(crate) fn write<M: KeepsTrue>(
    context: &Context<'_>,
    kind: KindId,
    key: &ObjectKey,
    subresource: Option<&'static str>,
    patch: Value,
    acts: &mut Acts<'_>,
) {
    let writing = &mut acts.memory::<M>().objects_mut().writing;
    let name = String::from(&*key.name);
    let before = writing.get(&name).map_or(0, |writing| writing.count);
    writing.insert(name, Writing { count: before + 1, since: context.now });
    acts.order(Effect::Patch { kind, key: key.clone(), subresource, patch });
}

/// A write has ended. Upstream's definitions have no status of their own, so that what is not found there is written into the object
/// itself; what failed is tried again later.
pub(crate) fn written<M: KeepsTrue>(
    context: &Context<'_>,
    order: &Effect,
    conclusion: &Conclusion,
    acts: &mut Acts<'_>,
) {
    let Effect::Patch { kind, key, subresource, patch } = order else { return };
    let name = String::from(&*key.name);
    let objects = acts.memory::<M>().objects_mut();
    match objects.writing.get(&name).copied() {
        Some(Writing { count, since }) if count > 1 => {
            objects.writing.insert(name.clone(), Writing { count: count - 1, since });
        }
        _ => {
            objects.writing.remove(&name);
        }
    }
    let is_stale = objects.names.contains_key(&name);
    match conclusion {
        Conclusion::Done | Conclusion::DoneWith(_) => {
            if is_stale {
                plan_wake::<M>(context.now.after(NEXT_PAUSE), acts);
            }
        }
        Conclusion::Gone { .. } => {
            if subresource.is_some() && context.cluster.objects().find(*kind, key).is_some() {
                write::<M>(context, *kind, key, None, patch.clone(), acts);
            }
        }
        _ => mark_stale::<M>(context, &name, RETRY_PAUSE, acts),
    }
}

#[cfg(test)]
mod tests;
