//! `supercargo explain`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};
use supercargo_explain::{Asked, Detail, Explainer, Explanation, WorkloadSummary, render, render_asked};
use supercargo_framework::{Context, Memories, Registry};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Pod, printable};

use crate::ask::AskArguments;
use crate::cluster_files::{ClusterFiles, Scheduler, now};
use crate::expected::{self, Expected};
use crate::live::{ConnectArguments, wait_for};
use crate::named::Named;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::side_by_side::side_by_side;

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// Only this pod of the live cluster, pending or bound; without a namespace, of -n, or the kubeconfig's. Or a workload,
    /// such as `deploy/web`: its pods that are pending, and those it would still create
    #[arg(value_name = "[NAMESPACE/][KIND/]NAME")]
    pub(crate) live_pod: Option<String>,
    /// What `supercargo dump`, or `kubectl get … -o yaml` or `-o json`, printed; `-` is standard input. Without files the
    /// API server is asked
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
    #[command(flatten)]
    pub(crate) ask: AskArguments,
    /// The namespace of a pod that is named without one; without a pod, only those of it that are pending
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The scheduler's configuration; the default one if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Only this pod of the files, pending or bound; without a namespace, of -n, or the namespace `default`. Or a workload,
    /// such as `deploy/web`
    #[arg(long, value_name = "[NAMESPACE/][KIND/]NAME", conflicts_with = "live_pod")]
    pub(crate) pod: Option<String>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = View::Table)]
    pub(crate) output: View,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// What matters most
    #[default]
    Table,
    /// More nodes, and the message of the event
    Wide,
    /// Everything, for programs
    Json,
}

impl ExplainOptions {
    /// What cannot be meant.
    fn conflict(&self) -> Option<Outcome> {
        if let (Some(file), true) = (&self.live_pod, self.files.is_empty())
            && is_dump(file)
        {
            return Some(Outcome::wrong_usage(&format!("{file} is a file; to read it, write -f {file}")));
        }
        if let (Some(pod), false) = (&self.live_pod, self.files.is_empty()) {
            return Some(Outcome::wrong_usage(&format!(
                "{pod} is asked for in the live cluster, and -f names files: leave one out, or write --pod {pod}"
            )));
        }
        if let (Some(url), false) = (&self.ask.scheduler, self.files.is_empty()) {
            return Some(Outcome::wrong_usage(&format!(
                "--scheduler {url} names a live scheduler, and -f names files: leave one out"
            )));
        }
        self.connect.conflict(&self.files)
    }

    /// What the running scheduler says about a pod of the live cluster. If there is nobody to ask, that is noted, and what
    /// can be computed has to do.
    fn ask(&self, scheduler: &Scheduler, files: &mut ClusterFiles, name: &str) -> Option<Asked> {
        if !self.files.is_empty() || self.ask.is_nobody() || Named::parse(name).workload.is_some() {
            return None;
        }
        let pod = files.full_name(name);
        match wait_for(self.ask.ask(&self.connect, &scheduler.election, &pod)) {
            Ok((who, report)) => {
                let uid = files.find(name).ok().map(|pod| pod.uid.to_string());
                Some(Asked::new(who, report, uid))
            }
            Err(error) => {
                let reason = format!("{error:#}").replace('\n', " ");
                files.notes.push_str(&format!(
                    "note: no scheduler was asked what it decided, this is computed from what you may read: {reason}\n"
                ));
                None
            }
        }
    }
}

pub(crate) fn run(options: &ExplainOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    if let Some(conflict) = options.conflict() {
        return Ok(conflict);
    }
    let scheduler = Scheduler::from_file(options.config.as_deref(), registry)?;
    let name = options.live_pod.as_deref().or(options.pod.as_deref());
    let namespace = options.namespace.as_deref();
    let mut files =
        ClusterFiles::load(&options.files, &options.connect, &scheduler, name.as_slice(), namespace)?;
    if let (None, Some(namespace)) = (name, namespace) {
        files.keep_namespace(namespace)?;
    }
    let mut asked = name.and_then(|name| options.ask(&scheduler, &mut files, name));
    let pods = match (chosen_pods(&mut files, &scheduler, name), &asked) {
        (Err(error), Some(asked)) if !asked.report.decisions.is_empty() => {
            // It has gone, but is not forgotten.
            files.notes.push_str(&format!("note: {error:#}\n"));
            let stderr = scheduler.notes + &files.notes;
            return Ok(Outcome { stdout: print_gone(asked, options.output)?, stderr, code: 0 });
        }
        (pods, _) => pods?,
    };
    if !pods.is_empty() || files.expected.iter().any(Expected::has_pods) {
        files.require_nodes()?;
    }
    let kinds = of_a_kind(pods);
    let expected = std::mem::take(&mut files.expected);
    let memories = Memories::default();
    let context = Context {
        cluster: files.cluster.snapshot(),
        now: now(),
        memories: &memories,
        seed: 0,
        fixes: scheduler.fixes,
    };
    let explainers: Vec<Explainer<'_>> =
        scheduler.profiles.iter().map(|profile| Explainer::new(profile, context.clone())).collect();
    let tasks = kinds.iter().map(|kind| Ok((&kind[0], &explainers[scheduler.profile_index(&kind[0])?])));
    let tasks: Vec<(&Arc<Pod>, &Explainer<'_>)> = tasks.collect::<anyhow::Result<_>>()?;
    let (done, progress) = (AtomicUsize::new(0), Mutex::new(Progress::new()));
    let mut explanations = side_by_side(&tasks, |(pod, explainer)| {
        let explanation = explainer.explain(pod);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(mut progress) = progress.try_lock() {
            progress.tell(|| format!("explained {done} of {} kinds of pods", tasks.len()));
        }
        explanation
    });
    drop(progress);
    for (explanation, kind) in explanations.iter_mut().zip(&kinds) {
        explanation.alike = kind[1..].iter().map(|pod| pod.key()).collect();
        // Whoever is asked is asked about one pod.
        explanation.scheduler = asked.take().map(|mut asked| {
            asked.compare(&explanation.verdict);
            asked
        });
    }
    explanations.extend(expected::explain(&expected, &explainers, &scheduler)?);
    Ok(Outcome {
        stdout: print(&explanations, &expected, options.output)?,
        stderr: scheduler.notes + &files.notes,
        code: 0,
    })
}

/// Whether a name that should be a pod's is that of a file with objects. A pod may be called like a file, but not by chance.
fn is_dump(name: &str) -> bool {
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["yaml", "yml", "json"].contains(&ending) && path.is_file()
}

/// The pods to explain. One that is bound is explained as if it had to be placed again.
fn chosen_pods(
    files: &mut ClusterFiles,
    scheduler: &Scheduler,
    name: Option<&str>,
) -> anyhow::Result<Vec<Arc<Pod>>> {
    let Some(name) = name else {
        files.keep_ours(scheduler);
        Expected::gather(&files.expected, &mut files.pending);
        return Ok(std::mem::take(&mut files.pending));
    };
    let named = Named::parse(name);
    if named.workload.is_some() {
        return files.keep_workload(&named);
    }
    let pod = files.find(name)?.clone();
    files.expected.clear();
    let Some(node) = &pod.node_name else { return Ok(vec![pod]) };
    files.cluster.remove_pod(&pod.uid);
    let (key, node) = (pod.key(), printable(node));
    let key = printable(&key);
    files
        .notes
        .push_str(&format!("note: {key} runs on {node}; this is what would become of it without that\n"));
    Ok(vec![Arc::new(Pod { node_name: None, ..(*pod).clone() })])
}

/// The pods, those that are alike together, in the order in which the first of each came.
pub(crate) fn of_a_kind(pods: Vec<Arc<Pod>>) -> Vec<Vec<Arc<Pod>>> {
    let mut kinds: Vec<Vec<Arc<Pod>>> = Vec::new();
    for pod in pods {
        match kinds.iter_mut().find(|kind| alike(&kind[0], &pod)) {
            Some(kind) => kind.push(pod),
            None => kinds.push(vec![pod]),
        }
    }
    kinds
}

/// Pods that differ in nothing but their names, where these stand for nothing else: a claim made for a pod has its name.
fn alike(a: &Pod, b: &Pod) -> bool {
    let has_own_claims = || a.spec.volumes.iter().any(|volume| volume.source == VolumeSource::Ephemeral);
    a.spec.is_same(&b.spec)
        && a.labels.is_same(&b.labels)
        && a.annotations.is_same(&b.annotations)
        && a.namespace == b.namespace
        && a.controller == b.controller
        && a.status == b.status
        && !has_own_claims()
}

fn print(explanations: &[Explanation], expected: &[Expected], view: View) -> anyhow::Result<String> {
    let detail = match view {
        View::Json => return Ok(serde_json::to_string_pretty(explanations)? + "\n"),
        View::Table => Detail::Table,
        View::Wide => Detail::Wide,
    };
    let silent = expected::silent(expected);
    if explanations.is_empty() {
        return Ok(format!("{silent}no pod is pending\n"));
    }
    let mut texts: Vec<String> = Vec::new();
    texts.extend(Some(silent).filter(|silent| !silent.is_empty()));
    let mut last = None;
    for explanation in explanations {
        let heading = explanation.workload.as_ref().filter(|workload| last != Some(*workload));
        let heading = heading.map(WorkloadSummary::text).unwrap_or_default();
        texts.push(format!("{heading}{}", render(explanation, detail)));
        last = explanation.workload.as_ref();
    }
    Ok(texts.join("\n"))
}

/// What there is to say about a pod that is not there any more.
fn print_gone(asked: &Asked, view: View) -> anyhow::Result<String> {
    match view {
        View::Json => {
            let pod = serde_json::json!({ "pod": asked.report.pod, "scheduler": asked });
            Ok(serde_json::to_string_pretty(&[pod])? + "\n")
        }
        View::Table | View::Wide => Ok(render_asked(asked)),
    }
}
