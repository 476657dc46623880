//! Tells people what happened, as events that `kubectl describe` shows.
//!
//! What is the same as something told shortly before is counted with it instead of being told again, as client-go's
//! `tools/events` does. [`Recorder`] decides that, and an [`EventCall`] is what the server is told.

mod body;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHasher};
use supercargo_framework::Notice;
use supercargo_model::{KindId, ObjectKey, Timestamp};

use crate::call::{Call, MERGE_PATCH};
use crate::path;

/// An event that was not repeated for so long is over; client-go's `finishTime`.
const SERIES_OVER_AFTER: Duration = Duration::from_secs(6 * 60);
/// How often it is told of an event that goes on and on; client-go's `refreshTime`.
const SERIES_REFRESH_AFTER: Duration = Duration::from_secs(30 * 60);
/// So many repetitions are told at once, the first included: from then on people know that it goes on. client-go tells the
/// third of a pod that cannot be scheduled, and then no more until the next refresh.
const TOLD_AT_ONCE: u32 = 3;
/// How many events are remembered, to count further ones with them.
const REMEMBERED_MAX: usize = 4096;
/// The reason of an event that cannot be repeated: a pod is bound once. Remembering it would only take room.
const HAPPENS_ONCE: &str = "Scheduled";

/// Decides what is told, and what is only counted.
#[derive(Debug)]
pub struct Recorder {
    hostname: Box<str>,
    remembered: FxHashMap<Likeness, Remembered>,
    /// In the order in which they were first told.
    order: VecDeque<Likeness>,
    last_name: i64,
    lost: u64,
}

/// What makes two events the same.
///
/// client-go compares the version of the pod, which we do not keep, and not the note; but it is a new reason that changes
/// the version, so comparing the note comes to the same: people see the newest reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Likeness {
    uid: Arc<str>,
    related_uid: Option<Arc<str>>,
    reporter: Arc<str>,
    is_warning: bool,
    reason: Cow<'static, str>,
    action: Cow<'static, str>,
    note_hash: u64,
}

#[derive(Debug)]
struct Remembered {
    event: Arc<Event>,
    series: Option<Series>,
    /// When the server was last told.
    told_at: Timestamp,
}

/// An event as it was first told.
#[derive(Debug)]
struct Event {
    notice: Notice,
    name: Box<str>,
    instance: Box<str>,
    at: Timestamp,
}

/// How often an event was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Series {
    count: u32,
    last_at: Timestamp,
}

/// The API groups that have events. Old servers have them only in the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventGroup {
    /// `events.k8s.io`
    Events,
    /// The core group.
    Core,
}

/// Something to tell the server.
#[derive(Clone, Debug)]
pub struct EventCall {
    event: Arc<Event>,
    /// It was told before, and this is how often it was repeated.
    series: Option<Series>,
}

impl EventGroup {
    /// Events in this group.
    pub fn kind(self) -> KindId {
        let group = match self {
            EventGroup::Events => "events.k8s.io",
            EventGroup::Core => "",
        };
        KindId { group, version: "v1", kind: "Event", plural: "events" }
    }
}

impl EventCall {
    /// The request that creates the event.
    pub fn creation(&self, group: EventGroup) -> Call {
        let body = match group {
            EventGroup::Events => body::event(&self.event, self.series),
            EventGroup::Core => body::core_event(&self.event, self.series),
        };
        Call::post(path::of_kind_in(group.kind(), Some(body::namespace_of(&self.event.notice.about))), body)
    }

    /// The request that says how often the event was repeated; none if it was not.
    pub fn repetition(&self, group: EventGroup) -> Option<Call> {
        let series = self.series?;
        let body = match group {
            EventGroup::Events => body::repetition(series),
            EventGroup::Core => body::core_repetition(series),
        };
        let Event { notice, name, .. } = &*self.event;
        let key = ObjectKey { namespace: body::namespace_of(&notice.about).into(), name: name.clone() };
        Some(Call::patch(path::of_object(group.kind(), &key, None), MERGE_PATCH, body))
    }
}

impl Recorder {
    /// Events that were told by a process on this machine.
    pub fn new(hostname: &str) -> Self {
        Recorder {
            hostname: hostname.into(),
            remembered: FxHashMap::default(),
            order: VecDeque::new(),
            last_name: 0,
            lost: 0,
        }
    }

    /// What to tell the server of something that happened; nothing if it is only counted.
    pub fn record(&mut self, notice: &Notice, at: Timestamp) -> Option<EventCall> {
        let likeness = Likeness::of(notice);
        if let Some(remembered) = self.remembered.get_mut(&likeness) {
            let event = remembered.event.clone();
            let count = remembered.series.map_or(1, |series| series.count).saturating_add(1);
            let series = Some(Series { count, last_at: at });
            remembered.series = series;
            if count > TOLD_AT_ONCE {
                return None;
            }
            remembered.told_at = at;
            return Some(EventCall { event, series });
        }
        let event = Arc::new(self.event(notice, at));
        if notice.reason != HAPPENS_ONCE {
            self.remember(likeness, Remembered { event: event.clone(), series: None, told_at: at });
        }
        Some(EventCall { event, series: None })
    }

    /// Forgets events that are over, and says what the server should know of those and of the ones that go on.
    pub fn finish_old(&mut self, now: Timestamp) -> Vec<EventCall> {
        let mut calls = Vec::new();
        self.remembered.retain(|_, remembered| {
            let last_at = remembered.series.map_or(remembered.event.at, |series| series.last_at);
            let is_over = now.since(last_at) > SERIES_OVER_AFTER;
            let is_due = now.since(remembered.told_at) >= SERIES_REFRESH_AFTER;
            if is_over || is_due {
                calls.extend(remembered.untold());
                remembered.told_at = now;
            }
            !is_over
        });
        self.order.retain(|likeness| self.remembered.contains_key(likeness));
        // A map has no order that anybody could rely on.
        calls.sort_by(|a, b| a.event.name.cmp(&b.event.name));
        calls
    }

    /// Says what the server does not know yet, before everything ends.
    pub fn finish_all(&mut self) -> Vec<EventCall> {
        let order = std::mem::take(&mut self.order);
        let remembered = std::mem::take(&mut self.remembered);
        order.iter().filter_map(|likeness| remembered.get(likeness)?.untold()).collect()
    }

    /// How many repetitions were forgotten without being told, since somebody last asked.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    fn remember(&mut self, likeness: Likeness, remembered: Remembered) {
        if self.remembered.len() >= REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
            && let Some(forgotten) = self.remembered.remove(&oldest)
            && let Some(EventCall { series: Some(series), .. }) = forgotten.untold()
        {
            self.lost += u64::from(series.count);
        }
        self.order.push_back(likeness.clone());
        self.remembered.insert(likeness, remembered);
    }

    fn event(&mut self, notice: &Notice, at: Timestamp) -> Event {
        // The time is the name; two in the same nanosecond would be one.
        let number = at.nanoseconds().max(self.last_name + 1);
        self.last_name = number;
        Event {
            notice: notice.clone(),
            name: body::name(notice.about.name(), number),
            instance: body::instance(&notice.reporter, &self.hostname),
            at,
        }
    }
}

impl Likeness {
    fn of(notice: &Notice) -> Self {
        let mut hasher = FxHasher::default();
        notice.note.hash(&mut hasher);
        Likeness {
            uid: notice.about.uid().clone(),
            related_uid: notice.related.as_ref().map(|pod| pod.uid.clone()),
            reporter: notice.reporter.clone(),
            is_warning: notice.is_warning,
            reason: notice.reason.clone(),
            action: notice.action.clone(),
            note_hash: hasher.finish(),
        }
    }
}

impl Remembered {
    /// What the server does not know yet: later repetitions.
    fn untold(&self) -> Option<EventCall> {
        let series = self.series.filter(|series| series.last_at > self.told_at)?;
        Some(EventCall { event: self.event.clone(), series: Some(series) })
    }
}

#[cfg(test)]
mod tests;
