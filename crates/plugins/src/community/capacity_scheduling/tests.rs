//! The verdicts of PreFilter, and what the plugin declares. Preemption is in `conformance/tests/quotas.rs`.

use serde_json::{Value, json};
use supercargo_testkit::{
    PodBuilder, ReadsCheck, TestCluster, added, check_points, cluster, deleted, node, pod, trial,
};

use super::guaranteed::{added_up, guaranteed};
use super::usage::{used_in, used_in_all};
use super::*;

fn quota(namespace: &str, min: &Value, max: &Value) -> Value {
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": { "namespace": namespace, "name": "quota" }, "spec": { "min": min, "max": max },
    })
}

fn asking(namespace: &str, name: &str, memory: &str) -> PodBuilder {
    pod(name).namespace(namespace).memory(memory)
}

fn two_quotas() -> TestCluster {
    let cluster = cluster().reading_for(&CapacityScheduling.reads()).with(node("n1"));
    let amount = |memory: &str| json!({ "cpu": "0", "memory": memory });
    ["ns1", "ns2"]
        .into_iter()
        .fold(cluster, |cluster, namespace| cluster.with(quota(namespace, &amount("1000"), &amount("2000"))))
}

#[test]
fn a_pod_is_within_its_quota_and_within_all_of_them() {
    let max = "unschedulable: Pod ns2/new is rejected in PreFilter because ElasticQuota ns2 is more than Max";
    let total = "unschedulable: Pod ns2/new is rejected in PreFilter because total ElasticQuota used is more than min";
    // What ns1 and ns2 use, what the pod asks for, and the word on it.
    for (used, asked, expected) in [
        (["300", "0"], "500", "all nodes"),
        (["0", "0"], "2000", "all nodes"),
        (["0", "0"], "2001", max),
        (["0", "300"], "1800", max),
        (["1800", "200"], "500", total),
        (["1500", "0"], "500", "all nodes"),
        (["1500", "0"], "501", total),
    ] {
        let mut cluster = two_quotas();
        for (namespace, used) in ["ns1", "ns2"].into_iter().zip(used) {
            cluster.put(asking(namespace, "old", used).with(json!({ "spec": { "nodeName": "n1" } })));
        }
        let said = trial::<CapacityScheduling>().pre_filter(&mut cluster, asking("ns2", "new", asked));
        assert_eq!(said, expected, "{used:?} and {asked}");
    }
}

#[test]
fn a_namespace_without_a_quota_is_free() {
    let said = trial::<CapacityScheduling>().pre_filter(&mut two_quotas(), asking("other", "new", "9999"));
    assert_eq!(said, "all nodes");
}

#[test]
fn sums_stay_at_their_limit() {
    // What each of the quotas is guaranteed and may have, what ns1 uses, what the pod of ns2 asks for, and the word on it.
    for (min, used, asked, expected) in [
        // Two of them are more than 64 bits hold, and not less than nothing.
        ("9223372036854775807", "1", "1", "all nodes"),
        ("1", "9223372036854775807", "1", "total"),
        ("1", "9223372036854775807", "9223372036854775807", "Max"),
        ("9223372036854775807", "9223372036854775807", "9223372036854775807", "total"),
    ] {
        let mut cluster = cluster().reading_for(&CapacityScheduling.reads()).with(node("n1"));
        let max = if expected == "Max" { "2" } else { "9223372036854775807" };
        for namespace in ["ns1", "ns2"] {
            let amount = |memory: &str| json!({ "cpu": "0", "memory": memory });
            cluster.put(quota(namespace, &amount(min), &amount(max)));
        }
        cluster.put(asking("ns1", "old", used).with(json!({ "spec": { "nodeName": "n1" } })));
        let said = trial::<CapacityScheduling>().pre_filter(&mut cluster, asking("ns2", "new", asked));
        assert!(said.contains(expected), "{min} {used} {asked}: {said:?}");
    }
}

#[test]
fn nominated_pods_count_if_they_go_first() {
    // The namespace and priority of a nominated pod of 800, and the word on one of 1,500 and priority 10.
    for (namespace, priority, expected) in
        [("ns2", 10, "Max"), ("ns2", 9, "all nodes"), ("ns1", 0, "total"), ("other", 99, "all nodes")]
    {
        let mut cluster = two_quotas();
        let nominated = asking(namespace, "nominated", "800").priority(priority);
        cluster.put(nominated.with(json!({ "status": { "nominatedNodeName": "n1" } })));
        let new = asking("ns2", "new", "1500").priority(10);
        let said = trial::<CapacityScheduling>().pre_filter(&mut cluster, new);
        assert!(said.contains(expected), "{namespace} {priority}: {said:?}");
    }
}

#[test]
fn a_sidecar_is_an_init_container_unless_the_fix_is_asked_for() {
    let sidecar = json!({ "name": "side", "restartPolicy": "Always", "resources": { "requests": { "memory": "600" } } });
    let with_sidecar = |pod: PodBuilder| pod.with(json!({ "spec": { "initContainers": [sidecar.clone()] } }));
    // Whether the pod that is there, or the one that asks, has the sidecar.
    for (has_old, has_new) in [(true, false), (false, true)] {
        for (is_mended, expected) in [(false, "all nodes"), (true, "Max")] {
            let mut cluster = two_quotas();
            cluster.fixes.quota_sidecars = is_mended;
            let old = asking("ns2", "old", "1000").with(json!({ "spec": { "nodeName": "n1" } }));
            cluster.put(if has_old { with_sidecar(old) } else { old });
            let new = asking("ns2", "new", "1000");
            let new = if has_new { with_sidecar(new) } else { new };
            let said = trial::<CapacityScheduling>().pre_filter(&mut cluster, new);
            assert!(said.contains(expected), "{has_old} {has_new} {is_mended}: {said:?}");
        }
    }
}

#[test]
fn whoever_asks_hears_who_has_what() {
    let mut cluster = two_quotas();
    cluster.put(asking("ns1", "old", "1200").with(json!({ "spec": { "nodeName": "n1" } })));
    for (asked, expected) in [
        ("800", None),
        ("1000", Some("the quota of namespace ns2 lacks 200 memory; ns1 has borrowed 200 memory")),
        ("2500", Some("the quota of namespace ns2 lacks 500 memory: its max would be exceeded")),
    ] {
        let pod = cluster.pod(asking("ns2", "new", asked));
        let said = CapacityScheduling.background(&cluster.context(), &pod);
        assert_eq!(said.as_deref(), expected, "{asked}");
    }
}

#[test]
fn what_one_quota_names_is_guaranteed_to_nobody_else() {
    // Whether what quotas do not name is free: ns1 names cpu alone, and the min of ns2 names memory.
    let mut cluster = cluster().reading_for(&CapacityScheduling.reads()).with(node("n1"));
    cluster.fixes.unlisted_quota_resources = true;
    cluster.put(quota("ns1", &json!({ "cpu": "1" }), &json!({ "cpu": "1" })));
    cluster.put(quota("ns2", &json!({ "cpu": "1", "memory": "1000" }), &json!({ "cpu": "1" })));
    cluster.put(asking("ns1", "old", "600").with(json!({ "spec": { "nodeName": "n1" } })));
    let pod = cluster.pod(asking("ns2", "new", "500"));
    let said = CapacityScheduling.background(&cluster.context(), &pod);
    let expected = "the quota of namespace ns2 lacks 100 memory; ns1 has borrowed 600 memory";
    assert_eq!(said.as_deref(), Some(expected));
    // Where no min names it, nobody counts it.
    cluster.put(quota("ns2", &json!({ "cpu": "1" }), &json!({ "cpu": "1" })));
    assert_eq!(CapacityScheduling.background(&cluster.context(), &pod), None);
}

#[test]
fn sums_are_those_of_a_look_at_every_quota() {
    const NAMESPACES: [&str; 3] = ["ns1", "ns2", "ns3"];
    let (trial, sized) = (trial::<CapacityScheduling>(), |number: u64| (number % 900).to_string());
    for mut seed in 0..30 {
        let mut next = |limit: usize| {
            seed = u64::wrapping_add(
                u64::wrapping_mul(seed, 6_364_136_223_846_793_005),
                1_442_695_040_888_963_407,
            );
            (seed >> 33) as usize % limit
        };
        let mut cluster = cluster().reading_for(&CapacityScheduling.reads()).with(node("n1"));
        trial.started(&mut cluster);
        let mut known: Vec<Value> = Vec::new();
        for step in 0..60 {
            let namespace = NAMESPACES[next(NAMESPACES.len())];
            if next(3) == 0 {
                let pod = asking(namespace, &format!("p{step}"), &sized(next(1000) as u64));
                cluster.put(pod.with(json!({ "spec": { "nodeName": "n1" } })));
            } else if next(3) == 0 && !known.is_empty() {
                let gone = known.swap_remove(next(known.len()));
                cluster.remove_object(gone.clone());
                trial.observed(&mut cluster, &deleted(gone));
            } else {
                let mut min = json!({ "cpu": "0", "memory": sized(next(1000) as u64) });
                if next(2) == 0 {
                    min["example.com/gpu"] = json!(sized(next(1000) as u64));
                }
                let mut quota = quota(namespace, &min, &json!({}));
                quota["metadata"]["name"] = json!(["a", "b"][next(2)]);
                if next(3) == 0 {
                    quota["apiVersion"] = json!("scheduling.sigs.k8s.io/v1alpha1");
                }
                let is_same = |known: &Value| {
                    known["metadata"] == quota["metadata"] && known["apiVersion"] == quota["apiVersion"]
                };
                known.retain(|known| !is_same(known));
                known.push(quota.clone());
                cluster.put(quota.clone());
                trial.observed(&mut cluster, &added(quota));
            }
            let context = cluster.context();
            let memory = context.memories.get::<QuotaMemory>().expect("it has begun");
            assert!(memory.guaranteed.is_of(&context), "nobody looks at every quota");
            let resources = ["example.com/gpu", "other"];
            let words = |bound: &amounts::Bound| {
                let much = resources.map(|name| (name, supercargo_model::Quantity::from(1)));
                let much: supercargo_model::ResourceList = much.into_iter().collect();
                bound.excess(&supercargo_model::Resources::from_list(&much), amounts::Unbounded::all(true))
            };
            assert_eq!(words(&guaranteed(&context)), words(&added_up(&context).get()));
            let mut used = supercargo_model::Resources::default();
            for namespace in
                NAMESPACES.into_iter().filter(|namespace| quota_of(&context, namespace).is_some())
            {
                used.add(used_in(&context, namespace));
            }
            assert_eq!(*used_in_all(&context), used);
        }
    }
}

#[test]
fn it_is_what_it_declares() {
    check_points!(CapacityScheduling);
    let amount = json!({ "cpu": "1", "memory": "1Gi" });
    ReadsCheck::of::<CapacityScheduling>().object(quota("default", &amount, &amount)).check();
}
