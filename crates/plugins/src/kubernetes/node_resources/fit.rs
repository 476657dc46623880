//! NodeResourcesFit: nodes that have what a pod requests, by what is left over or taken.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Actions, Args, Change, ClusterEvent, Code, ColumnResource, ColumnView, Context, Cycle, Enqueue,
    Extensions, FieldProblems, Filter, Fixes, Hint, NodeField, Normalization, Plugin, PodField, PreFilter,
    PreFilterResult, PreScore, Reads, RowFilter, RowScore, Score, Status, Unread,
};
use supercargo_model::kinds::DeviceClass;
use supercargo_model::names::{label_key_problems, resource};
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, NodeRef, Object, Objects, Pod, Resources, Row, Snapshot};

use super::rows::{self, AskedColumn, AskedNumber, COLUMNS_MAX, Share};
use super::strategy::{ScoringStrategy, ScoringStrategyType};
use super::{Sums, level};
use crate::kubernetes::dynamic_resources::{IMPLICIT_PREFIX, is_device_backed};
use crate::kubernetes::takes_room;

/// # What
/// Keeps a pod off nodes that do not have what it requests, and scores the others by what is left over, or by what is
/// taken.
///
/// # Why
/// A node must not promise more than it has. Spreading leaves room everywhere, packing leaves nodes empty.
///
/// # Arguments
/// - `scoringStrategy`: `type` `LeastAllocated` (the default), `MostAllocated` or `RequestedToCapacityRatio` with a
///   `shape`; `resources` with weights, by default cpu and memory.
/// - `ignoredResources`, `ignoredResourceGroups`: extended resources that are not looked at.
///
/// # Example
/// ```yaml
/// pluginConfig:
/// - name: NodeResourcesFit
///   args:
///     scoringStrategy:
///       type: MostAllocated
///       resources: [{name: example.com/gpu, weight: 10}, {name: cpu, weight: 1}]
/// ```
///
/// # Difference from upstream
/// None. As upstream, the score leaves out what a pending pod requests at pod level; the fix
/// `fitScorePodLevelRequests` counts it.
#[derive(Debug)]
pub struct NodeResourcesFit {
    args: NodeResourcesFitArgs,
    strategy: ScoringStrategy,
    /// Where the numbers of each scored resource are, for many nodes at once.
    columns: Vec<Option<ColumnResource>>,
}

/// Arguments of [`NodeResourcesFit`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeResourcesFitArgs {
    /// Extended resources that are not looked at.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub ignored_resources: Vec<String>,
    /// Extended resources that are not looked at, by the part of their name before the slash.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub ignored_resource_groups: Vec<String>,
    /// How nodes are scored.
    pub scoring_strategy: Option<ScoringStrategy>,
}

/// What the pod requests, amounts below zero counted as zero.
#[derive(Clone)]
struct PodRequest(Resources);

/// What the pod is scored by: the amounts of the strategy's resources.
#[derive(Clone)]
struct ScoredRequests(Vec<i64>);

impl Args for NodeResourcesFitArgs {
    fn complete(&mut self) {
        self.scoring_strategy.get_or_insert_with(ScoringStrategy::least_allocated).complete();
    }

    fn validate(&self, problems: &mut FieldProblems) {
        for (index, name) in self.ignored_resources.iter().enumerate() {
            for problem in label_key_problems(name) {
                problems.invalid(format!("ignoredResources[{index}]"), name, problem);
            }
        }
        for (index, group) in self.ignored_resource_groups.iter().enumerate() {
            let path = format!("ignoredResourceGroups[{index}]");
            if group.contains('/') {
                problems.invalid(path.clone(), group, "resource group name can't contain '/'");
            }
            for problem in label_key_problems(group) {
                problems.invalid(path.clone(), group, problem);
            }
        }
        if let Some(strategy) = &self.scoring_strategy {
            strategy.validate(problems);
        }
    }
}

impl Plugin for NodeResourcesFit {
    const NAME: &'static str = "NodeResourcesFit";
    type Args = NodeResourcesFitArgs;

    fn new(args: NodeResourcesFitArgs) -> Self {
        let strategy = args.scoring_strategy.clone().expect("a missing strategy was filled in");
        let columns = rows::columns_of(&strategy.resources);
        NodeResourcesFit { args, strategy, columns }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().pre_score().score().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::Requests])
            .node(&[NodeField::Allocatable, NodeField::Requested, NodeField::Pods])
            .kind::<DeviceClass>()
    }

    fn depends_on(&self, unread: &Unread, pod: &Pod, _: &Snapshot) -> bool {
        // Only extended resources can be those of a device class.
        unread.kind == KindId::POD || pod.spec.requests.resources.scalars().next().is_some()
    }

    fn subject(&self) -> &'static str {
        "free resources"
    }
}

impl PreFilter for NodeResourcesFit {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        cycle.put(PodRequest(Resources::from_list_non_negative(&cycle.pod.spec.requests.list)));
        PreFilterResult::AllNodes
    }
}

impl Filter for NodeResourcesFit {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let Some(PodRequest(request)) = cycle.get() else {
            return Status::error(r#"error reading "PreFilterNodeResourcesFit" from cycleState: not found"#);
        };
        let mut shortage = Shortage::default();
        shortage.check_pods(node);
        let objects = cycle.cluster().objects();
        shortage
            .check_resources(request, node, |name| self.ignores(name) || is_delegated(name, node, objects));
        shortage.into_status()
    }

    fn filter_rows(&self, cycle: &Cycle<'_>, columns: ColumnView<'_>, passed: &mut [bool]) -> bool {
        let Some(PodRequest(request)) = cycle.get() else { return false };
        if !columns.are_exact() || request.scalars().next().is_some() {
            return false;
        }
        rows::clear_without_room(columns, request, passed);
        true
    }

    fn filter_row(&self, cycle: &Cycle<'_>) -> Option<RowFilter> {
        let PodRequest(request) = cycle.get()?;
        let is_by_numbers = request.scalars().next().is_none();
        is_by_numbers.then(|| -> RowFilter { Box::new(rows::has_room(request)) })
    }
}

impl PreScore for NodeResourcesFit {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        cycle.put(self.scored_requests(cycle.pod, cycle.context.fixes));
        Status::success()
    }
}

impl Score for NodeResourcesFit {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let computed;
        let ScoredRequests(requests) = match cycle.get() {
            Some(requests) => requests,
            None => {
                computed = self.scored_requests(cycle.pod, cycle.context.fixes);
                &computed
            }
        };
        let levels = self.strategy.resources.iter().zip(requests);
        Ok(self
            .strategy
            .score(levels.map(|(spec, request)| level(node, &spec.name, *request, Sums::NonZero))))
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }

    fn score_rows(&self, cycle: &Cycle<'_>, columns: ColumnView<'_>, scores: &mut [i32]) -> bool {
        let asked = |column, request| AskedColumn::of(columns, column, request, Sums::NonZero);
        let Some((asked, share)) = self.asked(cycle, asked) else { return false };
        rows::score_by_share(&asked, share, scores);
        true
    }

    fn score_row(&self, cycle: &Cycle<'_>) -> Option<RowScore> {
        let (asked, share) =
            self.asked(cycle, |column, request| AskedNumber::of(column, request, Sums::NonZero))?;
        Some(rows::share_score(&asked, share))
    }
}

/// What is asked for of each scored resource, with its weight.
type Asked<T> = [Option<(i64, T)>; COLUMNS_MAX];

impl NodeResourcesFit {
    /// What the pod is scored by, as `asked` has it; none if numbers are not enough to score it.
    fn asked<T: Copy>(
        &self,
        cycle: &Cycle<'_>,
        asked: impl Fn(Option<ColumnResource>, i64) -> Option<T>,
    ) -> Option<(Asked<T>, Share)> {
        let ScoredRequests(requests) = cycle.get()?;
        let share = match self.strategy.kind {
            ScoringStrategyType::LeastAllocated => Share::Free,
            ScoringStrategyType::MostAllocated => Share::Taken,
            _ => return None,
        };
        if requests.len() > COLUMNS_MAX {
            return None;
        }
        let mut all = [None; COLUMNS_MAX];
        let specs = self.strategy.resources.iter().zip(&self.columns);
        for ((place, (spec, column)), request) in all.iter_mut().zip(specs).zip(requests) {
            *place = Some((spec.weight, asked(*column, *request)?));
        }
        Some((all, share))
    }

    fn ignores(&self, name: &str) -> bool {
        let group = name.split('/').next().unwrap_or_default();
        resource::is_extended(name)
            && (self.args.ignored_resources.iter().any(|ignored| ignored == name)
                || self.args.ignored_resource_groups.iter().any(|ignored| ignored == group))
    }

    fn scored_requests(&self, pod: &Pod, fixes: Fixes) -> ScoredRequests {
        let amount = |name: &str| match name {
            resource::CPU if fixes.fit_score_pod_level_requests => pod.spec.requests.non_zero_milli_cpu,
            resource::MEMORY if fixes.fit_score_pod_level_requests => pod.spec.requests.non_zero_memory,
            name if fixes.fit_score_pod_level_requests => pod.spec.requests.list.amount(name),
            name => pod.spec.fit_score_requests.amount(name),
        };
        ScoredRequests(self.strategy.resources.iter().map(|spec| amount(&spec.name)).collect())
    }
}

/// What a node does not have enough of.
#[derive(Default)]
struct Shortage {
    reasons: Vec<Cow<'static, str>>,
    /// The pod requests more than the node has when it is empty.
    unresolvable: bool,
}

impl Shortage {
    fn check_pods(&mut self, node: NodeRef<'_>) {
        if node.pods().len() as i64 + 1 > node.allowed_pods() {
            self.reasons.push("Too many pods".into());
        }
    }

    fn check_resources(&mut self, request: &Resources, node: NodeRef<'_>, ignores: impl Fn(&str) -> bool) {
        let (has, taken) = (node.allocatable(), node.usage().requested());
        self.check("Insufficient cpu", request.milli_cpu, has.milli_cpu, taken.milli_cpu);
        self.check("Insufficient memory", request.memory, has.memory, taken.memory);
        self.check(
            "Insufficient ephemeral-storage",
            request.ephemeral_storage,
            has.ephemeral_storage,
            taken.ephemeral_storage,
        );
        for (name, amount) in request.scalars() {
            if !ignores(name) {
                let (has, taken) = (has.scalar(name).unwrap_or(0), taken.scalar(name).unwrap_or(0));
                self.check_with(|| format!("Insufficient {name}").into(), amount, has, taken);
            }
        }
    }

    fn check(&mut self, reason: &'static str, amount: i64, has: i64, taken: i64) {
        self.check_with(|| reason.into(), amount, has, taken);
    }

    fn check_with(&mut self, reason: impl FnOnce() -> Cow<'static, str>, amount: i64, has: i64, taken: i64) {
        if amount > 0 && amount > has.wrapping_sub(taken) {
            self.reasons.push(reason());
            self.unresolvable |= amount > has;
        }
    }

    fn into_status(self) -> Status {
        match (self.reasons.is_empty(), self.unresolvable) {
            (true, _) => Status::success(),
            (false, true) => Status::new(Code::UnschedulableAndUnresolvable, self.reasons),
            (false, false) => Status::new(Code::Unschedulable, self.reasons),
        }
    }
}

impl Enqueue for NodeResourcesFit {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![
            ClusterEvent::pod(Actions::DELETE.or(Actions::UPDATE_POD_SCALE_DOWN)),
            ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_ALLOCATABLE)),
            ClusterEvent::kind(DeviceClass::ID, Actions::ADD.or(Actions::UPDATE)),
        ]
    }

    fn hint(&self, context: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        Hint::queue_if(match change {
            Change::Pod { old: Some(deleted), new: None } => takes_room(deleted),
            Change::Pod { old: Some(old), new: Some(new) } => {
                new.uid == pod.uid || (new.node_name.is_some() && frees_what_is_wanted(pod, old, new))
            }
            Change::Node { old, new: Some(new) } => {
                let objects = context.cluster.objects();
                fits_when_empty(pod, *new, objects)
                    && old.is_none_or(|old| offers_more(pod, old, *new, objects))
            }
            Change::Object { old, new: Some(new) } => stands_for_what_is_wanted(pod, *old, new),
            _ => true,
        })
    }
}

fn frees_what_is_wanted(pod: &Pod, old: &Pod, new: &Pod) -> bool {
    let counts = |name: &str| {
        matches!(name, resource::CPU | resource::MEMORY | resource::EPHEMERAL_STORAGE)
            || resource::is_scalar(name)
    };
    let wanted = pod.requests().list.iter().filter(|(name, quantity)| counts(name) && !quantity.is_zero());
    let (old, new) = (&old.requests().list, &new.requests().list);
    { wanted }.any(|(name, _)| old.amount(name).max(0) > new.amount(name).max(0))
}

/// Whether devices stand in for a resource of which the node has none; DynamicResources sees to it then.
fn is_delegated(name: &str, node: NodeRef<'_>, objects: &Objects) -> bool {
    node.allocatable().scalar(name).unwrap_or(0) <= 0 && is_device_backed(name, objects)
}

/// Whether a DeviceClass that came or changed stands for a resource that the pod requests, and did not before.
fn stands_for_what_is_wanted(pod: &Pod, old: Option<&Object>, new: &Object) -> bool {
    let explicit = |class: &Object| class.get::<DeviceClass>()?.spec.extended_resource_name.clone();
    let requested = |resource: &str| pod.spec.requests.list.get(resource).is_some();
    let after = explicit(new);
    let (changed, implicit) = match old.map(explicit) {
        Some(before) => (before.unwrap_or_default() != after.clone().unwrap_or_default(), false),
        None => (true, requested(&format!("{IMPLICIT_PREFIX}{}", new.key.name))),
    };
    implicit || (changed && after.is_some_and(|name| requested(&name)))
}

fn fits_when_empty(pod: &Pod, node: NodeRef<'_>, objects: &Objects) -> bool {
    let (request, has) = (&pod.spec.requests.resources, node.allocatable());
    node.allowed_pods() >= 1
        && request.milli_cpu <= has.milli_cpu.max(0)
        && request.memory <= has.memory.max(0)
        && request.ephemeral_storage <= has.ephemeral_storage.max(0)
        && request.scalars().all(|(name, amount)| {
            amount <= has.scalar(name).unwrap_or(0).max(0) || is_delegated(name, node, objects)
        })
}

fn offers_more(pod: &Pod, old: NodeRef<'_>, new: NodeRef<'_>, objects: &Objects) -> bool {
    let request = &pod.spec.requests.resources;
    let (had, has) = (old.allocatable(), new.allocatable());
    let more = |amount: i64, had: i64, has: i64| amount > 0 && has > had;
    new.allowed_pods() > old.allowed_pods()
        || more(request.milli_cpu, had.milli_cpu, has.milli_cpu)
        || more(request.memory, had.memory, has.memory)
        || more(request.ephemeral_storage, had.ephemeral_storage, has.ephemeral_storage)
        || request.scalars().any(|(name, amount)| {
            more(amount, had.scalar(name).unwrap_or(0), has.scalar(name).unwrap_or(0))
                || (amount > 0 && is_delegated(name, new, objects))
        })
}

#[cfg(test)]
mod tests;
