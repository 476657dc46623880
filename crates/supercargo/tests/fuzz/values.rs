//! Values that are odd where they stand.

use serde_json::{Value, json};

use crate::chance::Chance;

/// Quantities at the edges of what Kubernetes takes for one, and beyond.
const QUANTITIES: [&str; 30] = [
    "0",
    "-0",
    "-1",
    "+1",
    "1m",
    "-5m",
    "0.5",
    ".5",
    "5.",
    "1n",
    "0.1n",
    "1e3",
    "1E",
    "1Ei",
    "16Ei",
    "8Ei",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "1e18",
    "1e400",
    "1e-400",
    "99999999999999999999999999999999Ei",
    "1 Gi",
    "1gi",
    "Gi",
    "1e",
    "0x10",
    "١",
];

/// Texts that terminals, YAML or Kubernetes take for more than a name.
const TEXTS: [&str; 46] = [
    "",
    " ",
    "a b",
    "\u{1b}[31mred\u{1b}[0m",
    "a\nb",
    "a\r\nb",
    "x\nerror: forged\ny",
    "\0",
    "\u{7f}",
    "\u{9b}31m",
    "\u{202e}txt.exe",
    "\u{2028}",
    "\u{feff}",
    "\u{fffd}",
    "é",
    "日本",
    "🚢",
    "*",
    "..",
    "/",
    "a/b/c",
    "A",
    "-",
    "~",
    "null",
    "true",
    "yes",
    "1",
    "0x10",
    "1e3",
    ".inf",
    "- a",
    "a: b",
    "a #b",
    "#",
    "{{ .Values.name }}",
    "{",
    "[",
    "'",
    "\"",
    "\\",
    "&a",
    "*a",
    "!!str",
    "%",
    "2024-01-01T00:00:00Z",
];

/// Where it is printed as it is, its second line looks like a word of the program. `checks.rs` looks for that line.
const FORGING: &str = "x\nerror: forged\ny";

/// Words that mean something in some place: operators, effects, policies, phases, keys, plugins.
const WORDS: [&str; 52] = [
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "Gt",
    "Lt",
    "Equal",
    "NoSchedule",
    "PreferNoSchedule",
    "NoExecute",
    "DoNotSchedule",
    "ScheduleAnyway",
    "Honor",
    "Ignore",
    "Never",
    "PreemptLowerPriority",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Bound",
    "Immediate",
    "WaitForFirstConsumer",
    "ReadWriteOnce",
    "ReadWriteOncePod",
    "default",
    "kube-system",
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "metadata.name",
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "hugepages-2Mi",
    "example.com/gpu",
    "requests.cpu",
    "n000",
    "n1",
    "default-scheduler",
    "other-scheduler",
    "Always",
    "v1",
    "NodeResourcesFit",
    "PodTopologySpread",
    "ImageLocality",
    "DefaultPreemption",
    "LeastAllocated",
    "RequestedToCapacityRatio",
    "List",
    "Pod",
    "5s",
];

/// Field names of pods, nodes, selectors and configurations, for fields that appear where nobody expects them.
const FIELDS: [&str; 34] = [
    "name",
    "namespace",
    "kind",
    "apiVersion",
    "metadata",
    "spec",
    "status",
    "labels",
    "annotations",
    "items",
    "containers",
    "initContainers",
    "resources",
    "requests",
    "limits",
    "affinity",
    "nodeAffinity",
    "podAntiAffinity",
    "tolerations",
    "taints",
    "nodeName",
    "nominatedNodeName",
    "priority",
    "overhead",
    "volumes",
    "template",
    "replicas",
    "parallelism",
    "matchExpressions",
    "labelSelector",
    "profiles",
    "plugins",
    "enabled",
    "unknownField",
];

/// How long a text is that is longer than any name.
const LONG_TEXT: usize = 5_000;

/// How deep a value is nested that nobody would read; the second is beyond what serde_json reads.
const DEPTHS: [usize; 2] = [60, 200];

/// Any of them.
pub(crate) fn odd_value(chance: &mut Chance) -> Value {
    match chance.below(12) {
        0 => Value::Null,
        1 => json!(chance.one_in(2)),
        2 | 3 => number(chance),
        4 | 5 => json!(chance.pick(&QUANTITIES)),
        6 | 7 => json!(text(chance)),
        8 | 9 => json!(chance.pick(&WORDS)),
        10 => [json!([]), json!({}), json!([null]), json!([[]]), json!({ "": "" })][chance.below(5)].clone(),
        _ => nested(chance),
    }
}

/// A value of the same type as the one that is there, if that is a plain one.
pub(crate) fn odd_alike(value: &Value, chance: &mut Chance) -> Value {
    match value {
        Value::Bool(value) => json!(!value),
        Value::Number(_) => number(chance),
        Value::String(text) if text.starts_with(|first: char| first.is_ascii_digit()) => {
            json!(chance.pick(&QUANTITIES))
        }
        Value::String(_) if chance.one_in(2) => json!(chance.pick(&WORDS)),
        Value::String(_) => json!(text(chance)),
        _ => odd_value(chance),
    }
}

pub(crate) fn field(chance: &mut Chance) -> String {
    if chance.one_in(6) { text(chance) } else { (*chance.pick(&FIELDS)).to_owned() }
}

pub(crate) fn text(chance: &mut Chance) -> String {
    match chance.below(30) {
        0 => "x".repeat(LONG_TEXT),
        1 => "a.".repeat(LONG_TEXT / 2),
        2 => format!("{}{}", chance.pick(&TEXTS), chance.pick(&TEXTS)),
        3..6 => FORGING.to_owned(),
        _ => (*chance.pick(&TEXTS)).to_owned(),
    }
}

fn number(chance: &mut Chance) -> Value {
    let numbers = [
        json!(0),
        json!(1),
        json!(-1),
        json!(2),
        json!(100),
        json!(101),
        json!(65_536),
        json!(i32::MAX),
        json!(i32::MIN),
        json!(i64::from(i32::MAX) + 1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.5),
        json!(-0.0),
        json!(1e300),
        json!(1e-300),
        json!(3.0),
    ];
    chance.pick(&numbers).clone()
}

fn nested(chance: &mut Chance) -> Value {
    let depth = *chance.pick(&DEPTHS);
    let is_list = chance.one_in(2);
    (0..depth).fold(json!(1), |inner, _| if is_list { json!([inner]) } else { json!({ "a": inner }) })
}
