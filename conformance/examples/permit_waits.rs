//! Decides, binds and confirms pods while others wait at Permit, for `bench/permit`, which counts the instructions: pods that
//! wait must cost the others nothing.
//!
//!     permit_waits WAITING PODS

use std::time::Duration;

use serde_json::json;
use supercargo_config::{build_profiles, load};
use supercargo_engine::{EngineOptions, Indexing, Rules, Scheduler, SchedulerOptions, Seed};
use supercargo_framework::{
    Conclusion, Cycle, Effect, Extensions, Fixes, Memories, NoArgs, Permit, PermitDecision, PermitResult,
    Plugin,
};
use supercargo_model::{Decoder, LabelLookup, NodeRef, Pod, Timestamp};
use supercargo_testkit::{node, pod};

const NODES: usize = 200;
const CONFIG: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {permit: {enabled: [{name: Waits}]}}
";

/// Makes pods with the label `waits` wait at Permit.
struct Waits;

impl Plugin for Waits {
    const NAME: &'static str = "Waits";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Waits
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.permit()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.labels.label("waits").is_some()
    }
}

impl Permit for Waits {
    fn permit(&self, _: &mut Cycle<'_>, _: &mut Memories, _: NodeRef<'_>) -> PermitResult {
        let decision = PermitDecision::Wait { timeout: Duration::from_secs(600) };
        PermitResult { decision, waiting: Vec::new() }
    }
}

fn main() {
    let mut counts =
        std::env::args().skip(1).map(|count| count.parse().expect("WAITING and PODS are numbers"));
    let (waiting, pods): (usize, usize) =
        counts.next().zip(counts.next()).expect("give two numbers: WAITING and PODS");
    let mut registry = supercargo_plugins::registry();
    registry.register::<Waits>().expect("the name is free");
    let loaded = load(CONFIG).expect("the configuration is right");
    let profiles = build_profiles(&loaded.kube, &registry).expect("the profile is right");
    let reads = profiles.iter().filter_map(|profile| profile.reads.as_ref());
    let decoder = Decoder::new(reads.flat_map(|reads| reads.kinds.clone()), false);
    let options = SchedulerOptions {
        engine: EngineOptions {
            rules: Rules::LIVE,
            seed: Seed(1),
            fixes: Fixes::default(),
            indexing: Indexing::On,
        },
        initial_backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(10),
        max_unschedulable: Duration::from_secs(300),
    };
    let mut scheduler = Scheduler::new(profiles, options);
    let now = Timestamp::from_seconds(1_000_000);
    let put = |scheduler: &mut Scheduler, object: serde_json::Value| {
        scheduler.put(decoder.decode(&object.to_string()).expect("the object is right"), now);
    };
    for number in 0..NODES {
        put(&mut scheduler, node(&format!("n{number}")).cpu("1000").pods(1000).into());
    }
    for number in 0..waiting {
        let name = format!("waits-{number}");
        put(&mut scheduler, pod(&name).uid(&name).cpu("10m").label("waits", "yes").into());
    }
    while scheduler.schedule_next(now).is_some() {}
    scheduler.take_orders();
    scheduler.take_observations();
    assert_eq!(scheduler.standing().bindings, waiting, "all of them wait");
    for number in 0..pods {
        let name = format!("p{number}");
        put(&mut scheduler, pod(&name).uid(&name).cpu("10m").into());
    }
    let bound = decide_all(&mut scheduler, &decoder, now);
    assert_eq!(bound, pods, "all the others are bound");
}

/// What a driver does for each pod: this is what is counted.
#[inline(never)]
fn decide_all(scheduler: &mut Scheduler, decoder: &Decoder, now: Timestamp) -> usize {
    let mut bound = 0;
    loop {
        if scheduler.next_deadline().is_some_and(|deadline| deadline <= now) {
            scheduler.advance(now);
        }
        if scheduler.schedule_next(now).is_none() {
            return bound;
        }
        for order in scheduler.take_orders() {
            let (Effect::Bind { pod: bind, node }, Some(ticket)) = (&order.effect, order.ticket) else {
                continue;
            };
            scheduler.conclude(ticket, &Conclusion::Done, now);
            let confirmed = pod(&bind.name).uid(&bind.uid).cpu("10m").on(node).with(json!({}));
            let confirmed = serde_json::Value::from(confirmed).to_string();
            scheduler.put(decoder.decode(&confirmed).expect("the object is right"), now);
            bound += 1;
        }
        scheduler.take_observations();
    }
}
