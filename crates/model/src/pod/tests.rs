//! What plugins read of pods beyond what decides by default.

use serde_json::{Value, json};

use super::{ClaimSource, Pod, PodPhase, SeccompProfile};
use crate::{Decoded, Decoder, Interner, Timestamp};

fn pod(keeps_progress: bool, spec: &Value, status: &Value) -> Pod {
    let text = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": spec, "status": status });
    match Decoder::default().keeping_progress(keeps_progress).decode(&text.to_string()) {
        Ok(Decoded::Pod(words)) => Interner::default().pod(*words),
        other => panic!("a pod was read as {other:?}"),
    }
}

#[test]
fn phases_and_times_are_kept_where_somebody_reads_them() {
    let since = "2026-01-31T12:00:00Z";
    let scheduled =
        |status: &str| json!([{ "type": "PodScheduled", "status": status, "lastTransitionTime": since }]);
    let bound = json!({ "nodeName": "n" });
    let time = Some(Timestamp::from_seconds(1_769_860_800));
    for (keeps, spec, status, phase, scheduled_at) in [
        (
            true,
            &bound,
            json!({ "phase": "Pending", "conditions": scheduled("True") }),
            PodPhase::Pending,
            time,
        ),
        (true, &bound, json!({ "phase": "Running" }), PodPhase::Running, None),
        (true, &bound, json!({ "phase": "Failed" }), PodPhase::Failed, None),
        (true, &json!({}), json!({ "conditions": scheduled("False") }), PodPhase::Pending, None),
        (true, &json!({}), json!({ "phase": "Odd" }), PodPhase::Unknown, None),
        (
            false,
            &bound,
            json!({ "phase": "Pending", "conditions": scheduled("True") }),
            PodPhase::Running,
            None,
        ),
        (false, &json!({}), json!({ "phase": "Running" }), PodPhase::Pending, None),
    ] {
        let pod = pod(keeps, spec, &status);
        assert_eq!((pod.phase(), pod.scheduled_at()), (phase, scheduled_at), "{status}");
        assert!(keeps || pod.status.is_none(), "it takes no room: {status}");
    }
}

#[test]
fn claims_by_name_and_from_templates() {
    let spec = json!({ "resourceClaims": [
        { "name": "shared", "resourceClaimName": "gpu" },
        { "name": "own", "resourceClaimTemplateName": "template" },
        { "name": "later", "resourceClaimTemplateName": "template" },
        { "name": "none", "resourceClaimTemplateName": "template" },
        { "name": "odd" },
    ] });
    let status = json!({ "resourceClaimStatuses": [{ "name": "own", "resourceClaimName": "p-own-x" }, { "name": "none" }] });
    let pod = pod(false, &spec, &status);
    let names: Vec<Option<&str>> =
        pod.spec.resource_claims.iter().map(|claim| pod.claim_name(claim)).collect();
    assert_eq!(names, [Some("gpu"), Some("p-own-x"), None, None, None]);
    assert_eq!(pod.spec.resource_claims[1].source, ClaimSource::Template("template".into()));
    assert_eq!(pod.spec.resource_claims[4].source, ClaimSource::Unknown);
}

#[test]
fn the_seccomp_profile_of_a_container_is_its_own_or_the_pods() {
    let profile = |profile: Value| json!({ "seccompProfile": profile });
    let own = profile(json!({ "type": "Localhost", "localhostProfile": "a.json" }));
    let spec = json!({
        "priorityClassName": "high",
        "securityContext": profile(json!({ "type": "RuntimeDefault" })),
        "containers": [{ "name": "a", "securityContext": own }, { "name": "b" }, { "name": "c", "securityContext": {} }],
        "initContainers": [
            { "name": "d", "securityContext": profile(json!({ "type": "Unconfined" })) },
            { "name": "e", "securityContext": profile(json!({ "type": "Strange" })) },
        ],
    });
    let pod = pod(false, &spec, &json!({}));
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let profiles: Vec<_> =
        containers.map(|container| pod.spec.seccomp_profile_of(container).cloned()).collect();
    let expected = [
        SeccompProfile::Localhost("a.json".into()),
        SeccompProfile::RuntimeDefault,
        SeccompProfile::RuntimeDefault,
        SeccompProfile::Unconfined,
        SeccompProfile::Other("Strange".into()),
    ];
    assert_eq!(profiles, expected.map(Some));
    assert_eq!(&*pod.spec.priority_class_name, "high");
}
