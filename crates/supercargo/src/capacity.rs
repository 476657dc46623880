//! `supercargo capacity`.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use serde::Serialize;
use supercargo_explain::{
    Capacity, CapacityOptions, Detail, Doubt, MissingReport, Part, capacity, doubt_sentence, doubts,
    render_capacity,
};
use supercargo_framework::Registry;
use supercargo_model::{Pod, printable};

use crate::cluster_files::{ClusterFiles, now};
use crate::explain::{View, of_a_kind, print_values};
use crate::gather::Wanted;
use crate::live::ConnectArguments;
use crate::loaded_config::LoadedConfig;
use crate::named::Named;
use crate::outcome::Outcome;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(crate) struct CapacityArguments {
    /// What `supercargo dump`, or `kubectl get … -o yaml` or `-o json`, printed, and manifests of pods or workloads; `-` is standard
    /// input. Without `--like` the pods of files that hold no node are counted, or else those that are pending. Where
    /// no file holds one, and without files, the API server is asked
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

/// What was counted, and what to know about it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    #[serde(flatten)]
    capacity: Capacity,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Whether it may be wrong, because something that counts could not be read.
    #[serde(rename = "uncertain", skip_serializing_if = "std::ops::Not::not")]
    is_uncertain: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<Doubt>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<MissingReport>,
}

pub(crate) fn run(options: &CapacityArguments, registry: &Registry) -> anyhow::Result<Outcome> {
    let config = LoadedConfig::from_file(options.config.as_deref(), registry)?;
    let wanted = Wanted {
        files: &options.files,
        connect: &options.connect,
        names: &options.like,
        namespace: options.namespace.as_deref(),
        ask: None,
    };
    let mut files = match wanted.gather(&config)? {
        Ok(gathered) => gathered.files,
        Err(conflict) => return Ok(conflict),
    };
    if options.like.is_empty() && !files.holds_manifests() {
        files.leave_out_deleted();
        options.namespace.iter().try_for_each(|namespace| files.keep_namespace(namespace))?;
    }
    files.count_pods(&config.profiles);
    let kinds = of_a_kind(models(&mut files, &options.like)?);
    files.require_nodes()?;
    let mut capacities: Vec<Counted> = Vec::new();
    let mut progress = Progress::new();
    for (number, kind) in kinds.iter().enumerate() {
        let (index, _) = config.profile_for(&kind[0]);
        let profile = &config.profiles[index];
        let mut tell = |placed: usize| {
            progress.tell(|| {
                format!("counting pods like number {} of {}: {placed} so far", number + 1, kinds.len())
            });
        };
        let how = CapacityOptions { now: now(), fixes: config.fixes, most: options.most };
        let mut doubts = doubts(profile, files.cluster.snapshot(), &kind[0], &files.missing);
        // Who only says which pods go has no part in how many fit.
        doubts.retain(|doubt| doubt.part != Part::Evictions);
        let mut capacity = capacity(profile, &mut files.cluster, &kind[0], how, &mut tell)?;
        capacity.alike = kind[1..].iter().map(|pod| pod.key()).collect();
        capacities.push(Counted {
            capacity,
            notes: config.foreign_note(&kind[0]).into_iter().collect(),
            is_uncertain: !doubts.is_empty(),
            doubts,
            missing: files.missing.iter().map(|missing| missing.report(profile)).collect(),
        });
    }
    drop(progress);
    Ok(Outcome { stdout: print(&capacities, options.output)?, stderr: config.notes + &files.notes, code: 0 })
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

fn print(capacities: &[Counted], view: View) -> anyhow::Result<String> {
    let detail = match view {
        View::Json | View::Yaml => {
            return print_values(capacities, view);
        }
        View::Table => Detail::Table,
        View::Wide => Detail::Wide,
    };
    let texts = capacities.iter().map(|counted| {
        let notes = counted.notes.iter().map(|note| format!("{}\n", printable(note)));
        let doubt =
            doubt_sentence(&counted.doubts).map(|sentence| format!("  ? note: {}\n", printable(&sentence)));
        let text = render_capacity(&counted.capacity, detail);
        notes.chain([text]).chain(doubt).collect()
    });
    let texts: Vec<String> = texts.collect();
    Ok(texts.join("\n"))
}
