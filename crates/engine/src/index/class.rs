//! Classes of pods: those that all plugins of a profile answer alike for.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use supercargo_framework::{CountedFilter, CountedScore, CycleState, FieldSet, PodField, TermRole};
use supercargo_model::kinds::Namespace;
use supercargo_model::pod::ControllerReference;
use supercargo_model::{Interned, KindId, Labels, Pod, PodSpec, Snapshot};

use super::Question;
use super::base::PartKey;
use super::blueprint::Blueprint;
use super::counting::{Counting, SourceId, TallyId};
use super::local::LocalPlugins;
use super::plain::{PlainReason, UNKEPT_ANSWERS};
use super::planes::Planes;
use super::project::project;
use super::recipe::{PluginSet, Recipe};
use super::resolving::Resolved;

/// A key of maps that is hashed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hashed<T> {
    hash: u64,
    value: T,
}

/// What all pods of a class have in common, as far as any plugin looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClassKey {
    pub(super) profile: usize,
    spec: PodSpec,
    labels: Interned<Labels>,
    annotations: Option<Interned<Labels>>,
    namespace: Arc<str>,
    controller: Option<Interned<ControllerReference>>,
    /// What plugins say that have their own word on which pods are alike.
    alike: Vec<u64>,
}

/// What all pods of a base have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BaseKey {
    profile: usize,
    spec: PodSpec,
    labels: Option<Interned<Labels>>,
    annotations: Option<Interned<Labels>>,
    namespace: Option<Arc<str>>,
    controller: Option<Interned<ControllerReference>>,
    /// The plugins that filter, and those that score: whether a plugin does may depend on more than these fields.
    plugins: [PluginSet; 2],
    keys: Vec<PartKey>,
    alike: Vec<u64>,
}

/// A class of pods.
pub(super) struct Class {
    /// How it is decided; why not, if only by asking every plugin about every row.
    pub(super) indexed: Result<Indexed, PlainReason>,
    kinds: Vec<(KindId, u64)>,
    objects_version: u64,
    key_epochs: Vec<(usize, u64)>,
    terms_seen: usize,
    roles: Vec<TermRole>,
    pod: Arc<Pod>,
    pub(super) last_used: u64,
    /// Tells it from all classes that ever were.
    pub(super) generation: u64,
}

/// How the pods of a class are decided by what is kept.
pub(super) struct Indexed {
    /// One of the pods.
    pub(super) pod: Arc<Pod>,
    pub(super) base_key: Arc<Hashed<BaseKey>>,
    /// The number of its base, and what tells that base from others that had the number.
    pub(super) base: Option<(usize, u64)>,
    pub(super) plugins: LocalPlugins,
    /// What PreFilter and PreScore left.
    pub(super) state: CycleState,
    /// The kinds of objects that the base's plugins read, and their versions.
    pub(super) kinds: Vec<(KindId, u64)>,
    pub(super) filters: Vec<ClassFilter>,
    pub(super) scores: Vec<ClassScore>,
    /// All that is counted: first what the filters count, then what the scores do.
    pub(super) counters: Vec<ClassCounter>,
    pub(super) terms: Vec<ClassTerm>,
    /// Those of the counters, the terms' included, that have a count for every row.
    pub(super) by_row: Vec<ClassCounter>,
    /// Whether one of the counters wants to know what pods of all places are worth.
    pub(super) wants_weights: bool,
    /// Rows grouped by the class itself, where it has too many rows of its own for a list.
    pub(super) planes: Option<Planes>,
    /// The plugins whose filters look at rows.
    pub(super) asked: PluginSet,
    pub(super) recipe: Arc<Recipe>,
    /// Whether something has to be planned for such pods before they run.
    pub(super) has_plans: bool,
}

pub(super) struct ClassFilter {
    pub(super) name: &'static str,
    pub(super) filter: Arc<dyn CountedFilter>,
    pub(super) first_cell: usize,
}

pub(super) struct ClassScore {
    pub(super) name: &'static str,
    pub(super) score: Arc<dyn CountedScore>,
    pub(super) weight: i64,
    pub(super) first_cell: usize,
}

/// Something that is counted for a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassCounter {
    pub(super) source: SourceId,
    pub(super) tally: Option<TallyId>,
    pub(super) column: usize,
    /// Which of the base's keys it is counted by.
    pub(super) part_key: usize,
    /// Whether every row has its own count.
    pub(super) is_by_row: bool,
    /// Whether such counts are those of domains with several rows.
    pub(super) is_by_small_domain: bool,
    /// Whether it matters in how many domains the feasible rows of groups are, which only the class's own planes know.
    pub(super) counts_domains: bool,
    /// Whether it is wanted what the pods of all domains are worth.
    pub(super) wants_weights: bool,
}

/// A term of running pods that means the pods of the class.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassTerm {
    pub(super) role: TermRole,
    pub(super) weight: i64,
    pub(super) counter: ClassCounter,
}

impl Indexed {
    /// Whether a decision for such pods looks at counts of others.
    pub(super) fn counts_anything(&self) -> bool {
        !self.filters.is_empty()
            || !self.scores.is_empty()
            || !self.counters.is_empty()
            || !self.terms.is_empty()
            || self.planes.is_some()
    }
}

impl ClassCounter {
    /// What is counted for a row.
    pub(super) fn in_row(&self, row: u32, counting: &Counting) -> u32 {
        match self.tally {
            None => counting.in_row(self.source, row),
            Some(tally) => counting.in_domain(tally, counting.keys.get(self.column).value(row)),
        }
    }

    /// Adds all rows for which something is counted, and perhaps some others, and some twice.
    pub(super) fn extend_with_rows(&self, rows: &mut Vec<u32>, counting: &Counting) {
        if !self.is_by_small_domain {
            counting.extend_with_rows(self.source, rows);
            return;
        }
        let column = counting.keys.get(self.column);
        let rows_with_pods = counting.rows(self.source);
        match self.tally {
            Some(tally) if counting.row_count(self.source) * column.largest() > column.domain_numbers() => {
                let domains = (0..column.domain_numbers() as u32)
                    .filter(|domain| counting.in_domain(tally, *domain) > 0);
                rows.extend(domains.flat_map(|domain| column.rows(domain)));
            }
            _ => rows.extend(rows_with_pods.flat_map(|row| column.rows(column.value(row)))),
        }
    }
}

impl<T: Hash> Hashed<T> {
    fn new(value: T) -> Self {
        Hashed { hash: FxBuildHasher.hash_one(&value), value }
    }
}

impl<T> Hashed<T> {
    pub(super) fn number(&self) -> u64 {
        self.hash
    }
}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl ClassKey {
    pub(super) fn of(profile: usize, pod: &Pod, fields: FieldSet<PodField>, alike: Vec<u64>) -> Hashed<Self> {
        Hashed::new(ClassKey {
            alike,
            profile,
            spec: project(&pod.spec, fields),
            labels: pod.labels.clone(),
            annotations: fields.contains(PodField::Annotations).then(|| pod.annotations.clone()),
            namespace: pod.namespace.clone(),
            controller: pod.controller.clone(),
        })
    }
}

impl Class {
    /// A class whose pods are decided the plain way.
    fn plain(pod: &Arc<Pod>, reason: PlainReason) -> Self {
        Class {
            indexed: Err(reason),
            kinds: Vec::new(),
            objects_version: 0,
            key_epochs: Vec::new(),
            terms_seen: 0,
            roles: Vec::new(),
            pod: pod.clone(),
            last_used: 0,
            generation: 0,
        }
    }

    /// Whether what was worked out for the class still holds.
    pub(super) fn is_current(&mut self, cluster: &Snapshot, counting: &Counting) -> bool {
        let objects = cluster.objects();
        if self.objects_version != objects.latest_version() {
            if self.kinds.iter().any(|(kind, version)| objects.version(*kind) != *version) {
                return false;
            }
            self.objects_version = objects.latest_version();
        }
        if self.key_epochs.iter().any(|(column, epoch)| counting.keys.get(*column).epoch() != *epoch) {
            return false;
        }
        if self.terms_seen != counting.new_term_count() {
            let Some(mut new) = counting.new_terms(self.terms_seen) else { return false };
            let labels = namespace_labels(cluster, &self.pod);
            if new.any(|term| self.roles.contains(&term.role) && term.means(&self.pod, &labels)) {
                return false;
            }
            self.terms_seen = counting.new_term_count();
        }
        true
    }

    pub(super) fn has_planes(&self) -> bool {
        self.indexed.as_ref().is_ok_and(|indexed| indexed.planes.is_some())
    }

    /// Forgets the planes of its own; whether it had any.
    pub(super) fn drop_planes(&mut self) -> bool {
        self.indexed.as_mut().is_ok_and(|indexed| indexed.planes.take().is_some())
    }

    /// Gives back what the class uses.
    pub(super) fn release(self, counting: &mut Counting) {
        let Ok(indexed) = &self.indexed else { return };
        for counter in indexed.counters.iter().chain(indexed.terms.iter().map(|term| &term.counter)) {
            counting.release(counter.source, counter.tally);
        }
    }

    /// Works out how pods like this one are decided.
    pub(super) fn compile(
        question: &Question<'_>,
        recipe: &Arc<Recipe>,
        resolved: &Resolved,
        counting: &mut Counting,
    ) -> Self {
        let (cluster, pod) = (question.context.cluster, question.pod);
        let mut class = Class::plain(pod, UNKEPT_ANSWERS);
        class.objects_version = cluster.objects().latest_version();
        class.terms_seen = counting.new_term_count();
        let concerned = recipe.concerned(pod);
        for plugin in recipe.plugins().filter(|plugin| concerned.contains(plugin.number)) {
            let kinds = plugin.kinds.iter().map(|kind| (*kind, cluster.objects().version(*kind)));
            class.kinds.extend(kinds);
        }
        class.indexed = Blueprint::draw(question, recipe, concerned, resolved).map(|blueprint| {
            class.roles = blueprint.roles();
            blueprint.build(question.profile_number, pod, cluster, counting, &mut class.key_epochs)
        });
        class
    }
}

impl BaseKey {
    pub(super) fn of(
        profile: usize,
        pod: &Pod,
        fields: FieldSet<PodField>,
        plugins: [PluginSet; 2],
        keys: Vec<PartKey>,
        alike: Vec<u64>,
    ) -> Hashed<Self> {
        let reads = |field| fields.contains(field);
        Hashed::new(BaseKey {
            alike,
            profile,
            spec: project(&pod.spec, fields),
            labels: reads(PodField::Labels).then(|| pod.labels.clone()),
            annotations: reads(PodField::Annotations).then(|| pod.annotations.clone()),
            namespace: reads(PodField::Namespace).then(|| pod.namespace.clone()),
            controller: pod.controller.clone().filter(|_| reads(PodField::Controller)),
            plugins,
            keys,
        })
    }
}

impl Hashed<BaseKey> {
    pub(super) fn keys(&self) -> &[PartKey] {
        &self.value.keys
    }
}

/// The labels of the pod's namespace; none if nobody knows the namespace.
pub(super) fn namespace_labels(cluster: &Snapshot, pod: &Pod) -> Labels {
    let namespace = cluster.objects().get::<Namespace>("", &pod.namespace);
    namespace.map(|namespace| namespace.metadata.labels.clone()).unwrap_or_default()
}
