//! What the API server does to a pod before anybody sees it: defaults, and the admission plugins that are on by default and
//! matter for placement.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use supercargo_model::wire::null_default;
use supercargo_model::{DecodeError, MetadataWords, RawObject};

/// Priorities that every cluster has.
const SYSTEM_PRIORITIES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// How long a pod stays on a node that does not answer: what DefaultTolerationSeconds adds.
const TOLERATION_SECONDS: i64 = 300;
const DEFAULT_CLASS_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// The objects that admission looks at.
#[derive(Clone, Debug, Default)]
pub(super) struct Admission {
    priority_classes: BTreeMap<String, PriorityClassWords>,
    runtime_classes: BTreeMap<String, RuntimeClassWords>,
    /// By namespace, then by name.
    limit_ranges: BTreeMap<String, BTreeMap<String, LimitRangeSpecWords>>,
    /// The default storage class is the newest that says it is, then the first by name.
    default_storage_classes: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PriorityClassWords {
    #[serde(deserialize_with = "null_default")]
    value: i64,
    #[serde(deserialize_with = "null_default")]
    global_default: bool,
    preemption_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeClassWords {
    overhead: Option<OverheadWords>,
    scheduling: Option<RuntimeSchedulingWords>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OverheadWords {
    pod_fixed: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RuntimeSchedulingWords {
    #[serde(deserialize_with = "null_default")]
    node_selector: Map<String, Value>,
    #[serde(deserialize_with = "null_default")]
    tolerations: Vec<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LimitRangeWords {
    #[serde(deserialize_with = "null_default")]
    spec: LimitRangeSpecWords,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LimitRangeSpecWords {
    #[serde(deserialize_with = "null_default")]
    limits: Vec<LimitWords>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LimitWords {
    #[serde(rename = "type", deserialize_with = "null_default")]
    kind: String,
    #[serde(deserialize_with = "null_default")]
    max: Map<String, Value>,
    #[serde(deserialize_with = "null_default")]
    min: Map<String, Value>,
    #[serde(deserialize_with = "null_default")]
    default: Map<String, Value>,
    #[serde(deserialize_with = "null_default")]
    default_request: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectWords {
    #[serde(deserialize_with = "null_default")]
    metadata: MetadataWords,
}

impl Admission {
    /// Takes an object that admission looks at; of other kinds it takes nothing. One without a
    /// namespace is of the default one.
    pub(super) fn take(
        &mut self,
        kind: &str,
        raw: &RawObject,
        default_namespace: &str,
    ) -> Result<(), DecodeError> {
        let ObjectWords { metadata } = raw.read(kind)?;
        match kind {
            "PriorityClass" => {
                self.priority_classes.insert(metadata.name, raw.read(kind)?);
            }
            "RuntimeClass" => {
                self.runtime_classes.insert(metadata.name, raw.read(kind)?);
            }
            "LimitRange" => {
                let LimitRangeWords { spec } = raw.read(kind)?;
                let namespace = match &*metadata.namespace {
                    "" => default_namespace.to_owned(),
                    namespace => namespace.to_owned(),
                };
                self.limit_ranges.entry(namespace).or_default().insert(metadata.name, spec);
            }
            "StorageClass" => {
                let mut annotations = metadata.annotations.iter();
                if annotations.any(|(key, value)| DEFAULT_CLASS_ANNOTATIONS.contains(&key) && value == "true")
                {
                    let created = metadata.creation_timestamp.map(|at| at.to_string()).unwrap_or_default();
                    self.default_storage_classes.push((created, metadata.name));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The class of claims that name none.
    pub(super) fn default_storage_class(&self) -> Option<&str> {
        let newest = self.default_storage_classes.iter().map(|(created, _)| created).max()?;
        let newest = self.default_storage_classes.iter().filter(|(created, _)| created == newest);
        newest.map(|(_, name)| name.as_str()).min()
    }

    /// Makes a pod what it is once the API server has taken it. What cannot be known is told as an assumption.
    pub(super) fn admit(&self, pod: &mut Value, assumptions: &mut BTreeSet<String>) {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let labels = pod["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        let Some(spec) = pod["spec"].as_object_mut() else { return };
        default_requests(spec);
        default_host_ports(spec);
        self.apply_limit_ranges(spec, &namespace);
        self.apply_priority(spec, assumptions);
        self.apply_runtime_class(spec, assumptions);
        tolerate_sick_nodes(spec);
        merge_label_keys(spec, &labels);
    }

    fn apply_priority(&self, spec: &mut Map<String, Value>, assumptions: &mut BTreeSet<String>) {
        let name = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
        let system = SYSTEM_PRIORITIES.iter().find(|(system, _)| *system == name);
        let (value, policy) = if name.is_empty() {
            // Of several global defaults the lowest counts.
            let defaults = self.priority_classes.values().filter(|class| class.global_default);
            match defaults.min_by_key(|class| class.value) {
                Some(class) => (class.value, &class.preemption_policy),
                None => return,
            }
        } else if let Some(class) = self.priority_classes.get(&name) {
            (class.value, &class.preemption_policy)
        } else if let Some((_, value)) = system {
            (*value, &None)
        } else {
            if is_unset(spec.get("priority")) {
                assumptions.insert(format!(
                    "its priority class {name} is not known here, so it is taken to have priority 0: add the PriorityClass"
                ));
            }
            return;
        };
        if is_unset(spec.get("priority")) {
            spec.insert("priority".to_owned(), json!(value));
        }
        if let (true, Some(policy)) = (is_unset(spec.get("preemptionPolicy")), policy) {
            spec.insert("preemptionPolicy".to_owned(), json!(policy));
        }
    }

    fn apply_runtime_class(&self, spec: &mut Map<String, Value>, assumptions: &mut BTreeSet<String>) {
        let Some(name) = spec.get("runtimeClassName").and_then(Value::as_str).filter(|name| !name.is_empty())
        else {
            return;
        };
        let Some(class) = self.runtime_classes.get(name) else {
            if is_unset(spec.get("overhead")) {
                assumptions.insert(format!(
                    "its runtime class {name} is not known here, so neither its overhead nor its nodes are: add the \
                     RuntimeClass"
                ));
            }
            return;
        };
        if let (true, Some(overhead)) = (is_unset(spec.get("overhead")), &class.overhead) {
            spec.insert("overhead".to_owned(), overhead.pod_fixed.clone());
        }
        if let Some(scheduling) = &class.scheduling {
            for (key, value) in &scheduling.node_selector {
                object_at(spec, "nodeSelector").insert(key.clone(), value.clone());
            }
            let tolerations = list_at(spec, "tolerations");
            for toleration in &scheduling.tolerations {
                if !tolerations.contains(toleration) {
                    tolerations.push(toleration.clone());
                }
            }
        }
    }

    fn apply_limit_ranges(&self, spec: &mut Map<String, Value>, namespace: &str) {
        let ranges = self.limit_ranges.get(namespace).into_iter().flat_map(BTreeMap::values);
        for limit in ranges.flat_map(|range| &range.limits).filter(|limit| limit.kind == "Container") {
            let (limits, requests) = limit.defaults();
            for resources in containers(spec).map(|container| object_at(container, "resources")) {
                fill(object_at(resources, "limits"), &limits);
                fill(object_at(resources, "requests"), &requests);
            }
        }
    }
}

impl LimitWords {
    /// The limits and the requests of containers that have none, as the API server completes them.
    fn defaults(&self) -> (Map<String, Value>, Map<String, Value>) {
        let mut limits = self.default.clone();
        fill(&mut limits, &self.max);
        let mut requests = self.default_request.clone();
        fill(&mut requests, &limits);
        fill(&mut requests, &self.min);
        (limits, requests)
    }
}

/// What a container must not exceed it asks for, unless it says otherwise. The same holds for the pod as a whole where no
/// container asks for the resource.
fn default_requests(spec: &mut Map<String, Value>) {
    let mut asked = BTreeSet::new();
    for container in containers(spec) {
        let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { continue };
        let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
        fill(object_at(resources, "requests"), &limits);
        asked.extend(object_at(resources, "requests").keys().cloned());
    }
    if let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) {
        let mut limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
        limits.retain(|resource, _| !asked.contains(resource));
        fill(object_at(resources, "requests"), &limits);
    }
}

/// On the host's network a port of the container is one of the host.
fn default_host_ports(spec: &mut Map<String, Value>) {
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for container in containers(spec) {
        let ports = container.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            if matches!(port.get("hostPort").and_then(Value::as_i64), None | Some(0)) {
                let container_port = port.get("containerPort").cloned().unwrap_or_default();
                port.insert("hostPort".to_owned(), container_port);
            }
        }
    }
}

fn tolerate_sick_nodes(spec: &mut Map<String, Value>) {
    let tolerations = list_at(spec, "tolerations");
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let has = |field: &str, value: &str| {
                let found = toleration[field].as_str().unwrap_or_default();
                found.is_empty() || found == value
            };
            has("key", key) && has("effect", "NoExecute")
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// Terms of pod affinity that name keys of labels get what the pod has under them into their selectors.
fn merge_label_keys(spec: &mut Map<String, Value>, labels: &Map<String, Value>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) else { return };
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(side) = affinity.get_mut(side).and_then(Value::as_object_mut) else { continue };
        let required = side.get_mut(REQUIRED).and_then(Value::as_array_mut);
        required.into_iter().flatten().for_each(|term| merge_into(term, labels));
        let preferred = side.get_mut(PREFERRED).and_then(Value::as_array_mut);
        let preferred = preferred.into_iter().flatten().filter_map(|term| term.get_mut("podAffinityTerm"));
        preferred.for_each(|term| merge_into(term, labels));
    }
}

fn merge_into(term: &mut Value, labels: &Map<String, Value>) {
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term[keys].as_array().cloned().unwrap_or_default();
        let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else { return };
        for key in keys.iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                let requirement = json!({ "key": key, "operator": operator, "values": [value] });
                list_at(selector, "matchExpressions").push(requirement);
            }
        }
    }
}

fn containers(spec: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let lists = spec.iter_mut().filter(|(key, _)| matches!(key.as_str(), "containers" | "initContainers"));
    let containers = lists.filter_map(|(_, list)| list.as_array_mut()).flatten();
    containers.filter_map(Value::as_object_mut)
}

/// Adds what is not there yet.
fn fill(target: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    for (key, value) in defaults {
        if !target.contains_key(key) {
            target.insert(key.clone(), value.clone());
        }
    }
}

pub(super) fn is_unset(value: Option<&Value>) -> bool {
    value.is_none_or(Value::is_null)
}

/// The object under a key, made if it is not there. Templates have been read as pods before, so what is there is one, or null.
pub(super) fn object_at<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("was made an object")
}

/// The list under a key, made if it is not there.
pub(super) fn list_at<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Vec<Value> {
    let value = map.entry(key).or_insert_with(|| json!([]));
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut().expect("was made a list")
}
