//! `supercargo bench schedule`.
//!
//! Pods come, wait in the queue, are taken out of it in order, decided for, reserved, permitted and assumed: everything that a
//! scheduler does for a pod until the order to bind it is out, without a watch before it and an API server behind it. The time
//! that the scheduler sees is virtual, so that every run is the same.

mod plugins;
mod report;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, value_parser};
use serde_json::{Value, json};
use supercargo_engine::{Scheduler, SchedulerOptions};
use supercargo_framework::{
    Context, Effect, Memories, Needs, OrderChanges, Profile, QueueSort, QueuedPod, Registry,
};
use supercargo_model::{Decoded, Decoder, Pod, Timestamp};
use supercargo_plugins::community::coscheduling::POD_GROUP_LABEL;

use super::figures::clock;
use super::nodes::{NodeKind, NodeMaker};
use super::objects::quota;
use super::scene::{NOW, engine_options};
use super::workloads::Sizes;
use super::{NODES_MAX, PODS_MAX, community};
use crate::outcome::Outcome;
use plugins::{
    APPLICATIONS, PERMITTED_TOGETHER, add_ageing, add_gangs, add_groups, add_network, add_qos_aware,
    add_qos_sort, add_quotas, add_topological_sort, add_topologies, app_group, application_metadata,
    calling_metadata, qos_metadata,
};
use report::{Report, table};

/// More runs are taken for a mistake.
const RUNS_MAX: i64 = 1000;
/// So much time lies between two pods that come.
const ARRIVAL: Duration = Duration::from_micros(1);
/// So much time passes with each attempt: what the slowest workload is to need.
const ATTEMPT: Duration = Duration::from_micros(10);
/// The priorities of the pods are below this one.
const PRIORITIES: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ScheduleOptions {
    /// How many nodes the cluster has
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = value_parser!(u32).range(1..=NODES_MAX))]
    nodes: u32,
    /// How many pods wait at the same time
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = value_parser!(u32).range(1..=PODS_MAX))]
    pods: u32,
    /// The workloads to run; all if none is named
    #[arg(long = "workload", value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = names())]
    workloads: Vec<String>,
    /// How many fresh clusters each workload is run on
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=RUNS_MAX))]
    runs: u32,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Plugins that a pod meets on its way.
#[derive(Debug)]
struct Workload {
    name: &'static str,
    description: &'static str,
    /// What it adds to the default profile.
    change: fn(&mut Profile) -> anyhow::Result<()>,
    nodes: NodeKind,
    /// The objects that are there before pods come.
    objects: fn(Sizes) -> Vec<Value>,
    /// So many pods are permitted together.
    together: usize,
    /// The label that says which of those a pod belongs to, if one does.
    label: Option<&'static str>,
    /// What is written into the metadata of the pod of a number.
    metadata: fn(usize) -> Value,
    /// Whether pods get no more than they ask for.
    is_guaranteed: bool,
}

/// Nothing but pods.
const PLAIN: Workload = Workload {
    name: "",
    description: "",
    change: |_| Ok(()),
    nodes: NodeKind::Plain,
    objects: |_| Vec::new(),
    together: 1,
    label: None,
    metadata: |_| Value::Null,
    is_guaranteed: false,
};

const WORKLOADS: &[Workload] = &[
    Workload { name: "default", description: "The default profile", ..PLAIN },
    Workload {
        name: "qos",
        description: "QosAware sorts the pods of a hundred controllers and keeps books of them: the order changes every 250 ms",
        change: add_qos_aware,
        metadata: qos_metadata,
        ..PLAIN
    },
    Workload {
        name: "ageing",
        description: "Pods become more important as they wait, each at its own pace: the order changes every 10 ms",
        change: add_ageing,
        ..PLAIN
    },
    Workload {
        name: "gangs",
        description: "Pods wait at Permit, and go when ten of them have a node",
        change: add_gangs,
        together: PERMITTED_TOGETHER,
        ..PLAIN
    },
    Workload {
        name: "qos-sort",
        description: "QOSSort puts pods in order by priority and quality of service",
        change: add_qos_sort,
        ..PLAIN
    },
    Workload {
        name: "topological-sort",
        description: "TopologicalSort puts the pods of ten applications with ten workloads each in order",
        change: add_topological_sort,
        objects: |_| (0..APPLICATIONS).map(app_group).collect(),
        metadata: application_metadata,
        ..PLAIN
    },
    Workload {
        name: "quotas",
        description: "CapacityScheduling with ten quotas, one of them that of all pods",
        change: add_quotas,
        objects: |Sizes { pods, .. }| {
            let others = (0..9).map(|number| quota(&format!("other-{number}"), 1, 2));
            [quota("default", pods, pods)].into_iter().chain(others).collect()
        },
        ..PLAIN
    },
    Workload {
        name: "groups",
        description: "Coscheduling with groups of a hundred",
        change: add_groups,
        objects: |sizes| (0..sizes.pods.div_ceil(GROUP_SIZE)).map(pod_group).collect(),
        together: GROUP_SIZE,
        label: Some(POD_GROUP_LABEL),
        ..PLAIN
    },
    Workload {
        name: "numa",
        description: "NodeResourceTopologyMatch takes pods off both NUMA zones of their nodes until topologies have counted them",
        change: add_topologies,
        objects: community::free_topologies,
        is_guaranteed: true,
        ..PLAIN
    },
    Workload {
        name: "network",
        description: "NetworkOverhead with ten services that call each other, on nodes in nine zones of three regions",
        change: add_network,
        nodes: NodeKind::Regional,
        objects: community::application,
        metadata: calling_metadata,
        ..PLAIN
    },
];

/// How many pods a PodGroup has.
const GROUP_SIZE: usize = 100;

/// The PodGroup of that number, a second younger than the one before.
fn pod_group(number: usize) -> Value {
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": group_name(number),
            "namespace": "default",
            "creationTimestamp": Timestamp::from_seconds(number as i64).to_string(),
        },
        "spec": { "minMember": GROUP_SIZE },
    })
}

fn group_name(number: usize) -> String {
    format!("group-{number}")
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        WORKLOADS.iter().map(|workload| PossibleValue::new(workload.name).help(workload.description)),
    )
}

/// What one run came to.
#[derive(Debug)]
struct Run {
    time: Duration,
    /// The pods in the order in which they were tried, and when.
    tried: Vec<(Timestamp, Arc<Pod>)>,
    /// How many pods are to be bound.
    bound: usize,
    /// What plugins remembered at each moment of which the order is another one.
    memories: Vec<(Timestamp, Memories)>,
}

pub(crate) fn run(options: &ScheduleOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let mut reports = Vec::new();
    let result = run_all(options, registry, &mut reports);
    // What was measured before something went wrong is still worth seeing.
    let mut outcome = result.map_or_else(|error| Outcome::failure(&error), |()| Outcome::default());
    outcome.stdout = if options.json { report::lines(&reports)? } else { table(&reports) };
    Ok(outcome)
}

fn run_all(options: &ScheduleOptions, registry: &Registry, reports: &mut Vec<Report>) -> anyhow::Result<()> {
    let (nodes, pods) = (options.nodes as usize, options.pods as usize);
    let is_chosen = |workload: &&Workload| {
        options.workloads.is_empty() || options.workloads.iter().any(|name| *name == workload.name)
    };
    for workload in WORKLOADS.iter().filter(is_chosen) {
        let mut profile = super::profile(None, 0, registry)?;
        (workload.change)(&mut profile)?;
        let mut times = Vec::new();
        let mut checked = 0;
        for _ in 0..options.runs {
            let run = run_once(workload, &profile, nodes, pods);
            let run =
                run.and_then(|run| check(workload, &profile, &run, pods).map(|compared| (run, compared)));
            let (run, compared) = run.with_context(|| format!("workload {}", workload.name))?;
            times.push(run.time);
            checked += compared;
        }
        reports.push(Report::new(workload.name, nodes, pods, &times, checked));
    }
    Ok(())
}

/// When the pod of that number comes.
fn arrival(number: usize) -> Timestamp {
    NOW.after(ARRIVAL * number as u32)
}

/// All pods come, then all are tried.
fn run_once(workload: &Workload, profile: &Profile, nodes: usize, pods: usize) -> anyhow::Result<Run> {
    let mut scheduler = Scheduler::new(vec![profile.clone()], SchedulerOptions::new(engine_options()));
    let maker = NodeMaker::new(workload.nodes);
    for number in 0..nodes {
        scheduler.put(Decoded::Node(Box::new(maker.node(number))), NOW);
    }
    for object in decoded_objects(workload, profile, Sizes { nodes, init: 0, pods })? {
        scheduler.put(object, NOW);
    }
    // Nodes are put in order when somebody looks; that is not part of a decision. Plugins that observe hear of each pod as it comes.
    scheduler.cluster();
    scheduler.advance(NOW);
    let waiting =
        (0..pods).map(|number| decoded(workload, number)).collect::<anyhow::Result<Vec<Decoded>>>()?;
    let changes = sort_of(profile)?.changes();
    let (mut now, mut tried, mut bound) = (arrival(pods), Vec::with_capacity(pods), 0);
    let mut memories: Vec<(Timestamp, Memories)> = Vec::new();
    let begin = clock();
    for (number, pod) in waiting.into_iter().enumerate() {
        scheduler.put(pod, arrival(number));
    }
    loop {
        let moment = changes.moment(now);
        if changes.every.is_some() && memories.last().is_none_or(|(last, _)| *last != moment) {
            memories.push((moment, scheduler.memories().clone()));
        }
        let Some(decision) = scheduler.schedule_next(now) else { break };
        tried.push((now, decision.pod));
        let orders = scheduler.take_orders();
        bound += orders.iter().filter(|order| matches!(order.effect, Effect::Bind { .. })).count();
        drop(scheduler.take_observations());
        now = now.after(ATTEMPT);
    }
    Ok(Run { time: begin.elapsed(), tried, bound, memories })
}

fn sort_of(profile: &Profile) -> anyhow::Result<&dyn QueueSort> {
    Ok(&*profile.queue_sort.first().context("the profile sorts pods")?.plugin)
}

/// The objects of a workload, read but not yet known to anybody.
fn decoded_objects(workload: &Workload, profile: &Profile, sizes: Sizes) -> anyhow::Result<Vec<Decoded>> {
    let decoder = Needs::of([profile]).decoder();
    let objects = (workload.objects)(sizes);
    let decoded = objects.iter().map(|object| decoder.decode(&object.to_string()));
    decoded.collect::<Result<_, _>>().context("the text of an object cannot be read")
}

/// A pod of the number as the default workload has it.
pub(super) fn plain_pod(number: usize) -> anyhow::Result<Decoded> {
    decoded(&PLAIN, number)
}

/// The pod of that number, read but not yet known to anybody.
fn decoded(workload: &Workload, number: usize) -> anyhow::Result<Decoded> {
    /// A prime, so that priorities do not come in order.
    const STRIDE: usize = 7919;
    let name = format!("pod-{number}");
    // Those that go together are of one priority.
    let together = number / workload.together.max(1);
    let ranked = if workload.label.is_some() { together } else { number };
    let labels: BTreeMap<&str, String> =
        workload.label.map(|label| (label, group_name(together))).into_iter().collect();
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "uid": name, "labels": labels },
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": ranked * STRIDE % PRIORITIES,
            "containers": [{
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.2",
                "resources": { "requests": { "cpu": "100m", "memory": "500Mi" } },
            }],
        },
    });
    if workload.is_guaranteed {
        let resources = &mut pod["spec"]["containers"][0]["resources"];
        resources["limits"] = resources["requests"].clone();
    }
    for (key, value) in (workload.metadata)(number).as_object().into_iter().flatten() {
        pod["metadata"][key] = value.clone();
    }
    Decoder::default().decode(&pod.to_string()).context("the text of a pod cannot be read")
}

/// Compares the order in which pods were tried with a naive sort of each moment. How many were compared.
fn check(workload: &Workload, profile: &Profile, run: &Run, pods: usize) -> anyhow::Result<usize> {
    let last_gang = pods % workload.together;
    if run.bound != pods - last_gang {
        bail!("{} of {pods} pods got a node and may go there", run.bound);
    }
    let sort = sort_of(profile)?;
    let changes = sort.changes();
    let mut cluster = supercargo_model::Cluster::default();
    // The queue knows nothing of nodes.
    for object in decoded_objects(workload, profile, Sizes { nodes: 0, init: 0, pods })? {
        cluster.add(object)?;
    }
    let (cluster, nothing) = (cluster.snapshot(), Memories::default());
    let context = |now| {
        let memories = run.memories.iter().find(|(moment, _)| *moment == now);
        let memories = memories.map_or(&nothing, |(_, memories)| memories);
        Context { cluster, now, memories, seed: 0, fixes: engine_options().fixes }
    };
    let mut waiting = arrivals(run, pods)?;
    let mut tried = &*run.tried;
    while let Some((now, _)) = tried.first() {
        let moment = changes.moment(*now);
        let context = context(moment);
        waiting.sort_by(|(number_a, a), (number_b, b)| {
            if sort.less(&context, a, b) {
                Ordering::Less
            } else if sort.less(&context, b, a) {
                Ordering::Greater
            } else {
                number_a.cmp(number_b)
            }
        });
        let together = tried.iter().take_while(|(now, _)| holds(&changes, *now, moment)).count();
        for ((_, expected), (now, pod)) in waiting.iter().zip(&tried[..together]) {
            if expected.pod.uid != pod.uid {
                let expected = expected.pod.key();
                bail!("at {now:?} pod {} was tried, but the first by a plain sort is {expected}", pod.key());
            }
        }
        waiting.drain(..together);
        tried = &tried[together..];
    }
    Ok(run.tried.len())
}

/// Whether the order of a moment is the order at that time.
fn holds(changes: &OrderChanges, now: Timestamp, moment: Timestamp) -> bool {
    changes.every.is_none() || changes.moment(now) == moment
}

/// The pods as the queue got them, with their numbers.
fn arrivals(run: &Run, pods: usize) -> anyhow::Result<Vec<(usize, QueuedPod)>> {
    let queued = |(_, pod): &(Timestamp, Arc<Pod>)| {
        let number: usize = pod.name.strip_prefix("pod-").and_then(|number| number.parse().ok())?;
        let queued_at = arrival(number);
        let first_attempt_at = Some(queued_at);
        Some((number, QueuedPod { pod: pod.clone(), queued_at, first_attempt_at, attempts: 0 }))
    };
    let mut arrivals =
        run.tried.iter().map(queued).collect::<Option<Vec<_>>>().context("a pod without number")?;
    arrivals.sort_by_key(|(number, _)| *number);
    if !arrivals.iter().map(|(number, _)| *number).eq(0..pods) {
        bail!("of {pods} pods not each was tried once: {} attempts", arrivals.len());
    }
    Ok(arrivals)
}
