//! What a person sees of `explain` and `capacity`, to the letter, and what bad dumps get.

mod support;

use std::path::Path;

use support::{check, supercargo};

fn cluster() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster.yaml");
    std::fs::read_to_string(path).expect("the example is there")
}

#[track_caller]
fn check_text(arguments: &[&str], stdin: &str, expected: &str) {
    let output = supercargo(arguments, stdin);
    check(&output, 0, &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

const TRAIN: &str = "\
default/train-1 would stay pending: none of 3 nodes fits
  NODES  PLUGIN            REASON                            FOR EXAMPLE
      2  NodeResourcesFit  Insufficient cpu                  n1, n2
      1  TaintToleration   node(s) had untolerated taint(s)  n3
  what would help:
    - 500m more cpu on n1; 1 other node lacks more of it
    - a toleration for dedicated=batch:NoSchedule opens 1 node (n3)
    - with a priority of 1 or more it could evict 1 pod on n1
";

const WEB: &str = "\
default/web-1 would go to n2
  2 of 3 nodes feasible
  NODE  TOTAL  TaintToleration  NodeResourcesFit  DynamicResources  NodeResourcesBalancedAllocation  ImageLocality
  n2      454              300                84                 0                               70              0
  n1      428              300                52                 0                               76              0
  runner-up n1 is 26 behind: NodeResourcesFit -32, NodeResourcesBalancedAllocation +6
";

#[test]
fn a_table_for_each_pending_pod() {
    check_text(&["explain", "-f", "-"], &cluster(), &format!("{WEB}\n{TRAIN}"));
    check_text(&["explain", "-f", "-", "--pod", "default/train-1"], &cluster(), TRAIN);
    check_text(&["explain", "-f", "-", "--pod", "web-1"], &cluster(), WEB);
}

#[test]
fn a_namespace_is_that_of_names_without_one_and_of_whatever_is_pending() {
    check_text(&["explain", "-f", "-", "-n", "default"], &cluster(), &format!("{WEB}\n{TRAIN}"));
    let shop = cluster() + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    check_text(&["explain", "-f", "-", "--namespace", "shop"], &shop, "no pod is pending\n");
    check_text(&["explain", "-f", "-", "--pod", "default/web-1", "-n", "shop"], &cluster(), WEB);
    let output = supercargo(&["explain", "-f", "-", "--pod", "web-1", "-n", "shop"], &cluster());
    check(&output, 1, &["there is no pod shop/web-1 in the files"]);
    let output = supercargo(&["capacity", "-f", "-", "-n", "shop"], &shop);
    check(&output, 1, &["no pod to count"]);
    let output = supercargo(&["explain", "-f", "-", "--context", "staging"], &cluster());
    check(&output, 2, &["--context staging names a live cluster"]);
    let output = supercargo(&["explain", "-f", "-", "--scheduler", "https://there"], &cluster());
    check(&output, 2, &["--scheduler https://there names a live scheduler"]);
}

#[test]
fn wide_adds_the_event() {
    let event = "  event: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims \
                 to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 \
                 Preemption is not helpful for scheduling.\n";
    check_text(
        &["explain", "-f", "-", "--pod", "train-1", "-o", "wide"],
        &cluster(),
        &format!("{TRAIN}{event}"),
    );
}

#[test]
fn json_has_everything() {
    let output = supercargo(&["explain", "-f", "-", "-o", "json"], &cluster());
    let explanations: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(explanations[0]["placed"]["runnerUp"]["behind"], 26);
    let hint = &explanations[1]["pending"]["hints"][0];
    assert_eq!(hint["remedy"]["change"], "resources");
    assert_eq!(hint["remedy"]["missing"]["cpu"], "500m");
}

#[test]
fn pods_that_differ_only_in_name_are_explained_once() {
    let twin = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  containers:\n  - name: c\n    \
             resources:\n      requests:\n        cpu: 64\n"
        )
    };
    let text = cluster() + &twin("a") + &twin("b") + &twin("c");
    let output = supercargo(&["explain", "-f", "-"], &text);
    check(&output, 0, &["default/a would stay pending, as 2 others would: none of 3 nodes fits"]);
}

/// A claim that is made for a pod has the pod's name, so such pods differ by it.
#[test]
fn pods_with_claims_of_their_own_are_explained_one_by_one() {
    let scratch = "\n  volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}]";
    let pod = |name: &str, volumes: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, uid: {name}}}\nspec:\n  \
             containers: [{{name: c, image: c}}]{volumes}\n---\n"
        )
    };
    for (volumes, explained) in [("", 1), (scratch, 2)] {
        let dump =
            pod("a", volumes) + &pod("b", volumes) + "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n";
        let output = supercargo(&["explain", "-f", "-", "-o", "json"], &dump);
        let explanations: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(explanations.as_array().map(Vec::len), Some(explained), "{volumes}");
    }
}

#[test]
fn a_gated_pod_is_held_and_a_victim_is_named() {
    let pod = |spec: &str| format!("---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n");
    let gated = cluster() + &pod("{schedulingGates: [{name: wait}], containers: [{name: c}]}");
    check(
        &supercargo(&["explain", "-f", "-", "--pod", "p"], &gated),
        0,
        &["default/p is not tried: waiting for scheduling gates: [wait] (SchedulingGates)"],
    );
    let important =
        cluster() + &pod("{priority: 9, containers: [{name: c, resources: {requests: {cpu: 3500m}}}]}");
    check(
        &supercargo(&["explain", "-f", "-", "--pod", "p"], &important),
        0,
        &["the scheduler will make room on n1 by evicting default/db-0 (priority 0)"],
    );
}

#[test]
fn a_victim_that_is_leaving_already_is_waited_for() {
    let leaving = "name: db-0\n    deletionTimestamp: \"2026-01-01T00:00:00Z\"";
    let cluster = cluster().replace("name: db-0", leaving);
    let pods = "\
---
{apiVersion: v1, kind: Pod, metadata: {name: small, uid: u}, spec: {nodeName: n1, containers: [
  {name: c, resources: {requests: {cpu: 500m}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priority: 9, containers: [
  {name: c, resources: {requests: {cpu: 3500m}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {priority: 9, containers: [
  {name: c, resources: {requests: {cpu: 4}}}]}}
";
    let output = supercargo(&["explain", "-f", "-"], &(cluster + pods));
    check(
        &output,
        0,
        &[
            "with a priority of 1 or more it could have the room that pods leaving n1 make",
            "the scheduler will wait for room on n1: default/db-0 (priority 0) is leaving already",
            "the scheduler will make room on n1 by evicting default/small (priority 0); default/db-0 (priority 0) is \
             leaving already",
        ],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        text.matches("with a priority of").count(),
        1,
        "who preempts needs no higher priority:\n{text}"
    );
}

#[test]
fn a_bound_pod_is_explained_as_if_it_were_not() {
    let output = supercargo(&["explain", "-f", "-", "--pod", "db-0"], &cluster());
    check(&output, 0, &["default/db-0 would go to n1", "note: default/db-0 runs on n1"]);
    check(
        &supercargo(&["explain", "-f", "-", "--pod", "nobody"], &cluster()),
        1,
        &["there is no pod default/nobody"],
    );
}

#[test]
fn capacity_counts_several_pods() {
    check_text(
        &["capacity", "-f", "-", "--like", "web-1", "--like", "default/db-0"],
        &cluster(),
        "\
10 more like default/web-1 fit, on 2 nodes
  EACH  NODES  FOR EXAMPLE
     6      1  n1
     4      1  n2
  what stops the next one:
  NODES  PLUGIN            REASON                            FOR EXAMPLE
      2  NodeResourcesFit  Insufficient cpu                  n1, n2
      1  TaintToleration   node(s) had untolerated taint(s)  n3

3 more like default/db-0 fit, on 2 nodes
  EACH  NODES  FOR EXAMPLE
     2      1  n2
     1      1  n1
  what stops the next one:
  NODES  PLUGIN            REASON                            FOR EXAMPLE
      2  NodeResourcesFit  Insufficient memory               n1, n2
      1  NodeResourcesFit  Insufficient cpu                  n2
      1  TaintToleration   node(s) had untolerated taint(s)  n3
",
    );
    check(
        &supercargo(&["capacity", "-f", "-", "--like", "x"], &cluster()),
        1,
        &["there is no pod default/x"],
    );
}

/// Three go where the scheduler would put three, which is not where there is most room.
#[test]
fn fewer_than_fit_go_where_the_scheduler_would_put_them() {
    check_text(
        &["capacity", "-f", "-", "--like", "web-1", "--most", "3"],
        &cluster(),
        "\
at least 3 more like default/web-1 fit, on 2 nodes
  EACH  NODES  FOR EXAMPLE
     2      1  n2
     1      1  n1
",
    );
}

/// Nodes in three zones, with room for so many pods and so much cpu, each with these taints; and a pod.
fn large(nodes: usize, room: (&str, &str), taints: &serde_json::Value, pod: &serde_json::Value) -> String {
    let (pods, cpu) = room;
    let node = |number: usize| {
        serde_json::json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": format!("n{number:03}"), "labels": { "zone": (number % 3).to_string() } },
            "spec": { "taints": taints },
            "status": { "allocatable": { "cpu": cpu, "memory": "64Gi", "pods": pods } },
        })
    };
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "uid": "p", "labels": { "app": "p" } }, "spec": pod,
    });
    (0..nodes).map(node).chain([pod]).map(|object| format!("{object}\n")).collect()
}

/// Two zones take 2,000 pods, and the third, with one node more, may have one more than they.
#[test]
fn pods_that_are_spread_are_counted_in_a_large_cluster() {
    let spec = serde_json::json!({
        "containers": [{ "name": "c" }],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "p" } },
        }],
    });
    check_text(
        &["capacity", "-f", "-"],
        &large(301, ("20", "4"), &serde_json::json!([]), &spec),
        "\
6001 more like default/p fit, on 301 nodes
  EACH  NODES  FOR EXAMPLE
    20    282  n000, n001, n002, …
    19     19  n246, n249, n252, …
  what stops the next one:
  NODES  PLUGIN             REASON                                                FOR EXAMPLE
    282  NodeResourcesFit   Too many pods                                         n000, n001, n002, …
     19  PodTopologySpread  node(s) didn't match pod topology spread constraints  n246, n249, n252, …
",
    );
}

/// However many pods a node takes: the time that counting takes is that of what is counted.
#[test]
fn nodes_that_take_any_number_of_pods_are_counted() {
    let spec = serde_json::json!({ "containers": [{ "name": "c" }] });
    let most = i64::MAX.to_string();
    let none = serde_json::json!([]);
    check_text(
        &["capacity", "-f", "-", "--most", "30000"],
        &large(1, (&most, "4"), &none, &spec),
        "at least 30000 more like default/p fit, on 1 node\n   EACH  NODES  FOR EXAMPLE\n  30000      1  n000\n",
    );
    let output = supercargo(&["capacity", "-f", "-"], &large(1, ("20000", "4"), &none, &spec));
    check(&output, 0, &["20000 more like default/p fit, on 1 node", "Too many pods"]);
}

#[test]
fn many_taints_make_no_long_sentence() {
    let taint = |key: &str, number: usize| serde_json::json!({ "key": format!("{key}{number}"), "value": "v", "effect": "NoSchedule" });
    let taints: serde_json::Value = (0..2000).map(|number| taint("there", number)).collect();
    let tolerations: serde_json::Value = (0..2000).map(|number| taint("other", number)).collect();
    let spec = serde_json::json!({ "containers": [{ "name": "c" }], "tolerations": tolerations });
    let text = large(20, ("110", "4"), &taints, &spec);
    for (command, said) in [
        ("capacity", "0 more like default/p fit, on 0 nodes"),
        ("explain", "a toleration for there9=v:NoSchedule, and 1990 more"),
    ] {
        let output = supercargo(&[command, "-f", "-", "-o", "wide"], &text);
        check(&output, 0, &[said, "20 node(s) had untolerated taint(s)"]);
        let longest = String::from_utf8_lossy(&output.stdout).lines().map(str::len).max();
        assert!(longest < Some(700), "{command}: {longest:?}");
    }
    let output = supercargo(&["explain", "-f", "-", "-o", "json"], &text);
    let explanations: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let remedies = &explanations[0]["pending"]["hints"][0]["remedy"]["remedies"];
    assert_eq!(remedies.as_array().map(Vec::len), Some(2000), "programs get all of it");
}

#[test]
fn pods_that_are_alike_are_counted_once() {
    let pod = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, \
                 resources: {{requests: {{cpu: 3}}}}}}]}}\n"
        )
    };
    let text = format!("{}{}{}{}", cluster(), pod("a"), pod("b"), pod("c"));
    let output = supercargo(&["capacity", "-f", "-"], &text);
    check(&output, 0, &["more like default/a or 2 others fit"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("default/b"));
}

/// Claims that only one pod can have are made anew for each copy; a shared one holds the copies together.
#[test]
fn copies_come_with_claims_of_their_own() {
    let claim = |mode: &str| {
        format!(
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data, namespace: default, \
             annotations: {{pv.kubernetes.io/bind-completed: 'yes'}}}}\nspec: \
             {{accessModes: [{mode}], volumeName: disk, storageClassName: ''}}\n---\napiVersion: v1\nkind: \
             PersistentVolume\nmetadata: {{name: disk}}\nspec: {{accessModes: [{mode}], claimRef: {{name: data, \
             namespace: default}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: \
             disk, operator: Exists}}]}}]}}}}}}\n"
        )
    };
    let pod = |volume: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: a, namespace: default, uid: a}}\nspec: {{volumes: \
             [{volume}], containers: [{{name: c, resources: {{requests: {{cpu: 500m}}}}}}]}}\n"
        )
    };
    let claimed = "{name: v, persistentVolumeClaim: {claimName: data}}";
    for (what, volume, mode, fits) in [
        ("shared", claimed, "ReadWriteMany", "6 more like default/a fit, on 1 node"),
        ("one pod's", claimed, "ReadWriteOncePod", "10 more like default/a fit, on 2 nodes"),
        ("ephemeral", "{name: v, ephemeral: {}}", "ReadWriteMany", "10 more like default/a fit, on 2 nodes"),
    ] {
        let text = cluster().replace("labels: {}", "labels: {disk: here}") + &claim(mode) + &pod(volume);
        let output = supercargo(&["capacity", "-f", "-", "--like", "a"], &text);
        assert!(String::from_utf8_lossy(&output.stdout).contains(fits), "{what}: {output:?}");
    }
}

#[test]
fn bad_dumps_get_clear_errors() {
    let text = cluster();
    let json = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}]}"#;
    let node = "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n";
    let old = "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: old\n";
    for (dump, expected) in [
        (json[..json.len() - 9].to_owned(), &["<stdin>, line 1, column 92: EOF", "was it cut?"][..]),
        ("{\"a\": ".repeat(10), &["<stdin>, line 1", "EOF"]),
        (
            text.replace("cpu: 500m", "cpu: half"),
            &[
                "<stdin>, line 68, column 16: Pod default/web-1: spec.containers[0].resources.requests.cpu: ",
                "half",
            ],
        ),
        (
            text.replace("cpu: 500m", "cpu: -1"),
            &[
                "line 68, column 16: Pod default/web-1: spec.containers[0].resources.requests.cpu: nobody can ask for less",
            ],
        ),
        (
            text.replace("kind: Node\n", "kind: Nod\n"),
            &["<stdin>, line 5, column 9: object n1", "Nod", "is unknown"],
        ),
        (format!("{text}{node}"), &["node n1 occurs twice: line 4 of <stdin>, and line 93 of <stdin>"]),
        (text[..text.len() / 2].to_owned(), &["the list ends without its kind: was the file cut?"]),
        ("a: [1, 2".to_owned(), &["<stdin>, line 1"]),
        (
            "x".repeat(8 << 20),
            &["<stdin>, line 1, column 1: an object of Kubernetes is expected here, and this is the text"],
        ),
        (format!("[{}", "1,".repeat(4 << 20)), &["<stdin>, line 1"]),
    ] {
        check(&supercargo(&["explain", "-f", "-"], &dump), 1, expected);
    }
    let output = supercargo(&["explain", "-f", "-"], &format!("{text}{old}"));
    let note = "note: 1 of kind PodDisruptionBudget (policy/v1beta1) left out: print it as policy/v1 instead";
    check(&output, 0, &["default/web-1 would go to n2", note]);
    let widget = "---\napiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n";
    let output = supercargo(&["explain", "-f", "-"], &format!("{text}{widget}"));
    check(&output, 0, &["note: 1 of kind Widget (example.com/v1) left out: no plugin reads it"]);
    check(&supercargo(&["explain", "-f", "no-such-file"], ""), 1, &["cannot read no-such-file"]);
    check(&supercargo(&["explain", "-f"], ""), 2, &["--filename <FILE>"]);
}

#[test]
fn what_has_to_be_bound_first_is_said() {
    let storage = "\
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-1, uid: disk-1}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /d}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchFields: [{key: metadata.name, operator: In, values: [n1]}]
status: {phase: Available}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, uid: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 5Gi}}
  storageClassName: local
status: {phase: Pending}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
";
    let output = supercargo(&["explain", "-f", "-", "--pod", "p"], &(cluster() + storage));
    check(&output, 0, &["default/p would go to n", "  claim default/data gets volume disk-1 first\n"]);
}

/// What stands in the way is named: the volume with its claim, and the pod.
#[test]
fn volumes_and_pods_in_the_way_are_named() {
    let objects = "\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}
spec: {volumeName: disk, storageClassName: ''}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  claimRef: {name: data, namespace: default}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: far, namespace: default}
spec: {containers: [{name: c}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: shy, namespace: default, uid: shy}
spec:
  nodeName: n1
  containers: [{name: c}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kept, labelSelector: {matchLabels: {loud: very}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: loud, namespace: default, labels: {loud: very}}
spec: {containers: [{name: c}], nodeSelector: {kept: here}}
";
    let text = cluster().replace("labels: {}", "labels: {kept: here}") + objects;
    let explain = |pod: &str| supercargo(&["explain", "-f", "-", "--pod", pod], &text);
    check(
        &explain("far"),
        0,
        &["- without its volume d (claim data, bound to disk) 2 nodes would do (n1, n2)\n"],
    );
    check(&explain("loud"), 0, &["- without default/shy, in the way now, 1 node would do (n1)\n"]);
}

#[test]
fn pods_that_are_being_deleted_are_left_out_with_a_note() {
    let going = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: going, deletionTimestamp: '2026-01-01T00:00:00Z'}\nspec: \
                 {containers: [{name: c}]}\n";
    let text = cluster() + going;
    let note = "note: default/going left out: being deleted; ask about one by its name";
    let output = supercargo(&["explain", "-f", "-"], &text);
    check(&output, 0, &[note]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{WEB}\n{TRAIN}"));
    check(&supercargo(&["capacity", "-f", "-"], &text), 0, &[note, "more like default/web-1 fit"]);
}
