use serde_json::json;
use supercargo_testkit::{args_of, cluster, node, pod, problems_of, trial, trial_with};

use super::*;

const GI: i64 = 1 << 30;

#[test]
fn vectors() {
    let levels = |used_cpu: i64, used_memory: i64, cpu: i64, memory: i64| {
        [
            Level { allocatable: 4000, allocated: used_cpu, requested: used_cpu + cpu },
            Level { allocatable: 8 * GI, allocated: used_memory, requested: used_memory + memory },
        ]
    };
    assert_eq!(score(&levels(1400, 3 * GI, 500, GI)), 75);
    assert_eq!(score(&levels(3000, GI, 100, 4 * GI)), 87);
    assert_eq!(score(&[]), 75, "a node without any of the resources");
}

#[test]
fn nodes_that_become_more_even_score_higher() {
    let mut cluster = cluster()
        .with(node("even"))
        .with(node("uneven"))
        .with(pod("a").cpu("1400m").memory("3Gi").on("even"))
        .with(pod("b").cpu("3").memory("1Gi").on("uneven"));
    let plugin = trial::<NodeResourcesBalancedAllocation>();
    assert_eq!(plugin.scores(&mut cluster, pod("p").cpu("500m").memory("1Gi")), ["even: 75", "uneven: 75"]);
    assert_eq!(plugin.scores(&mut cluster, pod("p").cpu("100m").memory("4Gi")), ["even: 63", "uneven: 87"]);
    assert_eq!(plugin.scores(&mut cluster, pod("p")), ["*: skip"], "it changes no balance");
    assert_eq!(plugin.scores(&mut cluster, pod("p").request("example.com/gpu", "1")), ["*: skip"]);
    assert_eq!(
        plugin.unprepared(&mut cluster, pod("p").cpu("1")),
        ["ok"],
        "it can do without its preparation"
    );
}

#[test]
fn more_than_two_resources_are_balanced_by_their_deviation() {
    let resource = |name: &str| json!({ "name": name, "weight": 1 });
    let resources = json!([resource("cpu"), resource("memory"), resource("example.com/gpu")]);
    let plugin = trial_with::<NodeResourcesBalancedAllocation>(json!({ "resources": resources }));
    let gpus = || node("n").allocatable("example.com/gpu", "4");
    let half = || pod("p").cpu("2").memory("4Gi");
    let mut cluster = cluster().with(gpus());
    assert_eq!(plugin.scores(&mut cluster, half().request("example.com/gpu", "2")), ["n: 75"]);
    // Shares of ½, ½ and 1 deviate by √(1/18) ≈ 0.2357 from their mean.
    assert_eq!(plugin.scores(&mut cluster, half().request("example.com/gpu", "4")), ["n: 63"]);
    assert_eq!(plugin.scores(&mut cluster, half()), ["n: 75"], "what is not asked for does not count");
}

#[test]
fn arguments() {
    let resources = json!([{ "name": "cpu", "weight": 1 }, { "name": "memory", "weight": 1 }]);
    assert_eq!(args_of::<NodeResourcesBalancedAllocation>(json!({})), json!({ "resources": resources }));
    let cpu = |weight: i64| json!({ "name": "cpu", "weight": weight });
    let problems = |resources: &[serde_json::Value]| {
        problems_of::<NodeResourcesBalancedAllocation>(json!({ "resources": resources }))
    };
    assert_eq!(problems(&[cpu(0)]), Vec::<String>::new(), "0 is unset");
    assert_eq!(problems(&[cpu(1), cpu(1)]), ["resources[1].name: Duplicate value: \"cpu\""]);
    assert_eq!(problems(&[cpu(2)]), ["resources[0].weight: Invalid value: 2: must be 1"]);
}
