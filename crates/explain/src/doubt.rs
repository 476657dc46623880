//! What could not be read of the cluster, and which parts of an answer that makes uncertain.
//!
//! Plugins declare what they read, and say whether it matters for a pod (`Plugin::depends_on`); what a plugin says that depends
//! on something missing is doubtful, whatever the plugin is called.

use std::collections::BTreeSet;

use serde::Serialize;
use supercargo_framework::{Profile, Unread};
use supercargo_model::{KindId, Pod, Snapshot};

use crate::explanation::{Explanation, Verdict};
use crate::obstacles::UNATTRIBUTED;
use crate::text::list;

/// More kinds than this are counted, not named, in one sentence.
const KINDS_NAMED_MAX: usize = 4;

/// Objects of a kind that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub unread: Unread,
    /// Why.
    pub reason: MissingReason,
    /// What whoever refused them said; empty if nothing.
    pub message: String,
}

/// Why objects could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingReason {
    /// The user may not.
    Forbidden,
    /// The API server does not know the kind at all, so there are none.
    NotServed,
    /// The API server has the kind in other versions only.
    OtherVersion,
    /// Some of them are not as they should be.
    Unreadable,
    /// Secrets are nobody's business.
    Secret,
    /// Whoever wrote the file could not read them.
    NotInFile,
}

/// What could not be read, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingReport {
    /// The kind, as `plural.group`.
    pub kind: String,
    /// The one namespace of which they could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub except_namespace: Option<String>,
    /// Why.
    pub why: MissingReason,
    /// What was said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the plugins that read them decide about.
    pub affects: Vec<&'static str>,
}

/// A plugin that may be wrong about a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Doubt {
    /// The plugin.
    pub plugin: String,
    /// What it decides about.
    pub about: &'static str,
    /// The kinds that it would have to read, as `plural.group`.
    pub missing: Vec<String>,
    /// What of an answer it has a part in.
    pub part: Part,
    #[serde(skip)]
    causes: Vec<Missing>,
}

/// What of an answer a plugin has a part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// Whether a node will do.
    Feasibility,
    /// Which of the nodes that will do is the best.
    Choice,
    /// Which pods are evicted.
    Evictions,
}

impl Missing {
    /// Whether objects may exist that were not seen.
    fn is_doubtful(&self) -> bool {
        self.reason != MissingReason::NotServed
    }

    /// For programs.
    pub fn report(&self, profile: &Profile) -> MissingReport {
        let Unread { kind, known_namespace } = &self.unread;
        let plugins = profile.plugins().iter().filter(|plugin| plugin.reads.includes(*kind));
        let subjects: BTreeSet<&'static str> = plugins.map(|plugin| plugin.subject).collect();
        MissingReport {
            kind: kind_name(*kind),
            except_namespace: known_namespace.as_deref().map(str::to_owned),
            why: self.reason,
            message: self.message.clone(),
            affects: subjects.into_iter().collect(),
        }
    }
}

/// The plugins that may be wrong about a pod because of what is missing.
pub fn doubts(profile: &Profile, cluster: &Snapshot, pod: &Pod, missing: &[Missing]) -> Vec<Doubt> {
    let missing: Vec<&Missing> = missing.iter().filter(|missing| missing.is_doubtful()).collect();
    let plugins = profile.plugins().iter().enumerate().filter_map(|(number, plugin)| {
        let part = part_of(profile, number)?;
        let causes = missing.iter().filter(|missing| plugin.depends_on(&missing.unread, pod, cluster));
        let causes: Vec<Missing> = causes.map(|missing| (*missing).clone()).collect();
        let kinds: BTreeSet<String> = causes.iter().map(|missing| kind_name(missing.unread.kind)).collect();
        (!causes.is_empty()).then(|| Doubt {
            plugin: plugin.name.to_owned(),
            about: plugin.subject,
            missing: kinds.into_iter().collect(),
            part,
            causes,
        })
    });
    plugins.collect()
}

/// What a plugin has a part in; none if in nothing that an answer shows.
fn part_of(profile: &Profile, number: usize) -> Option<Part> {
    fn has<T: ?Sized>(list: &[supercargo_framework::Named<T>], number: usize) -> bool {
        list.iter().any(|named| named.number == number)
    }
    let decides_later =
        has(&profile.reserve, number) || has(&profile.permit, number) || has(&profile.pre_bind, number);
    if has(&profile.pre_filter, number) || has(&profile.filter, number) || decides_later {
        return Some(Part::Feasibility);
    }
    // Who makes room by evictions and filters nothing holds back no pod but while it does.
    if has(&profile.post_filter, number) {
        return Some(Part::Evictions);
    }
    if has(&profile.pre_enqueue, number) {
        return Some(Part::Feasibility);
    }
    let scores =
        has(&profile.pre_score, number) || profile.score.iter().any(|(named, _)| named.number == number);
    scores.then_some(Part::Choice)
}

impl Explanation {
    /// Marks what may be wrong in it. Doubts that do not matter for what it says are left out.
    pub fn mark_doubts(&mut self, doubts: Vec<Doubt>) {
        let doubtful = |plugin: &str| doubts.iter().any(|doubt| doubt.plugin == plugin);
        let any = |part: Part| doubts.iter().any(|doubt| doubt.part == part);
        self.is_uncertain = match &mut self.verdict {
            Verdict::Held { plugin, .. } => doubtful(plugin),
            Verdict::Failed { .. } => any(Part::Feasibility),
            Verdict::Placed(_) => any(Part::Feasibility) || any(Part::Choice),
            Verdict::PerNode(per_node) => {
                let may_fit = any(Part::Feasibility);
                for obstacle in &mut per_node.obstacles {
                    obstacle.is_uncertain = doubtful(&obstacle.plugin);
                }
                for hint in per_node.example.iter_mut().flat_map(|example| &mut example.hints) {
                    hint.is_uncertain = may_fit;
                }
                may_fit || (per_node.by_eviction > 0 && any(Part::Evictions))
            }
            Verdict::Pending(obstacles) => {
                let may_fit = any(Part::Feasibility);
                for obstacle in &mut obstacles.obstacles {
                    let is_anybodys = obstacle.plugin == UNATTRIBUTED && may_fit;
                    obstacle.is_uncertain = is_anybodys || doubtful(&obstacle.plugin);
                }
                let may_evict = may_fit || any(Part::Evictions);
                for hint in &mut obstacles.hints {
                    hint.is_uncertain = if hint.remedy.evicts() { may_evict } else { may_fit };
                }
                if let Some(preemption) = &mut obstacles.preemption {
                    preemption.is_uncertain = may_evict;
                }
                // Nodes that others rule out for certain stay ruled out.
                obstacles.obstacles.iter().any(|obstacle| obstacle.is_uncertain)
                    || (obstacles.obstacles.is_empty() && may_fit)
            }
        };
        let says_evictions = match &self.verdict {
            Verdict::Pending(obstacles) => {
                obstacles.preemption.is_some() || obstacles.hints.iter().any(|hint| hint.remedy.evicts())
            }
            Verdict::PerNode(per_node) => per_node.by_eviction > 0,
            _ => false,
        };
        let matters = |doubt: &Doubt| match (&self.verdict, doubt.part) {
            (Verdict::Held { plugin, .. }, _) => doubt.plugin == *plugin,
            (_, Part::Feasibility) => true,
            (verdict, Part::Choice) => matches!(verdict, Verdict::Placed(_)),
            (_, Part::Evictions) => says_evictions,
        };
        self.doubts = doubts.into_iter().filter(matters).collect();
    }
}

/// One sentence about what may be wrong and why; none if nothing is.
pub fn doubt_sentence(doubts: &[Doubt]) -> Option<String> {
    let mut causes: Vec<Missing> = Vec::new();
    for cause in doubts.iter().flat_map(|doubt| &doubt.causes) {
        if !causes.contains(cause) {
            causes.push(cause.clone());
        }
    }
    let why = missing_sentence(&causes)?;
    let about: BTreeSet<&str> = doubts.iter().map(|doubt| doubt.about).collect();
    let about: Vec<String> = about.into_iter().map(str::to_owned).collect();
    Some(format!("{why}; the answer may be wrong about {}", list(&about)))
}

/// What could not be read and why, as the beginning of a sentence; none if everything could.
pub fn missing_sentence(missing: &[Missing]) -> Option<String> {
    let mut reasons: Vec<MissingReason> = missing.iter().map(|missing| missing.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let parts = reasons.into_iter().map(|reason| {
        let of_reason = missing.iter().filter(|missing| missing.reason == reason);
        let names: Vec<String> = of_reason.map(|missing| objects_name(&missing.unread)).collect();
        let kinds = match names.len() {
            count if count > KINDS_NAMED_MAX => {
                format!("{}, … ({count} kinds)", names[..KINDS_NAMED_MAX].join(", "))
            }
            _ => list(&names),
        };
        match reason {
            MissingReason::Forbidden => format!("you may not read {kinds}"),
            MissingReason::NotServed => format!("the API server has no {kinds}"),
            MissingReason::OtherVersion => format!("the API server has {kinds} in other versions only"),
            MissingReason::Unreadable => format!("some objects could not be understood: {kinds}"),
            MissingReason::Secret => format!("{kinds} are never read"),
            MissingReason::NotInFile => format!("whoever wrote the file could not read {kinds}"),
        }
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The objects, for people.
fn objects_name(unread: &Unread) -> String {
    match &unread.known_namespace {
        Some(namespace) => format!("{} outside {namespace}", unread.kind.plural),
        None => unread.kind.plural.to_owned(),
    }
}

/// A kind as kubectl calls it: `plural.group`.
pub fn kind_name(kind: KindId) -> String {
    if kind.group.is_empty() { kind.plural.to_owned() } else { format!("{}.{}", kind.plural, kind.group) }
}

#[cfg(test)]
mod tests;
