use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::kinds::{DeviceClass, ReplicaSet, Service};
use crate::{Cluster, Interner, Kind, KindId};

/// A pod in which every field that is read says something.
const POD: &str = r#"{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {
    "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1", "labels": { "app": "web" }, "annotations": { "note": "x" },
    "creationTimestamp": "2026-01-31T12:00:00Z", "deletionTimestamp": "2026-01-31T13:00:00Z",
    "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true }]
  },
  "spec": {
    "nodeName": "a", "schedulerName": "other", "priority": 3, "preemptionPolicy": "Never", "hostNetwork": true,
    "hostUsers": false, "overhead": { "cpu": "1m" }, "resources": { "requests": { "cpu": "4" }, "limits": { "cpu": "5" } },
    "schedulingGates": [{ "name": "gate" }], "priorityClassName": "high",
    "resourceClaims": [{ "name": "claim", "resourceClaimName": "c" }, { "name": "own", "resourceClaimTemplateName": "t" }],
    "securityContext": { "seccompProfile": { "type": "Localhost", "localhostProfile": "p.json" } },
    "nodeSelector": { "disk": "ssd" },
    "tolerations": [{ "key": "k", "operator": "Exists", "value": "v", "effect": "NoSchedule" }],
    "affinity": {
      "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{
          "matchExpressions": [{ "key": "a", "operator": "In", "values": ["b"] }],
          "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] }] },
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": {
          "matchExpressions": [{ "key": "a", "operator": "Gt", "values": ["1"] }] } }]
      },
      "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "zone", "namespaces": ["shop"],
          "labelSelector": { "matchLabels": { "a": "b" } }, "namespaceSelector": { "matchLabels": { "c": "d" } } }],
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 2, "podAffinityTerm": { "topologyKey": "zone" } }]
      },
      "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "host" }] }
    },
    "topologySpreadConstraints": [{ "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
      "minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["app"],
      "labelSelector": { "matchExpressions": [{ "key": "a", "operator": "NotIn", "values": ["b"] }] } }],
    "initContainers": [{ "name": "side", "image": "i", "restartPolicy": "Always" }],
    "containers": [{ "name": "c", "image": "i:1", "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "2" } },
      "ports": [{ "hostPort": 80, "hostIP": "1.2.3.4", "protocol": "UDP" }],
      "restartPolicyRules": [{ "action": "RestartAllContainers" }] }],
    "volumes": [
      { "name": "v", "persistentVolumeClaim": { "claimName": "c" } }, { "name": "e", "ephemeral": {} },
      { "name": "i", "image": { "reference": "r" } }, { "name": "s", "csi": { "driver": "d" } },
      { "name": "g", "gcePersistentDisk": { "pdName": "p", "readOnly": true } },
      { "name": "w", "awsElasticBlockStore": { "volumeID": "v", "readOnly": true } },
      { "name": "z", "azureDisk": { "kind": "k", "diskURI": "u" } }, { "name": "o", "cinder": { "volumeID": "v" } },
      { "name": "p", "portworxVolume": { "volumeID": "v" } }, { "name": "q", "iscsi": { "iqn": "q", "readOnly": true } },
      { "name": "r", "rbd": { "monitors": ["m"], "pool": "p", "image": "i", "readOnly": true } }
    ]
  },
  "status": {
    "phase": "Running", "nominatedNodeName": "b", "startTime": "2026-01-31T12:00:01Z",
    "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler" }],
    "resources": { "requests": { "cpu": "6" } }, "allocatedResources": { "cpu": "7" },
    "containerStatuses": [{ "name": "c", "resources": { "requests": { "cpu": "3" } }, "allocatedResources": { "cpu": "2" } }],
    "initContainerStatuses": [{ "name": "side", "resources": { "requests": { "cpu": "3" } } }]
  }
}"#;

const NODE: &str = r#"{
  "apiVersion": "v1", "kind": "Node",
  "metadata": { "name": "a", "labels": { "zone": "z" }, "annotations": { "note": "x" } },
  "spec": { "unschedulable": true, "taints": [{ "key": "k", "value": "v", "effect": "NoExecute" }] },
  "status": { "allocatable": { "cpu": "4", "pods": "110" }, "capacity": { "cpu": "5" }, "declaredFeatures": ["f"],
    "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
    "images": [{ "names": ["i"], "sizeBytes": 7 }] }
}"#;

/// Maps, where `null` is not absent but the zero value of what the map holds.
const MAPS: &[(&str, &str)] = &[
    ("labels", ""),
    ("annotations", ""),
    ("nodeSelector", ""),
    ("matchLabels", ""),
    ("requests", "0"),
    ("limits", "0"),
    ("overhead", "0"),
    ("allocatable", "0"),
    ("capacity", "0"),
    ("allocatedResources", "0"),
];

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

fn decoder() -> Decoder {
    let kinds =
        [ReadableKind::of::<Service>(), ReadableKind::of::<ReplicaSet>(), ReadableKind::of::<DeviceClass>()];
    Decoder::new(kinds, false)
}

fn decode(value: &Value) -> Result<Decoded, DecodeError> {
    decoder().decode(&value.to_string())
}

/// All that came out of an object, as text.
fn outcome(value: &Value) -> String {
    match decode(value) {
        Ok(Decoded::Pod(words)) => {
            let words_text = format!("{words:?}");
            format!("{words_text} {:?}", Interner::default().pod(*words))
        }
        other => format!("{other:?}"),
    }
}

/// Every value in an object but its kind, each as the steps that lead to it.
fn paths(value: &Value) -> Vec<Vec<Step>> {
    let mut all = Vec::new();
    let mut pending: Vec<(Vec<Step>, &Value)> = vec![(Vec::new(), value)];
    while let Some((path, value)) = pending.pop() {
        let child = |step: Step| path.iter().cloned().chain([step]).collect::<Vec<_>>();
        match value {
            Value::Object(fields) => {
                pending.extend(fields.iter().map(|(name, value)| (child(Step::Field(name.clone())), value)));
            }
            Value::Array(items) => {
                pending
                    .extend(items.iter().enumerate().map(|(index, value)| (child(Step::Item(index)), value)));
            }
            _ => {}
        }
        all.push(path);
    }
    let says_what_it_is = |path: &Vec<Step>| matches!(&path[..], [Step::Field(name)] if ["apiVersion", "kind"].contains(&name.as_str()));
    all.retain(|path| !path.is_empty() && !says_what_it_is(path));
    all
}

#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Item(usize),
}

fn at<'a>(value: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(value, |value, step| match step {
        Step::Field(name) => &mut value[name],
        Step::Item(index) => &mut value[index],
    })
}

/// As errors write it: `spec.containers[0].name`.
fn written(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.push_str(&format!(".{name}")),
            Step::Item(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// The object with `null` at a path, and the object that must mean the same.
fn with_null(original: &Value, path: &[Step]) -> (Value, Value) {
    let (mut with_null, mut same) = (original.clone(), original.clone());
    *at(&mut with_null, path) = Value::Null;
    let (last, parent) = path.split_last().expect("not the object itself");
    let parent_field = parent.last().and_then(|step| match step {
        Step::Field(name) => MAPS.iter().find(|(map, _)| map == name),
        Step::Item(_) => None,
    });
    match (last, parent_field) {
        (Step::Field(_), Some((_, zero))) => *at(&mut same, path) = json!(zero),
        (Step::Field(name), None) => {
            at(&mut same, parent).as_object_mut().expect("an object").remove(name);
        }
        (Step::Item(_), _) => {
            let item = at(&mut same, path);
            *item = if item.is_string() { json!("") } else { json!({}) };
        }
    }
    (with_null, same)
}

#[test]
fn null_is_the_zero_value_wherever_it_stands() {
    for original in [parsed(POD), parsed(NODE)] {
        for path in paths(&original) {
            let (with_null, same) = with_null(&original, &path);
            assert!(decode(&with_null).is_ok(), "{}: {:?}", written(&path), decode(&with_null));
            assert_eq!(outcome(&with_null), outcome(&same), "{}", written(&path));
        }
    }
}

#[test]
fn every_field_of_the_full_objects_is_read() {
    // Otherwise the tests with them prove nothing.
    for original in [parsed(POD), parsed(NODE)] {
        let whole = outcome(&original);
        for path in paths(&original) {
            let (with_null, _) = with_null(&original, &path);
            assert_ne!(outcome(&with_null), whole, "{} makes no difference", written(&path));
        }
    }
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_object_and_place() {
    for (original, object) in [(parsed(POD), "Pod shop/web"), (parsed(NODE), "Node a")] {
        for path in paths(&original) {
            let mut wrong = original.clone();
            let value = at(&mut wrong, &path);
            *value = match value {
                // Serde would take a list for the fields of a struct, in the order of its fields.
                Value::Object(_) => json!([]),
                Value::Array(_) => json!({}),
                Value::String(_) => json!({}),
                _ => json!("x"),
            };
            let place = written(&path);
            if place.ends_with(".ephemeral") {
                continue; // nothing is read below it
            }
            // What is wrong in the name itself cannot be named.
            let object = match place.as_str() {
                "metadata" | "metadata.name" | "metadata.namespace" => {
                    format!("{} without a name", object.split(' ').next().expect("a kind"))
                }
                _ => object.to_owned(),
            };
            match decode(&wrong) {
                Err(DecodeError::Field { object: found, path, reason }) => {
                    assert!(!reason.contains("struct") && !reason.contains("at line"), "{reason}");
                    assert_eq!((found, path.to_string()), (object, place), "{reason}");
                }
                other => panic!("{place}: {other:?}"),
            }
        }
    }
}

#[test]
fn errors_tell_what_to_do() {
    let pod = |spec: Value| json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "b" }, "spec": spec });
    for (value, starts) in [
        (
            pod(json!({ "containers": [{ "resources": { "requests": { "cpu": "1 core" } } }] })),
            "Pod b/a: spec.containers[0].resources.requests.cpu: ",
        ),
        (
            pod(json!({ "overhead": { "cpu": [] } })),
            "Pod b/a: spec.overhead.cpu: invalid type: sequence, expected a quantity",
        ),
        (
            pod(json!({ "priority": 3_000_000_000_i64 })),
            "Pod b/a: spec.priority: invalid value: integer `3000000000`, expected i32",
        ),
        (
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "creationTimestamp": "now", "name": "a" } }),
            r#"Pod a: metadata.creationTimestamp: "now" is not an RFC 3339 time such as 2026-01-31T12:00:00Z"#,
        ),
        (
            json!({ "apiVersion": "v1", "kind": "Pods", "metadata": { "name": "a" } }),
            r#"object a: kind "Pods" of apiVersion "v1" is unknown; did you mean "Pod"?"#,
        ),
        (json!({ "kind": "Pod" }), r#"object without a name: kind "Pod" of apiVersion "" is unknown"#),
        (json!({}), r#"object without a name: kind "" of apiVersion "" is unknown"#),
        (
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "a", "namespace": "b" },
                "spec": { "selector": { "matchLabels": { "x": 1 } } } }),
            "ReplicaSet b/a: spec.selector.matchLabels.x: invalid type: integer `1`, expected a string",
        ),
        (json!(["v1", "Pod"]), "not a Kubernetes object: invalid type: sequence"),
        (json!("Pod"), r#"not a Kubernetes object: invalid type: string "Pod""#),
        (json!({ "kind": 1 }), "not a Kubernetes object: invalid type: integer `1`, expected a string"),
    ] {
        let error = decode(&value).expect_err("wrong").to_string();
        assert!(error.starts_with(starts), "{error}");
    }
}

#[test]
fn half_a_text_is_no_object() {
    for text in [POD, NODE] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(7) {
            let error = decoder().decode(&text[..end]).expect_err("truncated");
            assert!(matches!(error, DecodeError::Malformed { .. }), "{error}");
        }
        let error = decoder().decode(&format!("{text} x")).expect_err("more than an object");
        assert!(matches!(error, DecodeError::Malformed { .. }), "{error}");
    }
}

#[test]
fn what_the_object_is() {
    let of = |api_version: &str, kind: &str| {
        decode(
            &json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "x", "namespace": "y" } }),
        )
    };
    assert!(matches!(of("v1", "Pod"), Ok(Decoded::Pod(_))));
    assert!(matches!(of("v1", "Node"), Ok(Decoded::Node(_))));
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("apps/v1", "Deployment"),
        ("batch/v1", "Job"),
        ("extensions/v1beta1", "Ingress"),
        ("v1", "RangeAllocation"),
        ("storage.k8s.io/v1", "StorageClass"),
    ] {
        assert!(matches!(of(api_version, kind), Ok(Decoded::Unread { .. })), "{api_version} {kind}");
    }
    for (api_version, kind) in [
        ("v2", "Pod"),
        ("apps/v1", "Pod"),
        ("extensions/v1beta1", "Pod"),
        ("example.com/v1", "Widget"),
        ("karpenter.x-k8s.io/v1", "NodePool"),
    ] {
        assert!(
            matches!(of(api_version, kind), Err(DecodeError::UnknownKind { .. })),
            "{api_version} {kind}"
        );
    }
    let Ok(Decoded::Object(object)) = of("v1", "Service") else { panic!("a service is read") };
    assert_eq!((&*object.key.namespace, &*object.key.name), ("y", "x"));
    assert!(object.get::<Service>().is_some() && object.get::<ReplicaSet>().is_none());
    // The same kind in another version is another kind: not read.
    assert!(matches!(of("apps/v2", "ReplicaSet"), Ok(Decoded::Unread { .. })));
}

/// Whether or not somebody else reads the kind, and of no other kind.
#[test]
fn objects_of_some_kinds_keep_their_text() {
    const DEPLOYMENT: KindId =
        KindId { group: "apps", version: "v1", kind: "Deployment", plural: "deployments" };
    let decoder = Decoder::new([ReadableKind::of::<ReplicaSet>(), ReadableKind::of::<Service>()], false)
        .keeping(&[DEPLOYMENT, ReplicaSet::ID]);
    for (api_version, kind, is_kept) in
        [("apps/v1", "Deployment", true), ("apps/v1", "ReplicaSet", true), ("v1", "Service", false)]
    {
        let json = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"name":"x","namespace":"y"}}}}"#
        );
        let Ok(Decoded::Object(object)) = decoder.decode(&json) else { panic!("{kind} is read") };
        assert_eq!((object.kind.kind, &*object.key.namespace, &*object.key.name), (kind, "y", "x"));
        assert_eq!(object.raw.as_ref().map(|raw| raw.as_json()), is_kept.then_some(&*json));
        assert_eq!(object.get::<ReplicaSet>().is_some(), kind == "ReplicaSet");
    }
    assert!(matches!(
        decoder.decode(r#"{"apiVersion":"apps/v1","kind":"DaemonSet"}"#),
        Ok(Decoded::Unread { .. })
    ));
}

#[test]
fn the_text_is_kept_if_asked_for() {
    for keep in [true, false] {
        let Ok(Decoded::Pod(pod)) = Decoder::new([], keep).decode(POD) else { panic!("a pod") };
        let Ok(Decoded::Node(node)) = Decoder::new([], keep).decode(NODE) else { panic!("a node") };
        assert_eq!(pod.raw.as_ref().map(|raw| raw.as_json()), keep.then_some(POD));
        assert_eq!(node.raw.as_ref().map(|raw| raw.as_json()), keep.then_some(NODE));
    }
}

#[test]
fn a_node_without_allocatable_has_nothing() {
    let Ok(Decoded::Node(words)) =
        decode(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a" } }))
    else {
        panic!("a node")
    };
    let mut cluster = Cluster::default();
    let row = cluster.put_node(&words);
    let node = cluster.snapshot().node(row);
    assert!(node.allocatable().is_nothing());
    assert_eq!(node.allowed_pods(), 0);
}

#[test]
fn an_object_without_metadata_has_no_name() {
    let Ok(Decoded::Pod(words)) = decode(&json!({ "apiVersion": "v1", "kind": "Pod" })) else {
        panic!("a pod")
    };
    let pod = Interner::default().pod(*words);
    assert_eq!((&*pod.name, &*pod.namespace, &*pod.uid), ("", "", ""));
}

#[test]
fn pods_that_are_finished_say_so() {
    for (phase, finished) in [
        ("Succeeded", true),
        ("Failed", true),
        ("Running", false),
        ("Pending", false),
        ("Unknown", false),
        ("", false),
    ] {
        let status = json!({ "phase": phase });
        let Ok(Decoded::Pod(words)) = decode(&json!({ "apiVersion": "v1", "kind": "Pod", "status": status }))
        else {
            panic!("a pod")
        };
        assert_eq!(words.is_finished(), finished, "{phase}");
    }
}

/// Any JSON, in which the names of fields are often right.
fn any_json() -> impl Strategy<Value = Value> {
    let mut names: Vec<String> = Vec::new();
    for original in [parsed(POD), parsed(NODE)] {
        for path in paths(&original) {
            if let Some(Step::Field(name)) = path.last() {
                names.push(name.clone());
            }
        }
    }
    names.extend(["apiVersion", "kind", "extendedResourceName"].map(str::to_owned));
    names.sort();
    names.dedup();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "v1",
            "Pod",
            "1Gi",
            "-0.1m",
            "1e99",
            "2026-01-31T12:00:00Z",
            "Always",
            "In"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        let name = prop::sample::select(names.clone());
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(name, inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Decodes and does what follows; only that nothing panics is tested.
fn swallow(value: &Value) {
    match decode(value) {
        Ok(Decoded::Pod(words)) => {
            let mut cluster = Cluster::default();
            let pod = cluster.interner().pod(*words);
            let _ = cluster.add_pod(Arc::new(pod));
        }
        Ok(Decoded::Node(words)) => {
            let mut cluster = Cluster::default();
            cluster.put_node(&words);
            assert_eq!(cluster.snapshot().node_count(), 1);
        }
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(crate::seeded())]

    #[test]
    fn no_json_makes_it_panic(
        value in any_json(),
        kind in prop::sample::select(vec![("v1", "Pod"), ("v1", "Node"), ("v1", "Service"), ("apps/v1", "ReplicaSet")]),
    ) {
        swallow(&value);
        if let Value::Object(mut fields) = value {
            fields.insert("apiVersion".to_owned(), kind.0.into());
            fields.insert("kind".to_owned(), kind.1.into());
            swallow(&Value::Object(fields));
        }
    }

    #[test]
    fn no_value_anywhere_in_an_object_makes_it_panic(
        is_pod in any::<bool>(),
        place in any::<prop::sample::Index>(),
        value in any_json(),
    ) {
        let mut object = parsed(if is_pod { POD } else { NODE });
        let paths = paths(&object);
        *at(&mut object, &paths[place.index(paths.len())]) = value;
        swallow(&object);
    }

    /// The path to what is wrong is that which a reader says that keeps it while it reads.
    #[test]
    fn the_path_is_that_of_a_reader_that_keeps_it(
        is_pod in any::<bool>(),
        is_pretty in any::<bool>(),
        place in any::<prop::sample::Index>(),
        value in any_json(),
    ) {
        let mut object = parsed(if is_pod { POD } else { NODE });
        let paths = paths(&object);
        *at(&mut object, &paths[place.index(paths.len())]) = value;
        let json = if is_pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
        let json = json.expect("a value can be written");
        let (ours, theirs) = if is_pod {
            (read::<PodWords>(&json, "Pod").err(), kept_path::<PodWords>(&json))
        } else {
            (read::<NodeWords>(&json, "Node").err(), kept_path::<NodeWords>(&json))
        };
        let ours = ours.map(|error| match error {
            DecodeError::Field { path, .. } => path.to_string(),
            other => panic!("{other:?}"),
        });
        prop_assert_eq!(ours, theirs, "{}", json);
    }
}

/// The path of an error, by a reader that is slower and takes long to compile.
fn kept_path<T: serde::de::DeserializeOwned>(json: &str) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let read: Result<T, _> = serde_path_to_error::deserialize(crate::wire::ByGoRules(&mut deserializer));
    read.err().map(|error| error.path().to_string())
}

#[test]
fn a_kind_that_is_misspelt_is_recognised() {
    for (api_version, kind, expected) in [
        ("v1", "pod", "did you mean \"Pod\"?"),
        ("v1", "Pods", "did you mean \"Pod\"?"),
        ("v1", "nodes", "did you mean \"Node\"?"),
        ("v1", "Nod", "did you mean \"Node\"?"),
        ("v1", "ReplicaSet", "did you mean apiVersion \"apps/v1\"?"),
        ("v2", "Pod", "did you mean apiVersion \"v1\"?"),
        ("v1", "Widget", "remove the object, correct its kind, or enable a plugin that reads it"),
        ("", "", "remove the object"),
    ] {
        let error = decode(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}));
        let error = error.expect_err("no such kind").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn less_than_nothing_is_found_wherever_it_is_asked_for() {
    let negative = json!({"requests": {"cpu": "1", "memory": "-1Gi"}});
    for (spec, expected) in [
        (
            json!({"containers": [{}, {"resources": negative}]}),
            Some("spec.containers[1].resources.requests.memory"),
        ),
        (
            json!({"containers": [{"resources": {"limits": {"cpu": -1}}}]}),
            Some("spec.containers[0].resources.limits.cpu"),
        ),
        (
            json!({"initContainers": [{"resources": negative}]}),
            Some("spec.initContainers[0].resources.requests.memory"),
        ),
        (json!({"resources": negative}), Some("spec.resources.requests.memory")),
        (json!({"overhead": {"cpu": "-1n"}}), Some("spec.overhead.cpu")),
        (json!({"containers": [{"resources": {"requests": {"cpu": "0"}}}], "overhead": {"cpu": "1"}}), None),
    ] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        let Ok(Decoded::Pod(words)) = decode(&pod) else { panic!("{pod} is a pod") };
        assert_eq!(words.negative_amount().map(|path| path.to_string()).as_deref(), expected, "{pod}");
    }
}
