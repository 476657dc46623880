//! What is counted is what a naive count of all pods finds, whatever has happened; and snapshots stay as they were.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;

use super::{CountedPods, PodSet, PodSetId, Standing};
use crate::cluster::{Cluster, Row, Snapshot};
use crate::node::NodeWords;
use crate::object::{Kind, KindId, Object};
use crate::pod::{Pod, PodSpec};
use crate::{LabelLookup, Labels, seeded};

const NAMESPACES: [&str; 2] = ["a", "b"];
const KEYS: [&str; 2] = ["gang", "app"];
const VALUES: [&str; 3] = ["x", "y", "z"];
const PODS: usize = 8;
/// Names of objects in each namespace.
const OBJECTS: [&str; 2] = ["one", "two"];

#[derive(Deserialize)]
struct Quota;

#[derive(Deserialize)]
struct OldQuota;

impl Kind for Quota {
    const ID: KindId = KindId { group: "new", version: "v1", kind: "Quota", plural: "quotas" };
}

impl Kind for OldQuota {
    const ID: KindId = KindId { group: "old", ..Quota::ID };
}

#[derive(Clone, Debug)]
enum Act {
    /// A pod that is not bound stands somewhere, perhaps with other labels than before.
    Stand { pod: usize, labels: [Option<usize>; 2], standing: Standing },
    /// A pod is assumed on the node.
    Bind { pod: usize, labels: [Option<usize>; 2] },
    /// A pod is told to be bound, by itself or instead of an earlier state.
    Update { pod: usize, labels: [Option<usize>; 2] },
    /// A bound pod is gone.
    Unbind(usize),
    /// A pod that is not bound is gone.
    Clear(usize),
    /// Other things are counted.
    Count(CountedPods),
    /// An object is there, or not: its namespace, whether it is of the old kind, and its name.
    Object { place: (usize, bool, usize), is_there: bool },
}

/// All pods, and the objects that are there.
#[derive(Default)]
struct World {
    pods: BTreeMap<usize, Known>,
    objects: BTreeSet<(usize, bool, usize)>,
}

/// What is known of a pod.
#[derive(Clone, Debug)]
struct Known {
    pod: Arc<Pod>,
    standing: Standing,
    is_bound: bool,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let labels = || [prop::option::of(0..VALUES.len()), prop::option::of(0..VALUES.len())];
    let standing = prop::sample::select(Standing::ALL.to_vec());
    let act = prop_oneof![
        5 => (0..PODS, labels(), standing).prop_map(|(pod, labels, standing)| Act::Stand { pod, labels, standing }),
        3 => (0..PODS, labels()).prop_map(|(pod, labels)| Act::Bind { pod, labels }),
        3 => (0..PODS, labels()).prop_map(|(pod, labels)| Act::Update { pod, labels }),
        2 => (0..PODS).prop_map(Act::Unbind),
        2 => (0..PODS).prop_map(Act::Clear),
        1 => counted().prop_map(Act::Count),
        3 => ((0..NAMESPACES.len(), any::<bool>(), 0..OBJECTS.len()), any::<bool>())
            .prop_map(|(place, is_there)| Act::Object { place, is_there }),
    ];
    prop::collection::vec(act, 0..60)
}

fn counted() -> impl Strategy<Value = CountedPods> {
    (any::<[bool; 2]>(), any::<bool>(), any::<bool>()).prop_map(|(keys, by_namespace, finished)| {
        let lists = if by_namespace { kind_lists() } else { Vec::new() };
        CountedPods {
            placed_with: lists.into_iter().collect(),
            labels: KEYS
                .iter()
                .zip(keys)
                .filter(|(_, is_read)| *is_read)
                .map(|(key, _)| (*key).into())
                .collect(),
            by_namespace,
            finished,
        }
    })
}

/// The kinds whose namespaces are added up.
fn kind_lists() -> Vec<Vec<KindId>> {
    vec![vec![Quota::ID], vec![Quota::ID, OldQuota::ID]]
}

fn pod(number: usize, labels: [Option<usize>; 2], node: Option<&str>) -> Arc<Pod> {
    let labels: Labels = (KEYS.iter().zip(labels))
        .filter_map(|(key, value)| Some(((*key).to_owned(), VALUES[value?].to_owned())))
        .collect();
    let mut spec = PodSpec::default();
    // Every set of pods has a sum of its own.
    spec.requests.resources.milli_cpu = 1 << number;
    Arc::new(Pod {
        name: format!("pod-{number}").into(),
        uid: number.to_string().into(),
        namespace: NAMESPACES[number % NAMESPACES.len()].into(),
        labels: labels.into(),
        spec: spec.into(),
        node_name: node.map(Into::into),
        ..Pod::default()
    })
}

/// Where every pod of a set stands, and on which node.
fn words(set: &PodSet<'_>) -> Vec<String> {
    let words: Vec<String> =
        set.iter().map(|known| format!("{} {:?} {:?}", known.pod.uid, known.standing, known.node)).collect();
    assert_eq!((words.len(), words.is_empty()), (set.len(), set.is_empty()));
    for standing in Standing::ALL {
        let count = set.iter().filter(|known| known.standing == standing).count();
        assert_eq!((set.count(standing), set.counts().of(standing)), (count, count));
    }
    words
}

/// All that a snapshot says about pods.
fn all_words(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let pods = snapshot.pods();
    let Some(counted) = pods.counted() else { return Vec::new() };
    let mut all = Vec::new();
    for (key, value) in counted.labels.iter().flat_map(|key| VALUES.map(|value| (key, value))) {
        all.push(words(&pods.by_label(key, value)));
        all.extend(NAMESPACES.map(|namespace| words(&pods.by_label_in(namespace, key, value))));
    }
    if counted.by_namespace {
        all.extend(NAMESPACES.map(|namespace| words(&pods.by_namespace(namespace))));
        let placed = NAMESPACES.map(|namespace| pods.placed_requests_in(namespace));
        all.push(placed.map(|placed| placed.map_or(0, |placed| placed.milli_cpu).to_string()).into());
        let plain = NAMESPACES.map(|namespace| pods.placed_plain_requests_in(namespace));
        all.push(plain.map(|placed| placed.map_or(0, |placed| placed.milli_cpu).to_string()).into());
        for kinds in kind_lists() {
            let sums = [pods.placed_requests_with(&kinds), pods.placed_plain_requests_with(&kinds)];
            all.push(sums.map(|sum| sum.milli_cpu.to_string()).into());
        }
    }
    all
}

/// The names of all sets by label, and what a snapshot says about them.
fn sets(snapshot: &Snapshot) -> Vec<(Option<PodSetId>, Vec<String>)> {
    let pods = snapshot.pods();
    let Some(counted) = pods.counted() else { return Vec::new() };
    let mut sets = Vec::new();
    for (key, value) in counted.labels.iter().flat_map(|key| VALUES.map(|value| (key, value))) {
        sets.extend(NAMESPACES.map(|namespace| {
            let id = pods.id_by_label_in(namespace, key, value);
            let set = pods.by_label_in(namespace, key, value);
            assert_eq!(id.is_some(), !set.is_empty());
            (id, words(&set))
        }));
    }
    sets
}

/// The same, by looking at every pod.
fn naive_words(counted: &CountedPods, World { pods: known, objects }: &World) -> Vec<Vec<String>> {
    let select = |is_meant: &dyn Fn(&Pod) -> bool| -> Vec<String> {
        let mut meant: Vec<&Known> = known.values().filter(|known| is_meant(&known.pod)).collect();
        meant.retain(|known| counted.finished || known.standing != Standing::Finished);
        meant.sort_by_key(|known| (known.pod.namespace.clone(), known.pod.uid.clone()));
        let word = |known: &Known| {
            let node = known.is_bound.then(|| Arc::<str>::from("n"));
            format!("{} {:?} {node:?}", known.pod.uid, known.standing)
        };
        meant.into_iter().map(word).collect()
    };
    let mut all = Vec::new();
    for (key, value) in counted.labels.iter().flat_map(|key| VALUES.map(|value| (key, value))) {
        all.push(select(&|pod| pod.labels.label(key) == Some(value)));
        all.extend(NAMESPACES.map(|namespace| {
            select(&|pod| *pod.namespace == *namespace && pod.labels.label(key) == Some(value))
        }));
    }
    if counted.by_namespace {
        all.extend(NAMESPACES.map(|namespace| select(&|pod| *pod.namespace == *namespace)));
        let placed = NAMESPACES.map(|namespace| {
            let of_namespace = known.values().filter(|known| *known.pod.namespace == *namespace);
            let placed = of_namespace.filter(|known| known.standing.has_node());
            placed.map(|known| known.pod.requests().resources.milli_cpu).sum::<i64>().to_string()
        });
        // No pod here has a sidecar.
        all.extend([placed.clone().into(), placed.clone().into()]);
        for kinds in kind_lists() {
            let is_meant = |namespace: usize| {
                let of_namespace = objects.iter().filter(|(place, ..)| *place == namespace);
                { of_namespace }.any(|(_, is_old, _)| !is_old || kinds.contains(&OldQuota::ID))
            };
            let meant = (0..NAMESPACES.len()).filter(|namespace| is_meant(*namespace));
            let sum: i64 = meant.map(|namespace| placed[namespace].parse::<i64>().expect("a number")).sum();
            all.push(vec![sum.to_string(); 2]);
        }
    }
    all
}

fn apply(
    cluster: &mut Cluster,
    row: Row,
    World { pods: known, objects }: &mut World,
    act: Act,
) -> Option<CountedPods> {
    match act {
        Act::Object { place, is_there } => {
            let (namespace, is_old, name) = (NAMESPACES[place.0], place.1, OBJECTS[place.2]);
            let object = if is_old {
                Object::new(namespace, name, OldQuota)
            } else {
                Object::new(namespace, name, Quota)
            };
            if is_there {
                objects.insert(place);
                cluster.put_object(object);
            } else {
                assert_eq!(cluster.remove_object(object.kind, &object.key), objects.remove(&place));
            }
        }
        Act::Stand { pod: number, labels, standing } => {
            let pod = pod(number, labels, None);
            cluster.set_standing(&pod, standing);
            match known.get_mut(&number) {
                // Of a bound pod only that it waits at Permit can be said.
                Some(known) if known.is_bound => {
                    known.standing = if standing == Standing::AtPermit { standing } else { Standing::Bound };
                }
                _ => _ = known.insert(number, Known { pod, standing, is_bound: false }),
            }
        }
        Act::Bind { pod: number, labels } => {
            let pod = pod(number, labels, None);
            let is_bound = known.get(&number).is_some_and(|known| known.is_bound);
            assert_eq!(cluster.bind_pod(&pod, row).is_err(), is_bound);
            if !is_bound {
                known.insert(number, Known { pod, standing: Standing::Bound, is_bound: true });
            }
        }
        Act::Update { pod: number, labels } => {
            let pod = pod(number, labels, Some("n"));
            cluster.update_pod(pod.clone()).expect("a pod with a node and a UID");
            known.insert(number, Known { pod, standing: Standing::Bound, is_bound: true });
        }
        Act::Unbind(number) => {
            let is_bound = known.get(&number).is_some_and(|known| known.is_bound);
            assert_eq!(cluster.remove_pod(&number.to_string()).is_some(), is_bound);
            if is_bound {
                known.remove(&number);
            }
        }
        Act::Clear(number) => {
            cluster.clear_standing(&number.to_string());
            if known.get(&number).is_some_and(|known| !known.is_bound) {
                known.remove(&number);
            }
        }
        Act::Count(counted) => {
            if cluster.count_pods(counted.clone()) {
                // Where others stand has to be said again, unless they have run their course.
                known.retain(|_, known| known.is_bound || known.standing == Standing::Finished);
                let bound = known.values_mut().filter(|known| known.is_bound);
                bound.for_each(|known| known.standing = Standing::Bound);
            }
            return Some(counted);
        }
    }
    None
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn counts_are_those_of_a_naive_count(first in counted(), acts in acts()) {
        let mut cluster = Cluster::default();
        let mut words = NodeWords::default();
        "n".clone_into(&mut words.metadata_mut().name);
        let row = cluster.put_node(&words);
        cluster.note_changed_sets();
        cluster.count_pods(first.clone());
        let (mut counted, mut world) = (first, World::default());
        let mut earlier: Vec<(Snapshot, Vec<Vec<String>>)> = Vec::new();
        for act in acts {
            let (before, counts_anew) = (sets(cluster.snapshot()), matches!(act, Act::Count(_)));
            cluster.take_changed_sets();
            counted = apply(&mut cluster, row, &mut world, act).unwrap_or(counted);
            let changed = cluster.take_changed_sets();
            for ((id, words), (id_now, words_now)) in before.into_iter().zip(sets(cluster.snapshot())) {
                let is_noted = [id, id_now].into_iter().flatten().any(|id| changed.contains(&id));
                prop_assert!(counts_anew || words == words_now || is_noted, "{words:?} became {words_now:?}");
            }
            let known = &mut world.pods;
            if counted.is_nothing() {
                // Nobody counts, so nobody is known; bound pods are found again when somebody does.
                known.retain(|_, known| known.is_bound);
                known.values_mut().for_each(|known| known.standing = Standing::Bound);
                prop_assert!(cluster.snapshot().pods().counted().is_none());
                continue;
            }
            if !counted.finished {
                known.retain(|_, known| known.standing != Standing::Finished);
            }
            let snapshot = cluster.snapshot().clone();
            let all = all_words(&snapshot);
            prop_assert_eq!(&all, &naive_words(&counted, &world));
            earlier.push((snapshot, all));
        }
        for (snapshot, all) in earlier {
            prop_assert_eq!(all_words(&snapshot), all, "a snapshot stays as it was");
        }
    }
}

#[test]
#[should_panic(expected = "declares Reads::pods_by_label(\"team\")")]
fn what_nobody_declared_cannot_be_read() {
    let mut cluster = Cluster::default();
    cluster.count_pods(CountedPods { by_namespace: true, ..CountedPods::default() });
    cluster.snapshot().pods().by_label("team", "a");
}

#[test]
fn groups_without_pods_leave_nothing_behind() {
    let mut cluster = Cluster::default();
    cluster.count_pods(CountedPods { labels: ["gang".into()].into(), ..CountedPods::default() });
    for number in 0..1000 {
        let labels: Labels = [("gang".to_owned(), number.to_string())].into_iter().collect();
        let pod = Arc::new(Pod { uid: "u".into(), labels: labels.into(), ..Pod::default() });
        cluster.set_standing(&pod, Standing::Waiting);
    }
    cluster.clear_standing("u");
    let book = cluster.state.book.as_deref().expect("pods are counted");
    assert_eq!((book.places.len(), book.groups.len()), (0, 1));
    assert_eq!(cluster.standing_uids().count(), 0);
}
