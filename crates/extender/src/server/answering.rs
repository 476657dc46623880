//! What the plugins of a profile say to a question. Nothing here does I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use supercargo_engine::{caught, filter_among, preempt_among, score_among};
use supercargo_framework::{Code, Context, Fixes, Memories, Needs, Profile};
use supercargo_model::{Cluster, Decoded, Decoder, KindId, Pod, Row, Timestamp};

use super::scaling::scaled;
use crate::wire::{
    ExtenderArgs, ExtenderFilterResult, ExtenderPreemptionArgs, ExtenderPreemptionResult, HostPriority,
    HostPriorityList, MetaPod, MetaVictims, NamedObject, NodeList, RawJson, Victims, read,
};

/// The name of the scheduler of pods that do not ask for one.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What is known when a question comes.
#[derive(Debug)]
pub struct View {
    /// The cluster: empty if none is watched.
    pub cluster: Cluster,
    /// Whether a cluster is watched. If not, only what is sent is known: nodes, but not the pods on them.
    pub is_watched: bool,
    /// What plugins remember.
    pub memories: Memories,
    /// The time.
    pub now: Timestamp,
    /// A number drawn for this question: the only chance there is.
    pub seed: u64,
}

/// Answers questions with the plugins of some profiles.
#[derive(Debug)]
pub struct Answerer {
    profiles: Vec<Profile>,
    fixes: Fixes,
    decoder: Decoder,
    choice: ProfileChoice,
}

/// Which profile answers for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProfileChoice {
    /// Always this one.
    Always(usize),
    /// The one that is named like the pod's scheduler, or else this one.
    ByScheduler { otherwise: usize },
}

/// No profile has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no profile is called {name:?}; the configuration has {profiles}")]
pub struct NoSuchProfile {
    /// The name.
    pub name: String,
    /// The names that there are.
    pub profiles: String,
}

/// The nodes of a question, as they came, each with its row if it is known.
enum AskedNodes {
    Names(Vec<(Box<str>, Option<Row>)>),
    Whole(Vec<(Box<str>, Row, RawJson)>),
}

impl Answerer {
    /// Answers with the profile that is named like the pod's scheduler, or else that of the default scheduler, or else the first; with
    /// `always`, with the profile of that name whatever the pod says.
    pub fn new(profiles: Vec<Profile>, fixes: Fixes, always: Option<&str>) -> Result<Self, NoSuchProfile> {
        let named = |wanted: &str| profiles.iter().position(|profile| profile.scheduler_name == wanted);
        let choice = match always {
            None => ProfileChoice::ByScheduler { otherwise: named(DEFAULT_SCHEDULER).unwrap_or(0) },
            Some(name) => ProfileChoice::Always(named(name).ok_or_else(|| {
                let names: Vec<&str> = profiles.iter().map(|profile| &*profile.scheduler_name).collect();
                NoSuchProfile { name: name.to_owned(), profiles: names.join(", ") }
            })?),
        };
        let decoder = Needs::of(&profiles).decoder();
        Ok(Answerer { profiles, fixes, decoder, choice })
    }

    /// What is known where no cluster is watched.
    pub fn empty_view(&self, now: Timestamp, seed: u64) -> View {
        let mut memories = Memories::default();
        for profile in &self.profiles {
            profile.declare_memories(&mut memories);
        }
        View { cluster: Cluster::default(), is_watched: false, memories, now, seed }
    }

    /// Which of the nodes a pod can run on, or what went wrong.
    pub fn filter(&self, mut view: View, args: ExtenderArgs) -> Result<ExtenderFilterResult, String> {
        let pod = self.pod(&mut view.cluster, args.pod.as_ref())?;
        let nodes = self.nodes(&mut view, args.nodes, args.node_names)?;
        let mut result = ExtenderFilterResult::default();
        let words =
            caught(|| filter_among(self.profile_for(&pod), self.context(&mut view), &pod, &nodes.rows()))
                .map_err(|panicked| panicked.to_string())?;
        let mut words = words.into_iter();
        let mut is_kept = |name: &str, row: Option<Row>| {
            let Some(word) = row.and_then(|_| words.next()) else {
                let reason = "the extender has not heard of this node".to_owned();
                result.failed_and_unresolvable_nodes.insert(name.into(), reason);
                return Ok(false);
            };
            match word.code() {
                Code::Success => return Ok(true),
                Code::Unschedulable => _ = result.failed_nodes.insert(name.into(), word.message()),
                _ if word.is_rejected() => {
                    _ = result.failed_and_unresolvable_nodes.insert(name.into(), word.message());
                }
                _ => return Err(word.message()),
            }
            Ok(false)
        };
        match nodes {
            AskedNodes::Names(names) => {
                let mut kept = Vec::with_capacity(names.len());
                for (name, row) in names {
                    if is_kept(&name, row)? {
                        kept.push(name);
                    }
                }
                result.node_names = Some(kept);
            }
            AskedNodes::Whole(nodes) => {
                let mut kept = Vec::with_capacity(nodes.len());
                for (name, row, text) in nodes {
                    if is_kept(&name, Some(row))? {
                        kept.push(text);
                    }
                }
                result.nodes = Some(NodeList::new(kept));
            }
        }
        Ok(result)
    }

    /// How good the nodes are for a pod, or what went wrong. A node that nobody has heard of gets the lowest score.
    pub fn prioritize(&self, mut view: View, args: ExtenderArgs) -> Result<HostPriorityList, String> {
        let pod = self.pod(&mut view.cluster, args.pod.as_ref())?;
        let nodes = self.nodes(&mut view, args.nodes, args.node_names)?;
        let scores =
            caught(|| score_among(self.profile_for(&pod), self.context(&mut view), &pod, &nodes.rows()))
                .map_err(|panicked| panicked.to_string())??;
        let mut scores = scaled(&scores).into_iter();
        let mut rated = |host: Box<str>, row: Option<Row>| HostPriority {
            host,
            score: row.and_then(|_| scores.next()).unwrap_or(0),
        };
        Ok(match nodes {
            AskedNodes::Names(names) => names.into_iter().map(|(name, row)| rated(name, row)).collect(),
            AskedNodes::Whole(nodes) => {
                nodes.into_iter().map(|(name, row, _)| rated(name, Some(row))).collect()
            }
        })
    }

    /// Which of the nodes the pod could run on once their victims have gone, perhaps with more victims; or what went wrong. Where no
    /// cluster is watched there is nothing to object to.
    pub fn preempt(
        &self,
        mut view: View,
        args: ExtenderPreemptionArgs,
    ) -> Result<ExtenderPreemptionResult, String> {
        let pod = self.pod(&mut view.cluster, args.pod.as_ref())?;
        let mut asked = match (args.node_name_to_meta_victims, args.node_name_to_victims) {
            (Some(meta), _) => meta,
            (None, Some(whole)) => whole
                .into_iter()
                .map(|(node, victims)| Ok((node, named_victims(&victims)?)))
                .collect::<Result<BTreeMap<_, _>, String>>()?,
            (None, None) => {
                return Err("the question has neither NodeNameToVictims nor NodeNameToMetaVictims".to_owned());
            }
        };
        if !view.is_watched {
            return Ok(ExtenderPreemptionResult { node_name_to_meta_victims: asked });
        }
        let snapshot = view.cluster.snapshot();
        let leaving = asked.iter().filter_map(|(node, victims)| {
            let uids = victims.pods.iter().map(|victim| victim.uid.clone()).collect();
            Some((snapshot.row_of(node)?, uids))
        });
        let leaving: BTreeMap<Row, Vec<Box<str>>> = leaving.collect();
        let left = caught(|| preempt_among(self.profile_for(&pod), &self.context(&mut view), &pod, &leaving))
            .map_err(|panicked| panicked.to_string())?;
        let snapshot = view.cluster.snapshot();
        let of_node = |(row, more): (Row, supercargo_framework::NodeVictims)| {
            let (node, mut victims) = asked.remove_entry(&**snapshot.node(row).name())?;
            victims.pods.extend(more.pods.iter().map(|pod| MetaPod { uid: (*pod.uid).into() }));
            victims.pdb_violations = victims.pdb_violations.saturating_add(more.budget_violations);
            Some((node, victims))
        };
        Ok(ExtenderPreemptionResult {
            node_name_to_meta_victims: left.into_iter().filter_map(of_node).collect(),
        })
    }

    /// The profile that answers for a pod.
    fn profile_for(&self, pod: &Pod) -> &Profile {
        match self.choice {
            ProfileChoice::Always(number) => &self.profiles[number],
            ProfileChoice::ByScheduler { otherwise } => {
                let is_named = |profile: &&Profile| profile.scheduler_name == *pod.spec.scheduler_name;
                self.profiles.iter().find(is_named).unwrap_or(&self.profiles[otherwise])
            }
        }
    }

    fn context<'a>(&self, view: &'a mut View) -> Context<'a> {
        let View { cluster, memories, now, seed, .. } = view;
        Context { cluster: cluster.snapshot(), now: *now, memories, seed: *seed, fixes: self.fixes }
    }

    fn pod(&self, cluster: &mut Cluster, text: Option<&RawJson>) -> Result<Arc<Pod>, String> {
        let text = text.ok_or("the question has no Pod")?;
        match self.decoder.decode_kind(text.get(), KindId::POD) {
            Ok(Decoded::Pod(words)) => Ok(Arc::new(cluster.interner().pod(*words))),
            Ok(_) => Err("cannot read the Pod of the question: it is another object".to_owned()),
            Err(error) => Err(format!("cannot read the Pod of the question: {error}")),
        }
    }

    /// Finds the nodes of a question, and takes in those that were sent whole: the scheduler goes by what it knows of them.
    fn nodes(
        &self,
        view: &mut View,
        whole: Option<NodeList>,
        names: Option<Vec<Box<str>>>,
    ) -> Result<AskedNodes, String> {
        match (names, whole) {
            (Some(_), _) if !view.is_watched => {
                Err("the question has the names of nodes only, and no cluster is \
                 watched in which they could be looked up: set nodeCacheCapable: false, or let the extender \
                 watch the cluster"
                    .to_owned())
            }
            (Some(names), _) => {
                let snapshot = view.cluster.snapshot();
                let found = |name: Box<str>| {
                    let row = snapshot.row_of(&name);
                    (name, row)
                };
                Ok(AskedNodes::Names(names.into_iter().map(found).collect()))
            }
            (None, Some(list)) => {
                let taken = list.items.into_iter().enumerate().map(|(place, text)| {
                    match self.decoder.decode_kind(text.get(), KindId::NODE) {
                        Ok(Decoded::Node(words)) => {
                            Ok((words.name().into(), view.cluster.put_node(&words), text))
                        }
                        Ok(_) => Err(format!("cannot read Nodes.items[{place}]: it is another object")),
                        Err(error) => Err(format!("cannot read Nodes.items[{place}]: {error}")),
                    }
                });
                Ok(AskedNodes::Whole(taken.collect::<Result<_, String>>()?))
            }
            (None, None) => Err("the question has neither Nodes nor NodeNames".to_owned()),
        }
    }
}

impl AskedNodes {
    /// The rows of those that are known, in the order of the question.
    fn rows(&self) -> Vec<Row> {
        match self {
            AskedNodes::Names(names) => names.iter().filter_map(|(_, row)| *row).collect(),
            AskedNodes::Whole(nodes) => nodes.iter().map(|(_, row, _)| *row).collect(),
        }
    }
}

/// Whole victims by their UIDs.
fn named_victims(victims: &Victims) -> Result<MetaVictims, String> {
    let uid = |text: &RawJson| match read::<NamedObject>(text.get().as_bytes()) {
        Ok(pod) => Ok(MetaPod { uid: pod.metadata.uid }),
        Err(error) => Err(format!("cannot read a victim of the question: {error}")),
    };
    let pods = victims.pods.iter().map(uid).collect::<Result<_, _>>()?;
    Ok(MetaVictims { pods, pdb_violations: victims.pdb_violations })
}
