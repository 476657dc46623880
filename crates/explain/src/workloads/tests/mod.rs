//! How many pods there are to be, and whose they are. What they look like is in [`made`].

mod made;

use serde_json::json;
use supercargo_model::kinds::PersistentVolumeClaim;
use supercargo_model::{Cluster, Decoded, Decoder, ReadableKind};

use super::*;

/// Whatever is given, as it would be read.
#[derive(Default)]
struct World {
    workloads: Workloads,
    cluster: Cluster,
    pods: Vec<Arc<Pod>>,
}

impl World {
    fn new(objects: &[Value]) -> Self {
        World::read(objects).expect("can be read")
    }

    fn read(objects: &[Value]) -> Result<Self, WorkloadError> {
        let kinds = [ReadableKind::of::<PersistentVolumeClaim>(), ReadableKind::of::<StorageClass>()];
        let decoder = Decoder::new(kinds, false).keeping(&Workloads::kinds());
        let mut world = World::default();
        for object in objects {
            match decoder.decode(&object.to_string()).expect("can be decoded") {
                Decoded::Pod(mut words) => {
                    words.complete();
                    world.pods.push(Arc::new(world.cluster.interner().pod(*words)));
                }
                Decoded::Node(words) => drop(world.cluster.put_node(&words)),
                Decoded::Object(object) => {
                    world.workloads.take(&object, 0)?;
                    world.cluster.put_object(object);
                }
                Decoded::Unread { .. } => panic!("nobody reads {object}"),
            }
        }
        Ok(world)
    }

    fn expand(mut self) -> Vec<WorkloadPods> {
        let snapshot = self.cluster.snapshot();
        self.workloads.expand("shop", None, self.pods.iter(), snapshot).expect("can be expanded")
    }
}

fn expand(objects: &[Value]) -> Vec<WorkloadPods> {
    World::new(objects).expand()
}

/// The one workload that speaks.
#[track_caller]
fn expand_one(objects: &[Value]) -> WorkloadPods {
    let mut expanded = expand(objects);
    assert_eq!(expanded.len(), 1, "{expanded:?}");
    expanded.remove(0)
}

fn workload(kind: &str, name: &str, spec: Value) -> Value {
    let kind = WorkloadKind::from_word(kind).expect("a kind of workload").id();
    let mut spec = spec;
    let maker = if kind.kind == "CronJob" { &mut spec["jobTemplate"]["spec"] } else { &mut spec };
    if maker["template"].is_null() {
        maker["template"] =
            json!({ "metadata": { "labels": { "app": name } }, "spec": { "containers": [{ "name": "c" }] } });
    }
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": { "name": name, "namespace": "shop", "uid": format!("{name}-uid") }, "spec": spec,
    })
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let mut place = &mut object;
    for key in pointer.split('.') {
        place = &mut place[key];
    }
    *place = value;
    object
}

fn owned(object: Value, kind: &str, name: &str) -> Value {
    let kind = WorkloadKind::from_word(kind).expect("a kind of workload").id();
    let owner = json!([{
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": name, "uid": format!("{name}-uid"), "controller": true,
    }]);
    with(object, "metadata.ownerReferences", owner)
}

fn pod(name: &str, kind: &str, owner: &str) -> Value {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "shop", "labels": {} },
        "spec": { "containers": [{ "name": "c" }] },
    });
    owned(pod, kind, owner)
}

fn leaving(pod: Value) -> Value {
    with(pod, "metadata.deletionTimestamp", json!("2026-01-01T00:00:00Z"))
}

fn node(name: &str, spec: &Value, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels }, "spec": spec })
}

fn names(pods: &WorkloadPods) -> Vec<&str> {
    pods.pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect()
}

/// What, the objects, how many are wanted, exist and are created, and what these are called.
type Count = (&'static str, Vec<Value>, (u64, u64, u64), &'static [&'static str]);

/// How many each kind wants, has and creates, and what these are called.
#[test]
fn pods_are_counted_as_the_controllers_count_them() {
    let status = |object: Value, status: Value| with(object, "status", status);
    let indexed = |spec: Value| {
        with(with(json!({}), "spec", spec), "spec.completionMode", json!("Indexed"))["spec"].take()
    };
    let job = |spec: Value| workload("job", "j", spec);
    let in_job = |name: &str, index: &str| {
        with(
            pod(name, "job", "j"),
            "metadata.labels",
            json!({ "batch.kubernetes.io/job-completion-index": index }),
        )
    };
    let table: Vec<Count> = vec![
        ("replicas default to 1", vec![workload("deploy", "w", json!({}))], (1, 0, 1), &["w-new-1"]),
        ("0 is none", vec![workload("deploy", "w", json!({ "replicas": 0 }))], (0, 0, 0), &[]),
        (
            "a controller of old",
            vec![workload("rc", "w", json!({ "replicas": 2 })), pod("a", "rc", "w")],
            (2, 1, 1),
            &["w-new-1"],
        ),
        (
            "who leaves is replaced",
            vec![
                workload("rs", "w", json!({ "replicas": 2 })),
                pod("a", "rs", "w"),
                leaving(pod("b", "rs", "w")),
            ],
            (2, 1, 1),
            &["w-new-1"],
        ),
        (
            "more than wanted",
            vec![workload("rs", "w", json!({ "replicas": 1 })), pod("a", "rs", "w"), pod("b", "rs", "w")],
            (1, 2, 0),
            &[],
        ),
        (
            "the status knows of pods that are not here",
            vec![status(workload("rs", "w", json!({ "replicas": 3 })), json!({ "replicas": 2 }))],
            (3, 2, 1),
            &["w-new-1"],
        ),
        (
            "ordinals start where they are told, and gaps are filled",
            vec![
                workload("sts", "db", json!({ "replicas": 3, "ordinals": { "start": 5 } })),
                pod("db-6", "sts", "db"),
            ],
            (3, 1, 2),
            &["db-5", "db-7"],
        ),
        (
            "a stateful pod that leaves keeps its number",
            vec![
                workload("sts", "db", json!({ "replicas": 2 })),
                leaving(pod("db-0", "sts", "db")),
                pod("db-9", "sts", "db"),
            ],
            (2, 1, 1),
            &["db-1"],
        ),
        (
            "stateful pods that only the status knows have the lowest numbers",
            vec![
                status(workload("sts", "db", json!({ "replicas": 4 })), json!({ "replicas": 3 })),
                pod("db-1", "sts", "db"),
            ],
            (4, 3, 1),
            &["db-3"],
        ),
        ("a job of one", vec![job(json!({}))], (1, 0, 1), &["j-new-1"]),
        ("no parallelism", vec![job(json!({ "parallelism": 0, "completions": 3 }))], (0, 0, 0), &[]),
        (
            "no more than are left to complete",
            vec![
                status(job(json!({ "parallelism": 5, "completions": 6 })), json!({ "succeeded": 4 })),
                pod("a", "job", "j"),
            ],
            (2, 1, 1),
            &["j-new-1"],
        ),
        ("a work queue", vec![job(json!({ "parallelism": 2 }))], (2, 0, 2), &["j-new-1", "j-new-2"]),
        (
            "a work queue that is empty",
            vec![status(job(json!({ "parallelism": 2 })), json!({ "succeeded": 1 }))],
            (0, 0, 0),
            &[],
        ),
        (
            "a finished job",
            vec![status(
                job(json!({ "completions": 2 })),
                json!({ "conditions": [{ "type": "Failed", "status": "True" }] }),
            )],
            (0, 0, 0),
            &[],
        ),
        (
            "indexes that are done, failed or running are taken",
            vec![
                status(
                    job(indexed(json!({ "parallelism": 4, "completions": 8 }))),
                    json!({ "succeeded": 3, "completedIndexes": "0-1,4", "failedIndexes": "5" }),
                ),
                in_job("a", "2"),
            ],
            (4, 1, 3),
            &["j-3-new", "j-6-new", "j-7-new"],
        ),
        (
            "a job replaces who leaves",
            vec![job(json!({ "parallelism": 1, "completions": 1 })), leaving(pod("a", "job", "j"))],
            (1, 0, 1),
            &["j-new-1"],
        ),
        (
            "unless it waits for failures",
            vec![job(json!({ "podReplacementPolicy": "Failed" })), leaving(pod("a", "job", "j"))],
            (1, 1, 0),
            &[],
        ),
        (
            "one run of a cron job",
            vec![workload(
                "cj",
                "n",
                json!({ "jobTemplate": { "spec": { "parallelism": 2, "completions": 9 } } }),
            )],
            (2, 0, 2),
            &["n-new-1", "n-new-2"],
        ),
    ];
    for (what, objects, (wants, exists, creates), expected) in table {
        let made = expand_one(&objects);
        let summary = &made.summary;
        assert_eq!((summary.wants, summary.exists, summary.creates), (wants, exists, creates), "{what}");
        assert_eq!(names(&made), expected, "{what}");
    }
}

#[test]
fn what_is_paused_or_suspended_or_in_order_is_said() {
    for (object, remark) in [
        (workload("deploy", "w", json!({ "paused": true })), "it is paused"),
        (workload("job", "j", json!({ "suspend": true })), "it is suspended"),
        (workload("cj", "n", json!({ "suspend": true })), "it is suspended"),
        (workload("cj", "n", json!({ "jobTemplate": { "spec": { "suspend": true } } })), "it is suspended"),
        (workload("sts", "db", json!({ "replicas": 2 })), "db-0 is next"),
    ] {
        let made = expand_one(&[object]);
        assert!(made.summary.text().contains(remark), "{}", made.summary.text());
        assert!(!made.pods.is_empty(), "{remark}");
    }
    let parallel = workload("sts", "db", json!({ "replicas": 2, "podManagementPolicy": "Parallel" }));
    assert_eq!(expand_one(&[parallel]).summary.remarks, [""; 0]);
}

#[test]
fn a_million_replicas_are_told_by_a_few() {
    for kind in ["deploy", "rs", "sts", "rc"] {
        let made = expand_one(&[workload(kind, "w", json!({ "replicas": 1_000_000 }))]);
        assert_eq!((made.pods.len(), made.summary.creates), (PODS_MADE_MAX, 1_000_000), "{kind}");
        let text = made.summary.text();
        assert!(text.contains("it would create 1000000; 100 explained, the others are like them"), "{text}");
    }
    let job = json!({ "parallelism": 1_000_000, "completions": 2_000_000_000, "completionMode": "Indexed" });
    assert_eq!(expand_one(&[workload("job", "j", job)]).pods.len(), PODS_MADE_MAX);
    let by_status = with(
        workload("sts", "w", json!({ "replicas": i64::MAX })),
        "status",
        json!({ "replicas": i64::MAX - 1 }),
    );
    assert_eq!(expand_one(&[by_status]).summary.creates, 1);
}

/// Pods belong to a Deployment through its ReplicaSets, and to a CronJob through its Jobs.
#[test]
fn pods_are_found_through_what_a_workload_makes() {
    let deployment = || workload("deploy", "w", json!({ "replicas": 3 }));
    let set = |name: &str| owned(workload("rs", name, json!({ "replicas": 1 })), "deploy", "w");
    let hashed = |pod: Value, hash: &str| with(pod, "metadata.labels", json!({ "pod-template-hash": hash }));
    let table = [
        ("two generations", vec![set("w-1"), set("w-2"), pod("a", "rs", "w-1"), pod("b", "rs", "w-2")], 2),
        ("another's", vec![workload("rs", "w-1", json!({ "replicas": 0 })), pod("a", "rs", "w-1")], 0),
        ("a set that is not here", vec![hashed(pod("a", "rs", "w-5d4"), "5d4")], 1),
        ("a set of another name", vec![hashed(pod("a", "rs", "w-x-5d4"), "5d4")], 0),
        (
            "of another namespace",
            vec![set("w-1"), with(pod("a", "rs", "w-1"), "metadata.namespace", json!("other"))],
            0,
        ),
    ];
    for (what, mut objects, exists) in table {
        objects.push(deployment());
        let expanded = expand(&objects);
        let made = expanded.iter().find(|made| made.summary.kind == WorkloadKind::Deployment).expect(what);
        assert_eq!((made.summary.exists, made.summary.creates), (exists, 3 - exists), "{what}");
    }
    let former = with(
        pod("a", "rs", "w"),
        "metadata.ownerReferences",
        json!([
            { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "an earlier one", "controller": true }
        ]),
    );
    let set = workload("rs", "w", json!({}));
    assert_eq!(expand_one(&[set.clone(), former.clone()]).summary.exists, 0, "an earlier one of the name");
    let by_hand = with(set, "metadata.uid", json!(""));
    assert_eq!(expand_one(&[by_hand, former]).summary.exists, 1, "by name, where there is no uid");
}

/// A Job of a CronJob that has not finished is the run.
#[test]
fn a_run_of_a_cron_job_that_is_there_is_the_run() {
    let cron =
        || workload("cj", "n", json!({ "jobTemplate": { "spec": { "parallelism": 2, "completions": 2 } } }));
    let job = || owned(workload("job", "n-1", json!({ "parallelism": 2, "completions": 2 })), "cj", "n");
    let made = expand_one(&[cron(), job(), pod("a", "job", "n-1")]);
    assert_eq!((made.summary.kind, made.summary.creates), (WorkloadKind::Job, 1));
    assert_eq!(made.parent, Some((WorkloadKind::CronJob, "shop/n".to_owned())));
    let done = with(job(), "status", json!({ "conditions": [{ "type": "Complete", "status": "True" }] }));
    let made = expand(&[cron(), done]);
    assert_eq!(made.iter().map(|made| made.summary.creates).collect::<Vec<_>>(), [2, 0]);
}

#[test]
fn one_workload_can_be_asked_for() {
    let objects = [
        workload("deploy", "w", json!({})),
        owned(workload("rs", "w-1", json!({ "replicas": 4 })), "deploy", "w"),
        workload("cj", "n", json!({})),
        owned(workload("job", "n-1", json!({})), "cj", "n"),
    ];
    for (kind, name, expected) in [
        ("deploy", "shop/w", vec!["shop/w"]),
        ("rs", "shop/w-1", vec!["shop/w-1"]),
        ("cj", "shop/n", vec!["shop/n-1"]),
        ("job", "shop/n-1", vec!["shop/n-1"]),
        ("job", "other/n-1", vec![]),
    ] {
        let mut world = World::new(&objects);
        let only = Some((WorkloadKind::from_word(kind).expect("a kind"), name));
        let made = world.workloads.expand("shop", only, world.pods.iter(), world.cluster.snapshot());
        let made = made.expect("can be expanded");
        assert_eq!(
            made.iter().map(|made| &*made.summary.name).collect::<Vec<_>>(),
            expected,
            "{kind} {name}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_workload_is_said_with_its_place() {
    let requests = |cpu: Value| json!({ "template": { "spec": { "containers": [{ "resources": { "requests": { "cpu": cpu } } }] } } });
    let table = [
        (
            workload("deploy", "w", requests(json!("half"))),
            "Deployment shop/w: spec.template.spec.containers[0].resources.requests",
        ),
        (
            workload("cj", "n", json!({ "jobTemplate": { "spec": requests(json!("half")) } })),
            "CronJob shop/n: spec.jobTemplate.spec.template.spec.containers[0]",
        ),
        (workload("deploy", "w", json!({ "replicas": "three" })), "Deployment shop/w: spec.replicas"),
        (
            workload("deploy", "w", json!({ "template": {} })),
            "Deployment shop/w: it has no spec.template.spec to make pods from",
        ),
        (
            workload("sts", "w", json!({ "template": { "spec": [] } })),
            "StatefulSet shop/w: it has no spec.template.spec",
        ),
    ];
    for (object, expected) in table {
        let error = World::read(&[object]).err().expect("is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
