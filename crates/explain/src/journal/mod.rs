//! What a scheduler has decided of late, pod by pod, for those who ask why.
//!
//! A journal hears of every attempt, so it keeps little: of a pod that got a node some hundred bytes, of one that did not also
//! the message, which pods of a kind share. It forgets the pods first that were not decided for the longest, whether they
//! are still there or not: that a pod has gone is no reason not to ask why.

mod record;
mod render;
mod texts;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_engine::{Decision, Observation, Outcome};
use supercargo_framework::Nomination;
use supercargo_model::{Pod, Timestamp};

pub use record::{PastDecision, PastOutcome, PlaceReport, PodReport, QueueName};
pub(crate) use render::push_report;
pub use render::{Asked, render_asked};
use texts::Texts;

/// How many decisions are kept of a pod, if nothing else is said.
const DECISIONS_MAX: usize = 4;
/// Of how many pods.
const PODS_MAX: usize = 8_192;
/// In how many bytes, counted generously.
const BYTES_MAX: usize = 4 << 20;
/// So much of a message is kept.
const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// So many victims are kept by name.
const VICTIMS_MAX: usize = 8;
/// When there is no more room, one pod of so many is forgotten, so that not every decision has to look for the oldest.
const FORGOTTEN_SHARE: usize = 16;

/// How much a [`Journal`] keeps.
#[derive(Clone, Copy, Debug)]
pub struct JournalLimits {
    /// How many decisions of a pod.
    pub decisions: usize,
    /// Of how many pods.
    pub pods: usize,
    /// In how many bytes.
    pub bytes: usize,
}

/// The last decisions.
#[derive(Debug, Default)]
pub struct Journal {
    limits: JournalLimits,
    /// By UID: a name may be that of another pod tomorrow.
    pods: FxHashMap<Arc<str>, Box<Entry>>,
    texts: Texts,
    /// How often something was noted.
    turns: u64,
    /// What the entries take, without the texts.
    bytes: usize,
}

/// What is kept of a pod.
#[derive(Debug)]
struct Entry {
    namespace: Arc<str>,
    name: Box<str>,
    profile: Arc<str>,
    /// When it was last noted, in turns.
    turn: u64,
    /// Oldest first.
    kept: Vec<Kept>,
}

/// What is kept of a decision.
#[derive(Debug)]
struct Kept {
    at: Timestamp,
    attempt: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The pod got a node.
    Placed { node: Arc<str>, score: i64, feasible: u32, ending: Ending },
    /// It fits nowhere.
    Unfit(Box<Unfit>),
    /// Something broke.
    Failed(Arc<str>),
}

/// What became of a pod that got a node.
#[derive(Debug)]
enum Ending {
    UnderWay,
    /// These plugins have not allowed it yet.
    Awaits(Box<[&'static str]>),
    /// So long after the decision.
    Bound(std::time::Duration),
    NotBound(Box<(bool, Arc<str>)>),
}

#[derive(Debug)]
struct Unfit {
    message: Arc<str>,
    plugins: Vec<&'static str>,
    nominated: Option<Arc<str>>,
    /// Some of the pods that are evicted, and how many there are.
    victims: Vec<Box<str>>,
    victim_count: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        JournalLimits { decisions: DECISIONS_MAX, pods: PODS_MAX, bytes: BYTES_MAX }
    }
}

impl Journal {
    /// An empty one.
    pub fn new(limits: JournalLimits) -> Self {
        Journal { limits, ..Journal::default() }
    }

    /// A pod was tried for the so-many-th time.
    pub fn decided(&mut self, decision: &Decision, attempt: u32) {
        let what = match &decision.outcome {
            Outcome::Place { node, score, feasible, .. } => What::Placed {
                node: node.clone(),
                score: *score,
                feasible: u32::try_from(*feasible).unwrap_or(u32::MAX),
                ending: Ending::UnderWay,
            },
            Outcome::Failed { error } => What::Failed(self.texts.share(shorten(error))),
            Outcome::Unschedulable { message, plugins, pending, nomination, victims } => {
                let nominated = match nomination {
                    Nomination::Node(node) => Some(node.clone()),
                    Nomination::Keep | Nomination::Clear => None,
                };
                What::Unfit(Box::new(Unfit {
                    message: self.texts.share(shorten(message)),
                    plugins: plugins.union(pending).copied().collect(),
                    nominated,
                    victims: victims.iter().take(VICTIMS_MAX).map(|pod| pod.key().into()).collect(),
                    victim_count: victims.len(),
                }))
            }
        };
        self.keep(&decision.pod, Kept { at: decision.now, attempt, what });
    }

    /// The scheduler did something else: what concerns pods that got a node is noted with their last decision.
    pub fn observed(&mut self, observation: &Observation) {
        match observation {
            Observation::Bound { pod, attempts, since_attempt, .. } => {
                self.end(&pod.uid, Ending::Bound(*since_attempt), Some(*attempts));
            }
            Observation::NotBound { pod, is_rejected, message, .. } => {
                let message = self.texts.share(shorten(message));
                self.end(&pod.uid, Ending::NotBound(Box::new((*is_rejected, message))), None);
            }
            Observation::PermitAwaited { pod, plugins, .. } => {
                self.end(&pod.uid, Ending::Awaits(plugins.as_slice().into()), None);
            }
            _ => {}
        }
    }

    /// What was decided for all pods of that name, oldest first. This looks at every pod: people ask seldom.
    pub fn recall(&self, namespace: &str, name: &str) -> Vec<PastDecision> {
        let is_named = |entry: &Entry| *entry.name == *name && *entry.namespace == *namespace;
        let named = self.pods.iter().filter(|(_, entry)| is_named(entry));
        let mut decisions: Vec<PastDecision> = named
            .flat_map(|(uid, entry)| entry.kept.iter().map(|kept| kept.report(uid, &entry.profile)))
            .collect();
        decisions.sort_by(|a, b| (a.time, &a.uid, a.attempt).cmp(&(b.time, &b.uid, b.attempt)));
        decisions
    }

    /// What it takes, counted generously.
    pub fn bytes(&self) -> usize {
        self.bytes + self.texts.bytes()
    }

    fn keep(&mut self, pod: &Pod, kept: Kept) {
        self.turns += 1;
        if !self.pods.contains_key(&pod.uid) {
            self.make_room();
            let entry = Entry {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                profile: self.texts.share(&pod.spec.scheduler_name),
                turn: 0,
                kept: Vec::with_capacity(1),
            };
            self.bytes += entry.bytes() + pod.uid.len();
            self.pods.insert(pod.uid.clone(), Box::new(entry));
        }
        let Some(entry) = self.pods.get_mut(&pod.uid) else { return };
        entry.turn = self.turns;
        if entry.kept.len() >= self.limits.decisions.max(1) {
            let oldest = entry.kept.remove(0);
            self.bytes -= oldest.bytes();
            oldest.release(&mut self.texts);
        }
        self.bytes += kept.bytes();
        entry.kept.reserve_exact(1);
        entry.kept.push(kept);
    }

    fn end(&mut self, uid: &str, ending: Ending, attempt: Option<u32>) {
        let last = self.pods.get_mut(uid).and_then(|entry| entry.kept.last_mut());
        let Some(Kept { attempt: known, what: What::Placed { ending: place, .. }, .. }) = last else {
            // It was decided before the journal began, or has been forgotten since.
            return ending.release(&mut self.texts);
        };
        *known = attempt.unwrap_or(*known);
        self.bytes += ending.bytes();
        let before = std::mem::replace(place, ending);
        self.bytes -= before.bytes();
        before.release(&mut self.texts);
    }

    /// Forgets the pods that were not decided for the longest, if there is no room for another one.
    fn make_room(&mut self) {
        while self.pods.len() >= self.limits.pods.max(1)
            || (self.bytes() >= self.limits.bytes && !self.pods.is_empty())
        {
            let mut turns: Vec<u64> = self.pods.values().map(|entry| entry.turn).collect();
            let share = (turns.len() / FORGOTTEN_SHARE).max(1);
            let (_, last, _) = turns.select_nth_unstable(share - 1);
            let forgotten = self.pods.extract_if(|_, entry| entry.turn <= *last);
            for (uid, entry) in forgotten {
                self.bytes -= entry.bytes() + uid.len();
                for kept in entry.kept {
                    self.bytes -= kept.bytes();
                    kept.release(&mut self.texts);
                }
                self.texts.release(&entry.profile);
            }
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        // Tables are a little more than half full in the middle, and what is on the heap has a header.
        size_of::<Self>() + 2 * size_of::<(Arc<str>, Box<Self>)>() + self.name.len() + 32
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        let beside = match &self.what {
            What::Placed { ending, .. } => ending.bytes(),
            What::Failed(_) => 0,
            What::Unfit(unfit) => {
                let victims: usize =
                    unfit.victims.iter().map(|name| name.len() + size_of::<Box<str>>()).sum();
                size_of::<Unfit>() + size_of_val(&*unfit.plugins) + victims
            }
        };
        size_of::<Self>() + beside
    }

    fn release(self, texts: &mut Texts) {
        match self.what {
            What::Placed { ending, .. } => ending.release(texts),
            What::Failed(message) => texts.release(&message),
            What::Unfit(unfit) => texts.release(&unfit.message),
        }
    }

    fn report(&self, uid: &str, profile: &str) -> PastDecision {
        PastDecision {
            uid: uid.to_owned(),
            time: self.at,
            attempt: self.attempt,
            profile: profile.to_owned(),
            outcome: self.outcome(),
        }
    }

    fn outcome(&self) -> PastOutcome {
        let names = |plugins: &[&'static str]| plugins.iter().map(|plugin| (*plugin).to_owned()).collect();
        match &self.what {
            What::Failed(message) => PastOutcome::Error { message: message.to_string() },
            What::Unfit(unfit) => PastOutcome::Unschedulable {
                message: unfit.message.to_string(),
                plugins: names(&unfit.plugins),
                nominated_node: unfit.nominated.as_deref().map(str::to_owned),
                victims: unfit.victims.iter().map(ToString::to_string).collect(),
                victim_count: unfit.victim_count,
            },
            What::Placed { node, score, feasible, ending } => {
                let (node, score, feasible_nodes) = (node.to_string(), *score, *feasible);
                match ending {
                    Ending::UnderWay => PastOutcome::Binding { node, score, feasible_nodes },
                    Ending::Awaits(plugins) => {
                        PastOutcome::WaitingForPermit { node, score, feasible_nodes, plugins: names(plugins) }
                    }
                    Ending::Bound(after) => {
                        PastOutcome::Bound { node, score, feasible_nodes, bound_at: self.at.after(*after) }
                    }
                    Ending::NotBound(why) => {
                        let (is_rejected, message) = &**why;
                        PastOutcome::NotBound {
                            node,
                            is_rejected: *is_rejected,
                            message: message.to_string(),
                        }
                    }
                }
            }
        }
    }
}

impl Ending {
    fn bytes(&self) -> usize {
        match self {
            Ending::UnderWay | Ending::Bound(_) => 0,
            Ending::Awaits(plugins) => size_of_val(&**plugins),
            Ending::NotBound(why) => size_of_val(&**why),
        }
    }

    fn release(self, texts: &mut Texts) {
        if let Ending::NotBound(why) = self {
            texts.release(&why.1);
        }
    }
}

/// As much of a message as is kept.
fn shorten(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)]
}
