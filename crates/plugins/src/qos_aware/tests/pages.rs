//! What people and programs see.

use serde_json::{Value, json};
use supercargo_framework::PageRequest;
use supercargo_model::Timestamp;
use supercargo_testkit::{PodBuilder, TestCluster, cluster, pod};

use super::*;
use crate::qos_aware::log::{EndedLog, Line};

/// The time of all tests: an hour after the epoch would not be enough for pods that run for two.
const NOW: i64 = 1_600_000_000;

fn now() -> Timestamp {
    Timestamp::from_seconds(NOW)
}

/// A point in time, so many seconds before now.
fn ago(seconds: f64) -> Timestamp {
    Timestamp::from_nanoseconds(NOW * 1_000_000_000 - (seconds * 1000.0).round() as i64 * 1_000_000)
}

fn plugin() -> QosAware {
    QosAware::new(QosAwareArgs::default())
}

fn page(cluster: &mut TestCluster, path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    cluster.now = now();
    plugin().render(&cluster.context(), &PageRequest::new(path, query)).body
}

fn of_controller(name: &str, controller: &str, slo: &str) -> PodBuilder {
    let pod = pod(name).annotation("slo", slo);
    if controller.is_empty() { pod } else { pod.annotation("controller", controller) }
}

/// A pod that waited, was bound and ran for so many seconds until now; it still waits if it did not run.
fn live(cluster: &mut TestCluster, pod: PodBuilder, waited: f64, bound: f64, ran: f64) {
    let created = json!({ "metadata": { "creationTimestamp": ago(waited + bound + ran) } });
    let pod = cluster.pod(pod.with(created));
    let books = cluster.memories.get_mut::<Books>();
    books.arrive(&pod, &|_: &books::OwnerId| None, ago(waited + bound + ran));
    if ran > 0.0 {
        let binding = (bound > 0.0).then(|| ago(bound + ran));
        books.start(&pod.uid, binding, ago(ran), ago(ran));
    }
}

#[test]
fn the_table_is_the_original_one_to_the_byte() {
    let mut cluster = cluster();
    live(&mut cluster, pod("bare").annotation("slo", "0.8"), 0.0, 0.0, 7446.0);
    live(&mut cluster, of_controller("a", "50_slo_1", "0.5"), 636.0, 0.591, 493.459);
    live(&mut cluster, of_controller("b", "50_slo_2", "0.5"), 597.0, 0.882, 562.054);
    // As the README of the original shows it.
    let expected = "
          CONTROLLER    QOS/SLO                   TTV               RUNNING               WAITING               BINDING
                      1.00/0.80                 31m1s                2h4m6s                    0s                    0s
            50_slo_1  0.44/0.50            -2m22.541s                 8m13s                10m36s                 591ms
            50_slo_2  0.48/0.50              -34.946s                 9m22s                 9m57s                 882ms
"
    .trim_start_matches('\n');
    assert_eq!(page(&mut cluster, ""), expected);
    assert_eq!(page(&mut cluster, "any/path?x=y"), expected, "at every path");
}

#[test]
fn other_namespaces_long_names_and_best_effort_are_shown() {
    let mut cluster = cluster();
    live(&mut cluster, of_controller("a", "web", "0.9").namespace("team-a"), 1.0, 0.0, 9.0);
    live(&mut cluster, of_controller("b", "web", "0"), 0.0005, 0.0, 1.0005);
    live(&mut cluster, of_controller("c", "a-name-of-more-than-twenty-letters", "1"), 90.0, 0.0, 0.0);
    live(&mut cluster, of_controller("d", "two\nlines", "1"), 1.0, 0.0, 0.0);
    let table = page(&mut cluster, "");
    let lines: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "a-name-of-more-than-twenty-letters  0.00/1.00                -1m30s                    0s                 1m30s                    0s",
            "          team-a/web  0.90/0.90                    0s                    9s                    1s                    0s",
            "           two?lines  0.00/1.00                   -1s                    0s                    1s                    0s",
            "                 web  1.00/0.00                  +Inf                    1s                    0s                    0s",
        ]
    );
}

#[test]
fn each_replica_has_a_line_if_asked_for() {
    let mut cluster = cluster();
    let of_job = |name: &str| {
        of_controller(name, "batch", "0.5")
            .controller("batch/v1", "Job", "batch")
            .annotation("qosMeasuring", "")
    };
    live(&mut cluster, of_job("a"), 10.0, 2.0, 60.0);
    live(&mut cluster, of_job("b"), 5.0, 0.0, 0.0);
    live(
        &mut cluster,
        of_controller("c", "idle", "0").annotation("acceptablePreemptionOverhead", "0.25"),
        0.0,
        1.5,
        3.0,
    );
    assert_eq!(
        page(&mut cluster, "?replicas"),
        "
          CONTROLLER    QOS/SLO  PREEMPTION OVERHEAD     QOS APPROACH        POD PHASE       QOS METRIC           EFF RUNNING           DIS RUNNING               WAITING               BINDING
             batch-0  0.00/0.50       1.00/0.50             aggregate          Pending         -78.0000                    0s                  1m0s                   15s                    2s
             batch-1  0.78/0.50       0.03/0.50             aggregate          Pending             +Inf                  1m0s                    0s                   15s                    2s
              idle-0  0.67/0.00       0.33/0.25           independent          Pending             +Inf                    3s                    0s                    0s                    1s
"
        .trim_start_matches('\n')
    );
}

#[test]
fn programs_get_everything() {
    let mut cluster = cluster();
    live(&mut cluster, of_controller("a", "50_slo_1", "0.5"), 636.0, 0.591, 493.459);
    live(&mut cluster, of_controller("b", "free", "0"), 4.0, 0.0, 0.0);
    let report: Value = serde_json::from_str(&page(&mut cluster, "?output=json")).expect("it is JSON");
    let expected = json!({
        "now": "2020-09-13T12:26:40Z",
        "controllers": [
            {
                "namespace": "default", "controller": "50_slo_1", "approach": "independent", "slo": 0.5,
                "qos": 493.459 / 1130.05, "timeToViolationSeconds": 2.0 * 493.459 - (493.459 + 636.0),
                "metricSeconds": 493.459 / 0.5 - 1130.05 - 0.591,
                "effectiveSeconds": 493.459, "discardedSeconds": 0.0, "waitingSeconds": 636.0, "bindingSeconds": 0.591,
                "wantedReplicas": 1, "runningPods": 1, "pendingPods": 0, "succeededPods": 0, "incarnations": 1,
                "replicas": [{
                    "slot": 0, "pod": "a", "phase": "Pending", "slo": 0.5, "qos": 493.459 / 1130.05,
                    "metricSeconds": 493.459 / 0.5 - 1130.05 - 0.591,
                    "preemptionOverhead": 0.591 / (0.591 + 493.459), "acceptablePreemptionOverhead": 0.5,
                }],
            },
            {
                "namespace": "default", "controller": "free", "approach": "independent", "slo": 0.0,
                "qos": 0.0, "timeToViolationSeconds": null, "metricSeconds": null,
                "effectiveSeconds": 0.0, "discardedSeconds": 0.0, "waitingSeconds": 4.0, "bindingSeconds": 0.0,
                "wantedReplicas": 1, "runningPods": 0, "pendingPods": 1, "succeededPods": 0, "incarnations": 1,
                "replicas": [{
                    "slot": 0, "pod": "b", "phase": "Pending", "slo": 0.0, "qos": 0.0, "metricSeconds": null,
                    "preemptionOverhead": 0.0, "acceptablePreemptionOverhead": 1.0,
                }],
            },
        ],
        "forgotten": {
            "controllers": 0, "incarnations": 0, "runningSeconds": 0.0, "waitingSeconds": 0.0, "bindingSeconds": 0.0,
        },
        "unsaved": { "controllers": 0, "pods": 0 },
    });
    assert_eq!(report, expected);
}

#[test]
fn pods_that_ended_are_lines_of_a_log() {
    let mut cluster = cluster();
    live(&mut cluster, of_controller("a", "50_slo_1", "0.5"), 636.0, 0.591, 493.459);
    live(&mut cluster, of_controller("b", "a,\"b\"", "0.95"), 4.0, 0.0, 0.0);
    for uid in ["a", "b"] {
        let line =
            Line::of(cluster.memories.get_mut::<Books>().now(), &uid.into(), now()).expect("it is there");
        cluster.memories.get_mut::<EndedLog>().add(&uid.into(), line);
    }
    let first = "1600000000,a_default,50_slo_1,0.500000,0,independent,1599998869,636000,591,493459,false,0.436670,\
                 -143.723000,636000,591,493459,0";
    let second = "1600000000,b_default,\"a,\"\"b\"\"\",0.950000,0,independent,1599999996,4000,0,0,false,0.000000,\
                  -6.400000,4000,0,0,0";
    assert_eq!(page(&mut cluster, "log"), format!("{first}\n{second}\n"));
    assert_eq!(page(&mut cluster, "log?after=1"), format!("{second}\n"));
    let json = |path: &str, cluster: &mut TestCluster| -> Value {
        serde_json::from_str(&page(cluster, path)).expect("it is JSON")
    };
    assert_eq!(
        json("log?output=json&after=1", &mut cluster),
        json!({ "last": 2, "lines": [second] }),
        "what is new"
    );
    assert_eq!(
        json("log?output=json&after=99", &mut cluster),
        json!({ "last": 2, "lines": [first, second] }),
        "a process that has just begun"
    );
    let log = cluster.memories.get_mut::<EndedLog>();
    let line = log.lines.first().expect("there are some").1.clone();
    for _ in 0..2 * super::super::log::LINES_MAX {
        log.add(&"c".into(), line.clone());
    }
    assert_eq!(log.lines.len(), super::super::log::LINES_MAX);
    assert_eq!(log.count as usize, 2 + 2 * super::super::log::LINES_MAX);
}
