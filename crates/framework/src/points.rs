//! The extension points: one trait each, in the order in which a pod meets them.
//!
//! A plugin implements the ones it has something to say at. Methods do no I/O, read no clock and keep nothing in
//! the plugin itself; what they need is in the [`Context`], what they work out goes into the [`Cycle`], and what
//! they want done in the world they return as an [`Effect`].

use std::any::Any;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use supercargo_model::cluster::ObjectChange;
use supercargo_model::{KindId, NodeRef, ObjectKey, Pod, Row, Snapshot, Timestamp};

use crate::acts::Acts;
use crate::columns::{ColumnView, NodeNumbers};
use crate::counting::{CountedFilter, CountedScore};
use crate::cycle::{Context, Cycle};
use crate::diagnosis::Rejections;
use crate::effects::{News, Step};
use crate::events::ClusterEvent;
use crate::extender::NodeVictims;
use crate::likeness::{Likeness, Touched};
use crate::order::OrderChanges;
use crate::preemption::{self, PreemptionRules};
use crate::status::Status;

/// The highest score a node can get from one plugin; the lowest is 0.
pub const MAX_NODE_SCORE: i64 = 100;

/// Decides whether a pod may enter the queue at all.
#[diagnostic::on_unimplemented(
    message = "`{Self}` lists `.pre_enqueue()` but does not implement `PreEnqueue`"
)]
pub trait PreEnqueue: Send + Sync {
    /// Anything but success holds the pod back until an event that the plugin reacts to.
    fn pre_enqueue(&self, context: &Context<'_>, pod: &Pod) -> Status;

    /// Whether a pod that the plugin holds back gets an event and a condition that say so. As upstream, gates are silent:
    /// the writer of a gate knows of it.
    fn is_told(&self) -> bool {
        false
    }
}

/// Decides which of two waiting pods is tried first. A profile has exactly one such plugin.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.queue_sort()` but does not implement `QueueSort`")]
pub trait QueueSort: Send + Sync {
    /// Whether `a` goes before `b`.
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool;

    /// What pods are sorted by, where two numbers can say it: a pod goes before those of higher rank, just as
    /// [`less`](QueueSort::less) has it. The queue keeps ranks, and need not look at the pods to find the first of many.
    /// A plugin has a rank for every pod, or for none.
    fn rank(&self, context: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        let _ = (context, pod);
        None
    }

    /// What decides between pods of one [`rank`](QueueSort::rank), if anything does but which of them came first. It looks at nothing but
    /// the two pods, and [`less`](QueueSort::less) has it the same way.
    fn tie_break(&self) -> Option<TieBreak> {
        None
    }

    /// When the order becomes another one though the two pods have not changed; if the plugin does not say, never.
    fn changes(&self) -> OrderChanges {
        OrderChanges::never()
    }

    /// What the comparison of the plugin that this one takes the place of says, where that is no order, so that the queue cannot go by
    /// it. Only judges of verdicts ask.
    fn less_upstream(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        self.less(context, a, b)
    }
}

/// The rank of a waiting pod: the first number counts, then the second.
pub type QueueRank = [i64; 2];

/// The order of two waiting pods of one rank.
pub type TieBreak = fn(&QueuedPod, &QueuedPod) -> Ordering;

/// A pod that waits to be scheduled.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    /// The pod.
    pub pod: Arc<Pod>,
    /// When it entered the queue, or came back to it.
    pub queued_at: Timestamp,
    /// When it was first ready to be tried.
    pub first_attempt_at: Option<Timestamp>,
    /// How often it was tried.
    pub attempts: u32,
}

/// Looks at the pod and the whole cluster once, before nodes are looked at one by one.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.pre_filter()` but does not implement `PreFilter`")]
pub trait PreFilter: Send + Sync {
    /// Works out what [`Filter`] needs, narrows the nodes, or rejects the pod outright.
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> PreFilterResult;

    /// The same for plugins whose [`Reads::resolved`](crate::Reads::resolved) says so: also adds to `likeness` what the answers about
    /// nodes depend on, as things are now. It is asked with every decision; pods for which it adds the same get the same answers
    /// about the same node, also later, from what it leaves in the cycle for any one of them.
    ///
    /// An error says why this pod has to be decided by asking every plugin about every node.
    fn resolve(
        &self,
        cycle: &mut Cycle<'_>,
        likeness: &mut Likeness,
    ) -> Result<PreFilterResult, &'static str> {
        let _ = (cycle, likeness);
        Err("it does not say what its pods come to")
    }

    /// About which nodes a plugin whose [`Reads::resolved`](crate::Reads::resolved) says so may say something else to a pod that still
    /// comes to the same, after an object of a kind that it reads has come, gone or changed. Objects that are read
    /// [of nodes](crate::Reads::of_node) are not asked about.
    fn touched(&self, cluster: &Snapshot, change: &ObjectChange) -> Touched {
        let _ = (cluster, change);
        Touched::All
    }

    /// What people should know who ask about a pod that the plugin rejects here, beyond the reason: who lacks how much of what, who has it;
    /// or about one that it lets pass, but will have wait at Permit, and for whom. Only those who explain ask.
    fn background(&self, context: &Context<'_>, pod: &Pod) -> Option<String> {
        let _ = (context, pod);
        None
    }

    /// Brings the cycle's state up to date as if `pod` ran on `node`.
    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        let _ = (cycle, pod, node);
        Status::success()
    }

    /// Brings the cycle's state up to date as if `pod` no longer ran on `node`.
    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        let _ = (cycle, pod, node);
        Status::success()
    }
}

/// The answer of [`PreFilter::pre_filter`].
#[derive(Clone, Debug)]
pub enum PreFilterResult {
    /// Look at all nodes.
    AllNodes,
    /// Look at no nodes but these.
    OnlyNodes(BTreeSet<Box<str>>),
    /// Do not call the plugin's Filter in this cycle.
    Skip,
    /// The pod fits nowhere, or something broke.
    Reject(Status),
}

/// Decides whether the pod can run on a node.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.filter()` but does not implement `Filter`")]
pub trait Filter: Send + Sync {
    /// Success, or why not.
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status;

    /// What people should know who ask why the plugin rejects a pod on this node, beyond the reason: how much is left of what. Only those who
    /// explain ask, after the plugin has rejected it.
    fn background(&self, context: &Context<'_>, pod: &Pod, node: NodeRef<'_>) -> Option<String> {
        let _ = (context, pod, node);
        None
    }

    /// The same answers from counts of pods, if that is all they depend on. PreFilter need not have run.
    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedFilter>> {
        let _ = cycle;
        None
    }

    /// The same answers for many nodes at once: clears `passed` where the node is rejected. False if that cannot be done
    /// for this pod, or not with these columns.
    fn filter_rows(&self, cycle: &Cycle<'_>, columns: ColumnView<'_>, passed: &mut [bool]) -> bool {
        let _ = (cycle, columns, passed);
        false
    }

    /// The same answers for one node after the other, by its numbers alone, if they depend on nothing else. Asked for
    /// anew when something changes that the plugin reads of other objects, or of all nodes together.
    fn filter_row(&self, cycle: &Cycle<'_>) -> Option<RowFilter> {
        let _ = cycle;
        None
    }
}

/// Whether a node passes, by its numbers. It is called only where these are exact ([`NodeNumbers::are_exact`]).
pub type RowFilter = Box<dyn Fn(&NodeNumbers) -> bool + Send + Sync>;

/// The score of a node, by its numbers. It is called only where these are exact.
pub type RowScore = Box<dyn Fn(&NodeNumbers) -> i32 + Send + Sync>;

/// Tries to make the pod fit when no node is feasible, as preemption does.
#[diagnostic::on_unimplemented(
    message = "`{Self}` lists `.post_filter()` but does not implement `PostFilter`"
)]
pub trait PostFilter: Send + Sync {
    /// `Unschedulable` lets the next plugin try; success and `UnschedulableAndUnresolvable` end the search.
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> PostFilterResult;

    /// The rules by which it preempts, if it calls [`preemption::preempt`]: then extenders have their say without more.
    fn preemption(&self) -> Option<&dyn PreemptionRules> {
        None
    }

    /// The victims on each of the nodes that [`PostFilter::post_filter`] has chosen from, where extenders have a say in that.
    fn candidates(
        &self,
        cycle: &Cycle<'_>,
        rejections: &dyn Rejections,
        rehearsal: &dyn Rehearsal,
    ) -> BTreeMap<Arc<str>, NodeVictims> {
        let of_rules = |rules| preemption::candidates(rules, cycle, rejections, rehearsal);
        self.preemption().map(of_rules).unwrap_or_default()
    }

    /// The pod fits nowhere, and that was decided for good: [`PostFilter::post_filter`] may be asked twice, by whoever checks or explains,
    /// but this is called once for each decision that counts. All PostFilter plugins of the profile hear of it.
    fn stays_pending(&self, context: &Context<'_>, decided: &StaysPending<'_>, acts: &mut Acts<'_>) {
        let _ = (context, decided, acts);
    }

    /// Chooses from the candidates that extenders have left.
    fn choose(&self, cycle: &Cycle<'_>, candidates: BTreeMap<Arc<str>, NodeVictims>) -> PostFilterResult {
        self.preemption().map(|rules| preemption::choose(rules, cycle, candidates)).unwrap_or_default()
    }
}

/// The answer of [`PostFilter::post_filter`].
#[derive(Clone, Debug, Default)]
pub struct PostFilterResult {
    /// How it went.
    pub status: Status,
    /// What becomes of the pod's nominated node.
    pub nomination: Nomination,
    /// The pods that have to go, those that are leaving already among them.
    pub victims: Vec<Arc<Pod>>,
}

/// What was decided for a pod that fits nowhere.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StaysPending<'a> {
    /// The pod.
    pub pod: &'a Arc<Pod>,
    /// Why, in words for people.
    pub message: &'a str,
    /// The plugins that rejected it.
    pub rejected_by: &'a BTreeSet<&'static str>,
    /// What becomes of its nominated node.
    pub nomination: &'a Nomination,
    /// The pods that are evicted to make room for it.
    pub victims: &'a [Arc<Pod>],
}

impl<'a> StaysPending<'a> {
    /// What was decided for a pod. Only a scheduler and tests say so.
    pub fn new(
        pod: &'a Arc<Pod>,
        message: &'a str,
        rejected_by: &'a BTreeSet<&'static str>,
        nomination: &'a Nomination,
        victims: &'a [Arc<Pod>],
    ) -> Self {
        StaysPending { pod, message, rejected_by, nomination, victims }
    }
}

/// What becomes of a pod's nominated node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nomination {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is taken back.
    Clear,
    /// The pod is to run there once there is room.
    Node(Arc<str>),
}

/// Tries out what would be if other pods ran on a node.
pub trait Rehearsal {
    /// Starts with a node as it is.
    fn node(&self, row: Row) -> Box<dyn NodeRehearsal + '_>;

    /// What this plugin found out about a node for an earlier pod that the filters cannot tell from this one, if the node has
    /// not changed since. Whatever else the finding depends on, the plugin has to check itself.
    fn recall(&self, row: Row) -> Option<Arc<dyn Any + Send + Sync>> {
        let _ = row;
        None
    }

    /// Keeps what was found out about a node.
    fn remember(&self, row: Row, finding: Arc<dyn Any + Send + Sync>) {
        let _ = (row, finding);
    }
}

/// A node on which pods can be removed and put back, without any of it being real.
pub trait NodeRehearsal {
    /// The node as it would be.
    fn as_node(&self) -> NodeRef<'_>;
    /// The cycle as it would be: what PreFilter plugins keep in it, after those pods came and went.
    fn cycle(&self) -> &Cycle<'_>;
    /// Puts a pod on the node.
    fn add_pod(&mut self, pod: &Arc<Pod>) -> Status;
    /// Takes a pod off the node.
    fn remove_pod(&mut self, pod: &Arc<Pod>) -> Status;
    /// Whether the pod of the cycle would pass all filters, nominated pods considered.
    fn filter(&self) -> Status;
}

/// Looks at the feasible nodes together once, before they are scored one by one.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.pre_score()` but does not implement `PreScore`")]
pub trait PreScore: Send + Sync {
    /// Works out what [`Score`] needs; `Skip` leaves the plugin's Score out of this cycle.
    fn pre_score(&self, cycle: &mut Cycle<'_>, feasible: &[Row]) -> Status;
}

/// Says how good a feasible node is.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.score()` but does not implement `Score`")]
pub trait Score: Send + Sync {
    /// The node's score; any number, if [`Score::normalize`] brings it into 0 to [`MAX_NODE_SCORE`].
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status>;

    /// Brings the scores of all feasible nodes into the range from 0 to [`MAX_NODE_SCORE`].
    fn normalize(&self, cycle: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        let _ = (cycle, scores);
        Status::success()
    }

    /// What [`Score::normalize`] does, as far as it matters for keeping scores. Where they are kept, PreScore has run before
    /// anybody knew which nodes are feasible, and was given none.
    fn normalization(&self) -> Normalization {
        Normalization::Unknown
    }

    /// The final scores from counts of pods, if that is all they depend on. PreScore need not have run.
    fn counted(&self, cycle: &Cycle<'_>) -> Option<Arc<dyn CountedScore>> {
        let _ = cycle;
        None
    }

    /// What [`Score::score`] gives many nodes. False if that cannot be done for this pod, or not with these columns.
    fn score_rows(&self, cycle: &Cycle<'_>, columns: ColumnView<'_>, scores: &mut [i32]) -> bool {
        let _ = (cycle, columns, scores);
        false
    }

    /// What [`Score::score`] gives one node after the other, by its numbers alone, if that depends on nothing else; as
    /// [`Filter::filter_row`].
    fn score_row(&self, cycle: &Cycle<'_>) -> Option<RowScore> {
        let _ = cycle;
        None
    }
}

/// How scores become final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalization {
    /// The plugin does not say. All feasible nodes are scored each time: always right, only slower.
    #[default]
    Unknown,
    /// They are final as they are.
    None,
    /// A final score depends on the node's own score and on which scores occur, not on how often or where. For few different scores.
    ByValues,
    /// A final score depends on the node's own score, the lowest and the highest. For any number of different scores.
    ByRange,
    /// The same, where nodes with this score stand beside the others: it is neither the lowest nor the highest. For plugins that have
    /// nothing to say about some nodes.
    ByRangeBeside(i64),
}

/// A node and its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeScore {
    /// The node.
    pub row: Row,
    /// How good it is.
    pub score: i64,
}

/// Takes note that a node was chosen, before the pod is bound, so that the next cycle knows.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.reserve()` but does not implement `Reserve`")]
pub trait Reserve: Send + Sync {
    /// Whether there is anything to set aside for such a pod. If not, and no other plugin has something to do before the pod is
    /// bound, neither method is called, and the pod is on its way at once.
    fn reserves(&self, pod: &Pod) -> bool {
        let _ = pod;
        true
    }

    /// Sets aside what the pod will use.
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) -> Status;

    /// Gives it back: the pod will not run there after all. May be called without [`Reserve::reserve`] before.
    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>);
}

/// Lets the pod go ahead to its node, or makes it wait.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.permit()` but does not implement `Permit`")]
pub trait Permit: Send + Sync {
    /// The word on this pod. `acts` have one for others that wait: a gang that is complete lets all its members go.
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>) -> PermitDecision;

    /// Another word on a pod that waits for this plugin: something happened that it waits for, or its time is over. None if
    /// there is nothing new to say: then the pod waits on, or is rejected if its time is over, as upstream does.
    fn reconsider(
        &self,
        cycle: &mut Cycle<'_>,
        acts: &mut Acts<'_>,
        node: NodeRef<'_>,
        news: &News<'_>,
    ) -> Option<PermitDecision> {
        let _ = (cycle, acts, node, news);
        None
    }
}

/// Whether a pod may go to its node.
#[derive(Clone, Debug)]
pub enum PermitDecision {
    /// It may.
    Allow,
    /// Not yet: it waits until [`Acts::allow`] or [`Permit::reconsider`] lets it go.
    Wait {
        /// When its time is over. Nobody waits for more than a quarter of an hour.
        until: Timestamp,
        /// What may change the plugin's mind meanwhile.
        events: Vec<ClusterEvent>,
    },
    /// It may not.
    Reject(Status),
}

impl PermitDecision {
    /// Not before a plugin allows it, and never if none does until then.
    pub fn wait_until(until: Timestamp) -> Self {
        PermitDecision::Wait { until, events: Vec::new() }
    }
}

/// Something that has to be done before a pod can run on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The object that changes.
    pub kind: KindId,
    /// Its name.
    pub key: ObjectKey,
    /// What becomes of it, in words for people.
    pub text: String,
}

/// Prepares what the pod needs on its node, such as volumes.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.pre_bind()` but does not implement `PreBind`")]
pub trait PreBind: Send + Sync {
    /// What would have to be done if the pod went to this node. It is part of the decision: nothing is done yet.
    fn plan(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Vec<Plan> {
        let _ = (cycle, node);
        Vec::new()
    }

    /// Starts the work; `Done(Skip)` if there is none.
    fn pre_bind(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>) -> Step;

    /// Goes on after what the last [`Step`] waited for.
    fn resume(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>, news: &News<'_>) -> Step {
        let _ = (cycle, node);
        Step::done_after(news)
    }
}

/// Binds the pod to its node.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.bind()` but does not implement `Bind`")]
pub trait Bind: Send + Sync {
    /// Starts the binding; `Done(Skip)` leaves it to the next Bind plugin.
    fn bind(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>) -> Step;

    /// Goes on after what the last [`Step`] waited for.
    fn resume(&self, cycle: &mut Cycle<'_>, node: NodeRef<'_>, news: &News<'_>) -> Step {
        let _ = (cycle, node);
        Step::done_after(news)
    }
}

/// Hears that a pod was bound.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.post_bind()` but does not implement `PostBind`")]
pub trait PostBind: Send + Sync {
    /// The pod is on its node now.
    fn post_bind(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, node: NodeRef<'_>);
}
