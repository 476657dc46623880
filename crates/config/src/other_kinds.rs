//! Files that are given in place of a configuration, and where the configuration then is.

use serde_json::Value;

use crate::decode::{KUBE_API_VERSION, KUBE_KIND, OWN_API_VERSION, OWN_KIND};
use crate::fields::Object;

/// How many objects of a list are named.
const NAMED_MAX: usize = 5;

/// What to do about a document of another kind.
pub(crate) fn hint(kind: &str, fields: &Object) -> String {
    let wanted = format!("{KUBE_KIND} of {KUBE_API_VERSION}");
    match kind {
        "List" | "ConfigMapList" => list(fields, &wanted),
        "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet" | "Pod" | "Job" => format!(
            "this is a {kind}, which may run a scheduler; give the {wanted} that its --config names, or the ConfigMap that it \
             mounts there"
        ),
        "ClusterConfiguration" | "InitConfiguration" | "JoinConfiguration" => format!(
            "this is kubeadm's configuration; give the {wanted} that `scheduler.extraArgs` names with config"
        ),
        "KubeletConfiguration" | "KubeProxyConfiguration" => {
            format!("this configures another component; give a {wanted}")
        }
        "Config" => format!("this is a kubeconfig, which `--kubeconfig` takes; give a {wanted}"),
        "Secret" => format!("a Secret is not read; give the {wanted} itself, or a ConfigMap that holds it"),
        "ConfigMap" => "a ConfigMap is read if it is of version v1 and does not stand in another".to_owned(),
        _ => format!("{wanted} and {OWN_KIND} of {OWN_API_VERSION} are read"),
    }
}

fn list(fields: &Object, wanted: &str) -> String {
    let items = fields.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names: Vec<String> = items.iter().take(NAMED_MAX).map(name).collect();
    let more = if items.len() > NAMED_MAX { ", …" } else { "" };
    let holds = match items.len() {
        0 => "an empty list".to_owned(),
        1 => format!("a list with one object, {}", names.join("")),
        count => format!("a list of {count} objects ({}{more})", names.join(", ")),
    };
    let config_map = items.iter().find(|item| item.get("kind").and_then(Value::as_str) == Some("ConfigMap"));
    let named = config_map.and_then(|item| item.pointer("/metadata/name")).and_then(Value::as_str);
    let command = named.map_or("NAME", |name| name);
    format!(
        "this is {holds}; give a {wanted}, or one ConfigMap that holds it: kubectl get configmap {command} -o yaml"
    )
}

fn name(item: &Value) -> String {
    let text = |path: &str| item.pointer(path).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("an object without kind");
    match (text("/metadata/namespace"), text("/metadata/name")) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        (_, None) => kind.to_owned(),
    }
}
