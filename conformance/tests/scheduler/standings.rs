//! Where pods stand, as plugins read it: what a look at every pod finds, whatever has happened.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use supercargo_engine::PodPlace;
use supercargo_framework::{Context, Extensions, NoArgs, Plugin, PreEnqueue, Reads, Status};
use supercargo_model::{Pod, Standing};
use supercargo_testkit::{node, pod};
use supercargo_world::{Plugins, TakenName};

use crate::only;
use crate::permits::Pairs;
use crate::world::{InTests, World};

const CLUSTERS: u64 = 60;
const STEPS: u32 = 60;

/// Lets a pod in when two pods of its `team` are there, itself among them.
struct Teams;

impl Plugin for Teams {
    const NAME: &'static str = "Teams";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Teams
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pods_by_label("team").pods_by_namespace().finished_pods()
    }
}

impl PreEnqueue for Teams {
    fn pre_enqueue(&self, context: &Context<'_>, pod: &Pod) -> Status {
        let Some((_, team)) = pod.labels.iter().find(|(key, _)| *key == "team") else {
            return Status::success();
        };
        let others = context.pods().by_label_in(&pod.namespace, "team", team).len();
        if others >= 2 { Status::success() } else { Status::unschedulable("the team is not complete") }
    }
}

/// With both plugins, with one, with none.
const PLUGINS: [&str; 3] = ["{name: Pairs}, {name: Teams}", "{name: Teams}", "{name: Pairs}"];

fn config(plugins: &str) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{plugins}]}}}}
"
    )
}

fn add(plugins: &mut Plugins) -> Result<(), TakenName> {
    plugins.add::<Pairs>()?;
    plugins.add::<Teams>()
}

/// Numbers that look random, the same ones each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

type Counts = BTreeMap<String, Standing>;

/// Where the pods of a team stand, as a plugin reads it.
fn counted(world: &mut World, team: &str) -> Counts {
    let pods = world.scheduler.cluster().pods();
    let set = pods.by_label("team", team);
    for standing in Standing::ALL {
        assert_eq!(set.count(standing), set.iter().filter(|known| known.standing == standing).count());
    }
    for known in set.iter() {
        let has_node = matches!(known.standing, Standing::AtPermit | Standing::Bound);
        assert!(known.node.is_some() || !has_node, "{known:?}");
    }
    set.iter().map(|known| (known.pod.name.to_string(), known.standing)).collect()
}

/// The same by looking at every pod, and asking where it is.
fn looked_at(world: &mut World, team: &str) -> Counts {
    let pods: Vec<Value> =
        world.objects("Pod").filter(|pod| pod["metadata"]["labels"]["team"] == team).cloned().collect();
    let now = world.now();
    let stands = |pod: Value| {
        let name = pod["metadata"]["name"].as_str().expect("it has a name").to_owned();
        let standing = if pod["status"]["phase"] == "Succeeded" {
            Standing::Finished
        } else {
            match world.scheduler.whereabouts("default", &name, now).map(|found| found.place) {
                None if pod["spec"]["nodeName"].is_null() => return None,
                None => Standing::Bound,
                Some(PodPlace::Held { .. }) => Standing::Gated,
                Some(PodPlace::Permit { .. }) => Standing::AtPermit,
                Some(PodPlace::PreBind { .. } | PodPlace::Binding { .. } | PodPlace::Unresolved { .. }) => {
                    Standing::Bound
                }
                Some(_) => Standing::Waiting,
            }
        };
        Some((name, standing))
    };
    pods.into_iter().filter_map(stands).collect()
}

/// Whether a pod was given a node and is not known to be bound: it is taken as it was decided for until then.
fn is_assumed(world: &mut World, name: &str) -> bool {
    let now = world.now();
    let place = world.scheduler.whereabouts("default", name, now).map(|found| found.place);
    matches!(
        place,
        Some(
            PodPlace::Permit { .. }
                | PodPlace::PreBind { .. }
                | PodPlace::Binding { .. }
                | PodPlace::Unresolved { .. }
        )
    )
}

#[test]
fn plugins_read_where_pods_stand_whatever_happens() {
    for seed in 0..CLUSTERS {
        let mut chance = Chance(seed);
        let mut world = World::with_plugins(&config(PLUGINS[0]), add);
        let mut plugins = PLUGINS[0];
        for step in 0..STEPS {
            let name = format!("p{}", chance.below(12));
            let key = format!("Pod {name}");
            match chance.below(12) {
                0 => world.put(node(&format!("n{}", chance.below(3))).cpu("3")),
                1..=4 if world.find(&key).is_none() => {
                    let mut made = pod(&name).uid(&format!("{seed}-{step}")).cpu("1");
                    made = made.label("team", ["red", "blue"][chance.below(2) as usize]);
                    if chance.below(3) == 0 {
                        made = made.label("gang", ["x", "refused"][chance.below(2) as usize]);
                    }
                    if chance.below(4) == 0 {
                        made = made.with(json!({ "spec": { "schedulingGates": [{ "name": "g" }] } }));
                    }
                    world.put(made);
                }
                5 if world.find(&key).is_some() => {
                    let gates = json!({ "spec": { "schedulingGates": null } });
                    world.change(&key, &gates);
                }
                6 if world.find(&key).is_some() && !is_assumed(&mut world, &name) => {
                    world.change(&key, &json!({ "metadata": { "labels": { "team": "green" } } }));
                }
                7 => world.remove_if_there(&key),
                8 if world.find(&key).is_some_and(|pod| !pod["spec"]["nodeName"].is_null()) => {
                    world.change(&key, &json!({ "status": { "phase": "Succeeded" } }));
                }
                9 => {
                    world.set_slow(true);
                    world.pass(chance.below(40));
                    world.set_slow(false);
                    if chance.below(2) == 0 {
                        world.catch_up();
                    }
                }
                10 if chance.below(2) == 0 => {
                    plugins = PLUGINS[chance.below(3) as usize];
                    world.reconfigure(&config(plugins));
                }
                _ => {
                    world.pass(chance.below(40));
                }
            }
            if !plugins.contains("Teams") {
                // Pods are counted only as long as a pod is on its way by the plugins that read them.
                continue;
            }
            for team in ["red", "blue", "green"] {
                let mut expected = looked_at(&mut world, team);
                let found = counted(&mut world, team);
                // Pods that finished while nobody read them are known after the next list.
                expected.retain(|name, standing| *standing != Standing::Finished || found.contains_key(name));
                assert_eq!(found, expected, "seed {seed}, step {step}, team {team}");
            }
        }
    }
}

#[test]
fn a_pod_counts_for_its_own_pre_enqueue_and_stays_until_it_is_gone() {
    let mut world = World::with_plugins(&config(PLUGINS[1]), add);
    world.put(node("n1").cpu("2"));
    world.put(pod("a").cpu("1").label("team", "red"));
    assert_eq!(only(&world.run(), "bind"), [""; 0], "it waits for another one");
    assert_eq!(counted(&mut world, "red"), [("a".to_owned(), Standing::Gated)].into());
    world.put(pod("b").cpu("1").label("team", "red"));
    // The plugin reacts to everything, so the pod that is bound wakes the one that was held back.
    assert_eq!(only(&world.run(), "bind"), ["bind b to n1", "bind a to n1"]);
    assert_eq!(counted(&mut world, "red")["b"], Standing::Bound);
    world.change("Pod b", &json!({ "status": { "phase": "Succeeded" } }));
    assert_eq!(counted(&mut world, "red")["b"], Standing::Finished);
    let finished = world.scheduler.cluster().pods().by_namespace("default").count(Standing::Finished);
    assert_eq!(finished, 1);
    world.remove("Pod b");
    assert!(!counted(&mut world, "red").contains_key("b"));
    world.remove("Pod a");
    assert_eq!(counted(&mut world, "red"), [].into());
}
