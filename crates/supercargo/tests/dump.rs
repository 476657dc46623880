//! A dump says the same when its names are masked, and says nothing else.

mod support;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::{check, supercargo};

/// What must not be found in a masked dump.
const SECRETS: &[&str] = &[
    "rack",
    "shop",
    "checkout",
    "payments",
    "hunter2",
    "registry.corp",
    "bob",
    "gold",
    "claim-of",
    "10.1.2.3",
    "mysecret",
    "nightly",
];

fn node(name: &str, zone: &str, cpu: &str, team: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone,
            "team": team, "slots": "4", "kubernetes.io/arch": "amd64"}, "managedFields": [{"manager": "mysecret"}]},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
            "images": [{"names": ["registry.corp/web:latest"], "sizeBytes": 900_000_000}]},
    })
}

fn pod(name: &str, on: Option<&str>, spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid of {}", name.len()),
            "labels": {"app": "checkout"}, "annotations": {"owner": "bob"}},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "payments", "image": "registry.corp/web",
            "env": [{"name": "PASSWORD", "value": "hunter2"}], "resources": {"requests": {"cpu": "1"}}}]},
    });
    pod["spec"].as_object_mut().expect("a map").extend(spec.as_object().expect("a map").clone());
    if let Some(on) = on {
        pod["spec"]["nodeName"] = on.into();
        pod["status"] = json!({"phase": "Running", "hostIP": "10.1.2.3"});
    }
    pod
}

/// A cluster in which names decide in many ways.
fn cluster() -> String {
    let near = |topology: &str| {
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [{
        "labelSelector": {"matchLabels": {"app": "checkout"}}, "namespaces": ["shop"], "topologyKey": topology}]})
    };
    let mut tainted = node("rack-3", "zone-b", "32", "payments");
    tainted["spec"] = json!({"taints": [{"key": "dedicated", "value": "nightly", "effect": "NoSchedule"}]});
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mysecret"}, "data": {"a": "aHVudGVyMg=="}}),
        node("rack-1", "zone-a", "4", "payments"),
        node("rack-10", "zone-a", "4", "payments"),
        node("rack-2", "zone-b", "4", "gold"),
        tainted,
        pod("a", Some("rack-1"), &json!({"priority": -5})),
        pod("plain-b", None, &json!({})),
        pod(
            "checkout-c",
            None,
            &json!({"affinity": {"podAntiAffinity": near("topology.kubernetes.io/zone")}}),
        ),
        pod("checkout-dd", None, &json!({"affinity": {"podAffinity": near("kubernetes.io/hostname")}})),
        pod(
            "checkout-eee",
            None,
            &json!({"nodeSelector": {"team": "gold"}, "tolerations": [
            {"key": "dedicated", "operator": "Equal", "value": "nightly", "effect": "NoSchedule"}]}),
        ),
        pod("checkout-ffff", None, &json!({"nodeSelector": {"team": "nobody"}})),
        pod("checkout-ggggg", None, &json!({"volumes": [{"name": "claim-of", "ephemeral": {}}]})),
        pod(
            "checkout-hhhhhh",
            None,
            &json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["rack-2", "rack-3"]}]}]}}}}),
        ),
        pod(
            "checkout-iiiiiii",
            None,
            &json!({"containers": [{"name": "payments", "resources": {"requests": {"cpu": "64"}}}]}),
        ),
        pod(
            "checkout-jjjjjjjj",
            None,
            &json!({"volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "gold"}}]}),
        ),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "checkout-ggggg-claim-of",
            "namespace": "shop", "uid": "claim", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "checkout-ggggg", "uid": "uid of 14", "controller": true}],
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "gold-1", "storageClassName": "gold", "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Bound"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "gold-1"}, "spec": {
            "storageClassName": "gold", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "shop", "name": "checkout-ggggg-claim-of", "uid": "claim"},
            "csi": {"driver": "csi.example.com", "volumeHandle": "gold-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}]}]}}}}),
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

fn masked(format: &str) -> String {
    let output = supercargo(&["dump", "-f", "-", "--mask", "-o", format], &cluster());
    check(&output, 0, &[]);
    String::from_utf8(output.stdout).expect("is text")
}

fn explained(text: &str) -> Value {
    let output = supercargo(&["explain", "-f", "-", "-o", "json"], text);
    check(&output, 0, &[]);
    serde_json::from_slice(&output.stdout).expect("is JSON")
}

/// Checks that two values are the same but for names, and that each name always stands for the same other one.
fn check_alike(plain: &Value, masked: &Value, names: &mut BTreeMap<String, String>) {
    match (plain, masked) {
        (Value::Array(plain), Value::Array(masked)) => {
            assert_eq!(plain.len(), masked.len(), "{plain:?}\n{masked:?}");
            plain.iter().zip(masked).for_each(|(plain, masked)| check_alike(plain, masked, names));
        }
        (Value::Object(plain), Value::Object(masked)) => {
            assert_eq!(plain.keys().collect::<Vec<_>>(), masked.keys().collect::<Vec<_>>());
            plain.values().zip(masked.values()).for_each(|(plain, masked)| check_alike(plain, masked, names));
        }
        (Value::String(plain), Value::String(masked)) => {
            let words = |text: &str| -> Vec<String> {
                let is_border = |c: char| !c.is_alphanumeric() && !"-.".contains(c);
                text.split(is_border).map(str::to_owned).collect()
            };
            let (plain_words, masked_words) = (words(plain), words(masked));
            assert_eq!(plain_words.len(), masked_words.len(), "{plain}\n{masked}");
            for (plain, masked) in plain_words.into_iter().zip(masked_words) {
                let known = names.entry(plain.clone()).or_insert_with(|| masked.clone());
                assert_eq!(*known, masked, "{plain} is not always the same");
            }
        }
        (plain, masked) => assert_eq!(plain, masked),
    }
}

#[test]
fn a_masked_dump_says_the_same_but_for_names() {
    let plain = explained(&cluster());
    assert!(plain.as_array().is_some_and(|pods| pods.len() >= 9), "{plain}");
    for format in ["yaml", "json"] {
        let mut names = BTreeMap::new();
        check_alike(&plain, &explained(&masked(format)), &mut names);
        let renamed: Vec<_> = names.iter().filter(|(plain, masked)| plain != masked).collect();
        assert!(renamed.len() >= 10, "{renamed:?}");
        let different: std::collections::BTreeSet<_> = names.values().collect();
        assert_eq!(different.len(), names.len(), "two names have become one: {names:?}");
    }
}

#[test]
fn a_masked_dump_says_nothing_else() {
    for format in ["yaml", "json"] {
        let text = masked(format);
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} is in:\n{text}");
        }
        for kept in
            ["zone-a", "amd64", "dedicated", "csi.example.com", "900000000", "topology.kubernetes.io/zone"]
        {
            assert!(text.contains(kept), "{kept} is not in:\n{text}");
        }
    }
}

#[test]
fn an_unmasked_dump_has_everything_but_secrets_and_managed_fields() {
    let output = supercargo(&["dump", "-f", "-"], &cluster());
    check(&output, 0, &["name: rack-10", "hunter2"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("mysecret") && !text.contains("managedFields"), "{text}");
    assert_eq!(explained(&text), explained(&cluster()));
}

#[test]
fn files_and_a_live_cluster_exclude_each_other() {
    let output = supercargo(&["explain", "-f", "-", "shop/web-7"], "");
    check(
        &output,
        2,
        &["error: shop/web-7 is asked for in the live cluster, and -f names files", "--pod shop/web-7"],
    );
    for command in ["explain", "capacity"] {
        let output = supercargo(&[command, "-f", "-", "--kubeconfig", "there"], &cluster());
        check(
            &output,
            2,
            &["error: --kubeconfig there names a live cluster, and -f names files: leave one out"],
        );
    }
    for arguments in [
        &["explain", "a", "--kubeconfig", "/nowhere"][..],
        &["dump", "--kubeconfig", "/nowhere"],
        &["shadow", "--kubeconfig", "/nowhere"],
    ] {
        check(&supercargo(arguments, ""), 1, &["cannot use the kubeconfig /nowhere"]);
    }
}
