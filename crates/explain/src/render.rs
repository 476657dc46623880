//! Explanations for people: tables that fit a terminal, however large the cluster.

use std::fmt::Write;

use supercargo_model::printable;

use crate::capacity::{Capacity, CapacityLimit};
use crate::doubt::{Doubt, doubt_sentence};
use crate::explanation::{Explanation, Verdict};
use crate::journal::push_report;
use crate::obstacles::{Obstacle, Obstacles, Preemption};
use crate::per_node::PerNode;
use crate::placement::Placement;
use crate::text::nodes;

/// What stands before a line that may be wrong.
const MARK: &str = "? ";
/// What stands behind a verdict that may be wrong.
const UNCERTAIN: &str = " (uncertain)";

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What matters most.
    Table,
    /// More nodes, and the message of the event.
    Wide,
}

impl Detail {
    fn nodes(self) -> usize {
        if self == Detail::Wide { 20 } else { 3 }
    }

    fn candidates(self) -> usize {
        if self == Detail::Wide { 20 } else { 5 }
    }
}

/// An explanation as text.
pub fn render(explanation: &Explanation, detail: Detail) -> String {
    let mut text = String::new();
    if let Some(asked) = &explanation.scheduler {
        push_report(&mut text, asked);
    }
    for note in &explanation.notes {
        push_line(&mut text, note);
    }
    let alike = match explanation.alike.len() {
        0 => String::new(),
        1 => format!(", as {} would", explanation.alike[0]),
        more => format!(", as {more} others would"),
    };
    let pod = &explanation.pod;
    let mark = if explanation.is_uncertain { UNCERTAIN } else { "" };
    match &explanation.verdict {
        Verdict::Held { plugin, reason } => {
            push_line(&mut text, &format!("{pod} is not tried{alike}{mark}: {reason} ({plugin})"));
        }
        Verdict::Failed { error } => {
            push_line(&mut text, &format!("{pod} cannot be decided{alike}{mark}: {error}"));
        }
        Verdict::Placed(placement) => {
            push_line(&mut text, &format!("{pod} would go to {}{alike}{mark}", placement.node));
            push_doubts(&mut text, &explanation.doubts);
            render_placement(&mut text, placement, detail);
        }
        Verdict::Pending(obstacles) => {
            let why = match obstacles.nodes {
                0 => "there is no node".to_owned(),
                count => format!("none of {} fits", nodes(count)),
            };
            push_line(&mut text, &format!("{pod} would stay pending{alike}{mark}: {why}"));
            push_doubts(&mut text, &explanation.doubts);
            render_obstacles(&mut text, obstacles, detail);
        }
        Verdict::PerNode(per_node) => {
            render_per_node(&mut text, &format!("{pod}{mark}"), per_node, detail);
            push_doubts(&mut text, &explanation.doubts);
        }
    }
    if matches!(explanation.verdict, Verdict::Held { .. } | Verdict::Failed { .. }) {
        push_doubts(&mut text, &explanation.doubts);
    }
    text
}

/// What may be wrong, right below what it is about.
pub(crate) fn push_doubts(text: &mut String, doubts: &[Doubt]) {
    if let Some(sentence) = doubt_sentence(doubts) {
        push_line(text, &format!("  {MARK}note: {sentence}"));
    }
}

fn render_placement(text: &mut String, placement: &Placement, detail: Detail) {
    let feasible = format!("{} of {} feasible", placement.feasible, nodes(placement.nodes));
    let tied = match placement.tied {
        0 | 1 => String::new(),
        tied => format!(", {tied} of them equally good"),
    };
    push_line(text, &format!("  {feasible}{tied}"));
    let Some(first) = placement.candidates.first() else { return };
    let mut rows = vec![vec!["NODE".to_owned(), "TOTAL".to_owned()]];
    rows[0].extend(first.scores.iter().map(|(plugin, _)| plugin.clone()));
    for candidate in placement.candidates.iter().take(detail.candidates()) {
        let mut row = vec![candidate.node.clone(), candidate.total.to_string()];
        row.extend(candidate.scores.iter().map(|(_, score)| score.to_string()));
        rows.push(row);
    }
    if !first.scores.is_empty() {
        push_table(text, &rows, &[Align::Left, Align::Right]);
    }
    for plan in &placement.plans {
        push_line(text, &format!("  {plan} first"));
    }
    if let Some(runner_up) = &placement.runner_up {
        let differences: Vec<String> = runner_up
            .differences
            .iter()
            .map(|(plugin, difference)| format!("{plugin} {difference:+}"))
            .collect();
        let (node, behind) = (&runner_up.node, runner_up.behind);
        push_line(text, &format!("  runner-up {node} is {behind} behind: {}", differences.join(", ")));
    }
}

fn render_per_node(text: &mut String, workload: &str, per_node: &PerNode, detail: Detail) {
    let PerNode { nodes: all, fits, by_eviction, obstacles, example } = per_node;
    text.push_str(&format!("{workload}: its pods fit on {fits} of {}", nodes(*all)));
    if *by_eviction > 0 {
        text.push_str(&format!(", and on {by_eviction} more once the scheduler has evicted others"));
    }
    text.push('\n');
    if !obstacles.is_empty() {
        push_obstacles(text, obstacles, detail);
    }
    if let Some(example) = example {
        match &*example.hints {
            [] => {
                text.push_str(&format!(
                    "  nothing that was tried would help by itself on {}\n",
                    example.node
                ));
            }
            hints => {
                text.push_str(&format!("  what would help on {}:\n", example.node));
                for hint in hints {
                    push_line(text, &format!("    - {}{}", mark(hint.is_uncertain), hint.text));
                }
            }
        }
    }
}

fn render_obstacles(text: &mut String, obstacles: &Obstacles, detail: Detail) {
    if obstacles.nodes == 0 {
        return;
    }
    push_obstacles(text, &obstacles.obstacles, detail);
    if let Some(preemption) = &obstacles.preemption {
        let mark = mark(preemption.is_uncertain);
        push_line(text, &format!("  {mark}{}", preemption_text(preemption, detail)));
    }
    if !obstacles.hints.is_empty() {
        push_line(text, "  what would help:");
        for hint in &obstacles.hints {
            let mut line = format!("    - {}{}", mark(hint.is_uncertain), hint.text);
            let is_named = hint.examples.iter().any(|node| hint.text.contains(node.as_str()));
            if hint.opens > 1 || !is_named {
                line.push_str(&format!(" ({})", shorten_of(&hint.examples, detail.nodes(), hint.opens)));
            }
            push_line(text, &line);
        }
    } else if obstacles.preemption.is_none() {
        push_line(text, "  nothing that was tried would help by itself");
    }
    if detail == Detail::Wide {
        push_line(text, &format!("  event: {}", obstacles.message));
    }
}

fn mark(is_uncertain: bool) -> &'static str {
    if is_uncertain { MARK } else { "" }
}

fn preemption_text(preemption: &Preemption, detail: Detail) -> String {
    let list = |pods: &[(String, i32)]| {
        let pods: Vec<String> =
            pods.iter().map(|(pod, priority)| format!("{pod} (priority {priority})")).collect();
        shorten(&pods, detail.nodes())
    };
    let Preemption { node, victims, leaving, .. } = preemption;
    let verb = if leaving.len() == 1 { "is" } else { "are" };
    match (&victims[..], &leaving[..]) {
        (victims, []) => format!("the scheduler will make room on {node} by evicting {}", list(victims)),
        ([], leaving) => {
            format!("the scheduler will wait for room on {node}: {} {verb} leaving already", list(leaving))
        }
        (victims, leaving) => format!(
            "the scheduler will make room on {node} by evicting {}; {} {verb} leaving already",
            list(victims),
            list(leaving)
        ),
    }
}

fn push_obstacles(text: &mut String, obstacles: &[Obstacle], detail: Detail) {
    let mut rows = vec![["NODES", "PLUGIN", "REASON", "FOR EXAMPLE"].map(str::to_owned).to_vec()];
    for obstacle in obstacles {
        rows.push(vec![
            obstacle.nodes.to_string(),
            obstacle.plugin.clone(),
            format!("{}{}", mark(obstacle.is_uncertain), obstacle.reason),
            shorten_of(&obstacle.examples, detail.nodes(), obstacle.nodes),
        ]);
    }
    push_table(text, &rows, &[Align::Right, Align::Left]);
}

/// What [`crate::capacity()`] found, as text.
pub fn render_capacity(capacity: &Capacity, detail: Detail) -> String {
    let mut text = String::new();
    let more = match capacity.limit {
        CapacityLimit::Enough | CapacityLimit::Stopped { .. } => "at least ",
        CapacityLimit::Full { .. } | CapacityLimit::Failed { .. } => "",
    };
    let on = nodes(capacity.nodes.len());
    let alike = match capacity.alike.len() {
        0 => String::new(),
        1 => format!(" or {}", capacity.alike[0]),
        others => format!(" or {others} others"),
    };
    push_line(&mut text, &format!("{more}{} more like {}{alike} fit, on {on}", capacity.fits, capacity.pod));
    if !capacity.nodes.is_empty() {
        let mut counts: Vec<(usize, Vec<String>)> = Vec::new();
        for node in &capacity.nodes {
            match counts.last_mut() {
                Some((fits, names)) if *fits == node.fits => names.push(node.node.clone()),
                _ => counts.push((node.fits, vec![node.node.clone()])),
            }
        }
        let mut rows = vec![["EACH", "NODES", "FOR EXAMPLE"].map(str::to_owned).to_vec()];
        for (fits, names) in &counts {
            rows.push(vec![fits.to_string(), names.len().to_string(), shorten(names, detail.nodes())]);
        }
        push_table(&mut text, &rows, &[Align::Right, Align::Right, Align::Left]);
    }
    match &capacity.limit {
        CapacityLimit::Enough => {}
        CapacityLimit::Stopped { message, .. } => text.push_str(&format!("  {message}\n")),
        CapacityLimit::Failed { error } => {
            push_line(&mut text, &format!("  the next one cannot be decided: {error}"));
        }
        CapacityLimit::Full { message, obstacles } => {
            push_line(&mut text, "  what stops the next one:");
            push_obstacles(&mut text, obstacles, detail);
            if detail == Detail::Wide {
                push_line(&mut text, &format!("  event: {message}"));
            }
        }
    }
    text
}

/// Adds a line. What stands in it is from outside, and starts no other.
pub(crate) fn push_line(text: &mut String, line: &str) {
    text.push_str(&printable(line));
    text.push('\n');
}

#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Columns as wide as their widest entry; the last alignment holds for all further columns.
pub(crate) fn push_table(text: &mut String, rows: &[Vec<String>], align: &[Align]) {
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let written = match align.get(column).or(align.last()) {
                Some(Align::Right) => write!(line, "{cell:>width$}  "),
                _ => write!(line, "{cell:<width$}  "),
            };
            written.expect("writing to a string does not fail");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn shorten(names: &[String], most: usize) -> String {
    shorten_of(names, most, names.len())
}

/// The first few names, and that there are more.
fn shorten_of(names: &[String], most: usize, total: usize) -> String {
    let shown = &names[..names.len().min(most)];
    let more = if total > shown.len() && !shown.is_empty() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
