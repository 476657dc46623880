//! Which rows have pods that use a claim: kept as pods come and go, so that nobody has to look for them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Row, Snapshot};
use crate::pod::{Pod, Volume, VolumeSource};

/// The parts of a table, told apart by the last byte of a claim's name. A clone copies a pointer for each, and the first change of
/// a part that is shared copies what is in it.
const PARTS: usize = 16;

type Part = FxHashMap<Box<str>, Vec<(Row, u32)>>;

/// The rows with pods that use each claim. Pods on nodes that are not there count nowhere.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimTable {
    parts: Arc<[Arc<Part>; PARTS]>,
    /// How many pods have disks that are written in the pods themselves.
    with_own_disks: usize,
}

/// The rows with pods that use a claim, and how many pods each row has of them.
#[derive(Clone, Copy, Debug)]
pub struct ClaimUsers<'a> {
    /// Those that name the claim.
    pub named: &'a [(Row, u32)],
    /// Those that it was, or will be, made for.
    pub ephemeral: &'a [(Row, u32)],
}

impl ClaimUsers<'_> {
    /// Whether no pod on a node uses the claim.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.ephemeral.is_empty()
    }

    /// The rows, some perhaps twice.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.named.iter().chain(self.ephemeral).map(|(row, _)| *row)
    }
}

impl Snapshot {
    /// The rows with pods that use a claim.
    pub fn claim_users(&self, namespace: &str, name: &str) -> ClaimUsers<'_> {
        let users = |sort: Sort| {
            let key = key(sort, namespace, &[name]);
            self.claims.parts[part_of(&key)].get(&*key).map_or(&[][..], Vec::as_slice)
        };
        ClaimUsers { named: users(Sort::Named), ephemeral: users(Sort::Ephemeral) }
    }

    /// Whether a pod on a node has a disk that is written in the pod itself, and not in a volume of the cluster.
    pub fn has_pods_with_own_disks(&self) -> bool {
        self.claims.with_own_disks > 0
    }
}

impl ClaimTable {
    pub(super) fn add(&mut self, pod: &Pod, row: Row) {
        if pod.spec.volumes.is_empty() {
            return;
        }
        for key in keys(pod) {
            let users = self.part_mut(&key).entry(key).or_default();
            match users.iter_mut().find(|(known, _)| *known == row) {
                Some((_, pods)) => *pods += 1,
                None => users.push((row, 1)),
            }
        }
        self.with_own_disks += usize::from(has_own_disk(pod));
    }

    /// Takes away a pod that was added with this row.
    pub(super) fn remove(&mut self, pod: &Pod, row: Row) {
        if pod.spec.volumes.is_empty() {
            return;
        }
        for key in keys(pod) {
            let part = self.part_mut(&key);
            let Some(users) = part.get_mut(&key) else { continue };
            if let Some(position) = users.iter().position(|(known, _)| *known == row) {
                users[position].1 -= 1;
                if users[position].1 == 0 {
                    users.swap_remove(position);
                }
            }
            if users.is_empty() {
                part.remove(&key);
            }
        }
        self.with_own_disks -= usize::from(has_own_disk(pod));
    }

    fn part_mut(&mut self, key: &str) -> &mut Part {
        Arc::make_mut(&mut Arc::make_mut(&mut self.parts)[part_of(key)])
    }

    /// The same pods in other rows.
    pub(super) fn moved(&self, moved: impl Fn(Row) -> Row) -> Self {
        let mut table = self.clone();
        for part in Arc::make_mut(&mut table.parts).iter_mut().filter(|part| !part.is_empty()) {
            let rows = Arc::make_mut(part).values_mut().flatten();
            rows.for_each(|(row, _)| *row = moved(*row));
        }
        table
    }
}

/// How a pod uses a claim.
#[derive(Clone, Copy)]
enum Sort {
    Named,
    Ephemeral,
}

/// What a claim is found by. Neither namespaces nor names have a slash in them.
fn key(sort: Sort, namespace: &str, name: &[&str]) -> Box<str> {
    let sort = match sort {
        Sort::Named => "n",
        Sort::Ephemeral => "e",
    };
    let mut key =
        String::with_capacity(namespace.len() + name.iter().map(|part| part.len()).sum::<usize>() + 2);
    key.push_str(sort);
    key.push_str(namespace);
    key.push('/');
    name.iter().for_each(|part| key.push_str(part));
    key.into()
}

fn keys(pod: &Pod) -> impl Iterator<Item = Box<str>> {
    let key_of = |volume: &Volume| match &volume.source {
        VolumeSource::Claim(name) => Some(key(Sort::Named, &pod.namespace, &[name])),
        VolumeSource::Ephemeral => {
            Some(key(Sort::Ephemeral, &pod.namespace, &[&pod.name, "-", &volume.name]))
        }
        _ => None,
    };
    pod.spec.volumes.iter().filter_map(key_of)
}

fn has_own_disk(pod: &Pod) -> bool {
    let is_own = |source: &VolumeSource| {
        !matches!(
            source,
            VolumeSource::Claim(_)
                | VolumeSource::Ephemeral
                | VolumeSource::Image(_)
                | VolumeSource::Csi { .. }
        )
    };
    pod.spec.volumes.iter().any(|volume| is_own(&volume.source))
}

fn part_of(key: &str) -> usize {
    key.bytes().last().map_or(0, usize::from) % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, Decoded, Decoder};

    fn put_node(cluster: &mut Cluster, name: &str) -> Row {
        let json = format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}"}}}}"#);
        let Ok(Decoded::Node(words)) = Decoder::default().decode(&json) else { panic!("a node") };
        cluster.put_node(&words)
    }

    fn add_pod(cluster: &mut Cluster, uid: &str, node: &str, volumes: &str) {
        let json = format!(
            r#"{{"metadata":{{"name":"{uid}","namespace":"a","uid":"{uid}"}},"spec":{{"nodeName":"{node}","volumes":[{volumes}]}}}}"#
        );
        let words = serde_json::from_str(&json).expect("a pod");
        let pod = Arc::new(cluster.interner().pod(words));
        cluster.add_pod(pod).expect("it can be added");
    }

    /// Rows, and how many pods each of them has.
    type Users = Vec<(u32, u32)>;

    fn users(snapshot: &Snapshot, name: &str) -> (Users, Users) {
        let plain = |rows: &[(Row, u32)]| {
            let mut rows: Vec<_> = rows.iter().map(|(row, pods)| (row.0, *pods)).collect();
            rows.sort_unstable();
            rows
        };
        let users = snapshot.claim_users("a", name);
        assert!(snapshot.claim_users("b", name).is_empty());
        assert_eq!(users.is_empty(), users.rows().next().is_none());
        (plain(users.named), plain(users.ephemeral))
    }

    #[test]
    fn users_of_claims_follow_pods_and_nodes() {
        const CLAIM: &str = r#"{"name":"d","persistentVolumeClaim":{"claimName":"data"}}"#;
        const OWN: &str = r#"{"name":"v","ephemeral":{}},{"name":"w","gcePersistentDisk":{"pdName":"x"}}"#;
        let mut cluster = Cluster::default();
        for name in ["z", "y"] {
            put_node(&mut cluster, name);
        }
        for (uid, node) in [("p", "z"), ("q", "z"), ("r", "y"), ("s", "later")] {
            add_pod(&mut cluster, uid, node, CLAIM);
        }
        assert!(!cluster.snapshot().has_pods_with_own_disks());
        add_pod(&mut cluster, "own", "y", OWN);
        let before = cluster.snapshot().clone();
        assert_eq!(users(&before, "data"), (vec![(0, 2), (1, 1)], vec![]));
        assert_eq!(users(&before, "own-v"), (vec![], vec![(1, 1)]));
        assert!(before.has_pods_with_own_disks());
        assert_eq!(
            users(&before.without_pods([(Row(0), "p"), (Row(1), "r")]), "data"),
            (vec![(0, 1)], vec![])
        );

        let mut copy = cluster.copy_by_name();
        assert_eq!(users(copy.snapshot(), "data"), (vec![(0, 1), (1, 2)], vec![]));
        cluster.remove_pod("p");
        cluster.remove_node("y");
        put_node(&mut cluster, "later");
        assert_eq!(users(cluster.snapshot(), "data"), (vec![(0, 1), (1, 1)], vec![]));
        assert_eq!(users(cluster.snapshot(), "own-v"), (vec![], vec![]));
        assert!(!cluster.snapshot().has_pods_with_own_disks());
        put_node(&mut cluster, "y");
        assert_eq!(users(cluster.snapshot(), "data"), (vec![(0, 1), (1, 1), (2, 1)], vec![]));
        for uid in ["q", "r", "s", "own"] {
            cluster.remove_pod(uid);
        }
        assert_eq!(users(cluster.snapshot(), "data"), (vec![], vec![]));
        assert!(cluster.snapshot().claims.parts.iter().all(|part| part.is_empty()), "nothing is left behind");
        assert_eq!(users(&before, "data"), (vec![(0, 2), (1, 1)], vec![]), "a snapshot stays as it was");
    }
}
