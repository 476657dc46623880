//! Whether a member of a group is tried, waits at Permit, goes with the others, or gives its node back with them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use supercargo_framework::{
    Acts, Code, Context, Cycle, News, Nomination, Permit, PermitDecision, Plugin, PostFilter,
    PostFilterResult, PreFilter, PreFilterResult, Rehearsal, Rejections, Reserve, Status, StaysPending,
};
use supercargo_model::{NodeRef, Pod, Standing};

use super::Coscheduling;
use super::background;
use super::memory::GroupMemory;
use super::pod_group::{Group, PodGroup, label_of, object_of};
use super::resources::gap;
use super::status::plan_wake;

/// How long a group keeps its nodes though a member does not fit, until it is looked at whether another group is in its way.
const STUCK_PAUSE: Duration = Duration::from_secs(1);

impl PreFilter for Coscheduling {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        let Some(group) = Group::of_pod(&cycle.context, cycle.pod) else { return PreFilterResult::Skip };
        match refusal(&cycle.context, cycle.pod, &group) {
            None => PreFilterResult::AllNodes,
            Some(reason) => PreFilterResult::Reject(Status::unresolvable(reason)),
        }
    }

    fn background(&self, context: &Context<'_>, pod: &Pod) -> Option<String> {
        background::background(context, pod)
    }
}

/// Why a member is not tried at all, if it is not.
fn refusal(context: &Context<'_>, pod: &Pod, group: &Group<'_>) -> Option<String> {
    // Without an object it fails at Permit, as upstream.
    let object = group.object?;
    if let Some(reason) = obstacle(context, pod, group, object) {
        return Some(reason);
    }
    object.spec.min_resources.as_ref()?;
    let memory = GroupMemory::of(context);
    if memory.is_some_and(|memory| memory.permitted.hold_of(group, context.now)) {
        return None;
    }
    let known = memory.and_then(|memory| memory.known_gap(group, context.cluster)).map(str::to_owned);
    known.or_else(|| gap(context.cluster, group, object)).map(|gap| format!("resource gap: {gap}"))
}

/// What stands in the way of a group, whatever room there is.
fn obstacle(context: &Context<'_>, pod: &Pod, group: &Group<'_>, object: &PodGroup) -> Option<String> {
    if GroupMemory::of(context).is_some_and(|memory| memory.backed_off.hold_of(group, context.now)) {
        return Some(format!("podGroup {} failed recently", group.full_name()));
    }
    let (size, min_member, name) = (group.size(), object.spec.min_member, &pod.name);
    if size < min_member {
        return Some(format!(
            "pre-filter pod {name} cannot find enough sibling pods, current pods number: {size}, minMember of group: {min_member}"
        ));
    }
    (group.with_gates() > size - min_member)
        .then(|| format!("pre-filter pod {name} cannot proceed due to gated pods in the same PodGroup"))
}

/// What becomes of a group of which a member fits nowhere.
enum Verdict {
    /// The pod belongs to no group that there is.
    NoGroup,
    /// Enough members have nodes without it.
    Complete,
    /// So few are missing that the others keep their nodes.
    KeepsWaiting,
    /// All members give their nodes back.
    Rejected,
}

impl Coscheduling {
    fn verdict(&self, group: Option<&Group<'_>>) -> Verdict {
        let Some((group, object)) = group.and_then(|group| Some((group, group.object?))) else {
            return Verdict::NoGroup;
        };
        let (placed, min_member) = (group.placed(), object.spec.min_member);
        if placed >= min_member {
            Verdict::Complete
        } else if self.args.keeps_waiting(placed, min_member) {
            Verdict::KeepsWaiting
        } else {
            Verdict::Rejected
        }
    }

    /// Notes that the cluster is large enough for a group, so that it is not looked at again for each member.
    fn note_permitted(
        &self,
        context: &Context<'_>,
        group: &Group<'_>,
        object: &PodGroup,
        acts: &mut Acts<'_>,
    ) {
        let permitted = |memory: &GroupMemory| memory.permitted.hold_of(group, context.now);
        if object.spec.min_resources.is_none() || acts.recall::<GroupMemory>().is_some_and(permitted) {
            return;
        }
        let lasts = self.args.permitted_for();
        acts.memory::<GroupMemory>().permitted.begin(group.full_name(), context.now, lasts);
    }
}

impl PostFilter for Coscheduling {
    fn post_filter(&self, cycle: &Cycle<'_>, _: &dyn Rejections, _: &dyn Rehearsal) -> PostFilterResult {
        let group = Group::of_pod(&cycle.context, cycle.pod);
        let reason = match self.verdict(group.as_ref()) {
            Verdict::NoGroup => Some("can not find pod group".to_owned()),
            Verdict::Complete | Verdict::KeepsWaiting => None,
            Verdict::Rejected => Some(format!(
                "PodGroup {} gets rejected due to Pod {} is unschedulable even after PostFilter",
                group.map(|group| group.full_name()).unwrap_or_default(),
                cycle.pod.name
            )),
        };
        let status = Status::new(Code::Unschedulable, reason.map(Into::into));
        PostFilterResult { status, nomination: Nomination::Keep, victims: Vec::new() }
    }

    fn stays_pending(&self, context: &Context<'_>, decided: &StaysPending<'_>, acts: &mut Acts<'_>) {
        let Some(group) = Group::of_pod(context, decided.pod) else { return };
        let is_awaited = awaits_room(context, decided);
        let passed_pre_filter = !decided.rejected_by.contains(Self::NAME);
        match group.object {
            Some(object) if passed_pre_filter => self.note_permitted(context, &group, object, acts),
            Some(object) => note_gap(context, decided.pod, &group, object, acts),
            None => {}
        }
        match self.verdict(Some(&group)) {
            Verdict::NoGroup | Verdict::Complete => {}
            _ if is_awaited => {}
            Verdict::KeepsWaiting => self.note_stuck(context, &group, acts),
            Verdict::Rejected => {
                let min_member = group.object.map_or(0, |object| object.spec.min_member);
                let backoff = self.args.backoff().filter(|_| group.size() >= min_member);
                let memory = acts.memory::<GroupMemory>();
                // Only those that give nodes back make each other try again.
                let gives_back = group.count(Standing::AtPermit) > 0;
                let pause = if gives_back { memory.note_failure(&group, context.now) } else { None };
                if let Some(backoff) = backoff.or(pause) {
                    let backed_off = &mut memory.backed_off;
                    // As upstream, a group that backs off already does so no longer.
                    if !backed_off.hold_of(&group, context.now) {
                        let end = backed_off.begin(group.full_name(), context.now, backoff);
                        plan_wake(end, acts);
                    }
                }
                take_back(context, &group, "optimistic rejection in PostFilter", acts);
            }
        }
    }
}

/// Whether room is being made for a pod, so that the others of its group wait for that. A pod whose victims are on their way out keeps its
/// nomination, however often it is tried meanwhile.
fn awaits_room(context: &Context<'_>, decided: &StaysPending<'_>) -> bool {
    match decided.nomination {
        Nomination::Node(_) => true,
        Nomination::Clear => false,
        Nomination::Keep => {
            let node = decided.pod.nominated_node_name().and_then(|name| context.cluster.row_of(name));
            node.is_some_and(|row| context.cluster.node(row).pods().iter().any(|pod| pod.is_terminating()))
        }
    }
}

impl Coscheduling {
    /// Notes that a group keeps its nodes though a member does not fit: two such groups may be in each other's way.
    fn note_stuck(&self, context: &Context<'_>, group: &Group<'_>, acts: &mut Acts<'_>) {
        if self.args.half_admitted_groups_yield && group.count(Standing::AtPermit) > 0 {
            acts.memory::<GroupMemory>().stuck.insert(group.full_name(), ());
            plan_wake(context.now.after(STUCK_PAUSE), acts);
        }
    }
}

/// Notes what the cluster lacks for a group, so that it is not worked out again for each member.
fn note_gap(context: &Context<'_>, pod: &Pod, group: &Group<'_>, object: &PodGroup, acts: &mut Acts<'_>) {
    let cluster = context.cluster;
    let knows = |memory: &GroupMemory| memory.known_gap(group, cluster).is_some();
    if object.spec.min_resources.is_none()
        || acts.recall::<GroupMemory>().is_some_and(knows)
        || obstacle(context, pod, group, object).is_some()
    {
        return;
    }
    if let Some(gap) = gap(cluster, group, object) {
        acts.memory::<GroupMemory>().note_gap(group, cluster, gap);
    }
}

/// Takes the nodes of all members back that wait at Permit: the group has failed.
pub(super) fn take_back(
    context: &Context<'_>,
    group: &Group<'_>,
    reason: impl Into<Cow<'static, str>>,
    acts: &mut Acts<'_>,
) {
    let waiting: Vec<Arc<str>> = group.at_permit().map(|member| member.pod.uid.clone()).collect();
    let (memory, name) = (acts.memory::<GroupMemory>(), group.full_name());
    memory.permitted.end(&name);
    memory.stuck.remove(&name);
    memory.failed.insert(name, context.now);
    for uid in &waiting {
        memory.taken_back.insert((**uid).to_owned(), ());
    }
    let status = Status::unschedulable(reason);
    for uid in waiting {
        acts.reject(&uid, status.clone());
    }
}

impl Reserve for Coscheduling {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        if let Some(memory) = acts.recall::<GroupMemory>()
            && !memory.taken_back.is_empty()
        {
            acts.memory::<GroupMemory>().taken_back.remove(&(*cycle.pod.uid).to_owned());
        }
        // Most groups do not say what they need.
        let (context, pod) = (&cycle.context, cycle.pod);
        let object = label_of(pod).and_then(|(_, name)| object_of(context, &pod.namespace, name));
        if let Some(object) = object.filter(|object| object.spec.min_resources.is_some())
            && let Some(group) = Group::of_pod(context, pod)
        {
            self.note_permitted(context, &group, object, acts);
        }
        Status::success()
    }

    /// A member loses its node: so do all that wait with it. One that somebody else has bound meanwhile has a node still.
    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        let Some(group) = Group::of_pod(&cycle.context, cycle.pod) else { return };
        // Who is one of many that lose their nodes together has nothing to ask for that was not asked for.
        let uid = (*cycle.pod.uid).to_owned();
        let is_asked =
            acts.recall::<GroupMemory>().is_some_and(|memory| memory.taken_back.contains_key(&uid));
        if is_asked {
            acts.memory::<GroupMemory>().taken_back.remove(&uid);
        } else if group.object.is_some() && !is_bound(&group, cycle.pod) {
            take_back(&cycle.context, &group, "rejection in Unreserve", acts);
        }
    }
}

fn is_bound(group: &Group<'_>, pod: &Pod) -> bool {
    group.members().any(|member| member.pod.uid == pod.uid && member.standing == Standing::Bound)
}

impl Permit for Coscheduling {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let (pod, context) = (cycle.pod, &cycle.context);
        let Some(group) = Group::of_pod(context, pod) else { return PermitDecision::Allow };
        let Some(object) = group.object else {
            return PermitDecision::Reject(Status::unschedulable("PodGroup not found"));
        };
        // The pod itself has a node now, too.
        let placed = group.placed() + 1;
        if placed >= object.spec.min_member {
            if acts.recall::<GroupMemory>().is_some_and(|memory| memory.knows_failure_of(&group)) {
                acts.memory::<GroupMemory>().succeeded(&group);
            }
            for member in group.at_permit().filter(|member| member.pod.uid != pod.uid) {
                acts.allow(&member.pod.uid);
            }
            return PermitDecision::Allow;
        }
        // Upstream the others stall if one has a node already.
        let is_first =
            if context.fixes.completed_members { group.count(Standing::AtPermit) == 0 } else { placed == 1 };
        if is_first {
            // The others are tried now, so that nobody waits for one that waits for its turn.
            let others = group.members().filter(|member| member.pod.uid != pod.uid);
            let unfinished = others.filter(|member| member.standing != Standing::Finished);
            unfinished.for_each(|member| acts.activate(&member.pod.uid));
        }
        let wait = self.args.permit_wait(object.spec.schedule_timeout_seconds);
        PermitDecision::wait_until(context.now.after(wait))
    }

    /// A member whose time is over goes all the same if its group is complete: more were to be let go than a step may do.
    fn reconsider(
        &self,
        cycle: &mut Cycle<'_>,
        _: &mut Acts<'_>,
        _: NodeRef<'_>,
        _: &News<'_>,
    ) -> Option<PermitDecision> {
        let group = Group::of_pod(&cycle.context, cycle.pod)?;
        (group.placed() >= group.object?.spec.min_member).then_some(PermitDecision::Allow)
    }
}
