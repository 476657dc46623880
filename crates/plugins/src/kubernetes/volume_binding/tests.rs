use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_framework::{
    Actions, Acts, AskedActs, Awaited, Change, Code, Cycle, Effect, Enqueue, EventResource, Filter, Hint,
    Memories, News, Plugin, PreBind, PreFilter, PreFilterResult, Reserve, Status, Step,
};
use supercargo_model::kinds::{
    CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
};
use supercargo_model::{NodeRef, Pod, Snapshot, Timestamp};

use super::assumed::AssumedVolumes;
use super::{PlannedBindings, VolumeBinding, VolumeBindingArgs};
use crate::kubernetes::storage::scene::{
    cluster, context, hint, hint_added, hint_updated, node, object, pod, pod_with_claims, written,
};

const SELECTED: &str = "volume.kubernetes.io/selected-node";
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// Nothing is remembered yet, but the plugin has said what it will.
fn no_memories() -> Memories {
    let mut memories = Memories::default();
    memories.declare::<AssumedVolumes>();
    memories
}

fn plugin() -> VolumeBinding {
    VolumeBinding::new(VolumeBindingArgs { bind_timeout_seconds: Some(30), shape: None })
}

/// Two nodes, a class without provisioner and one with, and whatever else.
fn scene(further: &[Value]) -> Snapshot {
    let class = |name: &str, provisioner: &str| {
        let (metadata, mode) = (json!({"name": name}), "WaitForFirstConsumer");
        written::<StorageClass>(
            json!({"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode}),
        )
    };
    let common =
        [node("n1"), node("n2"), class("local", "kubernetes.io/no-provisioner"), class("made", "a.example")];
    cluster(&[&common, further].concat())
}

fn claim(name: &str, class: &str, version: &str) -> Value {
    written::<PersistentVolumeClaim>(json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": version},
        "spec": {"storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}},
    }))
}

fn volume(name: &str, version: &str) -> Value {
    written::<PersistentVolume>(json!({
        "metadata": {"name": name, "resourceVersion": version},
        "spec": {"storageClassName": "local", "capacity": {"storage": "1Gi"}},
        "status": {"phase": "Available"},
    }))
}

fn with(mut value: Value, pointer: &str, part: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a path");
    value.pointer_mut(parent).expect("a parent")[key] = part;
    value
}

fn bound(claim: Value, volume: &str) -> Value {
    let claim = with(claim, "/spec/volumeName", volume.into());
    let annotations = json!({COMPLETED: "yes", SELECTED: "n1"});
    with(claim, "/metadata/annotations", annotations)
}

fn on<'a>(snapshot: &'a Snapshot, name: &str) -> NodeRef<'a> {
    snapshot.node(snapshot.row_of(name).expect("a node"))
}

/// What Filter says of a pod on node `n1`.
fn filtered(snapshot: &Snapshot, memories: &Memories, pod: &Arc<Pod>) -> Status {
    let mut cycle = Cycle::new(pod, context(snapshot, memories));
    assert!(matches!(plugin().pre_filter(&mut cycle), PreFilterResult::AllNodes));
    plugin().filter(&cycle, on(snapshot, "n1"))
}

/// A cycle in which the pod has node `n1` reserved, and what is remembered of it.
fn reserved<'a>(snapshot: &'a Snapshot, memories: &'a Memories, pod: &'a Arc<Pod>) -> (Cycle<'a>, Memories) {
    let mut cycle = Cycle::new(pod, context(snapshot, memories));
    assert!(!matches!(plugin().pre_filter(&mut cycle), PreFilterResult::Reject(_)));
    let (mut after, mut asked) = (memories.clone(), AskedActs::default());
    let mut acts = Acts::new("VolumeBinding", &mut after, &mut asked);
    let status = plugin().reserve(&mut cycle, &mut acts, on(snapshot, "n1"));
    assert!(status.is_success(), "{status:?}");
    (cycle, after)
}

fn waits(step: &Step) -> (&[Effect], Option<Timestamp>) {
    match step {
        Step::Wait { effects, deadline, .. } => (effects, *deadline),
        Step::Done(status) => panic!("done: {status:?}"),
    }
}

/// The objects whose changes a step waits for. It waits for those of no others.
fn awaited(step: &Step) -> Vec<String> {
    let Step::Wait { events, .. } = step else { panic!("it does not wait") };
    let words = |awaited: &Awaited| {
        let key = awaited.object.as_ref().expect("it is an object of that name");
        let kind = match awaited.event.resource {
            EventResource::Kind(kind) => kind.kind,
            _ => "Pod",
        };
        format!("{kind} {}/{}", key.namespace, key.name)
    };
    events.iter().map(words).collect()
}

fn message(step: &Step) -> String {
    match step {
        Step::Done(status) => format!("{}: {}", status.code().name(), status.message()),
        Step::Wait { .. } => "waits".to_owned(),
    }
}

/// How PreBind goes on for a pod with claim `data` once the cluster has these objects.
fn resumed(before: &[Value], after: &[Value], news: &News<'_>) -> String {
    let (before, after, memories) = (scene(before), scene(after), no_memories());
    let pod = pod_with_claims("web", &["data"]);
    let (mut cycle, _) = reserved(&before, &memories, &pod);
    waits(&plugin().pre_bind(&mut cycle, on(&before, "n1")));
    cycle.context.cluster = &after;
    message(&plugin().resume(&mut cycle, on(&after, "n1"), news))
}

#[test]
fn a_reserved_volume_is_taken_until_it_is_given_back() {
    let snapshot = scene(&[volume("pv", "1"), claim("data", "local", "1"), claim("other", "local", "1")]);
    let (first, second) = (pod_with_claims("web", &["data"]), pod_with_claims("db", &["other"]));
    let nothing = no_memories();
    assert!(filtered(&snapshot, &nothing, &second).is_success());
    let (mut cycle, mut memories) = reserved(&snapshot, &nothing, &first);
    let status = filtered(&snapshot, &memories, &second);
    assert_eq!(status.code(), Code::UnschedulableAndUnresolvable);
    assert_eq!(status.message(), "node(s) didn't find available persistent volumes to bind");
    // The pod itself, tried again, still counts on it.
    assert!(filtered(&snapshot, &memories, &first).is_success());
    let mut asked = AskedActs::default();
    let mut acts = Acts::new("VolumeBinding", &mut memories, &mut asked);
    plugin().unreserve(&mut cycle, &mut acts, on(&snapshot, "n1"));
    assert!(filtered(&snapshot, &memories, &second).is_success());
}

#[test]
fn what_was_assumed_of_an_object_ends_with_its_next_version() {
    let objects =
        |version| [volume("pv", version), claim("data", "local", "1"), claim("other", "local", "1")];
    let (before, after) = (scene(&objects("1")), scene(&objects("2")));
    let (first, second) = (pod_with_claims("web", &["data"]), pod_with_claims("db", &["other"]));
    let nothing = no_memories();
    let (_, memories) = reserved(&before, &nothing, &first);
    assert!(filtered(&after, &memories, &second).is_success());
    // The next Reserve drops it for good.
    let mut assumed = memories.get::<AssumedVolumes>().expect("remembered").clone();
    assumed.forget_outdated(&supercargo_model::Objects::default());
    assert_eq!(serde_json::to_value(&assumed).expect("JSON"), json!({"volumes": {}, "claims": {}}));
}

#[test]
fn a_claim_whose_volume_is_to_be_made_keeps_later_pods_on_its_node() {
    let snapshot = scene(&[claim("data", "made", "1")]);
    let (first, second) = (pod_with_claims("web", &["data"]), pod_with_claims("db", &["data"]));
    let nothing = no_memories();
    let (_, memories) = reserved(&snapshot, &nothing, &first);
    let mut cycle = Cycle::new(&second, context(&snapshot, &memories));
    plugin().pre_filter(&mut cycle);
    assert!(plugin().filter(&cycle, on(&snapshot, "n1")).is_success());
    assert!(plugin().filter(&cycle, on(&snapshot, "n2")).is_rejected());
}

#[test]
fn memories_can_be_written_and_read() {
    let snapshot = scene(&[volume("pv", "1"), claim("data", "local", "1"), claim("new", "made", "1")]);
    let pod = pod_with_claims("web", &["data", "new"]);
    let nothing = no_memories();
    let (_, memories) = reserved(&snapshot, &nothing, &pod);
    let written = serde_json::to_value(memories.get::<AssumedVolumes>().expect("remembered")).expect("JSON");
    let read: AssumedVolumes = serde_json::from_value(written.clone()).expect("ours");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), written);
    assert_eq!(written["volumes"]["pv"]["value"]["name"], "data");
    assert_eq!(written["claims"]["default/new"]["value"], "n1");
}

#[test]
fn small_claims_get_the_small_volumes() {
    let size = |value: Value, pointer: &str, size: &str| with(value, pointer, json!({"storage": size}));
    let snapshot = scene(&[
        size(volume("a-large", "1"), "/spec/capacity", "8Gi"),
        size(volume("b-small", "1"), "/spec/capacity", "2Gi"),
        size(claim("large", "local", "1"), "/spec/resources/requests", "4Gi"),
        claim("small", "local", "1"),
    ]);
    let (pod, nothing) = (pod_with_claims("web", &["large", "small"]), no_memories());
    let (cycle, _) = reserved(&snapshot, &nothing, &pod);
    let planned: &PlannedBindings = cycle.get().expect("Reserve leaves it");
    let names = planned.bindings.iter().map(|b| (&*b.claim.metadata.name, &*b.volume.metadata.name));
    assert_eq!(names.collect::<Vec<_>>(), [("small", "b-small"), ("large", "a-large")]);
}

#[test]
fn pods_without_claims_and_with_bound_ones_have_nothing_to_bind() {
    let snapshot = scene(&[volume("pv", "1"), bound(claim("data", "local", "1"), "pv")]);
    let nothing = no_memories();
    for pod in [pod_with_claims("web", &[]), pod_with_claims("db", &["data"])] {
        let (mut cycle, _) = reserved(&snapshot, &nothing, &pod);
        let step = plugin().pre_bind(&mut cycle, on(&snapshot, "n1"));
        assert!(matches!(step, Step::Done(status) if status.is_skip()));
    }
    let pod = pod_with_claims("unseen", &[]);
    let mut cycle = Cycle::new(&pod, context(&snapshot, &nothing));
    let (mut memories, mut asked) = (no_memories(), AskedActs::default());
    let mut acts = Acts::new("VolumeBinding", &mut memories, &mut asked);
    let status = plugin().reserve(&mut cycle, &mut acts, on(&snapshot, "n1"));
    assert_eq!(status.message(), "not found");
}

#[test]
fn pre_bind_patches_volumes_and_claims_and_waits() {
    let snapshot = scene(&[volume("pv", "7"), claim("data", "local", "8"), claim("new", "made", "9")]);
    let (pod, nothing) = (pod_with_claims("web", &["new", "data"]), no_memories());
    let (mut cycle, _) = reserved(&snapshot, &nothing, &pod);
    let step = plugin().pre_bind(&mut cycle, on(&snapshot, "n1"));
    let (effects, deadline) = waits(&step);
    assert_eq!(deadline, Some(Timestamp::from_seconds(1030)));
    let objects = [
        "Pod default/web",
        "PersistentVolumeClaim default/data",
        "PersistentVolume /pv",
        "PersistentVolumeClaim default/new",
    ];
    assert_eq!(awaited(&step), objects);
    let patches: Vec<Value> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Patch { kind, key, subresource: None, patch } => {
                json!([kind.plural, format!("{}/{}", key.namespace, key.name), patch])
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let claim_ref = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data",
        "uid": "uid-data", "resourceVersion": "8"});
    assert_eq!(
        patches,
        [
            json!(["persistentvolumes", "/pv", {
                "metadata": {"resourceVersion": "7", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
                "spec": {"claimRef": claim_ref},
            }]),
            json!(["persistentvolumeclaims", "default/new", {
                "metadata": {"resourceVersion": "9", "annotations": {SELECTED: "n1"}},
            }]),
        ]
    );
}

#[test]
fn what_stands_as_planned_is_not_patched() {
    let reference = json!({"namespace": "default", "name": "data", "uid": "uid-data"});
    let pv = with(volume("pv", "1"), "/spec/claimRef", reference);
    let selected = with(claim("new", "made", "1"), "/metadata/annotations", json!({SELECTED: "n1"}));
    let snapshot = scene(&[pv, claim("data", "local", "1"), selected]);
    let (pod, nothing) = (pod_with_claims("web", &["data", "new"]), no_memories());
    let (mut cycle, _) = reserved(&snapshot, &nothing, &pod);
    assert!(waits(&plugin().pre_bind(&mut cycle, on(&snapshot, "n1"))).0.is_empty());
}

#[test]
fn binding_a_volume_goes_on_until_the_claim_is_bound() {
    let before = [volume("pv", "1"), claim("data", "local", "1")];
    let reference = json!({"namespace": "default", "name": "data", "uid": "uid-data"});
    let taken = with(volume("pv", "2"), "/spec/claimRef", reference);
    let claims = [claim("data", "local", "1"), bound(claim("data", "local", "2"), "pv")];
    let elsewhere = json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}]}});
    let moved = with(taken.clone(), "/spec/nodeAffinity", elsewhere);
    for (after, expected) in [
        (&[before[0].clone(), before[1].clone()][..], "waits"),
        (&[taken.clone(), claims[0].clone()], "waits"),
        (&[taken.clone(), claims[1].clone()], "Success: "),
        (
            &[volume("pv", "2"), claims[0].clone()],
            r#"Error: binding volumes: ClaimRef got reset for pv "pv""#,
        ),
        (
            &[moved, claims[1].clone()],
            r#"Error: binding volumes: pv "pv" node affinity doesn't match node "n1": no matching NodeSelectorTerms"#,
        ),
        (
            &[claims[1].clone()],
            r#"Error: binding volumes: failed to check binding: persistentvolumes "pv" not found"#,
        ),
        (
            &[taken],
            r#"Error: binding volumes: failed to check binding: persistentvolumeclaims "default/data" not found"#,
        ),
    ] {
        assert_eq!(resumed(&before, after, &News::Succeeded { objects: &[] }), expected);
    }
}

#[test]
fn making_a_volume_goes_on_until_the_claim_is_bound() {
    let before = [claim("data", "made", "1")];
    let selected =
        |node: &str| with(claim("data", "made", "2"), "/metadata/annotations", json!({SELECTED: node}));
    for (after, expected) in [
        (&before[..], "waits"),
        (&[selected("n1")], "waits"),
        (&[bound(claim("data", "made", "2"), "pv")], "waits"),
        (&[bound(claim("data", "made", "2"), "pv"), volume("pv", "1")], "Success: "),
        (&[selected("n2")], r#"Error: binding volumes: provisioning failed for PVC "data""#),
        (
            &[claim("data", "made", "2")],
            r#"Error: binding volumes: selectedNode annotation reset for PVC "data""#,
        ),
    ] {
        assert_eq!(resumed(&before, after, &News::Succeeded { objects: &[] }), expected);
    }
}

#[test]
fn a_volume_is_waited_for_that_its_claim_names_before_it_is_there() {
    let before = scene(&[claim("data", "made", "1")]);
    let after = scene(&[bound(claim("data", "made", "2"), "pv")]);
    let (pod, memories) = (pod_with_claims("web", &["data"]), no_memories());
    let (mut cycle, _) = reserved(&before, &memories, &pod);
    let first = plugin().pre_bind(&mut cycle, on(&before, "n1"));
    assert_eq!(awaited(&first), ["Pod default/web", "PersistentVolumeClaim default/data"]);
    cycle.context.cluster = &after;
    let news = News::Succeeded { objects: &[] };
    let next = plugin().resume(&mut cycle, on(&after, "n1"), &news);
    let objects = ["Pod default/web", "PersistentVolumeClaim default/data", "PersistentVolume /pv"];
    assert_eq!(awaited(&next), objects);
}

#[test]
fn binding_ends_with_its_time_its_pod_or_a_failed_request() {
    let objects = [claim("data", "made", "1")];
    let pod = pod_with_claims("web", &["data"]);
    for (news, expected) in [
        (News::TimedOut, "Error: binding volumes: context deadline exceeded"),
        (News::Failed { error: "conflict", code: Some(409) }, "Error: conflict"),
        (
            News::Changed(Change::Pod { old: Some(&pod), new: None }),
            r#"Error: binding volumes: pod does not exist any more: pod "web" not found"#,
        ),
    ] {
        assert_eq!(resumed(&objects, &objects, &news), expected);
    }
    let other = pod_with_claims("other", &[]);
    let gone = News::Changed(Change::Pod { old: Some(&other), new: None });
    assert_eq!(resumed(&objects, &objects, &gone), "waits");
}

#[test]
fn arguments_are_defaulted() {
    assert_eq!(VolumeBindingArgs::default().bind_timeout().as_secs(), 600);
    assert_eq!(plugin().bind_timeout.as_secs(), 30);
}

#[test]
fn claims_wake_their_pods() {
    let claim = |namespace: &str, name: &str| {
        object::<PersistentVolumeClaim>(json!({"metadata": {"name": name, "namespace": namespace}}))
    };
    let pod = pod(
        "web",
        &json!([{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b", "ephemeral": {}}]),
    );
    for (namespace, name, expected) in [
        ("default", "data", Hint::Queue),
        ("default", "web-b", Hint::Queue),
        ("other", "data", Hint::Skip),
        ("default", "b", Hint::Skip),
    ] {
        let claim = claim(namespace, name);
        assert_eq!(hint_added(&plugin(), &pod, &claim), expected, "{namespace}/{name}");
        assert_eq!(hint_updated(&plugin(), &pod, &claim, &claim), expected, "{namespace}/{name}");
    }
}

#[test]
fn changes_wake_pods_only_where_they_can_help() {
    let pod = pod("web", &json!([{"name": "a", "csi": {"driver": "a.example"}}]));
    let class =
        |zones: Value| object::<StorageClass>(json!({"metadata": {"name": "c"}, "allowedTopologies": zones}));
    let zones = json!([{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]);
    let csi_node = |annotations: Value| {
        object::<CSINode>(json!({"metadata": {"name": "n", "annotations": annotations}}))
    };
    let migrated = json!({"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"});
    let driver = |name: &str, counts: Value| {
        object::<CSIDriver>(json!({"metadata": {"name": name}, "spec": {"storageCapacity": counts}}))
    };
    let capacity = |capacity: Value, maximum: Value| {
        object::<CSIStorageCapacity>(
            json!({"metadata": {"name": "c"}, "capacity": capacity, "maximumVolumeSize": maximum}),
        )
    };
    let none = || Value::Null;
    let volume = || object::<PersistentVolume>(json!({"metadata": {"name": "v"}}));
    for (old, new, expected) in [
        (class(none()), class(json!([])), Hint::Skip),
        (class(none()), class(zones), Hint::Queue),
        (csi_node(none()), csi_node(json!({"other": "x"})), Hint::Skip),
        (csi_node(none()), csi_node(migrated), Hint::Queue),
        (driver("a.example", true.into()), driver("a.example", none()), Hint::Queue),
        (driver("a.example", true.into()), driver("a.example", true.into()), Hint::Skip),
        (driver("a.example", false.into()), driver("a.example", true.into()), Hint::Skip),
        (driver("b.example", true.into()), driver("b.example", false.into()), Hint::Skip),
        (capacity("1Gi".into(), none()), capacity("2Gi".into(), none()), Hint::Queue),
        (capacity(none(), none()), capacity("0".into(), none()), Hint::Queue),
        (capacity("2Gi".into(), none()), capacity("1Gi".into(), none()), Hint::Skip),
        (capacity("1Gi".into(), "1Gi".into()), capacity("9Gi".into(), "1Gi".into()), Hint::Skip),
        (capacity("1Gi".into(), none()), capacity(none(), none()), Hint::Skip),
        (volume(), volume(), Hint::Queue),
    ] {
        assert_eq!(hint_updated(&plugin(), &pod, &old, &new), expected, "{new:?}");
    }
    for new in [class(none()), csi_node(none()), capacity(none(), none()), volume()] {
        assert_eq!(hint_added(&plugin(), &pod, &new), Hint::Queue, "{new:?}");
    }
    let snapshot = cluster(&[node("n1")]);
    let node = Change::Node { old: None, new: Some(on(&snapshot, "n1")) };
    assert_eq!(hint(&plugin(), &pod, &node), Hint::Queue);
    let update = Actions::ADD.or(Actions::UPDATE_NODE_LABEL);
    assert!(plugin().events().contains(&supercargo_framework::ClusterEvent::node(update)));
}
