//! What a large cluster costs: decodes 1,000,000 running pods of 1,000 specs, binds them to 5,000 nodes and prints
//! time and memory per pod. Run it with `cargo run --release -p supercargo-model --example million_pods`.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "an example that measures and reports")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use supercargo_model::{Cluster, Decoded, Decoder, Pod};

const PODS: usize = 1_000_000;
const SPECS: usize = 1_000;
const NODES: usize = 5_000;
const PAGE: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let decoder = Decoder::default();
    let mut cluster = Cluster::default();
    for number in 0..NODES {
        let Decoded::Node(words) = decoder.decode(&node(number))? else { return Err("not a node".into()) };
        cluster.put_node(&words);
    }
    let before = resident_bytes()?;
    let [mut decoding, mut sharing, mut adding] = [Duration::ZERO; 3];
    for number in 0..PODS {
        let json = pod(number);
        let start = Instant::now();
        let Decoded::Pod(words) = decoder.decode(&json)? else { return Err("not a pod".into()) };
        let decoded = Instant::now();
        let pod = Arc::new(cluster.interner().pod(*words));
        let shared = Instant::now();
        cluster.add_pod(pod)?;
        decoding += decoded - start;
        sharing += shared - decoded;
        adding += shared.elapsed();
    }
    let after = resident_bytes()?;
    let snapshot = cluster.snapshot();
    let bound: usize = snapshot.nodes().map(|node| node.pods().len()).sum();
    assert_eq!(bound, PODS);
    println!("size of Pod            {:>6} B", size_of::<Pod>());
    println!("resident, all in       {:>6} B a pod", (after - before) / PODS);
    println!("resident, in total     {:>6} MiB", after / (1 << 20));
    for (what, time) in [("decoded", decoding), ("shared", sharing), ("added", adding)] {
        println!("{what:<7} in             {:>6.2} µs a pod", time.as_secs_f64() * 1e6 / PODS as f64);
    }
    Ok(())
}

fn node(number: usize) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"node-{number:05}","labels":{{
            "kubernetes.io/hostname":"node-{number:05}","kubernetes.io/arch":"amd64",
            "topology.kubernetes.io/zone":"zone-{}"}}}},
            "status":{{"allocatable":{{"cpu":"64","memory":"256Gi","pods":"250"}}}}}}"#,
        number % 3
    )
}

/// A pod as a running one reads: the kubelet reports the resources of its containers.
fn pod(number: usize) -> String {
    let (spec, node) = (number % SPECS, number * 7 % NODES);
    let resources = format!(r#"{{"requests":{{"cpu":"{}m","memory":"{}Mi"}}}}"#, 100 + spec, 64 + spec % 100);
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-{spec:04}-5d8f7c6b9-{number:07}","namespace":"team-{}",
            "uid":"0b9e1f52-3c4d-4e5f-8a9b-{number:012x}","creationTimestamp":"2026-01-31T12:00:00Z",
            "labels":{{"app":"web-{spec:04}","pod-template-hash":"5d8f7c6b9"}},
            "ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-{spec:04}-5d8f7c6b9","controller":true}}]}},
            "spec":{{"nodeName":"node-{node:05}","schedulerName":"default-scheduler","priority":0,
            "containers":[{{"name":"main","image":"registry.example.com/web:{spec}","resources":{resources}}}],
            "tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"}}]}},
            "status":{{"phase":"Running","startTime":"2026-01-31T12:00:01Z",
            "conditions":[{{"type":"Ready","status":"True"}}],
            "containerStatuses":[{{"name":"main","resources":{resources},"allocatedResources":{{"cpu":"{}m","memory":"{}Mi"}}}}]}}}}"#,
        spec % 50,
        100 + spec,
        64 + spec % 100,
    )
}

fn resident_bytes() -> Result<usize, Box<dyn Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split_whitespace().nth(1).ok_or("/proc/self/statm has no second number")?;
    Ok(pages.parse::<usize>()? * PAGE)
}
