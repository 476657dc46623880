//! Workloads in files: what `explain` and `capacity` say about the pods that they would create.

mod support;

use std::path::Path;

use support::{check, supercargo};

fn cluster() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster.yaml");
    std::fs::read_to_string(path).expect("the example is there")
}

/// A workload; `spec` and `pod` are what its spec and that of its pods have beside the template.
fn workload(kind: &str, name: &str, spec: &str, pod: &str) -> String {
    let group = if matches!(kind, "Job" | "CronJob") { "batch/v1" } else { "apps/v1" };
    let template = format!(
        "selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: \
         {{containers: [{{name: c, resources: {{requests: {{cpu: 500m}}}}}}]{pod}}}}}{spec}"
    );
    let spec = if kind == "CronJob" { format!("jobTemplate: {{spec: {{{template}}}}}") } else { template };
    format!(
        "---\napiVersion: {group}\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{{spec}}}\n"
    )
}

fn pod(name: &str, owner: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: shop, uid: {name}, labels: {{app: web, \
         pod-template-hash: 5d4}}, ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {owner}, uid: u, \
         controller: true}}]}}\nspec: {{containers: [{{name: c}}]{spec}}}\n"
    )
}

/// What is printed for the pod, or the workload, of that name.
#[track_caller]
fn explain_one(name: &str, text: &str, expected: &[&str]) -> String {
    let output = supercargo(&["explain", "-f", "-", "-n", "shop", "--pod", name], text);
    check(&output, 0, expected);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_deployment_is_the_pods_that_it_lacks() {
    let text = cluster()
        + &workload("Deployment", "web", ", replicas: 3", "")
        + &pod("a", "web-5d4", ", nodeName: n1");
    let output = supercargo(&["explain", "-f", "-"], &text);
    check(&output, 0, &["default/web-1 would go to n2", "default/train-1 would stay pending"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "\n\
deployment shop/web wants 3 pods, 1 exists: 2 explained as it would create them
shop/web-new-1 would go to n2, as shop/web-new-2 would
  2 of 3 nodes feasible
";
    assert!(text.contains(expected), "{text}");
}

/// By kind and name, and by the names of the pods that do not exist yet.
#[test]
fn workloads_are_asked_for_as_with_kubectl() {
    let text = cluster()
        + &workload("Deployment", "web", ", replicas: 2", "")
        + &workload("StatefulSet", "db", ", replicas: 2", "")
        + &workload("Job", "once", "", "")
        + &workload("CronJob", "nightly", "", "")
        + &workload("ReplicaSet", "bare", "", "")
        + &workload("DaemonSet", "agent", "", "");
    for (names, expected) in [
        (
            "deploy/web deployment/web shop/deploy/web",
            "deployment shop/web wants 2 pods, none exists: 2 explained",
        ),
        ("sts/db statefulsets/db", "statefulset shop/db wants 2 pods"),
        ("job/once", "job shop/once wants 1 pod, none exists"),
        ("cronjob/nightly cj/nightly", "cronjob shop/nightly wants 1 pod"),
        ("rs/bare", "replicaset shop/bare wants 1 pod"),
        ("ds/agent", "shop/agent: its pods fit on 2 of 2 nodes"),
        ("pod/web-new-2 web-new-2", "shop/web-new-2 would go to n2"),
    ] {
        for name in names.split(' ') {
            let text = explain_one(name, &text, &[expected]);
            assert!(!text.contains("default/"), "{name} only: {text}");
        }
    }
    let output = supercargo(&["explain", "-f", "-", "--pod", "deploy/nobody"], &text);
    check(&output, 1, &["there is no deployment default/nobody in the files"]);
}

/// Its pods that wait are explained with it; if none is missing, that is said.
#[test]
fn a_workload_that_is_asked_for_comes_with_its_pending_pods() {
    let web = |replicas: &str| cluster() + &workload("Deployment", "web", replicas, "");
    let waiting = pod("waits", "web-5d4", "");
    explain_one(
        "deploy/web",
        &(web(", replicas: 2") + &waiting),
        &["shop/waits would go to", "wants 2 pods, 1 exists: 1 explained"],
    );
    let text = explain_one("deploy/web", &(web("") + &waiting), &["shop/waits would go to"]);
    assert!(text.contains("deployment shop/web wants 1 pod, 1 exists: it would create none"), "{text}");
    let text = explain_one("deploy/web", &web(", replicas: 0"), &[]);
    assert_eq!(text, "deployment shop/web wants no pods\nno pod is pending\n");
}

#[test]
fn daemons_are_told_together() {
    let heavy =
        workload("DaemonSet", "agent", "", ", initContainers: [{name: i, resources: {requests: {cpu: 3}}}]");
    explain_one(
        "ds/agent",
        &(cluster() + &heavy),
        &["\
daemonset shop/agent wants 2 pods, none exists: 2 explained as it would create them
  it is not meant for 1 node, by name, labels or taints
shop/agent: its pods fit on 1 of 2 nodes
  NODES  PLUGIN            REASON            FOR EXAMPLE
      1  NodeResourcesFit  Insufficient cpu  n2
  what would help on n2:
    - 1 more cpu on n2
"],
    );
    let output = supercargo(
        &["explain", "-f", "-", "-n", "shop", "--pod", "ds/agent", "-o", "json"],
        &(cluster() + &heavy),
    );
    let explanations: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let hints = &explanations[0]["perNode"]["example"]["hints"];
    assert_eq!(hints.as_array().map(Vec::len), Some(1), "only what helps on that node: {hints}");
    assert_eq!(explanations[0]["perNode"]["fits"], 1);
    assert_eq!(explanations[0]["workload"]["wants"], 2);
    let important = heavy
        .replace("containers: [{name: c", "priority: 9, containers: [{name: c")
        .replace("cpu: 3", "cpu: 4");
    explain_one(
        "ds/agent",
        &(cluster() + &important),
        &["fit on 0 of 2 nodes, and on 1 more once the scheduler has evicted others"],
    );
}

/// A pod of a new Deployment sees the labels that only it will have.
#[test]
fn a_new_generation_spreads_by_itself() {
    let spread = ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule, \
                  labelSelector: {matchLabels: {app: web}}KEYS}]";
    let nodes = cluster()
        .replace("labels: {}", "labels: {host: one}")
        .replace("name: n2\n", "name: n2\n    labels: {host: two}\n")
        .replace("name: n3\n", "name: n3\n    labels: {host: three}\n");
    let old: String = ["a", "b"].map(|name| pod(name, "web-5d4", ", nodeName: n1")).concat();
    for (keys, feasible) in
        [("", "1 of 3 nodes feasible"), (", matchLabelKeys: [pod-template-hash]", "2 of 3 nodes feasible")]
    {
        let web = workload("Deployment", "web", ", replicas: 3", &spread.replace("KEYS", keys));
        explain_one("deploy/web", &format!("{nodes}{old}{web}"), &[feasible]);
    }
}

/// A claim of a StatefulSet is bound when the pod has its node, or before, as its class has it.
#[test]
fn claims_of_a_stateful_set_are_made() {
    let claims = ", volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], \
                  storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]";
    let class = |mode: &str| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: fast}}\nprovisioner: \
             csi.example.com\nvolumeBindingMode: {mode}\n"
        )
    };
    let set = workload("StatefulSet", "db", &format!(", replicas: 2{claims}"), "");
    for (class, expected) in [
        (class("WaitForFirstConsumer"), "shop/db-0 would go to n2"),
        (class("Immediate"), "these are taken to be wherever the class allows"),
        (class("Immediate"), "shop/db-0 would go to n2, as shop/db-1 would"),
        (String::new(), "its storage class fast is not known here, so its claims stay unbound"),
    ] {
        explain_one("sts/db", &(cluster() + &set + &class), &[expected, "db-0 is next"]);
    }
}

#[test]
fn capacity_counts_more_pods_of_a_workload() {
    let folder = std::env::temp_dir().join(format!("supercargo-workloads-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the manifest");
    let manifest = folder.join("web.yaml");
    let web = workload("Deployment", "web", ", replicas: 3", "");
    std::fs::write(&manifest, &web).expect("the manifest can be written");
    let file = manifest.to_string_lossy();
    let output = supercargo(&["capacity", "-f", "-", "-f", &file], &cluster());
    check(&output, 0, &["10 more like shop/web-new fit, on 2 nodes"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("default/"), "the manifest only: {output:?}");
    let output = supercargo(&["explain", "-f", "-", "-f", &file, "-n", "other"], &cluster());
    check(&output, 1, &["no object in the files is of the namespace \"other\""]);
    std::fs::remove_dir_all(&folder).expect("the folder is there");
    for like in ["deploy/web", "shop/deploy/web"] {
        let output = supercargo(&["capacity", "-f", "-", "-n", "shop", "--like", like], &(cluster() + &web));
        check(&output, 0, &["10 more like shop/web-new fit, on 2 nodes"]);
    }
    let output = supercargo(&["capacity", "-f", "-", "--like", "deploy/web"], &(cluster() + &web));
    check(&output, 1, &["there is no deployment default/web in the files"]);
    let agent = cluster() + &workload("DaemonSet", "agent", "", ", priorityClassName: gold");
    let output = supercargo(&["capacity", "-f", "-", "-n", "shop", "--like", "ds/agent"], &agent);
    check(&output, 0, &["has one pod on a node", "its priority class gold is not known here"]);
}

/// As `kubectl apply -n` has it.
#[test]
fn a_manifest_without_a_namespace_is_of_the_one_that_is_given() {
    let web = workload("Deployment", "web", "", "").replace(", namespace: shop", "");
    explain_one("deploy/web", &(cluster() + &web), &["deployment shop/web wants 1 pod"]);
    let output = supercargo(&["explain", "-f", "-"], &(cluster() + &web));
    check(&output, 0, &["deployment default/web wants 1 pod"]);
}

#[test]
fn bad_workloads_get_clear_errors() {
    let web = workload("Deployment", "web", ", replicas: 3", "");
    for (text, expected) in [
        (
            web.replace("500m", "half"),
            "Deployment shop/web: spec.template.spec.containers[0].resources.requests",
        ),
        (web.replace("replicas: 3", "replicas: three"), "Deployment shop/web: spec.replicas"),
        (
            web.replace("template: ", "mould: "),
            "Deployment shop/web: it has no spec.template.spec to make pods from",
        ),
    ] {
        let output = supercargo(&["explain", "-f", "-"], &(cluster() + &text));
        check(&output, 1, &[expected]);
    }
    let many = workload("Deployment", "web", ", replicas: 1000000", "");
    explain_one(
        "deploy/web",
        &(cluster() + &many),
        &["it would create 1000000; 100 explained, the others are like them"],
    );
}
