//! An API server in a few lines: pods and nodes, what a binding and an eviction do to them, and a watch for each kind that
//! tells of changes in order, but as late as it likes.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use supercargo_testkit::{node, pod};

/// A pod, as the server holds it.
#[derive(Clone, Debug)]
pub(super) struct ServerPod {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) cpu: u64,
    pub(super) node: Option<String>,
    pub(super) is_terminating: bool,
    pub(super) version: u64,
    priority: i32,
    labels: Vec<&'static str>,
    nominated: Option<String>,
    pub(super) condition: Option<(String, String)>,
}

/// Something that a watch tells.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Pod(ServerPod),
    PodGone(ServerPod),
    Node { name: String, cpu: u64 },
    NodeGone { name: String },
}

/// Why the server does not bind a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotFound,
    Conflict,
}

/// The server.
#[derive(Debug, Default)]
pub(super) struct Server {
    pods: BTreeMap<String, ServerPod>,
    nodes: BTreeMap<String, u64>,
    versions: u64,
    uids: u64,
    pub(super) pod_events: VecDeque<Told>,
    pub(super) node_events: VecDeque<Told>,
    /// Every binding that was made, by the pod's UID.
    pub(super) bindings: BTreeMap<String, Vec<String>>,
}

impl ServerPod {
    pub(super) fn object(&self) -> Value {
        let mut builder = pod(&self.name)
            .uid(&self.uid)
            .cpu(&self.cpu.to_string())
            .priority(self.priority)
            .with(json!({"metadata": {"resourceVersion": self.version.to_string()}}));
        for label in &self.labels {
            builder = builder.label(label, "yes");
        }
        if let Some(node) = &self.node {
            builder = builder.on(node).started(1);
        }
        if let Some(node) = &self.nominated {
            builder = builder.nominated(node);
        }
        if let Some((reason, message)) = &self.condition {
            let condition =
                json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": message});
            builder = builder.with(json!({"status": {"conditions": [condition]}}));
        }
        if self.is_terminating {
            builder = builder.terminating();
        }
        builder.into()
    }

    pub(super) fn has_label(&self, label: &str) -> bool {
        self.labels.contains(&label)
    }
}

impl Told {
    pub(super) fn object(&self) -> Value {
        match self {
            Told::Pod(pod) | Told::PodGone(pod) => pod.object(),
            Told::Node { name, cpu } => node(name).cpu(&cpu.to_string()).into(),
            Told::NodeGone { name } => node(name).into(),
        }
    }
}

impl Server {
    pub(super) fn pods(&self) -> impl Iterator<Item = &ServerPod> {
        self.pods.values()
    }

    pub(super) fn pod(&self, name: &str) -> Option<&ServerPod> {
        self.pods.get(name)
    }

    pub(super) fn pod_with_uid(&self, uid: &str) -> Option<&ServerPod> {
        self.pods.values().find(|pod| pod.uid == uid)
    }

    pub(super) fn node_names(&self) -> Vec<String> {
        self.nodes.keys().cloned().collect()
    }

    pub(super) fn cpu_of(&self, node: &str) -> Option<u64> {
        self.nodes.get(node).copied()
    }

    pub(super) fn used(&self, node: &str) -> u64 {
        self.pods.values().filter(|pod| pod.node.as_deref() == Some(node)).map(|pod| pod.cpu).sum()
    }

    pub(super) fn put_node(&mut self, name: &str, cpu: u64) {
        self.nodes.insert(name.to_owned(), cpu);
        self.node_events.push_back(Told::Node { name: name.to_owned(), cpu });
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        if self.nodes.remove(name).is_some() {
            self.node_events.push_back(Told::NodeGone { name: name.to_owned() });
        }
    }

    pub(super) fn create(&mut self, name: &str, cpu: u64, priority: i32, labels: Vec<&'static str>) {
        self.uids += 1;
        let created = ServerPod {
            name: name.to_owned(),
            uid: format!("{name}-{}", self.uids),
            cpu,
            node: None,
            is_terminating: false,
            version: 0,
            priority,
            labels,
            nominated: None,
            condition: None,
        };
        self.pods.insert(name.to_owned(), created);
        self.changed(name);
    }

    /// Another pod of the same name, which asks for the same.
    pub(super) fn recreate(&mut self, name: &str) {
        if let Some(ServerPod { cpu, priority, labels, .. }) = self.pods.get(name).cloned() {
            self.remove(name);
            self.create(name, cpu, priority, labels);
        }
    }

    /// Deletes a pod: it is on its way out if it has a node, or lingers because somebody has yet to do something for it; else it goes at once.
    pub(super) fn delete(&mut self, name: &str, lingers: bool) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        if pod.node.is_none() && !lingers {
            self.remove(name);
        } else if !pod.is_terminating {
            pod.is_terminating = true;
            self.changed(name);
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(gone) = self.pods.remove(name) {
            self.pod_events.push_back(Told::PodGone(gone));
        }
    }

    pub(super) fn bind(&mut self, name: &str, uid: &str, node: &str) -> Result<(), Refusal> {
        let pod = self.pods.get_mut(name).ok_or(Refusal::NotFound)?;
        if pod.uid != uid || pod.is_terminating || pod.node.is_some() {
            return Err(Refusal::Conflict);
        }
        (pod.node, pod.nominated) = (Some(node.to_owned()), None);
        self.bindings.entry(uid.to_owned()).or_default().push(node.to_owned());
        self.changed(name);
        Ok(())
    }

    pub(super) fn set_status(
        &mut self,
        (name, uid): (&str, &str),
        condition: Option<(String, String)>,
        nominated: Option<Option<String>>,
    ) -> Result<(), Refusal> {
        let pod = self.pods.get_mut(name).filter(|pod| pod.uid == uid).ok_or(Refusal::NotFound)?;
        if condition.is_some() {
            pod.condition = condition;
        }
        if let Some(nominated) = nominated {
            pod.nominated = nominated;
        }
        self.changed(name);
        Ok(())
    }

    /// A watch of pods begins anew: all that there are.
    pub(super) fn list_pods(&mut self) -> Vec<ServerPod> {
        self.pod_events.clear();
        self.pods.values().cloned().collect()
    }

    /// A watch of nodes begins anew: all that there are, with their CPU.
    pub(super) fn list_nodes(&mut self) -> Vec<(String, u64)> {
        self.node_events.clear();
        self.nodes.iter().map(|(name, cpu)| (name.clone(), *cpu)).collect()
    }

    fn changed(&mut self, name: &str) {
        self.versions += 1;
        if let Some(pod) = self.pods.get_mut(name) {
            pod.version = self.versions;
            self.pod_events.push_back(Told::Pod(pod.clone()));
        }
    }
}
