//! What a request makes of the object at its path, as an API server would have it: for simulators, and for servers inside tests.

use http::Method;
use serde_json::{Map, Value, json};

use crate::call::{Call, STRATEGIC_MERGE_PATCH};

/// What became of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// The object as it is now.
    Changed(Value),
    /// The object is deleted. Whether it goes at once, or gracefully, is up to whoever keeps it.
    Deleted,
}

/// Why a server does not do what it is asked for. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The object is another one, or in another state, than the request expects: 409.
    Conflict(String),
    /// The request makes no sense to a server: 422.
    Invalid(String),
}

/// What a [`Call`] that writes to an object makes of it. `object` is the one that the path names, whatever the subresource.
pub fn applied(call: &Call, object: &Value) -> Result<Applied, Refusal> {
    let body = || -> Result<Value, Refusal> {
        serde_json::from_slice(&call.body)
            .map_err(|error| Refusal::Invalid(format!("the body is no JSON: {error}")))
    };
    let subresource = subresource(&call.path);
    match call.method {
        Method::POST if subresource == Some("binding") => bound(&body()?, object).map(Applied::Changed),
        Method::PATCH => {
            let mut patch = body()?;
            check_uid(&patch["metadata"]["uid"], object)?;
            if subresource == Some("status") {
                // A status is written, and nothing else.
                patch = json!({ "status": patch["status"] });
            }
            let mut changed = object.clone();
            if call.content_type == STRATEGIC_MERGE_PATCH {
                merge_conditions(&mut changed, &mut patch);
            }
            merge(&mut changed, &patch);
            Ok(Applied::Changed(changed))
        }
        Method::PUT => Ok(Applied::Changed(body()?)),
        Method::DELETE => {
            let options = if call.body.is_empty() { Value::Null } else { body()? };
            check_uid(&options["preconditions"]["uid"], object)?;
            Ok(Applied::Deleted)
        }
        _ => Err(Refusal::Invalid(format!("{} {} writes to no object", call.method, call.path))),
    }
}

/// The subresources that a path may end with: they are told from names by their position.
fn subresource(path: &str) -> Option<&str> {
    let mut parts = path.trim_start_matches('/').split('/');
    // `api/VERSION` or `apis/GROUP/VERSION`.
    let group_parts = if parts.next()? == "api" { 1 } else { 2 };
    let rest: Vec<&str> = parts.skip(group_parts).collect();
    let rest = if rest.first() == Some(&"namespaces") && rest.len() > 2 { &rest[2..] } else { &rest[..] };
    // `PLURAL/NAME/SUBRESOURCE`
    rest.get(2).copied()
}

/// A pod as it is once bound: a pod that is going, or has a node, is not bound.
fn bound(binding: &Value, pod: &Value) -> Result<Value, Refusal> {
    check_uid(&binding["metadata"]["uid"], pod)?;
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Err(Refusal::Conflict("the pod is being deleted, cannot be assigned to a host".to_owned()));
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
        return Err(Refusal::Conflict(format!("the pod is already assigned to node {node:?}")));
    }
    let mut changed = pod.clone();
    let scheduled = json!([{ "type": "PodScheduled", "status": "True" }]);
    let mut patch = json!({
        "spec": { "nodeName": binding["target"]["name"] },
        "status": { "nominatedNodeName": null, "conditions": scheduled },
    });
    merge_conditions(&mut changed, &mut patch);
    merge(&mut changed, &patch);
    Ok(changed)
}

fn check_uid(meant: &Value, object: &Value) -> Result<(), Refusal> {
    let found = &object["metadata"]["uid"];
    if meant.is_null() || meant == found {
        return Ok(());
    }
    Err(Refusal::Conflict(format!(
        "the UID in the precondition ({meant}) does not match the UID in record ({found})"
    )))
}

/// Merges `status.conditions` by their types, and takes them out of the patch: of the lists that are merged by name it is the one
/// that a scheduler writes. A condition takes the place of the whole condition of its type.
fn merge_conditions(object: &mut Value, patch: &mut Value) {
    let Some(new) = patch["status"].as_object_mut().and_then(|status| status.remove("conditions")) else {
        return;
    };
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in new.as_array().into_iter().flatten() {
        match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
            Some(known) => known.clone_from(condition),
            None => conditions.push(condition.clone()),
        }
    }
    merge(object, &json!({ "status": { "conditions": conditions } }));
}

/// Merges a JSON merge patch (RFC 7386) into an object: fields that are null go, lists are replaced.
pub fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        object.clone_from(patch);
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let object = object.as_object_mut().expect("it was just made one");
    for (name, value) in fields {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(object.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests;
