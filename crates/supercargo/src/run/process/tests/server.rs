//! A small API server for a process: one node, pods, and a lease, without a socket.

use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use supercargo_client::ApiServer;
use supercargo_client::fake::{Answer, Asked, Fake, Writer};

const CONFIG_MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// The server. Clones are the same server.
#[derive(Clone)]
pub(super) struct Server {
    fake: Fake,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    lease: Option<Value>,
    /// The only ConfigMap, in which memories are saved.
    memories: Option<Value>,
    revision: u64,
    /// The pods that wait when the server is first asked.
    pods: Vec<Value>,
    /// The open watches of pods, and those of all other kinds.
    pod_watches: Vec<Writer>,
    other_watches: Vec<Writer>,
    /// `pod on node`, in the order of their bindings.
    bound: Vec<String>,
    /// Paths that begin so are not answered.
    silent: Option<&'static str>,
    /// The kind that may not be watched.
    forbidden: Option<&'static str>,
    /// What the metrics API answers; none if nobody serves it.
    node_metrics: Option<String>,
    /// The next request whose path ends so panics in the task that makes it.
    bug: Option<&'static str>,
}

impl Server {
    /// A server with one node and these pending pods.
    pub(super) fn with_pods(names: &[&str]) -> Self {
        let pods = names.iter().map(|name| pod(name)).collect();
        let state = Arc::new(Mutex::new(State { pods, ..State::default() }));
        let answering = state.clone();
        let fake = Fake::new(move |asked| {
            let bug = lock(&answering).bug.take_if(|bug| asked.path.ends_with(*bug));
            assert!(bug.is_none(), "a bug at {}", asked.path);
            lock(&answering).answer(asked)
        });
        Server { fake, state }
    }

    pub(super) fn api_server(&self) -> ApiServer {
        ApiServer::new(self.fake.service(), None)
    }

    /// Gives the lease to somebody, who holds it from now on.
    pub(super) fn give_lease_to(&self, holder: &str) {
        let mut state = lock(&self.state);
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0 });
        let lease = json!({ "metadata": { "name": "kube-scheduler" }, "spec": spec });
        state.put_lease(lease);
    }

    /// Who holds the lease; empty if nobody does.
    pub(super) fn holder(&self) -> String {
        let lease = lock(&self.state).lease.clone().unwrap_or_default();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// No request whose path begins so is answered from now on.
    pub(super) fn silence(&self, path: &'static str) {
        lock(&self.state).silent = Some(path);
    }

    /// The metrics API answers this from now on, or is not served.
    pub(super) fn set_node_metrics(&self, answer: Option<String>) {
        lock(&self.state).node_metrics = answer;
    }

    /// How often the metrics API was asked.
    pub(super) fn metrics_asked(&self) -> usize {
        self.fake.requests().iter().filter(|asked| asked.path.contains("metrics.k8s.io")).count()
    }

    /// The kind of this name may not be watched from now on, but every other one.
    pub(super) fn forbid(&self, plural: Option<&'static str>) {
        lock(&self.state).forbidden = plural;
    }

    /// The data of the ConfigMap with memories; empty if there is none.
    pub(super) fn saved(&self) -> Value {
        lock(&self.state).memories.clone().map(|mut object| object["data"].take()).unwrap_or_default()
    }

    /// Somebody writes the ConfigMap with memories.
    pub(super) fn put_memories(&self, data: &Value) {
        let mut state = lock(&self.state);
        let metadata = json!({ "name": "kube-scheduler-memories", "labels": { "by": "somebody" } });
        let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data });
        state.memories = Some(state.numbered(object));
    }

    /// Requests about the ConfigMap with memories.
    pub(super) fn memories_asked(&self) -> Vec<Asked> {
        self.fake.requests().into_iter().filter(|asked| asked.path.starts_with(CONFIG_MAPS)).collect()
    }

    /// How often a watch of a kind was asked for.
    pub(super) fn watches_opened(&self, plural: &str) -> usize {
        let watches = self.fake.requests().into_iter().filter(|asked| asked.query.contains("watch="));
        watches.filter(|asked| asked.path.rsplit('/').next() == Some(plural)).count()
    }

    /// The task that next makes a request whose path ends so panics.
    pub(super) fn plant_bug(&self, path: &'static str) {
        lock(&self.state).bug = Some(path);
    }

    /// A pod that waits from now on.
    pub(super) fn add_pod(&self, name: &str) {
        let mut state = lock(&self.state);
        state.pods.push(pod(name));
        state.tell_pods("ADDED", &pod(name));
    }

    /// Somebody deletes a pod.
    pub(super) fn remove_pod(&self, name: &str) {
        let mut state = lock(&self.state);
        state.pods.retain(|known| known["metadata"]["name"] != name);
        state.tell_pods("DELETED", &pod(name));
    }

    /// A pod of another scheduler, which only those hear of who watch from now on.
    pub(super) fn add_pod_unheard(&self, name: &str, scheduler: &str) {
        let mut pod = pod(name);
        pod["spec"]["schedulerName"] = json!(scheduler);
        lock(&self.state).pods.push(pod);
    }

    pub(super) fn bound(&self) -> Vec<String> {
        lock(&self.state).bound.clone()
    }

    /// Whether the scheduler has written into a pod why it waits.
    pub(super) fn is_told_to_wait(&self, name: &str) -> bool {
        let path = format!("/pods/{name}/status");
        let asked = self.fake.requests();
        asked.iter().any(|asked| asked.path.ends_with(&path) && asked.body.contains("PodScheduled"))
    }

    /// Requests that change something, but for those that are about the lease.
    pub(super) fn writes(&self) -> Vec<String> {
        let writes = self.fake.requests().into_iter().filter(|asked| asked.method != http::Method::GET);
        writes.filter(|asked| !asked.path.starts_with(LEASES)).map(|asked| asked.line()).collect()
    }
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Answer {
        if self.silent.is_some_and(|silent| asked.path.starts_with(silent)) {
            return Answer::never();
        }
        if asked.path.starts_with(LEASES) {
            return self.answer_lease(asked);
        }
        if asked.path.starts_with("/apis/metrics.k8s.io/") {
            return self.node_metrics.as_deref().map_or_else(not_found, Answer::ok);
        }
        if asked.path.starts_with(CONFIG_MAPS) {
            return self.answer_memories(asked);
        }
        let plural = asked.path.rsplit('/').next().unwrap_or_default();
        if asked.query.contains("watch=") && self.forbidden == Some(plural) {
            return Answer::status(403, "forbidden");
        }
        if asked.query.contains("watch=") {
            return self.watch(plural);
        }
        match plural {
            "binding" => self.bind(asked),
            _ if asked.method == http::Method::GET => not_found(),
            _ => Answer::ok("{}"),
        }
    }

    fn answer_lease(&mut self, asked: &Asked) -> Answer {
        match (asked.method.as_str(), self.lease.clone()) {
            ("GET", Some(lease)) => Answer::ok(&lease.to_string()),
            ("GET", None) => not_found(),
            ("PUT", Some(lease))
                if lease["metadata"]["resourceVersion"] != asked.json()["metadata"]["resourceVersion"] =>
            {
                Answer::status(409, "modified")
            }
            _ => Answer::ok(&self.put_lease(asked.json()).to_string()),
        }
    }

    fn put_lease(&mut self, lease: Value) -> Value {
        let lease = self.numbered(lease);
        self.lease = Some(lease.clone());
        lease
    }

    fn answer_memories(&mut self, asked: &Asked) -> Answer {
        if self.forbidden == Some("configmaps") {
            return Answer::status(403, "forbidden");
        }
        match (asked.method.as_str(), self.memories.clone()) {
            ("GET", Some(object)) => Answer::ok(&object.to_string()),
            ("GET" | "PUT", None) => not_found(),
            ("POST", Some(_)) => Answer::status(409, "already exists"),
            ("PUT", Some(object))
                if object["metadata"]["resourceVersion"] != asked.json()["metadata"]["resourceVersion"] =>
            {
                Answer::status(409, "modified")
            }
            _ => {
                let object = self.numbered(asked.json());
                self.memories = Some(object.clone());
                Answer::ok(&object.to_string())
            }
        }
    }

    fn numbered(&mut self, mut object: Value) -> Value {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        object
    }

    fn watch(&mut self, plural: &str) -> Answer {
        let (writer, answer) = Answer::streamed();
        let objects = match plural {
            "pods" => self.pods.clone(),
            "nodes" => vec![node()],
            _ => Vec::new(),
        };
        for object in objects {
            tell(&writer, "ADDED", &object);
        }
        let end = json!({ "annotations": { "k8s.io/initial-events-end": "true" }, "resourceVersion": "1" });
        tell(&writer, "BOOKMARK", &json!({ "metadata": end }));
        match plural {
            "pods" => self.pod_watches.push(writer),
            _ => self.other_watches.push(writer),
        }
        answer
    }

    fn bind(&mut self, asked: &Asked) -> Answer {
        let body = asked.json();
        let (name, node) = (&body["metadata"]["name"], &body["target"]["name"]);
        let (name, node) = (name.as_str().unwrap_or_default(), node.as_str().unwrap_or_default());
        self.bound.push(format!("{name} on {node}"));
        let mut bound = pod(name);
        bound["spec"]["nodeName"] = json!(node);
        for known in self.pods.iter_mut().filter(|known| known["metadata"]["name"] == *name) {
            known.clone_from(&bound);
        }
        self.tell_pods("MODIFIED", &bound);
        Answer::plain(201, "{}")
    }

    fn tell_pods(&self, event: &str, pod: &Value) {
        for watch in &self.pod_watches {
            tell(watch, event, pod);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no test panics here")
}

fn tell(writer: &Writer, event: &str, object: &Value) {
    let line = json!({ "type": event, "object": object }).to_string() + "\n";
    // The watch may have ended.
    let _ = writer.send(Ok(line.into()));
}

fn pod(name: &str) -> Value {
    let requests = json!({ "cpu": "100m" });
    json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid of {name}"), "resourceVersion": "1" },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{ "name": "c", "resources": { "requests": requests } }],
        },
        "status": { "phase": "Pending" },
    })
}

fn node() -> Value {
    let room = json!({ "cpu": "4", "memory": "8Gi", "pods": "110" });
    json!({
        "metadata": { "name": "n1", "uid": "uid of n1", "resourceVersion": "1" },
        "status": { "allocatable": room, "capacity": room },
    })
}

fn not_found() -> Answer {
    Answer::plain(404, r#"{"kind":"Status","reason":"NotFound","code":404,"message":"not found"}"#)
}
