//! The definitions of the custom resources, for `deploy/crds`: schemas, short names, columns, and the status as a part of its own.

mod network;
mod numa;

use serde_json::{Map, Value, json};
use supercargo_model::{Kind, KindId};

use super::capacity_scheduling::ElasticQuota;
use super::coscheduling::PodGroup;

/// The definition of a custom resource.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The kind that it defines.
    pub kind: KindId,
    short_names: &'static [&'static str],
    /// Where upstream's API was approved, without which no group that ends in `k8s.io` is taken.
    approved: &'static str,
    description: &'static str,
    /// The schema of `spec`; null if there is none.
    pub spec: Value,
    /// The schema of `status`; null if there is none.
    pub status: Value,
    /// The schema of everything, where there is neither. Such objects belong to no namespace.
    pub whole: Option<Value>,
    /// The columns that `kubectl get` prints before the age: name, type, path.
    columns: &'static [(&'static str, &'static str, &'static str)],
}

/// The definitions of the custom resources that come with Supercargo.
pub fn definitions() -> Vec<Definition> {
    vec![
        elastic_quota(),
        pod_group(),
        network::app_group(),
        network::network_topology(),
        numa::node_resource_topology(),
    ]
}

fn elastic_quota() -> Definition {
    Definition {
        kind: ElasticQuota::ID,
        short_names: &["eq", "eqs"],
        approved: "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52",
        description: "What the pods of a namespace are guaranteed, and what they may take at most.",
        spec: object([
            ("max", amounts("What the pods of the namespace never take more than.")),
            ("min", amounts("What the pods of the namespace are guaranteed.")),
        ]),
        status: object([("used", amounts("What the running pods of the namespace ask for."))]),
        whole: None,
        columns: &[("Used", "string", ".status.used"), ("Max", "string", ".spec.max")],
    }
}

fn pod_group() -> Definition {
    Definition {
        kind: PodGroup::ID,
        short_names: &["pg", "pgs"],
        approved: "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50",
        description: "Pods that go to their nodes together, or not at all.",
        spec: object([
            ("minMember", number(Some(1), "So many members go together; none goes before so many can.")),
            ("minResources", amounts("What the cluster must have left before any member is tried.")),
            ("scheduleTimeoutSeconds", number(None, "How long members wait for each other.")),
        ]),
        status: object([
            ("failed", number(Some(0), "How many pods of the group have failed.")),
            ("occupiedBy", text("Who owns the pods of the group, as namespace/name.")),
            (
                "phase",
                text("How far the group is: Pending, Scheduling, Running, Finished, Failed or Unknown."),
            ),
            ("running", number(Some(0), "How many pods of the group run.")),
            (
                "scheduleStartTime",
                time("When the group was first scheduled: kept where it is, and written by nobody."),
            ),
            ("succeeded", number(Some(0), "How many pods of the group have ended well.")),
        ]),
        whole: None,
        columns: &[
            ("Phase", "string", ".status.phase"),
            ("MinMember", "integer", ".spec.minMember"),
            ("Running", "integer", ".status.running"),
            ("Succeeded", "integer", ".status.succeeded"),
            ("Failed", "integer", ".status.failed"),
        ],
    }
}

impl Definition {
    /// The CustomResourceDefinition, as an API server takes it.
    pub fn manifest(&self) -> Value {
        let KindId { group, version, kind, plural } = self.kind;
        let column =
            |(name, kind, path): &(&str, &str, &str)| json!({ "name": name, "type": kind, "jsonPath": path });
        let age = ("Age", "date", ".metadata.creationTimestamp");
        let columns: Vec<Value> = self.columns.iter().chain([&age]).map(column).collect();
        let (scope, properties, subresources) = match &self.whole {
            None => (
                "Namespaced",
                json!({ "spec": self.spec, "status": self.status }),
                Some(json!({ "status": {} })),
            ),
            Some(whole) => ("Cluster", whole["properties"].clone(), None),
        };
        let schema = json!({ "description": self.description, "type": "object", "properties": properties });
        let mut served = json!({
            "name": version,
            "served": true,
            "storage": true,
            "schema": { "openAPIV3Schema": schema },
            "additionalPrinterColumns": columns,
        });
        if let Some(subresources) = subresources {
            served["subresources"] = subresources;
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{group}"),
                "annotations": { "api-approved.kubernetes.io": self.approved },
            },
            "spec": {
                "group": group,
                "names": {
                    "kind": kind,
                    "listKind": format!("{kind}List"),
                    "plural": plural,
                    "singular": kind.to_lowercase(),
                    "shortNames": self.short_names,
                },
                "scope": scope,
                "versions": [served],
            },
        })
    }
}

fn object<const COUNT: usize>(properties: [(&str, Value); COUNT]) -> Value {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "type": "object", "properties": properties })
}

/// With these fields, all of which must be there.
fn required(mut schema: Value, fields: &[&str]) -> Value {
    schema["required"] = fields.into();
    schema
}

fn described(description: &str, mut schema: Value) -> Value {
    schema["description"] = description.into();
    schema
}

fn list(description: &str, items: &Value) -> Value {
    json!({ "description": description, "type": "array", "items": items })
}

/// Quantities by resource.
fn amounts(description: &str) -> Value {
    json!({ "description": description, "type": "object", "additionalProperties": quantity() })
}

fn quantity() -> Value {
    /// What Kubernetes itself takes for a quantity.
    const QUANTITY: &str = concat!(
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    );
    json!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
    })
}

fn number(minimum: Option<i64>, description: &str) -> Value {
    let mut schema = json!({ "description": description, "type": "integer", "format": "int32" });
    if let Some(minimum) = minimum {
        schema["minimum"] = minimum.into();
    }
    schema
}

fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn time(description: &str) -> Value {
    json!({ "description": description, "type": "string", "format": "date-time" })
}

#[cfg(test)]
mod tests;
