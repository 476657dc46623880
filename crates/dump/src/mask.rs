//! Replaces names, so that a dump can be shown to others: who reads it learns how a cluster is built, not what for.
//!
//! A name gets the same mask wherever it stands, and masks are in the order of the names that they stand for, so whatever is
//! decided by comparing names is decided as before. What nobody who schedules reads is dropped. Strings that are not known to be
//! harmless are masked: what is new in the API is a riddle before it is a leak.

mod fields;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use supercargo_model::names::label_value_problems;

use fields::{Field, annotation, field, is_handle_word, is_harmless_value, is_well_known_label};

/// Names that say nothing, as every cluster has them.
const COMMON: [&str; 14] = [
    "",
    "default",
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "system-node-critical",
    "system-cluster-critical",
    "linux",
    "windows",
    "latest",
    // Addresses of ports that mean any address, or the machine itself.
    "0.0.0.0",
    "::",
    "127.0.0.1",
    "::1",
];

/// What a name was first met as. The mask begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Node,
    Namespace,
    Pod,
    Image,
    Value,
    Name,
}

/// Collects names; [`MaskBuilder::finish`] makes a [`Mask`] of them.
#[derive(Debug, Default)]
pub struct MaskBuilder {
    names: BTreeMap<String, Role>,
    kept: BTreeSet<String>,
    /// Claims that are made for pods, with the pod and the volume that their names consist of.
    claims: BTreeMap<String, (String, String)>,
}

/// Which name becomes what.
#[derive(Debug)]
pub struct Mask {
    masks: BTreeMap<String, String>,
}

/// Whoever walks through an object and meets its strings.
trait Visitor {
    fn visit(&mut self, role: Role, string: &mut String);
    fn keep(&mut self, string: &str);
}

impl MaskBuilder {
    /// Takes note of the names in an object.
    pub fn see(&mut self, object: &mut Value) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match &*kind {
            "Node" => self.note(Role::Node, &name),
            "CSINode" => {
                // Volumes of older kinds stand for volumes of these drivers, whose names are known to the scheduler.
                for driver in object["spec"]["drivers"].as_array().into_iter().flatten() {
                    self.keep(driver["name"].as_str().unwrap_or_default());
                }
            }
            "Namespace" => self.note(Role::Namespace, &name),
            "Pod" => {
                self.note(Role::Pod, &name);
                self.see_claims(&name, object);
            }
            // Names that resources and other objects are called by, where they stand in keys.
            "DeviceClass" | "CSIDriver" => self.keep(&name),
            _ => {}
        }
        walk_object(object, self);
    }

    /// A claim that is made for a pod has the names of both in its own.
    fn see_claims(&mut self, pod: &str, object: &Value) {
        for volume in object["spec"]["volumes"].as_array().into_iter().flatten() {
            if let (Some(name), true) = (volume["name"].as_str(), volume.get("ephemeral").is_some()) {
                self.claims.insert(format!("{pod}-{name}"), (pod.to_owned(), name.to_owned()));
            }
        }
    }

    fn note(&mut self, role: Role, name: &str) {
        match self.names.get_mut(name) {
            Some(known) => *known = role.min(*known),
            None => _ = self.names.insert(name.to_owned(), role),
        }
    }

    /// Gives every name its mask.
    pub fn finish(self) -> Mask {
        let is_kept = |name: &str| self.kept.contains(name) || COMMON.contains(&name);
        let mut counts: BTreeMap<Role, usize> = BTreeMap::new();
        for (_, role) in self.names.iter().filter(|(name, _)| !is_kept(name)) {
            *counts.entry(*role).or_default() += 1;
        }
        let mut given: BTreeMap<Role, usize> = BTreeMap::new();
        let mut masks = BTreeMap::new();
        for (name, role) in self.names {
            if is_kept(&name) {
                continue;
            }
            let number = given.entry(role).or_default();
            *number += 1;
            // Leading zeros keep the order.
            let width = counts[&role].to_string().len();
            // What cannot be a label's value makes selectors invalid, and has to go on doing so.
            let is_invalid = role == Role::Value && !label_value_problems(&name).is_empty();
            let end = if is_invalid { "!" } else { "" };
            masks.insert(name, format!("{}-{number:0width$}{end}", role.prefix()));
        }
        for (claim, (pod, volume)) in self.claims {
            let mask = |name: &str| masks.get(name).cloned().unwrap_or_else(|| name.to_owned());
            let masked = format!("{}-{}", mask(&pod), mask(&volume));
            masks.insert(claim, masked);
        }
        Mask { masks }
    }
}

impl Role {
    fn prefix(self) -> &'static str {
        match self {
            Role::Node => "node",
            Role::Namespace => "namespace",
            Role::Pod => "pod",
            Role::Image => "image",
            Role::Value => "value",
            Role::Name => "name",
        }
    }
}

impl Mask {
    /// Masks an object that the builder has seen, in whole.
    pub fn apply(&mut self, object: &mut Value) {
        walk_object(object, self);
    }
}

impl Visitor for MaskBuilder {
    fn visit(&mut self, role: Role, string: &mut String) {
        self.note(role, string);
    }

    fn keep(&mut self, string: &str) {
        self.kept.insert(string.to_owned());
    }
}

impl Visitor for Mask {
    fn visit(&mut self, _: Role, string: &mut String) {
        if let Some(mask) = self.masks.get(string.as_str()) {
            string.clone_from(mask);
        }
    }

    fn keep(&mut self, _: &str) {}
}

fn walk_object(object: &mut Value, visitor: &mut impl Visitor) {
    if let Value::Object(entries) = object {
        walk_entries(entries, visitor);
    }
}

fn walk_entries(entries: &mut Map<String, Value>, visitor: &mut impl Visitor) {
    entries.retain(|key, _| field(key) != Field::Dropped);
    // The values of `{key: …, values: […]}` are those of a label, and `{key: …, value: …}` may be a taint.
    let key = entries.get("key").and_then(Value::as_str).map(str::to_owned);
    for (name, value) in entries.iter_mut() {
        match (field(name), &key) {
            (Field::Values, Some(key)) => walk_label_values(key, value, visitor),
            (field, _) => walk(field, value, visitor),
        }
    }
}

fn walk(field: Field, value: &mut Value, visitor: &mut impl Visitor) {
    match (field, value) {
        (Field::Harmless, _) | (Field::Status, Value::String(_)) => {}
        (Field::Driver, Value::String(driver)) => visitor.keep(driver),
        (Field::Labels, Value::Object(labels)) => walk_labels(labels, visitor),
        (Field::Annotations, Value::Object(annotations)) => {
            annotations.retain(|key, _| annotation(key) != Field::Dropped);
            for (key, value) in annotations.iter_mut() {
                walk(annotation(key), value, visitor);
            }
        }
        (Field::NameKeys, Value::Object(entries)) => mask_keys(entries, visitor),
        (Field::Image, Value::String(image)) => visit_image(image, visitor),
        (Field::Handle, Value::String(handle)) => visit_handle(handle, visitor),
        (field, Value::Array(entries)) => {
            entries.iter_mut().for_each(|entry| walk(field, entry, visitor));
        }
        (_, Value::Object(entries)) => walk_entries(entries, visitor),
        (field, Value::String(string)) => visitor.visit(field.role(), string),
        (_, Value::Null | Value::Bool(_) | Value::Number(_)) => {}
    }
}

/// A map of labels, or a selector that is written as one, or one that is written in full.
fn walk_labels(labels: &mut Map<String, Value>, visitor: &mut impl Visitor) {
    for (key, value) in labels.iter_mut() {
        match value {
            Value::String(_) => walk_label_values(key, value, visitor),
            other => walk(field(key), other, visitor),
        }
    }
}

fn walk_label_values(key: &str, value: &mut Value, visitor: &mut impl Visitor) {
    match value {
        Value::String(string) if is_well_known_label(key) || is_harmless_value(string) => {
            visitor.keep(string);
        }
        Value::String(string) => visitor.visit(Role::Value, string),
        Value::Array(values) => values.iter_mut().for_each(|value| walk_label_values(key, value, visitor)),
        _ => {}
    }
}

fn mask_keys(entries: &mut Map<String, Value>, visitor: &mut impl Visitor) {
    for (mut key, value) in std::mem::take(entries) {
        visitor.visit(Role::Name, &mut key);
        entries.insert(key, value);
    }
}

/// The parts of an image's name, each for itself: the scheduler adds `:latest` where there is no tag, and must find the same
/// name as before.
fn visit_image(image: &mut String, visitor: &mut impl Visitor) {
    let tag_at = image.rfind(':').filter(|at| image.rfind('/').is_none_or(|slash| slash < *at));
    let (mut repository, tag) = match tag_at {
        Some(at) => (image[..at].to_owned(), Some(image[at + 1..].to_owned())),
        None => (image.clone(), None),
    };
    visitor.visit(Role::Image, &mut repository);
    *image = match tag {
        None => repository,
        Some(mut tag) => {
            visitor.visit(Role::Name, &mut tag);
            format!("{repository}:{tag}")
        }
    };
}

/// The parts of a volume's handle, each for itself: `aws://zone/vol-1` and `vol-1` are the same volume.
fn visit_handle(handle: &mut String, visitor: &mut impl Visitor) {
    let mut parts: Vec<String> = handle.split('/').map(str::to_owned).collect();
    for part in parts.iter_mut().filter(|part| !is_handle_word(part)) {
        match part.strip_prefix("vol-") {
            // Volumes of EBS are known by this.
            Some(rest) => {
                let mut rest = rest.to_owned();
                visitor.visit(Role::Name, &mut rest);
                *part = format!("vol-{rest}");
            }
            None => visitor.visit(Role::Name, part),
        }
    }
    *handle = parts.join("/");
}

impl Field {
    fn role(self) -> Role {
        match self {
            Field::NodeName => Role::Node,
            Field::Namespace => Role::Namespace,
            Field::Image => Role::Image,
            Field::Values => Role::Value,
            _ => Role::Name,
        }
    }
}

#[cfg(test)]
mod tests;
