//! The plugin as a whole, on small clusters. A scheduler around it is in `conformance/tests/numa.rs`.

use serde_json::{Value, json};
use supercargo_framework::Reads;
use supercargo_testkit::{
    PodBuilder, ReadsCheck, TestCluster, added, check_points, cluster, deleted, node, pod, trial, trial_with,
};

use super::*;

/// A zone with so much cpu and memory left, and as much altogether.
fn zone(number: u32, cpu: &str, memory: &str) -> Value {
    let resource = |name: &str, amount: &str| json!({ "name": name, "capacity": amount, "allocatable": amount, "available": amount });
    json!({ "name": format!("node-{number}"), "type": "Node", "resources": [resource("cpu", cpu), resource("memory", memory)] })
}

fn topology(node: &str, scope: &str, zones: &[Value]) -> Value {
    json!({
        "apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": { "name": node },
        "attributes": [
            { "name": "topologyManagerPolicy", "value": "single-numa-node" },
            { "name": "topologyManagerScope", "value": scope },
        ],
        "zones": zones,
    })
}

fn with_attribute(mut topology: Value, name: &str, value: &str) -> Value {
    let attributes = topology["attributes"].as_array_mut().expect("it has attributes");
    attributes.push(json!({ "name": name, "value": value }));
    topology
}

fn container(name: &str, cpu: &str, memory: &str) -> Value {
    let amounts = json!({ "cpu": cpu, "memory": memory });
    json!({ "name": name, "resources": { "requests": amounts, "limits": amounts } })
}

/// A pod to which all is promised that its containers ask for.
fn guaranteed(name: &str, containers: &[(&str, &str)]) -> PodBuilder {
    let containers = containers.iter().enumerate();
    let containers: Vec<Value> =
        containers.map(|(index, (cpu, memory))| container(&format!("c{index}"), cpu, memory)).collect();
    pod(name).with(json!({ "spec": { "containers": containers } }))
}

fn numa_cluster() -> TestCluster {
    let plugin = NodeResourceTopologyMatch::new(NodeResourceTopologyMatchArgs::default());
    cluster().reading_for(&Plugin::reads(&plugin))
}

/// The nodes of the specification, two zones each.
fn three_nodes(scope: &str) -> TestCluster {
    let sizes = [("n1", "4", "500Mi"), ("n2", "2", "50Mi"), ("n3", "6", "60Mi")];
    sizes.into_iter().fold(numa_cluster(), |cluster, (name, cpu, memory)| {
        let zones = [zone(0, cpu, memory), zone(1, cpu, memory)];
        cluster.with(node(name)).with(topology(name, scope, &zones))
    })
}

#[test]
fn it_is_what_it_declares() {
    check_points!(NodeResourceTopologyMatch);
    let of_node = topology("node-0", "container", &[zone(0, "1", "1Gi"), zone(1, "2", "2Gi")]);
    for args in [
        json!({}),
        json!({ "scoringStrategy": { "type": "LeastNUMANodes" } }),
        json!({ "discardReservedNodes": true }),
        json!({ "cacheResyncPeriodSeconds": 5 }),
    ] {
        ReadsCheck::with_args::<NodeResourceTopologyMatch>(args).object(of_node.clone()).check();
    }
    let plugin = NodeResourceTopologyMatch::new(NodeResourceTopologyMatchArgs::default());
    let reads: Reads = Plugin::reads(&plugin);
    assert_eq!(reads.unkept(), None, "its answers are kept");
}

#[test]
fn a_container_needs_a_zone_of_its_own() {
    let fits = "n1: ok";
    let container = "n1: unschedulable: cannot align container";
    for (what, pod, expected) in [
        ("one zone has it", guaranteed("a", &[("3", "1Gi")]), fits),
        ("only two together have it", guaranteed("a", &[("5", "1Gi")]), container),
        ("one zone each", guaranteed("a", &[("3", "1Gi"), ("3", "1Gi")]), fits),
        (
            "no zone is left for the third",
            guaranteed("a", &[("3", "1Gi"), ("3", "1Gi"), ("2", "1Gi")]),
            container,
        ),
        ("both in one zone", guaranteed("a", &[("3", "1Gi"), ("1", "1Gi"), ("4", "1Gi")]), fits),
        ("nothing is promised to it", pod("a").cpu("9"), fits),
        ("nobody has it", guaranteed("a", &[("1", "9Gi")]), container),
    ] {
        let zones = [zone(0, "4", "4Gi"), zone(1, "4", "4Gi")];
        let mut cluster = numa_cluster().with(node("n1")).with(topology("n1", "container", &zones));
        assert_eq!(trial::<NodeResourceTopologyMatch>().filter(&mut cluster, pod), [expected], "{what}");
    }
}

#[test]
fn zones_may_have_any_numbers_in_any_order() {
    let zones = [zone(70, "4", "4Gi"), zone(3, "2", "4Gi")];
    for scope in ["container", "pod"] {
        for strategy in ["LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"] {
            let mut cluster = numa_cluster().with(node("n1")).with(topology("n1", scope, &zones));
            let trial =
                trial_with::<NodeResourceTopologyMatch>(json!({ "scoringStrategy": { "type": strategy } }));
            let said = trial.filter(&mut cluster, guaranteed("a", &[("3", "1Gi"), ("1", "1Gi")]));
            assert_eq!(said, ["n1: ok"], "{scope} {strategy}");
            let scores = trial.scores(&mut cluster, guaranteed("a", &[("3", "1Gi"), ("1", "1Gi")]));
            assert_ne!(scores, ["n1: 0"], "{scope} {strategy}");
        }
    }
}

#[test]
fn a_node_with_more_zones_than_it_says_fails_the_pod_unless_the_fix_is_asked_for() {
    let zones = [0, 1, 2, 3].map(|number| zone(number, "1", "1Gi"));
    let topology = with_attribute(topology("n1", "container", &zones), "topologyManagerMaxNUMANodes", "2");
    let trial =
        trial_with::<NodeResourceTopologyMatch>(json!({ "scoringStrategy": { "type": "LeastNUMANodes" } }));
    for (is_mended, expected) in [(false, "n1: -75"), (true, "n1: 0")] {
        let mut cluster = numa_cluster().with(node("n1")).with(topology.clone());
        cluster.fixes.numa_node_points = is_mended;
        assert_eq!(trial.scores(&mut cluster, guaranteed("a", &[("4", "1Gi")])), [expected]);
    }
}

#[test]
fn points_are_those_of_the_specification() {
    for (strategy, expected) in [
        ("LeastAllocated", ["n1: 73", "n2: 30", "n3: 66"]),
        ("MostAllocated", ["n1: 27", "n2: 70", "n3: 33"]),
        ("BalancedAllocation", ["n1: 89", "n2: 82", "n3: 100"]),
    ] {
        let trial =
            trial_with::<NodeResourceTopologyMatch>(json!({ "scoringStrategy": { "type": strategy } }));
        let scores = trial.scores(&mut three_nodes("pod"), guaranteed("a", &[("2", "20Mi")]));
        assert_eq!(scores, expected, "{strategy}");
    }
    let trial =
        trial_with::<NodeResourceTopologyMatch>(json!({ "scoringStrategy": { "type": "LeastNUMANodes" } }));
    for (cpu, expected) in [
        ("2", ["n1: 94", "n2: 94", "n3: 94"]),
        ("4", ["n1: 94", "n2: 82", "n3: 94"]),
        ("6", ["n1: 82", "n2: 0", "n3: 94"]),
    ] {
        let scores = trial.scores(&mut three_nodes("container"), guaranteed("a", &[(cpu, "50Mi")]));
        assert_eq!(scores, expected, "{cpu}");
    }
    let two = guaranteed("a", &[("2", "50Mi"), ("2", "50Mi")]);
    assert_eq!(trial.scores(&mut three_nodes("pod"), two), ["n1: 94", "n2: 82", "n3: 82"]);
}

#[test]
fn less_than_nothing_is_no_reason_to_fail_a_pod() {
    let trial = trial_with::<NodeResourceTopologyMatch>(
        json!({ "scoringStrategy": { "type": "BalancedAllocation" } }),
    );
    for scope in ["container", "pod"] {
        let zones = [zone(0, "4", "-1Mi"), zone(1, "4", "-1Mi")];
        let mut cluster = numa_cluster().with(node("n1")).with(topology("n1", scope, &zones));
        assert_eq!(trial.scores(&mut cluster, guaranteed("a", &[("1", "1Gi")])), ["n1: 0"], "{scope}");
    }
}

#[test]
fn nothing_asked_for_is_no_division_by_zero() {
    let whole = json!({ "cpu": "1", "memory": "1Gi" });
    let spec =
        json!({ "containers": [{ "name": "c" }], "resources": { "requests": whole, "limits": whole } });
    for strategy in ["LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"] {
        for scope in ["container", "pod"] {
            let trial =
                trial_with::<NodeResourceTopologyMatch>(json!({ "scoringStrategy": { "type": strategy } }));
            let scores = trial.scores(&mut three_nodes(scope), pod("a").with(json!({ "spec": spec })));
            assert_eq!(scores, ["n1: 100", "n2: 100", "n3: 100"], "{strategy} {scope}");
        }
    }
}

#[test]
fn many_zones_end_somewhere() {
    let zones: Vec<Value> = (0..64).map(|number| zone(number, "1", "1Gi")).collect();
    let mut cluster = numa_cluster().with(node("n1")).with(topology("n1", "pod", &zones));
    let trial =
        trial_with::<NodeResourceTopologyMatch>(json!({ "scoringStrategy": { "type": "LeastNUMANodes" } }));
    assert_eq!(trial.scores(&mut cluster, guaranteed("a", &[("2", "1Gi")])), ["n1: 82"]);
    assert_eq!(trial.scores(&mut cluster, guaranteed("a", &[("40", "1Gi")])), ["n1: 0"]);
}

#[test]
fn a_node_that_is_given_to_a_pod_is_left_alone_until_that_is_bound() {
    let trial = trial_with::<NodeResourceTopologyMatch>(json!({ "discardReservedNodes": true }));
    let mut cluster = three_nodes("pod");
    let small = || guaranteed("b", &[("1", "1Mi")]);
    let mut attempt = trial.attempt(&mut cluster, guaranteed("a", &[("1", "1Mi")]), "n1");
    attempt.reserve();
    let stale = "n1: unschedulable: invalid node topology data";
    assert_eq!(trial.filter(attempt.cluster(), small()), [stale, "n2: ok", "n3: ok"]);
    assert_eq!(attempt.post_bind(), ["node changed: n1"]);
    assert_eq!(trial.filter(attempt.cluster(), small()), ["n1: ok", "n2: ok", "n3: ok"]);
    attempt.reserve();
    attempt.unreserve();
    assert_eq!(trial.filter(attempt.cluster(), small()), ["n1: ok", "n2: ok", "n3: ok"]);
}

fn counting() -> supercargo_testkit::Trial {
    let cache = json!({ "informerMode": "Shared" });
    trial_with::<NodeResourceTopologyMatch>(json!({ "cacheResyncPeriodSeconds": 5, "cache": cache }))
}

#[test]
fn pods_are_taken_off_all_zones_until_a_topology_has_counted_them() {
    let trial = counting();
    let zones = [zone(0, "4", "4Gi"), zone(1, "6", "4Gi")];
    let mut cluster = numa_cluster().with(node("n1")).with(topology("n1", "pod", &zones));
    assert_eq!(trial.started(&mut cluster), ["wake by: 1970-01-01T01:00:05Z"]);
    let (three, one) = (|| guaranteed("b", &[("3", "1Gi")]), || guaranteed("b", &[("1", "1Gi")]));
    let mut attempt = trial.attempt(&mut cluster, guaranteed("a", &[("4", "1Gi")]), "n1");
    attempt.reserve();
    let cannot = "n1: unschedulable: cannot align pod";
    assert_eq!(trial.filter(attempt.cluster(), three()), [cannot]);
    assert_eq!(trial.filter(attempt.cluster(), one()), ["n1: ok"]);
    attempt.unreserve();
    assert_eq!(trial.filter(attempt.cluster(), three()), ["n1: ok"]);
    attempt.reserve();
    let bound = || guaranteed("a", &[("4", "1Gi")]).on("n1");
    assert_eq!(trial.filter(attempt.cluster(), three()), [cannot]);
    trial.observed(&mut cluster, &deleted(bound()));
    assert_eq!(trial.filter(&mut cluster, three()), ["n1: ok"], "a pod that is gone does not count");
}

#[test]
fn a_node_with_pods_of_another_scheduler_waits_for_a_topology_that_has_them() {
    let trial = counting();
    let zones = [zone(0, "4", "4Gi")];
    let stranger = || {
        let status = json!({ "status": { "phase": "Running" } });
        guaranteed("stranger", &[("1", "1Gi")]).on("n1").scheduler("other").with(status)
    };
    let old = topology("n1", "pod", &zones);
    let mut cluster = numa_cluster().with(node("n1")).with(old);
    trial.started(&mut cluster);
    cluster.put(stranger());
    trial.observed(&mut cluster, &added(stranger()));
    let small = || guaranteed("b", &[("1", "1Gi")]);
    let stale = ["n1: unschedulable: invalid node topology data"];
    assert_eq!(trial.filter(&mut cluster, small()), stale);
    assert!(
        trial.woken(&mut cluster).iter().all(|line| !line.contains("node changed")),
        "it says nothing of pods"
    );
    assert_eq!(trial.filter(&mut cluster, small()), stale);

    let pod = cluster.pod(stranger());
    let new = with_attribute(
        topology("n1", "pod", &[zone(0, "3", "3Gi")]),
        "nodeTopologyPodsFingerprint",
        &fingerprint::fingerprint([&*pod]),
    );
    cluster.put(new.clone());
    trial.observed(&mut cluster, &added(new));
    assert_eq!(trial.filter(&mut cluster, small()), stale, "nobody has looked at it yet");
    assert_eq!(trial.woken(&mut cluster)[0], "node changed: n1");
    assert_eq!(trial.filter(&mut cluster, small()), ["n1: ok"]);
}

#[test]
fn a_topology_that_comes_later_is_known() {
    let trial = counting();
    let mut cluster = numa_cluster().with(node("n1"));
    trial.started(&mut cluster);
    let large = || guaranteed("b", &[("8", "1Gi")]);
    assert_eq!(trial.filter(&mut cluster, large()), ["n1: ok"], "there is none yet");
    let new = topology("n1", "pod", &[zone(0, "4", "4Gi")]);
    cluster.put(new.clone());
    trial.observed(&mut cluster, &added(new.clone()));
    assert_eq!(trial.filter(&mut cluster, large()), ["n1: unschedulable: cannot align pod"]);
}

#[test]
fn whoever_asks_hears_what_no_zone_has() {
    let zones = [zone(0, "3", "8Gi"), zone(1, "2", "2Gi")];
    let mut cluster = numa_cluster().with(node("n3")).with(topology("n3", "container", &zones));
    let plugin = NodeResourceTopologyMatch::new(NodeResourceTopologyMatchArgs::default());
    for (cpu, memory, expected) in [
        ("4", "1Gi", Some("no NUMA zone of n3 has 4 cores left: 3 cores at most")),
        ("1", "9Gi", Some("no NUMA zone of n3 has 9Gi memory left: 8Gi memory at most")),
        ("3", "8Gi", None),
    ] {
        let pod = cluster.pod(guaranteed("a", &[(cpu, memory)]));
        let said = Filter::background(&plugin, &cluster.context(), &pod, cluster.node("n3"));
        assert_eq!(said.as_deref(), expected, "{cpu} {memory}");
    }
    let zones = [zone(0, "4", "1Gi"), zone(1, "1", "4Gi")];
    let mut cluster = numa_cluster().with(node("n3")).with(topology("n3", "container", &zones));
    let pod = cluster.pod(guaranteed("a", &[("3", "3Gi")]));
    let said = Filter::background(&plugin, &cluster.context(), &pod, cluster.node("n3"));
    assert_eq!(said.as_deref(), Some("no NUMA zone of n3 has 3 cores and 3Gi memory left together"));
}

#[test]
fn whoever_asks_hears_that_no_zone_counts() {
    let mut odd = zone(0, "4", "4Gi");
    odd["name"] = "numa-node-0".into();
    let mut cluster = numa_cluster().with(node("n3")).with(topology("n3", "container", &[odd]));
    let plugin = NodeResourceTopologyMatch::new(NodeResourceTopologyMatchArgs::default());
    let pod = cluster.pod(guaranteed("a", &[("1", "1Gi")]));
    let said = Filter::background(&plugin, &cluster.context(), &pod, cluster.node("n3"));
    let expected = "the NodeResourceTopology n3 has no zone that counts: NUMA zones are of type Node and named node-0, node-1 and so on";
    assert_eq!(said.as_deref(), Some(expected));
}

/// What the plugin says of a node and how many points it gives it, as upstream and with a fix.
fn check_fix(
    fix: &str,
    topology: &Value,
    pod: &PodBuilder,
    strategy: &str,
    [upstream, fixed]: [[&str; 2]; 2],
) {
    let trial = trial_with::<NodeResourceTopologyMatch>(json!({ "scoringStrategy": { "type": strategy } }));
    let mut cluster =
        numa_cluster().with(node("n1").allocatable("hugepages-2Mi", "1Gi")).with(topology.clone());
    let said = |cluster: &mut TestCluster| {
        [trial.filter(cluster, pod.clone()), trial.scores(cluster, pod.clone())].concat()
    };
    assert_eq!(said(&mut cluster), upstream, "{fix}: upstream");
    assert!(cluster.fixes.enable(fix), "there is such a fix");
    assert_eq!(said(&mut cluster), fixed, "{fix}");
}

#[test]
fn each_fix_mends_what_it_says() {
    let aligned = |points: &'static str| ["n1: ok", points];
    let with_init =
        |init: Value| guaranteed("a", &[("3", "1Gi")]).with(json!({ "spec": { "initContainers": [init] } }));
    let mut sidecar = container("side", "2", "1Gi");
    sidecar["restartPolicy"] = "Always".into();
    let one_zone = |scope| topology("n1", scope, &[zone(0, "4", "4Gi")]);
    check_fix(
        "numaSidecars",
        &one_zone("container"),
        &with_init(sidecar.clone()),
        "LeastNUMANodes",
        [aligned("n1: 0"), ["n1: unschedulable: cannot align container", "n1: 0"]],
    );
    check_fix(
        "numaSidecars",
        &one_zone("pod"),
        &with_init(sidecar),
        "LeastNUMANodes",
        [aligned("n1: 94"), ["n1: unschedulable: cannot align pod", "n1: 0"]],
    );
    check_fix(
        "numaSidecars",
        &one_zone("pod"),
        &with_init(container("init", "4", "1Gi")),
        "LeastNUMANodes",
        [aligned("n1: 94"), aligned("n1: 94")],
    );
    let amounts = json!({ "cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi", "ephemeral-storage": "1Gi" });
    let huge = pod("a").container(json!({ "resources": { "requests": amounts, "limits": amounts } }));
    check_fix(
        "unreportedNumaResources",
        &one_zone("container"),
        &huge,
        "LeastNUMANodes",
        [["n1: unschedulable: cannot align container", "n1: 0"], aligned("n1: 94")],
    );
    check_fix(
        "singleNumaNodeMaximum",
        &with_attribute(one_zone("pod"), "topologyManagerMaxNUMANodes", "1"),
        &guaranteed("a", &[("1", "1Gi")]),
        "LeastNUMANodes",
        [aligned("n1: 94"), aligned("n1: 50")],
    );
}
