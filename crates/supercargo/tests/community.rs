//! What people see of the community's plugins: hints about quotas, groups and load, and the definitions of custom resources.

mod support;

use support::{check, supercargo};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// A configuration in a file of its own.
fn config(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.yaml"));
    std::fs::write(&path, format!("{HEAD}{text}")).expect("the folder is there");
    path.to_str().expect("the path is a text").to_owned()
}

const NODES: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: '8', memory: 8Gi, pods: '110'}, allocatable: {cpu: '8', memory: 8Gi, pods: '110'}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {capacity: {cpu: '8', memory: 8Gi, pods: '110'}, allocatable: {cpu: '8', memory: 8Gi, pods: '110'}}
";

fn pod(namespace: &str, name: &str, cpu: u32, more: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{namespace: {namespace}, name: {name}, uid: {namespace}-{name}{more}}}\n\
         spec: {{{spec}containers: [{{name: main, image: app, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}\n"
    )
}

#[test]
fn explain_speaks_of_quotas() {
    let plugins = "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: CapacityScheduling}]}\n    \
                   postFilter: {disabled: [{name: '*'}], enabled: [{name: CapacityScheduling}]}\n";
    let config = config("quotas", plugins);
    let quota = |namespace: &str, min: u32, max: u32| {
        format!(
            "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {{namespace: {namespace}, name: quota}}\n\
             spec: {{min: {{cpu: '{min}'}}, max: {{cpu: '{max}'}}}}\n"
        )
    };
    let quotas = quota("team-a", 2, 8) + &quota("team-b", 4, 4) + &quota("team-c", 1, 4);
    // Team a has borrowed 2 of what b does not use, and c has borrowed 1.
    let running = pod("team-a", "a", 4, "", "nodeName: n1, ") + &pod("team-b", "b", 1, "", "nodeName: n1, ");
    let running = running + &pod("team-c", "c", 2, "", "nodeName: n1, ");
    let objects = format!("{NODES}{quotas}{running}{}", pod("team-a", "more", 2, "", ""));
    let output = supercargo(&["explain", "-f", "-", "--config", &config], &objects);
    let expected =
        "the quota of namespace team-a lacks 2 cpu; team-b has lent 3 cpu; team-c has borrowed 1 cpu";
    check(&output, 0, &[expected, "total ElasticQuota used is more than min"]);
    let objects = format!("{NODES}{quotas}{running}{}", pod("team-b", "more", 4, "", ""));
    let output = supercargo(&["explain", "-f", "-", "--config", &config], &objects);
    check(&output, 0, &["the quota of namespace team-b lacks 1 cpu: its max would be exceeded"]);
}

#[test]
fn explain_speaks_of_groups() {
    let plugins = "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: Coscheduling}]}\n    \
                   queueSort: {disabled: [{name: '*'}], enabled: [{name: Coscheduling}]}\n";
    let config = config("groups", plugins);
    let group = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {namespace: default, name: trio}\n\
                 spec: {minMember: 3}\n";
    let label = ", labels: {scheduling.x-k8s.io/pod-group: trio}";
    let member = |name: &str| pod("default", name, 1, label, "");
    let explain =
        |objects: &str| supercargo(&["explain", "-f", "-", "--config", &config, "--pod", "a"], objects);
    let alone = format!("{NODES}{group}{}", member("a"));
    check(&explain(&alone), 0, &["the group default/trio waits for 2 more pods", "would stay pending"]);
    let all = format!("{alone}{}{}", member("b"), member("c"));
    check(
        &explain(&all),
        0,
        &[
            "the group default/trio goes when 3 of its pods have a node: 0 have one, and this pod waits with its node for 2 more",
        ],
    );
    let gates = "schedulingGates: [{name: later}], ";
    let gated = format!("{alone}{}{}", member("b"), pod("default", "c", 1, label, gates));
    check(&explain(&gated), 0, &["the group default/trio waits for 1 of its gated pods"]);
    let placed = format!(
        "{alone}{}{}",
        pod("default", "b", 1, label, "nodeName: n1, "),
        pod("default", "c", 1, label, "nodeName: n2, ")
    );
    let output = explain(&placed);
    check(&output, 0, &["would go to"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("the group"), "it waits for nobody");
    let lost = format!("{NODES}{}", member("a"));
    check(&explain(&lost), 0, &["of which there is no PodGroup: it is refused even where it fits"]);
}

#[test]
fn explain_speaks_of_load_that_is_not_known() {
    let plugins = "profiles:\n- plugins:\n    score: {enabled: [{name: LoadVariationRiskBalancing, weight: 100}]}\n  pluginConfig:\n  \
                   - name: LoadVariationRiskBalancing\n    args: {watcherAddress: 'http://load-watcher:2020'}\n";
    let config = config("load", plugins);
    let fact = |node: &str, percent: u32| {
        let measured = format!("{{average: {percent}, isKnown: true}}");
        format!(
            "---\napiVersion: facts.supercargo.dev/v1alpha1\nkind: NodeLoad\nmetadata: {{name: {node}}}\ncpu: {measured}\nmemory: {measured}\n"
        )
    };
    let explain = |facts: String| {
        let objects = format!("{NODES}{facts}{}", pod("default", "web", 1, "", ""));
        supercargo(&["explain", "-f", "-", "--config", &config], &objects)
    };
    let unknown =
        "LoadVariationRiskBalancing goes by what the query node-load is answered, which is not known";
    check(
        &explain(String::new()),
        0,
        &[&format!("{unknown} here: a scheduler that runs asks"), "would go to n1"],
    );
    check(&explain(fact("n2", 10)), 0, &[&format!("{unknown} of the node n1"), "would go to n2"]);
    let known = explain(fact("n2", 10) + &fact("n1", 90));
    check(&known, 0, &["would go to n2"]);
    assert!(!String::from_utf8_lossy(&known.stdout).contains("not known"), "everything is");
    // A pod that fits nowhere has no use for points.
    let objects = format!("{NODES}{}", pod("default", "huge", 99, "", ""));
    let huge = supercargo(&["explain", "-f", "-", "--config", &config], &objects);
    check(&huge, 0, &["would stay pending"]);
    assert!(!String::from_utf8_lossy(&huge.stdout).contains("not known"));
}

#[test]
fn definitions_are_printed() {
    let all = supercargo(&["crds"], "");
    let names: Vec<String> = supercargo_plugins::community::definitions()
        .iter()
        .map(|definition| format!("name: {}.{}", definition.kind.plural, definition.kind.group))
        .collect();
    check(&all, 0, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let plugins = "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: CapacityScheduling}]}\n";
    let some = supercargo(&["crds", "--config", &config("crds", plugins)], "");
    check(&some, 0, &["elasticquotas.scheduling.x-k8s.io"]);
    assert!(!String::from_utf8_lossy(&some.stdout).contains("podgroups"));
    let none = supercargo(&["crds", "--config", &config("no-crds", "")], "");
    check(&none, 0, &["read no custom resources that come with the program"]);
}
