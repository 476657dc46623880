//! What of a profile matters for keeping answers, worked out once for all classes.

use std::collections::BTreeSet;

use supercargo_framework::{FieldSet, NodeField, PluginInstance, PodField, Profile, Reads};
use supercargo_model::{KindId, Pod};

/// A profile with more plugins than this is decided the plain way.
const PLUGINS_MAX: usize = u64::BITS as usize;

/// The plugins of a profile that take part in finding a node.
#[derive(Debug)]
pub(super) struct Recipe {
    plugins: Vec<RecipePlugin>,
    instances: Vec<PluginInstance>,
    /// What of a pod's fields they read.
    pub(super) fields: FieldSet<PodField>,
    pre_filters: Vec<usize>,
    filters: Vec<usize>,
    pre_scores: Vec<usize>,
    scores: Vec<usize>,
    /// The plugins at PreBind.
    pub(super) pre_binds: Vec<usize>,
}

/// A plugin, as far as keeping its answers goes.
#[derive(Debug)]
pub(super) struct RecipePlugin {
    pub(super) number: usize,
    /// Whether it takes part at PreFilter and PreScore if it has anything to say there. If not, its other answers may be
    /// errors, also for pods that do not concern it.
    is_prepared: bool,
    /// Whether answers depend on nothing but the pod, the row, objects whose versions are known, and the census.
    pub(super) is_local: bool,
    /// Whether what PreFilter and PreScore say depends on the pod and on objects only.
    pub(super) is_stable: bool,
    /// Whether rows of one shape get one answer.
    pub(super) is_by_shape: bool,
    pub(super) reads_census: bool,
    /// Whether answers depend on the pods of the row.
    pub(super) reads_pods: bool,
    pub(super) fields: FieldSet<PodField>,
    pub(super) kinds: Vec<KindId>,
    /// Its position among the filters.
    pub(super) filter: Option<usize>,
    /// Its position among the scores.
    pub(super) score: Option<usize>,
}

/// A set of plugins of one profile, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PluginSet(u64);

impl PluginSet {
    pub(super) const EMPTY: Self = PluginSet(0);

    pub(super) fn contains(self, number: usize) -> bool {
        self.0 & (1 << number) != 0
    }

    pub(super) fn insert(&mut self, number: usize) {
        self.0 |= 1 << number;
    }
}

impl Recipe {
    /// None if the profile has too many plugins.
    pub(super) fn of(profile: &Profile) -> Option<Self> {
        let instances = profile.plugins();
        if instances.len() > PLUGINS_MAX {
            return None;
        }
        let pre_filters: Vec<usize> = profile.pre_filter.iter().map(|named| named.number).collect();
        let filters: Vec<usize> = profile.filter.iter().map(|named| named.number).collect();
        let pre_scores: Vec<usize> = profile.pre_score.iter().map(|named| named.number).collect();
        let scores: Vec<usize> = profile.score.iter().map(|(named, _)| named.number).collect();
        let pre_binds = profile.pre_bind.iter().map(|named| named.number).collect();
        let position = |list: &[usize], number: usize| list.iter().position(|other| *other == number);
        let plugin = |(number, instance): (usize, &PluginInstance)| RecipePlugin {
            number,
            is_prepared: (pre_filters.contains(&number) || !instance.implements_pre_filter())
                && (pre_scores.contains(&number) || !instance.implements_pre_score()),
            is_local: is_local(&instance.reads),
            is_stable: is_local(&instance.reads) && !instance.reads.all_nodes,
            is_by_shape: is_by_shape(&instance.reads),
            reads_census: instance.reads.all_nodes,
            reads_pods: [NodeField::Requested, NodeField::Pods]
                .iter()
                .any(|field| instance.reads.node.contains(*field)),
            fields: instance.reads.pod,
            kinds: instance.reads.kinds.iter().map(|kind| kind.id).collect(),
            filter: position(&filters, number),
            score: position(&scores, number),
        };
        let plugins: Vec<RecipePlugin> = instances.iter().enumerate().map(plugin).collect();
        let deciding = [&pre_filters, &filters, &pre_scores, &scores].into_iter().flatten();
        let fields = deciding.fold(FieldSet::EMPTY, |fields, number| fields.or(plugins[*number].fields));
        let instances = instances.to_vec();
        Some(Recipe { plugins, instances, fields, pre_filters, filters, pre_scores, scores, pre_binds })
    }

    /// The plugins that have anything to say about such a pod.
    pub(super) fn concerned(&self, pod: &Pod) -> PluginSet {
        let mut concerned = PluginSet::EMPTY;
        for (instance, plugin) in self.instances.iter().zip(&self.plugins) {
            if !plugin.is_prepared || instance.concerns(pod) {
                concerned.insert(plugin.number);
            }
        }
        concerned
    }

    /// The plugins that take part in finding a node.
    pub(super) fn plugins(&self) -> impl Iterator<Item = &RecipePlugin> {
        let is_deciding = |plugin: &&RecipePlugin| {
            let lists = [&self.pre_filters, &self.filters, &self.pre_scores, &self.scores];
            lists.iter().any(|list| list.contains(&plugin.number))
        };
        self.plugins.iter().filter(is_deciding)
    }

    pub(super) fn pre_filters(&self) -> impl Iterator<Item = &RecipePlugin> {
        self.pre_filters.iter().map(|number| &self.plugins[*number])
    }

    pub(super) fn filters(&self) -> impl Iterator<Item = &RecipePlugin> {
        self.filters.iter().map(|number| &self.plugins[*number])
    }

    pub(super) fn pre_scores(&self) -> impl Iterator<Item = &RecipePlugin> {
        self.pre_scores.iter().map(|number| &self.plugins[*number])
    }

    pub(super) fn scores(&self) -> impl Iterator<Item = &RecipePlugin> {
        self.scores.iter().map(|number| &self.plugins[*number])
    }

    /// The names of the plugins with filters that are not in the set.
    pub(super) fn names_without(&self, set: PluginSet) -> BTreeSet<&'static str> {
        let others = self.pre_filters.iter().chain(&self.filters).filter(|number| !set.contains(**number));
        others.map(|number| self.instances[*number].name).collect()
    }
}

fn is_local(reads: &Reads) -> bool {
    let own = [PodField::Name, PodField::Timestamps, PodField::Status, PodField::Progress];
    let reads_own = own.iter().any(|field| reads.pod.contains(*field));
    let reads_more = reads.topology || reads.time || reads.memory || reads.raw_objects;
    !reads_own && !reads_more && reads.pods.is_nothing()
}

fn is_by_shape(reads: &Reads) -> bool {
    let shape = FieldSet::EMPTY.with(&[NodeField::Taints, NodeField::Unschedulable, NodeField::Features]);
    reads.node.is_within(shape) && !reads.all_nodes
}
