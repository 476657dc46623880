//! `supercargo bench extender`.
//!
//! Clients ask an extender over HTTP which of all nodes a pod can run on, and how good those are, as a kube-scheduler does: names only, one
//! question after the other on a connection that stays. The extender is the one of `supercargo extender`, in this process; the cluster that it
//! looks at stands still.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, value_parser};
use serde_json::json;
use supercargo_cluster::Supervisor;
use supercargo_engine::Seed;
use supercargo_extender::server::{Answered, Answerer, Limits, Service, Surroundings, View, WireNames};
use supercargo_extender::wire::{ExtenderBindingArgs, ExtenderFilterResult, HostPriorityList, read};
use supercargo_framework::Registry;
use supercargo_model::{Cluster, Decoded};
use supercargo_operations::serve::{OpenServer, Routes};
use tokio::sync::{mpsc, oneshot};

use super::figures::{clock, nanoseconds, quantile};
use super::nodes::{NodeKind, NodeMaker, node_name};
use super::report::{aligned, grouped};
use super::scene::NOW;
use super::schedule::plain_pod;
use super::{NODES_MAX, profile};
use crate::outcome::Outcome;

/// How many pods run on every node.
const PODS_A_NODE: usize = 10;
/// How many questions may wait for the one who knows the cluster.
const LOOKS_WAITING_MAX: usize = 64;
/// More clients, or seconds, are taken for a mistake.
const CLIENTS_MAX: i64 = 256;
const SECONDS_MAX: i64 = 3600;
/// So many pairs of questions of each client are not measured.
const WARM_UP: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct ExtenderBenchOptions {
    /// How many nodes the cluster has
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = value_parser!(u32).range(1..=NODES_MAX))]
    nodes: u32,
    /// How many clients ask at the same time; a kube-scheduler is one
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=CLIENTS_MAX))]
    clients: u32,
    /// For how long to ask
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=SECONDS_MAX))]
    seconds: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What surrounds the extender: somebody who knows the cluster, and is asked through a channel as the driver of a live one.
#[derive(Debug)]
struct Standing(mpsc::Sender<oneshot::Sender<Cluster>>);

impl Surroundings for Standing {
    async fn view(&self, answerer: &Answerer) -> Result<View, String> {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).await.map_err(|error| error.to_string())?;
        let cluster = answered.await.map_err(|error| error.to_string())?;
        Ok(View { cluster, is_watched: true, ..answerer.empty_view(NOW, Seed(0).0) })
    }

    async fn bind(&self, _: ExtenderBindingArgs) -> Result<(), String> {
        Err("nothing is bound here".to_owned())
    }

    fn answered(&self, _: &Answered<'_>) {}
}

pub(crate) fn run(options: &ExtenderBenchOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let nodes = options.nodes as usize;
    let answerer = Answerer::new(vec![profile(None, 0, registry)?], Default::default(), None)?;
    let cluster = cluster(nodes)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let supervisor = Supervisor::new();
    let address = runtime.block_on(async { serve(answerer, cluster, &supervisor) })?;
    let patience = Duration::from_secs(options.seconds.into());
    let asked = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..options.clients).map(|_| scope.spawn(|| ask(address, nodes, patience))).collect();
        let joined = clients.into_iter().map(|client| client.join().expect("clients do not panic"));
        joined.collect::<anyhow::Result<Vec<Vec<u64>>>>()
    });
    runtime.shutdown_background();
    let mut pairs: Vec<f64> = asked?.into_iter().flatten().map(|nanoseconds| nanoseconds as f64).collect();
    pairs.sort_by(f64::total_cmp);
    let rate = pairs.len() as f64 / patience.as_secs_f64();
    let [p50, p99] = [0.5, 0.99].map(|share| Duration::from_nanos(quantile(&pairs, share) as u64));
    let stdout = if options.json {
        let figures = json!({
            "nodes": nodes, "clients": options.clients, "pairs": pairs.len(), "rate": rate,
            "p50Microseconds": p50.as_micros(), "p99Microseconds": p99.as_micros(),
        });
        format!("{figures}\n")
    } else {
        let head = ["NODES", "CLIENTS", "FILTER+PRIORITIZE", "PAIRS/S", "P50", "P99"].map(str::to_owned);
        let line = [
            grouped(nodes as u64),
            options.clients.to_string(),
            grouped(pairs.len() as u64),
            grouped(rate as u64),
            format!("{p50:.0?}"),
            format!("{p99:.0?}"),
        ];
        aligned(&[head, line])
    };
    Ok(Outcome { stdout, ..Outcome::default() })
}

/// Nodes with some pods each.
fn cluster(nodes: usize) -> anyhow::Result<Cluster> {
    let mut cluster = Cluster::default();
    let maker = NodeMaker::new(NodeKind::Plain);
    for number in 0..nodes {
        let row = cluster.put_node(&maker.node(number));
        for place in 0..PODS_A_NODE {
            let Decoded::Pod(words) = plain_pod(number * PODS_A_NODE + place)? else {
                bail!("a pod is none")
            };
            let pod = std::sync::Arc::new(cluster.interner().pod(*words));
            cluster.bind_pod(&pod, row)?;
        }
    }
    cluster.snapshot();
    Ok(cluster)
}

/// Begins to answer.
fn serve(answerer: Answerer, cluster: Cluster, supervisor: &Supervisor) -> anyhow::Result<SocketAddr> {
    let (looks, mut looked) = mpsc::channel::<oneshot::Sender<Cluster>>(LOOKS_WAITING_MAX);
    let tasks = supervisor.tasks();
    tasks.spawn("cluster", async move {
        while let Some(answer) = looked.recv().await {
            // Whoever asked may have gone.
            let _ = answer.send(cluster.clone());
        }
    });
    let service = Service::new(answerer, Standing(looks), WireNames::Go, Limits::default());
    let listening = OpenServer::listen(SocketAddr::from(([127, 0, 0, 1], 0)), None)?;
    let address = listening.address();
    let routes = Routes::new().merge(service.into_router(String::new()));
    tasks.spawn("server", listening.run(routes, std::future::pending()));
    Ok(address)
}

/// Asks for as long as it should; how long each pair of questions took, in nanoseconds.
fn ask(address: SocketAddr, nodes: usize, patience: Duration) -> anyhow::Result<Vec<u64>> {
    let names: Vec<String> = (0..nodes).map(node_name).collect();
    let pod = json!({
        "metadata": { "name": "asked", "namespace": "default", "uid": "asked" },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.2",
                "resources": { "requests": { "cpu": "100m", "memory": "500Mi" } },
            }],
        },
    });
    let body = json!({ "Pod": pod, "Nodes": null, "NodeNames": names }).to_string();
    let question = |verb: &str| {
        let length = body.len();
        format!(
            "POST /{verb} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let (filter, prioritize) = (question("filter"), question("prioritize"));
    let stream = TcpStream::connect(address).context("cannot connect to the extender")?;
    stream.set_nodelay(true).context("cannot set up the connection")?;
    let mut connection = BufReader::new(stream);
    let mut took = Vec::new();
    // What is answered is looked at once: it says the same each time.
    let kept: ExtenderFilterResult = read(&exchange(&mut connection, &filter)?)?;
    let scores: HostPriorityList = read(&exchange(&mut connection, &prioritize)?)?;
    let kept = kept.node_names.map_or(0, |names| names.len());
    if kept != nodes || scores.len() != nodes {
        bail!("of {nodes} nodes {kept} were kept and {} rated", scores.len());
    }
    for _ in 0..WARM_UP {
        exchange(&mut connection, &filter)?;
        exchange(&mut connection, &prioritize)?;
    }
    let began = clock();
    while began.elapsed() < patience {
        let pair = clock();
        exchange(&mut connection, &filter)?;
        exchange(&mut connection, &prioritize)?;
        took.push(nanoseconds(pair.elapsed()));
    }
    Ok(took)
}

/// Sends a question and reads the whole answer.
fn exchange(connection: &mut BufReader<TcpStream>, question: &str) -> anyhow::Result<Vec<u8>> {
    connection.get_mut().write_all(question.as_bytes()).context("cannot ask")?;
    let mut length = 0;
    let mut line = String::new();
    for number in 0.. {
        line.clear();
        connection.read_line(&mut line).context("cannot read the answer")?;
        if number == 0 && !line.starts_with("HTTP/1.1 200 ") {
            bail!("the extender answered {line:?}");
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().context("cannot read the length of the answer")?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).context("cannot read the answer")?;
    Ok(body)
}
