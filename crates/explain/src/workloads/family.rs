//! Who belongs to whom: pods to ReplicaSets, these to Deployments, Jobs to CronJobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use supercargo_model::{LabelLookup, Pod};

use super::{Workload, WorkloadKind};

/// The label that tells the ReplicaSets of a Deployment apart.
pub(super) const TEMPLATE_HASH: &str = "pod-template-hash";

/// Workloads and pods, by owner.
pub(super) struct Family<'a> {
    workloads: &'a [Workload],
    /// The place of each, by namespace, kind and name.
    places: BTreeMap<(&'a str, WorkloadKind, &'a str), usize>,
    /// The place of the workload that each belongs to.
    parents: Vec<Option<usize>>,
    children: BTreeMap<usize, Vec<usize>>,
    /// Pods by the namespace, the kind and the name of their controller.
    pods: BTreeMap<(&'a str, &'a str, &'a str), Vec<&'a Arc<Pod>>>,
}

impl<'a> Family<'a> {
    pub(super) fn new(workloads: &'a [Workload], pods: impl Iterator<Item = &'a Arc<Pod>>) -> Self {
        let mut family = Family {
            workloads,
            places: BTreeMap::new(),
            parents: Vec::new(),
            children: BTreeMap::new(),
            pods: BTreeMap::new(),
        };
        for (place, workload) in workloads.iter().enumerate() {
            let metadata = &workload.words.metadata;
            family.places.insert((&metadata.namespace, workload.kind, &metadata.name), place);
        }
        for (place, workload) in workloads.iter().enumerate() {
            let parent = family.find_parent(workload);
            family.parents.push(parent);
            if let Some(parent) = parent {
                family.children.entry(parent).or_default().push(place);
            }
        }
        if !workloads.is_empty() {
            for pod in pods {
                if let Some(owner) = &pod.controller {
                    let key = (&*pod.namespace, &*owner.kind, &*owner.name);
                    family.pods.entry(key).or_default().push(pod);
                }
            }
        }
        family
    }

    fn find_parent(&self, workload: &Workload) -> Option<usize> {
        let metadata = &workload.words.metadata;
        let owner = metadata.owner_references.iter().find(|owner| owner.controller)?;
        let kinds = WorkloadKind::ALL.into_iter().filter(|kind| kind.through() == Some(workload.kind));
        let kind = { kinds }.find(|kind| kind.id().kind == &*owner.kind)?;
        let place = *self.places.get(&(&*metadata.namespace, kind, &*owner.name))?;
        is_same(&owner.uid, &self.workloads[place].words.metadata.uid).then_some(place)
    }

    /// The workload that one belongs to.
    pub(super) fn parent(&self, place: usize) -> Option<&'a Workload> {
        self.parents[place].map(|parent| &self.workloads[parent])
    }

    /// Whether pods are made in its name. ReplicaSets leave that to their Deployment, and CronJobs to a Job that has not
    /// finished.
    pub(super) fn speaks_for_itself(&self, place: usize) -> bool {
        match self.workloads[place].kind {
            WorkloadKind::ReplicaSet => self.parents[place].is_none(),
            _ => !self.leaves_it_to_a_job(place),
        }
    }

    /// Whether it is a CronJob that has a Job which has not finished.
    pub(super) fn leaves_it_to_a_job(&self, place: usize) -> bool {
        let is_open = |child: &usize| !self.workloads[*child].words.status.is_finished();
        self.workloads[place].kind == WorkloadKind::CronJob && self.children(place).iter().any(is_open)
    }

    /// Of the ReplicaSets of a Deployment, the one that has its template.
    pub(super) fn current_child(&self, place: usize) -> Option<&'a Workload> {
        let workload = &self.workloads[place];
        let wanted = without_hash(&workload.words.spec.template);
        let children = self.children(place).iter().map(|child| &self.workloads[*child]);
        { children }.find(|child| without_hash(&child.words.spec.template) == wanted)
    }

    /// The pods of a workload that have not finished, those of its children among them.
    pub(super) fn pods_of(&self, place: usize) -> Vec<&'a Arc<Pod>> {
        let workload = &self.workloads[place];
        let mut pods = self.own_pods(workload);
        for child in self.children(place) {
            pods.extend(self.own_pods(&self.workloads[*child]));
        }
        if let Some(through) = workload.kind.through() {
            pods.extend(self.pods_by_name(workload, through));
        }
        pods
    }

    fn own_pods(&self, workload: &Workload) -> Vec<&'a Arc<Pod>> {
        let metadata = &workload.words.metadata;
        let key = (&*metadata.namespace, workload.kind.id().kind, &*metadata.name);
        let pods = self.pods.get(&key).into_iter().flatten();
        let belongs = |pod: &&&Arc<Pod>| {
            pod.controller.as_ref().is_some_and(|owner| is_same(&owner.uid, &metadata.uid))
        };
        pods.filter(belongs).copied().collect()
    }

    /// Pods whose ReplicaSet or Job is not here: its name says whose it is, and the pod's labels confirm it.
    fn pods_by_name(&self, workload: &Workload, through: WorkloadKind) -> Vec<&'a Arc<Pod>> {
        let metadata = &workload.words.metadata;
        let (namespace, prefix) = (&*metadata.namespace, format!("{}-", metadata.name));
        let first = (namespace, through.id().kind, &*prefix);
        let owners = self.pods.range(first..).take_while(|((pod_namespace, kind, name), _)| {
            (*pod_namespace, *kind) == (namespace, through.id().kind) && name.starts_with(&prefix)
        });
        let unknown =
            owners.filter(|((_, _, name), _)| !self.places.contains_key(&(namespace, through, name)));
        unknown
            .flat_map(|((_, _, name), pods)| {
                let suffix = &name[prefix.len()..];
                pods.iter().filter(move |pod| match through {
                    WorkloadKind::ReplicaSet => pod.labels.label(TEMPLATE_HASH) == Some(suffix),
                    _ => !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit()),
                })
            })
            .copied()
            .collect()
    }

    fn children(&self, place: usize) -> &[usize] {
        self.children.get(&place).map_or(&[], Vec::as_slice)
    }
}

/// Whether two UIDs are of one object, as far as both are known.
fn is_same(one: &str, other: &str) -> bool {
    one.is_empty() || other.is_empty() || one == other
}

/// A template without what its ReplicaSet adds to it.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("creationTimestamp");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(TEMPLATE_HASH);
        }
    }
    template
}
