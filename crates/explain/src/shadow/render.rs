//! Comparisons for people.

use std::collections::BTreeMap;

use super::comparison::{Comparison, Difference, Judgement};
use super::summary::Summary;

/// How many plugins of each kind a summary names.
const PLUGINS_MAX: usize = 5;

/// A comparison as a line.
pub fn render_comparison(comparison: &Comparison) -> String {
    let Comparison { pod, theirs, ours, judgement, .. } = comparison;
    let ours = ours.as_deref().unwrap_or("none");
    let compared = |word: &str, Difference { by, plugins }: &Difference| {
        format!("{word:<8}  {pod}: {theirs} is {by} {word} than {ours}: {}\n", points(plugins))
    };
    match judgement {
        Judgement::Same => format!("same      {pod}: {theirs}\n"),
        Judgement::Tied => format!("tied      {pod}: {theirs} is as good as {ours}\n"),
        Judgement::Better(difference) => compared("better", difference),
        Judgement::Worse(difference) => compared("worse", difference),
        Judgement::Rejected { plugin, reason } => {
            let plugin = plugin.as_ref().map(|plugin| format!(" ({plugin})")).unwrap_or_default();
            format!("rejected  {pod}: {theirs}: {reason}{plugin}; ours is {ours}\n")
        }
    }
}

fn points(plugins: &BTreeMap<String, i64>) -> String {
    let mut plugins: Vec<(&String, &i64)> = plugins.iter().collect();
    plugins.sort_by_key(|(_, points)| -points.abs());
    let words: Vec<String> = plugins.iter().map(|(plugin, points)| format!("{plugin} {points:+}")).collect();
    words.join(", ")
}

/// A summary as text.
pub fn render_summary(summary: &Summary) -> String {
    if summary.pods == 0 {
        return format!("no pod was bound{}\n", missed(summary));
    }
    let mut text = format!("{} compared{}\n", pods(summary.pods), missed(summary));
    for (name, count, meaning) in [
        ("same", summary.same, "their node is ours"),
        ("tied", summary.tied, "their node is another of the best"),
        ("better", summary.better, "their node has a higher score than ours"),
        ("worse", summary.worse, "their node has a lower score than ours"),
        ("rejected", summary.rejected, "we would not have put the pod there"),
    ] {
        text.push_str(&format!("  {name:<8}  {count:>8}  {:>5.1} %  {meaning}\n", summary.percent(count)));
    }
    if !summary.differences.is_empty() {
        text.push_str("  what made the difference, their nodes less ours:\n");
        for difference in summary.differences.iter().take(PLUGINS_MAX) {
            let (plugin, points) = (&difference.plugin, difference.points);
            text.push_str(&format!("    {plugin}: {points:+} for {}\n", pods(difference.pods)));
        }
    }
    if !summary.rejections.is_empty() {
        text.push_str("  what rejected their nodes:\n");
        for rejections in summary.rejections.iter().take(PLUGINS_MAX) {
            let plugin = if rejections.plugin.is_empty() { "no plugin" } else { &rejections.plugin };
            text.push_str(&format!("    {plugin}: {}\n", pods(rejections.pods)));
        }
    }
    text
}

fn missed(summary: &Summary) -> String {
    match summary.missed {
        0 => String::new(),
        missed => format!(", {} missed while the cluster was not known", pods(missed)),
    }
}

fn pods(count: u64) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}
