//! Objects that are named like nodes, found by a node's row: what somebody says about each node.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::rows::Rows;
use super::{Change, Cluster, ObjectChange, Row, Snapshot};
use crate::lookups::{self, Lookup};
use crate::object::{Kind, KindId, Object, ObjectKey, as_type};

type Value = Arc<dyn Any + Send + Sync>;

/// The objects that are named like each row's node. Most clusters have a few kinds of them.
#[derive(Clone, Debug, Default)]
pub(super) struct FactTable(Rows<Facts>);

#[derive(Clone, Default)]
struct Facts(Vec<(KindId, Value)>);

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(kind, _)| kind.kind)).finish()
    }
}

impl FactTable {
    fn get(&self, Row(row): Row) -> &[(KindId, Value)] {
        let row = row as usize;
        if row < self.0.len() { &self.0.get(row).0 } else { &[] }
    }

    fn put(&mut self, Row(row): Row, kind: KindId, value: Value) {
        let row = row as usize;
        while self.0.len() <= row {
            self.0.push(Facts::default());
        }
        let facts = &mut self.0.get_mut(row).0;
        match facts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known = value,
            None => facts.push((kind, value)),
        }
    }

    /// The table with its rows moved: what was in `old_rows[n]` is in row `n` then.
    pub(super) fn moved(&self, old_rows: &[Row]) -> Self {
        let mut moved = FactTable::default();
        for old in old_rows.iter().filter(|_| self.0.len() > 0) {
            moved.0.push(Facts(self.get(*old).to_vec()));
        }
        moved
    }

    fn remove(&mut self, Row(row): Row, is_gone: impl Fn(KindId) -> bool) {
        if self.get(Row(row)).iter().any(|(kind, _)| is_gone(*kind)) {
            self.0.get_mut(row as usize).0.retain(|(kind, _)| !is_gone(*kind));
        }
    }
}

impl Snapshot {
    /// The object of kind `T` that has no namespace and is named like the node of a row. This is quicker than to look for its name.
    pub fn object_of<T: Kind>(&self, row: Row) -> Option<&T> {
        lookups::note(|| Lookup::Objects(T::ID, Some((**self.node(row).name()).into())));
        let (_, value) = self.facts.get(row).iter().find(|(kind, _)| *kind == T::ID)?;
        as_type(value)
    }
}

impl Cluster {
    /// Adds an object of another kind, or replaces the one of that name.
    pub fn put_object(&mut self, object: Object) {
        self.state.version += 1;
        self.put_fact(&object);
        if self.changes.are_wanted() {
            let old = self.state.objects.find(object.kind, &object.key);
            let change = ObjectChange { old, new: Some(object.clone()) };
            self.changes.note(Change::Object(Box::new(change)));
        }
        let (kind, namespace) = (object.kind, object.key.namespace.clone());
        self.state.objects.put(object);
        self.sum_anew(kind, &namespace);
    }

    /// Removes an object of another kind; false if there is none of that name.
    pub fn remove_object(&mut self, kind: KindId, key: &ObjectKey) -> bool {
        let Some(old) = self.state.objects.find(kind, key) else { return false };
        self.state.objects.remove(kind, key);
        self.sum_anew(kind, &key.namespace);
        self.state.version += 1;
        self.remove_fact(kind, key);
        self.changes.note(Change::Object(Box::new(ObjectChange { old: Some(old), new: None })));
        true
    }

    /// Something is to be said about a node that is not in the table, by its name: it is looked at again. False if there is no such node.
    pub fn note_node(&mut self, name: &str) -> bool {
        let Some(row) = self.state.row_of(name) else { return false };
        self.state.version += 1;
        self.changes.note(Change::Fact { row });
        true
    }

    /// An object has come or changed: if it is named like a node, it says something about that node.
    fn put_fact(&mut self, object: &Object) {
        if let Some(row) = self.row_named(&object.key) {
            self.state.facts.put(row, object.kind, object.value.clone());
            self.changes.note(Change::Fact { row });
        }
    }

    /// An object has gone.
    fn remove_fact(&mut self, kind: KindId, key: &ObjectKey) {
        if let Some(row) = self.row_named(key) {
            self.state.facts.remove(row, |known| known == kind);
            self.changes.note(Change::Fact { row });
        }
    }

    /// A node has come: what is said about it was perhaps there before.
    pub(super) fn gather_facts(&mut self, row: Row, name: &str) {
        for (kind, value) in self.state.objects.named(name) {
            self.state.facts.put(row, kind, value);
        }
    }

    /// A node has gone.
    pub(super) fn drop_facts(&mut self, row: Row) {
        self.state.facts.remove(row, |_| true);
    }

    fn row_named(&self, key: &ObjectKey) -> Option<Row> {
        if key.namespace.is_empty() { self.state.row_of(&key.name) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::{Decoded, Decoder};

    #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
    struct Load(i64);

    #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
    struct Zone(i64);

    impl Kind for Load {
        const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Load", plural: "loads" };
    }

    impl Kind for Zone {
        const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Zone", plural: "zones" };
    }

    fn put_node(cluster: &mut Cluster, name: &str) -> Row {
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        let Ok(Decoded::Node(words)) = Decoder::default().decode(&node.to_string()) else {
            panic!("it is a node")
        };
        cluster.put_node(&words)
    }

    fn load(cluster: &mut Cluster, row: Row) -> Option<i64> {
        cluster.snapshot().object_of::<Load>(row).map(|Load(load)| *load)
    }

    #[test]
    fn what_is_said_about_a_node_follows_objects_and_nodes() {
        let mut cluster = Cluster::default();
        cluster.put_object(Object::new("", "b", Load(1)));
        let (a, b) = (put_node(&mut cluster, "a"), put_node(&mut cluster, "b"));
        assert_eq!((load(&mut cluster, a), load(&mut cluster, b)), (None, Some(1)), "it was there before");
        cluster.put_object(Object::new("", "a", Load(2)));
        cluster.put_object(Object::new("", "a", Zone(7)));
        cluster.put_object(Object::new("", "b", Load(3)));
        cluster.put_object(Object::new("team", "a", Load(9)));
        let before = cluster.snapshot().clone();
        assert_eq!((load(&mut cluster, a), load(&mut cluster, b)), (Some(2), Some(3)));
        let key = |name: &str| ObjectKey { namespace: "".into(), name: name.into() };
        assert!(cluster.remove_object(Load::ID, &key("a")));
        assert_eq!(load(&mut cluster, a), None);
        assert_eq!(cluster.snapshot().object_of::<Zone>(a), Some(&Zone(7)), "others stay");
        assert_eq!(before.object_of::<Load>(a), Some(&Load(2)), "a snapshot stays as it was");

        // Another node takes the row; its own object was there all along.
        cluster.put_object(Object::new("", "c", Load(4)));
        cluster.remove_node("b");
        let c = put_node(&mut cluster, "c");
        assert_eq!((c, load(&mut cluster, c)), (b, Some(4)));
        let d = put_node(&mut cluster, "d");
        assert_eq!(load(&mut cluster, d), None);
    }
}
