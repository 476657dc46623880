use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::pod::PodWords;
use crate::{Interner, Pod, ResourceList};

fn pod(json: &str) -> Pod {
    let words: PodWords = serde_json::from_str(json).expect("a pod");
    Interner::default().pod(words)
}

/// `cpu=1 memory=2Mi`
fn list(text: &str) -> ResourceList {
    let entry = |entry: &str| {
        let (name, quantity) = entry.split_once('=').expect("name=quantity");
        (name.to_owned(), quantity.parse().expect("a quantity"))
    };
    text.split_whitespace().map(entry).collect()
}

struct Case {
    why: &'static str,
    pod: &'static str,
    /// What the spec asks for.
    spec: &'static str,
    /// What the pod holds on its node.
    held: &'static str,
    /// The latter with defaults: thousandths of a core and bytes.
    non_zero: (i64, i64),
    fit_score: &'static str,
}

/// The answers are those of `resource.PodRequests` of component-helpers v0.36.4, called with the options of
/// kube-scheduler's `CalculateResource` and `calculatePodResourceRequest` under default feature gates.
const CASES: &[Case] = &[
    Case {
        why: "nothing said",
        pod: r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        spec: "",
        held: "",
        non_zero: (100, 209_715_200),
        fit_score: "cpu=100m memory=209715200",
    },
    Case {
        why: "containers add up, overhead on top, an explicit zero stays",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"100m","memory":"1Gi"}}},{"name":"b","resources":{"requests":{"cpu":"0","example.com/gpu":"2"}}}],"overhead":{"cpu":"10m","memory":"1Mi"}}}"#,
        spec: "cpu=110m example.com/gpu=2 memory=1025Mi",
        held: "cpu=110m example.com/gpu=2 memory=1025Mi",
        non_zero: (110, 1_284_505_600),
        fit_score: "cpu=110m example.com/gpu=2 memory=1225Mi",
    },
    Case {
        why: "the larger of init and app containers, resource by resource",
        pod: r#"{"spec":{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"2","memory":"1Mi"}}}],"containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"2Mi"}}}]}}"#,
        spec: "cpu=2 memory=2Mi",
        held: "cpu=2 memory=2Mi",
        non_zero: (2_000, 2_097_152),
        fit_score: "cpu=2 memory=2Mi",
    },
    Case {
        why: "an init container beside the sidecars before it",
        pod: r#"{"spec":{"initContainers":[{"name":"s1","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},{"name":"i","resources":{"requests":{"cpu":"5"}}},{"name":"s2","restartPolicy":"Always","resources":{"requests":{"cpu":"3","memory":"5"}}}],"containers":[{"name":"a","resources":{"requests":{"cpu":"1500m"}}}]}}"#,
        spec: "cpu=6 memory=5",
        held: "cpu=6 memory=5",
        non_zero: (6_000, 419_430_405),
        fit_score: "cpu=6 memory=419430405",
    },
    Case {
        why: "a sidecar after the init container does not run beside it; OnFailure is no sidecar",
        pod: r#"{"spec":{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"5"}}},{"name":"s1","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},{"name":"s2","restartPolicy":"OnFailure","resources":{"requests":{"cpu":"3","memory":"5"}}}],"containers":[{"name":"a","resources":{"requests":{"cpu":"500m"}}}]}}"#,
        spec: "cpu=5 memory=5",
        held: "cpu=5 memory=5",
        non_zero: (5_000, 419_430_400),
        fit_score: "cpu=5 memory=419430400",
    },
    Case {
        why: "pod level replaces the sum, and only for resources it may name",
        pod: r#"{"spec":{"resources":{"requests":{"cpu":"4","example.com/gpu":"1"},"limits":{"memory":"1Gi"}},"containers":[{"name":"a","resources":{"requests":{"cpu":"9","memory":"2Mi"}}},{"name":"b"}],"overhead":{"cpu":"1"}}}"#,
        spec: "cpu=5 memory=2Mi",
        held: "cpu=5 memory=2Mi",
        non_zero: (5_000, 2_097_152),
        fit_score: "cpu=10100m memory=202Mi",
    },
    Case {
        why: "pod level, kept by Go as a decimal: the overhead counts once",
        pod: r#"{"spec":{"resources":{"requests":{"memory":"1.5Gi"}},"containers":[{"name":"a"}],"overhead":{"memory":"100Mi"}}}"#,
        spec: "memory=1636Mi",
        held: "memory=1636Mi",
        non_zero: (100, 1_715_470_336),
        fit_score: "cpu=100m memory=300Mi",
    },
    Case {
        why: "huge pages at pod level",
        pod: r#"{"spec":{"resources":{"requests":{"cpu":"4","hugepages-2Mi":"4Mi"}},"containers":[{"name":"a"},{"name":"b"}]}}"#,
        spec: "cpu=4 hugepages-2Mi=4Mi",
        held: "cpu=4 hugepages-2Mi=4Mi",
        non_zero: (4_000, 419_430_400),
        fit_score: "cpu=200m memory=419430400",
    },
    Case {
        why: "limits at pod level change nothing",
        pod: r#"{"spec":{"resources":{"limits":{"cpu":"4"}},"containers":[{"name":"a"},{"name":"b"}]}}"#,
        spec: "",
        held: "",
        non_zero: (200, 419_430_400),
        fit_score: "cpu=200m memory=419430400",
    },
    Case {
        why: "requests at pod level for other resources are as good as none",
        pod: r#"{"spec":{"resources":{"requests":{"example.com/gpu":"4"}},"containers":[{"name":"a"}]}}"#,
        spec: "",
        held: "",
        non_zero: (100, 209_715_200),
        fit_score: "cpu=100m memory=209715200",
    },
    Case {
        why: "the largest of spec, actual and allocated",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"3"}}}]},"status":{"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2","memory":"1"}},"allocatedResources":{"cpu":"1500m","memory":"2"}}]}}"#,
        spec: "cpu=1 memory=3",
        held: "cpu=2 memory=3",
        non_zero: (2_000, 3),
        fit_score: "cpu=1 memory=3",
    },
    Case {
        why: "an infeasible resize does not count the spec",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"5","memory":"3"}}}]},"status":{"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}],"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2","memory":"1"}},"allocatedResources":{"cpu":"1500m"}}]}}"#,
        spec: "cpu=5 memory=3",
        held: "cpu=2 memory=1",
        non_zero: (2_000, 1),
        fit_score: "cpu=5 memory=3",
    },
    Case {
        why: "of two conditions the first decides",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"5"}}}]},"status":{"conditions":[{"type":"PodResizePending","status":"True","reason":"Deferred"},{"type":"PodResizePending","status":"True","reason":"Infeasible"}],"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2"}}}]}}"#,
        spec: "cpu=5",
        held: "cpu=5",
        non_zero: (5_000, 209_715_200),
        fit_score: "cpu=5 memory=209715200",
    },
    Case {
        why: "without resources a status says nothing, nor does one of another container",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},"status":{"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"3"}},{"name":"b","resources":{"requests":{"cpu":"7"}}}]}}"#,
        spec: "cpu=1",
        held: "cpu=1",
        non_zero: (1_000, 209_715_200),
        fit_score: "cpu=1 memory=209715200",
    },
    Case {
        why: "the status of a sidecar counts, that of an init container does not",
        pod: r#"{"spec":{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"1"}}},{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}],"containers":[{"name":"a"}]},"status":{"initContainerStatuses":[{"name":"i","resources":{"requests":{"cpu":"9"}}},{"name":"s","resources":{"requests":{"cpu":"2"}}}]}}"#,
        spec: "cpu=1",
        held: "cpu=2",
        non_zero: (2_100, 419_430_400),
        fit_score: "cpu=1100m memory=419430400",
    },
    Case {
        why: "of two statuses with one name the later counts, init containers being later",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},"status":{"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2"}}}],"initContainerStatuses":[{"name":"a","resources":{"requests":{"cpu":"3"}}}]}}"#,
        spec: "cpu=1",
        held: "cpu=3",
        non_zero: (3_000, 209_715_200),
        fit_score: "cpu=1 memory=209715200",
    },
    Case {
        why: "of two statuses with one name the later counts, even if it says nothing",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},"status":{"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"2"}}},{"name":"a"}]}}"#,
        spec: "cpu=1",
        held: "cpu=1",
        non_zero: (1_000, 209_715_200),
        fit_score: "cpu=1 memory=209715200",
    },
    Case {
        why: "pod level: actual and allocated",
        pod: r#"{"spec":{"resources":{"requests":{"cpu":"4","memory":"10"}},"containers":[{"name":"a"}]},"status":{"resources":{"requests":{"cpu":"5"}},"allocatedResources":{"memory":"12"}}}"#,
        spec: "cpu=4 memory=10",
        held: "cpu=5 memory=12",
        non_zero: (5_000, 12),
        fit_score: "cpu=100m memory=209715200",
    },
    Case {
        why: "pod level, infeasible: what is not reported is zero, not what the containers ask for",
        pod: r#"{"spec":{"resources":{"requests":{"cpu":"4","memory":"10"}},"containers":[{"name":"a","resources":{"requests":{"memory":"99"}}}],"overhead":{"memory":"1"}},"status":{"conditions":[{"type":"PodResizePending","reason":"Infeasible"}],"resources":{"requests":{"cpu":"3"}}}}"#,
        spec: "cpu=4 memory=11",
        held: "cpu=3 memory=1",
        non_zero: (3_000, 1),
        fit_score: "cpu=100m memory=100",
    },
    Case {
        why: "pod level: allocated alone says nothing",
        pod: r#"{"spec":{"resources":{"requests":{"cpu":"4"}},"containers":[{"name":"a"}]},"status":{"allocatedResources":{"cpu":"12"}}}"#,
        spec: "cpu=4",
        held: "cpu=4",
        non_zero: (4_000, 209_715_200),
        fit_score: "cpu=100m memory=209715200",
    },
    Case {
        why: "status at pod level without requests at pod level",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]},"status":{"resources":{"requests":{"cpu":"5"}}}}"#,
        spec: "cpu=1",
        held: "cpu=1",
        non_zero: (1_000, 209_715_200),
        fit_score: "cpu=1 memory=209715200",
    },
    Case {
        why: "sums are exact, amounts are rounded up at the end",
        pod: r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1n","memory":"1m"}}},{"name":"b","resources":{"requests":{"cpu":"1500u","memory":"1500m"}}}]}}"#,
        spec: "cpu=1500001n memory=1501m",
        held: "cpu=1500001n memory=1501m",
        non_zero: (2, 2),
        fit_score: "cpu=1500001n memory=1501m",
    },
    Case {
        why: "no containers",
        pod: r#"{"spec":{"containers":[]}}"#,
        spec: "",
        held: "",
        non_zero: (0, 0),
        fit_score: "",
    },
    Case {
        why: "pod level: no default for what an init container names",
        pod: r#"{"spec":{"resources":{"requests":{"memory":"10"}},"initContainers":[{"name":"i","resources":{"requests":{"cpu":"1"}}}],"containers":[{"name":"a"},{"name":"b"}]}}"#,
        spec: "cpu=1 memory=10",
        held: "cpu=1 memory=10",
        non_zero: (1_000, 10),
        fit_score: "cpu=1 memory=419430400",
    },
    Case {
        why: "pod level: no default for what only the overhead names",
        pod: r#"{"spec":{"resources":{"requests":{"memory":"10"}},"containers":[{"name":"a"},{"name":"b"}],"overhead":{"cpu":"7m"}}}"#,
        spec: "cpu=7m memory=10",
        held: "cpu=7m memory=10",
        non_zero: (7, 10),
        fit_score: "cpu=207m memory=419430400",
    },
    Case {
        why: "a request below zero, which the API server refuses, does not hide what the sidecars take",
        pod: r#"{"spec":{"initContainers":[{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}],"containers":[{"name":"a","resources":{"requests":{"cpu":"-1","memory":"1"}}}]}}"#,
        spec: "cpu=2 memory=1",
        held: "cpu=2 memory=1",
        non_zero: (2_000, 209_715_201),
        fit_score: "cpu=2 memory=209715201",
    },
];

#[test]
fn answers_are_upstreams() {
    for case in CASES {
        let pod = pod(case.pod);
        let why = case.why;
        assert_eq!(pod.spec.requests.list, list(case.spec), "{why}: spec");
        assert_eq!(pod.requests().list, list(case.held), "{why}: held");
        let non_zero = (pod.requests().non_zero_milli_cpu, pod.requests().non_zero_memory);
        assert_eq!(non_zero, case.non_zero, "{why}: with defaults");
        assert_eq!(pod.spec.fit_score_requests, list(case.fit_score), "{why}: score");
    }
}

#[test]
fn a_pod_that_is_not_being_resized_keeps_no_requests_of_its_own() {
    // The kubelet reports the resources of every container, resized or not; a list for each of a million pods
    // would more than double what they cost.
    let running =
        pod(r#"{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]},
        "status":{"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"1000m","memory":"1Gi"}},
        "allocatedResources":{"cpu":"1","memory":"1Gi"}}]}}"#);
    assert!(running.status.is_none(), "{:?}", running.status);
}

// A naive model: one resource at a time, in integers, by the formula of the documentation.

type Amounts = BTreeMap<&'static str, i64>;

const NAMES: [&str; 4] = ["cpu", "example.com/gpu", "hugepages-2Mi", "memory"];
const DEFAULT_AMOUNTS: [(&str, i64); 2] = [("cpu", 100), ("memory", 200 << 20)];

#[derive(Clone, Debug)]
struct NaiveContainer {
    asked: Amounts,
    sidecar: bool,
    status: Option<NaiveStatus>,
}

#[derive(Clone, Debug)]
struct NaiveStatus {
    actual: Option<Amounts>,
    allocated: Amounts,
}

#[derive(Clone, Debug)]
struct NaivePod {
    containers: Vec<NaiveContainer>,
    init_containers: Vec<NaiveContainer>,
    overhead: Amounts,
    pod_level: Option<Amounts>,
    pod_status: NaiveStatus,
    infeasible: bool,
}

impl NaivePod {
    fn effective(&self, name: &str, asked: &Amounts, status: Option<&NaiveStatus>) -> Option<i64> {
        let asked = asked.get(name).copied();
        let Some(NaiveStatus { actual: Some(actual), allocated }) = status else { return asked };
        let asked = asked.filter(|_| !self.infeasible);
        asked.max(actual.get(name).copied()).max(allocated.get(name).copied())
    }

    fn total(&self, name: &str, bound: bool, default: Option<i64>, pod_level: bool) -> Option<i64> {
        let of = |container: &NaiveContainer, resizable: bool| {
            let status = container.status.as_ref().filter(|_| bound && resizable);
            self.effective(name, &container.asked, status).or(default)
        };
        let sidecars_before = |index: usize| {
            self.init_containers[..index].iter().filter(|container| container.sidecar).map(|c| of(c, true))
        };
        let app = sum(self
            .containers
            .iter()
            .map(|c| of(c, true))
            .chain(sidecars_before(self.init_containers.len())));
        let init = (0..self.init_containers.len()).map(|index| {
            let container = &self.init_containers[index];
            sum(sidecars_before(index).chain([of(container, container.sidecar)]))
        });
        let mut total = init.fold(app, Option::max);
        if pod_level
            && name != "example.com/gpu"
            && let Some(asked) = self.pod_level.as_ref().filter(|asked| asked.contains_key(name))
        {
            total = Some(self.effective(name, asked, Some(&self.pod_status).filter(|_| bound)).unwrap_or(0));
        }
        sum([total, self.overhead.get(name).copied()])
    }

    fn json(&self) -> Value {
        let containers = |containers: &[NaiveContainer], prefix: &str| -> Vec<Value> {
            let container = |(index, container): (usize, &NaiveContainer)| {
                let policy = container.sidecar.then_some("Always");
                json!({ "name": format!("{prefix}{index}"), "restartPolicy": policy,
                    "resources": { "requests": quantities(&container.asked) } })
            };
            containers.iter().enumerate().map(container).collect()
        };
        let statuses = |containers: &[NaiveContainer], prefix: &str| -> Vec<Value> {
            let status = |(index, container): (usize, &NaiveContainer)| {
                let status = container.status.as_ref()?;
                Some(
                    json!({ "name": format!("{prefix}{index}"), "resources": requests(status.actual.as_ref()),
                    "allocatedResources": quantities(&status.allocated) }),
                )
            };
            containers.iter().enumerate().filter_map(status).collect()
        };
        let reason = if self.infeasible { "Infeasible" } else { "Deferred" };
        json!({
            "spec": {
                "containers": containers(&self.containers, "app"),
                "initContainers": containers(&self.init_containers, "init"),
                "overhead": quantities(&self.overhead),
                "resources": requests(self.pod_level.as_ref()),
            },
            "status": {
                "conditions": [{ "type": "Ready" }, { "type": "PodResizePending", "reason": reason }],
                "containerStatuses": statuses(&self.containers, "app"),
                "initContainerStatuses": statuses(&self.init_containers, "init"),
                "resources": requests(self.pod_status.actual.as_ref()),
                "allocatedResources": quantities(&self.pod_status.allocated),
            }
        })
    }
}

fn sum(amounts: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    amounts.into_iter().flatten().reduce(|a, b| a + b)
}

fn quantities(amounts: &Amounts) -> Value {
    let unit = |name: &str| if name == "cpu" { "m" } else { "" };
    amounts
        .iter()
        .map(|(name, amount)| (name.to_string(), json!(format!("{amount}{}", unit(name)))))
        .collect()
}

fn requests(amounts: Option<&Amounts>) -> Value {
    amounts.map_or(Value::Null, |amounts| json!({ "requests": quantities(amounts) }))
}

fn any_amounts() -> impl Strategy<Value = Amounts> {
    // Few values, so that ties occur.
    prop::collection::btree_map(prop::sample::select(&NAMES[..]), 0..6_i64, 0..4)
}

fn any_status() -> impl Strategy<Value = NaiveStatus> {
    (prop::option::of(any_amounts()), any_amounts())
        .prop_map(|(actual, allocated)| NaiveStatus { actual, allocated })
}

fn any_containers() -> impl Strategy<Value = Vec<NaiveContainer>> {
    let container = (any_amounts(), any::<bool>(), prop::option::of(any_status()))
        .prop_map(|(asked, sidecar, status)| NaiveContainer { asked, sidecar, status });
    prop::collection::vec(container, 0..4)
}

fn any_pod() -> impl Strategy<Value = NaivePod> {
    let parts =
        (any_containers(), any_containers(), any_amounts(), prop::option::of(any_amounts()), any_status());
    (parts, any::<bool>()).prop_map(
        |((containers, init_containers, overhead, pod_level, pod_status), infeasible)| NaivePod {
            containers,
            init_containers,
            overhead,
            pod_level,
            pod_status,
            infeasible,
        },
    )
}

fn amounts(list: &ResourceList) -> BTreeMap<String, i64> {
    list.iter().map(|(name, _)| (name.to_string(), list.amount(name))).collect()
}

proptest! {
    #![proptest_config(crate::seeded())]

    #[test]
    fn the_formula_is_the_naive_one(naive in any_pod()) {
        let pod = pod(&naive.json().to_string());
        let expected = |bound: bool| -> BTreeMap<String, i64> {
            let total = |name: &&str| Some(((*name).to_owned(), naive.total(name, bound, None, true)?));
            NAMES.iter().filter_map(total).collect()
        };
        prop_assert_eq!(amounts(&pod.spec.requests.list), expected(false));
        let held = expected(true);
        prop_assert_eq!(&amounts(&pod.requests().list), &held);
        let resources = &pod.requests().resources;
        prop_assert_eq!(resources.milli_cpu, held.get("cpu").copied().unwrap_or(0));
        prop_assert_eq!(resources.memory, held.get("memory").copied().unwrap_or(0));
        for scalar in ["example.com/gpu", "hugepages-2Mi"] {
            prop_assert_eq!(resources.scalar(scalar), held.get(scalar).copied());
        }

        let has_pod_level =
            naive.pod_level.as_ref().is_some_and(|asked| asked.keys().any(|name| *name != "example.com/gpu"));
        let non_zero = DEFAULT_AMOUNTS.map(|(name, default)| {
            let default = (!has_pod_level || !held.contains_key(name)).then_some(default);
            naive.total(name, true, default, true).unwrap_or(0)
        });
        prop_assert_eq!([pod.requests().non_zero_milli_cpu, pod.requests().non_zero_memory], non_zero);
        for (name, default) in DEFAULT_AMOUNTS {
            let expected = naive.total(name, false, Some(default), false).unwrap_or(0);
            prop_assert_eq!(pod.spec.fit_score_requests.amount(name), expected);
        }
    }
}

#[test]
fn plain_requests_know_neither_sidecars_nor_requests_at_pod_level() {
    for (spec, milli_cpu, plain) in [
        (json!({}), 300, 300),
        (
            json!({ "initContainers": [{ "name": "i", "resources": { "requests": { "cpu": "1" } } }] }),
            1_000,
            1_000,
        ),
        (
            json!({ "initContainers": [{ "name": "i", "restartPolicy": "Always", "resources": { "requests": { "cpu": "1" } } }] }),
            1_300,
            1_000,
        ),
        (json!({ "resources": { "requests": { "cpu": "2" } } }), 2_000, 300),
    ] {
        let mut spec = spec;
        spec["containers"] = json!([{ "name": "a", "resources": { "requests": { "cpu": "300m" } } }]);
        let pod = pod(&json!({ "spec": spec }).to_string());
        let asked = [pod.spec.requests.resources.milli_cpu, pod.spec.plain_requests().milli_cpu];
        assert_eq!(asked, [milli_cpu, plain], "{spec}");
    }
}
