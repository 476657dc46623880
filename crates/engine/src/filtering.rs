//! PreFilter and Filter: which nodes are feasible.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use supercargo_framework::{Code, Cycle, Filter, Named, PreFilter, PreFilterResult, Profile, Status};
use supercargo_model::{NodeRef, Pod, Row};

use crate::evaluate::FilterWord;

/// The filters of a profile, after PreFilter has been run for one pod.
#[derive(Clone, Debug)]
pub(crate) struct Filters<'a> {
    profile: &'a Profile,
    /// Plugins whose Filter has nothing to say about this pod.
    skipped: BTreeSet<&'static str>,
    /// The others: they are asked about every node.
    asked: Vec<&'a Named<dyn Filter>>,
    /// Those of the plugins before them that keep state, to be brought up to date.
    updated: Vec<&'a Named<dyn PreFilter>>,
}

/// What PreFilter made of the pod.
#[derive(Debug)]
pub(crate) struct PreFiltered<'a> {
    pub(crate) filters: Filters<'a>,
    /// The rejection, or the error, if the pod fits nowhere.
    pub(crate) status: Status,
    /// The only nodes that come into question, if they were narrowed.
    pub(crate) only: Option<BTreeSet<Box<str>>>,
    /// The plugins that narrowed them, or rejected the pod.
    pub(crate) plugins: BTreeSet<&'static str>,
}

pub(crate) fn pre_filter<'a>(profile: &'a Profile, cycle: &mut Cycle<'_>) -> PreFiltered<'a> {
    let result = run_pre_filters(profile, cycle);
    PreFiltered { filters: Filters::with_skipped(profile, result.filters.skipped), ..result }
}

fn run_pre_filters<'a>(profile: &'a Profile, cycle: &mut Cycle<'_>) -> PreFiltered<'a> {
    let mut result = PreFiltered {
        filters: Filters { profile, skipped: BTreeSet::new(), asked: Vec::new(), updated: Vec::new() },
        status: Status::success(),
        only: None,
        plugins: BTreeSet::new(),
    };
    for named in &profile.pre_filter {
        let name = named.name;
        match named.run(|plugin| plugin.pre_filter(cycle)) {
            PreFilterResult::Skip => {
                result.filters.skipped.insert(name);
            }
            PreFilterResult::AllNodes => {}
            PreFilterResult::OnlyNodes(nodes) => {
                result.plugins.insert(name);
                let both = match result.only.take() {
                    None => nodes,
                    Some(before) => before.intersection(&nodes).cloned().collect(),
                };
                let none_left = both.is_empty();
                result.only = Some(both);
                if none_left {
                    result.status = Status::unresolvable(no_common_node(&result.plugins));
                    return result;
                }
            }
            PreFilterResult::Reject(status) => match status.code() {
                Code::Success => {}
                Code::Skip => {
                    result.filters.skipped.insert(name);
                }
                // Preemption cannot help, so nobody needs the state that the other plugins would leave.
                Code::UnschedulableAndUnresolvable => {
                    result.status = status.from_plugin(name);
                    result.plugins.clear();
                    return result;
                }
                Code::Unschedulable => result.status = status.from_plugin(name),
                _ => {
                    let text = format!("running PreFilter plugin {name:?}: {}", status.message());
                    result.status = Status::error(text).from_plugin(name);
                    result.plugins.clear();
                    return result;
                }
            },
        }
    }
    result
}

fn no_common_node(plugins: &BTreeSet<&'static str>) -> String {
    let names: Vec<&str> = plugins.iter().copied().collect();
    match &names[..] {
        [single] => format!("node(s) didn't satisfy plugin {single}"),
        several => format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", several.join(" ")),
    }
}

impl<'a> Filters<'a> {
    /// The filters of a profile without those that have nothing to say.
    pub(crate) fn with_skipped(profile: &'a Profile, skipped: BTreeSet<&'static str>) -> Self {
        let asked = profile.filter.iter().filter(|named| !skipped.contains(named.name)).collect();
        let updated = profile.pre_filter.iter().filter(|named| !skipped.contains(named.name)).collect();
        Filters { profile, skipped, asked, updated }
    }
}

impl Filters<'_> {
    /// The plugins whose Filter has nothing to say about the pod.
    pub(crate) fn skipped(&self) -> &BTreeSet<&'static str> {
        &self.skipped
    }

    /// Whether there is anything to run.
    pub(crate) fn is_empty(&self) -> bool {
        self.profile.filter.is_empty()
    }

    /// What the filters say about a node, where pods that are nominated to it count as if they ran there already.
    ///
    /// The pod must fit with them and without them: it must not take their room, and must not rely on them coming.
    pub(crate) fn run(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match self.with_nominated(cycle, node) {
            Err(status) => status,
            Ok(None) => self.run_once(cycle, node),
            Ok(Some((with_nominated, usage))) => {
                let node_with = cycle.cluster().node_with(node.row(), &usage);
                let status = self.run_once(&with_nominated, node_with);
                if status.is_success() { self.run_once(cycle, node) } else { status }
            }
        }
    }

    /// The cycle and the node as if the pods nominated to it, of no lower priority, ran on it.
    fn with_nominated<'a>(
        &self,
        cycle: &Cycle<'a>,
        node: NodeRef<'_>,
    ) -> Result<Option<(Cycle<'a>, supercargo_model::cluster::Usage)>, Status> {
        let pod = cycle.pod;
        let counts = |other: &&Arc<Pod>| other.priority() >= pod.priority() && other.uid != pod.uid;
        let mut nominated = cycle.cluster().nominated_to(node.name()).iter().filter(counts).peekable();
        if nominated.peek().is_none() {
            return Ok(None);
        }
        let (mut cycle, mut usage) = (cycle.clone(), node.usage().clone());
        for other in nominated {
            usage.add(other.clone());
            let node = cycle.cluster().node_with(node.row(), &usage);
            let status = self.add_pod(&mut cycle, other, node);
            if !status.is_success() {
                return Err(status);
            }
        }
        Ok(Some((cycle, usage)))
    }

    fn run_once(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        for named in &self.asked {
            let status = named.run(|plugin| plugin.filter(cycle, node));
            if !status.is_success() {
                return attributed(status, named.name);
            }
        }
        Status::success()
    }

    /// What every filter says about a node, also after the first rejection, and what [`Self::run`] says of it.
    ///
    /// Where pods are nominated to the node, a filter's word is that with them, or else that without them.
    pub(crate) fn words(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> (Vec<FilterWord>, Status) {
        let mut words = self.words_once(cycle, node);
        match self.with_nominated(cycle, node) {
            Err(status) => (words, status),
            Ok(None) => {
                let status = first_rejection(&words);
                (words, status)
            }
            Ok(Some((with_nominated, usage))) => {
                let node_with = cycle.cluster().node_with(node.row(), &usage);
                let words_with = self.words_once(&with_nominated, node_with);
                let status = Some(first_rejection(&words_with)).filter(|status| !status.is_success());
                let status = status.unwrap_or_else(|| first_rejection(&words));
                for (word, with) in words.iter_mut().zip(words_with) {
                    if with.stands_in_the_way() {
                        *word = with;
                    }
                }
                (words, status)
            }
        }
    }

    fn words_once(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Vec<FilterWord> {
        let mut asked = self.asked.iter().peekable();
        let word = |named: &Named<dyn Filter>| FilterWord {
            plugin: named.name,
            status: match asked.next_if(|next| std::ptr::eq(**next, named)) {
                None => Status::skip(),
                Some(_) => attributed(named.run(|plugin| plugin.filter(cycle, node)), named.name),
            },
        };
        self.profile.filter.iter().map(word).collect()
    }

    /// Brings the cycle up to date as if the pod ran on the node.
    pub(crate) fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        self.each_pre_filter("AddPod", |plugin| plugin.add_pod(cycle, pod, node))
    }

    /// Brings the cycle up to date as if the pod no longer ran on the node.
    pub(crate) fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &Arc<Pod>, node: NodeRef<'_>) -> Status {
        self.each_pre_filter("RemovePod", |plugin| plugin.remove_pod(cycle, pod, node))
    }

    fn each_pre_filter(&self, method: &str, mut call: impl FnMut(&dyn PreFilter) -> Status) -> Status {
        for named in &self.updated {
            let status = named.run(|plugin| call(plugin));
            if !status.is_success() {
                let (name, message) = (named.name, status.message());
                return Status::error(format!("running {method} on PreFilter plugin {name:?}: {message}"));
            }
        }
        Status::success()
    }
}

/// What stops the search for more: the first word that is not success.
fn first_rejection(words: &[FilterWord]) -> Status {
    let first = words.iter().find(|word| word.stands_in_the_way());
    first.map_or_else(Status::success, |word| word.status.clone())
}

/// A filter may reject; anything else but success is an error.
fn attributed(status: Status, plugin: &'static str) -> Status {
    if status.is_success() || status.is_rejected() {
        return status.from_plugin(plugin);
    }
    let text: Cow<'static, str> = format!("running {plugin:?} filter plugin: {}", status.message()).into();
    Status::error(text).from_plugin(plugin)
}

/// The rows of the nodes that come into question, in the order in which they are examined.
pub(crate) fn candidate_rows(cycle: &Cycle<'_>, only: Option<&BTreeSet<Box<str>>>) -> Vec<Row> {
    let cluster = cycle.cluster();
    match only {
        None => cluster.rows().to_vec(),
        Some(names) if names.len() == 1 => names.iter().filter_map(|name| cluster.row_of(name)).collect(),
        Some(names) => {
            cluster.nodes().filter(|node| names.contains(&**node.name())).map(|node| node.row()).collect()
        }
    }
}
