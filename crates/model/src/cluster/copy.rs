//! A copy of the cluster to try things out on.

use std::sync::Arc;

use super::order::ZoneOrder;
use super::rows::Rows;
use super::{Changes, Cluster, NodeRow, Row, Snapshot};
use crate::intern::Interner;

impl Cluster {
    /// The same cluster once more, with the nodes in rows by name, and no row between them that waits for a node. What
    /// happens to the copy is not seen here.
    ///
    /// In such a table the first of some rows is also the one with the smallest name. The order in which nodes are examined
    /// stays as it is.
    pub fn copy_by_name(&mut self) -> Cluster {
        let before = self.snapshot().clone();
        let mut old_rows: Vec<Row> = before.rows().to_vec();
        old_rows.sort_unstable_by(|a, b| before.node(*a).name().cmp(before.node(*b).name()));
        let in_place = old_rows.len() == before.row_count()
            && old_rows.iter().enumerate().all(|(new, old)| old.0 as usize == new);
        let copy = self.clone();
        if in_place {
            return copy;
        }
        let (state, zones) = rearranged(&before, &self.zones, &old_rows);
        Cluster { state, zones, free_rows: Vec::new(), ..copy }
    }
}

impl Clone for Cluster {
    fn clone(&self) -> Self {
        Cluster {
            state: self.state.clone(),
            // Values that pods share go on being shared. What comes later finds those again that came later: to copy the tables would
            // take long, and keep in use what nobody uses.
            interner: Interner::default(),
            zones: self.zones.clone(),
            order_is_stale: self.order_is_stale,
            ordered: self.ordered.clone(),
            free_rows: self.free_rows.clone(),
            bound: self.bound.clone(),
            homeless: self.homeless.clone(),
            nominations: self.nominations.clone(),
            // Whoever keeps something worked out from the clone has yet to look at it.
            changes: Changes::default(),
            ledger: self.ledger.clone(),
        }
    }
}

/// The table with its rows moved: what was in `old_rows[n]` is in row `n` then.
fn rearranged(before: &Snapshot, zones: &ZoneOrder, old_rows: &[Row]) -> (Snapshot, ZoneOrder) {
    let mut nodes = Rows::<NodeRow>::default();
    let mut new_rows = vec![Row(0); before.row_count()];
    for (new, old) in (0u32..).zip(old_rows) {
        nodes.push(before.nodes.get(old.0 as usize).clone());
        new_rows[old.0 as usize] = Row(new);
    }
    let moved = |row: Row| new_rows[row.0 as usize];
    let by_name = before.rows_by_name.iter().map(|(name, row)| (name.clone(), moved(*row)));
    let state = Snapshot {
        nodes,
        facts: before.facts.moved(old_rows),
        claims: before.claims.moved(moved),
        rows_by_name: Arc::new(by_name.collect()),
        order: Arc::new(before.order.iter().map(|row| moved(*row)).collect()),
        ..before.clone()
    };
    (state, zones.moved(moved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeWords;
    use crate::object::{Kind, KindId, Object};
    use crate::pod::Pod;

    #[derive(Debug, serde::Deserialize)]
    struct Said(String);

    impl Kind for Said {
        const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Said", plural: "said" };
    }

    fn node(name: &str, zone: &str) -> NodeWords {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"topology.kubernetes.io/zone":"{zone}"}}}},"status":{{"allocatable":{{"pods":"9"}}}}}}"#
        );
        serde_json::from_str(&json).expect("a node")
    }

    fn pod(uid: &str, node: &str) -> Arc<Pod> {
        Arc::new(Pod { uid: uid.into(), node_name: Some(node.into()), ..Pod::default() })
    }

    /// Everything that rows have a part in, by name, and the names in the order of rows.
    fn words(cluster: &mut Cluster) -> (Vec<String>, Vec<String>) {
        let snapshot = cluster.snapshot();
        let examined = snapshot.nodes().map(|node| {
            assert_eq!(snapshot.row_of(node.name()), Some(node.row()));
            let mut uids: Vec<&str> = node.pods().iter().map(|pod| &*pod.uid).collect();
            uids.sort_unstable();
            let said = snapshot.object_of::<Said>(node.row()).map(|Said(what)| what);
            format!("{} {:?} {uids:?} {said:?}", node.name(), node.labels().collect::<Vec<_>>())
        });
        let mut rows = snapshot.rows().to_vec();
        rows.sort_unstable();
        (examined.collect(), rows.iter().map(|row| snapshot.node(*row).name().to_string()).collect())
    }

    #[test]
    fn a_copy_says_the_same_with_rows_by_name_and_goes_its_own_way() {
        for names in [&["a", "b", "c", "d"][..], &["d", "b", "c", "a"]] {
            let mut cluster = Cluster::default();
            for (name, zone) in names.iter().zip(["x", "x", "y", "y"]) {
                cluster.put_node(&node(name, zone));
                cluster.add_pod(pod(&format!("on-{name}"), name)).expect("a pod");
                cluster.put_object(Object::new("", name, Said(format!("of {name}"))));
            }
            cluster.add_pod(pod("lost", "nowhere")).expect("a pod");
            cluster.remove_node("b");
            let (examined, _) = words(&mut cluster);

            let mut copy = cluster.copy_by_name();
            assert_eq!(words(&mut copy), (examined.clone(), ["a", "c", "d"].map(str::to_owned).to_vec()));
            assert_eq!(copy.snapshot().row_count(), 3);
            assert_eq!(copy.bound_pod_count(), cluster.bound_pod_count());

            copy.add_pod(pod("new", "a")).expect("a pod");
            copy.remove_pod("on-c");
            copy.put_node(&node("nowhere", "x"));
            assert_eq!(copy.snapshot().node_count(), 4);
            assert_eq!(words(&mut cluster).0, examined, "the original stays as it was");

            // Nodes that come from now on are examined in the same turn.
            let mut again = cluster.copy_by_name();
            again.put_node(&node("e", "y"));
            cluster.put_node(&node("e", "y"));
            assert_eq!(words(&mut again).0, words(&mut cluster).0);
        }
    }
}
