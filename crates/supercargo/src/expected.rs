//! The pods that workloads would create, beside those that are there: from objects of files or of a live cluster.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use supercargo_client::ApiServer;
use supercargo_cluster::{ListError, PODS};
use supercargo_dump::LESS_THAN_NOTHING;
use supercargo_explain::{
    ADMISSION_KINDS, Explainer, Explanation, WorkloadKind, WorkloadPods, WorkloadSummary, Workloads,
};
use supercargo_model::{Decoded, Decoder, KindId, Pod};

use crate::cluster_files::ClusterFiles;
use crate::explain::of_a_kind;
use crate::live::list_kind;
use crate::loaded_config::LoadedConfig;
use crate::named::Named;
use crate::side_by_side::side_by_side;

/// A workload, and the pods that it would create.
pub(crate) struct Expected {
    pub(crate) summary: WorkloadSummary,
    parent: Option<(WorkloadKind, String)>,
    /// Whether it is from a file that holds no node: a manifest, written to ask about it.
    is_manifest: bool,
    is_per_node: bool,
    pods: Vec<Arc<Pod>>,
    /// Its pods that exist and wait for a node.
    waiting: Vec<Arc<Pod>>,
    model: Option<Arc<Pod>>,
}

/// Reads what the scheduler reads, and keeps the text of workloads.
pub(crate) fn decoder(config: &LoadedConfig) -> Decoder {
    config.decoder().keeping(&Workloads::kinds())
}

impl ClusterFiles {
    /// Works out what the workloads of files would create: those that are named, or all if none is.
    pub(crate) fn expect_from_files(
        &mut self,
        config: &LoadedConfig,
        names: &[String],
    ) -> anyhow::Result<()> {
        let named = names.iter().map(|name| Named::parse(name)).filter(|named| named.workload.is_some());
        let named: Vec<Named<'_>> = named.collect();
        if named.is_empty() {
            let workloads = std::mem::take(&mut self.workloads);
            return self.expect(workloads, config, None);
        }
        named.iter().try_for_each(|named| self.expect(self.workloads.clone(), config, Some(named)))
    }

    /// Works out what the workloads would create: all of them, or one. What comes with their pods, such as claims, is taken to
    /// be there.
    fn expect(
        &mut self,
        workloads: Workloads,
        config: &LoadedConfig,
        only: Option<&Named<'_>>,
    ) -> anyhow::Result<()> {
        if workloads.is_empty() {
            return Ok(());
        }
        let decoder = config.decoder();
        let only = only.and_then(|named| Some((named.workload?, named.full_name(&self.default_namespace))));
        let pods = self.bound.values().chain(&self.pending);
        let snapshot = self.cluster.snapshot();
        let only = only.as_ref().map(|(kind, name)| (*kind, name.as_str()));
        let expanded = workloads.expand(&self.default_namespace, only, pods, snapshot)?;
        for workload in expanded {
            let is_manifest = self.manifest_files.get(workload.source).copied().unwrap_or(false);
            let expected = self.take_workload(workload, is_manifest, &decoder)?;
            self.expected.push(expected);
        }
        Ok(())
    }

    fn take_workload(
        &mut self,
        workload: WorkloadPods,
        is_manifest: bool,
        decoder: &Decoder,
    ) -> anyhow::Result<Expected> {
        let WorkloadPods { summary, parent, source: _, pods, is_per_node, waiting, objects, model } =
            workload;
        let what = || format!("{} {}", summary.kind.word(), summary.name);
        for (kind, object) in objects {
            let object = decoder.decode_kind(&object.to_string(), kind).with_context(what)?;
            if let Decoded::Object(object) = object {
                self.cluster.put_object(object);
            }
        }
        let mut pod = |json: serde_json::Value| -> anyhow::Result<Option<Arc<Pod>>> {
            let Decoded::Pod(mut words) = decoder.decode_kind(&json.to_string(), PODS).with_context(what)?
            else {
                return Ok(None);
            };
            if let Some(path) = words.negative_amount() {
                bail!("{}: {path}: {LESS_THAN_NOTHING}", what());
            }
            words.complete();
            Ok(Some(Arc::new(self.cluster.interner().pod(*words))))
        };
        let model = match model {
            Some(model) => pod(model)?,
            None => None,
        };
        let pods = pods.into_iter().filter_map(|json| pod(json).transpose()).collect::<Result<_, _>>()?;
        Ok(Expected { summary, parent, is_manifest, is_per_node, pods, waiting, model })
    }

    /// Takes the workload of that name out, with the pods of it that wait for a node; an error if there is none.
    pub(crate) fn extract_workload(
        &mut self,
        named: &Named<'_>,
    ) -> anyhow::Result<(Vec<Expected>, Vec<Arc<Pod>>)> {
        let Some(kind) = named.workload else { return Ok((Vec::new(), Vec::new())) };
        let name = named.full_name(&self.default_namespace);
        let all = std::mem::take(&mut self.expected);
        let (mut wanted, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|expected| expected.is(kind, &name));
        self.expected = others;
        if wanted.is_empty() {
            bail!("there is no {} {name} in {}", kind.word(), self.place);
        }
        let mut waiting = Vec::new();
        for expected in &mut wanted {
            // Whoever is asked about speaks, even if only to say that nothing is missing.
            expected.is_manifest = true;
            if !expected.is_per_node {
                waiting.append(&mut expected.waiting);
            }
        }
        waiting.retain(|pod| !pod.is_terminating());
        Ok((wanted, waiting))
    }

    /// Whether there are manifests to ask about.
    pub(crate) fn holds_manifests(&self) -> bool {
        !self.manifests.is_empty() || self.expected.iter().any(|expected| expected.is_manifest)
    }

    /// The pods to count more of: those of manifests, or else whatever is not placed yet.
    pub(crate) fn pods_to_count(&mut self) -> Vec<Arc<Pod>> {
        let only_manifests = self.holds_manifests();
        let mut pods = if only_manifests { self.manifests.clone() } else { self.pending.clone() };
        let mut expected = std::mem::take(&mut self.expected);
        expected
            .retain(|expected| if only_manifests { expected.is_manifest } else { !expected.pods.is_empty() });
        pods.extend(expected.iter().filter_map(|expected| self.count_like(expected)));
        pods
    }

    /// The pods of a workload to count more of.
    pub(crate) fn workload_to_count(&mut self, named: &Named<'_>) -> anyhow::Result<Vec<Arc<Pod>>> {
        let Some(kind) = named.workload else { return Ok(Vec::new()) };
        let name = named.full_name(&self.default_namespace);
        let expected = std::mem::take(&mut self.expected);
        let wanted = expected.iter().filter(|expected| expected.is(kind, &name));
        let pods: Vec<Arc<Pod>> = wanted.filter_map(|expected| self.count_like(expected)).collect();
        self.expected = expected;
        if pods.is_empty() {
            bail!("there is no {} {name} in {}", kind.word(), self.place);
        }
        Ok(pods)
    }

    fn count_like(&mut self, expected: &Expected) -> Option<Arc<Pod>> {
        let what = format!("{} {}", expected.summary.kind.word(), expected.summary.name);
        for assumption in &expected.summary.assumptions {
            self.notes.push_str(&format!("note: {what}: {assumption}\n"));
        }
        if expected.is_per_node {
            self.notes.push_str(&format!(
                "note: {what} has one pod on a node; counted is how many there is room for if they share nodes\n"
            ));
        }
        expected.model.clone()
    }

    /// Adds what a workload of the live cluster is made from, and what it would create.
    pub(crate) async fn ask_for_workload(
        &mut self,
        server: &ApiServer,
        config: &LoadedConfig,
        named: &Named<'_>,
        listed: &[KindId],
    ) -> anyhow::Result<()> {
        let Some(kind) = named.workload else { return Ok(()) };
        let namespace = named.namespace.unwrap_or(&self.default_namespace).to_owned();
        let (decoder, mut workloads) = (decoder(config), self.workloads.clone());
        let kinds = [Some(kind), kind.through()].into_iter().flatten().map(WorkloadKind::id);
        for kind in kinds.chain(ADMISSION_KINDS).filter(|kind| !listed.contains(kind)) {
            let is_cluster_wide = ADMISSION_KINDS.contains(&kind) && kind.plural != "limitranges";
            let of = (!is_cluster_wide).then_some(&*namespace);
            match list_kind(server, kind, of).await {
                Ok(list) => {
                    for item in list.items() {
                        if let Decoded::Object(object) = decoder.decode_kind(item, kind)?
                            && !self.written.contains(&(kind, object.key.clone()))
                        {
                            workloads.take(&object, 0)?;
                        }
                    }
                }
                Err(ListError::Forbidden(_)) => {
                    self.unread_for_workloads.insert(kind.plural);
                }
                // A kind that is not served has no objects.
                Err(ListError::NotServed(_)) => {}
                Err(error @ ListError::Failed { .. }) => return Err(error.into()),
            }
        }
        self.expect(workloads, config, Some(named))
    }
}

impl Expected {
    fn is(&self, kind: WorkloadKind, name: &str) -> bool {
        (self.summary.kind, &*self.summary.name) == (kind, name)
            || self.parent.as_ref().is_some_and(|(parent, of)| (*parent, &**of) == (kind, name))
    }

    /// A pod of it, to be explained.
    pub(crate) fn first(&self) -> Option<&Arc<Pod>> {
        self.pods.first().or(self.waiting.first())
    }

    /// Whether it would create any pod.
    pub(crate) fn has_pods(&self) -> bool {
        !self.pods.is_empty()
    }

    /// Whether it is of a namespace.
    pub(crate) fn is_of(&self, namespace: &str) -> bool {
        self.summary.name.split_once('/').is_some_and(|(of, _)| of == namespace)
    }

    /// The pod of that name among those that would be created.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Pod>> {
        self.pods.iter().find(|pod| pod.key() == name)
    }

    /// Whether it is worth a line although there is nothing to explain.
    fn speaks(&self) -> bool {
        self.is_manifest && self.pods.is_empty()
    }

    /// Takes those pods of DaemonSets out of the pending ones that are told together with the others.
    pub(crate) fn gather(expected: &[Self], pending: &mut Vec<Arc<Pod>>) {
        let per_node = || expected.iter().filter(|expected| expected.is_per_node);
        let waiting: std::collections::BTreeSet<Arc<str>> =
            per_node().flat_map(|expected| &expected.waiting).map(|pod| pod.uid.clone()).collect();
        pending.retain(|pod| !waiting.contains(&pod.uid));
    }
}

/// Explains what workloads would create, workload by workload. `finish` adds what else is known about a pod of it.
pub(crate) fn explain(
    expected: &[Expected],
    explainers: &[Explainer<'_>],
    config: &LoadedConfig,
    finish: impl Fn(&mut Explanation, &Pod),
) -> anyhow::Result<Vec<Explanation>> {
    let mut explanations = Vec::new();
    for workload in expected {
        let Some(first) = workload.first() else { continue };
        let explainer = &explainers[config.profile_for(first).0];
        let of_workload = if workload.is_per_node {
            let pods: Vec<Arc<Pod>> = workload.waiting.iter().chain(&workload.pods).cloned().collect();
            let tried = side_by_side(&pods, |pod| explainer.on_its_node(pod));
            let tried: Vec<_> = pods.into_iter().zip(tried).collect();
            vec![explainer.explain_per_node(&workload.summary.name, &tried)]
        } else {
            let kinds = of_a_kind(workload.pods.clone());
            let explained = side_by_side(&kinds, |kind| {
                let alike = kind[1..].iter().map(|pod| pod.key()).collect();
                Explanation { alike, ..explainer.explain(&kind[0]) }
            });
            merged(explained)?
        };
        for mut explanation in of_workload {
            explanation.workload = Some(workload.summary.clone());
            finish(&mut explanation, first);
            explanations.push(explanation);
        }
    }
    Ok(explanations)
}

/// Tells pods together that differ, but of which the same is to be said.
fn merged(explanations: Vec<Explanation>) -> anyhow::Result<Vec<Explanation>> {
    let mut merged: Vec<(String, Explanation)> = Vec::new();
    for explanation in explanations {
        let verdict = serde_json::to_string(&explanation.verdict)?;
        match merged.iter_mut().find(|(other, _)| *other == verdict) {
            Some((_, first)) => {
                first.alike.push(explanation.pod);
                first.alike.extend(explanation.alike);
            }
            None => merged.push((verdict, explanation)),
        }
    }
    Ok(merged.into_iter().map(|(_, explanation)| explanation).collect())
}

/// What is said about workloads that have nothing to explain.
pub(crate) fn silent(expected: &[Expected]) -> String {
    expected.iter().filter(|expected| expected.speaks()).map(|expected| expected.summary.text()).collect()
}
