//! What is ordered, in a line each.

use supercargo_framework::{AskedNode, Effect, ExtenderQuestion, Nomination};
use supercargo_model::Pod;

use crate::name::short;

/// The lines that begin like this: `only(&world.run(), "bind")`.
pub fn only<'a>(lines: &'a [String], start: &str) -> Vec<&'a str> {
    lines.iter().map(String::as_str).filter(|line| line.starts_with(start)).collect()
}

/// An effect in a line.
pub(crate) fn words(effect: &Effect) -> String {
    match effect {
        Effect::Bind { pod, node } => format!("bind {} to {node}", named(pod)),
        Effect::Create { kind, namespace, object } => {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().or(metadata["generateName"].as_str()).unwrap_or_default();
            format!("create {} {}", kind.kind, short(namespace, name))
        }
        Effect::Patch { kind, key, .. } => {
            format!("patch {} {}", kind.kind, short(&key.namespace, &key.name))
        }
        Effect::Delete { kind, key, .. } => {
            format!("delete {} {}", kind.kind, short(&key.namespace, &key.name))
        }
        Effect::Evict { victim, preemptor } => format!("evict {} for {}", named(victim), named(preemptor)),
        Effect::UpdateStatus { pod, condition, nomination } => {
            let mut words = format!("status of {}:", named(pod));
            if let Some(condition) = condition {
                words += &format!(" {} {}", condition.reason, condition.message);
            }
            match nomination {
                Nomination::Keep => {}
                Nomination::Clear => words += " not nominated",
                Nomination::Node(node) => words += &format!(" nominated to {node}"),
            }
            words
        }
        Effect::Ask { extender, question } => format!("ask extender {extender}: {}", asked(question)),
        Effect::LookUp { pod } => format!("look up {}", named(pod)),
        Effect::Record(notice) => {
            let about = short(notice.about.namespace(), notice.about.name());
            format!("{} on {about}: {}", notice.reason, notice.note)
        }
    }
}

fn named(pod: &Pod) -> String {
    short(&pod.namespace, &pod.name)
}

fn asked(question: &ExtenderQuestion) -> String {
    let names = |nodes: &[AskedNode]| nodes.iter().map(|node| &*node.name).collect::<Vec<_>>().join(" ");
    match question {
        ExtenderQuestion::Filter { nodes, .. } => format!("filter {}", names(nodes)),
        ExtenderQuestion::Prioritize { nodes, .. } => format!("prioritize {}", names(nodes)),
        ExtenderQuestion::Preempt { victims, .. } => {
            let words = victims.iter().map(|(node, victims)| {
                let pods: Vec<String> = victims.pods.iter().map(|pod| named(pod)).collect();
                format!("{node}: {}", pods.join(" "))
            });
            format!("preempt {}", words.collect::<Vec<_>>().join(", "))
        }
        ExtenderQuestion::Bind { pod, node } => format!("bind {} to {node}", named(pod)),
    }
}
