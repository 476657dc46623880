//! QosAware in a whole scheduler, in virtual time: who goes first, who takes whose place, and what is known after a crash.

use serde_json::{Value, json};
use supercargo_engine::Observation;
use supercargo_testkit::{PodBuilder, node, pod};

use crate::only;
use crate::world::World;

fn config(points: &str, args: &str) -> String {
    let enabled = |point: &str| match point {
        "queueSort" | "postFilter" => {
            format!("    {point}: {{enabled: [{{name: QosAware}}], disabled: [{{name: \"*\"}}]}}\n")
        }
        _ => format!("    {point}: {{enabled: [{{name: QosAware}}]}}\n"),
    };
    let points: String = points.split(' ').map(enabled).collect();
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
{points}  pluginConfig:
  - name: QosAware
    args: {{{args}}}
"
    )
}

const ALL: &str = "queueSort postFilter reserve preBind postBind";
const ORDER: &str = "queueSort reserve preBind postBind";

/// A world with one node that has room for so many pods.
fn world(points: &str, args: &str, room: usize) -> World {
    let mut world = World::with_config(&config(points, args));
    world.put(node("n1").cpu(&room.to_string()));
    world
}

/// A pod that takes a whole place, of a controller that a ReplicaSet of the same name owns.
fn of(controller: &str, number: usize, slo: &str) -> PodBuilder {
    pod(&format!("{controller}-{number}"))
        .cpu("1")
        .annotation("controller", controller)
        .annotation("slo", slo)
        .controller("apps/v1", "ReplicaSet", controller)
}

fn report(world: &mut World) -> Value {
    serde_json::from_str(&world.page("QosAware", "?output=json").body).expect("it is JSON")
}

fn controller<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut all = report["controllers"].as_array().expect("a list").iter();
    all.find(|controller| controller["controller"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// Two controllers have run for 100 s each, one after the other; now somebody else has the only place.
fn with_history() -> World {
    let mut world = world(ORDER, "", 1);
    for (name, slo) in [("half", "0.5"), ("most", "0.9")] {
        world.put(of(name, 1, slo));
        world.run();
        assert_eq!(world.node_of(&format!("{name}-1")), Some("n1"));
        world.pass(100);
        world.remove(&format!("Pod {name}-1"));
    }
    world.put(of("blocker", 1, "0.1"));
    world.run();
    assert_eq!(world.node_of("blocker-1"), Some("n1"));
    world
}

#[test]
fn the_shorter_time_to_violation_goes_first_as_time_passes() {
    // It can wait for 100 s until it has had less than half, and the other for 11 until it has had less than nine tenths.
    let mut world = with_history();
    world.put(of("half", 2, "0.5"));
    let mut later = world.clone();
    world.put(of("most", 2, "0.9"));
    for (world, waits) in [(&mut world, 5), (&mut later, 0)] {
        world.pass(waits);
        world.run();
    }
    world.remove("Pod blocker-1");
    world.pass(20);
    assert_eq!((world.node_of("most-2"), world.node_of("half-2")), (Some("n1"), None));
    // The same, but the one that could wait for longer has done so before the other comes.
    later.pass(92);
    later.put(of("most", 2, "0.9"));
    later.pass(1);
    later.remove("Pod blocker-1");
    later.pass(20);
    assert_eq!((later.node_of("most-2"), later.node_of("half-2")), (None, Some("n1")));
}

#[test]
fn the_more_important_goes_first_within_the_safety_margin() {
    let mut world = world(ORDER, "safetyMargin: 30s", 2);
    for number in 1..=3 {
        world.put(of("half", number, "0.5"));
    }
    world.put(of("most", 1, "0.9"));
    world.put(pod("system").namespace("kube-system").cpu("1"));
    world.run();
    assert_eq!(world.node_of("kube-system/system"), Some("n1"), "it goes before all others");
    assert_eq!(world.node_of("most-1"), Some("n1"));
    assert!((1..=3).all(|number| world.node_of(&format!("half-{number}")).is_none()));
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_pod_keeps_its_place_for_the_minimum_running_time() {
    let mut world = world(ALL, "minimumRunningTime: 60s", 1);
    world.put(of("first", 1, "0.5"));
    world.run();
    world.pass(1);
    world.put(of("second", 1, "0.5"));
    let log = world.pass(57);
    assert!(only(&log, "evict").is_empty(), "{log:?}");
    assert_eq!(world.node_of("second-1"), None);
    let log = world.pass(7);
    assert_eq!(only(&log, "evict"), ["evict first-1 for second-1"], "{log:?}");
    world.remove("Pod first-1");
    world.pass(5);
    assert_eq!(world.node_of("second-1"), Some("n1"));
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn who_is_more_important_does_not_wait_for_that_and_nobody_evicts_its_own() {
    let mut world = world(ALL, "minimumRunningTime: 1h, safetyMargin: 1h", 1);
    world.put(of("half", 1, "0.5"));
    world.run();
    world.put(of("half", 2, "0.5"));
    let log = world.pass(30);
    assert!(only(&log, "evict").is_empty(), "of the same controller: {log:?}");
    world.put(of("most", 1, "0.9"));
    let log = world.pass(6);
    assert_eq!(only(&log, "evict"), ["evict half-1 for most-1"]);
    world.remove("Pod half-1");
    world.pass(6);
    assert_eq!(world.node_of("most-1"), Some("n1"));
    world.put(pod("system").namespace("kube-system").cpu("1"));
    let log = world.pass(6);
    assert_eq!(only(&log, "evict"), ["evict most-1 for kube-system/system"], "it goes before everybody");
}

#[test]
fn pods_that_do_not_count_are_the_first_to_go() {
    let mut world = world(ALL, "minimumRunningTime: 1h", 2);
    let set = |replicas: u32| {
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "trio", "namespace": "default" },
                "spec": { "replicas": replicas } })
    };
    world.put(set(2));
    let of_trio = |number| of("trio", number, "0.9").annotation("qosMeasuring", "concurrent");
    world.put(of_trio(1));
    world.put(of_trio(2));
    world.run();
    world.pass(10);
    let before = report(&mut world);
    assert_eq!(controller(&before, "trio")["effectiveSeconds"], json!(20.0));
    world.put(of("free", 1, "0.5"));
    let log = world.pass(10);
    assert!(only(&log, "evict").is_empty(), "both run, and are more important: {log:?}");
    // Scaled up, what the two run alone is of no use.
    world.put(set(3));
    world.pass(1);
    let report = report(&mut world);
    let trio = controller(&report, "trio");
    assert_eq!((&trio["wantedReplicas"], &trio["effectiveSeconds"]), (&json!(3), &json!(40.0)));
    let log = world.pass(6);
    assert_eq!(only(&log, "evict").len(), 1, "{log:?}");
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn the_table_is_right_again_after_a_crash_and_a_takeover() {
    let mut world = world(ALL, "minimumRunningTime: 1h", 2);
    world.set_slow(true);
    world.put(of("web", 1, "0.9"));
    world.put(of("web", 2, "0.9"));
    world.run();
    world.pass(3);
    world.set_slow(false);
    world.catch_up();
    world.pass(20);
    world.remove("Pod web-2");
    world.put(of("web", 3, "0.9"));
    world.put(of("batch", 1, "0.5").namespace("team-a"));
    world.pass(20);
    let lines = |world: &mut World| world.page("QosAware", "").body;
    let before = lines(&mut world);
    assert!(before.contains("                 web  0.93/0.90"), "{before}");
    assert!(before.contains("        team-a/batch  0.00/0.50"), "{before}");
    for end in [World::crash, World::take_over, World::restart] {
        let mut other = world.clone();
        end(&mut other);
        assert_eq!(lines(&mut other), before, "as it was");
        assert_eq!(other.page("QosAware", "?replicas").body, world.page("QosAware", "?replicas").body);
        other.pass(30);
        let mut uninterrupted = world.clone();
        uninterrupted.pass(30);
        assert_eq!(lines(&mut other), lines(&mut uninterrupted), "and goes on");
        assert_eq!(other.complaints(), [""; 0]);
    }
    // What came and went in between is noticed.
    world.put(of("web", 4, "0.9"));
    let mut killed = world.clone();
    killed.crash();
    killed.pass(10);
    world.pass(10);
    assert_eq!(lines(&mut killed), lines(&mut world));
}

#[test]
fn bookkeeping_alone_changes_nothing_else() {
    let mut plain = World::new();
    let mut world = world("reserve preBind postBind", "", 1);
    plain.put(node("n1").cpu("1"));
    let pods = [of("a", 1, "0.9").priority(1), of("b", 1, "0.1").priority(5), of("c", 1, "1").priority(3)];
    for pod in &pods {
        plain.put(pod.clone());
        world.put(pod.clone());
    }
    for _ in 0..3 {
        assert_eq!(plain.pass(20), world.pass(20));
    }
    assert_eq!(world.node_of("b-1"), Some("n1"));
    let report = report(&mut world);
    assert_eq!(controller(&report, "b")["effectiveSeconds"], json!(60.0));
    assert_eq!(controller(&report, "c")["waitingSeconds"], json!(60.0));
}

#[test]
fn a_job_counts_what_succeeds_and_loses_what_does_not() {
    let mut world = world(ORDER, "", 2);
    let of_job = |number| of("job", number, "0.5").controller("batch/v1", "Job", "job");
    world.put(of_job(1));
    world.put(of_job(2));
    world.run();
    world.pass(30);
    world.change("Pod job-1", &json!({ "status": { "phase": "Succeeded" } }));
    world.change("Pod job-2", &json!({ "status": { "phase": "Failed" } }));
    world.pass(5);
    let report = report(&mut world);
    let job = controller(&report, "job");
    assert_eq!((&job["effectiveSeconds"], &job["discardedSeconds"]), (&json!(30.0), &json!(30.0)));
    assert_eq!((&job["succeededPods"], &job["runningPods"]), (&json!(1), &json!(0)));
    let log = world.page("QosAware", "log").body;
    let fields: Vec<Vec<&str>> = log.lines().map(|line| line.split(',').collect()).collect();
    let ended: Vec<_> = fields.iter().map(|fields| (fields[1], fields[9], fields[10])).collect();
    assert_eq!(ended, [("job-1_default", "30000", "true"), ("job-2_default", "30000", "false")]);
}

#[test]
fn no_annotation_stops_the_queue_and_people_are_told_what_is_wrong() {
    let mut world = world(ALL, "safetyMargin: 20s", 4);
    for (number, slo) in ["0", "2", "-1", "x"].into_iter().enumerate() {
        world.put(of(&format!("c{number}"), 1, slo));
    }
    let log = world.run();
    assert_eq!(only(&log, "bind").len(), 4, "{log:?}");
    let told = only(&log, "InvalidAnnotation");
    assert_eq!(told.len(), 3, "{log:?}");
    assert!(told[0].contains("slo: \"2\" is no number from 0 to 1; 0.80 counts"), "{told:?}");
    world.pass(60);
    let report = report(&mut world);
    assert_eq!(controller(&report, "c0")["metricSeconds"], Value::Null, "an SLO of 0 is never violated");
    assert_eq!(controller(&report, "c1")["slo"], json!(0.8));
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn metrics_say_how_controllers_do() {
    let mut world = world(ORDER, "", 1);
    world.put(of("web", 1, "0.9"));
    world.pass(25);
    let seen = world.scheduler.take_observations();
    let last = |name: &str| {
        let gauges = seen.iter().filter_map(|seen| match seen {
            Observation::Gauged { name: known, values, .. } if known == name => Some(values),
            _ => None,
        });
        gauges.last().unwrap_or_else(|| panic!("no gauge {name}")).clone()
    };
    let qos = last("qos");
    assert_eq!(qos.len(), 1);
    assert_eq!(
        qos[0].labels,
        [("namespace".into(), "default".to_owned()), ("controller".into(), "web".to_owned())]
    );
    assert_eq!((qos[0].value, last("slo")[0].value), (1.0, 0.9));
    assert_eq!((last("controllers")[0].value, last("controllers_without_metrics")[0].value), (1.0, 0.0));
}
