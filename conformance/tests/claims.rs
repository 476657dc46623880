//! Pods with claims of every kind, while what their claims lead to changes: which of them the index decides, and that it decides
//! as the plain way does.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_engine::{Engine, EngineOptions, Indexing, Rules, Seed};
use supercargo_framework::{Fixes, Needs, Plugin, Point, Profile};
use supercargo_model::{Decoded, Decoder, KindId, ObjectKey, Pod, Timestamp};
use supercargo_plugins::kubernetes::{NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone};
use supercargo_testkit::{node, pod, trial};

const NOW: Timestamp = Timestamp::from_nanoseconds(0);
const ZONE: &str = "topology.kubernetes.io/zone";
const DRIVER: &str = "csi.example.com";
const OTHER_DRIVER: &str = "other.example.com";

/// Something that happens.
type Step = fn(&mut Court);

/// A cluster with pods that wait, and what is compared after each change.
struct Court {
    engine: Engine,
    decoder: Decoder,
    waiting: Vec<Arc<Pod>>,
    /// What the index decided otherwise.
    differences: Vec<String>,
}

impl Court {
    fn new() -> Self {
        let mut profile = trial::<VolumeBinding>().profile;
        add::<VolumeRestrictions>(&mut profile);
        add::<VolumeZone>(&mut profile);
        add::<NodeVolumeLimits>(&mut profile);
        let decoder = Needs::of([&profile]).decoder();
        let options = EngineOptions {
            rules: Rules::LIVE,
            seed: Seed(1),
            fixes: Fixes::default(),
            indexing: Indexing::On,
        };
        let engine = Engine::new(vec![profile], options);
        let mut court = Court { engine, decoder, waiting: Vec::new(), differences: Vec::new() };
        for (name, zone) in [("a", "x"), ("b", "y"), ("c", "y")] {
            court.put(node(name).label(ZONE, zone));
            court.put(csi_node(name, 2));
        }
        court.put(class("made", DRIVER, &json!([])));
        court.put(class("made-in-x", DRIVER, &json!([zone_term("x")])));
        court.put(class("static", "kubernetes.io/no-provisioner", &json!([])));
        court.put(class("counted", OTHER_DRIVER, &json!([])));
        court.put(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": { "name": OTHER_DRIVER },
            "spec": { "storageCapacity": true },
        }));
        court
    }

    fn put(&mut self, object: impl Into<Value>) {
        let object: Value = object.into();
        let decoded = self.decoder.decode(&object.to_string()).expect("an object");
        assert!(!matches!(decoded, Decoded::Unread { .. }), "nobody reads {object}");
        if let Decoded::Pod(words) = decoded {
            let pod = Arc::new(self.engine.cluster.interner().pod(*words));
            self.engine.cluster.add_any_pod(&pod).expect("it can be added");
        } else {
            self.engine.cluster.add(decoded).expect("it can be added");
        }
    }

    fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        let kind = self.kind(kind);
        let key = ObjectKey { namespace: namespace.into(), name: name.into() };
        assert!(self.engine.cluster.remove_object(kind, &key), "it was there");
    }

    fn kind(&self, kind: &str) -> KindId {
        let reads = self.engine.profiles()[0].plugins().iter().flat_map(|plugin| &plugin.reads.kinds);
        reads.map(|read| read.id).find(|id| id.kind == kind).expect("somebody reads it")
    }

    fn wait(&mut self, name: &str, volumes: &Value) {
        let Ok(Decoded::Pod(words)) = self.decoder.decode(&Value::from(user(name, volumes)).to_string())
        else {
            panic!("a pod")
        };
        let pod = Arc::new(self.engine.cluster.interner().pod(*words));
        self.waiting.push(pod);
    }

    /// Compares all decisions, and says for which pods the index made them.
    fn compare(&mut self, after: &str) -> Vec<String> {
        let mut by_index = Vec::new();
        for pod in self.waiting.clone() {
            let before = self.engine.index_statistics().answered;
            let difference = self.engine.check_index(&pod, NOW).expect("a profile");
            if let Some(difference) = difference {
                self.differences.push(format!("after {after}, for {}: {difference}", pod.name));
            }
            if self.engine.index_statistics().answered > before {
                by_index.push(pod.name.to_string());
            }
        }
        by_index
    }
}

fn add<P: Plugin>(profile: &mut Profile) {
    let instance = trial::<P>().profile.plugins()[0].clone();
    for point in [Point::PreFilter, Point::Filter] {
        assert!(profile.add(&instance, point, 1));
    }
}

fn user(name: &str, volumes: &Value) -> supercargo_testkit::PodBuilder {
    pod(name).uid(name).with(json!({ "spec": { "volumes": volumes } }))
}

fn claimed(name: &str) -> Value {
    json!([{ "name": "v", "persistentVolumeClaim": { "claimName": name } }])
}

fn csi_node(name: &str, count: i32) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": { "name": name },
        "spec": { "drivers": [{ "name": DRIVER, "nodeID": name, "allocatable": { "count": count } }] },
    })
}

fn zone_term(zone: &str) -> Value {
    json!({ "matchLabelExpressions": [{ "key": ZONE, "values": [zone] }] })
}

fn class(name: &str, provisioner: &str, topologies: &Value) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name },
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies,
    })
}

/// A claim of a class; bound if a volume is named.
fn claim(name: &str, class: &str, volume: &str, mode: &str) -> Value {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": name, "namespace": "default", "uid": name },
        "spec": {
            "accessModes": [mode], "storageClassName": class, "volumeName": volume,
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    if !volume.is_empty() {
        claim["metadata"]["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
    }
    claim
}

/// A volume of a driver; without a zone it is reached from everywhere.
fn volume(name: &str, driver: &str, handle: &str, zone: Option<&str>) -> Value {
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "bound",
            "csi": { "driver": driver, "volumeHandle": handle },
        },
        "status": { "phase": "Bound" },
    });
    if let Some(zone) = zone {
        let term = json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
        volume["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [term] } });
    }
    volume
}

fn attachment(name: &str, node: &str, volume: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": name },
        "spec": { "attacher": DRIVER, "nodeName": node, "source": { "persistentVolumeName": volume } },
    })
}

/// A scene with pods of all kinds, and everything that can change about it, one after the other.
fn hold_court() -> Court {
    const ONCE: &str = "ReadWriteOnce";
    let mut court = Court::new();
    for (number, zone) in [(0, Some("x")), (1, Some("y")), (2, None), (3, None), (4, None)] {
        let (name, volume_name) = (format!("data-{number}"), format!("v{number}"));
        court.put(volume(&volume_name, DRIVER, &volume_name, zone));
        court.put(claim(&name, "bound", &volume_name, ONCE));
    }
    for (name, class, mode) in [
        ("waits", "made", ONCE),
        ("waits-too", "made", ONCE),
        ("waits-in-x", "made-in-x", ONCE),
        ("alone", "made", "ReadWriteOncePod"),
        ("alone-in-use", "made", "ReadWriteOncePod"),
        ("of-static", "static", ONCE),
        ("of-counted", "counted", ONCE),
    ] {
        court.put(claim(name, class, "", mode));
    }
    let mut own = claim("ephemeral-own", "made", "", ONCE);
    own["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "ephemeral", "uid": "ephemeral", "controller": true }]);
    court.put(own);
    let mut local = volume("local", DRIVER, "local", None);
    local["spec"]["storageClassName"] = json!("static");
    local["status"]["phase"] = json!("Available");
    court.put(local);
    court.put(user("on-b", &claimed("data-3")).on("b"));
    court.put(user("on-c", &claimed("data-4")).on("c"));
    court.put(user("alone-on-a", &claimed("alone-in-use")).on("a"));
    for name in ["data-0", "data-1", "data-2", "data-3", "waits", "waits-too", "waits-in-x", "alone"] {
        court.wait(name, &claimed(name));
    }
    court.wait("ephemeral", &json!([{ "name": "own", "ephemeral": {} }]));
    for name in ["alone-in-use", "of-static", "of-counted", "not-there"] {
        court.wait(name, &claimed(name));
    }

    let fast =
        ["data-0", "data-1", "data-2", "data-3", "waits", "waits-too", "waits-in-x", "alone", "ephemeral"];
    assert_eq!(court.compare("the beginning"), fast);
    // Nothing is left but to see that what is kept is still true.
    let steps: [(&str, Step); 16] = [
        ("a lower limit", |court| court.put(csi_node("b", 1))),
        ("no limit", |court| court.remove("CSINode", "", "a")),
        ("a limit again", |court| court.put(csi_node("a", 1))),
        ("an attachment", |court| court.put(attachment("one", "c", "v2"))),
        ("an attachment that moved", |court| court.put(attachment("one", "b", "v2"))),
        ("another driver of a volume in use", |court| court.put(volume("v3", OTHER_DRIVER, "v3", None))),
        ("another driver of a volume that lingers", |court| court.put(volume("v2", DRIVER, "v9", None))),
        ("a volume with the handle of another", |court| court.put(volume("v2", DRIVER, "v4", None))),
        ("an attachment that went", |court| court.remove("VolumeAttachment", "", "one")),
        ("a claim in use that is bound elsewhere", |court| {
            court.put(claim("data-4", "bound", "v3", "ReadWriteOnce"));
        }),
        ("a claim in use that went", |court| court.remove("PersistentVolumeClaim", "default", "data-3")),
        ("other topologies", |court| court.put(class("made-in-x", DRIVER, &json!([zone_term("y")])))),
        ("another provisioner", |court| court.put(class("made", "third.example.com", &json!([])))),
        ("a volume of another zone", |court| court.put(volume("v0", DRIVER, "v0", Some("y")))),
        ("a pod that went", |court| assert!(court.engine.cluster.remove_pod("on-c").is_some())),
        ("a nominated pod with a claim of another", |court| {
            court.put(user("soon", &claimed("waits")).priority(9).nominated("b"));
        }),
    ];
    for (after, step) in steps {
        step(&mut court);
        let by_index = court.compare(after);
        assert!(by_index.len() >= 7, "after {after}, only {by_index:?}");
    }
    court
}

#[test]
fn pods_with_claims_are_decided_by_what_the_claims_come_to() {
    let court = hold_court();
    assert_eq!(court.differences, [""; 0]);
    // Pods that come to the same share their answers: there are fewer classes than pods that are decided for.
    let statistics = court.engine.index_statistics();
    assert!(statistics.classes_made * 2 < statistics.answered, "{statistics:?}");
}

/// Each of these would be noticed.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_about_claims_are_found() {
    use supercargo_engine::planted::{Bug, plant};
    for bug in [Bug::TouchedRowsStay, Bug::PlansOfOthers] {
        plant(Some(bug));
        let court = hold_court();
        plant(None);
        assert!(!court.differences.is_empty(), "{bug:?}");
    }
}
