//! `supercargo capacity`.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use supercargo_explain::{Capacity, CapacityOptions, Detail, capacity, render_capacity};
use supercargo_framework::Registry;
use supercargo_model::Pod;

use crate::cluster_files::{ClusterFiles, Scheduler, now};
use crate::explain::{View, of_a_kind};
use crate::live::ConnectArguments;
use crate::named::Named;
use crate::outcome::Outcome;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(crate) struct CapacityArguments {
    /// What `supercargo dump`, or `kubectl get … -o yaml` or `-o json`, printed, and manifests of pods or
    /// workloads; `-` is standard input. Without `--like` the pods of files that hold no node are counted, or else those that are pending. Without
    /// files the API server is asked
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
    /// The namespace of pods that are named without one; without --like, only pods of it are counted that are pending
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// A pod to count more of, bound or pending, or a workload, such as `deploy/web`; may be given several times; without a
    /// namespace, of -n, or the namespace `default`, or the kubeconfig's
    #[arg(long, value_name = "[NAMESPACE/][KIND/]NAME")]
    pub(crate) like: Vec<String>,
    /// The scheduler's configuration; the default one if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Stop counting here; the nodes are then those that so many pods would go to. Without it counting stops at a million, or
    /// earlier where it takes long
    #[arg(long)]
    pub(crate) most: Option<usize>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = View::Table)]
    pub(crate) output: View,
}

pub(crate) fn run(options: &CapacityArguments, registry: &Registry) -> anyhow::Result<Outcome> {
    if let Some(conflict) = options.connect.conflict(&options.files) {
        return Ok(conflict);
    }
    let scheduler = Scheduler::from_file(options.config.as_deref(), registry)?;
    let names: Vec<&str> = options.like.iter().map(String::as_str).collect();
    let namespace = options.namespace.as_deref();
    let mut files = ClusterFiles::load(&options.files, &options.connect, &scheduler, &names, namespace)?;
    let mut capacities: Vec<Capacity> = Vec::new();
    if options.like.is_empty() && !files.holds_manifests() {
        files.keep_ours(&scheduler);
        namespace.map_or(Ok(()), |namespace| files.keep_namespace(namespace))?;
    }
    let kinds = of_a_kind(models(&mut files, &options.like)?);
    files.require_nodes()?;
    let mut progress = Progress::new();
    for (number, kind) in kinds.iter().enumerate() {
        let profile = scheduler.profile(&kind[0])?;
        let mut tell = |placed: usize| {
            progress.tell(|| {
                format!("counting pods like number {} of {}: {placed} so far", number + 1, kinds.len())
            });
        };
        let how = CapacityOptions { now: now(), fixes: scheduler.fixes, most: options.most };
        let mut counted = capacity(profile, &mut files.cluster, &kind[0], how, &mut tell)?;
        counted.alike = kind[1..].iter().map(|pod| pod.key()).collect();
        capacities.push(counted);
    }
    drop(progress);
    Ok(Outcome {
        stdout: print(&capacities, options.output)?,
        stderr: scheduler.notes + &files.notes,
        code: 0,
    })
}

/// The pods to make copies of, unbound.
fn models(files: &mut ClusterFiles, names: &[String]) -> anyhow::Result<Vec<Arc<Pod>>> {
    if names.is_empty() {
        let pods = files.pods_to_count();
        if pods.is_empty() {
            bail!("no pod to count: name one with --like, or give a manifest of one with -f");
        }
        return Ok(pods);
    }
    let mut models = Vec::new();
    for name in names {
        let named = Named::parse(name);
        if named.workload.is_some() {
            models.extend(files.workload_to_count(&named)?);
        } else {
            let pod = files.find(name)?;
            models.push(Arc::new(Pod { node_name: None, status: None, deleted_at: None, ..(**pod).clone() }));
        }
    }
    Ok(models)
}

fn print(capacities: &[Capacity], view: View) -> anyhow::Result<String> {
    let detail = match view {
        View::Json => return Ok(serde_json::to_string_pretty(capacities)? + "\n"),
        View::Table => Detail::Table,
        View::Wide => Detail::Wide,
    };
    let texts: Vec<String> = capacities.iter().map(|capacity| render_capacity(capacity, detail)).collect();
    Ok(texts.join("\n"))
}
