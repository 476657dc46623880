//! One plugin, tried out on its own.

#![expect(clippy::needless_pass_by_value, reason = "JSON is given by value, as `json!` makes it")]

use std::sync::Arc;

use serde_json::Value;
use supercargo_framework::{
    Actions, Change, ClusterEvent, Code, EventResource, Hint, NodeScore, Plugin, PluginInstance, Point,
    PreFilterResult, Profile, Registry, Status,
};
use supercargo_model::{KindId, Pod, Row};

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
        Trial { profile }
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
        let mut cycle = cluster.cycle(pod);
        // Some plugins leave something for their score in PreFilter already.
        for named in &self.profile.pre_filter {
            if let PreFilterResult::Reject(status) = named.plugin.pre_filter(&mut cycle) {
                return Err(status);
            }
        }
        let rows: Vec<Row> = cluster.snapshot().rows().to_vec();
        for named in &self.profile.pre_score {
            let status = named.plugin.pre_score(&mut cycle, &rows);
            if !status.is_success() {
                return Err(status);
            }
        }
        let (named, _) = self.profile.score.first().expect("the plugin scores");
        let score = |row: &Row| {
            Ok(NodeScore { row: *row, score: named.plugin.score(&cycle, cluster.snapshot().node(*row))? })
        };
        let mut scores: Vec<NodeScore> = rows.iter().map(score).collect::<Result<_, Status>>()?;
        let status = named.plugin.normalize(&cycle, &mut scores);
        if status.is_success() { Ok(scores) } else { Err(status) }
    }

    /// What it hints when something happens while this pod waits.
    pub fn hint(&self, cluster: &mut TestCluster, pod: impl Into<Value>, happening: &Happening) -> Hint {
        let pod = cluster.pod(pod);
        let kind = happening.old.as_ref().or(happening.new.as_ref()).map(|object| object["kind"].clone());
        let [named] = &self.profile.enqueue[..] else { return Hint::Queue };
        let answer = |cluster: &TestCluster, resource, change: &Change<'_>| {
            let event = ClusterEvent { resource, actions: happening.actions };
            Hint::on(&*named.plugin, &cluster.context(), &pod, event, change)
        };
        match kind.as_ref().and_then(Value::as_str).expect("something happens to an object") {
            "Pod" => {
                let [old, new] =
                    [&happening.old, &happening.new].map(|pod| pod.clone().map(|pod| cluster.pod(pod)));
                answer(cluster, EventResource::Pod, &Change::Pod { old: old.as_deref(), new: new.as_deref() })
            }
            "Node" => {
                // Each state in a cluster of its own.
                let states =
                    [&happening.old, &happening.new].map(|node| Some(crate::cluster().with(node.clone()?)));
                let [old, new] = states.each_ref().map(|state| state.as_ref()?.snapshot().nodes().next());
                answer(cluster, EventResource::Node, &Change::Node { old, new })
            }
            _ => {
                let [old, new] = [&happening.old, &happening.new]
                    .map(|object| object.clone().map(|object| cluster.object(object)));
                let kind: KindId =
                    old.as_ref().or(new.as_ref()).expect("something happens to an object").kind;
                answer(
                    cluster,
                    EventResource::Kind(kind),
                    &Change::Object { old: old.as_ref(), new: new.as_ref() },
                )
            }
        }
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

fn registry_of<P: Plugin>() -> Registry {
    let mut registry = Registry::default();
    registry.register::<P>().expect("it is the only one");
    registry
}

fn make<P: Plugin>(args: Option<&Value>) -> PluginInstance {
    let made = registry_of::<P>().get(P::NAME).expect("it was registered").make(args);
    made.unwrap_or_else(|problems| panic!("{problems:?}"))
}
