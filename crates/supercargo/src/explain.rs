//! `supercargo explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};
use serde::Serialize;
use supercargo_config::print_yaml;
use supercargo_explain::{
    Asked, Detail, Explainer, Explanation, WorkloadSummary, doubts, render, render_asked,
};
use supercargo_framework::{Context, Memories, Registry};
use supercargo_model::pod::VolumeSource;
use supercargo_model::{Pod, Snapshot, printable};

use crate::ask::AskArguments;
use crate::cluster_files::{ClusterFiles, now};
use crate::expected::{self, Expected};
use crate::gather::{Gathered, Wanted};
use crate::live::ConnectArguments;
use crate::loaded_config::{IsOurs, LoadedConfig};
use crate::named::Named;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::scheduling::Scheduling;
use crate::side_by_side::side_by_side;

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// Only these pods of the live cluster, pending or bound; without a namespace, of -n, or the kubeconfig's. Or workloads,
    /// such as `deploy/web`: their pods that are pending, and those they would still create
    #[arg(value_name = "[NAMESPACE/][KIND/]NAME")]
    pub(crate) live_pods: Vec<String>,
    /// What `supercargo dump`, or `kubectl get … -o yaml` or `-o json`, printed; `-` is standard input. Without files the
    /// API server is asked. Files that hold no node are manifests: their pods are explained in the live cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
    #[command(flatten)]
    pub(crate) ask: AskArguments,
    /// The namespace of a pod that is named without one; without a pod, only those of it that are pending
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// All pending pods of all namespaces, which is so anyway where neither a pod nor -n is given
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "live_pods", "pods"])]
    pub(crate) all_namespaces: bool,
    /// The scheduler's configuration; the default one if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Only this pod of the files, pending or bound; may be given several times; without a namespace, of -n, or the
    /// namespace `default`. Or a workload, such as `deploy/web`
    #[arg(long = "pod", value_name = "[NAMESPACE/][KIND/]NAME", conflicts_with = "live_pods")]
    pub(crate) pods: Vec<String>,
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
    /// The same in YAML
    Yaml,
}

impl ExplainOptions {
    /// What cannot be meant.
    fn conflict(&self) -> Option<Outcome> {
        if let Some(file) = self.live_pods.iter().find(|name| self.files.is_empty() && is_dump(name)) {
            return Some(Outcome::wrong_usage(&format!("{file} is a file; to read it, write -f {file}")));
        }
        if let (Some(pod), false) = (self.live_pods.first(), self.files.is_empty()) {
            return Some(Outcome::wrong_usage(&format!(
                "{pod} is asked for in the live cluster, and -f names files: leave one out, or write --pod {pod}"
            )));
        }
        if let (Some(url), false) = (&self.ask.scheduler, self.files.is_empty()) {
            return Some(Outcome::wrong_usage(&format!(
                "--scheduler {url} names a live scheduler, and -f names files: leave one out"
            )));
        }
        None
    }

    /// The pods that are asked about by name.
    fn names(&self) -> Vec<String> {
        self.live_pods.iter().chain(&self.pods).cloned().collect()
    }
}

/// Whether a name that should be a pod's is that of a file with objects. A pod may be called like a file, but not by chance.
fn is_dump(name: &str) -> bool {
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["yaml", "yml", "json"].contains(&ending) && path.is_file()
}

/// Pods for which one explanation does, and the cluster that they are explained in.
struct Task {
    /// The first is explained, the others are alike.
    pods: Vec<Arc<Pod>>,
    /// The cluster without the pod, if the pod is bound there; none for the cluster as it is.
    without: Option<Snapshot>,
}

/// What there is to explain, and what cannot be.
#[derive(Default)]
struct Tasks {
    tasks: Vec<Task>,
    /// What workloads would create.
    expected: Vec<Expected>,
    /// What a scheduler remembers of pods that have gone.
    gone: Vec<Asked>,
    errors: String,
}

pub(crate) fn run(options: &ExplainOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    if let Some(conflict) = options.conflict() {
        return Ok(conflict);
    }
    let config = LoadedConfig::from_file(options.config.as_deref(), registry)?;
    let names = options.names();
    let wanted = Wanted {
        files: &options.files,
        connect: &options.connect,
        names: &names,
        namespace: options.namespace.as_deref(),
        ask: Some(&options.ask),
    };
    let mut gathered = match wanted.gather(&config)? {
        Ok(gathered) => gathered,
        Err(conflict) => return Ok(conflict),
    };
    gathered.files.count_pods(&config.profiles);
    let tasks = if names.is_empty() {
        if options.files.is_empty() || !gathered.is_live {
            options.namespace.iter().try_for_each(|namespace| gathered.files.keep_namespace(namespace))?;
        }
        gathered.files.leave_out_deleted();
        Tasks::of_pending(&mut gathered.files)
    } else {
        Tasks::of_names(&mut gathered, &names)
    };
    if !tasks.tasks.is_empty() || tasks.expected.iter().any(Expected::has_pods) {
        gathered.files.require_nodes()?;
    }
    let explanations = explain_all(&config, &mut gathered, &tasks)?;
    let code = u8::from(!tasks.errors.is_empty());
    let stdout = match (code, explanations.is_empty() && tasks.gone.is_empty() && tasks.expected.is_empty()) {
        (1, true) => String::new(),
        _ => print(&explanations, &tasks, options.output)?,
    };
    Ok(Outcome { stdout, stderr: tasks.errors + &config.notes + &gathered.files.notes, code })
}

impl Tasks {
    fn of_pending(files: &mut ClusterFiles) -> Self {
        let expected = std::mem::take(&mut files.expected);
        Expected::gather(&expected, &mut files.pending);
        let kinds = of_a_kind(std::mem::take(&mut files.pending));
        let tasks = kinds.into_iter().map(|pods| Task { pods, without: None }).collect();
        Tasks { tasks, expected, ..Tasks::default() }
    }

    /// The pods of these names. One that is bound is explained as if it had to be placed again.
    fn of_names(gathered: &mut Gathered, names: &[String]) -> Self {
        let mut tasks = Tasks::default();
        let mut pending = Vec::new();
        let mut bound = Vec::new();
        for name in names {
            let named = Named::parse(name);
            if named.workload.is_some() {
                match gathered.files.extract_workload(&named) {
                    Ok((expected, waiting)) => {
                        tasks.expected.extend(expected);
                        pending.extend(waiting);
                    }
                    Err(error) => tasks.errors.push_str(&format!("error: {error:#}\n")),
                }
                continue;
            }
            match gathered.files.find(name) {
                Ok(pod) if pod.node_name.is_some() => bound.push(pod.clone()),
                Ok(pod) => pending.push(pod.clone()),
                Err(error) => match gathered.asked.remove(&gathered.files.full_name(name)) {
                    // It has gone, but is not forgotten.
                    Some(asked) if !asked.report.decisions.is_empty() => {
                        gathered.files.notes.push_str(&format!("note: {error:#}\n"));
                        tasks.gone.push(asked);
                    }
                    _ => tasks.errors.push_str(&format!("error: {error:#}\n")),
                },
            }
        }
        let kinds = of_a_kind(pending);
        tasks.tasks.extend(kinds.into_iter().map(|pods| Task { pods, without: None }));
        for pod in bound {
            let node = pod.node_name.clone().unwrap_or_default();
            let cluster = gathered.files.cluster.snapshot();
            let row = cluster.row_of(&node);
            let without = row.map(|row| cluster.without_pods([(row, &*pod.uid)]));
            let note = format!("{} runs on {node}; explained as if it were not placed yet", pod.key());
            gathered.files.notes.push_str(&format!("note: {}\n", printable(&note)));
            let unbound = Arc::new(Pod { node_name: None, ..(*pod).clone() });
            tasks.tasks.push(Task { pods: vec![unbound], without });
        }
        tasks
    }
}

fn explain_all(
    config: &LoadedConfig,
    gathered: &mut Gathered,
    Tasks { tasks, expected, .. }: &Tasks,
) -> anyhow::Result<Vec<Explanation>> {
    let Gathered { files, asked, scheduling, .. } = gathered;
    let ClusterFiles { cluster, missing, unread_for_workloads, .. } = files;
    let unread_for_workloads = unread_note(unread_for_workloads);
    let memories = Memories::default();
    let context = Context {
        cluster: cluster.snapshot(),
        now: now(),
        memories: &memories,
        seed: 0,
        fixes: config.fixes,
    };
    let explainers: Vec<Explainer<'_>> =
        config.profiles.iter().map(|profile| Explainer::new(profile, context.clone())).collect();
    let (done, progress) = (AtomicUsize::new(0), Mutex::new(Progress::new()));
    let mut explanations = side_by_side(tasks, |Task { pods, without }| {
        let (index, _) = config.profile_for(&pods[0]);
        let explanation = match without {
            None => explainers[index].explain(&pods[0]),
            Some(cluster) => {
                let context = Context { cluster, ..context.clone() };
                Explainer::new(&config.profiles[index], context).explain(&pods[0])
            }
        };
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(mut progress) = progress.try_lock() {
            progress.tell(|| format!("explained {done} of {} kinds of pods", tasks.len()));
        }
        explanation
    });
    drop(progress);
    let finish = |explanation: &mut Explanation, pod: &Pod| {
        let profile = &config.profiles[config.profile_for(pod).0];
        explanation.mark_doubts(doubts(profile, context.cluster, pod, missing));
        explanation.missing = missing.iter().map(|missing| missing.report(profile)).collect();
        let is_scheduled = explanation.scheduler.as_ref().is_some_and(|asked| asked.report.leads);
        // What matters for everything comes before what plugins say.
        explanation.notes.splice(0..0, notes_on(config, scheduling, pod, is_scheduled));
    };
    for (explanation, Task { pods, .. }) in explanations.iter_mut().zip(tasks) {
        explanation.alike = pods[1..].iter().map(|pod| pod.key()).collect();
        explanation.scheduler = asked.remove(&explanation.pod).map(|mut asked| {
            asked.compare(&explanation.verdict);
            asked
        });
        finish(explanation, &pods[0]);
    }
    let of_workloads = expected::explain(expected, &explainers, config, |explanation, pod| {
        finish(explanation, pod);
        explanation.is_uncertain |= unread_for_workloads.is_some();
        explanation.notes.extend(unread_for_workloads.clone());
    })?;
    explanations.extend(of_workloads);
    Ok(explanations)
}

/// What could not be read that says which pods workloads would create.
fn unread_note(kinds: &BTreeSet<&'static str>) -> Option<String> {
    let kinds: Vec<&str> = kinds.iter().copied().collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "? note: you may not read {}; which pods the workload would still create, and how they look, may be wrong",
            kinds.join(", ")
        )
    })
}

/// What to know about a pod before the rest: that nobody schedules it, and whose rules were taken.
fn notes_on(
    config: &LoadedConfig,
    scheduling: &BTreeMap<String, Scheduling>,
    pod: &Pod,
    is_scheduled: bool,
) -> Vec<String> {
    let name = &*pod.spec.scheduler_name;
    let is_ours = config.profile_for(pod).1 == IsOurs::Yes;
    let found = scheduling.get(name).filter(|_| !is_scheduled);
    let alarm = found.and_then(|found| found.alarm(name, is_ours));
    alarm.into_iter().chain(config.foreign_note(pod)).collect()
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

fn print(explanations: &[Explanation], tasks: &Tasks, view: View) -> anyhow::Result<String> {
    let Tasks { gone, expected, .. } = tasks;
    let detail = match view {
        View::Table => Detail::Table,
        View::Wide => Detail::Wide,
        View::Json | View::Yaml => {
            let answers = explanations.iter().map(Answer::Explained);
            let gone = gone.iter().map(|asked| Answer::Gone { pod: &asked.report.pod, scheduler: asked });
            return print_values(&answers.chain(gone).collect::<Vec<_>>(), view);
        }
    };
    let silent = expected::silent(expected);
    if explanations.is_empty() && gone.is_empty() {
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
    texts.extend(gone.iter().map(render_asked));
    Ok(texts.join("\n"))
}

/// An answer for programs.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Explained(&'a Explanation),
    /// The pod is not there any more.
    Gone {
        pod: &'a str,
        scheduler: &'a Asked,
    },
}

/// Answers for programs.
pub(crate) fn print_values(values: &[impl Serialize], view: View) -> anyhow::Result<String> {
    match view {
        View::Yaml => Ok(print_yaml(&serde_json::to_value(values)?)),
        _ => Ok(serde_json::to_string_pretty(values)? + "\n"),
    }
}
