//! What a plugin is, and how it becomes part of a scheduler.

use std::fmt;
use std::sync::Arc;

use crate::args::Args;
use crate::cycle::Cycle;
use crate::events::Enqueue;
use crate::likeness::{Likeness, Touched};
use crate::memory::{Memories, Memory};
use crate::observe::Observe;
use crate::page::Page;
use crate::points::{
    Bind, Filter, Normalization, Permit, PostBind, PostFilter, PreBind, PreEnqueue, PreFilter,
    PreFilterResult, PreScore, QueueSort, Reserve, Score,
};
use crate::reads::{Reads, Unread};
use crate::witness;
use crate::writes::Writes;
use supercargo_model::cluster::ObjectChange;
use supercargo_model::{KindId, Pod, Snapshot};

/// A scheduler plugin: a name, its arguments, and the extension points it takes part in.
pub trait Plugin: Send + Sync + Sized + 'static {
    /// The name that configurations use.
    const NAME: &'static str;

    /// The arguments; [`crate::NoArgs`] if it takes none.
    type Args: Args;

    /// Makes the plugin. The arguments have been validated.
    fn new(args: Self::Args) -> Self;

    /// Lists the extension points that the plugin implements, as `points.filter().score()`.
    fn extensions(points: Extensions<Self>) -> Extensions<Self>;

    /// What the plugin reads; if it does not say, everything.
    fn reads(&self) -> Reads {
        Reads::everything()
    }

    /// What the plugin writes, as effects of its steps or of its acts; if it does not say, nothing.
    fn writes(&self) -> Writes {
        Writes::nothing()
    }

    /// Whether the plugin has anything to say about such a pod, whatever the cluster is like. If not, its PreFilter and
    /// PreScore skip the pod, or its Filter rejects nothing and its Score is 0 in the end. It looks at nothing of the pod that
    /// the plugin does not say it [reads](Plugin::reads): pods that are alike in that may not be asked about one by one.
    fn concerns(&self, pod: &Pod) -> bool {
        let _ = pod;
        true
    }

    /// Which pods the plugin cannot tell apart, if its [`reads`](Plugin::reads) say that this counts: those that have the same number
    /// here get the same answers for the same node.
    fn alike(&self, pod: &Pod) -> u64 {
        let _ = pod;
        0
    }

    /// Whether what the plugin says about a pod may depend on objects that could not be read. It is asked about kinds that it
    /// [reads](Plugin::reads), pods included; if it does not say, it may. Whoever explains marks what depends on them.
    fn depends_on(&self, unread: &Unread, pod: &Pod, cluster: &Snapshot) -> bool {
        let _ = (unread, pod, cluster);
        true
    }

    /// What the plugin decides about, in a few words that finish the sentence "the answer may be wrong about …".
    fn subject(&self) -> &'static str {
        Self::NAME
    }
}

/// An extension point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Point {
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
}

impl Point {
    /// All points, in the order in which a pod meets them.
    pub const ALL: [Point; 12] = [
        Point::PreEnqueue,
        Point::QueueSort,
        Point::PreFilter,
        Point::Filter,
        Point::PostFilter,
        Point::PreScore,
        Point::Score,
        Point::Reserve,
        Point::Permit,
        Point::PreBind,
        Point::Bind,
        Point::PostBind,
    ];

    /// The name of its plugins' interface, such as `ScorePlugin`.
    pub fn interface_name(self) -> String {
        format!("{self:?}Plugin")
    }

    /// The name that configurations use, such as `preScore`.
    pub const fn config_name(self) -> &'static str {
        match self {
            Point::PreEnqueue => "preEnqueue",
            Point::QueueSort => "queueSort",
            Point::PreFilter => "preFilter",
            Point::Filter => "filter",
            Point::PostFilter => "postFilter",
            Point::PreScore => "preScore",
            Point::Score => "score",
            Point::Reserve => "reserve",
            Point::Permit => "permit",
            Point::PreBind => "preBind",
            Point::Bind => "bind",
            Point::PostBind => "postBind",
        }
    }
}

/// The extension points of a plugin type; the compiler checks that it implements each one it lists.
pub struct Extensions<P> {
    pre_enqueue: Cast<P, dyn PreEnqueue>,
    queue_sort: Cast<P, dyn QueueSort>,
    pre_filter: Cast<P, dyn PreFilter>,
    filter: Cast<P, dyn Filter>,
    post_filter: Cast<P, dyn PostFilter>,
    pre_score: Cast<P, dyn PreScore>,
    score: Cast<P, dyn Score>,
    reserve: Cast<P, dyn Reserve>,
    permit: Cast<P, dyn Permit>,
    pre_bind: Cast<P, dyn PreBind>,
    bind: Cast<P, dyn Bind>,
    post_bind: Cast<P, dyn PostBind>,
    enqueue: Cast<P, dyn Enqueue>,
    observe: Cast<P, dyn Observe>,
    page: Cast<P, dyn Page>,
    memories: Vec<fn(&mut Memories, &'static str)>,
}

type Cast<P, T> = Option<fn(Arc<P>) -> Arc<T>>;

type DependsOn = dyn Fn(&Unread, &Pod, &Snapshot) -> bool + Send + Sync;

/// A plugin ready for use, seen through each of its extension points.
#[derive(Clone)]
pub struct PluginInstance {
    /// Its name.
    pub name: &'static str,
    /// What it reads.
    pub reads: Reads,
    /// What it writes.
    pub writes: Writes,
    /// See [`Plugin::subject`].
    pub subject: &'static str,
    concerns: Arc<dyn Fn(&Pod) -> bool + Send + Sync>,
    alike: Arc<dyn Fn(&Pod) -> u64 + Send + Sync>,
    depends_on: Arc<DependsOn>,
    pub(crate) pre_enqueue: Option<Arc<dyn PreEnqueue>>,
    pub(crate) queue_sort: Option<Arc<dyn QueueSort>>,
    pub(crate) pre_filter: Option<Arc<dyn PreFilter>>,
    pub(crate) filter: Option<Arc<dyn Filter>>,
    pub(crate) post_filter: Option<Arc<dyn PostFilter>>,
    pub(crate) pre_score: Option<Arc<dyn PreScore>>,
    pub(crate) score: Option<Arc<dyn Score>>,
    pub(crate) reserve: Option<Arc<dyn Reserve>>,
    pub(crate) permit: Option<Arc<dyn Permit>>,
    pub(crate) pre_bind: Option<Arc<dyn PreBind>>,
    pub(crate) bind: Option<Arc<dyn Bind>>,
    pub(crate) post_bind: Option<Arc<dyn PostBind>>,
    pub(crate) enqueue: Option<Arc<dyn Enqueue>>,
    pub(crate) observe: Option<Arc<dyn Observe>>,
    pub(crate) page: Option<Arc<dyn Page>>,
    memories: Vec<fn(&mut Memories, &'static str)>,
}

macro_rules! points {
    ($($method:ident: $point:ident),* $(,)?) => {
        impl<P: Plugin> Extensions<P> {
            pub(crate) fn none() -> Self {
                Extensions { $($method: None,)* enqueue: None, observe: None, page: None, memories: Vec::new() }
            }

            /// The points listed so far.
            pub fn points(&self) -> Vec<Point> {
                let mut points = Vec::new();
                $(if self.$method.is_some() { points.push(Point::$point); })*
                points
            }

            $(
                #[doc = concat!("The plugin implements [`", stringify!($point), "`].")]
                #[must_use]
                pub fn $method(mut self) -> Self
                where
                    P: $point,
                {
                    self.$method = Some(|plugin| plugin);
                    self
                }
            )*

            /// The plugin says which events it reacts to.
            #[must_use]
            pub fn enqueue(mut self) -> Self
            where
                P: Enqueue,
            {
                self.enqueue = Some(|plugin| plugin);
                self
            }

            /// Whether the plugin says which events it reacts to.
            pub fn reacts(&self) -> bool {
                self.enqueue.is_some()
            }

            /// The plugin hears of changes between decisions.
            #[must_use]
            pub fn observe(mut self) -> Self
            where
                P: Observe,
            {
                self.observe = Some(|plugin| plugin);
                self
            }

            /// The plugin has a page.
            #[must_use]
            pub fn page(mut self) -> Self
            where
                P: Page,
            {
                self.page = Some(|plugin| plugin);
                self
            }

            /// Whether the plugin hears of changes between decisions.
            pub fn observes(&self) -> bool {
                self.observe.is_some()
            }

            /// Whether the plugin has a page.
            pub fn has_page(&self) -> bool {
                self.page.is_some()
            }

            /// The plugin remembers a value of type `M` from one cycle to the next; if [`Memory::SAVED`] says so, also after a
            /// restart and a takeover.
            #[must_use]
            pub fn remembers<M: Memory>(mut self) -> Self {
                self.memories.push(Memories::declare_for::<M>);
                self
            }

            pub(crate) fn instantiate(self, plugin: P) -> PluginInstance {
                let plugin = Arc::new(plugin);
                let (asked, judge, teller) = (plugin.clone(), plugin.clone(), plugin.clone());
                PluginInstance {
                    name: P::NAME,
                    reads: plugin.reads(),
                    writes: plugin.writes(),
                    subject: plugin.subject(),
                    concerns: Arc::new(move |pod| asked.concerns(pod)),
                    alike: Arc::new(move |pod| teller.alike(pod)),
                    depends_on: Arc::new(move |unread, pod, cluster| judge.depends_on(unread, pod, cluster)),
                    $($method: self.$method.map(|cast| cast(plugin.clone())),)*
                    enqueue: self.enqueue.map(|cast| cast(plugin.clone())),
                    observe: self.observe.map(|cast| cast(plugin.clone())),
                    page: self.page.map(|cast| cast(plugin.clone())),
                    memories: self.memories,
                }
            }
        }
    };
}

points! {
    pre_enqueue: PreEnqueue,
    queue_sort: QueueSort,
    pre_filter: PreFilter,
    filter: Filter,
    post_filter: PostFilter,
    pre_score: PreScore,
    score: Score,
    reserve: Reserve,
    permit: Permit,
    pre_bind: PreBind,
    bind: Bind,
    post_bind: PostBind,
}

impl PluginInstance {
    /// Whether the plugin works out something at PreFilter.
    pub fn implements_pre_filter(&self) -> bool {
        self.pre_filter.is_some()
    }

    /// Whether the plugin works out something at PreScore.
    pub fn implements_pre_score(&self) -> bool {
        self.pre_score.is_some()
    }

    /// See [`Plugin::concerns`].
    pub fn concerns(&self, pod: &Pod) -> bool {
        (self.concerns)(pod)
    }

    /// Whether this is a copy of another one, and not a plugin of the same name that was made once more.
    pub fn is_same(&self, other: &PluginInstance) -> bool {
        Arc::ptr_eq(&self.concerns, &other.concerns)
    }

    /// See [`Plugin::alike`].
    pub fn alike(&self, pod: &Pod) -> u64 {
        (self.alike)(pod)
    }

    /// See [`PreFilter::resolve`].
    pub fn resolve(
        &self,
        cycle: &mut Cycle<'_>,
        likeness: &mut Likeness,
    ) -> Result<PreFilterResult, &'static str> {
        match &self.pre_filter {
            None => Err("it has no PreFilter"),
            Some(plugin) => witness::run(self.name, || plugin.resolve(cycle, likeness)),
        }
    }

    /// See [`PreFilter::touched`]. It is asked only about kinds that matter.
    pub fn touched(&self, cluster: &Snapshot, change: &ObjectChange) -> Touched {
        let matters = |kind: KindId| self.reads.includes(kind) && !self.reads.of_node.contains(&kind);
        match &self.pre_filter {
            Some(plugin) if change.kind().is_some_and(matters) => {
                witness::run(self.name, || plugin.touched(cluster, change))
            }
            _ => Touched::NOTHING,
        }
    }

    /// Whether what the plugin says about a pod may depend on objects that could not be read.
    pub fn depends_on(&self, unread: &Unread, pod: &Pod, cluster: &Snapshot) -> bool {
        self.reads.includes(unread.kind) && self.concerns(pod) && (self.depends_on)(unread, pod, cluster)
    }

    /// Why the plugin's answers about nodes are not kept from one pod to the next if it takes part at these points, so that all plugins
    /// are asked about every node for each pod that it concerns; none if they are, or if it counts pods and says how.
    pub fn unkept(&self, runs: impl Fn(Point) -> bool) -> Option<&'static str> {
        let speaks_of_nodes = [Point::Filter, Point::PreScore, Point::Score].into_iter().any(&runs);
        if !speaks_of_nodes || self.reads.topology && !self.reads.raw_objects {
            return None;
        }
        let score = self.score.as_ref().filter(|_| runs(Point::Score));
        let is_unknown = score.is_some_and(|score| score.normalization() == Normalization::Unknown);
        self.reads.unkept().or(is_unknown.then_some("it does not say how its scores are normalised"))
    }

    /// Whether something that the plugin remembers is to survive a restart.
    pub fn saves_memories(&self) -> bool {
        let mut memories = Memories::default();
        self.declare_memories(&mut memories);
        memories.are_saved()
    }

    /// Makes the types that the plugin remembers known.
    pub fn declare_memories(&self, memories: &mut Memories) {
        for declare in &self.memories {
            declare(memories, self.name);
        }
    }
}

impl<P> fmt::Debug for Extensions<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions<{}>", std::any::type_name::<P>())
    }
}

impl fmt::Debug for PluginInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PluginInstance").field(&self.name).finish()
    }
}
