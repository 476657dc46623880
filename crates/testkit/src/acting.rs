//! What a plugin asks for, in words.

use std::sync::Arc;

use supercargo_framework::{
    Act, Acts, AskedActs, ClusterEvent, Context, Effect, EventResource, GaugeValue, Memories, PermitDecision,
    Profile, Step,
};
use supercargo_model::{ObjectKey, Snapshot};

use crate::cluster::TestCluster;
use crate::trial::status_text;

/// A step of a plugin that may act: what it asks for comes back as lines, and what it remembers stays in the cluster.
pub(crate) fn act<R>(
    profile: &Profile,
    cluster: &mut TestCluster,
    step: impl FnOnce(Context<'_>, &mut Acts<'_>) -> R,
) -> (R, Vec<String>) {
    let (snapshot, before): (Snapshot, Memories) = (cluster.snapshot().clone(), cluster.memories.clone());
    let mut after = before.clone();
    profile.declare_memories(&mut after);
    let mut asked = AskedActs::default();
    let context = Context { cluster: &snapshot, memories: &before, ..cluster.context() };
    let result = step(
        context,
        &mut Acts::new(name_of(profile), &mut after, &mut asked).among(std::slice::from_ref(profile)),
    );
    cluster.memories = after;
    (result, lines(profile, &mut asked))
}

/// The name of the one plugin that is tried out.
pub(crate) fn name_of(profile: &Profile) -> &'static str {
    profile.plugins().first().map_or("nobody", |plugin| plugin.name)
}

/// What is to be done, and whether it would be refused.
pub(crate) fn order_text(profile: &Profile, effect: &Effect) -> String {
    let is_declared = profile.may_order(name_of(profile), effect);
    let refused = if is_declared { "" } else { ", which is refused: it is not among what the plugin writes" };
    format!("order: {}{refused}", effect.words())
}

/// How far a step has come: what it orders, a line each, and then what it waits for or how it ended.
pub(crate) fn step_lines(profile: &Profile, step: &Step) -> Vec<String> {
    match step {
        Step::Done(status) => vec![status_text(status)],
        Step::Wait { effects, events, deadline } => {
            let orders = effects.iter().map(|effect| order_text(profile, effect));
            let until = deadline.map(|deadline| format!(" until {deadline}")).unwrap_or_default();
            let events = events.iter().map(|awaited| match &awaited.object {
                Some(object) => format!("{} {}", event_text(&awaited.event), object_text(object)),
                None => event_text(&awaited.event),
            });
            orders.chain([format!("waits{until}{}", or_for(events))]).collect()
        }
    }
}

/// What Permit decided, in words.
pub(crate) fn permit_text(decision: &PermitDecision) -> String {
    match decision {
        PermitDecision::Allow => "ok".to_owned(),
        PermitDecision::Wait { until, events } => {
            format!("waits until {until}{}", or_for(events.iter().map(event_text)))
        }
        PermitDecision::Reject(status) => status_text(status),
    }
}

fn event_text(event: &ClusterEvent) -> String {
    let resource = match event.resource {
        EventResource::Any => "*",
        EventResource::Pod => "Pod",
        EventResource::Node => "Node",
        EventResource::Kind(kind) => kind.kind,
    };
    match event.actions.label() {
        "" => resource.to_owned(),
        label => format!("{resource}/{label}"),
    }
}

fn object_text(ObjectKey { namespace, name }: &ObjectKey) -> String {
    if namespace.is_empty() { name.to_string() } else { format!("{namespace}/{name}") }
}

fn or_for(events: impl Iterator<Item = String>) -> String {
    match &events.collect::<Vec<_>>()[..] {
        [] => String::new(),
        events => format!(", or for {}", events.join(", ")),
    }
}

fn lines(profile: &Profile, asked: &mut AskedActs) -> Vec<String> {
    let (list, refused) = asked.take();
    let mut lines: Vec<String> = list.iter().map(|(_, act)| act_text(profile, act)).collect();
    if refused > 0 {
        lines.push(format!("{refused} more acts, which are refused: they are too many for one step"));
    }
    lines
}

fn act_text(profile: &Profile, act: &Act) -> String {
    let uid = |uid: &Arc<str>| uid.to_string();
    match act {
        Act::Allow(pod) => format!("allow: {}", uid(pod)),
        Act::Reject(pod, status) => format!("reject: {}: {}", uid(pod), status_text(status)),
        Act::Activate(pod) => format!("activate: {}", uid(pod)),
        Act::Order(effect) => order_text(profile, effect),
        Act::NodeChanged(node) => format!("node changed: {node}"),
        Act::WakeAt(time) => format!("wake: {time}"),
        Act::WakeBy(time) => format!("wake by: {time}"),
        Act::Gauge { name, values } => {
            let shown = |gauge: &GaugeValue| {
                let labels: Vec<String> =
                    gauge.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("{{{}}} {}", labels.join(","), gauge.value)
            };
            format!("gauge: {name}: {}", values.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Act::Count { name, labels } => {
            let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("count: {name}{{{}}}", labels.join(","))
        }
    }
}
