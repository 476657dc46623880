//! What the pods look like that are made, and what comes with them.

use supercargo_model::kinds::PersistentVolume;

use super::*;

/// What constraints and plugins can see of a pod that does not exist yet.
#[test]
fn pods_have_the_labels_and_the_owner_that_their_controller_gives_them() {
    let current = with(
        owned(workload("rs", "w-7", json!({ "replicas": 1 })), "deploy", "w"),
        "spec.template.metadata.labels",
        json!({ "app": "w", "pod-template-hash": "7" }),
    );
    let revision = json!({ "updateRevision": "db-8f" });
    let table = vec![
        (
            vec![workload("deploy", "w", json!({}))],
            "ReplicaSet/w-new",
            json!({ "app": "w", "pod-template-hash": "new" }),
        ),
        (
            vec![workload("deploy", "w", json!({ "replicas": 2 })), current],
            "ReplicaSet/w-7",
            json!({ "app": "w", "pod-template-hash": "7" }),
        ),
        (vec![workload("rc", "w", json!({}))], "ReplicationController/w", json!({ "app": "w" })),
        (
            vec![with(workload("sts", "db", json!({})), "status", revision)],
            "StatefulSet/db",
            json!({
                "app": "db", "controller-revision-hash": "db-8f", "statefulset.kubernetes.io/pod-name": "db-0",
                "apps.kubernetes.io/pod-index": "0",
            }),
        ),
        (
            vec![workload("job", "j", json!({ "completions": 1, "completionMode": "Indexed" }))],
            "Job/j",
            json!({
                "app": "j", "controller-uid": "j-uid", "batch.kubernetes.io/controller-uid": "j-uid", "job-name": "j",
                "batch.kubernetes.io/job-name": "j", "batch.kubernetes.io/job-completion-index": "0",
            }),
        ),
        (
            vec![workload("cj", "n", json!({}))],
            "Job/n-new",
            json!({ "app": "n", "job-name": "n-new", "batch.kubernetes.io/job-name": "n-new" }),
        ),
        (
            vec![workload("ds", "d", json!({})), node("n1", &json!({}), &json!({}))],
            "DaemonSet/d",
            json!({ "app": "d", "controller-revision-hash": "new" }),
        ),
    ];
    for (objects, owner, labels) in table {
        let made = expand_one(&objects);
        let metadata = &made.pods[0]["metadata"];
        assert_eq!(metadata["labels"], labels, "{owner}");
        let found = &metadata["ownerReferences"][0];
        assert_eq!(found["controller"], true, "{owner}");
        let found = [&found["kind"], &found["name"]].map(|word| word.as_str().unwrap_or_default());
        assert_eq!(found.join("/"), owner);
    }
}

/// Spreading by default looks at the ReplicaSet, so there is one.
#[test]
fn a_new_replica_set_selects_its_pods() {
    let deployment = workload("deploy", "w", json!({ "selector": { "matchLabels": { "app": "w" } } }));
    let made = expand_one(&[deployment]);
    let [(kind, set)] = &*made.objects else { panic!("{:?}", made.objects) };
    assert_eq!((kind.kind, &set["metadata"]["name"]), ("ReplicaSet", &json!("w-new")));
    assert_eq!(set["spec"]["selector"]["matchLabels"], json!({ "app": "w", "pod-template-hash": "new" }));
}

#[test]
fn a_daemon_goes_to_every_node_that_it_is_meant_for() {
    let taint = |effect: &str| json!({ "taints": [{ "key": "k", "effect": effect }] });
    let cordon = json!({ "taints": [{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }] });
    let nodes = [
        node("plain", &json!({}), &json!({ "disk": "ssd" })),
        node("tainted", &taint("NoSchedule"), &json!({})),
        node("hostile", &taint("NoExecute"), &json!({})),
        node("disliked", &taint("PreferNoSchedule"), &json!({})),
        node("cordoned", &cordon, &json!({})),
    ];
    let template =
        |spec: Value| json!({ "template": { "spec": with(spec, "containers", json!([{ "name": "c" }])) } });
    let affinity = json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "disk", "operator": "Exists" }] }],
    } } } });
    for (spec, expected) in [
        (json!({}), "cordoned disliked plain"),
        (json!({ "nodeSelector": { "disk": "ssd" } }), "plain"),
        (affinity, "plain"),
        (json!({ "nodeName": "disliked" }), "disliked"),
        (json!({ "tolerations": [{ "operator": "Exists" }] }), "cordoned disliked hostile plain tainted"),
    ] {
        let mut objects = nodes.to_vec();
        objects.push(workload("ds", "d", template(spec.clone())));
        let made = expand_one(&objects);
        let mut names = names(&made);
        names.sort_unstable();
        let expected: Vec<String> = expected.split(' ').map(|node| format!("d-new-{node}")).collect();
        assert_eq!(names, expected, "{spec}");
    }
    let mut objects = nodes.to_vec();
    objects.push(workload("ds", "d", template(json!({ "nodeSelector": { "disk": "ssd" } }))));
    let made = expand_one(&objects);
    let required =
        &made.pods[0]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let field = json!({ "key": "metadata.name", "operator": "In", "values": ["plain"] });
    assert_eq!(*required, json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] }));
    assert_eq!(made.pods[0]["spec"]["nodeSelector"], json!({ "disk": "ssd" }));
    objects.push(with(pod("a", "ds", "d"), "spec.nodeName", json!("plain")));
    assert_eq!(expand_one(&objects).summary.creates, 0, "it runs there");
    objects.pop();
    objects.push(with(pod("b", "ds", "d"), "spec.affinity", made.pods[0]["spec"]["affinity"].clone()));
    let made = expand_one(&objects);
    assert_eq!((made.summary.creates, made.waiting.len()), (0, 1), "it is for that node, and waits");
}

/// What the API server does to a pod that is created.
#[test]
fn pods_are_completed_as_the_api_server_completes_them() {
    let priority = |name: &str, value: i64, default: bool| {
        json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name },
            "value": value, "globalDefault": default, "preemptionPolicy": "Never" })
    };
    let runtime = json!({ "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": { "name": "vm" },
        "overhead": { "podFixed": { "cpu": "250m" } },
        "scheduling": { "nodeSelector": { "vm": "yes" }, "tolerations": [{ "key": "vm", "operator": "Exists" }] } });
    let range = |namespace: &str| {
        json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "l", "namespace": namespace },
            "spec": { "limits": [{ "type": "Container", "default": { "cpu": "2" }, "defaultRequest": { "cpu": "1" }, "min": { "memory": "1Mi" } }] } })
    };
    let term = |selector: Value| json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [selector] } });
    let keys = json!({ "topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app", "absent"] });
    let merged = json!([{ "key": "app", "operator": "In", "values": ["w"] }]);
    let at = |path: &'static str| format!("/spec/{path}");
    let anti = "affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchExpressions";
    let table: Vec<(Vec<Value>, Value, String, Value)> = vec![
        (vec![], json!({}), at("priority"), Value::Null),
        (vec![priority("low", -5, true)], json!({}), at("priority"), json!(-5)),
        (
            vec![priority("low", -5, true), priority("high", 9, false)],
            json!({ "priorityClassName": "high" }),
            at("priority"),
            json!(9),
        ),
        (
            vec![priority("high", 9, false)],
            json!({ "priorityClassName": "high" }),
            at("preemptionPolicy"),
            json!("Never"),
        ),
        (vec![priority("high", 9, false)], json!({}), at("priority"), Value::Null),
        (
            vec![],
            json!({ "priorityClassName": "system-node-critical" }),
            at("priority"),
            json!(2_000_001_000),
        ),
        (vec![runtime.clone()], json!({ "runtimeClassName": "vm" }), at("overhead/cpu"), json!("250m")),
        (vec![runtime.clone()], json!({ "runtimeClassName": "vm" }), at("nodeSelector/vm"), json!("yes")),
        (vec![runtime.clone()], json!({ "runtimeClassName": "vm" }), at("tolerations/0/key"), json!("vm")),
        (vec![runtime], json!({}), at("overhead"), Value::Null),
        (vec![range("shop")], json!({}), at("containers/0/resources/requests/cpu"), json!("1")),
        (vec![range("shop")], json!({}), at("containers/0/resources/limits/cpu"), json!("2")),
        (vec![range("shop")], json!({}), at("containers/0/resources/requests/memory"), json!("1Mi")),
        (vec![range("")], json!({}), at("containers/0/resources/requests/cpu"), json!("1")),
        (vec![range("other")], json!({}), at("containers/0/resources"), Value::Null),
        (
            vec![range("shop")],
            json!({ "containers": [{ "resources": { "limits": { "cpu": "3" } } }] }),
            at("containers/0/resources/requests/cpu"),
            json!("3"),
        ),
        (
            vec![],
            json!({ "initContainers": [{ "resources": { "limits": { "cpu": "3" }, "requests": { "cpu": "1" } } }] }),
            at("initContainers/0/resources/requests/cpu"),
            json!("1"),
        ),
        (
            vec![],
            json!({ "resources": { "limits": { "cpu": "3" } } }),
            at("resources/requests/cpu"),
            json!("3"),
        ),
        (
            vec![],
            json!({ "hostNetwork": true, "containers": [{ "ports": [{ "containerPort": 80 }] }] }),
            at("containers/0/ports/0/hostPort"),
            json!(80),
        ),
        (
            vec![],
            json!({ "containers": [{ "ports": [{ "containerPort": 80 }] }] }),
            at("containers/0/ports/0/hostPort"),
            Value::Null,
        ),
        (vec![], json!({}), at("tolerations/0/key"), json!("node.kubernetes.io/not-ready")),
        (vec![], json!({ "tolerations": [{ "operator": "Exists" }] }), at("tolerations/1"), Value::Null),
        (vec![], json!({ "affinity": term(keys.clone()) }), at(anti), merged),
        (
            vec![],
            json!({ "affinity": term(with(keys, "labelSelector", Value::Null)) }),
            at(anti),
            Value::Null,
        ),
    ];
    for (objects, spec, path, expected) in table {
        let what = format!("{spec} {path}");
        let spec = if spec["containers"].is_null() {
            with(spec, "containers", json!([{ "name": "c" }]))
        } else {
            spec
        };
        let template = json!({ "template": { "metadata": { "labels": { "app": "w" } }, "spec": spec } });
        let mut objects = objects;
        objects.push(workload("rs", "w", template));
        let made = expand_one(&objects);
        assert_eq!(made.pods[0].pointer(&path).cloned().unwrap_or_default(), expected, "{what}");
        assert_eq!(made.summary.assumptions, [""; 0], "{what}");
    }
}

#[test]
fn classes_that_are_not_known_are_named() {
    for (spec, expected) in [
        (json!({ "priorityClassName": "gold" }), "priority class gold is not known here"),
        (json!({ "runtimeClassName": "vm" }), "runtime class vm is not known here"),
    ] {
        let template = json!({ "template": { "spec": with(spec, "containers", json!([{ "name": "c" }])) } });
        let text = expand_one(&[workload("deploy", "w", template)]).summary.text();
        assert!(text.contains(expected), "{text}");
    }
}

/// Claims of templates are there once the pod is, bound or not as their class has it.
#[test]
fn claims_come_with_their_pods() {
    let class = |mode: &str, provisioner: &str, default: &str| {
        json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": provisioner,
            "metadata": { "name": "fast", "annotations": { "storageclass.kubernetes.io/is-default-class": default } },
            "volumeBindingMode": mode,
            "allowedTopologies": [{ "matchLabelExpressions": [{ "key": "zone", "values": ["a"] }] }] })
    };
    let set = |class: Value| {
        let claim = json!({ "metadata": { "name": "data" }, "spec": { "storageClassName": class, "accessModes": ["ReadWriteOnce"] } });
        workload("sts", "db", json!({ "volumeClaimTemplates": [claim] }))
    };
    let there = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data-db-0", "namespace": "shop" } });
    let waits = || class("WaitForFirstConsumer", "csi.example.com", "true");
    for (what, objects, claims, is_bound, class_name) in [
        ("waits", vec![waits(), set(json!("fast"))], 1, false, json!("fast")),
        ("waits, by default", vec![waits(), set(Value::Null)], 1, false, json!("fast")),
        (
            "at once",
            vec![class("Immediate", "csi.example.com", ""), set(json!("fast"))],
            1,
            true,
            json!("fast"),
        ),
        (
            "by hand",
            vec![class("Immediate", "kubernetes.io/no-provisioner", ""), set(json!("fast"))],
            1,
            false,
            json!("fast"),
        ),
        (
            "no class",
            vec![class("Immediate", "csi.example.com", ""), set(Value::Null)],
            1,
            false,
            Value::Null,
        ),
        ("a class that is not there", vec![set(json!("fast"))], 1, false, json!("fast")),
        ("there already", vec![waits(), set(json!("fast")), there], 0, false, Value::Null),
    ] {
        let made = expand_one(&objects);
        let volume = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data-db-0" } }]);
        assert_eq!(made.pods[0]["spec"]["volumes"], volume, "{what}");
        let of = |id: KindId| {
            made.objects.iter().filter(|(kind, _)| *kind == id).map(|(_, object)| object).collect::<Vec<_>>()
        };
        let found = of(PersistentVolumeClaim::ID);
        assert_eq!(found.len(), claims, "{what}");
        let Some(claim) = found.first() else { continue };
        assert_eq!(claim["metadata"]["name"], "data-db-0", "{what}");
        assert_eq!(claim["spec"]["storageClassName"], class_name, "{what}");
        assert_eq!(claim["spec"]["volumeName"].is_string(), is_bound, "{what}");
        let volumes = of(PersistentVolume::ID);
        assert_eq!(volumes.len(), usize::from(is_bound), "{what}");
        if let Some(volume) = volumes.first() {
            assert_eq!(volume["spec"]["csi"]["driver"], "csi.example.com");
            let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            assert_eq!(terms[0]["matchExpressions"][0]["values"], json!(["a"]));
        }
    }
}

/// The ephemeral claim has to be the pod's own, or the plugins do not take it.
#[test]
fn ephemeral_claims_belong_to_their_pod() {
    let volume = json!({ "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": { "storageClassName": "fast" } } } });
    let spec = json!({ "containers": [{ "name": "c" }], "volumes": [volume] });
    let made = expand_one(&[workload("rs", "w", json!({ "template": { "spec": spec } }))]);
    let [(_, claim)] = &*made.objects else { panic!("{:?}", made.objects) };
    assert_eq!(claim["metadata"]["name"], "w-new-1-scratch");
    assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], made.pods[0]["metadata"]["uid"]);
}
