//! NetworkTraffic over time: traffic comes and goes, an agent says whatever it likes, and every pod goes somewhere.

use serde_json::json;
use supercargo_testkit::{node, pod};

use crate::world::World;

/// As readers of the original write it, with what is new below: only traffic counts.
const CONFIG: &str = r#"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: NetworkTraffic}]
    reserve:
      enabled: [{name: NetworkTraffic}]
  pluginConfig:
  - name: NetworkTraffic
    args: {prometheusAddress: "http://prometheus:9090", networkInterface: eth0, AGENT}
"#;
/// The workers, and where their node exporters are.
const WORKERS: [(&str, &str); 4] =
    [("w1", "10.0.0.1"), ("w2", "10.0.0.2"), ("w3", "10.0.0.3"), ("w4", "10.0.0.4")];

fn world(agent: &str) -> World {
    let mut world = World::with_config(&CONFIG.replace("AGENT", agent));
    for (name, address) in WORKERS {
        world.put(
            node(name)
                .cpu("1000")
                .with(json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}})),
        );
    }
    let control_plane = json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]},
        "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}});
    world.put(node("control-plane").cpu("1000").with(control_plane));
    world
}

/// What Prometheus says now: what each worker has received.
fn receive(world: &mut World, bytes: [Option<i64>; 4]) {
    let now = world.now().nanoseconds() / 1_000_000_000;
    let known = WORKERS.iter().zip(bytes).filter_map(|((_, address), bytes)| Some((address, bytes?)));
    let result: Vec<_> = known
        .map(|(address, bytes)| {
            json!({"metric": {"device": "eth0", "instance": format!("{address}:9100")}, "value": [now, bytes.to_string()]})
        })
        .collect();
    let text = json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string();
    assert_eq!(world.answer("network-traffic", &text), Ok(String::new()), "all of it counts");
}

/// Where a new pod goes, which nobody has to be asked about.
fn place(world: &mut World, name: &str) -> String {
    world.put(pod(name).cpu("1"));
    world.run();
    world.node_of(name).expect("it goes somewhere").to_owned()
}

/// Where a new pod goes for which the agent gives this answer, and how it was counted.
fn suggested(world: &mut World, name: &str, answer: &str) -> (String, Vec<String>) {
    world.put(pod(name).cpu("1"));
    world.run();
    assert_eq!(world.node_of(name), None, "it waits for the answer");
    _ = world.answer_about(name, answer);
    world.run();
    (world.node_of(name).expect("it goes somewhere").to_owned(), world.counted())
}

#[test]
fn pods_follow_the_traffic_and_go_on_when_nobody_knows_it() {
    let mut world = world("");
    assert!(!place(&mut world, "early").is_empty(), "Prometheus has not been asked yet");
    receive(&mut world, [Some(5000), Some(15), Some(4000), Some(3000)]);
    assert_eq!(place(&mut world, "a"), "w2");
    receive(&mut world, [Some(5000), Some(20_000), Some(4000), Some(3000)]);
    assert_eq!(place(&mut world, "b"), "w4");
    // A node that nobody measures gets 50 points: less than the best, more than the worst.
    receive(&mut world, [Some(5000), Some(20_000), None, Some(0)]);
    assert_eq!(place(&mut world, "c"), "w4");
    receive(&mut world, [Some(20_000), Some(20_000), None, Some(20_000)]);
    assert_eq!(place(&mut world, "d"), "w3");
    // Nothing is said for an hour: what was said is out of date, and nobody is preferred for it.
    world.pass(3600);
    let places: std::collections::BTreeSet<String> =
        (0..40).map(|number| place(&mut world, &format!("late-{number}"))).collect();
    assert!(places.len() > 1, "{places:?}");
    receive(&mut world, [Some(1), Some(20_000), Some(20_000), Some(20_000)]);
    assert_eq!(place(&mut world, "e"), "w1");
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn an_agent_comes_first_and_what_is_no_whole_answer_is_counted() {
    let mut world = world(r#"agentAddress: "localhost:8765""#);
    receive(&mut world, [Some(5000), Some(15), Some(4000), Some(3000)]);
    let by = |what: &str| vec![format!("decisions{{by={what}}}")];
    for (name, answer, expected, counted) in [
        // The agent of the original: 10 for its choice, 1 for every other worker, and no word of the control plane.
        ("chosen", r#"{"10.0.0.1": 1, "10.0.0.2": 1, "10.0.0.3": 10, "10.0.0.4": 1}"#, "w3", "suggestion"),
        ("by-name", r#"{"w1": 1, "w2": 0, "w3": 3, "w4": 9}"#, "w4", "suggestion"),
        (
            "beyond",
            r#"{"w1": 9223372036854775807, "w2": -9223372036854775808, "w3": 0, "w4": 0}"#,
            "w1",
            "suggestion",
        ),
        ("partial", r#"{"10.0.0.3": 10, "10.0.0.4": 1}"#, "w2", "partial"),
        ("partial-but-named", r#"{"10.0.0.2": 1, "10.0.0.4": 10}"#, "w2", "partial"),
        ("strangers", r#"{"10.9.9.9": 10}"#, "w2", "traffic"),
        ("nothing", "", "w2", "traffic"),
        ("no-json", "<html>busy</html>", "w2", "traffic"),
        ("cut", r#"{"10.0.0.3": 1"#, "w2", "traffic"),
        ("fractions", r#"{"w1": 1, "w2": 1, "w3": 10.5, "w4": 1}"#, "w2", "traffic"),
        ("an-error", r#"{"status": "error", "message": "no model yet"}"#, "w2", "traffic"),
    ] {
        assert_eq!(
            suggested(&mut world, name, answer),
            (expected.to_owned(), by(counted)),
            "{name}: {answer}"
        );
    }
    assert_eq!(world.complaints(), [""; 0]);
}

#[test]
fn a_slow_agent_delays_its_own_pod_only_and_only_for_a_moment() {
    let mut world = world(r#"agentAddress: "localhost:8765", agentTimeout: 100ms"#);
    receive(&mut world, [Some(5000), Some(15), Some(4000), Some(3000)]);
    world.put(pod("slow").cpu("1"));
    world.run();
    let (other, _) = suggested(&mut world, "quick", r#"{"w1": 1, "w2": 1, "w3": 1, "w4": 10}"#);
    assert_eq!((other.as_str(), world.node_of("slow")), ("w4", None));
    world.pass_time(std::time::Duration::from_millis(100));
    assert_eq!(world.node_of("slow"), Some("w2"), "by traffic");
    assert_eq!(world.counted(), ["decisions{by=traffic}"]);
}
