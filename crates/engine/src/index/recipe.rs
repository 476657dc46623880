//! What of a profile matters for keeping answers, worked out once for all classes.

use std::collections::BTreeSet;

use supercargo_framework::{FieldSet, NodeField, PluginInstance, PodField, Profile, Reads, Touched};
use supercargo_model::cluster::ObjectChange;
use supercargo_model::{KindId, Pod, Snapshot};

use super::plain::PlainReason;

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
    /// The positions at PreFilter of the plugins that are asked about each pod.
    verdicts: Vec<usize>,
    /// The plugins that say which pods are alike.
    alike: Vec<usize>,
    /// The plugins that say with every decision what the pod comes to, as they stand at PreFilter.
    resolved: Vec<usize>,
    /// Whether pods that share their parts, such as their spec, concern the same of those plugins.
    pub(super) resolves_by_parts: bool,
}

/// What tells pods apart that share their parts.
const OWN_FIELDS: [PodField; 5] =
    [PodField::Name, PodField::NodeName, PodField::Timestamps, PodField::Status, PodField::Progress];

/// A plugin, as far as keeping its answers goes.
#[derive(Debug)]
pub(super) struct RecipePlugin {
    pub(super) number: usize,
    /// Whether it takes part at PreFilter and PreScore if it has anything to say there. If not, its other answers may be
    /// errors, also for pods that do not concern it.
    is_prepared: bool,
    implements: Preparations,
    pub(super) name: &'static str,
    /// Why answers depend on more than the pod, the row, objects whose versions are known, and the census; none if they do not.
    pub(super) unkept: Option<&'static str>,
    /// Why what PreFilter and PreScore say depends on more than the pod and objects; none if it does not.
    pub(super) unstable: Option<&'static str>,
    /// Whether the plugin says nothing about nodes, only about the pod as a whole, and may say something else each time.
    pub(super) is_verdict: bool,
    /// Whether rows of one shape get one answer.
    pub(super) is_by_shape: bool,
    pub(super) reads_census: bool,
    /// Whether answers depend on the pods of the row.
    pub(super) reads_pods: bool,
    /// The fields by which pods are told apart.
    pub(super) fields: FieldSet<PodField>,
    /// Whether the plugin itself says which pods are alike.
    is_alike: bool,
    /// Whether the plugin says with every decision what the pod comes to.
    pub(super) is_resolved: bool,
    /// The kinds of objects that answers depend on, those of which only the object of the row is read left out.
    pub(super) kinds: Vec<KindId>,
    /// Its position among the filters.
    pub(super) filter: Option<usize>,
    /// Its position among the scores.
    pub(super) score: Option<usize>,
}

/// What a plugin does before it looks at nodes, wherever it is enabled.
#[derive(Clone, Copy, Debug)]
struct Preparations {
    pre_filter: bool,
    pre_score: bool,
}

/// A set of plugins of one profile, by number or by position in a list.
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

    /// The numbers, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let number = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(number)
        })
    }
}

impl RecipePlugin {
    /// Whether its Filter needs nothing that somebody would have to prepare.
    pub(super) fn has_no_pre_filter(&self) -> bool {
        !self.implements.pre_filter
    }

    /// Whether its Score needs nothing that its PreScore would have to prepare, and what it does before that is done.
    pub(super) fn has_no_pre_score(&self) -> bool {
        !self.implements.pre_score && self.is_prepared
    }

    /// Whether answers about nodes can be kept.
    pub(super) fn check_kept(&self) -> Result<(), PlainReason> {
        self.unkept.map_or(Ok(()), |why| Err(PlainReason::of(self.name, why)))
    }

    /// Whether what the plugin says at PreFilter and PreScore can be kept, if the pod is one of those that concern it.
    pub(super) fn check_stable(&self, concerned: PluginSet) -> Result<(), PlainReason> {
        match self.unstable.filter(|_| concerned.contains(self.number)) {
            Some(why) => Err(PlainReason::of(self.name, why)),
            None => Ok(()),
        }
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
        let plugin = |(number, instance): (usize, &PluginInstance)| {
            let reads = &instance.reads;
            let (filter, score) = (position(&filters, number), position(&scores, number));
            // What is left in the cycle is needed where answers are kept.
            let is_resolved = reads.resolved && pre_filters.contains(&number);
            let unkept = if is_resolved == reads.resolved {
                reads.unkept()
            } else {
                Reads { resolved: false, ..reads.clone() }.unkept()
            };
            let unstable = unkept.or(reads.all_nodes.then_some("it reads facts of all nodes together"));
            let kinds: Vec<KindId> = reads.kinds.iter().map(|kind| kind.id).collect();
            let says_nothing_of_nodes = filter.is_none() && score.is_none() && !pre_scores.contains(&number);
            RecipePlugin {
                number,
                name: instance.name,
                is_prepared: (pre_filters.contains(&number) || !instance.implements_pre_filter())
                    && (pre_scores.contains(&number) || !instance.implements_pre_score()),
                implements: Preparations {
                    pre_filter: instance.implements_pre_filter(),
                    pre_score: instance.implements_pre_score(),
                },
                unkept,
                unstable,
                is_verdict: says_nothing_of_nodes && (unstable.is_some() || !kinds.is_empty()),
                is_by_shape: is_by_shape(reads),
                reads_census: reads.all_nodes,
                reads_pods: [NodeField::Requested, NodeField::Pods]
                    .iter()
                    .any(|field| reads.node.contains(*field)),
                fields: if reads.alike || is_resolved { FieldSet::EMPTY } else { reads.pod },
                is_alike: reads.alike,
                is_resolved,
                kinds: (kinds.into_iter())
                    .filter(|kind| !is_resolved && !reads.of_node.contains(kind))
                    .collect(),
                filter,
                score,
            }
        };
        let plugins: Vec<RecipePlugin> = instances.iter().enumerate().map(plugin).collect();
        let deciding = [&pre_filters, &filters, &pre_scores, &scores].into_iter().flatten();
        let deciding: BTreeSet<usize> =
            deciding.copied().filter(|number| !plugins[*number].is_verdict).collect();
        let fields =
            deciding.iter().fold(FieldSet::EMPTY, |fields, number| fields.or(plugins[*number].fields));
        let alike = deciding.into_iter().filter(|number| plugins[*number].is_alike).collect();
        let is_resolved = |number: &usize| plugins[*number].is_resolved && !plugins[*number].is_verdict;
        let resolved: Vec<usize> = pre_filters.iter().copied().filter(is_resolved).collect();
        let reads = |number: &usize, field: PodField| instances[*number].reads.pod.contains(field);
        let resolves_by_parts =
            !OWN_FIELDS.iter().any(|field| resolved.iter().any(|number| reads(number, *field)));
        let is_verdict = |position: &usize| plugins[pre_filters[*position]].is_verdict;
        let verdicts = (0..pre_filters.len()).filter(is_verdict).collect();
        Some(Recipe {
            instances: instances.to_vec(),
            plugins,
            fields,
            pre_filters,
            filters,
            pre_scores,
            scores,
            pre_binds,
            verdicts,
            alike,
            resolved,
            resolves_by_parts,
        })
    }

    /// Whether plugins are asked about each pod.
    pub(super) fn has_verdicts(&self) -> bool {
        !self.verdicts.is_empty()
    }

    /// The plugins that are asked about each pod: where they stand at PreFilter.
    pub(super) fn verdicts(&self, pod: &Pod) -> impl Iterator<Item = usize> {
        let position = |position: &&usize| self.instances[self.pre_filters[**position]].concerns(pod);
        self.verdicts.iter().filter(position).copied()
    }

    /// What those plugins say that have their own word on which pods are alike; those of the set.
    pub(super) fn alike(&self, pod: &Pod, of: impl Fn(usize) -> bool) -> Vec<u64> {
        let asked = self.alike.iter().filter(|number| of(**number));
        asked.map(|number| self.instances[*number].alike(pod)).collect()
    }

    /// Whether a plugin has its own word on which pods are alike.
    pub(super) fn has_alike(&self) -> bool {
        !self.alike.is_empty()
    }

    /// The plugins that say with every decision what such a pod comes to, with their numbers.
    pub(super) fn resolved(&self, pod: &Pod) -> impl Iterator<Item = (usize, &PluginInstance)> {
        let numbered = self.resolved.iter().map(|number| (*number, &self.instances[*number]));
        numbered.filter(|(_, instance)| instance.concerns(pod))
    }

    /// About which nodes plugins may say something else after an object has changed.
    pub(super) fn touched(&self, cluster: &Snapshot, change: &ObjectChange) -> impl Iterator<Item = Touched> {
        self.resolved.iter().map(|number| self.instances[*number].touched(cluster, change))
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
            !plugin.is_verdict && lists.iter().any(|list| list.contains(&plugin.number))
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

fn is_by_shape(reads: &Reads) -> bool {
    let shape = FieldSet::EMPTY.with(&[NodeField::Taints, NodeField::Unschedulable, NodeField::Features]);
    reads.node.is_within(shape) && !reads.all_nodes && reads.of_node.is_empty()
}
