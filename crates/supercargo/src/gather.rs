//! Everything that an answer is made of: the cluster, from files or live, and what is known about who schedules it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::bail;
use supercargo_client::{ApiServer, ConnectError};
use supercargo_explain::{Asked, Missing, MissingReason, WorkloadKind};
use supercargo_framework::Unread;
use supercargo_model::kinds::PersistentVolumeClaim;
use supercargo_model::{Decoded, Kind, KindId, ObjectKey, Pod, printable};

use crate::ask::{AskArguments, OutOfReach};
use crate::cluster_files::{ClusterFiles, FILES, FromFiles, NO_NODES};
use crate::expected::{self, Expected};
use crate::live::{ConnectArguments, LiveObjects, missing_note, wait_for};
use crate::loaded_config::{IsOurs, LoadedConfig};
use crate::named::Named;
use crate::outcome::Outcome;
use crate::scheduling::{LeaseName, Question, Scheduling};
use crate::unread_record::missing_in;

/// About how many schedulers it is asked whether they run. Few clusters have more than two.
const SCHEDULERS_LOOKED_UP_MAX: usize = 16;
/// About how many pods a running scheduler is asked; each may take seconds.
const ASKED_PODS_MAX: usize = 20;
/// How many objects that cannot be understood are named.
const UNREADABLE_NAMED_MAX: usize = 5;

/// Where workloads are from that were asked for: the cluster, or files that hold no node.
const FROM_CLUSTER: usize = 0;
const FROM_FILES: usize = 1;

/// What is wanted.
pub(crate) struct Wanted<'a> {
    pub(crate) files: &'a [String],
    pub(crate) connect: &'a ConnectArguments,
    /// The pods that it is about; without any, all that are pending.
    pub(crate) names: &'a [String],
    /// The namespace of names without one, and of manifests; without names, the only one that is looked at.
    pub(crate) namespace: Option<&'a str>,
    /// Whom to ask what was decided, if it is about decisions.
    pub(crate) ask: Option<&'a AskArguments>,
}

/// What there is.
pub(crate) struct Gathered {
    pub(crate) files: ClusterFiles,
    /// What running schedulers said, by pod.
    pub(crate) asked: BTreeMap<String, Asked>,
    /// What is known about whether schedulers run, by `schedulerName`.
    pub(crate) scheduling: BTreeMap<String, Scheduling>,
    /// Whether the cluster is a live one, be it that manifests are asked about in it.
    pub(crate) is_live: bool,
}

impl Wanted<'_> {
    /// Gets it all; an outcome if it cannot be meant.
    pub(crate) fn gather(&self, config: &LoadedConfig) -> anyhow::Result<Result<Gathered, Outcome>> {
        if self.files.is_empty() {
            return wait_for(self.live(config, None)).map(Ok);
        }
        let mut files = match ClusterFiles::read(self.files, config)? {
            FromFiles::Manifests { objects, notes } if objects.iter().any(is_asked_about) => {
                return wait_for(self.live(config, Some((objects, notes)))).map(Ok);
            }
            FromFiles::Manifests { objects, notes } => {
                let mut files = ClusterFiles::empty("default", FILES);
                files.notes = notes;
                objects.into_iter().try_for_each(|object| files.add(object, 0, |_, _| Ok(())))?;
                files
            }
            FromFiles::Cluster(files) => *files,
        };
        if let Some(conflict) = self.connect.conflict(self.files) {
            return Ok(Err(conflict));
        }
        if let Some(namespace) = self.namespace {
            namespace.clone_into(&mut files.default_namespace);
        }
        files.expect_from_files(config, self.names)?;
        files.missing = missing_in(files.cluster.snapshot(), config);
        files.notes.insert_str(0, &missing_note(&files.missing));
        Ok(Ok(Gathered { files, asked: BTreeMap::new(), scheduling: BTreeMap::new(), is_live: false }))
    }

    async fn live(
        &self,
        config: &LoadedConfig,
        manifests: Option<(Vec<Decoded>, String)>,
    ) -> anyhow::Result<Gathered> {
        let server = self.connect.connect().await;
        let server = match server {
            Ok(server) => server,
            Err(error) if manifests.is_none() => return Err(error),
            Err(error) if is_nowhere(&error) => {
                bail!("{NO_NODES}\nor name a cluster to ask about them there, with --kubeconfig or --context")
            }
            Err(error) => bail!("{NO_NODES}\nThe cluster cannot be asked about them: {error:#}"),
        };
        let mut files = self.read(&server, config, manifests).await?;
        if !self.files.is_empty() {
            let address = server.address().unwrap_or("at hand");
            files.notes.push_str(&format!("note: the files hold no node: asked in the cluster {address}\n"));
        }
        let mut gathered =
            Gathered { files, asked: BTreeMap::new(), scheduling: BTreeMap::new(), is_live: true };
        if let Some(ask) = self.ask {
            gathered.look_up(&server, config, self).await;
            if self.files.is_empty() && !ask.is_nobody() {
                gathered.ask(&server, config, self, ask).await;
            }
        }
        Ok(gathered)
    }

    /// The cluster, from its API server, with what somebody wrote to ask about it.
    async fn read(
        &self,
        server: &ApiServer,
        config: &LoadedConfig,
        manifests: Option<(Vec<Decoded>, String)>,
    ) -> anyhow::Result<ClusterFiles> {
        let default_namespace = self.namespace.unwrap_or_else(|| server.default_namespace()).to_owned();
        let named: Vec<Named<'_>> = self.names.iter().map(|name| Named::parse(name)).collect();
        let about = named.first().and_then(|named| named.namespace).unwrap_or(&default_namespace);
        let objects = LiveObjects::read(server, config, Some(about)).await?;
        objects.require_pods_and_nodes()?;
        let mut files = ClusterFiles::empty(&default_namespace, "the cluster");
        let (written, notes) = manifests.unwrap_or_default();
        let written = files.in_namespace(written);
        let of_files: Vec<(WorkloadKind, ObjectKey)> = workloads_of(&written);
        files.written = of_files.iter().map(|(kind, key)| (kind.id(), key.clone())).collect();
        let is_of_files = |named: &Named<'_>| {
            let key = ObjectKey {
                namespace: named.namespace.unwrap_or(&default_namespace).into(),
                name: named.name.into(),
            };
            of_files.iter().any(|(kind, of)| named.workload == Some(*kind) && *of == key)
        };
        let workloads = named.iter().copied().filter(|named| named.workload.is_some() && !is_of_files(named));
        let workloads: Vec<Named<'_>> = workloads.collect();
        let decoder = if workloads.is_empty() && of_files.is_empty() {
            config.decoder()
        } else {
            expected::decoder(config)
        };
        let mut unreadable: BTreeMap<KindId, Vec<String>> = BTreeMap::new();
        for (kind, list) in &objects.lists {
            for item in list.items() {
                match decoder.decode_kind(item, *kind) {
                    Ok(Decoded::Object(object)) if files.written.contains(&(*kind, object.key.clone())) => {}
                    Ok(object) => files.add(object, FROM_CLUSTER, |_, _| Ok(()))?,
                    Err(error) => unreadable.entry(*kind).or_default().push(error.to_string()),
                }
            }
        }
        files.add_manifests(written)?;
        let of_files = of_files.iter().map(|(kind, key)| Named {
            workload: Some(*kind),
            namespace: Some(&*key.namespace),
            name: &key.name,
        });
        let listed: Vec<KindId> = objects.lists.iter().map(|(kind, _)| *kind).collect();
        for named in workloads.into_iter().chain(of_files) {
            files.ask_for_workload(server, config, &named, &listed).await?;
        }
        if !self.files.is_empty() {
            // What waits in the cluster has been taken off what workloads would create, and is not asked about.
            files.pending = files.manifests.clone();
        }
        files.notes.push_str(&notes);
        files.missing = objects.missing;
        for (kind, errors) in unreadable {
            let shown = errors.len().min(UNREADABLE_NAMED_MAX);
            for error in &errors[..shown] {
                files.notes.push_str(&format!("note: left out: {}\n", printable(error)));
            }
            if errors.len() > shown {
                let (more, plural) = (errors.len() - shown, kind.plural);
                files.notes.push_str(&format!("note: left out: {more} more {plural}\n"));
            }
            files.missing.push(Missing {
                unread: Unread { kind, known_namespace: None },
                reason: MissingReason::Unreadable,
                message: errors.into_iter().next().unwrap_or_default(),
            });
        }
        files.notes.insert_str(0, &missing_note(&files.missing));
        Ok(files)
    }
}

/// Whether no cluster is known, rather than one that cannot be used.
fn is_nowhere(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ConnectError::Nowhere { .. }))
}

/// Whether it is a pod that has no node yet, or makes such pods.
fn is_asked_about(object: &Decoded) -> bool {
    match object {
        Decoded::Pod(words) => words.node_name().is_none() && !words.is_finished(),
        Decoded::Object(object) => WorkloadKind::of(object.kind).is_some(),
        Decoded::Node(_) | Decoded::Unread { .. } => false,
    }
}

/// The workloads among objects.
fn workloads_of(objects: &[Decoded]) -> Vec<(WorkloadKind, ObjectKey)> {
    let workloads = objects.iter().filter_map(|object| match object {
        Decoded::Object(object) => Some((WorkloadKind::of(object.kind)?, object.key.clone())),
        _ => None,
    });
    workloads.collect()
}

impl ClusterFiles {
    /// Gives what somebody wrote without a namespace the one that is meant. Of all that a pod needs only claims have one.
    fn in_namespace(&self, mut objects: Vec<Decoded>) -> Vec<Decoded> {
        for object in &mut objects {
            match object {
                Decoded::Pod(words) if words.metadata().namespace.is_empty() => {
                    self.default_namespace.clone_into(&mut words.metadata_mut().namespace);
                }
                Decoded::Object(object)
                    if object.key.namespace.is_empty()
                        && (object.kind == PersistentVolumeClaim::ID
                            || WorkloadKind::of(object.kind).is_some()) =>
                {
                    object.key.namespace = self.default_namespace.as_str().into();
                }
                _ => {}
            }
        }
        objects
    }

    /// Takes in what somebody wrote to ask about it, in place of what the cluster has under the same names.
    fn add_manifests(&mut self, objects: Vec<Decoded>) -> anyhow::Result<()> {
        let mut names: BTreeSet<String> = BTreeSet::new();
        let mut bound = 0;
        let in_cluster = std::mem::take(&mut self.pending);
        self.manifest_files = vec![false; FROM_FILES];
        self.manifest_files.push(true);
        for object in objects {
            match &object {
                Decoded::Pod(words) if words.node_name().is_some() => {
                    bound += 1;
                    continue;
                }
                Decoded::Pod(words) => {
                    self.replace(&format!("{}/{}", words.metadata().namespace, words.metadata().name));
                }
                Decoded::Object(_) | Decoded::Node(_) | Decoded::Unread { .. } => {}
            }
            self.add(object, FROM_FILES, |kind, name| match names.insert(format!("{kind} {name}")) {
                true => Ok(()),
                false => bail!("{kind} {name} occurs twice in the files; leave one of them out"),
            })?;
        }
        self.manifests = std::mem::replace(&mut self.pending, in_cluster);
        self.pending.retain(|pod| !names.contains(&format!("pod {}", pod.key())));
        if bound > 0 {
            self.notes.push_str(&format!(
                "note: {bound} pods of the files left out that have a node: the cluster's own count\n"
            ));
        }
        Ok(())
    }

    /// Takes a pod of the cluster out in favour of one of the same name that somebody wrote.
    fn replace(&mut self, name: &str) {
        if let Some(pod) = self.bound.remove(name) {
            self.cluster.remove_pod(&pod.uid);
            self.notes.push_str(&format!(
                "note: {} is in the cluster already; the file's is taken in its place\n",
                printable(name)
            ));
        }
    }
}

impl Gathered {
    /// The pods that it is about.
    fn pods(&self, wanted: &Wanted<'_>) -> Vec<Arc<Pod>> {
        if wanted.names.is_empty() {
            let is_meant = |pod: &&Arc<Pod>| {
                !pod.is_terminating()
                    && wanted
                        .namespace
                        .is_none_or(|namespace| !wanted.files.is_empty() || *pod.namespace == *namespace)
            };
            let of_workloads = self.files.expected.iter().filter_map(Expected::first);
            return self.files.pending.iter().filter(is_meant).chain(of_workloads).cloned().collect();
        }
        let pods = wanted.names.iter().filter(|name| Named::parse(name).workload.is_none());
        let pods = pods.filter_map(|name| self.files.find(name).ok());
        let of_workloads = self.files.expected.iter().filter_map(Expected::first);
        pods.chain(of_workloads).cloned().collect()
    }

    /// Finds out whether the schedulers of the pods run.
    async fn look_up(&mut self, server: &ApiServer, config: &LoadedConfig, wanted: &Wanted<'_>) {
        let mut unknown = BTreeSet::new();
        for pod in self.pods(wanted) {
            let name = pod.spec.scheduler_name.to_string();
            let is_known = self.scheduling.contains_key(&name);
            if pod.node_name.is_some() || is_known || self.scheduling.len() >= SCHEDULERS_LOOKED_UP_MAX {
                continue;
            }
            let (_, is_ours) = config.profile_for(&pod);
            let question = Question {
                scheduler: &name,
                election: (is_ours == IsOurs::Yes).then_some(&config.election),
                namespace: &pod.namespace,
                has_bound: self.files.bound.values().any(|bound| *bound.spec.scheduler_name == *name),
            };
            let found = Scheduling::of(server, &question).await;
            if let Scheduling::Unknown { why } = &found {
                unknown.insert(format!("note: whether scheduler {name:?} runs could not be seen: {why}\n"));
            }
            self.scheduling.insert(name, found);
        }
        self.files.notes.extend(unknown);
    }

    /// Asks the schedulers that run what they decided for the named pods. If there is nobody to ask, that is noted, and what can be
    /// computed has to do.
    async fn ask(
        &mut self,
        server: &ApiServer,
        config: &LoadedConfig,
        wanted: &Wanted<'_>,
        ask: &AskArguments,
    ) {
        let mut reasons = BTreeSet::new();
        let names = wanted.names.iter().filter(|name| Named::parse(name).workload.is_none());
        for name in names.take(ASKED_PODS_MAX) {
            let pod = self.files.find(name).ok().cloned();
            let Some(lease) = self.lease_of(config, pod.as_deref(), ask) else {
                let found = pod.and_then(|pod| self.scheduling.get(&*pod.spec.scheduler_name));
                if found == Some(&Scheduling::Heard) {
                    reasons.insert(OutOfReach { leader: None }.to_string());
                }
                continue;
            };
            let full_name = self.files.full_name(name);
            match ask.ask(wanted.connect, server, &lease, &full_name).await {
                Ok((who, report)) => {
                    let uid = pod.map(|pod| pod.uid.to_string());
                    self.asked.insert(full_name, Asked::new(who, report, uid));
                }
                Err(error) => {
                    let text = format!("{error:#}").replace('\n', " ");
                    let is_advice = error.downcast_ref::<OutOfReach>().is_some();
                    reasons.insert(if is_advice {
                        text
                    } else {
                        format!("the scheduler was not asked: {text}")
                    });
                }
            }
        }
        for reason in reasons {
            self.files.notes.push_str(&format!("note: computed here; {}\n", printable(&reason)));
        }
        if let Some(more) = wanted.names.len().checked_sub(ASKED_PODS_MAX).filter(|more| *more > 0) {
            self.files.notes.push_str(&format!(
                "note: computed here for the last {more} pods: the scheduler is asked about {ASKED_PODS_MAX} at a time\n"
            ));
        }
    }

    /// The lease whose holder knows about a pod; none if nobody is known to hold it and no address was given.
    fn lease_of(&self, config: &LoadedConfig, pod: Option<&Pod>, ask: &AskArguments) -> Option<LeaseName> {
        let own = LeaseName {
            namespace: config.election.resource_namespace.clone(),
            name: config.election.resource_name.clone(),
        };
        let found = pod.and_then(|pod| self.scheduling.get(&*pod.spec.scheduler_name));
        match found {
            Some(found) => match found.lease() {
                Some(lease) => Some(lease.clone()),
                // An address says whom to ask; that nobody runs is said already.
                None if ask.scheduler.is_some() => Some(own),
                None => None,
            },
            None => Some(own),
        }
    }
}
