//! What SIGUSR2 asks for: every pod that waits, and every node, in words.

use supercargo_engine::{Observer, PodPlace, Whereabouts};
use supercargo_model::{Pod, Resources, Timestamp};
use tracing::info;

use super::Driver;

/// How many pods, and how many nodes, are written to the log at most: a line takes some microseconds, in which no pod is scheduled.
const LINES_MAX: usize = 5_000;
/// How many pods of a node are named at most.
const PODS_OF_NODE_MAX: usize = 250;

const MEBIBYTE: i64 = 1 << 20;

impl<O: Observer> Driver<O> {
    /// Writes what the queue and the cache hold to the log, as kube-scheduler's debugger does.
    pub(super) fn dump(&mut self) {
        let now = self.clock.now();
        let lengths = self.scheduler.queue_lengths();
        let gauges = self.scheduler.gauges();
        info!(
            active = lengths.active,
            backoff = lengths.backoff,
            unschedulable = lengths.unschedulable,
            gated = lengths.gated,
            inFlight = gauges.in_flight,
            bindings = gauges.bindings,
            leads = self.gate.is_open(),
            "Dump of scheduling queue"
        );
        let (pods, untold) = self.scheduler.all_whereabouts(LINES_MAX, now);
        for (pod, whereabouts) in &pods {
            log_pod(pod, whereabouts, now);
        }
        if untold > 0 {
            info!(pods = untold, limit = LINES_MAX, "Dump of scheduling queue: more pods, left out");
        }
        self.dump_nodes();
    }

    fn dump_nodes(&mut self) {
        let cluster = self.scheduler.cluster();
        for node in cluster.nodes().take(LINES_MAX) {
            let pods = node.pods();
            let named: Vec<String> = pods.iter().take(PODS_OF_NODE_MAX).map(|pod| pod.key()).collect();
            info!(
                node = &**node.name(),
                requested = resources(node.usage().requested()),
                allocatable = resources(node.allocatable()),
                podCount = pods.len(),
                allowedPods = node.allowed_pods(),
                pods = named.join(","),
                podsLeftOut = pods.len() - named.len(),
                "Dump of cached NodeInfo"
            );
        }
        let untold = cluster.node_count().saturating_sub(LINES_MAX);
        if untold > 0 {
            info!(nodes = untold, limit = LINES_MAX, "Dump of cached NodeInfo: more nodes, left out");
        }
    }
}

fn log_pod(pod: &Pod, whereabouts: &Whereabouts, now: Timestamp) {
    let (queue, words) = words(&whereabouts.place, now);
    info!(
        pod = pod.key(),
        queue,
        attempts = whereabouts.attempts,
        priority = pod.spec.priority,
        standing = words,
        "Dump of queued pod"
    );
}

/// The name of a place, and what holds a pod there.
fn words(place: &PodPlace, now: Timestamp) -> (&'static str, String) {
    let age = |since: &Timestamp| format!("for {} s", now.since(*since).as_secs());
    let within = |until: &Timestamp| format!("within {} s", until.since(now).as_secs());
    match place {
        PodPlace::Active { since } => ("active", format!("to be tried next, {}", age(since))),
        PodPlace::Backoff { until } => ("backoff", format!("to be tried {}", within(until))),
        PodPlace::Unschedulable { since, plugins, until } => {
            let plugins = if plugins.is_empty() { "no plugin".to_owned() } else { plugins.join(",") };
            let text = format!("rejected by {plugins}, {}; tried again {}", age(since), within(until));
            ("unschedulable", text)
        }
        PodPlace::Held { since, plugin, reason } => {
            let plugin = plugin.unwrap_or("the scheduler");
            ("gated", format!("held back by {plugin}: {reason}, {}", age(since)))
        }
        PodPlace::Tried { since } => ("inFlight", format!("extenders are asked, {}", age(since))),
        PodPlace::Permit { node, plugins, until } => {
            let text =
                format!("for node {node}, waits for {}; given up {}", plugins.join(","), within(until));
            ("permit", text)
        }
        PodPlace::PreBind { node, since } => ("preBind", format!("for node {node}, {}", age(since))),
        PodPlace::Binding { node, since } => ("binding", format!("to node {node}, {}", age(since))),
        PodPlace::Unresolved { node, since } => {
            ("unresolved", format!("may be bound to node {node}, which is being looked up, {}", age(since)))
        }
    }
}

/// `cpu 1500m, memory 2048Mi, example.com/gpu 2`
fn resources(resources: &Resources) -> String {
    let Resources { milli_cpu, memory, ephemeral_storage, .. } = resources;
    let mut text = format!("cpu {milli_cpu}m, memory {}", bytes(*memory));
    if *ephemeral_storage != 0 {
        text += &format!(", ephemeral-storage {}", bytes(*ephemeral_storage));
    }
    for (name, amount) in resources.scalars() {
        text += &format!(", {name} {amount}");
    }
    text
}

fn bytes(bytes: i64) -> String {
    if bytes % MEBIBYTE == 0 { format!("{}Mi", bytes / MEBIBYTE) } else { bytes.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_resources_are_said_in_words() {
        let now = Timestamp::from_seconds(1_000);
        let (since, until) = (Timestamp::from_seconds(990), Timestamp::from_seconds(1_005));
        let said = |place: PodPlace| {
            let (queue, words) = words(&place, now);
            format!("{queue}: {words}")
        };
        assert_eq!(said(PodPlace::Active { since }), "active: to be tried next, for 10 s");
        assert_eq!(said(PodPlace::Backoff { until }), "backoff: to be tried within 5 s");
        let rejected = PodPlace::Unschedulable { since, plugins: vec!["NodePorts", "NodeName"], until };
        assert_eq!(
            said(rejected),
            "unschedulable: rejected by NodePorts,NodeName, for 10 s; tried again within 5 s"
        );
        let held = PodPlace::Held { since, plugin: Some("SchedulingGates"), reason: "a gate".to_owned() };
        assert_eq!(said(held), "gated: held back by SchedulingGates: a gate, for 10 s");
        let mut room = Resources::default();
        (room.milli_cpu, room.memory) = (1500, 2 << 30);
        assert_eq!(resources(&room), "cpu 1500m, memory 2048Mi");
        (room.memory, room.ephemeral_storage) = (1000, 1 << 20);
        assert_eq!(resources(&room), "cpu 1500m, memory 1000, ephemeral-storage 1Mi");
    }
}
