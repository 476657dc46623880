//! A question about one pod, which somebody outside is asked before the pod is decided.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use supercargo_model::{Kind, Object, ObjectKey, Pod, ReadableKind, Snapshot, Timestamp};

use super::answer::Answer;
use super::facts::{LeftOut, LeftOutReason};
use super::resolve::Nodes;
use super::source::QuerySource;
use super::{BYTES_MAX_MAX, Freshness, check_name, is_fact_kind};

/// How long a pod waits for an answer if the question does not say.
const DEADLINE_DEFAULT: Duration = Duration::from_millis(100);
/// How long a pod waits at most.
const DEADLINE_MAX: Duration = Duration::from_secs(10);
/// How much of an answer is read if the question does not say.
const BYTES_MAX_DEFAULT: usize = 1 << 20;

/// Something that somebody outside is asked about a pod, each time that it is tried. The pod waits for the answer for as long as the
/// question allows, and is then decided without it; others are tried meanwhile.
///
/// The answer is an object of kind `T` with the pod's namespace and name, which is in the cluster while the pod is decided.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use supercargo_framework::{LineSource, Question, fact_kind};
/// # use supercargo_model::{Kind, KindId};
/// /// The points that an agent gives to nodes.
/// #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
/// struct Suggestion(BTreeMap<Box<str>, i64>);
///
/// impl From<BTreeMap<Box<str>, i64>> for Suggestion {
///     fn from(points: BTreeMap<Box<str>, i64>) -> Self {
///         Suggestion(points)
///     }
/// }
///
/// impl Kind for Suggestion {
///     const ID: KindId = fact_kind("Suggestion", "suggestions");
/// }
///
/// let agent = "localhost:8765".to_owned();
/// let question = Question::per_node::<Suggestion, i64>(
///     "suggestion",
///     move |pod| Some(LineSource::new(&*agent, format!("getSuggestion {}", pod.name)).into()),
///     |answer, nodes| {
///         for (node, points) in answer.json::<BTreeMap<String, i64>>()? {
///             nodes.put(&node, points);
///         }
///         Ok(())
///     },
/// );
/// assert_eq!(question.validate(), Ok(()));
/// ```
#[derive(Clone)]
pub struct Question {
    name: String,
    deadline: Duration,
    bytes_max: usize,
    kind: ReadableKind,
    ask: Arc<AskAbout>,
    read: Arc<ReadAboutPod>,
}

type AskAbout = dyn Fn(&Pod) -> Option<QuerySource> + Send + Sync;
type ReadAboutPod = dyn Fn(&Answer) -> Result<PodAnswer, String> + Send + Sync;

/// What was answered to a question, read; which nodes are meant is found out when the pod is decided.
#[derive(Clone)]
pub struct PodAnswer(Arc<MakeObject>);

type MakeObject = dyn Fn(&Pod, &Snapshot, &mut LeftOut) -> Option<Object> + Send + Sync;

/// What an answer about a pod says about nodes.
#[derive(Debug)]
pub struct NodeValues<V>(Vec<(Box<str>, V)>);

impl<V> NodeValues<V> {
    /// Says something about a node, which is named by its name or by an internal address, with or without a port.
    pub fn put(&mut self, node: &str, value: V) {
        self.0.push((node.into(), value));
    }
}

impl Question {
    /// A question whose answer says something about nodes. Nodes that are not known, and those of which several things are said, are left
    /// out; if none is left, there is no answer. `ask` says who is asked about a pod, and what; nobody, if it returns none.
    pub fn per_node<T, V>(
        name: impl Into<String>,
        ask: impl Fn(&Pod) -> Option<QuerySource> + Send + Sync + 'static,
        read: fn(&Answer, &mut NodeValues<V>) -> Result<(), String>,
    ) -> Self
    where
        T: Kind + From<BTreeMap<Box<str>, V>>,
        V: Clone + Send + Sync + 'static,
    {
        Self::of_reader::<T>(name.into(), Arc::new(ask), move |answer| {
            let mut values = NodeValues(Vec::new());
            read(answer, &mut values)?;
            Ok(PodAnswer(Arc::new(move |pod, cluster, left_out| {
                let known = values.resolved(cluster, left_out);
                (!known.is_empty()).then(|| Object::new(&pod.namespace, &pod.name, T::from(known)))
            })))
        })
    }

    /// A question whose answer is one thing.
    pub fn whole<T: Kind>(
        name: impl Into<String>,
        ask: impl Fn(&Pod) -> Option<QuerySource> + Send + Sync + 'static,
        read: fn(&Answer) -> Result<T, String>,
    ) -> Self {
        Self::of_reader::<T>(name.into(), Arc::new(ask), move |answer| {
            let object = Object::new("", "", read(answer)?);
            Ok(PodAnswer(Arc::new(move |pod, _, _| {
                let key = ObjectKey { namespace: (*pod.namespace).into(), name: (*pod.name).into() };
                let mut object = object.clone();
                object.key = key;
                Some(object)
            })))
        })
    }

    fn of_reader<T: Kind>(
        name: String,
        ask: Arc<AskAbout>,
        read: impl Fn(&Answer) -> Result<PodAnswer, String> + Send + Sync + 'static,
    ) -> Self {
        const { assert!(is_fact_kind(T::ID), "the kind of an answer is made by `fact_kind`") };
        Question {
            name,
            deadline: DEADLINE_DEFAULT,
            bytes_max: BYTES_MAX_DEFAULT,
            kind: ReadableKind::of::<T>(),
            ask,
            read: Arc::new(read),
        }
    }

    /// A pod waits for so long.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Question { deadline, ..self }
    }

    /// So much of an answer is read; a longer one counts for nothing.
    #[must_use]
    pub fn at_most(self, bytes_max: usize) -> Self {
        Question { bytes_max, ..self }
    }

    /// Its name, in messages and metrics.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long a pod waits.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How much of an answer is read.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The kind of its answers.
    pub fn kind(&self) -> ReadableKind {
        self.kind
    }

    /// Who is asked about a pod, and what; none if nobody is.
    pub fn ask(&self, pod: &Pod) -> Option<QuerySource> {
        (self.ask)(pod)
    }

    /// Reads what a source has answered.
    pub fn read(&self, source: &QuerySource, body: &[u8], now: Timestamp) -> Result<PodAnswer, String> {
        // Whatever is told about a pod was found out for it.
        let freshness = Freshness { now, max_age: DEADLINE_MAX * 6 };
        let answer = Answer::read(source, body, freshness, &mut LeftOut::default())?;
        (self.read)(&answer)
    }

    /// What is wrong with it; nothing if it can be asked.
    pub fn validate(&self) -> Result<(), String> {
        check_name(&self.name)?;
        if self.deadline.is_zero() || self.deadline > DEADLINE_MAX {
            return Err(format!(
                "question {:?}: a deadline of {:?} is not from 1ns to {DEADLINE_MAX:?}",
                self.name, self.deadline
            ));
        }
        if !(1..=BYTES_MAX_MAX).contains(&self.bytes_max) {
            return Err(format!(
                "question {:?}: a limit of {} bytes is not from 1 to {BYTES_MAX_MAX}",
                self.name, self.bytes_max
            ));
        }
        Ok(())
    }
}

impl PodAnswer {
    /// The object that the answer is while the pod is decided; none if nothing of it counts.
    pub fn into_object(self, pod: &Pod, cluster: &Snapshot, left_out: &mut LeftOut) -> Option<Object> {
        (self.0)(pod, cluster, left_out)
    }
}

impl<V: Clone> NodeValues<V> {
    fn resolved(&self, cluster: &Snapshot, left_out: &mut LeftOut) -> BTreeMap<Box<str>, V> {
        let nodes = Nodes::of(cluster);
        let mut known: BTreeMap<Box<str>, Vec<V>> = BTreeMap::new();
        for (called, value) in &self.0 {
            match nodes.find(cluster, called) {
                Some(node) => known.entry(node.into()).or_default().push(value.clone()),
                None => left_out.count(LeftOutReason::UnknownNode, 1),
            }
        }
        let single = known.into_iter().filter_map(|(node, mut values)| match (values.pop(), values.len()) {
            (value, 0) => Some((node, value?)),
            (_, others) => {
                left_out.count(LeftOutReason::Duplicate, others as u64 + 1);
                None
            }
        });
        single.collect()
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "question {:?} within {:?}", self.name, self.deadline)
    }
}

impl fmt::Debug for PodAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PodAnswer")
    }
}
