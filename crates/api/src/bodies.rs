//! What is written into requests about pods.

use serde::Serialize;
use serde_json::{Map, Value, json};
use supercargo_framework::{Nomination, PodCondition};
use supercargo_model::{KindId, Pod, Timestamp};

use crate::time::seconds;

/// A binding of a pod to a node. The UID keeps it from meeting another pod of the same name.
pub(crate) fn binding(pod: &Pod, node: &str) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Binding<'a> {
        api_version: &'static str,
        kind: &'static str,
        metadata: Metadata<'a>,
        target: Target<'a>,
    }
    #[derive(Serialize)]
    struct Metadata<'a> {
        name: &'a str,
        namespace: &'a str,
        uid: &'a str,
    }
    #[derive(Serialize)]
    struct Target<'a> {
        kind: &'static str,
        name: &'a str,
    }
    let binding = Binding {
        api_version: "v1",
        kind: "Binding",
        metadata: Metadata { name: &pod.name, namespace: &pod.namespace, uid: &pod.uid },
        target: Target { kind: "Node", name: node },
    };
    serde_json::to_vec(&binding).expect("texts can be written as JSON")
}

/// A strategic merge patch of a pod's status; none if it changes nothing.
pub(crate) fn status(
    pod: &Pod,
    condition: Option<&PodCondition>,
    nomination: &Nomination,
) -> Option<Vec<u8>> {
    let mut status = Map::new();
    if let Some(condition) = condition {
        let PodCondition { kind, holds, reason, message, since, observed_generation } = condition;
        let mut words = json!({
            "type": kind,
            "status": if *holds { "True" } else { "False" },
            "reason": reason,
            "message": message,
            "lastTransitionTime": seconds(*since),
        });
        // A server that does not count generations has none.
        if *observed_generation != 0 {
            words["observedGeneration"] = (*observed_generation).into();
        }
        status.insert("conditions".to_owned(), json!([words]));
    }
    match nomination {
        Nomination::Keep => {}
        Nomination::Clear => {
            status.insert("nominatedNodeName".to_owned(), Value::Null);
        }
        Nomination::Node(node) => {
            status.insert("nominatedNodeName".to_owned(), json!(**node));
        }
    }
    (!status.is_empty()).then(|| patch(pod, &Value::Object(status)))
}

/// A strategic merge patch that says on a pod why it has to go.
pub(crate) fn disruption(victim: &Pod, preemptor: &Pod, now: Timestamp) -> Vec<u8> {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{}: preempting to accommodate a higher priority pod", preemptor.spec.scheduler_name),
        "lastTransitionTime": seconds(now),
    });
    patch(victim, &json!({ "conditions": [condition] }))
}

/// An object to be made, which need not say of what kind it is.
pub(super) fn created(kind: KindId, object: &Value) -> Vec<u8> {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    object.to_string().into_bytes()
}

/// Options that delete this pod, and no other of its name.
pub(crate) fn deletion(uid: &str) -> Vec<u8> {
    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } })
        .to_string()
        .into_bytes()
}

/// The server refuses the patch if the pod is another one by now.
fn patch(pod: &Pod, status: &Value) -> Vec<u8> {
    json!({ "metadata": { "uid": *pod.uid }, "status": status }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        Pod { name: "web".into(), namespace: "shop".into(), uid: "1-2".into(), ..Pod::default() }
    }

    fn parsed(body: &[u8]) -> Value {
        serde_json::from_slice(body).expect("bodies are JSON")
    }

    #[test]
    fn a_binding_names_the_pod_it_means() {
        let expected = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": "web", "namespace": "shop", "uid": "1-2" },
            "target": { "kind": "Node", "name": "n1" },
        });
        assert_eq!(parsed(&binding(&pod(), "n1")), expected);
    }

    #[test]
    fn a_status_says_only_what_changes() {
        let condition = PodCondition {
            kind: "PodScheduled".into(),
            holds: false,
            reason: "Unschedulable".into(),
            message: "0/1 nodes are available: 1 \"odd\".".to_owned(),
            since: Timestamp::from_seconds(1_769_860_800),
            observed_generation: 3,
        };
        let words = json!([{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 \"odd\".",
            "lastTransitionTime": "2026-01-31T12:00:00Z", "observedGeneration": 3,
        }]);
        let uid = json!({ "uid": "1-2" });
        for (condition, nomination, expected) in [
            (Some(&condition), Nomination::Keep, json!({ "conditions": words })),
            (None, Nomination::Clear, json!({ "nominatedNodeName": null })),
            (None, Nomination::Node("n1".into()), json!({ "nominatedNodeName": "n1" })),
            (Some(&condition), Nomination::Clear, json!({ "conditions": words, "nominatedNodeName": null })),
        ] {
            let body = status(&pod(), condition, &nomination).expect("something changes");
            assert_eq!(parsed(&body), json!({ "metadata": uid, "status": expected }), "{nomination:?}");
        }
        assert_eq!(status(&pod(), None, &Nomination::Keep), None);
    }

    #[test]
    fn a_victim_is_told_why() {
        let body = parsed(&disruption(&pod(), &pod(), Timestamp::from_seconds(0)));
        let condition = &body["status"]["conditions"][0];
        assert_eq!((&condition["type"], &condition["status"]), (&json!("DisruptionTarget"), &json!("True")));
        assert_eq!(condition["reason"], "PreemptionByScheduler");
        assert_eq!(condition["message"], ": preempting to accommodate a higher priority pod");
        assert_eq!(parsed(&deletion("1-2"))["preconditions"], json!({ "uid": "1-2" }));
    }
}
