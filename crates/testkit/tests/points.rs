//! A plugin can be tried out at every point, and one that implements a point without listing it is found.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::preemption::{PreemptionRules, preempt};
use supercargo_framework::{
    Actions, Acts, Bind, Change, ClusterEvent, Conclusion, Context, Cycle, Effect, Enqueue, Extensions,
    Filter, Memory, News, NoArgs, NodeField, Observe, Permit, PermitDecision, Plan, Plugin, PodField,
    PostBind, PostFilter, PostFilterResult, PreBind, PreEnqueue, PreFilter, PreFilterResult, PreScore,
    QueueSort, QueuedPod, Reads, Rehearsal, Rejections, Reserve, Score, Status, Step, Writes,
};
use supercargo_model::kinds::{PodDisruptionBudget, Service};
use supercargo_model::{Kind, LabelLookup, NodeRef, ObjectKey, Pod, Row};
use supercargo_testkit::{
    added, check_points, check_reads, cluster, deleted, node, pod, trial, unlisted_points,
};

/// Has something to say everywhere: pods of a team wait at Permit until there are two of them.
struct Team;

/// The members that have a node.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Members(BTreeSet<std::sync::Arc<str>>);

impl Memory for Members {
    const NAME: &'static str = "Members";
}

impl Plugin for Team {
    const NAME: &'static str = "Team";
    type Args = NoArgs;
    fn new(_: NoArgs) -> Self {
        Team
    }
    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        let early = points.pre_enqueue().queue_sort().pre_filter().filter().post_filter().pre_score().score();
        early.reserve().permit().pre_bind().bind().post_bind().enqueue().observe().remembers::<Members>()
    }
    fn reads(&self) -> Reads {
        let reads = Reads::nothing().pod(&[PodField::Labels, PodField::Priority, PodField::PreemptionPolicy]);
        let reads = reads.pod(&[PodField::Status]).node(&[NodeField::Name, NodeField::Pods]);
        reads.time().kind::<PodDisruptionBudget>()
    }
    fn writes(&self) -> Writes {
        Writes::nothing().bindings().evictions()
    }
}

impl Enqueue for Team {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::ADD)]
    }
}

impl PreEnqueue for Team {
    fn pre_enqueue(&self, _: &Context<'_>, pod: &Pod) -> Status {
        match pod.labels.label("team") {
            Some("none") => Status::unresolvable("there is no such team"),
            _ => Status::success(),
        }
    }
}

impl QueueSort for Team {
    fn less(&self, _: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        (-a.pod.priority(), a.queued_at) < (-b.pod.priority(), b.queued_at)
    }
}

impl PreFilter for Team {
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult {
        match cycle.pod.labels.label("team") {
            None => PreFilterResult::Skip,
            Some("home") => PreFilterResult::OnlyNodes(BTreeSet::from(["n1".into(), "n2".into()])),
            Some("lost") => PreFilterResult::Reject(Status::unschedulable("lost")),
            Some(_) => PreFilterResult::AllNodes,
        }
    }
}

impl Filter for Team {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }
}

impl PreemptionRules for Team {}

impl PostFilter for Team {
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult {
        preempt(self, cycle, rejections, rehearsal)
    }
}

impl PreScore for Team {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        if cycle.pod.labels.label("team").is_some() { Status::success() } else { Status::skip() }
    }
}

impl Score for Team {
    fn score(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok(node.pods().len() as i64)
    }
}

impl Reserve for Team {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) -> Status {
        if node.pods().len() > 1 {
            return Status::unschedulable("somebody was faster");
        }
        acts.memory::<Members>().0.insert(cycle.pod.uid.clone());
        acts.count("members", &[("node", node.name())]);
        Status::success()
    }
    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.memory::<Members>().0.remove(&cycle.pod.uid);
        acts.reject(&"other".into(), Status::unschedulable("the team is not complete"));
    }
}

impl Permit for Team {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let others: Vec<_> =
            acts.memory::<Members>().0.iter().filter(|uid| **uid != cycle.pod.uid).cloned().collect();
        if others.is_empty() {
            acts.activate(&"sibling".into());
            let until = cycle.context.now.after(Duration::from_secs(60));
            return PermitDecision::Wait { until, events: vec![ClusterEvent::pod(Actions::ADD)] };
        }
        others.iter().for_each(|uid| acts.allow(uid));
        PermitDecision::Allow
    }
    fn reconsider(
        &self,
        _: &mut Cycle<'_>,
        _: &mut Acts<'_>,
        _: NodeRef<'_>,
        news: &News<'_>,
    ) -> Option<PermitDecision> {
        matches!(news, News::TimedOut).then(|| PermitDecision::Reject(Status::unschedulable("too late")))
    }
}

fn patch(name: &str) -> Effect {
    let key = ObjectKey { namespace: "default".into(), name: name.into() };
    Effect::Patch { kind: Service::ID, key, subresource: None, patch: serde_json::json!({}) }
}

impl PreBind for Team {
    fn plan(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Vec<Plan> {
        let key = ObjectKey { namespace: "default".into(), name: "team".into() };
        vec![Plan { kind: Service::ID, key, text: format!("tell the team of {}", node.name()) }]
    }
    fn pre_bind(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        let deadline = Some(cycle.context.now.after(Duration::from_secs(5)));
        let key = ObjectKey { namespace: "default".into(), name: "team".into() };
        let events = vec![ClusterEvent::kind(Service::ID, Actions::UPDATE).of(key)];
        Step::Wait { effects: vec![patch("team")], events, deadline }
    }
}

impl Bind for Team {
    fn bind(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>) -> Step {
        Step::perform(Effect::Bind { pod: cycle.pod.clone(), node: node.name().clone() })
    }
}

impl PostBind for Team {
    fn post_bind(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.wake_at(cycle.context.now.after(Duration::from_secs(10)));
    }
}

impl Observe for Team {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::ADD)]
    }
    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        acts.wake_at(context.now.after(Duration::from_secs(1)));
    }
    fn observed(&self, _: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        if let Change::Pod { new: Some(pod), .. } = change {
            acts.activate(&pod.uid);
        }
    }
    fn woken(&self, _: &Context<'_>, acts: &mut Acts<'_>) {
        acts.order(patch("status"));
    }
    fn answered(&self, context: &Context<'_>, _: &Effect, conclusion: &Conclusion, acts: &mut Acts<'_>) {
        if !conclusion.is_done() {
            acts.wake_at(context.now.after(Duration::from_secs(30)));
        }
    }
}

const REFUSED: &str = ", which is refused: it is not among what the plugin writes";

#[test]
fn points_before_a_node_is_looked_at() {
    let (team, mut cluster) = (trial::<Team>(), cluster().with(node("n1")));
    assert_eq!(team.pre_enqueue(&mut cluster, pod("a")), "ok");
    let said = team.pre_enqueue(&mut cluster, pod("a").label("team", "none"));
    assert_eq!(said, "unresolvable: there is no such team");

    let queue = [pod("first"), pod("high").priority(5), pod("second"), pod("higher").priority(7)];
    assert_eq!(team.order(&mut cluster, queue), ["higher", "high", "first", "second"]);

    for (label, expected) in
        [("home", "only n1, n2"), ("lost", "unschedulable: lost"), ("other", "all nodes")]
    {
        assert_eq!(team.pre_filter(&mut cluster, pod("a").label("team", label)), expected);
    }
    assert_eq!(team.pre_filter(&mut cluster, pod("a")), "skip");
    assert_eq!(team.pre_score(&mut cluster, pod("a")), "skip");
    assert_eq!(team.pre_score(&mut cluster, pod("a").label("team", "other")), "ok");
}

#[test]
fn post_filter_says_who_has_to_go() {
    let on = |name: &str, node: &str, cpu: &str| pod(name).on(node).cpu(cpu);
    let mut cluster = cluster().with(node("n1")).with(node("n2")).with(on("big", "n1", "3"));
    cluster.put(on("small", "n1", "1"));
    cluster.put(on("dear", "n2", "3").priority(100));
    let wanting = |cpu: &str| pod("a").label("team", "x").priority(10).cpu(cpu);
    let team = trial::<Team>();
    let said = |cluster: &mut _, cpu| team.post_filter(cluster, wanting(cpu));
    assert_eq!(said(&mut cluster, "1"), ["not asked: n2 is feasible"]);
    assert_eq!(said(&mut cluster, "2"), ["ok", "nominated: n1", "evicts: big"]);
    assert_eq!(said(&mut cluster, "4"), ["ok", "nominated: n1", "evicts: big", "evicts: small"]);
    let nobody = said(&mut cluster, "5");
    assert!(nobody[0].starts_with("unschedulable: ") && nobody[1..] == ["no longer nominated"], "{nobody:?}");
}

#[test]
fn points_on_the_way_to_a_node() {
    let (team, mut cluster) = (trial::<Team>(), cluster().with(node("n1")));
    let mut first = team.attempt(&mut cluster, pod("a"), "n1");
    assert_eq!(first.reserve(), ["ok", "count: members{node=n1}"]);
    assert_eq!(first.permit(), ["waits until 1970-01-01T01:01:00Z, or for Pod/Add", "activate: sibling"]);
    assert_eq!(first.reconsider(&News::Succeeded { objects: &[] }), ["nothing new"]);
    assert_eq!(first.reconsider(&News::TimedOut), ["unschedulable: too late"]);

    // What the first one remembers is still there.
    let mut second = team.attempt(&mut cluster, pod("b"), "n1");
    second.reserve();
    assert_eq!(second.permit(), ["ok", "allow: a"]);
    assert_eq!(second.plan(), ["tell the team of n1"]);
    let order = format!("order: patch services default/team{REFUSED}");
    assert_eq!(
        second.pre_bind(),
        [order.as_str(), "waits until 1970-01-01T01:00:05Z, or for Service/Update default/team"]
    );
    assert_eq!(second.resume_pre_bind(&News::Succeeded { objects: &[] }), ["ok"]);
    assert_eq!(second.resume_pre_bind(&News::TimedOut), ["error: timed out"]);
    assert_eq!(second.bind(), ["order: bind pod default/b to node n1", "waits"]);
    assert_eq!(second.resume_bind(&News::Failed { error: "no", code: None }), ["error: no"]);
    assert_eq!(second.post_bind(), ["wake: 1970-01-01T01:00:10Z"]);
    assert_eq!(second.unreserve(), ["reject: other: unschedulable: the team is not complete"]);
    second.cluster().put(pod("x").on("n1"));
    second.cluster().put(pod("y").on("n1"));
    assert_eq!(second.reserve(), ["unschedulable: somebody was faster"]);
}

#[test]
fn observe_is_told_what_it_asked_for() {
    let (team, mut cluster) = (trial::<Team>(), cluster());
    assert_eq!(team.started(&mut cluster), ["wake: 1970-01-01T01:00:01Z"]);
    assert_eq!(team.observed(&mut cluster, &added(pod("a"))), ["activate: a"]);
    assert_eq!(team.observed(&mut cluster, &deleted(pod("a"))), ["not told"]);
    assert_eq!(team.finished(&mut cluster, pod("a"), true), ["not told"]);
    let order = format!("order: patch services default/status{REFUSED}");
    assert_eq!(team.woken(&mut cluster), [order]);
    assert_eq!(team.answered(&mut cluster, &patch("status"), &Conclusion::Done), [""; 0]);
    let refused = Conclusion::not_done("no");
    let said = team.answered(&mut cluster, &patch("status"), &refused);
    assert_eq!(said, ["wake: 1970-01-01T01:00:30Z"]);
}

#[test]
fn a_plugin_that_is_everywhere_is_what_it_declares() {
    check_points!(Team);
    check_reads::<Team>();
}

/// Implements more than it lists.
struct Absent;

impl Plugin for Absent {
    const NAME: &'static str = "Absent";
    type Args = NoArgs;
    fn new(_: NoArgs) -> Self {
        Absent
    }
    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }
}

impl Filter for Absent {
    fn filter(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Status {
        Status::success()
    }
}

impl Score for Absent {
    fn score(&self, _: &Cycle<'_>, _: NodeRef<'_>) -> Result<i64, Status> {
        Ok(0)
    }
}

impl Enqueue for Absent {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

impl Observe for Absent {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

#[test]
fn points_that_are_implemented_and_not_listed_are_found() {
    assert_eq!(unlisted_points!(Absent), [".score()", ".enqueue()", ".observe()"]);
    assert_eq!(unlisted_points!(Team), [""; 0]);
}

#[test]
#[should_panic(expected = "Absent implements these and does not list them in its `extensions`: .score()")]
fn a_check_of_points_fails_with_what_to_list() {
    check_points!(Absent);
}

#[test]
#[should_panic(expected = "Absent does not list `.permit()` in its `extensions`")]
fn a_point_that_is_not_listed_cannot_be_tried_out() {
    trial::<Absent>().attempt(&mut cluster().with(node("n")), pod("a"), "n").permit();
}
