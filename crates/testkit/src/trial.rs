//! One plugin, tried out on its own.

#![expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]

use std::sync::Arc;

use serde_json::Value;
use supercargo_framework::{
    Actions, Change, ClusterEvent, Code, Context, Cycle, EventResource, Hint, Named, NodeScore, Plugin,
    PluginInstance, Point, PreFilterResult, Profile, QueuedPod, Registry, Status,
};
use supercargo_model::{KindId, Pod, Row};

use crate::acting::name_of;
use crate::cluster::TestCluster;

/// A plugin, tried out on its own.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The plugin at all its points.
    pub profile: Profile,
}

/// Something that happens, and to what.
#[derive(Clone, Debug)]
pub struct Happening {
    actions: Actions,
    old: Option<Value>,
    new: Option<Value>,
}

/// The plugin with its default arguments.
pub fn trial<P: Plugin>() -> Trial {
    Trial::of(&make::<P>(None))
}

/// The plugin with these arguments.
pub fn trial_with<P: Plugin>(args: Value) -> Trial {
    Trial::of(&make::<P>(Some(&args)))
}

/// The arguments of the plugin, read and completed.
pub fn args_of<P: Plugin>(args: Value) -> Value {
    let read = registry_of::<P>().get(P::NAME).expect("it was registered").read_args(Some(&args));
    read.unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Everything that is wrong with such arguments of the plugin.
pub fn problems_of<P: Plugin>(args: Value) -> Vec<String> {
    let read = registry_of::<P>().get(P::NAME).expect("it was registered").read_args(Some(&args));
    read.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Something came.
pub fn added(new: impl Into<Value>) -> Happening {
    Happening { actions: Actions::ADD, old: None, new: Some(new.into()) }
}

/// Something changed.
pub fn updated(actions: Actions, old: impl Into<Value>, new: impl Into<Value>) -> Happening {
    Happening { actions, old: Some(old.into()), new: Some(new.into()) }
}

/// Something went.
pub fn deleted(old: impl Into<Value>) -> Happening {
    Happening { actions: Actions::DELETE, old: Some(old.into()), new: None }
}

/// A status in one line: `ok`, `unschedulable: Insufficient cpu`, `unresolvable: …`, `error: …`.
pub fn status_text(status: &Status) -> String {
    let code = match status.code() {
        Code::Success => return "ok".to_owned(),
        Code::Unschedulable => "unschedulable",
        Code::UnschedulableAndUnresolvable => "unresolvable",
        Code::Error => "error",
        Code::Skip => return "skip".to_owned(),
        Code::Pending => "pending",
    };
    format!("{code}: {}", status.message())
}

impl Trial {
    /// Tries out a plugin that was made already.
    pub fn of(plugin: &PluginInstance) -> Self {
        let mut profile = Profile::new("default-scheduler");
        for point in Point::ALL {
            profile.add(plugin, point, 1);
        }
        profile.add_apart(plugin);
        Trial { profile }
    }

    /// What PreEnqueue says.
    pub fn pre_enqueue(&self, cluster: &mut TestCluster, pod: impl Into<Value>) -> String {
        let pod = cluster.pod(pod);
        let named = listed(&self.profile, &self.profile.pre_enqueue, ".pre_enqueue()");
        status_text(&named.plugin.pre_enqueue(&cluster.context(), &pod))
    }

    /// The names of the pods in the order in which QueueSort has them tried, if they came in this order, one a second, the last
    /// of them now.
    pub fn order<V: Into<Value>>(
        &self,
        cluster: &mut TestCluster,
        pods: impl IntoIterator<Item = V>,
    ) -> Vec<String> {
        let named = listed(&self.profile, &self.profile.queue_sort, ".queue_sort()");
        let pods: Vec<Arc<Pod>> = pods.into_iter().map(|pod| cluster.pod(pod)).collect();
        let came = |place: usize| cluster.now.moved(place as i64 + 1 - pods.len() as i64);
        let queued = |(place, pod): (usize, &Arc<Pod>)| QueuedPod {
            pod: pod.clone(),
            queued_at: came(place),
            first_attempt_at: None,
            attempts: 0,
        };
        let mut queue: Vec<QueuedPod> = pods.iter().enumerate().map(queued).collect();
        // The queue asks about whole steps of time, as the plugin declared them.
        let context = Context { now: named.plugin.changes().moment(cluster.now), ..cluster.context() };
        let less = |a: &QueuedPod, b: &QueuedPod| named.plugin.less(&context, a, b);
        queue.sort_by(|a, b| less(b, a).cmp(&less(a, b)));
        queue.iter().map(|queued| queued.pod.name.to_string()).collect()
    }

    /// What PreFilter says: `all nodes`, `only n1, n2`, `skip`, or why the pod is rejected.
    pub fn pre_filter(&self, cluster: &mut TestCluster, pod: impl Into<Value>) -> String {
        let pod = cluster.pod(pod);
        let named = listed(&self.profile, &self.profile.pre_filter, ".pre_filter()");
        match named.plugin.pre_filter(&mut cluster.cycle(&pod)) {
            PreFilterResult::AllNodes => "all nodes".to_owned(),
            PreFilterResult::OnlyNodes(names) => {
                format!("only {}", names.iter().map(|name| &**name).collect::<Vec<_>>().join(", "))
            }
            PreFilterResult::Skip => "skip".to_owned(),
            PreFilterResult::Reject(status) => status_text(&status),
        }
    }

    /// What PreScore says, after PreFilter, all nodes being feasible.
    pub fn pre_score(&self, cluster: &mut TestCluster, pod: impl Into<Value>) -> String {
        let pod = cluster.pod(pod);
        let named = listed(&self.profile, &self.profile.pre_score, ".pre_score()");
        let mut cycle = cluster.cycle(&pod);
        self.profile.pre_filter.iter().for_each(|named| _ = named.plugin.pre_filter(&mut cycle));
        status_text(&named.plugin.pre_score(&mut cycle, cluster.snapshot().rows()))
    }

    /// What its filter says about each node, as `n1: ok`; what PreFilter says for all of them goes under `*`.
    pub fn filter(&self, cluster: &mut TestCluster, pod: impl Into<Value>) -> Vec<String> {
        let pod = cluster.pod(pod);
        self.filter_pod(cluster, &pod)
    }

    /// The same for a pod that was read already.
    pub fn filter_pod(&self, cluster: &TestCluster, pod: &Arc<Pod>) -> Vec<String> {
        let mut cycle = cluster.cycle(pod);
        let mut only = None;
        for named in &self.profile.pre_filter {
            match named.plugin.pre_filter(&mut cycle) {
                PreFilterResult::AllNodes => {}
                PreFilterResult::OnlyNodes(names) => only = Some(names),
                PreFilterResult::Skip => return vec!["*: skip".to_owned()],
                PreFilterResult::Reject(status) => return vec![format!("*: {}", status_text(&status))],
            }
        }
        let say = |node: supercargo_model::NodeRef<'_>| {
            let excluded = only.as_ref().is_some_and(|names| !names.contains(&**node.name()));
            let said =
                self.profile.filter.iter().map(|named| status_text(&named.plugin.filter(&cycle, node)));
            let said = if excluded { "excluded".to_owned() } else { said.collect::<Vec<_>>().join(" / ") };
            format!("{}: {said}", node.name())
        };
        cluster.snapshot().nodes().map(say).collect()
    }

    /// How it scores each node once normalised, all of them being feasible, as `n1: 78`.
    pub fn scores(&self, cluster: &mut TestCluster, pod: impl Into<Value>) -> Vec<String> {
        let pod = cluster.pod(pod);
        self.scores_of_pod(cluster, &pod)
    }

    /// The same for a pod that was read already.
    pub fn scores_of_pod(&self, cluster: &TestCluster, pod: &Arc<Pod>) -> Vec<String> {
        match self.score_rows(cluster, pod) {
            Ok(scores) => scores
                .iter()
                .map(|score| format!("{}: {}", cluster.snapshot().node(score.row).name(), score.score))
                .collect(),
            Err(status) => vec![format!("*: {}", status_text(&status))],
        }
    }

    /// What its filter and its score say about the first node if nothing was prepared for them.
    pub fn unprepared(&self, cluster: &mut TestCluster, pod: impl Into<Value>) -> Vec<String> {
        let pod = cluster.pod(pod);
        let cycle = cluster.cycle(&pod);
        let node = cluster.snapshot().nodes().next().expect("there is a node");
        let filters = self.profile.filter.iter().map(|named| named.plugin.filter(&cycle, node));
        let scores = self.profile.score.iter().map(|(named, _)| match named.plugin.score(&cycle, node) {
            Ok(_) => Status::success(),
            Err(status) => status,
        });
        filters.chain(scores).map(|status| status_text(&status)).collect()
    }

    fn score_rows(&self, cluster: &TestCluster, pod: &Arc<Pod>) -> Result<Vec<NodeScore>, Status> {
        let (cycle, mut scores) = self.raw_scores(cluster, pod, cluster.snapshot().rows())?;
        let (named, _) = self.profile.score.first().expect("the plugin scores");
        let status = named.plugin.normalize(&cycle, &mut scores);
        if status.is_success() { Ok(scores) } else { Err(status) }
    }

    /// The scores of all nodes as they are before they are normalised, where PreScore was told that these are feasible.
    pub(crate) fn raw_scores<'a>(
        &self,
        cluster: &'a TestCluster,
        pod: &'a Arc<Pod>,
        feasible: &[Row],
    ) -> Result<(Cycle<'a>, Vec<NodeScore>), Status> {
        let mut cycle = cluster.cycle(pod);
        // Some plugins leave something for their score in PreFilter already.
        for named in &self.profile.pre_filter {
            if let PreFilterResult::Reject(status) = named.plugin.pre_filter(&mut cycle) {
                return Err(status);
            }
        }
        for named in &self.profile.pre_score {
            let status = named.plugin.pre_score(&mut cycle, feasible);
            if !status.is_success() {
                return Err(status);
            }
        }
        let (named, _) = self.profile.score.first().expect("the plugin scores");
        let score = |row: &Row| {
            Ok(NodeScore { row: *row, score: named.plugin.score(&cycle, cluster.snapshot().node(*row))? })
        };
        let scores = cluster.snapshot().rows().iter().map(score).collect::<Result<_, Status>>()?;
        Ok((cycle, scores))
    }

    /// What it hints when something happens while this pod waits.
    pub fn hint(&self, cluster: &mut TestCluster, pod: impl Into<Value>, happening: &Happening) -> Hint {
        let pod = cluster.pod(pod);
        let [named] = &self.profile.enqueue[..] else { return Hint::Queue };
        happening.tell(cluster, |cluster, event, change| {
            Hint::on(&*named.plugin, &cluster.context(), &pod, event, change)
        })
    }

    /// Whether the plugin hints as expected at each happening; the text says what is going on.
    pub fn check_hints<const N: usize>(
        &self,
        cluster: &mut TestCluster,
        pod: impl Into<Value>,
        expected: [(&str, Happening, Hint); N],
    ) {
        let pod = pod.into();
        for (what, happening, hint) in expected {
            assert_eq!(self.hint(cluster, pod.clone(), &happening), hint, "{what}");
        }
    }
}

impl Happening {
    /// Tells somebody of it, as the event and the change that it is.
    pub(crate) fn tell<R>(
        &self,
        cluster: &mut TestCluster,
        hear: impl FnOnce(&mut TestCluster, ClusterEvent, &Change<'_>) -> R,
    ) -> R {
        let event = |resource| ClusterEvent { resource, actions: self.actions };
        let states = [&self.old, &self.new];
        let kind = states.into_iter().flatten().next().and_then(|object| object["kind"].as_str());
        match kind.expect("something happens to an object") {
            "Pod" => {
                let [old, new] = states.map(|pod| pod.clone().map(|pod| cluster.pod(pod)));
                let change = Change::Pod { old: old.as_deref(), new: new.as_deref() };
                hear(cluster, event(EventResource::Pod), &change)
            }
            "Node" => {
                // Each state in a cluster of its own.
                let states = states.map(|node| Some(crate::cluster().with(node.clone()?)));
                let [old, new] = states.each_ref().map(|state| state.as_ref()?.snapshot().nodes().next());
                hear(cluster, event(EventResource::Node), &Change::Node { old, new })
            }
            _ => {
                let [old, new] = states.map(|object| object.clone().map(|object| cluster.object(object)));
                let kind: KindId =
                    old.as_ref().or(new.as_ref()).expect("something happens to an object").kind;
                let change = Change::Object { old: old.as_ref(), new: new.as_ref() };
                hear(cluster, event(EventResource::Kind(kind)), &change)
            }
        }
    }
}

/// The plugin at a point that it has to list.
pub(crate) fn listed<'a, T: ?Sized>(profile: &Profile, point: &'a [Named<T>], method: &str) -> &'a Named<T> {
    let name = name_of(profile);
    point.first().unwrap_or_else(|| panic!("{name} does not list `{method}` in its `extensions`"))
}

pub(crate) fn registry_of<P: Plugin>() -> Registry {
    let mut registry = Registry::default();
    registry.register::<P>().expect("it is the only one");
    registry
}

pub(crate) fn make<P: Plugin>(args: Option<&Value>) -> PluginInstance {
    let made = registry_of::<P>().get(P::NAME).expect("it was registered").make(args);
    made.unwrap_or_else(|problems| panic!("{problems:?}"))
}
