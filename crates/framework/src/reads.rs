//! What a plugin reads: the ground for everything the engine may skip, share or watch.
//!
//! Pods that agree in all fields that the enabled plugins read form a class; an answer stays true until something
//! the plugin reads has changed; the driver watches the kinds that somebody reads, and access rules are made from
//! the same list. A plugin that declares nothing reads everything: always right, only slower.

use supercargo_model::{CountedPods, Kind, KindId, ReadableKind};

use crate::queries::{FactForm, Query, Question};

/// What a plugin reads.
#[derive(Clone, Debug)]
pub struct Reads {
    /// Fields of the pod. They make up its class.
    pub pod: FieldSet<PodField>,
    /// Fields of the node's own row.
    pub node: FieldSet<NodeField>,
    /// Which pods run on nodes that share a topology domain with the node.
    pub topology: bool,
    /// How many nodes there are, and which images are on how many of them.
    pub all_nodes: bool,
    /// Which nodes are feasible; a score that looks at the others depends on this.
    pub feasible_set: bool,
    /// The time of the attempt.
    pub time: bool,
    /// What the plugin itself remembers from earlier cycles.
    pub memory: bool,
    /// How far the pods on the node are. See [`Reads::progress_of_pods`].
    pub node_progress: bool,
    /// What the plugin remembers about the node. See [`Reads::memory_of_node`].
    pub node_memory: bool,
    /// Pods and nodes as they came from the API, with all fields.
    pub raw_objects: bool,
    /// Where pods stand: by the values of which labels, by namespace, and whether those that have finished count too.
    pub pods: CountedPods,
    /// Objects of other kinds, custom resources among them.
    pub kinds: Vec<ReadableKind>,
    /// Those of the kinds without whose definition the plugin is of no use.
    pub required: Vec<KindId>,
    /// Those of the kinds that nobody misses where the API server does not have them.
    pub optional: Vec<KindId>,
    /// Those of the kinds of which only the object is read that is named like the node.
    pub of_node: Vec<KindId>,
    /// Whether [`Plugin::alike`](crate::Plugin::alike) says which pods are alike to the plugin, instead of the fields.
    pub alike: bool,
    /// Whether [`PreFilter::resolve`](crate::PreFilter::resolve) says, with every decision, what the pod comes to.
    pub resolved: bool,
    /// Who is asked outside. The kinds of their facts are among [`Reads::kinds`].
    pub queries: Vec<Query>,
    /// Who is asked outside about a pod that is tried. The kinds of the answers are among [`Reads::kinds`].
    pub questions: Vec<Question>,
}

/// Objects that a plugin would read, and that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Their kind.
    pub kind: KindId,
    /// The one namespace whose objects of that kind are known all the same.
    pub known_namespace: Option<Box<str>>,
}

/// A set of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSet<F> {
    bits: u32,
    field: std::marker::PhantomData<F>,
}

/// A field that can be in a [`FieldSet`].
pub trait Field: Copy {
    /// Its place in the set, below 32.
    fn index(self) -> u32;
}

/// A part of a pod that a plugin may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub enum PodField {
    Name,
    Namespace,
    Labels,
    Annotations,
    Controller,
    Priority,
    PreemptionPolicy,
    SchedulingGates,
    Tolerations,
    NodeName,
    NodeSelector,
    NodeAffinity,
    PodAffinity,
    SpreadConstraints,
    Requests,
    /// The images of containers, and those that are mounted as volumes.
    Images,
    HostPorts,
    /// An ephemeral volume stands for a claim that has the pod's name in its own: where there is one, pods differ by
    /// their names here.
    Volumes,
    ResourceClaims,
    /// What the node must be able to do: restart rules, host users and network.
    Features,
    /// When the pod was created, started, deleted.
    Timestamps,
    /// `status.nominatedNodeName`, conditions, and the claims that were made for the pod.
    Status,
    /// `spec.priorityClassName`
    PriorityClass,
    /// The seccomp profiles of the pod and its containers.
    SeccompProfiles,
    /// `status.phase`, and when the pod was scheduled. Both are kept only if somebody reads them.
    Progress,
}

/// A part of a node's row that a plugin may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub enum NodeField {
    Name,
    Labels,
    Annotations,
    Taints,
    Unschedulable,
    Allocatable,
    /// What its pods take together.
    Requested,
    /// Which pods are on it.
    Pods,
    Images,
    Features,
    Capacity,
    /// Its internal addresses.
    Addresses,
}

impl Unread {
    /// Whether those of a namespace are known.
    pub fn knows(&self, namespace: &str) -> bool {
        self.known_namespace.as_deref() == Some(namespace)
    }
}

impl Reads {
    /// Whether objects of a kind are read, be they pods or nodes.
    pub fn includes(&self, kind: KindId) -> bool {
        match kind {
            KindId::POD => {
                self.topology
                    || self.node.contains(NodeField::Requested)
                    || self.node.contains(NodeField::Pods)
            }
            KindId::NODE => self.all_nodes || self.topology || self.node != FieldSet::EMPTY,
            kind => self.kinds.iter().any(|read| read.id == kind),
        }
    }

    /// Reads nothing at all: the start of a declaration.
    pub fn nothing() -> Self {
        Reads {
            pod: FieldSet::EMPTY,
            node: FieldSet::EMPTY,
            topology: false,
            all_nodes: false,
            feasible_set: false,
            time: false,
            memory: false,
            node_progress: false,
            node_memory: false,
            raw_objects: false,
            pods: CountedPods::default(),
            kinds: Vec::new(),
            required: Vec::new(),
            optional: Vec::new(),
            of_node: Vec::new(),
            alike: false,
            resolved: false,
            queries: Vec::new(),
            questions: Vec::new(),
        }
    }

    /// May read anything but other kinds and where pods stand, which must always be named: what is not watched, or not
    /// counted, cannot be read.
    pub fn everything() -> Self {
        Reads {
            pod: FieldSet::FULL,
            node: FieldSet::FULL,
            topology: true,
            all_nodes: true,
            feasible_set: true,
            time: true,
            memory: true,
            node_progress: true,
            node_memory: true,
            raw_objects: true,
            ..Self::nothing()
        }
    }

    /// Also reads these fields of the pod.
    #[must_use]
    pub fn pod(mut self, fields: &[PodField]) -> Self {
        self.pod = self.pod.with(fields);
        self
    }

    /// Also reads these fields of the node.
    #[must_use]
    pub fn node(mut self, fields: &[NodeField]) -> Self {
        self.node = self.node.with(fields);
        self
    }

    /// Also reads objects of kind `K`.
    #[must_use]
    pub fn kind<K: Kind>(mut self) -> Self {
        self.kinds.push(ReadableKind::of::<K>());
        self
    }

    /// Also reads objects of kind `K`, and is of no use where the API server has no such kind. The scheduler goes on all the same, as
    /// if there were no such objects, and says that their definition is not installed.
    #[must_use]
    pub fn required_kind<K: Kind>(mut self) -> Self {
        self.required.push(K::ID);
        self.kind::<K>()
    }

    /// Also reads objects of kind `K`, which many API servers do not have, and nobody misses: one that had another name before, or
    /// that only some versions of an operator define.
    #[must_use]
    pub fn optional_kind<K: Kind>(mut self) -> Self {
        self.optional.push(K::ID);
        self.kind::<K>()
    }

    /// Also reads the object of kind `K` that is named like the node and has no namespace, when it is asked about that node, and no
    /// other object of the kind. If such an object changes, only that node is looked at again.
    #[must_use]
    pub fn of_node<K: Kind>(mut self) -> Self {
        self.kinds.push(ReadableKind::of::<K>());
        self.of_node.push(K::ID);
        self
    }

    /// Pods are alike to the plugin if [`Plugin::alike`](crate::Plugin::alike) gives them one number. What it reads of a pod must be
    /// declared all the same, but may differ among pods that are alike: their names, for one.
    #[must_use]
    pub fn alike(self) -> Self {
        Reads { alike: true, ..self }
    }

    /// Of the pod, of objects that are not a node's own, of what the plugin remembers and of where pods are, only that counts which
    /// [`PreFilter::resolve`](crate::PreFilter::resolve) writes down; pods that come to the same there are alike to the plugin. All of it
    /// must be declared all the same.
    #[must_use]
    pub fn resolved(self) -> Self {
        Reads { resolved: true, ..self }
    }

    /// Why the answers about nodes of a plugin that reads this cannot be kept from one pod to the next, if they cannot.
    pub fn unkept(&self) -> Option<&'static str> {
        let own = |field| !self.alike && !self.resolved && self.pod.contains(field);
        let reasons = [
            // Who reads everything reads whole objects too: that says most.
            (self.raw_objects, "it reads whole objects, or does not say what it reads"),
            (own(PodField::Name), "it reads the pods' names"),
            (own(PodField::Timestamps), "it reads the pods' times"),
            (own(PodField::Status), "it reads the pods' statuses"),
            (own(PodField::Progress), "it reads the pods' progress"),
            (self.time, "it reads the time"),
            (self.memory && !self.resolved, "it reads what it remembers"),
            (self.topology && !self.resolved, "it reads which pods run in topology domains"),
            (!self.pods.is_nothing() && !self.resolved, "it reads where pods stand"),
        ];
        reasons.into_iter().find_map(|(reads, why)| reads.then_some(why))
    }

    /// Also reads which pods run in the node's topology domains.
    #[must_use]
    pub fn topology(self) -> Self {
        Reads { topology: true, ..self }
    }

    /// Also reads facts of all nodes together.
    #[must_use]
    pub fn all_nodes(self) -> Self {
        Reads { all_nodes: true, ..self }
    }

    /// Also reads which nodes are feasible.
    #[must_use]
    pub fn feasible_set(self) -> Self {
        Reads { feasible_set: true, ..self }
    }

    /// Also reads the time of the attempt.
    #[must_use]
    pub fn time(self) -> Self {
        Reads { time: true, ..self }
    }

    /// Also reads what the plugin remembers from earlier cycles.
    #[must_use]
    pub fn memory(self) -> Self {
        Reads { memory: true, ..self }
    }

    /// Also reads how far the pods on the node are: their phases, and when they were scheduled. Both are kept only if somebody reads them.
    #[must_use]
    pub fn progress_of_pods(self) -> Self {
        Reads { node_progress: true, ..self }.node(&[NodeField::Pods])
    }

    /// Also reads what the plugin remembers about the node that it is asked about, and about no other. It changes that when a pod comes to
    /// that node, goes from it or changes there, or when an object changes that it reads [of the node](Reads::of_node): then the node is
    /// looked at again anyway, and answers can be kept till then. If it changes it at any other time, it says so by
    /// [`Acts::node_changed`](crate::Acts::node_changed).
    #[must_use]
    pub fn memory_of_node(self) -> Self {
        // A node is looked at again for its pods only if somebody reads those.
        Reads { node_memory: true, ..self }.node(&[NodeField::Pods])
    }

    /// Also reads pods and nodes as they came from the API.
    #[must_use]
    pub fn raw_objects(self) -> Self {
        Reads { raw_objects: true, ..self }
    }

    /// Also reads which pods have which value of a label, and where they stand: [`Context::pods`](crate::Context::pods).
    #[must_use]
    pub fn pods_by_label(mut self, key: impl Into<Box<str>>) -> Self {
        self.pods.labels.insert(key.into());
        self
    }

    /// Also reads which pods are in which namespace, and where they stand.
    #[must_use]
    pub fn pods_by_namespace(mut self) -> Self {
        self.pods.by_namespace = true;
        self
    }

    /// Also reads what the pods with a node ask for together in all namespaces that have an object of one of these kinds, by
    /// [`Pods::placed_requests_with`](supercargo_model::Pods::placed_requests_with). The kinds must be declared besides.
    #[must_use]
    pub fn placed_requests_with(mut self, kinds: &[KindId]) -> Self {
        self.pods.placed_with.insert(kinds.to_vec());
        self.pods_by_namespace()
    }

    /// Also hears of pods that have run their course: they are not watched otherwise. Where pods are counted, these are too.
    #[must_use]
    pub fn finished_pods(mut self) -> Self {
        self.pods.finished = true;
        self
    }

    /// Also reads the facts of a query, which is asked again and again; if they are about nodes, as [`Reads::of_node`] says.
    #[must_use]
    pub fn query(mut self, query: Query) -> Self {
        self.kinds.push(query.kind());
        if query.form() == FactForm::PerNode {
            self.of_node.push(query.kind().id);
        }
        self.queries.push(query);
        self
    }

    /// Also reads what is answered to a question about the pod.
    #[must_use]
    pub fn question(mut self, question: Question) -> Self {
        self.kinds.push(question.kind());
        // Answers are found by the pod's name.
        self.pod = self.pod.with(&[PodField::Name, PodField::Namespace]);
        self.questions.push(question);
        self
    }

    /// Whether pods have to know their phases, and when they were scheduled.
    pub fn pod_progress(&self) -> bool {
        self.pod.contains(PodField::Progress) || self.node_progress
    }

    /// Everything that either reads.
    #[must_use]
    pub fn and(mut self, other: Reads) -> Self {
        // What one of them reads as a whole is read as a whole.
        let is_whole = |reads: &Reads, kind: &KindId| {
            reads.kinds.iter().any(|read| read.id == *kind) && !reads.of_node.contains(kind)
        };
        let of_node: Vec<KindId> = (self.of_node.iter().filter(|kind| !is_whole(&other, kind)))
            .chain(other.of_node.iter().filter(|kind| !is_whole(&self, kind)))
            .copied()
            .collect();
        self.of_node = of_node;
        // Who misses a kind misses it whatever the other says.
        let is_missed = |reads: &Reads, kind: &KindId| {
            reads.kinds.iter().any(|read| read.id == *kind) && !reads.optional.contains(kind)
        };
        let optional: Vec<KindId> = (self.optional.iter().filter(|kind| !is_missed(&other, kind)))
            .chain(
                other.optional.iter().filter(|kind| !is_missed(&self, kind) && !self.optional.contains(kind)),
            )
            .copied()
            .collect();
        self.optional = optional;
        self.pod.bits |= other.pod.bits;
        self.node.bits |= other.node.bits;
        self.topology |= other.topology;
        self.all_nodes |= other.all_nodes;
        self.feasible_set |= other.feasible_set;
        self.time |= other.time;
        self.memory |= other.memory;
        self.node_progress |= other.node_progress;
        self.node_memory |= other.node_memory;
        self.raw_objects |= other.raw_objects;
        self.pods = self.pods.and(other.pods);
        self.alike |= other.alike;
        self.resolved |= other.resolved;
        for kind in other.required {
            if !self.required.contains(&kind) {
                self.required.push(kind);
            }
        }
        for kind in other.kinds {
            if !self.kinds.iter().any(|known| known.is_same(&kind)) {
                self.kinds.push(kind);
            }
        }
        for question in other.questions {
            if !self.questions.iter().any(|known| known.name() == question.name()) {
                self.questions.push(question);
            }
        }
        for query in other.queries {
            if !self.queries.contains(&query) {
                self.queries.push(query);
            }
        }
        self
    }
}

impl<F: Field> FieldSet<F> {
    /// No field.
    pub const EMPTY: Self = FieldSet { bits: 0, field: std::marker::PhantomData };
    /// Every field.
    pub const FULL: Self = FieldSet { bits: u32::MAX, field: std::marker::PhantomData };

    /// The set with these fields added.
    #[must_use]
    pub fn with(self, fields: &[F]) -> Self {
        let bits = fields.iter().fold(self.bits, |bits, field| bits | 1 << field.index());
        FieldSet { bits, ..self }
    }

    /// The fields of both sets.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        FieldSet { bits: self.bits | other.bits, ..self }
    }

    /// Whether all fields of this set are in the other one.
    pub fn is_within(self, other: Self) -> bool {
        self.bits & !other.bits == 0
    }

    /// Whether the field is in the set.
    pub fn contains(self, field: F) -> bool {
        self.bits & (1 << field.index()) != 0
    }
}

impl PodField {
    /// Every field.
    pub const ALL: [PodField; 25] = [
        PodField::Name,
        PodField::Namespace,
        PodField::Labels,
        PodField::Annotations,
        PodField::Controller,
        PodField::Priority,
        PodField::PreemptionPolicy,
        PodField::SchedulingGates,
        PodField::Tolerations,
        PodField::NodeName,
        PodField::NodeSelector,
        PodField::NodeAffinity,
        PodField::PodAffinity,
        PodField::SpreadConstraints,
        PodField::Requests,
        PodField::Images,
        PodField::HostPorts,
        PodField::Volumes,
        PodField::ResourceClaims,
        PodField::Features,
        PodField::Timestamps,
        PodField::Status,
        PodField::PriorityClass,
        PodField::SeccompProfiles,
        PodField::Progress,
    ];
}

impl Field for PodField {
    fn index(self) -> u32 {
        self as u32
    }
}

impl NodeField {
    /// Every field.
    pub const ALL: [NodeField; 12] = [
        NodeField::Name,
        NodeField::Labels,
        NodeField::Annotations,
        NodeField::Taints,
        NodeField::Unschedulable,
        NodeField::Allocatable,
        NodeField::Requested,
        NodeField::Pods,
        NodeField::Images,
        NodeField::Features,
        NodeField::Capacity,
        NodeField::Addresses,
    ];
}

impl Field for NodeField {
    fn index(self) -> u32 {
        self as u32
    }
}

#[cfg(test)]
mod tests;
