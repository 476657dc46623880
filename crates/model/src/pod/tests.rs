//! What plugins read of pods beyond what decides by default.

use serde_json::{Value, json};

use super::{ClaimSource, Pod, PodPhase, SeccompProfile};
use crate::{Decoded, Decoder, Interner, Timestamp};

fn pod(keeps_progress: bool, spec: &Value, status: &Value) -> Pod {
    pod_of(&mut Interner::default(), keeps_progress, spec, status)
}

fn pod_of(interner: &mut Interner, keeps_progress: bool, spec: &Value, status: &Value) -> Pod {
    let text = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": spec, "status": status });
    match Decoder::default().keeping_progress(keeps_progress).decode(&text.to_string()) {
        Ok(Decoded::Pod(words)) => interner.pod(*words),
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

/// Specs of words that were read before are not made anew; what is made must be no other for that.
#[test]
fn pods_share_a_spec_exactly_if_they_ask_for_the_same() {
    let cpu = |cpu: &str| json!([{ "name": "c", "resources": { "requests": { "cpu": cpu } } }]);
    let credentials = |name: &str| json!([{ "name": name, "projected": {} }]);
    let specs = [
        (json!({ "containers": cpu("1") }), 1),
        (json!({ "containers": cpu("1"), "nodeName": "n" }), 1),
        (json!({ "containers": cpu("1"), "volumes": credentials("token-a") }), 1),
        (json!({ "containers": cpu("1"), "volumes": credentials("token-b") }), 1),
        (json!({ "containers": cpu("1000m") }), 1),
        (json!({ "containers": cpu("2") }), 2),
        (
            json!({ "containers": cpu("1"), "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "a" } }] }),
            3,
        ),
        (
            json!({ "containers": cpu("1"), "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "b" } }] }),
            4,
        ),
        (json!({ "containers": cpu("1"), "volumes": [{ "name": "v", "ephemeral": {} }] }), 5),
        (json!({ "containers": cpu("1"), "priority": 7 }), 6),
    ];
    let mut interner = Interner::default();
    // The second time all words are known.
    for _ in 0..2 {
        let pods =
            specs.clone().map(|(spec, kind)| (pod_of(&mut interner, false, &spec, &json!({})), spec, kind));
        for (a, spec, kind) in &pods {
            assert_eq!(a.spec, pod(false, spec, &json!({})).spec, "{spec}");
            assert_eq!(a.node_name.is_some(), spec.get("nodeName").is_some(), "{spec}");
            for (b, other, other_kind) in &pods {
                assert_eq!(a.spec.is_same(&b.spec), kind == other_kind, "{spec} and {other}");
            }
        }
    }
    for number in 0..1000 {
        let spec = json!({ "priority": number });
        assert_eq!(
            pod_of(&mut interner, false, &spec, &json!({})).priority(),
            number,
            "nothing is kept for ever"
        );
    }
}

#[test]
fn keys_compare_as_their_texts() {
    let empty = json!({});
    let named = [("a", "y"), ("a", "z"), ("a-b", "x"), ("a.b", "x"), ("b", "x")].map(|(namespace, name)| {
        let mut pod = pod(false, &empty, &empty);
        (pod.namespace, pod.name) = (namespace.into(), name.into());
        pod
    });
    for a in &named {
        for b in &named {
            assert_eq!(a.compare_keys(b), a.key().cmp(&b.key()), "{} and {}", a.key(), b.key());
        }
    }
}
