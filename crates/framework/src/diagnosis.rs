//! Why a pod fits nowhere.

use std::collections::{BTreeMap, BTreeSet};

use supercargo_model::{Row, Snapshot};

use crate::status::{Code, Status};

/// What the filters said about each node, when none was feasible.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// The nodes that were looked at, with the first rejection of each.
    pub nodes: BTreeMap<Row, Status>,
    /// What holds for all nodes that were not looked at.
    pub others: Status,
    /// The message of the PreFilter plugin that rejected the pod outright.
    pub pre_filter_message: Option<String>,
    /// The plugins that rejected the pod; it waits for events that they react to.
    pub unschedulable_plugins: BTreeSet<&'static str>,
    /// Those of them that wait for something outside.
    pub pending_plugins: BTreeSet<&'static str>,
}

impl Diagnosis {
    /// Takes note of who rejected the pod.
    pub fn note_plugin(&mut self, status: &Status) {
        let Some(plugin) = status.plugin() else { return };
        if status.is_rejected() {
            self.unschedulable_plugins.insert(plugin);
        }
        if status.code() == Code::Pending {
            self.pending_plugins.insert(plugin);
        }
    }

    /// The message that people get to read, such as `0/3 nodes are available: 3 Insufficient cpu.`
    pub fn message(&self, node_count: usize, post_filter_message: &str) -> String {
        let looked_at = self.nodes.values().map(|status| (status, 1));
        let others = (&self.others, node_count.saturating_sub(self.nodes.len()));
        let counts = looked_at.chain([others]);
        unfit_message(node_count, self.pre_filter_message.as_deref(), counts, post_filter_message)
    }
}

impl Rejections for Diagnosis {
    fn pre_filter_message(&self) -> Option<&str> {
        self.pre_filter_message.as_deref()
    }

    fn status(&self, row: Row) -> &Status {
        self.nodes.get(&row).unwrap_or(&self.others)
    }

    fn count(&self, cluster: &Snapshot, code: Code) -> usize {
        self.rows(cluster, code).len()
    }
}

/// Why a pod fits nowhere, for whoever tries to change that.
pub trait Rejections {
    /// The message of the PreFilter plugin that rejected the pod outright.
    fn pre_filter_message(&self) -> Option<&str>;

    /// What was said about a node.
    fn status(&self, row: Row) -> &Status;

    /// How many nodes were rejected with this code.
    fn count(&self, cluster: &Snapshot, code: Code) -> usize;

    /// The nodes that were rejected with this code, in the order in which nodes are examined.
    fn rows(&self, cluster: &Snapshot, code: Code) -> Vec<Row> {
        cluster.rows().iter().copied().filter(|row| self.status(*row).code() == code).collect()
    }
}

/// The message that people get to read when a pod fits nowhere: what PreFilter said, or how often each reason was given,
/// sorted as text, and then what PostFilter said.
pub fn unfit_message<'a>(
    node_count: usize,
    pre_filter_message: Option<&str>,
    counts: impl Iterator<Item = (&'a Status, usize)>,
    post_filter_message: &str,
) -> String {
    let mut message = format!("0/{node_count} nodes are available:");
    match pre_filter_message {
        Some(text) if !text.is_empty() => message.push_str(&format!(" {text}.")),
        _ => {
            let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
            for (status, count) in counts.filter(|(_, count)| *count > 0) {
                for reason in status.reasons() {
                    *reasons.entry(reason).or_default() += count;
                }
            }
            let mut lines: Vec<String> =
                reasons.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
            lines.sort();
            if !lines.is_empty() {
                message.push_str(&format!(" {}.", lines.join(", ")));
            }
        }
    }
    if !post_filter_message.is_empty() {
        message.push_str(&format!(" {post_filter_message}"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted_as_text() {
        let mut diagnosis = Diagnosis::default();
        for row in 0..12 {
            let reason = if row < 10 { "Insufficient cpu" } else { "Too many pods" };
            diagnosis.nodes.insert(Row(row), Status::unschedulable(reason));
        }
        assert_eq!(
            diagnosis.message(12, ""),
            "0/12 nodes are available: 10 Insufficient cpu, 2 Too many pods."
        );
        diagnosis.others = Status::unresolvable("elsewhere");
        assert_eq!(
            diagnosis.message(13, "after."),
            "0/13 nodes are available: 1 elsewhere, 10 Insufficient cpu, 2 Too many pods. after."
        );
        diagnosis.pre_filter_message = Some("no".to_owned());
        assert_eq!(diagnosis.message(13, ""), "0/13 nodes are available: no.");
    }

    #[test]
    fn a_pod_fits_nowhere_without_a_word_of_why() {
        let mut diagnosis = Diagnosis::default();
        assert_eq!(diagnosis.message(2, ""), "0/2 nodes are available:");
        assert_eq!(diagnosis.message(2, "not found"), "0/2 nodes are available: not found");
        diagnosis.pre_filter_message = Some(String::new());
        assert_eq!(diagnosis.message(2, ""), "0/2 nodes are available:", "as if nothing had been said");
    }

    #[test]
    fn a_node_with_several_reasons_counts_for_each() {
        let reasons = ["Insufficient cpu".into(), "Insufficient memory".into()];
        let diagnosis = Diagnosis {
            nodes: BTreeMap::from([
                (Row(0), Status::new(Code::Unschedulable, reasons)),
                (Row(1), Status::unschedulable("Insufficient cpu")),
            ]),
            ..Diagnosis::default()
        };
        let message = "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu.";
        assert_eq!(diagnosis.message(2, ""), message);
    }

    #[test]
    fn who_rejected_is_noted_and_who_waits_as_well() {
        let mut diagnosis = Diagnosis::default();
        diagnosis.note_plugin(&Status::unschedulable("anonymous"));
        diagnosis.note_plugin(&Status::error("broken").from_plugin("Broken"));
        diagnosis.note_plugin(&Status::unresolvable("no").from_plugin("Never"));
        diagnosis.note_plugin(&Status::new(Code::Pending, []).from_plugin("Later"));
        assert_eq!(diagnosis.unschedulable_plugins, BTreeSet::from(["Later", "Never"]));
        assert_eq!(diagnosis.pending_plugins, BTreeSet::from(["Later"]));
    }
}
