//! The controller of AppGroups: which workload is tried when, and how many pods run, written into the status of each.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Conclusion, Context, Effect, Memory, Observe,
};
use supercargo_model::pod::PodPhase;
use supercargo_model::{Kind, KindId, Object, ObjectKey, Pod, Timestamp};

use super::TopologicalSort;
use crate::community::controllers::{OLD_API_GROUP, STATUS_PAUSE, old_api_group};
use crate::community::network_aware::order::order_of;
use crate::community::network_aware::stale::{
    KeepsTrue, Problem, StaleObjects, Told, begin_anew, mark_stale, take_stale, tell, write, written,
};
use crate::community::network_aware::{APP_GROUP_LABEL, AppGroup, OldAppGroup, label_of};

/// The `reportingController` of events on AppGroups, as upstream's.
const REPORTER: &str = "AppGroupController";

/// The names of AppGroups whose status may not be true any more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct AppGroupMemory(StaleObjects);

impl Memory for AppGroupMemory {
    const NAME: &'static str = "TopologicalSort/AppGroups";

    fn clock_was_set(&mut self, seconds: i64) {
        self.0.clock_was_set(seconds);
    }
}

impl KeepsTrue for AppGroupMemory {
    fn objects(&self) -> &StaleObjects {
        &self.0
    }

    fn objects_mut(&mut self) -> &mut StaleObjects {
        &mut self.0
    }
}

impl Observe for TopologicalSort {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::ALL),
            ClusterEvent::kind(AppGroup::ID, Actions::ALL),
            ClusterEvent::kind(OldAppGroup::ID, Actions::ALL),
        ]
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        begin_anew::<AppGroupMemory>(acts);
        let names: BTreeSet<&str> = all(context).map(|(_, key, _)| &*key.name).collect();
        names.into_iter().for_each(|name| mark(context, name, acts));
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        match change {
            Change::Pod { old, new } => {
                let [old, new] = [*old, *new].map(|pod| pod.and_then(label_of));
                old.filter(|_| old != new).into_iter().chain(new).for_each(|name| mark(context, name, acts));
            }
            Change::Object { old, new: Some(new) } => {
                let spec = app_group_of(new).map(|group| &group.spec);
                if old.and_then(app_group_of).map(|group| &group.spec) != spec {
                    mark(context, &new.key.name, acts);
                }
            }
            Change::Object { .. } | Change::Node { .. } => {}
        }
    }

    fn woken(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let names = take_stale::<AppGroupMemory>(context, acts);
        let is_stale = |name: &str| names.binary_search_by(|known| (**known).cmp(name)).is_ok();
        for (kind, key, group) in all(context).filter(|(_, key, _)| is_stale(&key.name)) {
            keep_true(context, kind, key, group, acts);
        }
    }

    fn answered(&self, context: &Context<'_>, order: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        written::<AppGroupMemory>(context, order, conclusion, acts);
    }
}

/// All AppGroups, those of the old API group last.
fn all<'a>(context: &Context<'a>) -> impl Iterator<Item = (KindId, &'a ObjectKey, &'a AppGroup)> {
    let objects = context.cluster.objects();
    let new = objects.all::<AppGroup>().map(|(key, group)| (AppGroup::ID, key, group));
    new.chain(objects.all::<OldAppGroup>().map(|(key, group)| (OldAppGroup::ID, key, &group.0)))
}

/// The AppGroup that an object is.
pub(super) fn app_group_of(object: &Object) -> Option<&AppGroup> {
    object.get::<AppGroup>().or_else(|| object.get::<OldAppGroup>().map(|old| &old.0))
}

fn mark(context: &Context<'_>, name: &str, acts: &mut Acts<'_>) {
    mark_stale::<AppGroupMemory>(context, name, STATUS_PAUSE, acts);
}

/// Writes what is not true any more, and tells what is wrong.
fn keep_true(context: &Context<'_>, kind: KindId, key: &ObjectKey, group: &AppGroup, acts: &mut Acts<'_>) {
    let order = order_of(&group.spec);
    let mut status = Map::new();
    let (running, started) = progress(context, key);
    if running != group.status.running_workloads {
        status.insert("runningWorkloads".to_owned(), running.into());
    }
    if let Some(started) = started.filter(|_| group.status.schedule_start_time.is_none()) {
        status.insert("scheduleStartTime".to_owned(), started.to_string().into());
    }
    if order.workloads != group.status.topology_order {
        status.insert("topologyOrder".to_owned(), json!(order.workloads));
        status.insert("topologyCalculationTime".to_owned(), context.now.to_string().into());
    }
    if !status.is_empty() {
        let patch = json!({ "status": Value::Object(status) });
        write::<AppGroupMemory>(context, kind, key, Some("status"), patch, acts);
    }
    let mut problems: Vec<Problem> =
        order.problems.into_iter().map(|note| Problem { reason: "InvalidAppGroup", note }).collect();
    if kind == OldAppGroup::ID {
        let note = old_api_group(kind, AppGroup::ID, "AppGroup");
        problems.push(Problem { reason: OLD_API_GROUP, note });
    }
    tell::<AppGroupMemory>(&Told { reporter: REPORTER, kind, key, uid: &group.metadata.uid }, problems, acts);
}

/// How many pods of an AppGroup run, and when the first of them was given a node.
fn progress(context: &Context<'_>, key: &ObjectKey) -> (i64, Option<Timestamp>) {
    let members = match context.fixes.app_group_namespaces {
        true => context.pods().by_label_in(&key.namespace, APP_GROUP_LABEL, &key.name),
        false => context.pods().by_label(APP_GROUP_LABEL, &key.name),
    };
    let with_node = || members.iter().filter(|known| known.standing.has_node());
    let is_running = |pod: &Pod| pod.node_name.is_some() && pod.phase() == PodPhase::Running;
    let running = with_node().filter(|known| is_running(&known.pod)).count() as i64;
    let started = with_node().map(|known| known.pod.scheduled_at().unwrap_or(context.now)).min();
    (running, started)
}
