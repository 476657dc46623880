//! The engine with plugins that say what a test tells them to.

mod deciding;
mod filtering;
mod indexing;
mod post_filtering;
mod pre_filtering;
mod scoring;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use supercargo_framework::{
    Args, Code, Cycle, Extensions, Filter, Nomination, Plugin, Point, PostFilter, PostFilterResult,
    PreFilter, PreFilterResult, PreScore, Profile, Registry, Rehearsal, Rejections, Score, Status,
};
use supercargo_model::{NodeRef, Pod, Row};
use supercargo_testkit::{NodeBuilder, PodBuilder, TestCluster, cluster, node, pod};

use crate::{Evaluation, Rules, Thoroughness, evaluate};

/// A plugin of a one-letter name that says what its arguments tell it to.
struct Scripted<const NAME: char>(Script);

/// Answers as text: `ok`, `skip`, `unschedulable: …`, `unresolvable: …`, `error: …`, `pending: …`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Script {
    /// As above, or `only: n1 n2`.
    pre_filter: Option<String>,
    add_pod: Option<String>,
    /// By node; those not named are fine.
    filter: BTreeMap<String, String>,
    /// How many pods it allows on a node.
    room: Option<usize>,
    pre_score: Option<String>,
    /// By node; 0 for those not named, an error for a text.
    scores: BTreeMap<String, Value>,
    normalize: Option<String>,
    post_filter: Option<String>,
    /// `clear`, or a node.
    nominate: Option<String>,
}

impl Args for Script {}

impl<const LETTER: char> Plugin for Scripted<LETTER> {
    const NAME: &'static str = match LETTER {
        'A' => "A",
        'B' => "B",
        'C' => "C",
        _ => panic!("no such plugin"),
    };
    type Args = Script;

    fn new(script: Script) -> Self {
        Scripted(script)
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_filter().filter().post_filter().pre_score().score()
    }
}

impl<const LETTER: char> PreFilter for Scripted<LETTER> {
    fn pre_filter(&self, _: &mut Cycle<'_>) -> PreFilterResult {
        match self.0.pre_filter.as_deref() {
            None => PreFilterResult::AllNodes,
            Some("skip") => PreFilterResult::Skip,
            Some(text) => match text.strip_prefix("only: ") {
                Some(names) => PreFilterResult::OnlyNodes(names.split(' ').map(Box::from).collect()),
                None => PreFilterResult::Reject(status(text)),
            },
        }
    }

    fn add_pod(&self, _: &mut Cycle<'_>, _: &Arc<Pod>, _: NodeRef<'_>) -> Status {
        self.0.add_pod.as_deref().map(status).unwrap_or_default()
    }
}

impl<const LETTER: char> Filter for Scripted<LETTER> {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if self.0.room.is_some_and(|room| node.pods().len() >= room) {
            return Status::unschedulable("full");
        }
        self.0.filter.get(&**node.name()).map(|text| status(text)).unwrap_or_default()
    }
}

impl<const LETTER: char> PostFilter for Scripted<LETTER> {
    fn post_filter(&self, _: &Cycle<'_>, _: &dyn Rejections, _: &dyn Rehearsal) -> PostFilterResult {
        PostFilterResult {
            status: self.0.post_filter.as_deref().map(status).unwrap_or_default(),
            nomination: match self.0.nominate.as_deref() {
                None => Nomination::Keep,
                Some("clear") => Nomination::Clear,
                Some(node) => Nomination::Node(node.into()),
            },
            victims: Vec::new(),
        }
    }
}

impl<const LETTER: char> PreScore for Scripted<LETTER> {
    fn pre_score(&self, _: &mut Cycle<'_>, _: &[Row]) -> Status {
        self.0.pre_score.as_deref().map(status).unwrap_or_default()
    }
}

impl<const LETTER: char> Score for Scripted<LETTER> {
    fn score(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        match self.0.scores.get(&**node.name()) {
            None => Ok(0),
            Some(Value::String(text)) => Err(status(text)),
            Some(number) => Ok(number.as_i64().expect("a score is a number")),
        }
    }

    fn normalize(&self, _: &Cycle<'_>, _: &mut [supercargo_framework::NodeScore]) -> Status {
        self.0.normalize.as_deref().map(status).unwrap_or_default()
    }
}

fn status(text: &str) -> Status {
    let (code, reason) = text.split_once(": ").unwrap_or((text, ""));
    let code = match code {
        "ok" => Code::Success,
        "skip" => Code::Skip,
        "unschedulable" => Code::Unschedulable,
        "unresolvable" => Code::UnschedulableAndUnresolvable,
        "error" => Code::Error,
        "pending" => Code::Pending,
        other => panic!("no such code: {other}"),
    };
    let reasons = (!reason.is_empty()).then(|| reason.to_owned().into());
    Status::new(code, reasons)
}

/// The points at which everything but PostFilter happens.
const SEARCH: &[Point] = &[Point::PreFilter, Point::Filter, Point::PreScore, Point::Score];

/// A profile of the plugins A, B and C, as many as there are scripts.
fn profile_at<const N: usize>(points: &[Point], scripts: [Value; N]) -> Profile {
    let mut registry = Registry::default();
    registry.register::<Scripted<'A'>>().expect("new");
    registry.register::<Scripted<'B'>>().expect("new");
    registry.register::<Scripted<'C'>>().expect("new");
    let mut profile = Profile::new("default-scheduler");
    for (name, script) in ["A", "B", "C"].into_iter().zip(scripts) {
        let plugin = registry.get(name).expect("registered").make(Some(&script)).expect("a valid script");
        for point in points {
            assert!(profile.add(&plugin, *point, 1));
        }
    }
    profile
}

fn profile<const N: usize>(scripts: [Value; N]) -> Profile {
    profile_at(SEARCH, scripts)
}

fn nodes<const N: usize>(names: [&str; N]) -> TestCluster {
    names.into_iter().fold(cluster(), |cluster, name| cluster.with(node(name)))
}

fn run(profile: &Profile, cluster: &mut TestCluster, pod: PodBuilder, rules: Rules) -> Evaluation {
    let pod = cluster.pod(pod);
    evaluate(profile, cluster.context(), &pod, rules, Thoroughness::FirstRejection, &mut 0)
}

/// The names of some nodes.
fn names(cluster: &TestCluster, rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| cluster.snapshot().node(*row).name().to_string()).collect()
}
