//! The pods that are to be placed: each is a plain pod with a few features out of many, and with few values to a field,
//! so that pods get in each other's way.

use serde_json::{Value, json};
use supercargo_conformance::samples::AVOIDS;

use crate::chance::Chance;
use crate::profiles::SCHEDULERS;

pub(crate) const HOST: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const RACK: &str = "example.com/rack";
pub(crate) const APPS: [&str; 3] = ["web", "db", "cache"];
pub(crate) const NAMESPACES: [&str; 4] = ["default", "team-a", "team-b", "lost"];
pub(crate) const CLAIMS: [&str; 4] = ["data", "logs", "shared", "alone"];
/// Claims that few pods have, so that most of them are not in use.
pub(crate) const OWN_CLAIMS: [&str; 12] =
    ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "alone-0", "alone-1"];
/// Kinds of controllers; most are of the first.
pub(crate) const CONTROLLERS: [(&str, &str); 5] = [
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"),
];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Changes a pod so that it has a feature.
type Feature = fn(&mut Chance, &mut Value);

/// A pod without a name, and what is special about it.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) features: Vec<&'static str>,
    pub(crate) pod: Value,
}

/// How often each feature is drawn, compared to the others.
const FEATURES: &[(usize, (&str, Feature))] = &[
    (9, ("tolerations", tolerations)),
    (4, ("node selector", node_selector)),
    (5, ("required node affinity", required_node_affinity)),
    (6, ("preferred node affinity", preferred_node_affinity)),
    (2, ("node by name", node_by_name)),
    (6, ("host ports", host_ports)),
    (10, ("images", images)),
    (6, ("required pod affinity", |chance, pod| pod_affinity(chance, pod, "podAffinity", REQUIRED))),
    (9, ("required pod anti-affinity", |chance, pod| pod_affinity(chance, pod, "podAntiAffinity", REQUIRED))),
    (9, ("preferred pod affinity", |chance, pod| pod_affinity(chance, pod, "podAffinity", PREFERRED))),
    (
        9,
        ("preferred pod anti-affinity", |chance, pod| {
            pod_affinity(chance, pod, "podAntiAffinity", PREFERRED);
        }),
    ),
    (10, ("hard spread", |chance, pod| spread(chance, pod, "DoNotSchedule"))),
    (12, ("soft spread", |chance, pod| spread(chance, pod, "ScheduleAnyway"))),
    (9, ("controller", controller)),
    (9, ("claims", claims)),
    (3, ("disks", disks)),
    (20, ("priority", priority)),
    (2, ("declared features", declared_features)),
    (1, ("resource claims", resource_claims)),
    (1, ("node name", node_name)),
    (1, ("odd selector", odd_selector)),
];

/// A template, which has a certain feature if one is given. `schedulers` is how many profiles there are; now and then a
/// pod asks for one more.
pub(crate) fn template(chance: &mut Chance, schedulers: usize, certain: Option<&str>) -> Template {
    let asked = if chance.percent(2) { schedulers } else { chance.below(schedulers) };
    let app = *chance.pick(&APPS);
    let mut labels = json!({ "app": app });
    if chance.percent(50) {
        labels["tier"] = json!(chance.pick(&["front", "back"]));
    }
    if chance.percent(30) {
        labels["rev"] = json!(chance.pick(&["1", "2"]));
    }
    if chance.percent(15) {
        labels[AVOIDS] = json!(chance.pick(&["a", "b"]));
    }
    let namespace = chance.weighted(&[(10, "default"), (3, "team-a"), (2, "team-b"), (1, "lost")]);
    let mut template = Template {
        features: Vec::new(),
        pod: json!({
            "metadata": { "namespace": namespace, "labels": labels },
            "spec": { "schedulerName": SCHEDULERS[asked], "containers": [{ "name": "main" }] },
        }),
    };
    requests(chance, &mut template.pod);
    for (_, (name, feature)) in FEATURES.iter().filter(|(_, (name, _))| certain == Some(*name)) {
        feature(chance, &mut template.pod);
        template.features.push(name);
    }
    for _ in 0..chance.weighted(&[(2, 0), (5, 1), (5, 2), (3, 3), (1, 5)]) {
        let (name, feature) = chance.weighted(FEATURES);
        if !template.features.contains(&name) {
            feature(chance, &mut template.pod);
            template.features.push(name);
        }
    }
    template
}

/// A small pod that is spread over racks, and perhaps over zones and nodes, or wants to be near others there or away from them.
pub(crate) fn racked(chance: &mut Chance) -> Template {
    let labels = json!({ "app": chance.pick(&APPS[..2]) });
    let resources = json!({ "requests": { "cpu": "50m", "memory": "10Mi" } });
    let mut template = Template {
        features: vec!["soft spread", "hard spread"],
        pod: json!({
            "metadata": { "namespace": "default", "labels": labels },
            "spec": { "schedulerName": SCHEDULERS[0], "containers": [{ "name": "main", "resources": resources }] },
        }),
    };
    let selector = json!({ "matchLabels": labels });
    let constraint = |chance: &mut Chance, key: &str| {
        json!({
            "maxSkew": chance.pick(&[1, 2, 5]),
            "topologyKey": key,
            "whenUnsatisfiable": chance.pick(&["DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"]),
            "labelSelector": selector,
        })
    };
    let spec = &mut template.pod["spec"];
    for key in [RACK, ZONE, HOST] {
        if chance.percent(if key == RACK { 85 } else { 25 }) {
            push(&mut spec["topologySpreadConstraints"], constraint(chance, key));
        }
    }
    if chance.percent(25) {
        push(&mut spec["topologySpreadConstraints"], constraint(chance, RACK));
    }
    if chance.percent(30) {
        let kind = *chance.pick(&["podAffinity", "podAntiAffinity"]);
        let term =
            json!({ "weight": 10, "podAffinityTerm": { "topologyKey": RACK, "labelSelector": selector } });
        push(&mut spec["affinity"][kind][PREFERRED], term);
    }
    template
}

/// A small pod with claims.
pub(crate) fn claimed(chance: &mut Chance) -> Template {
    let resources = json!({ "requests": { "cpu": "50m", "memory": "10Mi" } });
    let mut pod = json!({
        "metadata": { "namespace": "default", "labels": { "app": chance.pick(&APPS) } },
        "spec": { "schedulerName": SCHEDULERS[0], "containers": [{ "name": "main", "resources": resources }] },
    });
    claims(chance, &mut pod);
    Template { features: vec!["claims"], pod }
}

impl Template {
    pub(crate) fn with_other_priority(mut self, chance: &mut Chance) -> Self {
        priority(chance, &mut self.pod);
        if !self.features.contains(&"priority") {
            self.features.push("priority");
        }
        self
    }
}

/// Every name that a feature can have.
pub(crate) fn feature_names() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().map(|(_, (name, _))| *name)
}

fn push(list: &mut Value, entry: Value) {
    match list {
        Value::Array(entries) => entries.push(entry),
        other => *other = json!([entry]),
    }
}

fn requests(chance: &mut Chance, pod: &mut Value) {
    let spec = &mut pod["spec"];
    let requests = |cpu: &str, memory: &str| json!({ "requests": { "cpu": cpu, "memory": memory } });
    let resources = match chance.below(30) {
        0 | 1 => json!({}),
        2..=5 => requests("100m", "100Mi"),
        6..=9 => requests("500m", "512Mi"),
        10 | 11 => requests("1", "256Mi"),
        12 => requests("1500m", "3Gi"),
        13 => json!({ "requests": { "cpu": "250m" } }),
        14 => json!({ "requests": { "memory": "1Gi" } }),
        15 => requests("0", "0"),
        16 => json!({ "requests": { "cpu": "100m", "example.com/gpu": chance.pick(&["0", "1", "2"]) } }),
        17 => {
            json!({ "requests": { "ephemeral-storage": "2Gi", "hugepages-2Mi": chance.pick(&["0", "4Mi"]) } })
        }
        // Fits nowhere.
        18 => requests(if chance.percent(50) { "100" } else { "3500m" }, "1Mi"),
        19 => json!({ "requests": { "example.com/unheard": "1" } }),
        _ => requests("200m", "200Mi"),
    };
    spec["containers"][0]["resources"] = resources;
    match chance.below(20) {
        0 => spec["initContainers"] = json!([{ "name": "init", "resources": requests("800m", "64Mi") }]),
        1 => {
            let sidecar = requests("200m", "64Mi");
            spec["initContainers"] =
                json!([{ "name": "side", "restartPolicy": "Always", "resources": sidecar }]);
        }
        2 => spec["overhead"] = json!({ "cpu": "50m", "memory": "10Mi" }),
        3 => spec["resources"] = requests("700m", "300Mi"),
        _ => {}
    }
}

fn tolerations(chance: &mut Chance, pod: &mut Value) {
    for _ in 0..chance.between(1, 2) {
        let toleration = match chance.below(6) {
            0 => json!({ "operator": "Exists" }),
            1 => json!({ "operator": "Exists", "effect": chance.pick(&["NoSchedule", "NoExecute"]) }),
            2 => json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" }),
            3 => json!({ "key": "spot", "operator": "Exists", "effect": "PreferNoSchedule" }),
            _ => {
                json!({ "key": chance.pick(&["spot", "dedicated"]), "value": chance.pick(&["", "x", "y"]) })
            }
        };
        push(&mut pod["spec"]["tolerations"], toleration);
    }
}

fn node_selector(chance: &mut Chance, pod: &mut Value) {
    pod["spec"]["nodeSelector"] = match chance.below(5) {
        0 | 1 => json!({ ZONE: chance.pick(&["a", "b"]) }),
        2 => json!({ "disk": chance.pick(&["ssd", "hdd"]) }),
        3 => json!({ ZONE: "a", "disk": "ssd" }),
        _ => json!({ HOST: chance.pick(&["n0", "n1", "twin"]) }),
    };
}

fn node_requirement(chance: &mut Chance) -> Value {
    match chance.below(7) {
        0 => json!({ "key": ZONE, "operator": "In", "values": ["a", "c"] }),
        1 => json!({ "key": ZONE, "operator": "NotIn", "values": ["a"] }),
        2 => json!({ "key": "disk", "operator": "Exists" }),
        3 => json!({ "key": "disk", "operator": "DoesNotExist" }),
        4 => json!({ "key": "rank", "operator": chance.pick(&["Gt", "Lt"]), "values": ["2"] }),
        5 => json!({ "key": RACK, "operator": "In", "values": ["r1", "r2"] }),
        _ => json!({ "key": "disk", "operator": "In", "values": [chance.pick(&["ssd", "hdd"])] }),
    }
}

fn node_term(chance: &mut Chance) -> Value {
    let requirements: Vec<Value> = (0..chance.between(1, 2)).map(|_| node_requirement(chance)).collect();
    json!({ "matchExpressions": requirements })
}

fn required_node_affinity(chance: &mut Chance, pod: &mut Value) {
    let terms: Vec<Value> = (0..chance.between(1, 2)).map(|_| node_term(chance)).collect();
    pod["spec"]["affinity"]["nodeAffinity"][REQUIRED] = json!({ "nodeSelectorTerms": terms });
}

fn preferred_node_affinity(chance: &mut Chance, pod: &mut Value) {
    for _ in 0..chance.between(1, 3) {
        let term = json!({ "weight": chance.pick(&[1, 10, 100]), "preference": node_term(chance) });
        push(&mut pod["spec"]["affinity"]["nodeAffinity"][PREFERRED], term);
    }
}

fn node_by_name(chance: &mut Chance, pod: &mut Value) {
    let operator = chance.weighted(&[(3, "In"), (1, "NotIn")]);
    let name = chance.pick(&["n0", "n1", "n2", "n70", "ghost"]);
    let term = json!({ "matchFields": [{ "key": "metadata.name", "operator": operator, "values": [name] }] });
    pod["spec"]["affinity"]["nodeAffinity"][REQUIRED] = json!({ "nodeSelectorTerms": [term] });
}

fn host_ports(chance: &mut Chance, pod: &mut Value) {
    let mut port = json!({ "hostPort": chance.pick(&[80, 81]) });
    if chance.percent(20) {
        port["protocol"] = json!("UDP");
    }
    if chance.percent(20) {
        port["hostIP"] = json!(chance.pick(&["10.0.0.1", "0.0.0.0"]));
    }
    pod["spec"]["containers"][0]["ports"] = json!([port]);
}

fn images(chance: &mut Chance, pod: &mut Value) {
    pod["spec"]["containers"][0]["image"] =
        json!(chance.pick(&["big:1", "big:1", "small:1", "big", "absent:1"]));
    if chance.percent(30) {
        push(&mut pod["spec"]["containers"], json!({ "name": "other", "image": "small:1" }));
    }
}

fn selector(chance: &mut Chance, labels: &Value) -> Value {
    match chance.below(12) {
        0..=5 => json!({ "matchLabels": { "app": labels["app"] } }),
        6 | 7 => json!({ "matchLabels": { "app": chance.pick(&APPS) } }),
        8 => json!({ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["front"] }] }),
        9 => json!({ "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }] }),
        10 => json!({}),
        _ => Value::Null,
    }
}

fn topology_key(chance: &mut Chance) -> &'static str {
    chance.weighted(&[(5, HOST), (5, ZONE), (4, RACK), (1, "missing"), (1, "disk")])
}

fn pod_affinity(chance: &mut Chance, pod: &mut Value, kind: &str, strength: &str) {
    for _ in 0..chance.weighted(&[(4, 1), (1, 2)]) {
        let labels = pod["metadata"]["labels"].clone();
        let mut term =
            json!({ "topologyKey": topology_key(chance), "labelSelector": selector(chance, &labels) });
        if chance.percent(20) {
            term["namespaces"] = json!([chance.pick(&NAMESPACES)]);
        }
        if chance.percent(25) {
            term["namespaceSelector"] = match chance.below(4) {
                0 => json!({}),
                1 => json!({ "matchExpressions": [{ "key": "team", "operator": "Exists" }] }),
                _ => json!({ "matchLabels": { "team": chance.pick(&["red", "blue"]) } }),
            };
        }
        if chance.percent(10)
            && let Some(rev) = labels.get("rev")
        {
            // As the API server stores it.
            term["matchLabelKeys"] = json!(["rev"]);
            let merged = json!({ "key": "rev", "operator": "In", "values": [rev] });
            if term["labelSelector"].is_object() {
                push(&mut term["labelSelector"]["matchExpressions"], merged);
            }
        }
        if strength == PREFERRED {
            term = json!({ "weight": chance.pick(&[1, 7, 100]), "podAffinityTerm": term });
        }
        push(&mut pod["spec"]["affinity"][kind][strength], term);
    }
}

fn spread(chance: &mut Chance, pod: &mut Value, action: &str) {
    for _ in 0..chance.weighted(&[(3, 1), (2, 2), (1, 3)]) {
        let labels = pod["metadata"]["labels"].clone();
        let mut constraint = json!({
            "maxSkew": chance.pick(&[1, 1, 2, 3]),
            "topologyKey": topology_key(chance),
            "whenUnsatisfiable": action,
            "labelSelector": selector(chance, &labels),
        });
        if action == "DoNotSchedule" && chance.percent(25) {
            constraint["minDomains"] = json!(chance.pick(&[1, 2, 3, 5]));
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if chance.percent(25) {
                constraint[policy] = json!(chance.pick(&["Honor", "Ignore"]));
            }
        }
        if chance.percent(20) {
            constraint["matchLabelKeys"] = json!([chance.pick(&["rev", "tier"])]);
        }
        push(&mut pod["spec"]["topologySpreadConstraints"], constraint);
    }
}

/// Pods of a controller are spread by default, by the selectors of services and controllers.
fn controller(chance: &mut Chance, pod: &mut Value) {
    if chance.percent(70) {
        pod["metadata"]["namespace"] = json!("default");
    }
    let (version, kind) = *chance.pick(&CONTROLLERS);
    let owner =
        json!({ "apiVersion": version, "kind": kind, "name": chance.pick(&APPS[..2]), "controller": true });
    pod["metadata"]["ownerReferences"] = json!([owner]);
}

fn claims(chance: &mut Chance, pod: &mut Value) {
    if chance.percent(80) {
        // Where there mostly are some.
        pod["metadata"]["namespace"] = json!("default");
    }
    for _ in 0..chance.weighted(&[(4, 1), (1, 2)]) {
        let name = if chance.percent(40) { *chance.pick(&CLAIMS) } else { *chance.pick(&OWN_CLAIMS) };
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": name } });
        push(&mut pod["spec"]["volumes"], volume);
    }
    if chance.percent(10) {
        push(&mut pod["spec"]["volumes"], json!({ "name": "own", "ephemeral": {} }));
    }
}

fn disks(chance: &mut Chance, pod: &mut Value) {
    let disk = match chance.below(4) {
        3 => json!({ "name": "d", "image": { "reference": chance.pick(&["big:1", "small:1"]) } }),
        0 => {
            json!({ "name": "d", "gcePersistentDisk": { "pdName": "one", "readOnly": chance.percent(50) } })
        }
        1 => {
            json!({ "name": "d", "awsElasticBlockStore": { "volumeID": chance.pick(&["vol-1", "vol-2"]) } })
        }
        _ => json!({ "name": "d", "csi": { "driver": "one.csi.example.com" } }),
    };
    push(&mut pod["spec"]["volumes"], disk);
}

fn priority(chance: &mut Chance, pod: &mut Value) {
    pod["spec"]["priority"] = json!(chance.pick(&[-5, 10, 100, 100, 1000]));
    if chance.percent(15) {
        pod["spec"]["preemptionPolicy"] = json!("Never");
    }
}

fn declared_features(chance: &mut Chance, pod: &mut Value) {
    if chance.percent(50) {
        pod["spec"]["hostNetwork"] = json!(true);
        pod["spec"]["hostUsers"] = json!(false);
    } else {
        let rules = json!([{ "action": "RestartAllContainers", "exitCodes": {} }]);
        pod["spec"]["containers"][0]["restartPolicyRules"] = rules;
    }
}

fn resource_claims(_: &mut Chance, pod: &mut Value) {
    pod["spec"]["resourceClaims"] = json!([{ "name": "gpu" }]);
}

fn node_name(chance: &mut Chance, pod: &mut Value) {
    pod["spec"]["nodeName"] = json!(chance.pick(&["n0", "n1", "ghost"]));
}

/// A selector that cannot be read is an error of whoever needs it.
fn odd_selector(chance: &mut Chance, pod: &mut Value) {
    let odd = json!({ "matchExpressions": [{ "key": "app", "operator": "Odd" }] });
    if chance.percent(50) {
        let constraint = json!({ "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": odd });
        push(&mut pod["spec"]["topologySpreadConstraints"], constraint);
    } else {
        let term = json!({ "topologyKey": ZONE, "labelSelector": odd });
        push(&mut pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED], term);
    }
}
