//! What is written into requests about events.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use supercargo_framework::{Notice, Subject};
use supercargo_model::Pod;

use super::{Event, Series};
use crate::time::{microseconds, seconds};

/// A note has at most so many bytes; the API's limit.
const NOTE_BYTES_MAX: usize = 1024;
/// What a note that was cut ends with.
const NOTE_CUT: &str = " ...";
/// A name has at most so many bytes; the API's limit.
const NAME_BYTES_MAX: usize = 253;
/// The reporting instance has at most so many bytes; the API's limit.
const INSTANCE_BYTES_MAX: usize = 128;

/// An event in `events.k8s.io/v1`. There is one for every pod that is bound, so it is written without a [`Value`] in between.
pub(super) fn event(event: &Event, series: Option<Series>) -> Vec<u8> {
    let Event { notice, name, instance, at } = event;
    let Notice { about, reporter, is_warning, reason, action, note, related } = notice;
    let words = EventWords {
        api_version: "events.k8s.io/v1",
        kind: "Event",
        metadata: Metadata { name, namespace: namespace_of(about) },
        event_time: microseconds(*at),
        reporting_controller: reporter,
        reporting_instance: instance,
        action,
        reason,
        regarding: Reference::of(about),
        note: cut(note, NOTE_BYTES_MAX),
        r#type: kind(*is_warning),
        related: related.as_deref().map(Reference::of_pod),
        series: series.map(words),
    };
    serde_json::to_vec(&words).expect("texts can be written as JSON")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventWords<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    event_time: String,
    reporting_controller: &'a str,
    reporting_instance: &'a str,
    action: &'a str,
    reason: &'a str,
    regarding: Reference<'a>,
    note: Cow<'a, str>,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<Reference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Value>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
}

/// What an event is about.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    kind: &'static str,
    api_version: Cow<'static, str>,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

impl<'a> Reference<'a> {
    fn of(subject: &'a Subject) -> Self {
        let kind = match subject {
            Subject::Pod(pod) => return Reference::of_pod(pod),
            Subject::Object { kind, .. } => kind,
        };
        Reference {
            kind: kind.kind,
            api_version: kind.api_version().into(),
            namespace: subject.namespace(),
            name: subject.name(),
            uid: subject.uid(),
        }
    }

    fn of_pod(pod: &'a Pod) -> Self {
        let Pod { namespace, name, uid, .. } = pod;
        Reference { kind: "Pod", api_version: "v1".into(), namespace, name, uid }
    }
}

/// The namespace of an event: that of its subject, or, as client-go has it, `default` for what belongs to the whole cluster.
pub(super) fn namespace_of(subject: &Subject) -> &str {
    match subject.namespace() {
        "" => "default",
        namespace => namespace,
    }
}

/// A patch that says how often an event was repeated.
pub(super) fn repetition(series: Series) -> Vec<u8> {
    json!({ "series": words(series) }).to_string().into_bytes()
}

/// The same event in the core group, for servers that have no other.
pub(super) fn core_event(event: &Event, series: Option<Series>) -> Vec<u8> {
    let Event { notice, name, instance, at } = event;
    let Notice { about, reporter, is_warning, reason, action, note, related } = notice;
    let (count, last_at) = series.map_or((1, *at), |series| (series.count, series.last_at));
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace_of(about) },
        "firstTimestamp": seconds(*at),
        "lastTimestamp": seconds(last_at),
        "count": count,
        "source": { "component": **reporter },
        "reportingComponent": **reporter,
        "reportingInstance": instance,
        "action": action,
        "reason": reason,
        "involvedObject": Reference::of(about),
        "message": cut(note, NOTE_BYTES_MAX),
        "type": kind(*is_warning),
    });
    if let Some(related) = related {
        body["related"] = json!(Reference::of_pod(related));
    }
    body.to_string().into_bytes()
}

/// A patch that says how often an event of the core group was repeated.
pub(super) fn core_repetition(series: Series) -> Vec<u8> {
    json!({ "count": series.count, "lastTimestamp": seconds(series.last_at) }).to_string().into_bytes()
}

/// `POD.HEX`, as client-go names events.
pub(super) fn name(pod: &str, number: i64) -> Box<str> {
    let number = format!(".{number:x}");
    let pod = &pod[..pod.floor_char_boundary(NAME_BYTES_MAX - number.len())];
    format!("{pod}{number}").into()
}

/// Which of the schedulers of this name it is.
pub(super) fn instance(reporter: &str, hostname: &str) -> Box<str> {
    let mut instance = format!("{reporter}-{hostname}");
    instance.truncate(instance.floor_char_boundary(INSTANCE_BYTES_MAX));
    instance.into()
}

fn kind(is_warning: bool) -> &'static str {
    if is_warning { "Warning" } else { "Normal" }
}

fn words(series: Series) -> Value {
    json!({ "count": series.count, "lastObservedTime": microseconds(series.last_at) })
}

/// The text, or as much of it as there is room for.
fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(bytes_max - NOTE_CUT.len());
    Cow::Owned(format!("{}{NOTE_CUT}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cut_as_upstream_cuts_them() {
        assert_eq!(cut(&"a".repeat(1024), NOTE_BYTES_MAX), "a".repeat(1024));
        assert_eq!(cut(&"a".repeat(1025), NOTE_BYTES_MAX), format!("{} ...", "a".repeat(1020)));
        // Never in the middle of a letter.
        assert_eq!(cut(&"ä".repeat(1000), NOTE_BYTES_MAX), format!("{} ...", "ä".repeat(510)));
        assert_eq!(
            cut(&format!("a{}", "ä".repeat(1000)), NOTE_BYTES_MAX),
            format!("a{} ...", "ä".repeat(509))
        );
    }

    #[test]
    fn names_fit() {
        assert_eq!(&*name("web", 0x18ab), "web.18ab");
        let long = name(&"a".repeat(253), 0x18ab);
        assert!(long.len() == 253 && long.ends_with("a.18ab"), "{long}");
        assert_eq!(&*instance("default-scheduler", "host"), "default-scheduler-host");
        assert_eq!(instance("default-scheduler", &"h".repeat(200)).len(), 128);
    }
}
