//! Answers that know what they do not know: what depends on something that could not be read is marked, nothing else is. Dumps
//! say what they lack, so files show it as well as a live cluster does (`e2e/scenarios/missing.py`).

mod support;

use serde_json::Value;
use support::{check, supercargo};

/// Two nodes, and a pod for each thing that plugins look at.
const CLUSTER: &str = "\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {zone: b}}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: resident, namespace: shop, uid: resident}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1900m}}}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: slow, resources: {requests: {storage: 10Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: made, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: quick, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: classless, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: gone, resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: slow}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: Immediate
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: quick}
provisioner: csi.example.com
volumeBindingMode: Immediate
---
apiVersion: v1
kind: Pod
metadata: {name: plain, namespace: shop}
spec: {containers: [{name: c}], volumes: [{name: token, projected: {}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: labelled, namespace: shop, labels: {app: web}}
spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: spread, namespace: shop, labels: {app: web}}
spec:
  containers: [{name: c}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Pod
metadata: {name: owned, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}
spec: {containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: claimed, namespace: shop}
spec: {containers: [{name: c}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: choosy, namespace: shop}
spec:
  containers: [{name: c}]
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 1
        podAffinityTerm: {topologyKey: zone, labelSelector: {}, namespaceSelector: {matchLabels: {team: red}}}
---
apiVersion: v1
kind: Pod
metadata: {name: accelerated, namespace: shop}
spec: {containers: [{name: c, resources: {requests: {example.com/gpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: important, namespace: shop}
spec: {priority: 9, nodeSelector: {zone: a}, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
---
";

const ALL: [&str; 8] =
    ["plain", "labelled", "spread", "owned", "claimed", "choosy", "accelerated", "important"];

fn record(group: &str, plural: &str, except: &str) -> String {
    let except = if except.is_empty() { String::new() } else { format!("exceptNamespace: {except}\n") };
    format!(
        "---\napiVersion: supercargo.dev/v1alpha1\nkind: UnreadKind\nmetadata: {{name: {plural}}}\ngroup: \"{group}\"\nplural: \
         {plural}\n{except}why: may not\n"
    )
}

fn explain(text: &str) -> Vec<Value> {
    let output = supercargo(&["explain", "-f", "-", "-o", "json"], text);
    check(&output, 0, &[]);
    let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    answers.as_array().expect("a list").clone()
}

/// The pods whose answers are marked, if these objects could not be read.
#[track_caller]
fn check_marked(group: &str, plural: &str, except: &str, expected: &[&str]) {
    let answers = explain(&(CLUSTER.to_owned() + &record(group, plural, except)));
    assert_eq!(answers.len(), ALL.len());
    let marked = answers.iter().filter(|answer| !answer["doubts"].is_null());
    let marked: Vec<&str> = marked.map(|answer| answer["pod"].as_str().expect("a name")).collect();
    let expected: Vec<String> = expected.iter().map(|name| format!("shop/{name}")).collect();
    assert_eq!(marked, expected, "{plural}");
    for answer in &answers {
        assert_eq!(answer["missing"].as_array().map(Vec::len), Some(1), "{answer}");
        assert!(!answer["missing"][0]["affects"][0].is_null(), "{answer}");
    }
}

#[test]
fn only_what_depends_on_what_is_missing_is_marked() {
    assert!(
        explain(CLUSTER).iter().all(|answer| answer["missing"].is_null() && answer["uncertain"].is_null())
    );
    check_marked("", "persistentvolumes", "", &["claimed"]);
    check_marked("", "persistentvolumeclaims", "", &["claimed"]);
    check_marked("storage.k8s.io", "storageclasses", "", &["claimed"]);
    check_marked("storage.k8s.io", "csinodes", "", &["claimed"]);
    check_marked("", "namespaces", "", &["choosy"]);
    check_marked("", "services", "", &["labelled"]);
    check_marked("", "services", "shop", &[]);
    check_marked("apps", "replicasets", "", &["owned"]);
    check_marked("policy", "poddisruptionbudgets", "", &["important"]);
    check_marked("resource.k8s.io", "deviceclasses", "", &["accelerated"]);
    check_marked("", "pods", "", &ALL);
    check_marked("", "pods", "shop", &ALL);
}

#[test]
fn the_note_stands_with_what_it_is_about() {
    let text =
        CLUSTER.to_owned() + &record("storage.k8s.io", "storageclasses", "") + &record("", "pods", "shop");
    let output = supercargo(&["explain", "-f", "-", "--pod", "shop/claimed"], &text);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.starts_with("shop/claimed would stay pending (uncertain): none of 2 nodes fits\n  ? note: "),
        "{said}"
    );
    check(
        &output,
        0,
        &[
            "whoever wrote the file could not read pods outside shop and storageclasses; the answer may be wrong about affinity to \
             other pods, free resources and volumes\n",
            "VolumeBinding  ? pod has unbound immediate PersistentVolumeClaims",
            "    - ? ",
            "note: whoever wrote the file could not read pods outside shop and storageclasses; what depends on that is marked as \
             uncertain\n",
        ],
    );
    let output = supercargo(&["explain", "-f", "-", "--pod", "shop/plain"], &text);
    check(&output, 0, &["shop/plain would go to n2 (uncertain)\n  ? note: "]);
    let output = supercargo(&["capacity", "-f", "-", "--like", "shop/plain"], &text);
    check(
        &output,
        0,
        &["more like shop/plain fit", "  ? note: whoever wrote the file could not read pods outside shop; "],
    );
    let output = supercargo(&["capacity", "-f", "-", "--like", "shop/plain", "-o", "json"], &text);
    let counted: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(counted[0]["uncertain"], true);
    assert_eq!(counted[0]["missing"][0]["exceptNamespace"], "shop");
}

/// What a dump lacks, a masked copy of it lacks as well.
#[test]
fn a_mask_leaves_what_is_missing_readable() {
    let text = CLUSTER.to_owned() + &record("", "pods", "shop");
    let output = supercargo(&["dump", "-f", "-", "--mask"], &text);
    check(&output, 0, &[]);
    let masked = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!masked.contains("shop"), "{masked}");
    let answers = explain(&masked);
    assert!(answers.iter().all(|answer| !answer["doubts"].is_null()), "{answers:?}");
    let namespace = answers[0]["pod"].as_str().and_then(|name| name.split_once('/')).expect("a name").0;
    assert_eq!(answers[0]["missing"][0]["exceptNamespace"], namespace);
}

#[test]
fn what_a_volume_lacks_is_said() {
    let pod = |claim: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: shop}}\nspec: {{containers: [{{name: c}}], volumes: \
             [{{name: d, persistentVolumeClaim: {{claimName: {claim}}}}}]}}\n"
        )
    };
    for (claim, expected) in [
        ("nope", "- create the claim shop/nope; but for that 2 nodes would do"),
        (
            "data",
            "- no PersistentVolume of class slow (10Gi, RWO) is available for the claim shop/data, and the class has no provisioner: \
             create one; but for that 2 nodes would do",
        ),
        (
            "made",
            "- the claim shop/made waits for csi.example.com to make its volume (class quick); but for that",
        ),
        (
            "classless",
            "- create the StorageClass gone, which the claim shop/classless asks for; but for that",
        ),
    ] {
        let output =
            supercargo(&["explain", "-f", "-", "--pod", "shop/p"], &(CLUSTER.to_owned() + &pod(claim)));
        check(&output, 0, &[expected]);
    }
}

#[test]
fn any_scheduler_name_is_explained() {
    let theirs = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: theirs}\nspec: {schedulerName: volcano, containers: [{name: c}]}\n";
    let text = CLUSTER.to_owned() + theirs;
    let note = "note: computed with the profile default-scheduler: the pod asks for scheduler \"volcano\", which the configuration \
                does not have (--config names another)\n";
    for arguments in [&["explain", "-f", "-"][..], &["explain", "-f", "-", "--pod", "theirs"]] {
        let output = supercargo(arguments, &text);
        check(&output, 0, &[&format!("{note}default/theirs would go to n2\n")]);
    }
    check(
        &supercargo(&["capacity", "-f", "-", "--like", "theirs"], &text),
        0,
        &[note, "more like default/theirs fit"],
    );
}

#[test]
fn several_pods_and_kubectls_habits() {
    let output =
        supercargo(&["explain", "-f", "-", "-n", "shop", "--pod", "pod/plain", "--pod", "claimed"], CLUSTER);
    check(&output, 0, &["shop/plain would go to", "shop/claimed would stay pending"]);
    let output =
        supercargo(&["explain", "-f", "-", "-n", "shop", "--pod", "plain", "--pod", "nobody"], CLUSTER);
    check(&output, 1, &["shop/plain would go to", "there is no pod shop/nobody"]);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: there is no pod shop/nobody"));
    check(&supercargo(&["explain", "-f", "-", "-A"], CLUSTER), 0, &["shop/plain would go to"]);
    check(&supercargo(&["explain", "-f", "-", "-A", "-n", "shop"], CLUSTER), 2, &["cannot be used with"]);
    let output = supercargo(&["explain", "-f", "-", "-o", "yaml", "--pod", "shop/plain"], CLUSTER);
    check(&output, 0, &["  pod: shop/plain\n", "- placed:\n", "    node: n2\n"]);
    let output = supercargo(&["explain", "-f", "-", "--pod", "shop/resident"], CLUSTER);
    check(&output, 0, &["note: shop/resident runs on n1; explained as if it were not placed yet"]);
}

/// A manifest needs a cluster; one that is named and cannot be used is no reason to count on no nodes.
#[test]
fn without_nodes_nothing_is_counted() {
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: c}]}\n";
    for command in ["explain", "capacity"] {
        let output = supercargo(&[command, "-f", "-", "--kubeconfig", "/nowhere/config"], manifest);
        check(
            &output,
            1,
            &[
                "there are no nodes in the files",
                "The cluster cannot be asked about them: ",
                "/nowhere/config",
            ],
        );
        assert!(output.stdout.is_empty());
        assert!(
            String::from_utf8_lossy(&output.stderr).starts_with("error: there are no nodes in the files")
        );
        // Where files hold nodes, it is not clear which cluster is meant.
        let output = supercargo(&[command, "-f", "-", "--kubeconfig", "/nowhere/config"], CLUSTER);
        check(&output, 2, &["--kubeconfig /nowhere/config names a live cluster, and -f names files"]);
    }
}
