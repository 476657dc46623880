//! The plugins that workloads add to the default profile.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use supercargo_conformance::samples;
use supercargo_framework::{
    Acts, Context, Cycle, Extensions, Memory, NoArgs, OrderChanges, Permit, PermitDecision, Plugin, Point,
    Profile, QueueRank, QueueSort, QueuedPod, Reads, Registry,
};
use supercargo_model::NodeRef;
use supercargo_plugins::community::network_aware::{APP_GROUP_LABEL, WORKLOAD_LABEL};
use supercargo_plugins::community::{
    CapacityScheduling, Coscheduling, NodeResourceTopologyMatch, QosSort, TopologicalSort,
};
use supercargo_plugins::qos_aware::QosAware;

use super::NOW;
use super::community;
use crate::bench::pods::{APPLICATION, CALLING_SERVICES, calling_service};

/// So many pods are permitted together.
pub(super) const PERMITTED_TOGETHER: usize = 10;
/// A pod waits no longer at Permit; no workload takes so long.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(600);
/// How often the order of ageing pods changes.
const AGES_EVERY: Duration = Duration::from_millis(10);
/// One more of priority is worth so many milliseconds of waiting at the slowest pace.
const PRIORITY_MILLISECONDS: i64 = 100;
/// How many paces there are.
const PACES: i64 = 8;

/// Pods become more important as they wait, each at its own pace.
#[derive(Debug)]
struct Ageing;

/// Lets pods go when ten of them have a node.
#[derive(Debug)]
struct Gangs;

/// The pods that wait, by UID.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Gathered(Vec<Arc<str>>);

impl Memory for Gathered {
    const NAME: &'static str = "BenchGangs";
}

/// Sorts pods by how long they have waited.
pub(super) fn add_ageing(profile: &mut Profile) -> anyhow::Result<()> {
    profile.queue_sort.clear();
    add::<Ageing>(profile, Point::QueueSort)
}

/// Lets pods wait at Permit.
pub(super) fn add_gangs(profile: &mut Profile) -> anyhow::Result<()> {
    add::<Gangs>(profile, Point::Permit)
}

/// Sorts pods by what is promised to them.
pub(super) fn add_qos_sort(profile: &mut Profile) -> anyhow::Result<()> {
    profile.queue_sort.clear();
    add::<QosSort>(profile, Point::QueueSort)
}

/// How many applications the pods of `topological-sort` belong to, and how many workloads each has.
pub(super) const APPLICATIONS: usize = 10;

/// Sorts pods by the turns of their workloads.
pub(super) fn add_topological_sort(profile: &mut Profile) -> anyhow::Result<()> {
    profile.queue_sort.clear();
    samples::add::<TopologicalSort>(profile, 0);
    Ok(())
}

/// The AppGroup of that number, whose workloads have their turns from the last to the first.
pub(super) fn app_group(number: usize) -> Value {
    let workload = |number: usize| {
        let name = format!("workload-{number}");
        json!({ "kind": "Deployment", "name": name, "selector": name })
    };
    let turn = |number: usize| json!({ "workload": workload(number), "index": APPLICATIONS - number });
    json!({
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": { "name": format!("application-{number}"), "namespace": "default" },
        "status": { "topologyOrder": (0..APPLICATIONS).map(turn).collect::<Vec<_>>() },
    })
}

/// The application and the workload of a pod.
pub(super) fn application_metadata(number: usize) -> Value {
    json!({ "labels": {
        APP_GROUP_LABEL: format!("application-{}", number % APPLICATIONS),
        WORKLOAD_LABEL: format!("workload-{}", number / APPLICATIONS % APPLICATIONS),
    } })
}

/// Puts services near those that they call.
pub(super) fn add_network(profile: &mut Profile) -> anyhow::Result<()> {
    community::add_network(profile);
    Ok(())
}

/// The service of a pod of the application that [`community::application`] describes.
pub(super) fn calling_metadata(number: usize) -> Value {
    json!({ "labels": {
        APP_GROUP_LABEL: APPLICATION,
        WORKLOAD_LABEL: calling_service(number % CALLING_SERVICES),
    } })
}

/// Sorts pods by how their controllers do, and keeps books of that.
pub(super) fn add_qos_aware(profile: &mut Profile) -> anyhow::Result<()> {
    profile.queue_sort.clear();
    profile.post_filter.clear();
    let points = [Point::QueueSort, Point::PostFilter, Point::Reserve, Point::PreBind, Point::PostBind];
    points.into_iter().try_for_each(|point| add::<QosAware>(profile, point))
}

/// Pods have quotas.
pub(super) fn add_quotas(profile: &mut Profile) -> anyhow::Result<()> {
    profile.post_filter.clear();
    samples::add::<CapacityScheduling>(profile, 0);
    Ok(())
}

/// Pods are taken off the zones of their nodes.
pub(super) fn add_topologies(profile: &mut Profile) -> anyhow::Result<()> {
    let args = json!({ "cacheResyncPeriodSeconds": 5 });
    samples::add_with::<NodeResourceTopologyMatch>(profile, 1, Some(&args));
    Ok(())
}

/// Pods go in groups.
pub(super) fn add_groups(profile: &mut Profile) -> anyhow::Result<()> {
    profile.queue_sort.clear();
    samples::add::<Coscheduling>(profile, 0);
    Ok(())
}

/// The controller of a pod, and since when it waits: of a hundred controllers with four SLOs, each with pods of all ages.
pub(super) fn qos_metadata(number: usize) -> Value {
    const SLOS: [&str; 4] = ["0.5", "0.8", "0.9", "0.99"];
    let controller = format!("controller-{}", number % 100);
    let created = NOW.moved(-((number / 100 % 60) as i64));
    json!({
        "annotations": { "controller": controller, "slo": SLOS[number % SLOS.len()] },
        "ownerReferences": [
            { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": controller, "uid": controller, "controller": true },
        ],
        "creationTimestamp": created,
    })
}

fn add<P: Plugin>(profile: &mut Profile, point: Point) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    registry.register::<P>()?;
    let plugin = registry.get(P::NAME).context("it was just registered")?;
    let plugin = plugin.make(None).ok().context("it takes no arguments")?;
    ensure!(profile.add(&plugin, point, 0), "{} has no {point:?}", P::NAME);
    Ok(())
}

impl Plugin for Ageing {
    const NAME: &'static str = "BenchAgeing";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Ageing
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.queue_sort()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl QueueSort for Ageing {
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        self.rank(context, a) < self.rank(context, b)
    }

    fn rank(&self, context: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        // Pods of one priority come at different paces.
        let pace = pod.pod.uid.bytes().map(i64::from).sum::<i64>() % PACES;
        let waited = context.now.since(pod.queued_at).as_millis() as i64;
        Some([-i64::from(pod.pod.priority()) * PRIORITY_MILLISECONDS - waited * pace, 0])
    }

    fn changes(&self) -> OrderChanges {
        OrderChanges::with_time(AGES_EVERY)
    }
}

impl Plugin for Gangs {
    const NAME: &'static str = "BenchGangs";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Gangs
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.permit().remembers::<Gathered>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl Permit for Gangs {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let gathered = &mut acts.memory::<Gathered>().0;
        if gathered.len() + 1 < PERMITTED_TOGETHER {
            gathered.push(cycle.pod.uid.clone());
            return PermitDecision::wait_until(cycle.context.now.after(PERMIT_TIMEOUT));
        }
        for uid in std::mem::take(gathered) {
            acts.allow(&uid);
        }
        PermitDecision::Allow
    }
}
