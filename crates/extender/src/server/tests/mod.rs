//! The server, asked by our own client and by hand.

mod answering;
mod limits;
mod serving;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use supercargo_config::Extender;
use supercargo_framework::{
    AskedNode, Cycle, ExtenderQuestion, Extensions, Filter, Fixes, NoArgs, NodeVictims, Plugin, Registry,
    Status,
};
use supercargo_model::{Cluster, GoDuration, NodeRef, Pod, RawObject, Timestamp};
use supercargo_testkit::{NodeBuilder, PodBuilder, node, pod};

use super::{Answered, Answerer, Limits, Service, Surroundings, View, WireNames};
use crate::wire::ExtenderBindingArgs;

/// A filter that panics, to show what becomes of it.
struct Panics;

impl Plugin for Panics {
    const NAME: &'static str = "Panics";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Panics
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
}

impl Filter for Panics {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        panic!("as a test wants it");
    }
}

/// The default plugins, in the profile of the default scheduler; only the node's name counts for `by-name`; nobody survives `panics`.
const CONFIG: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: by-name
  plugins:
    multiPoint:
      disabled: [{name: '*'}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]
- schedulerName: default-scheduler
- schedulerName: panics
  plugins:
    multiPoint:
      enabled: [{name: Panics}]
";

fn answerer(always: Option<&str>) -> Answerer {
    let mut registry: Registry = supercargo_plugins::registry();
    registry.register::<Panics>().expect("no plugin has this name");
    let kube = supercargo_config::load(CONFIG).expect("a configuration").kube;
    let profiles = supercargo_config::build_profiles(&kube, &registry).expect("profiles");
    Answerer::new(profiles, Fixes::default(), always).expect("a profile")
}

/// A cluster of nodes and bound pods.
fn cluster(nodes: Vec<NodeBuilder>, pods: Vec<PodBuilder>) -> Cluster {
    let mut cluster = Cluster::default();
    let decoder = supercargo_model::Decoder::new([], false);
    let objects = nodes.into_iter().map(Value::from).chain(pods.into_iter().map(Value::from));
    for object in objects {
        cluster.add(decoder.decode(&object.to_string()).expect("an object")).expect("it fits in");
    }
    cluster
}

fn view(cluster: Cluster) -> View {
    let (memories, now) = (Default::default(), Timestamp::from_seconds(3600));
    View { cluster, is_watched: true, memories, now, seed: 0 }
}

fn raw(object: impl Into<Value>) -> Box<RawValue> {
    to_raw_value(&object.into()).expect("JSON")
}

/// What surrounds a service in a test.
#[derive(Clone, Default)]
struct Stage {
    cluster: Option<Cluster>,
    /// Why nothing is known, if that is so.
    ignorance: Option<&'static str>,
    /// `namespace/pod uid on node`
    bound: Arc<Mutex<Vec<String>>>,
    /// `verb: outcome`
    answered: Arc<Mutex<Vec<String>>>,
}

impl Surroundings for Stage {
    async fn view(&self, answerer: &Answerer) -> Result<View, String> {
        match (&self.cluster, self.ignorance) {
            (_, Some(why)) => Err(why.to_owned()),
            (Some(cluster), None) => Ok(view(cluster.clone())),
            (None, None) => Ok(answerer.empty_view(Timestamp::from_seconds(3600), 0)),
        }
    }

    async fn bind(&self, binding: ExtenderBindingArgs) -> Result<(), String> {
        let ExtenderBindingArgs { pod_name, pod_namespace, pod_uid, node } = binding;
        if &*node == "taken" {
            return Err("the node is taken".to_owned());
        }
        self.bound.lock().expect("no panic").push(format!("{pod_namespace}/{pod_name} {pod_uid} on {node}"));
        Ok(())
    }

    fn answered(&self, answered: &Answered<'_>) {
        let line = format!("{}: {}", answered.verb.name(), answered.outcome.name());
        self.answered.lock().expect("no panic").push(line);
    }
}

/// A service that runs until the test ends.
struct Running {
    address: SocketAddr,
    stage: Stage,
}

impl Running {
    async fn start(stage: Stage, names: WireNames, limits: Limits) -> Self {
        let service = Service::new(answerer(None), stage.clone(), names, limits);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let router = service.into_router("Welcome!\n".to_owned());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Running { address, stage }
    }

    async fn with(cluster: Cluster) -> Self {
        let stage = Stage { cluster: Some(cluster), ..Stage::default() };
        Running::start(stage, WireNames::Go, Limits::default()).await
    }

    /// The same extender, as the configuration of a scheduler describes it.
    fn extender(&self, node_cache_capable: bool) -> Extender {
        Extender {
            url_prefix: format!("http://{}/", self.address),
            filter_verb: "filter".to_owned(),
            prioritize_verb: "prioritize".to_owned(),
            preempt_verb: "preempt".to_owned(),
            bind_verb: "bind".to_owned(),
            weight: 1,
            node_cache_capable,
            http_timeout: GoDuration::from_seconds(60),
            ..Extender::default()
        }
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.send(&(head + body))
    }

    /// Sends what is no request, perhaps, and waits for the end of what comes back.
    fn send(&self, text: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        // Who is refused early may find the connection closed while it still sends, after the answer.
        let _ = stream.write_all(text.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).expect("it is text");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, body.to_owned())
    }

    fn answered(&self) -> Vec<String> {
        std::mem::take(&mut *self.stage.answered.lock().expect("no panic"))
    }
}

/// A pod with its text, as the engine asks about it.
fn asked_pod(builder: PodBuilder) -> Arc<Pod> {
    let text = Value::from(builder).to_string();
    let decoder = supercargo_model::Decoder::new([], true);
    let Ok(supercargo_model::Decoded::Pod(words)) = decoder.decode(&text) else { panic!("a pod") };
    Arc::new(Cluster::default().interner().pod(*words))
}

fn asked_nodes(nodes: Vec<NodeBuilder>) -> Vec<AskedNode> {
    let asked = |node: NodeBuilder| {
        let value = Value::from(node);
        let name = value["metadata"]["name"].as_str().expect("a name").into();
        AskedNode { name, raw: Some(Arc::new(RawObject::new(value.to_string()))) }
    };
    nodes.into_iter().map(asked).collect()
}

/// Room for some pods of one CPU each.
fn sized(name: &str, cpu: &str) -> NodeBuilder {
    node(name).cpu(cpu).memory("8Gi").pods(110)
}

fn victims(pods: Vec<PodBuilder>, budget_violations: i64) -> NodeVictims {
    NodeVictims { pods: pods.into_iter().map(asked_pod).collect(), budget_violations }
}

fn question_of(pod: PodBuilder, nodes: Vec<NodeBuilder>) -> ExtenderQuestion {
    ExtenderQuestion::Filter { pod: asked_pod(pod), nodes: asked_nodes(nodes) }
}

/// A pod of one CPU.
fn one(name: &str) -> PodBuilder {
    pod(name).cpu("1")
}
