use serde_json::json;

use super::*;

fn masked(objects: &[Value]) -> Vec<Value> {
    let mut builder = MaskBuilder::default();
    for object in objects {
        builder.see(&mut object.clone());
    }
    let mut mask = builder.finish();
    objects
        .iter()
        .map(|object| {
            let mut object = object.clone();
            mask.apply(&mut object);
            object
        })
        .collect()
}

#[test]
fn a_name_is_the_same_wherever_it_stands() {
    let masked = masked(&[
        json!({"kind": "Node", "metadata": {"name": "rack-7", "labels": {
            "kubernetes.io/hostname": "rack-7", "topology.kubernetes.io/zone": "zone-a", "team": "payments", "slots": "8"}},
            "spec": {"taints": [{"key": "dedicated", "value": "payments", "effect": "NoSchedule"}], "providerID": "aws:///x"},
            "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True", "message": "secret"}],
                "images": [{"names": ["registry.corp/shop:1.2", "registry.corp/db@sha256:abc"], "sizeBytes": 5}]}}),
        json!({"kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "1", "annotations": {"owner": "bob"}},
            "spec": {"nodeName": "rack-7", "containers": [{"name": "main", "image": "registry.corp/shop:1.2",
                "env": [{"name": "PASSWORD", "value": "hunter2"}], "resources": {"requests": {"cpu": "1"}},
                "ports": [{"hostPort": 80, "hostIP": "0.0.0.0", "protocol": "TCP"}]}],
                "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "payments", "effect": "NoSchedule"}],
                "nodeSelector": {"team": "payments", "topology.kubernetes.io/zone": "zone-a"},
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["rack-7"]}],
                     "matchExpressions": [{"key": "slots", "operator": "Gt", "values": ["3"]}]}]}}},
                "volumes": [{"name": "data", "ephemeral": {}}]}}),
        json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "web-data", "namespace": "shop",
            "annotations": {"volume.kubernetes.io/selected-node": "rack-7", "pv.kubernetes.io/bind-completed": "yes"}}}),
        json!({"kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "x"},
            "matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "payments"]}]}},
            "status": {"disruptionsAllowed": 1, "disruptedPods": {"web": "2026-01-01T00:00:00Z"}}}),
    ]);
    let payments = masked[0]["metadata"]["labels"]["team"].clone();
    assert_eq!(
        masked,
        [
            json!({"kind": "Node", "metadata": {"name": "node-1", "labels": {
                "kubernetes.io/hostname": "node-1", "topology.kubernetes.io/zone": "zone-a", "team": payments, "slots": "8"}},
                "spec": {"taints": [{"key": "dedicated", "value": payments, "effect": "NoSchedule"}]},
                "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}],
                    "images": [{"names": ["image-2:name-1", "image-1:name-2"], "sizeBytes": 5}]}}),
            json!({"kind": "Pod", "metadata": {"name": "pod-1", "namespace": "namespace-1", "uid": "1", "annotations": {}},
                "spec": {"nodeName": "node-1", "containers": [{"name": "name-4", "image": "image-2:name-1",
                    "resources": {"requests": {"cpu": "1"}},
                    "ports": [{"hostPort": 80, "hostIP": "0.0.0.0", "protocol": "TCP"}]}],
                    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": payments, "effect": "NoSchedule"}],
                    "nodeSelector": {"team": payments, "topology.kubernetes.io/zone": "zone-a"},
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
                         "matchExpressions": [{"key": "slots", "operator": "Gt", "values": ["3"]}]}]}}},
                    "volumes": [{"name": "name-3", "ephemeral": {}}]}}),
            json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "pod-1-name-3", "namespace": "namespace-1",
                "annotations": {"volume.kubernetes.io/selected-node": "node-1", "pv.kubernetes.io/bind-completed": "yes"}}}),
            json!({"kind": "PodDisruptionBudget", "metadata": {"name": "pod-1"},
                "spec": {"selector": {"matchLabels": {"app": "value-2"},
                    "matchExpressions": [{"key": "app", "operator": "In", "values": ["value-2", payments]}]}},
                "status": {"disruptionsAllowed": 1, "disruptedPods": {"pod-1": "2026-01-01T00:00:00Z"}}}),
        ]
    );
}

#[test]
fn masks_are_in_the_order_of_the_names() {
    let nodes: Vec<Value> =
        (0..12).map(|n| json!({"kind": "Node", "metadata": {"name": format!("x{:02}", 11 - n)}})).collect();
    let names: Vec<String> = masked(&nodes)
        .iter()
        .map(|node| node["metadata"]["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!((names[0].as_str(), names[11].as_str()), ("node-12", "node-01"));
    assert!(names.is_sorted_by(|a, b| a > b), "{names:?}");
}

#[test]
fn an_image_without_a_tag_is_the_latest() {
    let pods = masked(&[
        json!({"kind": "Pod", "spec": {"containers": [{"image": "corp:5000/a"}, {"image": "corp:5000/a:latest"}]}}),
    ]);
    let containers = &pods[0]["spec"]["containers"];
    assert_eq!(
        (&containers[0]["image"], &containers[1]["image"]),
        (&json!("image-1"), &json!("image-1:latest"))
    );
}
