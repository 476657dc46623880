//! Requests, and what they make of objects.

use std::sync::Arc;

use supercargo_framework::{Nomination, PodCondition};
use supercargo_model::{KindId, ObjectKey, Pod, Timestamp};

use super::*;
use crate::{bind, delete, disrupt, patch, update_status};

fn pod() -> Arc<Pod> {
    Arc::new(Pod { name: "web".into(), namespace: "status".into(), uid: "1-2".into(), ..Pod::default() })
}

/// The pod as a server holds it, with more in it.
fn stored(more: &Value) -> Value {
    let mut stored = json!({
        "kind": "Pod",
        "metadata": { "name": "web", "namespace": "status", "uid": "1-2" },
        "status": { "nominatedNodeName": "n0", "conditions": [{ "type": "Other", "status": "True" }] },
    });
    merge(&mut stored, more);
    stored
}

#[track_caller]
fn changed(call: &Call, object: &Value) -> Value {
    match applied(call, object) {
        Ok(Applied::Changed(changed)) => changed,
        other => panic!("{call:?}: {other:?}"),
    }
}

#[test]
fn a_pod_is_bound_once() {
    let call = bind(&pod(), "n1");
    let bound = changed(&call, &stored(&json!({})));
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(
        bound["status"],
        json!({ "conditions": [{ "type": "Other", "status": "True" }, { "type": "PodScheduled", "status": "True" }] })
    );
    for refused in [
        bound,
        stored(&json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } })),
        stored(&json!({ "metadata": { "uid": "3-4" } })),
    ] {
        assert!(matches!(applied(&call, &refused), Err(Refusal::Conflict(_))), "{refused}");
    }
}

#[test]
fn a_status_is_changed_and_nothing_else() {
    let condition = PodCondition {
        kind: "PodScheduled".into(),
        holds: false,
        reason: "Unschedulable".into(),
        message: "no".to_owned(),
        since: Timestamp::from_seconds(0),
        observed_generation: 0,
    };
    let call = update_status(&pod(), Some(&condition), &Nomination::Clear).expect("it changes something");
    let once = changed(&call, &stored(&json!({})));
    assert_eq!(once, changed(&call, &once), "the same again changes nothing");
    let types: Vec<_> =
        once["status"]["conditions"].as_array().into_iter().flatten().map(|c| &c["type"]).collect();
    assert_eq!(types, ["Other", "PodScheduled"]);
    assert_eq!(once["status"]["nominatedNodeName"], Value::Null);
    assert_eq!(once["metadata"], stored(&json!({}))["metadata"]);
    let victim = disrupt(&pod(), &pod(), Timestamp::from_seconds(0)).expect("nothing was said yet");
    let told = changed(&victim, &once);
    assert_eq!(told["status"]["conditions"][2]["type"], "DisruptionTarget");
    let other = stored(&json!({ "metadata": { "uid": "3-4" } }));
    assert!(matches!(applied(&victim, &other), Err(Refusal::Conflict(_))));
}

#[test]
fn patches_and_deletions_mean_the_object_itself() {
    let key = ObjectKey { namespace: "status".into(), name: "web".into() };
    let call = patch(KindId::POD, &key, None, &json!({ "spec": { "a": [1] }, "status": null }));
    let patched = changed(&call, &stored(&json!({ "spec": { "a": [2, 3], "b": 4 } })));
    assert_eq!((&patched["spec"], &patched["status"]), (&json!({ "a": [1], "b": 4 }), &Value::Null));
    let status_only =
        patch(KindId::POD, &key, Some("status"), &json!({ "spec": { "a": 1 }, "status": { "c": 2 } }));
    let patched = changed(&status_only, &stored(&json!({})));
    assert_eq!((&patched["spec"], &patched["status"]["c"]), (&Value::Null, &json!(2)));
    assert_eq!(applied(&delete(KindId::POD, &key, "1-2"), &patched), Ok(Applied::Deleted));
    assert!(matches!(applied(&delete(KindId::POD, &key, "3-4"), &patched), Err(Refusal::Conflict(_))));
}

#[test]
fn what_writes_nothing_is_refused() {
    for call in [
        Call::get("/api/v1/namespaces/a/pods/b".to_owned()),
        Call::post("/api/v1/namespaces/a/pods/binding".to_owned(), b"{}".to_vec()),
        Call::patch("/api/v1/nodes/n".to_owned(), STRATEGIC_MERGE_PATCH, b"{".to_vec()),
    ] {
        assert!(matches!(applied(&call, &stored(&json!({}))), Err(Refusal::Invalid(_))), "{call:?}");
    }
}

#[test]
fn subresources_are_told_from_names() {
    for (path, expected) in [
        ("/api/v1/namespaces/status/pods/status", None),
        ("/api/v1/namespaces/a/pods/b/status", Some("status")),
        ("/api/v1/namespaces/a", None),
        ("/apis/storage.k8s.io/v1/storageclasses/status", None),
        ("/apis/g/v1/things/a/status", Some("status")),
        ("/apis/g/v1/namespaces/n/things/a/scale", Some("scale")),
        ("", None),
    ] {
        assert_eq!(subresource(path), expected, "{path}");
    }
}
