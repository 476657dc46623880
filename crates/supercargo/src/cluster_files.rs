//! A cluster from files, or from its API server: what `explain` and `capacity` work on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use supercargo_dump::{Dumps, Location};
use supercargo_engine::counted_pods;
use supercargo_explain::{Missing, Workloads};
use supercargo_framework::Profile;
use supercargo_model::kinds::Namespace;
use supercargo_model::{
    Cluster, Decoded, Kind, KindId, ObjectKey, Pod, Standing, Timestamp, nearest, nearest_first, printable,
};

use crate::expected::{self, Expected};
use crate::input;
use crate::loaded_config::LoadedConfig;
use crate::named::Named;
use crate::progress::Progress;

/// What messages call the place where objects of files are from.
pub(crate) const FILES: &str = "the files";
/// What is said about files without a node, where no cluster can be asked instead.
pub(crate) const NO_NODES: &str = "there are no nodes in the files, so no pod has anywhere to go; add them:\n  kubectl get \
                                   nodes -o yaml > nodes.yaml\nand name both files: -f nodes.yaml -f …";
/// So many namespaces are named where one is unknown.
const NAMESPACES_SHOWN: usize = 5;

/// A cluster, and the pods that wait for a node.
pub(crate) struct ClusterFiles {
    pub(crate) cluster: Cluster,
    pub(crate) pending: Vec<Arc<Pod>>,
    /// The pending pods of files that hold no node: manifests, written to ask about them.
    pub(crate) manifests: Vec<Arc<Pod>>,
    /// Bound pods, for those who ask about one by name.
    pub(crate) bound: BTreeMap<String, Arc<Pod>>,
    /// What workloads would create.
    pub(crate) expected: Vec<Expected>,
    /// What people should know about the files.
    pub(crate) notes: String,
    /// What could not be read of the cluster.
    pub(crate) missing: Vec<Missing>,
    /// The namespaces that objects are of.
    namespaces: BTreeSet<String>,
    /// How many pods have run their course.
    finished: usize,
    /// The namespace of pods that are named without one.
    pub(crate) default_namespace: String,
    /// What messages call the place where the objects are from.
    pub(crate) place: &'static str,
    /// The workloads as they were written, each with the number of its file.
    pub(crate) workloads: Workloads,
    /// Which files hold no node.
    pub(crate) manifest_files: Vec<bool>,
    /// The workloads that files hold in place of the live cluster's own.
    pub(crate) written: BTreeSet<(KindId, ObjectKey)>,
    /// The kinds that say what workloads would create, and could not be read.
    pub(crate) unread_for_workloads: BTreeSet<&'static str>,
}

/// What files hold.
pub(crate) enum FromFiles {
    /// A cluster.
    Cluster(Box<ClusterFiles>),
    /// No node: objects that somebody wrote to ask about them.
    Manifests { objects: Vec<Decoded>, notes: String },
}

/// More objects than this without a node are no manifests that somebody wrote.
const MANIFEST_OBJECTS_MAX: usize = 10_000;

impl ClusterFiles {
    /// Counts pods by what plugins read.
    pub(crate) fn count_pods(&mut self, profiles: &[Profile]) {
        self.cluster.count_pods(counted_pods(profiles));
        for pod in &self.pending {
            let is_gated = !pod.spec.scheduling_gates.is_empty();
            let standing = if is_gated { Standing::Gated } else { Standing::Waiting };
            self.cluster.set_standing(pod, standing);
        }
    }

    pub(crate) fn empty(default_namespace: &str, place: &'static str) -> Self {
        ClusterFiles {
            cluster: Cluster::default(),
            pending: Vec::new(),
            manifests: Vec::new(),
            bound: BTreeMap::new(),
            expected: Vec::new(),
            notes: String::new(),
            missing: Vec::new(),
            namespaces: BTreeSet::new(),
            finished: 0,
            default_namespace: default_namespace.to_owned(),
            place,
            workloads: Workloads::default(),
            manifest_files: Vec::new(),
            written: BTreeSet::new(),
            unread_for_workloads: BTreeSet::new(),
        }
    }

    /// From files. Those that hold no node are manifests, to be asked about in a cluster from elsewhere; where no file holds
    /// one, the objects come back as they are.
    pub(crate) fn read(files: &[String], config: &LoadedConfig) -> anyhow::Result<FromFiles> {
        let texts: Vec<String> = files.iter().map(|file| input::read(file)).collect::<Result<_, _>>()?;
        let named: Vec<(&str, &str)> = files
            .iter()
            .map(|file| input::display_name(file))
            .zip(texts.iter().map(String::as_str))
            .collect();
        let dumps = Dumps::new(&named)?;
        let mut read = ClusterFiles::empty("default", FILES);
        let mut seen = Seen { dumps: &dumps, names: BTreeMap::new() };
        let mut holds_nodes = vec![false; files.len()];
        // Until the first node comes the objects wait here: without one they belong to another cluster.
        let mut waiting: Option<Vec<(Location, Decoded)>> = Some(Vec::new());
        let (mut progress, mut objects) = (Progress::new(), 0usize);
        let left_out = dumps.read(&expected::decoder(config), |location, object| {
            objects += 1;
            progress.tell(|| format!("read {objects} objects so far"));
            let is_node = matches!(object, Decoded::Node(_));
            holds_nodes[location.dump] |= is_node;
            if let Some(early) = &mut waiting {
                if !is_node && early.len() < MANIFEST_OBJECTS_MAX {
                    early.push((location, object));
                    return Ok(());
                }
                for (location, object) in waiting.take().into_iter().flatten() {
                    read.add(object, location.dump, |kind, name| seen.note(kind, name, location))?;
                }
            }
            read.add(object, location.dump, |kind, name| seen.note(kind, name, location))
        })?;
        let notes = left_out.to_string();
        if let Some(objects) = waiting {
            let objects = objects.into_iter().map(|(_, object)| object).collect();
            return Ok(FromFiles::Manifests { objects, notes });
        }
        let is_manifest = |pod: &&Arc<Pod>| {
            let location = seen.names.get(&format!("pod {}", pod.key()));
            location.is_some_and(|location| !holds_nodes[location.dump])
        };
        read.manifests = read.pending.iter().filter(is_manifest).cloned().collect();
        read.manifest_files = holds_nodes.iter().map(|holds| !holds).collect();
        read.notes = notes;
        match read.finished {
            0 => {}
            1 => read.notes.push_str("note: 1 finished pod left out: it takes no room\n"),
            more => read.notes.push_str(&format!("note: {more} finished pods left out: they take no room\n")),
        }
        Ok(FromFiles::Cluster(Box::new(read)))
    }

    /// The pod of that name; without a namespace, of the default one.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<&Arc<Pod>> {
        let full_name = self.full_name(name);
        let pending = self.pending.iter().find(|pod| pod.key() == full_name);
        let expected = || self.expected.iter().find_map(|expected| expected.find(&full_name));
        let found = pending.or_else(|| self.bound.get(&full_name)).or_else(expected);
        found.with_context(|| self.missing_pod(&full_name))
    }

    /// That there is no pod of a name, and what may be meant.
    fn missing_pod(&self, full_name: &str) -> String {
        let names: BTreeSet<String> =
            self.pending.iter().map(|pod| pod.key()).chain(self.bound.keys().cloned()).collect();
        let place = self.place;
        let missing = format!("there is no pod {} in {place}", printable(full_name));
        let (namespace, name) = full_name.split_once('/').unwrap_or(("", full_name));
        let elsewhere =
            names.iter().find(|other| other.split_once('/').is_some_and(|(_, other)| other == name));
        let near =
            elsewhere.map(String::as_str).or_else(|| nearest(full_name, names.iter().map(String::as_str)));
        if let Some(near) = near {
            return format!("{missing}; did you mean {}?", printable(near));
        }
        if place == FILES && !self.namespaces.contains(namespace) {
            return format!(
                "{missing}, nor anything else of its namespace; {}",
                self.known_namespaces(namespace)
            );
        }
        let (pending, bound) = (self.pending.len(), self.bound.len());
        format!(
            "{missing}, which {} {pending} pending and {bound} bound ones; finished ones are left out",
            self.verb("hold")
        )
    }

    /// The namespaces there are, those first that are spelt most like this one.
    fn known_namespaces(&self, namespace: &str) -> String {
        let known = nearest_first(namespace, self.namespaces.iter().map(String::as_str));
        let shown: Vec<String> =
            known.iter().take(NAMESPACES_SHOWN).map(|known| printable(known).into_owned()).collect();
        let more = match known.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if shown.is_empty() {
            return format!("no object in {} has a namespace", self.place);
        }
        format!("the namespaces there are: {}{more}", shown.join(", "))
    }

    fn verb(&self, plural: &str) -> String {
        if self.place == FILES { plural.to_owned() } else { format!("{plural}s") }
    }

    /// That there is anywhere to place pods: without a node in the files nothing can be said about them.
    pub(crate) fn require_nodes(&mut self) -> anyhow::Result<()> {
        if self.cluster.snapshot().node_count() == 0 && self.place == FILES {
            bail!(NO_NODES);
        }
        Ok(())
    }

    /// A pod's name with its namespace.
    pub(crate) fn full_name(&self, name: &str) -> String {
        Named::parse(name).full_name(&self.default_namespace)
    }

    /// Leaves out pending pods of other namespaces. One that no object in the files has is an error.
    pub(crate) fn keep_namespace(&mut self, namespace: &str) -> anyhow::Result<()> {
        let is_known = self.namespaces.contains(namespace)
            || self.expected.iter().any(|expected| expected.is_of(namespace));
        if self.place == FILES && !is_known {
            bail!(
                "no object in the files is of the namespace {namespace:?}; {}",
                self.known_namespaces(namespace)
            );
        }
        self.pending.retain(|pod| *pod.namespace == *namespace);
        self.expected.retain(|expected| expected.is_of(namespace));
        Ok(())
    }

    /// Leaves out pending pods that are being deleted, so that nobody will place them, and says so.
    pub(crate) fn leave_out_deleted(&mut self) {
        let mut left_out = Vec::new();
        self.pending.retain(|pod| {
            if pod.is_terminating() {
                left_out.push(pod.key());
            }
            !pod.is_terminating()
        });
        if let Some(first) = left_out.first() {
            let first = printable(first);
            let others = match left_out.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.notes.push_str(&format!(
                "note: {first}{others} left out: being deleted; ask about one by its name\n"
            ));
        }
    }

    /// Takes an object of a file in. `note` is told its kind and name.
    pub(crate) fn add(
        &mut self,
        object: Decoded,
        file: usize,
        note: impl FnOnce(&str, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.note_namespace(&object);
        match object {
            Decoded::Node(words) => {
                note("node", words.name())?;
                self.cluster.put_node(&words);
            }
            Decoded::Pod(mut words) => {
                if words.is_finished() {
                    self.finished += 1;
                    return Ok(());
                }
                words.complete();
                let pod = Arc::new(self.cluster.interner().pod(*words));
                note("pod", &pod.key())?;
                self.cluster.add_any_pod(&pod)?;
                match pod.node_name {
                    Some(_) => _ = self.bound.insert(pod.key(), pod),
                    None => self.pending.push(pod),
                }
            }
            Decoded::Object(object) => {
                self.workloads.take(&object, file)?;
                self.cluster.put_object(object);
            }
            Decoded::Unread { .. } => {}
        }
        Ok(())
    }

    /// Takes note of the namespace of an object, or that it is one.
    fn note_namespace(&mut self, object: &Decoded) {
        let namespace = match object {
            Decoded::Pod(words) if words.metadata().namespace.is_empty() => "default",
            Decoded::Pod(words) => &words.metadata().namespace,
            Decoded::Object(object) if object.kind == Namespace::ID => &object.key.name,
            Decoded::Object(object) => &object.key.namespace,
            Decoded::Node(_) | Decoded::Unread { .. } => "",
        };
        if !namespace.is_empty() && !self.namespaces.contains(namespace) {
            self.namespaces.insert(namespace.to_owned());
        }
    }
}

/// Where each name was seen first.
struct Seen<'a> {
    dumps: &'a Dumps<'a>,
    names: BTreeMap<String, Location>,
}

impl Seen<'_> {
    fn note(&mut self, kind: &str, name: &str, location: Location) -> anyhow::Result<()> {
        let Some(first) = self.names.insert(format!("{kind} {name}"), location) else { return Ok(()) };
        let place = |location: Location| self.dumps.place(location);
        let name = printable(name);
        bail!("{kind} {name} occurs twice: {}, and {}; leave one of them out", place(first), place(location))
    }
}

/// The time, for pods that have not started yet.
#[expect(clippy::disallowed_methods, reason = "the binary is where time comes from")]
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_seconds(i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX))
}
