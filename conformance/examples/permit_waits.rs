//! Decides, binds and confirms pods while others wait at Permit, for `bench/permit`, which counts the instructions: pods that
//! wait must cost the others nothing.
//!
//!     permit_waits WAITING PODS

use std::time::Duration;

use supercargo_config::{build_profiles, load};
use supercargo_engine::{EngineOptions, Indexing, Rules, Scheduler, SchedulerOptions, Seed};
use supercargo_framework::{
    Acts, Conclusion, Cycle, Effect, Extensions, Fixes, Needs, NoArgs, Permit, PermitDecision, Plugin,
};
use supercargo_model::{Decoded, LabelLookup, NodeRef, Pod, Timestamp};
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
    fn permit(&self, cycle: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        PermitDecision::wait_until(cycle.context.now.after(Duration::from_secs(600)))
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
    let decoder = Needs::of(&profiles).decoder();
    let options = SchedulerOptions::new(EngineOptions {
        rules: Rules::LIVE,
        seed: Seed(1),
        fixes: Fixes::default(),
        indexing: Indexing::On,
    });
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
    assert_eq!(scheduler.gauges().bindings, waiting, "all of them wait");
    for number in 0..pods {
        let name = format!("p{number}");
        put(&mut scheduler, pod(&name).uid(&name).cpu("10m").into());
    }
    let mut bound = 0;
    while let Some((name, uid, node)) = counted_decision(&mut scheduler, now) {
        let confirmed = serde_json::Value::from(pod(&name).uid(&uid).cpu("10m").on(&node)).to_string();
        let confirmed = decoder.decode(&confirmed).expect("the object is right");
        counted_confirmation(&mut scheduler, confirmed, now);
        bound += 1;
    }
    assert_eq!(bound, pods, "all the others are bound");
}

/// What a driver does to decide for a pod and to bind it: this is counted. The pod's name and UID, and its node.
#[inline(never)]
fn counted_decision(scheduler: &mut Scheduler, now: Timestamp) -> Option<(String, String, String)> {
    if scheduler.next_deadline().is_some_and(|deadline| deadline <= now) {
        scheduler.advance(now);
    }
    scheduler.schedule_next(now)?;
    let mut bound = None;
    for order in scheduler.take_orders() {
        if let (Effect::Bind { pod, node }, Some(ticket)) = (&order.effect, order.ticket) {
            scheduler.conclude(ticket, &Conclusion::Done, now);
            bound = Some((pod.name.to_string(), pod.uid.to_string(), node.to_string()));
        }
    }
    scheduler.take_observations();
    bound
}

/// What a driver does when the watch tells that a pod is bound: this is counted, too.
#[inline(never)]
fn counted_confirmation(scheduler: &mut Scheduler, pod: Decoded, now: Timestamp) {
    scheduler.put(pod, now);
}
