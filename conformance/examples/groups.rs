//! Groups of pods come, go to their nodes together, or are refused, for `bench/groups`, which counts the instructions: a pod must not cost
//! the more the more groups there are, or the larger its own is.
//!
//!     groups together GROUPS SIZE     # so many groups of that size, all of which fit
//!     groups refused GROUPS SIZE      # the same, each with one more member that fits nowhere
//!     groups lacking GROUPS SIZE      # the same, each with one member too few, and as many plain pods that are bound meanwhile

use serde_json::{Value, json};
use supercargo_config::{build_profiles, load};
use supercargo_engine::{EngineOptions, Indexing, Rules, Scheduler, SchedulerOptions, Seed};
use supercargo_framework::{Conclusion, Effect, Fixes, Needs};
use supercargo_model::{Decoded, Timestamp};
use supercargo_testkit::{PodBuilder, node, pod};

const NODES: usize = 200;
const LABEL: &str = "scheduling.x-k8s.io/pod-group";
const CONFIG: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort: {disabled: [{name: '*'}], enabled: [{name: Coscheduling}]}
    multiPoint: {enabled: [{name: Coscheduling}]}
  pluginConfig:
  - {name: Coscheduling, args: {podGroupRejectPercentage: 0}}
";
const NOW: Timestamp = Timestamp::from_nanoseconds(1_000_000_000_000_000);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [course, groups, size] = &arguments[..] else { panic!("give a course, GROUPS and SIZE") };
    let number = |text: &String| text.parse::<usize>().expect("GROUPS and SIZE are numbers");
    let (groups, size) = (number(groups), number(size));
    // How many members a group lacks, how many of it fit nowhere, and how many pods of no group come.
    let (lacking, unfit, plain) = match &**course {
        "together" => (0, 0, 0),
        "refused" => (0, 1, 0),
        "lacking" => (1, 0, groups * size),
        other => panic!("{other} is none of together, refused and lacking"),
    };
    let profiles = build_profiles(
        &load(CONFIG).expect("the configuration is right").kube,
        &supercargo_plugins::registry(),
    );
    let profiles = profiles.expect("the profile is right");
    let decoder = Needs::of(&profiles).decoder();
    let decode = |object: Value| decoder.decode(&object.to_string()).expect("the object is right");
    let options =
        EngineOptions { rules: Rules::LIVE, seed: Seed(1), fixes: Fixes::default(), indexing: Indexing::On };
    let mut scheduler = Scheduler::new(profiles, SchedulerOptions::new(options));
    let room = u32::try_from(groups * size / NODES * 2 + 10).expect("GROUPS and SIZE are not so large");
    for number in 0..NODES {
        scheduler.put(decode(node(&format!("n{number}")).cpu(&room.to_string()).pods(room).into()), NOW);
    }
    let member = |group: usize, number: usize, cpu: &str| -> PodBuilder {
        // Members are tried by name, the one that fits nowhere last.
        let name = format!("g{group}-{number:05}");
        pod(&name).uid(&name).cpu(cpu).label(LABEL, &format!("g{group}"))
    };
    let mut pods = Vec::new();
    for group in 0..groups {
        scheduler.put(decode(pod_group(group, size + unfit)), NOW);
        pods.extend((lacking..size).map(|number| decode(member(group, number, "10m").into())));
        pods.extend((0..unfit).map(|number| decode(member(group, size + number, "100000").into())));
    }
    let waiting = pods.len();
    for number in 0..plain {
        let name = format!("p{number}");
        pods.push(decode(pod(&name).uid(&name).cpu("10m").into()));
    }
    scheduler.advance(NOW);
    for pod in pods.drain(..waiting) {
        counted_arrival(&mut scheduler, pod);
    }
    let bound = counted_attempts(&mut scheduler, 2 * waiting);
    assert_eq!(bound.len(), if lacking + unfit == 0 { waiting } else { 0 }, "who may go goes");
    for pod in pods {
        scheduler.put(pod, NOW);
    }
    let bound = if plain > 0 { counted_attempts(&mut scheduler, plain) } else { Vec::new() };
    assert_eq!(bound.len(), plain, "all of the others are bound");
    for (name, node) in bound {
        counted_arrival(&mut scheduler, decode(pod(&name).uid(&name).cpu("10m").on(&node).into()));
    }
}

fn pod_group(group: usize, min_member: usize) -> Value {
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": { "namespace": "default", "name": format!("g{group}"), "uid": format!("g{group}") },
        "spec": { "minMember": min_member },
    })
}

/// What a driver does when the watch tells of a pod: this is counted.
#[inline(never)]
fn counted_arrival(scheduler: &mut Scheduler, pod: Decoded) {
    scheduler.put(pod, NOW);
}

/// What a driver does until no pod is ready, or so many attempts were made: this is counted. The pods that are bound, and their nodes.
#[inline(never)]
fn counted_attempts(scheduler: &mut Scheduler, attempts_max: usize) -> Vec<(String, String)> {
    let mut bound = Vec::new();
    for _ in 0..attempts_max {
        if scheduler.schedule_next(NOW).is_none() {
            break;
        }
        for order in scheduler.take_orders() {
            if let (Effect::Bind { pod, node }, Some(ticket)) = (&order.effect, order.ticket) {
                scheduler.conclude(ticket, &Conclusion::Done, NOW);
                bound.push((pod.name.to_string(), node.to_string()));
            }
        }
        scheduler.take_observations();
    }
    bound
}
