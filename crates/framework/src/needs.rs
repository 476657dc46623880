//! What the plugins of a scheduler need to know of a cluster, taken together.

use std::collections::{BTreeMap, BTreeSet};

use supercargo_model::{Decoder, KindId, ReadableKind};

use crate::profile::Profile;
use crate::queries::{Query, is_fact_kind};
use crate::reads::Reads;

/// What the plugins of all profiles read: which kinds are watched, how their objects are read, and who else is asked.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// What is read of each kind other than pods and nodes, each struct that a kind is read into once.
    read: Vec<ReadableKind>,
    keeps_texts: bool,
    queries: Vec<Query>,
    pods: PodNeeds,
    /// Who misses a kind that the API server does not have.
    readers: BTreeMap<KindId, Readers>,
}

/// The plugins that read a kind and miss it where the API server does not have it.
#[derive(Clone, Debug, Default)]
struct Readers {
    plugins: BTreeSet<&'static str>,
    /// Whether one of them is of no use without it.
    is_required: bool,
}

/// What is needed of pods beyond those that wait or run, and what asks for room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodNeeds {
    /// Their phases, and when they were scheduled.
    pub progress: bool,
    /// Pods that have run their course.
    pub finished: bool,
}

impl Needs {
    /// What these profiles need.
    pub fn of<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> Self {
        let mut needs = Needs::default();
        for profile in profiles {
            profile.reads.iter().for_each(|reads| needs.add(reads));
            profile.plugins().iter().for_each(|plugin| needs.add_reader(plugin.name, &plugin.reads));
        }
        needs
    }

    fn add_reader(&mut self, plugin: &'static str, reads: &Reads) {
        for kind in reads.kinds.iter().map(|kind| kind.id).filter(|kind| !reads.optional.contains(kind)) {
            let readers = self.readers.entry(kind).or_default();
            readers.plugins.insert(plugin);
            readers.is_required |= reads.required.contains(&kind);
        }
    }

    fn add(&mut self, reads: &Reads) {
        for kind in &reads.kinds {
            self.read(*kind);
        }
        for query in &reads.queries {
            self.ask(query);
        }
        self.keeps_texts |= reads.raw_objects;
        self.pods.progress |= reads.pod_progress();
        self.pods.finished |= reads.pods.finished;
    }

    fn ask(&mut self, query: &Query) {
        if !self.queries.contains(query) {
            self.queries.push(query.clone());
        }
    }

    fn read(&mut self, kind: ReadableKind) {
        if !self.read.iter().any(|known| known.is_same(&kind)) {
            self.read.push(kind);
        }
    }

    /// Objects of another kind are read as well.
    #[must_use]
    pub fn and(mut self, kind: ReadableKind) -> Self {
        self.read(kind);
        self
    }

    /// Pods and nodes keep their texts whatever the plugins say, if `keeps` says so: extenders are shown whole objects.
    #[must_use]
    pub fn and_texts(mut self, keeps: bool) -> Self {
        self.keeps_texts |= keeps;
        self
    }

    /// What these and others need, taken together.
    #[must_use]
    pub fn and_all(mut self, others: &Needs) -> Self {
        for kind in &others.read {
            self.read(*kind);
        }
        for query in &others.queries {
            self.ask(query);
        }
        self.keeps_texts |= others.keeps_texts;
        self.pods.progress |= others.pods.progress;
        self.pods.finished |= others.pods.finished;
        for (kind, Readers { plugins, is_required }) in &others.readers {
            let readers = self.readers.entry(*kind).or_default();
            readers.plugins.extend(plugins);
            readers.is_required |= is_required;
        }
        self
    }

    /// Whether objects of a kind that are read for these can be used by those who need the others: they are read into every struct
    /// that the others read, and have their texts if the others want them.
    pub fn covers(&self, others: &Needs, kind: KindId) -> bool {
        let mut wanted = others.read.iter().filter(|wanted| wanted.id == kind);
        let has_text = kind == KindId::POD || kind == KindId::NODE;
        wanted.all(|wanted| self.read.iter().any(|known| known.is_same(wanted)))
            && (self.keeps_texts || !others.keeps_texts || !has_text)
    }

    /// The kinds that are read from the API server: pods, nodes, and what the plugins declare. The facts of queries are not
    /// among them, because the driver asks for those itself.
    pub fn kinds(&self) -> BTreeSet<KindId> {
        let declared = self.read.iter().map(|kind| kind.id).filter(|kind| !is_fact_kind(*kind));
        declared.chain([KindId::POD, KindId::NODE]).collect()
    }

    /// What it means that the API server does not have a kind, in words; none if nobody misses it.
    pub fn absence(&self, kind: KindId) -> Option<String> {
        let Readers { plugins, is_required } = self.readers.get(&kind)?;
        let KindId { group, plural, version, .. } = kind;
        let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let plugins: Vec<&str> = plugins.iter().copied().collect();
        let (many, plugins) = (plugins.len() > 1, plugins.join(", "));
        let verb = match (is_required, many) {
            (true, true) => "are of no use without",
            (true, false) => "is of no use without",
            (false, true) => "read",
            (false, false) => "reads",
        };
        let goes = if many { "go" } else { "goes" };
        Some(format!(
            "{plugins} {verb} {name}, of which the API server has no {version}, and {goes} on as if there were none: install the \
             definition; `supercargo crds` prints those that come with it"
        ))
    }

    /// Whether pods and nodes keep their texts.
    pub fn keeps_texts(&self) -> bool {
        self.keeps_texts
    }

    /// What is needed of pods beyond what every scheduler needs.
    pub fn pods(&self) -> PodNeeds {
        self.pods
    }

    /// Who is asked besides the API server, by the names of the queries.
    pub fn queries(&self) -> &[Query] {
        &self.queries
    }

    /// Two queries that cannot be asked side by side, if there are any.
    pub fn colliding_queries(&self) -> Option<(&Query, &Query)> {
        let pairs = self.queries.iter().enumerate();
        let mut pairs = pairs
            .flat_map(|(index, query)| self.queries[index + 1..].iter().map(move |other| (query, other)));
        pairs.find(|(query, other)| query.collides_with(other))
    }

    /// Reads objects as these profiles want them.
    pub fn decoder(&self) -> Decoder {
        Decoder::new(self.read.iter().copied(), self.keeps_texts).keeping_progress(self.pods.progress)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use supercargo_model::kinds::{PersistentVolume, StorageClass};
    use supercargo_model::{Decoded, Kind, KindId, ReadableKind};

    use super::{Needs, PodNeeds};
    use crate::profile::Profile;
    use crate::queries::{Query, QuerySource, fact_kind};
    use crate::reads::{PodField, Reads};

    fn profile(reads: Reads) -> Profile {
        let mut profile = Profile::new("p");
        profile.reads = Some(reads);
        profile
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Load(i64);

    impl Kind for Load {
        const ID: KindId = fact_kind("Load", "loads");
    }

    fn query() -> Query {
        Query::per_node::<Load>("load", QuerySource::NodeMetrics, |_, _| Ok(()))
    }

    #[test]
    fn queries_that_would_tell_of_the_same_objects_collide() {
        let needs = |queries: Vec<Query>| {
            Needs::of(&[profile(queries.into_iter().fold(Reads::nothing(), Reads::query))])
        };
        let whole = |name: &str| Query::whole::<Load>(name, QuerySource::NodeMetrics, |_| Ok(Load(0)));
        let slower = || query().every(Duration::from_secs(60));
        let named = Query::per_node::<Load>("other", QuerySource::NodeMetrics, |_, _| Ok(()));
        let table = [
            (vec![query(), query()], false),
            (vec![query(), slower()], true),
            (vec![query(), named], true),
            (vec![query(), whole("one")], true),
            (vec![whole("one"), whole("two")], false),
            (vec![whole("one"), whole("one").with("unit", "percent")], true),
        ];
        for (queries, collide) in table {
            assert_eq!(needs(queries.clone()).colliding_queries().is_some(), collide, "{queries:?}");
        }
    }

    #[test]
    fn profiles_are_taken_together() {
        let volumes = Reads::nothing().kind::<PersistentVolume>().kind::<StorageClass>();
        let classes = Reads::nothing().kind::<StorageClass>().raw_objects();
        let asks = || Reads::nothing().query(query());
        let (pod, node) = (KindId::POD, KindId::NODE);
        let table = [
            (vec![], vec![pod, node], false, 0),
            (vec![Profile::new("empty")], vec![pod, node], false, 0),
            (
                vec![profile(volumes.clone())],
                vec![pod, node, PersistentVolume::ID, StorageClass::ID],
                false,
                0,
            ),
            (
                vec![profile(volumes), profile(classes)],
                vec![pod, node, PersistentVolume::ID, StorageClass::ID],
                true,
                0,
            ),
            (vec![profile(asks()), profile(asks())], vec![pod, node], false, 1),
        ];
        for (profiles, kinds, keeps_texts, queries) in table {
            let needs = Needs::of(&profiles);
            assert_eq!(needs.kinds(), kinds.into_iter().collect(), "{profiles:?}");
            assert_eq!(needs.keeps_texts(), keeps_texts, "{profiles:?}");
            assert_eq!(needs.queries().len(), queries, "{profiles:?}");
        }
    }

    #[test]
    fn whoever_misses_a_kind_is_named() {
        let mut needs = Needs::default();
        needs.add_reader("Quotas", &Reads::nothing().required_kind::<StorageClass>());
        let optional = Reads::nothing().optional_kind::<PersistentVolume>();
        needs.add_reader("Volumes", &optional);
        let words = needs.absence(StorageClass::ID).expect("somebody misses it");
        let expected = "Quotas is of no use without storageclasses.storage.k8s.io, of which the API server has no v1, and goes on";
        assert!(words.starts_with(expected), "{words}");
        assert_eq!(needs.absence(PersistentVolume::ID), None);
        assert_eq!(needs.absence(KindId::POD), None, "nobody says so");
        needs.add_reader("Classes", &Reads::nothing().kind::<PersistentVolume>().kind::<StorageClass>());
        let words = needs.absence(StorageClass::ID).expect("two miss it");
        assert!(
            words.starts_with("Classes, Quotas are of no use without storageclasses.storage.k8s.io"),
            "{words}"
        );
        let words = needs.absence(PersistentVolume::ID).expect("one of two misses it");
        assert!(words.starts_with("Classes reads persistentvolumes, of which"), "{words}");
        let both = optional.and(Reads::nothing().kind::<PersistentVolume>());
        assert!(both.optional.is_empty(), "one of them misses it");
    }

    #[test]
    fn plugins_may_read_a_kind_each_into_a_struct_of_its_own() {
        #[derive(Debug, serde::Deserialize)]
        struct Provisioner {}

        impl Kind for Provisioner {
            const ID: KindId = StorageClass::ID;
        }

        let both = [
            profile(Reads::nothing().kind::<StorageClass>()),
            profile(Reads::nothing().kind::<StorageClass>().kind::<Provisioner>()),
        ];
        let needs = Needs::of(&both);
        assert_eq!(needs.read.len(), 2);
        assert_eq!(needs.kinds().len(), 3, "pods, nodes and storage classes");

        let [first, second] = both.each_ref().map(|profile| Needs::of([profile]));
        let (pods, classes) = (KindId::POD, StorageClass::ID);
        assert!(second.covers(&first, classes) && !first.covers(&second, classes));
        assert!(first.covers(&second, pods), "the kinds differ, the pods do not");
        assert!(first.clone().and_all(&second).covers(&second, classes));
        let with_texts = first.clone().and_texts(true);
        assert!(with_texts.covers(&first, pods) && !first.covers(&with_texts, pods));
        assert!(first.covers(&with_texts, classes), "only pods and nodes have texts");
    }

    #[test]
    fn pods_are_kept_longer_if_one_profile_says_so() {
        let (progress, finished) =
            (Reads::nothing().pod(&[PodField::Progress]), Reads::nothing().finished_pods());
        let table = [
            (vec![], PodNeeds::default()),
            (vec![profile(Reads::nothing())], PodNeeds::default()),
            (vec![profile(progress.clone())], PodNeeds { progress: true, finished: false }),
            (vec![profile(progress), profile(finished)], PodNeeds { progress: true, finished: true }),
        ];
        for (profiles, expected) in table {
            assert_eq!(Needs::of(&profiles).pods(), expected, "{profiles:?}");
        }
    }

    #[test]
    fn what_is_needed_is_read() {
        let class = r#"{"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "a"},
            "provisioner": "x"}"#;
        let node = r#"{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}"#;
        let nothing = Needs::of(&[]);
        assert!(matches!(nothing.decoder().decode(class), Ok(Decoded::Unread { .. })));
        let more = nothing.and(ReadableKind::of::<StorageClass>()).and_texts(true).and_texts(false);
        assert!(matches!(more.decoder().decode(class), Ok(Decoded::Object(_))));
        let Ok(Decoded::Node(words)) = more.decoder().decode(node) else { panic!("the node is read") };
        assert!(words.raw.is_some(), "the text is kept");
    }
}
