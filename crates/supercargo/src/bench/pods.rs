//! The pods of the workloads.

#![expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_conformance::samples;
use supercargo_model::{Decoded, Decoder, Interner, Pod};
use supercargo_plugins::community::network_aware::{APP_GROUP_LABEL, WORKLOAD_LABEL};

use super::nodes::{DEDICATED, HOSTNAME, RACK, ZONE};

/// The pods that are there before anything is measured are in this namespace.
pub(super) const INIT_NAMESPACE: &str = "sched-0";
/// The pods that are measured are in this one.
pub(super) const MEASURED_NAMESPACE: &str = "sched-1";
/// How many pods fill a node.
pub(super) const FILLERS_A_NODE: usize = 20;
/// How many services the pods of `default-spread` belong to.
pub(super) const SERVICES: usize = 50;
/// The label of the namespaces that `namespace-anti` chooses.
pub(super) const TEAM: (&str, &str) = ("team", "devops");

/// Pods of one kind: alike, up to their class.
#[derive(Debug)]
pub(super) struct PodKind {
    /// What their names begin with.
    pub(super) name: &'static str,
    pub(super) classes: Classes,
    /// The labels and the spec of the pods of a class.
    pub(super) manifest: fn(usize) -> Manifest,
}

/// In how many ways pods of one kind differ.
#[derive(Clone, Copy, Debug)]
pub(super) enum Classes {
    /// In so many. Pods that follow each other are of different classes.
    Few(usize),
    /// No two are alike: the class of a pod is its number.
    EveryPod,
}

/// A pod without its name.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) labels: Value,
    pub(super) spec: Value,
}

/// Makes pods for one cluster. A class is read and interned once; its pods differ in name and UID.
#[derive(Debug)]
pub(super) struct PodMaker<'a> {
    kind: &'a PodKind,
    namespace: &'static str,
    models: BTreeMap<usize, Pod>,
}

impl Classes {
    /// The class of a pod.
    pub(super) fn of(self, number: usize) -> usize {
        /// A prime, so that classes do not come in order; the peer `decide` has the same.
        const STRIDE: usize = 7919;
        match self {
            Classes::Few(count) => number * STRIDE % count,
            Classes::EveryPod => number,
        }
    }
}

impl<'a> PodMaker<'a> {
    pub(super) fn new(kind: &'a PodKind, namespace: &'static str) -> Self {
        PodMaker { kind, namespace, models: BTreeMap::default() }
    }

    /// The pod of that number, as the driver of an engine has it when it has arrived.
    pub(super) fn pod(&mut self, number: usize, interner: &mut Interner) -> Arc<Pod> {
        let name = format!("{}-{number}", self.kind.name);
        let uid = format!("{}/{name}", self.namespace).into();
        let class = self.kind.classes.of(number);
        let renamed = |model: &Pod| Pod { name: name.as_str().into(), uid, ..model.clone() };
        if let Classes::EveryPod = self.kind.classes {
            return Arc::new(renamed(&self.model(class, interner)));
        }
        if !self.models.contains_key(&class) {
            let model = self.model(class, interner);
            self.models.insert(class, model);
        }
        Arc::new(renamed(&self.models[&class]))
    }

    fn model(&self, class: usize, interner: &mut Interner) -> Pod {
        let Manifest { labels, spec } = (self.kind.manifest)(class);
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": self.kind.name, "namespace": self.namespace, "labels": labels },
            "spec": spec,
        });
        match Decoder::default().decode(&pod.to_string()) {
            Ok(Decoded::Pod(words)) => interner.pod(*words),
            other => unreachable!("the text of a pod was read as {other:?}"),
        }
    }
}

impl Manifest {
    /// A pod that requests and is limited to these resources.
    fn guaranteed(resources: Value) -> Self {
        Self::with_resources(json!({ "requests": resources.clone(), "limits": resources }))
    }

    /// A pod that requests these resources, without limits.
    fn requesting(resources: Value) -> Self {
        Self::with_resources(json!({ "requests": resources }))
    }

    fn with_resources(resources: Value) -> Self {
        let container = json!({
            "name": "pause",
            "image": "registry.k8s.io/pause:3.10.2",
            "ports": [{ "containerPort": 80 }],
            "resources": resources,
        });
        let spec = json!({ "schedulerName": "default-scheduler", "containers": [container] });
        Manifest { labels: json!({}), spec }
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels[key] = value.into();
        self
    }

    /// With this field of the spec as well.
    fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }
}

/// What most pods ask for.
fn basic(_: usize) -> Manifest {
    Manifest::guaranteed(json!({ "cpu": "100m", "memory": "500Mi" }))
}

/// A pod with a colour, and an affinity term for pods of that colour in both namespaces.
fn coloured(colour: &str, topology_key: &str, affinity: impl FnOnce(Value) -> Value) -> Manifest {
    let term = json!({
        "labelSelector": { "matchLabels": { "color": colour } },
        "topologyKey": topology_key,
        "namespaces": [INIT_NAMESPACE, MEASURED_NAMESPACE],
    });
    basic(0).label("color", colour).with("affinity", affinity(term))
}

/// A spread constraint.
fn spread(topology_key: &str, max_skew: i32, when_unsatisfiable: &str, (key, value): (&str, &str)) -> Value {
    json!({
        "maxSkew": max_skew,
        "topologyKey": topology_key,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": { "matchLabels": { key: value } },
    })
}

fn blue(constraints: Value) -> Manifest {
    basic(0).label("color", "blue").with("topologySpreadConstraints", constraints)
}

const BLUE: (&str, &str) = ("color", "blue");
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) const BASIC: PodKind = PodKind { name: "basic", classes: Classes::Few(1), manifest: basic };

/// Pods of which a node holds as many as it may have.
pub(super) const SMALL: PodKind = PodKind {
    name: "small",
    classes: Classes::Few(1),
    manifest: |_| Manifest::guaranteed(json!({ "cpu": "10m", "memory": "50Mi" })),
};

/// Pods that stay away from one of three zones.
pub(super) const AVOIDING: PodKind = PodKind {
    name: "avoiding",
    classes: Classes::Few(1),
    manifest: |class| basic(class).label(samples::AVOIDS, "moon-1"),
};

pub(super) const CHURN: PodKind = PodKind { name: "churn", classes: Classes::Few(1), manifest: basic };

pub(super) const ANTI: PodKind = PodKind {
    name: "anti",
    classes: Classes::Few(1),
    manifest: |_| coloured("green", HOSTNAME, |term| json!({ "podAntiAffinity": { REQUIRED: [term] } })),
};

pub(super) const AFFINITY: PodKind = PodKind {
    name: "affinity",
    classes: Classes::Few(1),
    manifest: |_| coloured("blue", ZONE, |term| json!({ "podAffinity": { REQUIRED: [term] } })),
};

pub(super) const PREFERRED_AFFINITY: PodKind = PodKind {
    name: "preferred-affinity",
    classes: Classes::Few(1),
    manifest: |_| {
        coloured(
            "red",
            HOSTNAME,
            |term| json!({ "podAffinity": { PREFERRED: [{ "weight": 1, "podAffinityTerm": term }] } }),
        )
    },
};

pub(super) const SPREAD: PodKind = PodKind {
    name: "spread",
    classes: Classes::Few(1),
    manifest: |_| blue(json!([spread(ZONE, 5, "DoNotSchedule", BLUE)])),
};

pub(super) const PREFERRED_SPREAD: PodKind = PodKind {
    name: "preferred-spread",
    classes: Classes::Few(1),
    manifest: |_| blue(json!([spread(ZONE, 5, "ScheduleAnyway", BLUE)])),
};

pub(super) const NODE_AFFINITY: PodKind = PodKind {
    name: "node-affinity",
    classes: Classes::Few(1),
    manifest: |_| {
        let zones = json!({ "key": ZONE, "operator": "In", "values": ["moon-1", "moon-2"] });
        let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [zones] }] });
        basic(0).with("affinity", json!({ "nodeAffinity": { REQUIRED: terms } }))
    },
};

pub(super) const MIXED: PodKind = PodKind {
    name: "mixed",
    classes: Classes::Few(1000),
    manifest: |class| {
        let cpu = format!("{}m", 10 + class % 50);
        Manifest::requesting(json!({ "cpu": cpu, "memory": "100Mi" })).label("app", &format!("app-{class}"))
    },
};

pub(super) const UNSCHEDULABLE: PodKind = PodKind {
    name: "unschedulable",
    classes: Classes::Few(1),
    manifest: |_| Manifest::requesting(json!({ "cpu": "9" })),
};

pub(super) const TOLERANT: PodKind = PodKind {
    name: "tolerant",
    classes: Classes::Few(2),
    manifest: |class| {
        let toleration = json!({ "key": DEDICATED.0, "value": DEDICATED.1, "effect": "NoSchedule" });
        let tolerations = if class == 0 { json!([toleration]) } else { json!([]) };
        basic(0).with("tolerations", tolerations)
    },
};

pub(super) const DEPLOYMENT: PodKind = PodKind {
    name: "deployment",
    classes: Classes::Few(1000),
    manifest: |class| {
        let (cpu, app) = (format!("{}m", 10 * (class % 20 + 1)), format!("deployment-{class}"));
        let [nodes, zones] = [HOSTNAME, ZONE].map(|key| spread(key, 1, "ScheduleAnyway", ("app", &app)));
        Manifest::requesting(json!({ "cpu": cpu, "memory": "100Mi" }))
            .label("app", &app)
            .with("topologySpreadConstraints", json!([nodes, zones]))
    },
};

pub(super) const OWN_CLASS: PodKind = PodKind {
    name: "class",
    classes: Classes::EveryPod,
    manifest: |class| {
        let resources =
            json!({ "cpu": format!("{}m", 10 + class % 500), "memory": format!("{}Ki", 65_536 + class) });
        Manifest::requesting(resources).label("app", &format!("class-{class}"))
    },
};

pub(super) const NAMESPACE_ANTI: PodKind = PodKind {
    name: "namespace-anti",
    classes: Classes::Few(1),
    manifest: |_| {
        let term = json!({
            "labelSelector": { "matchLabels": { "color": "green" } },
            "topologyKey": HOSTNAME,
            "namespaceSelector": { "matchLabels": { TEAM.0: TEAM.1 } },
        });
        basic(0).label("color", "green").with("affinity", json!({ "podAntiAffinity": { REQUIRED: [term] } }))
    },
};

pub(super) const SERVED: PodKind = PodKind {
    name: "served",
    classes: Classes::Few(SERVICES),
    manifest: |class| basic(0).label("app", &format!("service-{class}")),
};

pub(super) const RACK_SPREAD: PodKind = PodKind {
    name: "rack-spread",
    classes: Classes::Few(1),
    manifest: |_| {
        blue(json!([spread(RACK, 5, "DoNotSchedule", BLUE), spread(RACK, 1, "ScheduleAnyway", BLUE)]))
    },
};

/// Pods of ten services of one application, each of which calls the next two.
pub(super) const CALLING: PodKind = PodKind {
    name: "calling",
    classes: Classes::Few(CALLING_SERVICES),
    manifest: |class| {
        basic(0).label(APP_GROUP_LABEL, APPLICATION).label(WORKLOAD_LABEL, &calling_service(class))
    },
};

/// How many services the application of [`CALLING`] has.
pub(super) const CALLING_SERVICES: usize = 10;
/// The name of that application.
pub(super) const APPLICATION: &str = "application";

/// The name of a service of that application.
pub(super) fn calling_service(number: usize) -> String {
    format!("service-{number}")
}

/// Twenty of them take all cpu of a node. Of four priorities, so that there is something to choose from.
pub(super) const FILLER: PodKind = PodKind {
    name: "filler",
    classes: Classes::Few(4),
    manifest: |class| {
        Manifest::requesting(json!({ "cpu": "200m", "memory": "500Mi" })).with("priority", json!(class))
    },
};

/// Takes the place of five fillers.
pub(super) const PREEMPTOR: PodKind = PodKind {
    name: "preemptor",
    classes: Classes::Few(1),
    manifest: |_| Manifest::requesting(json!({ "cpu": "1", "memory": "500Mi" })).with("priority", json!(100)),
};

pub(super) const CLAIMING: PodKind = PodKind {
    name: "claiming",
    classes: Classes::EveryPod,
    manifest: |class| {
        let claim = json!({ "claimName": claim_name(class) });
        basic(0).with("volumes", json!([{ "name": "data", "persistentVolumeClaim": claim }]))
    },
};

/// The claim of a pod of [`CLAIMING`].
pub(super) fn claim_name(number: usize) -> String {
    format!("data-{number}")
}
