//! The order in which nodes are examined: one of each zone in turn, so that a sample covers all zones.

use std::sync::Arc;

use super::{Cluster, Row};
use crate::labels::LabelLookup;

/// Nodes by zone; zones in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub(super) struct ZoneOrder {
    zones: Vec<(String, Vec<Row>)>,
}

impl ZoneOrder {
    pub(super) fn add(&mut self, zone: &str, row: Row) {
        match self.zones.iter_mut().find(|(candidate, _)| candidate == zone) {
            Some((_, rows)) => rows.push(row),
            None => self.zones.push((zone.to_owned(), vec![row])),
        }
    }

    pub(super) fn remove(&mut self, zone: &str, row: Row) {
        if let Some(index) = self.zones.iter().position(|(candidate, _)| candidate == zone) {
            let rows = &mut self.zones[index].1;
            rows.retain(|candidate| *candidate != row);
            if rows.is_empty() {
                self.zones.remove(index);
            }
        }
    }

    /// The same nodes in other rows.
    pub(super) fn moved(&self, moved: impl Fn(Row) -> Row) -> Self {
        let zones = self.zones.iter().map(|(zone, rows)| {
            let rows = rows.iter().map(|row| moved(*row)).collect();
            (zone.clone(), rows)
        });
        ZoneOrder { zones: zones.collect() }
    }

    /// The first node of every zone, then the second of every zone, and so on.
    pub(super) fn rows(&self) -> Vec<Row> {
        let deepest = self.zones.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
        let turn = |index| self.zones.iter().filter_map(move |(_, rows)| rows.get(index).copied());
        (0..deepest).flat_map(turn).collect()
    }
}

impl Cluster {
    /// Puts the nodes in order after some have come or gone.
    #[cold]
    pub(super) fn put_in_order(&mut self) {
        self.order_is_stale = false;
        self.state.order = Arc::new(self.reordered());
    }

    /// The order after nodes have come or gone. As upstream, a node that went and came back between two snapshots
    /// did neither: if that is all that happened, everything stays in its place.
    fn reordered(&mut self) -> Vec<Row> {
        if self.ordered.len() == self.state.rows_by_name.len() {
            let rows: Option<Vec<Row>> = self.ordered.iter().map(|name| self.state.row_of(name)).collect();
            if let Some(rows) = rows {
                return rows;
            }
        }
        let rows = self.zones.rows();
        self.ordered = rows.iter().map(|row| self.state.node(*row).name().clone()).collect();
        rows
    }
}

/// The zone that a node is examined in: region and zone, the deprecated labels first.
pub(super) fn zone_of(labels: &impl LabelLookup) -> String {
    let either = |old, new| labels.label(old).or_else(|| labels.label(new)).unwrap_or_default();
    let zone = either("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
    let region = either("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region");
    if zone.is_empty() && region.is_empty() { String::new() } else { format!("{region}:\0:{zone}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;

    #[test]
    fn zones_take_turns() {
        let mut order = ZoneOrder::default();
        for (zone, row) in [("a", 0), ("a", 1), ("b", 2), ("c", 3), ("a", 4), ("b", 5)] {
            order.add(zone, Row(row));
        }
        let rows = |order: &ZoneOrder| order.rows().iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(rows(&order), [0, 2, 3, 1, 5, 4]);
        order.remove("a", Row(0));
        order.remove("c", Row(3));
        assert_eq!(rows(&order), [1, 2, 4, 5]);
    }

    #[test]
    fn deprecated_zone_labels_win() {
        let labels: Labels = [
            ("failure-domain.beta.kubernetes.io/zone", "old"),
            ("topology.kubernetes.io/zone", "new"),
            ("topology.kubernetes.io/region", "r"),
        ]
        .into_iter()
        .collect();
        assert_eq!(zone_of(&labels), "r:\0:old");
        assert_eq!(zone_of(&Labels::default()), "");
    }
}
