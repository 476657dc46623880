//! A pod on its way to a node, through the points of one plugin from Reserve on.

use std::sync::Arc;

use serde_json::Value;
use supercargo_framework::{Acts, Cycle, CycleState, News};
use supercargo_model::{NodeRef, Pod};

use crate::acting::{act, permit_text, step_lines};
use crate::cluster::TestCluster;
use crate::trial::{Trial, listed, status_text};

/// A pod on its way to a node. What the plugin leaves in the cycle at one point is there at the next.
///
/// Answers are lines: first what was said, then what was asked for, such as `allow: UID`, `reject: UID: …`, `activate: UID`,
/// `order: bind pod default/a to node n`, `wake: TIME`, `count: name{label=value}`.
#[derive(Debug)]
pub struct Attempt<'a> {
    trial: &'a Trial,
    cluster: &'a mut TestCluster,
    pod: Arc<Pod>,
    node: String,
    state: CycleState,
}

impl Trial {
    /// Sends a pod to a node. The plugin's PreFilter, Filter and PreScore have run, whatever they said.
    pub fn attempt<'a>(
        &'a self,
        cluster: &'a mut TestCluster,
        pod: impl Into<Value>,
        node: &str,
    ) -> Attempt<'a> {
        let pod = cluster.pod(pod);
        let row = cluster.row(node);
        let mut cycle = cluster.cycle(&pod);
        self.profile.pre_filter.iter().for_each(|named| _ = named.plugin.pre_filter(&mut cycle));
        for named in &self.profile.filter {
            _ = named.plugin.filter(&cycle, cluster.snapshot().node(row));
        }
        self.profile.pre_score.iter().for_each(|named| _ = named.plugin.pre_score(&mut cycle, &[row]));
        let state = cycle.into_state();
        Attempt { trial: self, cluster, pod, node: node.to_owned(), state }
    }
}

impl Attempt<'_> {
    /// The cluster, to change it on the way.
    pub fn cluster(&mut self) -> &mut TestCluster {
        self.cluster
    }

    /// What Reserve says and asks for.
    pub fn reserve(&mut self) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.reserve, ".reserve()").plugin.clone();
        let (status, asked) = self.step(|cycle, acts, node| plugin.reserve(cycle, acts, node));
        [vec![status_text(&status)], asked].concat()
    }

    /// What it asks for when the pod does not go to the node after all.
    pub fn unreserve(&mut self) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.reserve, ".reserve()").plugin.clone();
        self.step(|cycle, acts, node| plugin.unreserve(cycle, acts, node)).1
    }

    /// What Permit says, as `ok`, `waits until TIME` or `unschedulable: …`, and asks for.
    pub fn permit(&mut self) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.permit, ".permit()").plugin.clone();
        let (decision, asked) = self.step(|cycle, acts, node| plugin.permit(cycle, acts, node));
        [vec![permit_text(&decision)], asked].concat()
    }

    /// What Permit says to news while the pod waits; `nothing new` if it leaves it at that.
    pub fn reconsider(&mut self, news: &News<'_>) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.permit, ".permit()").plugin.clone();
        let (decision, asked) = self.step(|cycle, acts, node| plugin.reconsider(cycle, acts, node, news));
        let said = decision.as_ref().map_or("nothing new".to_owned(), permit_text);
        [vec![said], asked].concat()
    }

    /// What PreBind plans, in words for people.
    pub fn plan(&mut self) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.pre_bind, ".pre_bind()").plugin.clone();
        let (plan, _) = self.step(|cycle, _, node| plugin.plan(cycle, node));
        plan.into_iter().map(|plan| plan.text).collect()
    }

    /// What PreBind orders and waits for, or how it ended.
    pub fn pre_bind(&mut self) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.pre_bind, ".pre_bind()").plugin.clone();
        let (step, _) = self.step(|cycle, _, node| plugin.pre_bind(cycle, node));
        step_lines(&self.trial.profile, &step)
    }

    /// How PreBind goes on with news.
    pub fn resume_pre_bind(&mut self, news: &News<'_>) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.pre_bind, ".pre_bind()").plugin.clone();
        let (step, _) = self.step(|cycle, _, node| plugin.resume(cycle, node, news));
        step_lines(&self.trial.profile, &step)
    }

    /// What Bind orders and waits for, or how it ended.
    pub fn bind(&mut self) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.bind, ".bind()").plugin.clone();
        let (step, _) = self.step(|cycle, _, node| plugin.bind(cycle, node));
        step_lines(&self.trial.profile, &step)
    }

    /// How Bind goes on with news.
    pub fn resume_bind(&mut self, news: &News<'_>) -> Vec<String> {
        let plugin = listed(&self.trial.profile, &self.trial.profile.bind, ".bind()").plugin.clone();
        let (step, _) = self.step(|cycle, _, node| plugin.resume(cycle, node, news));
        step_lines(&self.trial.profile, &step)
    }

    /// What PostBind asks for.
    pub fn post_bind(&mut self) -> Vec<String> {
        let plugin =
            listed(&self.trial.profile, &self.trial.profile.post_bind, ".post_bind()").plugin.clone();
        self.step(|cycle, acts, node| plugin.post_bind(cycle, acts, node)).1
    }

    fn step<R>(
        &mut self,
        step: impl FnOnce(&mut Cycle<'_>, &mut Acts<'_>, NodeRef<'_>) -> R,
    ) -> (R, Vec<String>) {
        let row = self.cluster.row(&self.node);
        let (pod, state) = (&self.pod, std::mem::take(&mut self.state));
        let ((result, state), asked) = act(&self.trial.profile, self.cluster, |context, acts| {
            let node = context.cluster.node(row);
            let mut cycle = Cycle::resume(pod, context, state);
            let result = step(&mut cycle, acts, node);
            (result, cycle.into_state())
        });
        self.state = state;
        (result, asked)
    }
}
