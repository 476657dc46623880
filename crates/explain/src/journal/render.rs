//! What a scheduler said, for people, beside what is computed now.

use std::time::Duration;

use serde::Serialize;
use supercargo_model::Timestamp;

use super::record::{PastDecision, PastOutcome, PlaceReport, PodReport, QueueName};
use crate::explanation::Verdict;
use crate::placement::Placement;
use crate::render::{Align, push_table};

/// What a scheduler said when it was asked about a pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Who was asked.
    pub asked: String,
    /// The UID of the pod that it is about; none if there is no pod of that name any more.
    #[serde(skip)]
    pub uid: Option<String>,
    /// What it said.
    #[serde(flatten)]
    pub report: PodReport,
    /// How what is computed now differs from its last decision, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_then: Option<String>,
}

impl Asked {
    /// What a scheduler said about the pod that has this UID now.
    pub fn new(asked: String, report: PodReport, uid: Option<String>) -> Self {
        Asked { asked, uid, report, since_then: None }
    }

    /// Compares its last decision for the pod with what is computed now.
    pub fn compare(&mut self, now: &Verdict) {
        let is_of_pod = |decision: &&PastDecision| self.uid.as_deref().is_none_or(|uid| uid == decision.uid);
        let last = self.report.decisions.iter().rfind(is_of_pod);
        self.since_then = last.and_then(|last| difference(&last.outcome, now));
    }
}

/// What a scheduler said, as text.
pub fn render_asked(asked: &Asked) -> String {
    let mut text = String::new();
    push_report(&mut text, asked);
    text
}

pub(crate) fn push_report(text: &mut String, asked: &Asked) {
    let Asked { asked: who, uid, report, since_then } = asked;
    let idle = if report.leads { "" } else { ", which does not schedule now" };
    text.push_str(&format!("what the scheduler decided for {} ({who}{idle}):\n", report.pod));
    if report.decisions.is_empty() {
        text.push_str("  nothing that it remembers\n");
    } else {
        let mut rows = vec![["WHEN", "AGE", "ATTEMPT", "OUTCOME"].map(str::to_owned).to_vec()];
        for decision in &report.decisions {
            let is_earlier = uid.as_ref().is_some_and(|uid| *uid != decision.uid);
            let earlier = if is_earlier { "an earlier pod of that name: " } else { "" };
            rows.push(vec![
                second(decision.time),
                age(report.time.since(decision.time)),
                decision.attempt.to_string(),
                format!("{earlier}{}", outcome(decision)),
            ]);
        }
        push_table(text, &rows, &[Align::Left, Align::Right, Align::Right, Align::Left]);
    }
    for hold in &report.holds {
        text.push_str(&format!("  no pod is scheduled there now: {hold}\n"));
    }
    for lack in &report.lacks {
        text.push_str(&format!("  decided there without: {lack}\n"));
    }
    if let Some(waits) = &report.waits {
        text.push_str(&format!("  now: {}\n", place(waits, report)));
    }
    if let Some(since_then) = since_then {
        text.push_str(&format!(
            "  since then the cluster has changed, or not all of it could be read here: {since_then}\n"
        ));
    }
}

fn outcome(decision: &PastDecision) -> String {
    let by = |plugins: &[String]| match plugins {
        [] => String::new(),
        plugins => format!(" ({})", plugins.join(", ")),
    };
    let choice = |score: i64, feasible: u32| match feasible {
        0 | 1 => "the only feasible node".to_owned(),
        more => format!("score {score}, the best of {more} feasible nodes"),
    };
    match &decision.outcome {
        PastOutcome::Bound { node, score, feasible_nodes, bound_at } => {
            let took = bound_at.since(decision.time).as_millis();
            format!("bound to {node} after {took} ms: {}", choice(*score, *feasible_nodes))
        }
        PastOutcome::Binding { node, score, feasible_nodes } => {
            format!("on its way to {node}: {}", choice(*score, *feasible_nodes))
        }
        PastOutcome::WaitingForPermit { node, plugins, .. } => {
            format!("given {node}, and waits to be permitted{}", by(plugins))
        }
        PastOutcome::NotBound { node, is_rejected: true, message } => {
            format!("given {node}, and rejected then: {message}")
        }
        PastOutcome::NotBound { node, is_rejected: false, message } => {
            format!("given {node}, but could not be bound: {message}")
        }
        PastOutcome::Unschedulable { message, plugins, nominated_node, victims, victim_count } => {
            let room = nominated_node.as_ref().map(|node| {
                let more = victim_count.saturating_sub(victims.len());
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                match &victims[..] {
                    [] => format!("; nominated to {node}"),
                    victims => format!("; room is made on {node} by evicting {}{more}", victims.join(", ")),
                }
            });
            format!("unschedulable: {message}{}{}", by(plugins), room.unwrap_or_default())
        }
        PastOutcome::Error { message } => format!("error: {message}"),
        PastOutcome::Unknown => "something that this version does not know".to_owned(),
    }
}

fn place(waits: &PlaceReport, report: &PodReport) -> String {
    let now = report.time;
    let PlaceReport { queue, attempts, since, until, node, plugins, reason, .. } = waits;
    let plugins = if plugins.is_empty() { "the scheduler".to_owned() } else { plugins.join(", ") };
    let since = since.map(|since| format!(" for {}", age(now.since(since)))).unwrap_or_default();
    let within = |until: &Option<Timestamp>| match until {
        Some(until) => format!("within {}", age(until.since(now))),
        None => "soon".to_owned(),
    };
    let node = node.as_deref().unwrap_or_default();
    let what = match queue {
        // What stands in the queue of a scheduler that schedules nothing is not tried next.
        QueueName::Active if report.is_idle() => {
            format!("in the queue{since}, to be tried when it schedules")
        }
        QueueName::Active => format!("in the queue{since}, to be tried next"),
        QueueName::Backoff => format!("backs off, to be tried {} at the latest", within(until)),
        QueueName::Unschedulable => format!(
            "unschedulable{since}: tried again when something happens that {plugins} can use, {} at the latest",
            within(until)
        ),
        QueueName::Held => {
            format!("held back{since} by {plugins}: {}", reason.as_deref().unwrap_or("no reason is given"))
        }
        QueueName::Tried => format!("being tried{since}"),
        QueueName::Permit => {
            format!("waits for {plugins} to let it go to {node}, given up {}", within(until))
        }
        QueueName::PreBind => format!("on its way to {node}{since}: what it needs there is being prepared"),
        QueueName::Binding => format!("being bound to {node}{since}"),
        QueueName::Unresolved => {
            format!(
                "perhaps bound to {node}{since}: the API server is asked, and its room stays taken until that is known"
            )
        }
        QueueName::Unknown => "somewhere that this version does not know".to_owned(),
    };
    let times = if *attempts == 1 { "once" } else { &*format!("{attempts} times") };
    format!("{what}; tried {times} so far")
}

/// How what is computed now differs from what was decided.
fn difference(last: &PastOutcome, now: &Verdict) -> Option<String> {
    let would_go = |placement: &Placement| format!("as computed below, it would go to {}", placement.node);
    match (last, now) {
        (PastOutcome::Unknown, _) | (_, Verdict::Failed { .. } | Verdict::PerNode(_)) => None,
        (PastOutcome::Error { .. } | PastOutcome::NotBound { .. }, _) => None,
        (_, Verdict::Held { .. }) => Some("as computed below, it is not even tried".to_owned()),
        (PastOutcome::Unschedulable { .. }, Verdict::Placed(placement)) => Some(would_go(placement)),
        (PastOutcome::Unschedulable { message, .. }, Verdict::Pending(obstacles)) => (obstacles.message
            != *message)
            .then(|| "as computed below, it fits nowhere for other reasons".to_owned()),
        (
            PastOutcome::Bound { node, .. }
            | PastOutcome::Binding { node, .. }
            | PastOutcome::WaitingForPermit { node, .. },
            now,
        ) => match now {
            Verdict::Placed(placement) => {
                (!is_among_best(node, placement)).then(|| format!("{}, not to {node}", would_go(placement)))
            }
            _ => Some("as computed below, it would fit nowhere".to_owned()),
        },
    }
}

/// Whether a node is one of those that chance chooses from. Not all of them are known if there are many.
fn is_among_best(node: &str, placement: &Placement) -> bool {
    let best = placement.candidates.iter().take(placement.tied.max(1));
    let mut names = best.map(|candidate| candidate.node.as_str());
    placement.tied > placement.candidates.len() || names.any(|name| name == node)
}

/// A point in time, to the second.
fn second(time: Timestamp) -> String {
    Timestamp::from_seconds(time.seconds()).to_string()
}

/// A span of time in its two largest units, as kubectl has it.
fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{minutes}m{}s", seconds % 60),
        7_200..172_800 => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}
