//! Random clusters, with an API server that is slow and fails: whatever happens, nothing is lost and no node is given more
//! than it has.

use serde_json::json;
use supercargo_testkit::{node, pod};

use crate::world::{InTests, World};

/// How many clusters a test tries.
const CLUSTERS: u64 = 60;
const STEPS: u32 = 60;
/// Longer than any pod waits for nothing.
const LONG: u64 = 1000;

/// The default, another one, and one that is not responsible for the pods.
const CONFIGURATIONS: [&str; 3] = [
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
    "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: VolumeBinding}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
",
    "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: other}]
",
];

/// Numbers that look random, the same ones each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn whatever_happens_nothing_is_lost_and_no_node_is_over() {
    for seed in 0..CLUSTERS {
        let mut chance = Chance(seed);
        let mut world = World::new();
        let (mut pods, mut nodes, mut made) = (Vec::new(), Vec::new(), 0);
        for _ in 0..STEPS {
            step(&mut world, &mut chance, &mut pods, &mut nodes, &mut made);
            if chance.below(3) == 0 {
                world.run();
            }
            check_room(&mut world, seed);
        }
        settle(&mut world, &mut pods);
        check_room(&mut world, seed);
        for name in &pods {
            let Some(object) = world.find(&format!("Pod {name}")) else { continue };
            if object["spec"]["nodeName"].is_null() {
                let cpu = object["spec"]["containers"][0]["resources"]["requests"]["cpu"].clone();
                let cpu: i64 =
                    cpu.as_str().and_then(|cpu| cpu.parse().ok()).expect("it asks for whole cores");
                let free = world.free_cpu();
                assert!(
                    free.iter().all(|(_, free)| *free < cpu),
                    "seed {seed}: {name} asks for {cpu} and waits, though there is {free:?}"
                );
            }
        }
    }
}

fn step(
    world: &mut World,
    chance: &mut Chance,
    pods: &mut Vec<String>,
    nodes: &mut Vec<String>,
    made: &mut u32,
) {
    *made += 1;
    let pick = |chance: &mut Chance, names: &[String]| {
        (!names.is_empty()).then(|| names[chance.below(names.len() as u64) as usize].clone())
    };
    match chance.below(13) {
        0 | 1 => {
            let name = format!("n{made}");
            world.put(node(&name).cpu(&(1 + chance.below(4)).to_string()));
            nodes.push(name);
        }
        2..=5 => {
            let name = format!("p{made}");
            let priority = chance.below(3) as i32;
            world.put(pod(&name).cpu(&(1 + chance.below(3)).to_string()).priority(priority));
            pods.push(name);
        }
        6 => {
            if let Some(name) = pick(chance, pods) {
                pods.retain(|other| *other != name);
                world.remove_if_there(&format!("Pod {name}"));
            }
        }
        7 => {
            if let Some(name) = pick(chance, nodes)
                && world.is_empty_node(&name)
            {
                nodes.retain(|other| *other != name);
                world.remove(&format!("Node {name}"));
            }
        }
        8 => {
            let faults = [("bind", "the server is away"), ("evict", "forbidden"), ("status", "conflict")];
            let (order, error) = faults[chance.below(3) as usize];
            world.fail(order, error);
        }
        9 => world.heal(),
        10 => {
            world.set_slow(true);
            world.pass(chance.below(20));
            world.set_slow(false);
            if chance.below(2) == 0 {
                world.catch_up();
            }
        }
        11 => world.reconfigure(CONFIGURATIONS[chance.below(3) as usize]),
        _ => {
            world.pass(chance.below(40));
        }
    }
}

/// Lets everything come to rest: victims go, the server works, time passes.
fn settle(world: &mut World, pods: &mut Vec<String>) {
    world.heal();
    world.reconfigure(CONFIGURATIONS[0]);
    world.catch_up();
    for _ in 0..20 {
        world.pass(LONG);
        let leaving: Vec<String> = (pods.iter())
            .filter(|name| {
                let object = world.find(&format!("Pod {name}"));
                object.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string())
            })
            .cloned()
            .collect();
        if leaving.is_empty() {
            return;
        }
        for name in leaving {
            pods.retain(|other| *other != name);
            world.remove(&format!("Pod {name}"));
        }
    }
    panic!("it never comes to rest");
}

fn check_room(world: &mut World, seed: u64) {
    let over = world.over_committed();
    assert!(over.is_empty(), "seed {seed}: {over:?}");
    // The scheduler's own view is the same once all orders are done, or fuller.
    assert_eq!(
        json!(world.scheduler.cluster().node_count()),
        json!(world.objects("Node").count()),
        "seed {seed}"
    );
}
