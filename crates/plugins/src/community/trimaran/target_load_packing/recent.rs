//! The pods that came to nodes since their load was measured.

use serde::{Deserialize, Serialize};
use supercargo_framework::{Context, Fixes, Memory, SharedMap};
use supercargo_model::names::resource;
use supercargo_model::pod::Container;
use supercargo_model::resources::ResourceRequirements;
use supercargo_model::{Pod, PodSpec, Timestamp};

use crate::community::trimaran::load::is_covered;

/// So many pods of a node are remembered; the oldest are forgotten. A kubelet runs 110 pods if nobody changes that.
const PODS_PER_NODE_MAX: usize = 1_024;

/// The pods that no measurement covers yet, by node. What is remembered about a node changes only when a pod comes to it or goes, or
/// when it is measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RecentPods(SharedMap<Box<str>, Vec<RecentPod>>);

impl Memory for RecentPods {
    const NAME: &'static str = "TargetLoadPacking/RecentPods";
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct RecentPod {
    uid: Box<str>,
    /// When it came, in Unix seconds.
    came: i64,
    demand: Demand,
}

/// What decides how much cpu a pod is expected to use, in thousandths of a core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Demand {
    /// The limits of its containers, and its overhead.
    pub(super) fixed: i64,
    /// The requests of containers without a limit.
    pub(super) requests: Vec<i64>,
    /// How many containers have neither.
    pub(super) unsaid: i64,
}

impl Demand {
    /// Only containers that go on running count, without those that run before them. Those that run beside them count, and what the pod asks
    /// for as a whole takes the place of it all, if the fix `loadSidecars` is asked for.
    pub(super) fn of(spec: &PodSpec, fixes: &Fixes) -> Self {
        let mut demand = Demand { fixed: spec.overhead.amount(resource::CPU), ..Demand::default() };
        let whole = spec.whole_resources.as_deref().filter(|_| fixes.load_sidecars);
        if let Some(whole) = whole.filter(|whole| says_cpu(whole)) {
            demand.add(whole);
            return demand;
        }
        let is_beside = |container: &&Container| container.is_sidecar && fixes.load_sidecars;
        let running = spec.containers.iter().chain(spec.init_containers.iter().filter(is_beside));
        running.for_each(|container| demand.add(&container.resources));
        demand
    }

    fn add(&mut self, ResourceRequirements { limits, requests }: &ResourceRequirements) {
        if limits.get(resource::CPU).is_some() {
            self.fixed = self.fixed.wrapping_add(limits.amount(resource::CPU));
        } else if requests.get(resource::CPU).is_some() {
            self.requests.push(requests.amount(resource::CPU));
        } else {
            self.unsaid += 1;
        }
    }
}

fn says_cpu(resources: &ResourceRequirements) -> bool {
    [&resources.limits, &resources.requests].iter().any(|list| list.get(resource::CPU).is_some())
}

impl RecentPods {
    /// The pods of a cluster that becomes known: they came when they were scheduled, or else now.
    pub(super) fn of(context: &Context<'_>) -> Self {
        let mut recent = RecentPods::default();
        for node in context.cluster.nodes() {
            for pod in node.pods() {
                recent.came(pod, pod.scheduled_at().unwrap_or(context.now), &context.fixes);
            }
            if let Some(load) = context.cluster.object_of::<super::NodeLoad>(node.row()) {
                recent.measured(node.name(), load.window_end);
            }
        }
        recent
    }

    /// A pod came to its node.
    pub(super) fn came(&mut self, pod: &Pod, at: Timestamp, fixes: &Fixes) {
        let Some(node) = &pod.node_name else { return };
        let pods = self.0.get_or_default(&Box::from(&**node));
        if pods.iter().any(|known| *known.uid == *pod.uid) {
            return;
        }
        if pods.len() >= PODS_PER_NODE_MAX {
            pods.remove(0);
        }
        let demand = Demand::of(&pod.spec, fixes);
        pods.push(RecentPod { uid: (*pod.uid).into(), came: at.seconds(), demand });
    }

    /// A pod left its node.
    pub(super) fn went(&mut self, pod: &Pod) {
        let Some(node) = &pod.node_name else { return };
        self.retain(node, |known| *known.uid != *pod.uid);
    }

    /// The load of a node was measured up to then: it covers pods that came before.
    pub(super) fn measured(&mut self, node: &str, window_end: i64) {
        self.retain(node, |known| !is_covered(known.came, window_end));
    }

    /// Whether anything is remembered about a node.
    pub(super) fn knows(&self, node: &str) -> bool {
        self.0.contains_key(&Box::from(node))
    }

    /// What the pods of a node are expected to use that are not covered by what was measured up to then.
    pub(super) fn since(&self, node: &str, window_end: i64) -> impl Iterator<Item = &Demand> {
        let pods = self.0.get(&Box::from(node)).into_iter().flatten();
        pods.filter(move |pod| !is_covered(pod.came, window_end)).map(|pod| &pod.demand)
    }

    fn retain(&mut self, node: &str, is_kept: impl Fn(&RecentPod) -> bool) {
        let node = Box::from(node);
        if let Some(pods) = self.0.get_mut(&node) {
            pods.retain(is_kept);
            if pods.is_empty() {
                self.0.remove(&node);
            }
        }
    }
}
