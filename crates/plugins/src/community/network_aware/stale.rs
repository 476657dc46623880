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

/// What a plugin remembers of the objects that it keeps true.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StaleObjects {
    /// The names of those that are to be looked at again.
    names: SharedMap<String, ()>,
    /// When the plugin is woken next.
    wakes_at: Option<Timestamp>,
    /// What people were told about an object last.
    told: SharedMap<String, String>,
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

/// The names to look at now; the rest is left for later.
pub(crate) fn take_stale<M: KeepsTrue>(context: &Context<'_>, acts: &mut Acts<'_>) -> Vec<String> {
    let Some(memory) = acts.recall::<M>() else { return Vec::new() };
    let names = memory.objects().names.iter().take(NAMES_PER_WAKE_MAX);
    let names: Vec<String> = names.map(|(name, ())| name.clone()).collect();
    let objects = acts.memory::<M>().objects_mut();
    objects.wakes_at = None;
    for name in &names {
        objects.names.remove(name);
    }
    if !objects.names.is_empty() {
        plan_wake::<M>(context.now.after(NEXT_PAUSE), acts);
    }
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
    let told = acts.recall::<M>().and_then(|memory| memory.objects().told.get(&name));
    if told.map_or("", String::as_str) == notes {
        return;
    }
    let told = &mut acts.memory::<M>().objects_mut().told;
    if notes.is_empty() {
        told.remove(&name);
    } else {
        if told.len() >= TOLD_MAX {
            *told = SharedMap::default();
        }
        told.insert(name, notes);
    }
    for Problem { reason, note } in problems {
        acts.order(notice(reporter, *kind, key, uid, true, reason, note));
    }
}

/// Writes the status of an object.
pub(crate) fn write_status(kind: KindId, key: &ObjectKey, patch: Value, acts: &mut Acts<'_>) {
    acts.order(Effect::Patch { kind, key: key.clone(), subresource: Some("status"), patch });
}

/// A write has ended. Upstream's definitions have no status of their own, so that what is not found there is written into the object
/// itself; what failed is tried again later.
pub(crate) fn written<M: KeepsTrue>(
    context: &Context<'_>,
    order: &Effect,
    conclusion: &Conclusion,
    name_of: impl Fn(&ObjectKey) -> String,
    acts: &mut Acts<'_>,
) {
    let Effect::Patch { kind, key, subresource, patch } = order else { return };
    match conclusion {
        Conclusion::Done | Conclusion::DoneWith(_) => {}
        Conclusion::Gone { .. } => {
            if subresource.is_some() && context.cluster.objects().find(*kind, key).is_some() {
                let patch = patch.clone();
                acts.order(Effect::Patch { kind: *kind, key: key.clone(), subresource: None, patch });
            }
        }
        _ => mark_stale::<M>(context, &name_of(key), RETRY_PAUSE, acts),
    }
}
