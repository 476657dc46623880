//! The definitions of AppGroup and NetworkTopology.

use serde_json::{Value, json};
use supercargo_model::Kind;

use super::{Definition, described, list, number, object, quantity, required, text};
use crate::community::network_aware::{AppGroup, NetworkTopology};

/// Where upstream's API was approved.
const APPROVED: &str = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/432";
/// No network costs more, as upstream has it.
const COST_MAX: i64 = 10_000;

pub(super) fn app_group() -> Definition {
    let dependency = required(
        object([
            ("maxNetworkCost", cost("What the network to it may cost at most.", Some(COST_MAX))),
            ("minBandwidth", described("The bandwidth that is needed.", quantity())),
            ("workload", workload()),
        ]),
        &["workload"],
    );
    let entry = object([("dependencies", list("What it calls.", &dependency)), ("workload", workload())]);
    let ordered = object([
        ("index", number(None, "Its turn: the lower, the earlier.")),
        ("workload", workload()),
        ("workloadStatistics", statistics()),
    ]);
    Definition {
        kind: AppGroup::ID,
        short_names: &["ag"],
        approved: APPROVED,
        description: "The workloads of an application, and which of them call which.",
        spec: required(
            object([
                ("numMembers", number(Some(1), "How many pods belong to it.")),
                (
                    "topologySortingAlgorithm",
                    text(
                        "How its workloads are put in order: KahnSort, TarjanSort, ReverseKahn, ReverseTarjan, AlternateKahn or \
                         AlternateTarjan.",
                    ),
                ),
                ("workloads", list("Its workloads.", &required(entry, &["workload"]))),
            ]),
            &["numMembers", "topologySortingAlgorithm", "workloads"],
        ),
        status: object([
            ("appGroupStatistics", statistics()),
            ("runningWorkloads", number(Some(0), "How many of its pods run.")),
            ("scheduleStartTime", time("When its first pod was given a node.")),
            ("topologyCalculationTime", time("When the order was worked out.")),
            ("topologyOrder", list("Its workloads by selector, and which is tried when.", &ordered)),
        ]),
        whole: None,
        columns: &[
            ("Members", "integer", ".spec.numMembers"),
            ("Running", "integer", ".status.runningWorkloads"),
            ("Algorithm", "string", ".spec.topologySortingAlgorithm"),
        ],
    }
}

pub(super) fn network_topology() -> Definition {
    let cost = required(
        object([
            ("bandwidthAllocated", described("The bandwidth that pods have asked for.", quantity())),
            ("bandwidthCapacity", described("The bandwidth that there is.", quantity())),
            ("destination", text("The region or zone where a connection ends.")),
            (
                "isAllowed",
                json!({ "description": "Whether pods here may call pods there.", "type": "boolean" }),
            ),
            ("networkCost", cost("What the network costs.", None)),
        ]),
        &["destination", "networkCost"],
    );
    let origin = required(
        object([
            ("costList", list("The costs to others.", &cost)),
            ("origin", text("The region or zone where a connection begins.")),
            ("originInterStatistics", statistics()),
            ("originIntraStatistics", statistics()),
        ]),
        &["origin"],
    );
    let of_key = required(
        object([
            ("originList", list("The costs by where a connection begins.", &origin)),
            ("topologyKey", text("topology.kubernetes.io/region or topology.kubernetes.io/zone.")),
        ]),
        &["topologyKey", "originList"],
    );
    let set = required(
        object([
            ("name", text("The name of the set: UserDefined, NetperfCosts, or any other.")),
            ("topologyList", list("The costs by topology key.", &of_key)),
        ]),
        &["name", "topologyList"],
    );
    Definition {
        kind: NetworkTopology::ID,
        short_names: &["nt"],
        approved: APPROVED,
        description: "What the network between regions, and between the zones of a region, costs.",
        spec: required(
            object([
                ("configmapName", text("The ConfigMap that has the measurements, in the same namespace.")),
                ("weights", list("The costs, in sets that plugins choose from by name.", &set)),
            ]),
            &["configmapName"],
        ),
        status: object([
            ("nodeCount", count("How many nodes there are.")),
            ("weightCalculationTime", time("When costs were worked out last.")),
        ]),
        whole: None,
        columns: &[
            ("ConfigMap", "string", ".spec.configmapName"),
            ("Nodes", "integer", ".status.nodeCount"),
            ("Calculated", "date", ".status.weightCalculationTime"),
        ],
    }
}

fn workload() -> Value {
    let schema = object([
        ("apiVersion", text("The version of its kind.")),
        ("kind", text("Its kind, such as Deployment.")),
        ("name", text("Its name.")),
        ("namespace", text("Its namespace.")),
        ("selector", text("The value of the label appgroup.diktyo.x-k8s.io.workload that its pods have.")),
    ]);
    described("A workload.", required(schema, &["kind", "name", "selector"]))
}

/// What upstream's controllers say about bandwidth and costs; nobody here reads it.
fn statistics() -> Value {
    let schema = object([
        ("avgBandwidth", quantity()),
        ("avgCost", count("The average cost.")),
        ("maxBandwidth", quantity()),
        ("maxCost", count("The highest cost.")),
        ("minBandwidth", quantity()),
        ("minCost", count("The lowest cost.")),
    ]);
    described("Bandwidth and costs, as others say them.", schema)
}

fn count(description: &str) -> Value {
    json!({ "description": description, "type": "integer", "format": "int64", "minimum": 0 })
}

fn cost(description: &str, maximum: Option<i64>) -> Value {
    let mut schema = count(description);
    if let Some(maximum) = maximum {
        schema["maximum"] = maximum.into();
    }
    schema
}

fn time(description: &str) -> Value {
    json!({ "description": description, "type": "string", "format": "date-time" })
}
