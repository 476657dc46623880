//! Workloads as the pods they would create: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and
//! ReplicationControllers.
//!
//! An object's JSON goes in, pods come out, as the controllers of Kubernetes would make them and as the API server would
//! complete them ([`admission`]): how many ([`seats`]), in whose name, with which labels, claims and tolerations. Pods that
//! exist already are taken off. This is part of what an explanation starts from, needs nothing but the model, and does no
//! I/O; so it is here, and not with the commands.

mod admission;
mod claims;
mod daemon;
mod family;
mod kind;
mod pods;
mod seats;
mod summary;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use supercargo_model::kinds::StorageClass;
use supercargo_model::{DecodeError, Kind, KindId, Object, Pod, PodWords, RawObject, Snapshot};

use admission::Admission;
use family::Family;
use pods::Owner;
use seats::Seats;
use words::{WorkloadSpecWords, WorkloadWords};

pub(crate) use daemon::node_of;
pub use kind::WorkloadKind;
pub use summary::WorkloadSummary;

/// How many pods of one workload are made at most, other than one for each node: they are alike, or nearly so.
pub const PODS_MADE_MAX: usize = 100;

const PRIORITY_CLASS: KindId =
    KindId { group: "scheduling.k8s.io", version: "v1", kind: "PriorityClass", plural: "priorityclasses" };
const RUNTIME_CLASS: KindId =
    KindId { group: "node.k8s.io", version: "v1", kind: "RuntimeClass", plural: "runtimeclasses" };
const LIMIT_RANGE: KindId = KindId { group: "", version: "v1", kind: "LimitRange", plural: "limitranges" };

/// The kinds that admission looks at when a pod is made.
pub const ADMISSION_KINDS: [KindId; 4] = [PRIORITY_CLASS, RUNTIME_CLASS, LIMIT_RANGE, StorageClass::ID];

/// Workloads, and what decides how their pods look.
#[derive(Clone, Debug, Default)]
pub struct Workloads {
    workloads: Vec<Workload>,
    admission: Vec<(KindId, Arc<RawObject>)>,
}

/// One object that makes pods.
#[derive(Clone, Debug)]
struct Workload {
    kind: WorkloadKind,
    words: WorkloadWords,
    source: usize,
}

/// Why a workload cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The object itself.
    #[error(transparent)]
    Object(#[from] DecodeError),
    /// What its pods are made from.
    #[error("{kind} {name}: {place}{reason}")]
    Template {
        /// What the object is.
        kind: &'static str,
        /// What it is called.
        name: String,
        /// Where in it, with a colon.
        place: String,
        /// What is wrong there.
        reason: String,
    },
}

/// What a workload would create.
#[derive(Clone, Debug)]
pub struct WorkloadPods {
    /// Which workload, and how many pods.
    pub summary: WorkloadSummary,
    /// The workload that it works for, such as the CronJob of a Job.
    pub parent: Option<(WorkloadKind, String)>,
    /// What the caller of [`Workloads::take`] said about where it is from.
    pub source: usize,
    /// The pods that it would create, as JSON.
    pub pods: Vec<Value>,
    /// Whether there is one for each node that it is meant for.
    pub is_per_node: bool,
    /// Its pods that exist and wait for a node.
    pub waiting: Vec<Arc<Pod>>,
    /// What would be there as well, as JSON: claims, volumes made for them, a ReplicaSet.
    pub objects: Vec<(KindId, Value)>,
    /// A pod of it for whoever wants to know how many more fit; none if it has no template.
    pub model: Option<Value>,
}

impl Workloads {
    /// The kinds that are taken: they have to keep their text ([`supercargo_model::Decoder::keeping`]).
    pub fn kinds() -> Vec<KindId> {
        WorkloadKind::ALL.into_iter().map(WorkloadKind::id).chain(ADMISSION_KINDS).collect()
    }

    /// Takes an object in. Of those of other kinds, or without their text, it takes nothing. `source` is the caller's word
    /// for where it is from.
    pub fn take(&mut self, object: &Object, source: usize) -> Result<(), WorkloadError> {
        let Some(raw) = &object.raw else { return Ok(()) };
        if ADMISSION_KINDS.contains(&object.kind) {
            self.admission.push((object.kind, raw.clone()));
        } else if let Some(kind) = WorkloadKind::of(object.kind) {
            let mut words: WorkloadWords = raw.read(object.kind.kind)?;
            if words.spec.replicas == Some(0) && kind == WorkloadKind::ReplicaSet {
                // A cluster is full of former ReplicaSets of Deployments.
                words.spec.template = Value::Null;
            } else {
                check_template(kind, &words)?;
            }
            self.workloads.push(Workload { kind, words, source });
        }
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.workloads.is_empty()
    }

    /// What all workloads would create beside these pods, in the order in which they came; or only that of one kind and full
    /// name, or what works for it. Those without a namespace are of `default_namespace`.
    pub fn expand<'a>(
        mut self,
        default_namespace: &str,
        only: Option<(WorkloadKind, &str)>,
        pods: impl Iterator<Item = &'a Arc<Pod>>,
        cluster: &Snapshot,
    ) -> Result<Vec<WorkloadPods>, WorkloadError> {
        for workload in &mut self.workloads {
            let namespace = &mut workload.words.metadata.namespace;
            if namespace.is_empty() {
                default_namespace.clone_into(namespace);
            }
        }
        let mut admission = Admission::default();
        for (kind, raw) in &self.admission {
            admission.take(kind.kind, raw, default_namespace)?;
        }
        // The pods may outlive the workloads.
        let family = Family::new(&self.workloads, pods.map(|pod| pod as &Arc<Pod>));
        let maker = Maker { family: &family, admission: &admission, cluster };
        let mut expanded = Vec::new();
        for (place, workload) in self.workloads.iter().enumerate() {
            let is_wanted = match only {
                None => family.speaks_for_itself(place),
                Some(wanted) => {
                    let is = |workload: &Workload| (workload.kind, &*workload.name()) == wanted;
                    let works_for_it =
                        || family.parent(place).is_some_and(is) && family.speaks_for_itself(place);
                    (is(workload) && !family.leaves_it_to_a_job(place)) || works_for_it()
                }
            };
            if is_wanted {
                expanded.push(maker.make(place, workload)?);
            }
        }
        Ok(expanded)
    }
}

/// Makes the pods of workloads.
struct Maker<'a> {
    family: &'a Family<'a>,
    admission: &'a Admission,
    cluster: &'a Snapshot,
}

impl Maker<'_> {
    fn make(&self, place: usize, workload: &Workload) -> Result<WorkloadPods, WorkloadError> {
        let members = self.family.pods_of(place);
        let owner = Owner::of(workload, self.family.current_child(place));
        let spec = workload.pod_maker();
        let mut assumptions = BTreeSet::new();
        let seats = match workload.kind {
            WorkloadKind::DaemonSet => {
                let loose = pods::loose_pod(workload, &owner);
                let loose = loose.map(|pod| self.admitted(pod, &mut BTreeSet::new()));
                let loose = loose.map(|pod| read_pod(workload, &pod)).transpose()?;
                daemon::seats(self.cluster, workload, loose.as_ref(), &members)
            }
            _ => seats::seats(workload, spec, &members),
        };
        let Seats { wants, exists, missing, seats, mut remarks } = seats;
        let mut made = Vec::with_capacity(seats.len());
        let mut objects = Vec::new();
        for seat in &seats {
            let Some(pod) = pods::pod(workload, &owner, seat) else { continue };
            let pod = self.admitted(pod, &mut assumptions);
            let claims = claims::Claims { cluster: self.cluster, admission: self.admission };
            claims.make(&pod, &spec.volume_claim_templates, &mut objects, &mut assumptions);
            made.push(pod);
        }
        if let (false, Some(replica_set)) = (made.is_empty(), owner.new_replica_set(workload)) {
            objects.push((WorkloadKind::ReplicaSet.id(), replica_set));
        }
        let model = pods::loose_pod(workload, &owner).map(|pod| self.admitted(pod, &mut assumptions));
        if let Some(model) = &model {
            read_pod(workload, model)?;
        }
        let name = workload.name();
        let parent = self.family.parent(place).map(|parent| (parent.kind, parent.name()));
        remarks.extend(parent.as_ref().map(|(kind, name)| format!("a run of {} {name}", kind.word())));
        Ok(WorkloadPods {
            summary: WorkloadSummary {
                kind: workload.kind,
                name,
                wants,
                exists,
                creates: missing,
                made: made.len(),
                remarks,
                assumptions: assumptions.into_iter().collect(),
            },
            parent,
            source: workload.source,
            pods: made,
            is_per_node: workload.kind == WorkloadKind::DaemonSet,
            waiting: members.iter().filter(|pod| pod.node_name.is_none()).map(|pod| (*pod).clone()).collect(),
            objects,
            model,
        })
    }

    fn admitted(&self, mut pod: Value, assumptions: &mut BTreeSet<String>) -> Value {
        self.admission.admit(&mut pod, assumptions);
        pod
    }
}

impl Workload {
    /// `namespace/name`
    fn name(&self) -> String {
        format!("{}/{}", self.words.metadata.namespace, self.words.metadata.name)
    }

    /// The part that says how pods are made: of a CronJob it is that of its Jobs.
    fn pod_maker(&self) -> &WorkloadSpecWords {
        let spec = &self.words.spec;
        match self.kind {
            WorkloadKind::CronJob => spec.job_template.spec.as_deref().unwrap_or(spec),
            _ => spec,
        }
    }
}

/// Templates are read as the pods they stand for, so that what is made of them is known to be in order.
fn check_template(kind: WorkloadKind, words: &WorkloadWords) -> Result<(), WorkloadError> {
    let (spec, place) = match (kind, &words.spec.job_template.spec) {
        (WorkloadKind::CronJob, Some(spec)) => (&**spec, "spec.jobTemplate.spec.template"),
        _ => (&words.spec, "spec.template"),
    };
    let error = |place: String, reason: String| {
        let metadata = &words.metadata;
        let name = match &*metadata.namespace {
            "" => metadata.name.clone(),
            namespace => format!("{namespace}/{}", metadata.name),
        };
        Err(WorkloadError::Template { kind: kind.id().kind, name, place, reason })
    };
    if !spec.template["spec"].is_object() {
        return error(String::new(), format!("it has no {place}.spec to make pods from"));
    }
    match RawObject::new(spec.template.to_string()).read::<PodWords>("Pod") {
        Ok(_) => Ok(()),
        Err(DecodeError::Field { path, reason, .. }) => error(format!("{place}.{path}: "), reason),
        Err(other) => error(format!("{place}: "), other.to_string()),
    }
}

fn read_pod(workload: &Workload, pod: &Value) -> Result<Pod, WorkloadError> {
    let mut words: PodWords =
        RawObject::new(pod.to_string()).read("Pod").map_err(|error| WorkloadError::Template {
            kind: workload.kind.id().kind,
            name: workload.name(),
            place: "its pods: ".to_owned(),
            reason: error.to_string(),
        })?;
    words.complete();
    Ok(supercargo_model::Interner::default().pod(words))
}

#[cfg(test)]
mod tests;
