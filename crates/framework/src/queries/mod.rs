//! What somebody outside is asked, again and again, for a plugin: Prometheus, the metrics API, any service.
//!
//! A plugin declares a [`Query`] in what it [reads](crate::Reads::query). The driver asks, and each answer is read once, away from
//! scheduling, into values of the plugin's own type: [facts](Facts), one per node or one for all. Facts are objects of the cluster, so
//! that a plugin finds them in the snapshot as it finds any object, and they are there only while they are fresh: a plugin sees a value
//! or none, never an old one, and needs no clock.

mod answer;
mod facts;
mod question;
mod resolve;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use supercargo_model::{Kind, KindId, Object, ReadableKind, Timestamp};

pub use answer::{Answer, NodeUsage, Sample, Series};
pub use facts::{Fact, FactForm, Facts, LeftOut, LeftOutReason, NodeFacts, SAMPLE_FUTURE_MAX};
pub use question::{NodeValues, PodAnswer, Question};
pub use resolve::{ResolvedFacts, Strangers};
pub use source::{
    Endpoint, HttpMethod, HttpSource, LineSource, PrometheusRange, PrometheusSource, QuerySource, QueryTls,
};

/// The API group of the kinds of facts. No API server serves it, and nobody watches it.
pub const FACTS_GROUP: &str = "facts.supercargo.dev";

/// How often is asked if the query does not say.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(30);
/// How often may be asked at most, and must be asked at least.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an answer may take if the query does not say.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// How long an answer may take whatever the query says.
const DEADLINE_MAX: Duration = Duration::from_secs(300);
/// So many intervals long facts are fresh if the query does not say: two answers in a row may fail.
const FRESH_INTERVALS: u32 = 3;
/// How much of an answer is read if the query does not say. A series of Prometheus is about 200 bytes, and one for each of five thousand nodes
/// a sixteenth of it; other sources write up to 5 KiB about a node.
const BYTES_MAX_DEFAULT: usize = 16 << 20;
/// How much of an answer is read whatever the query says.
const BYTES_MAX_MAX: usize = 256 << 20;
/// How long the name of a query may be: it is a label in metrics.
const NAME_BYTES_MAX: usize = 63;

/// Something that somebody outside is asked again and again.
///
/// ```
/// # use std::time::Duration;
/// # use supercargo_framework::{Endpoint, PrometheusSource, Query, fact_kind};
/// # use supercargo_model::{Kind, KindId};
/// /// How busy a node is, from 0 to 1.
/// #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
/// struct Load(f64);
///
/// impl Kind for Load {
///     const ID: KindId = fact_kind("Load", "loads");
/// }
///
/// let prometheus = PrometheusSource::new(Endpoint::new("http://prometheus:9090"), "instance:node_cpu:ratio");
/// let load = Query::per_node::<Load>("load", prometheus, |answer, nodes| {
///     nodes.put_latest(answer.series()?, "instance", Load);
///     Ok(())
/// });
/// let load = load.every(Duration::from_secs(15)).within(Duration::from_secs(5)).fresh_for(Duration::from_secs(60));
/// assert_eq!(load.validate(), Ok(()));
/// ```
#[derive(Clone)]
pub struct Query {
    name: String,
    source: QuerySource,
    interval: Duration,
    deadline: Duration,
    /// None for a few intervals.
    max_age: Option<Duration>,
    bytes_max: usize,
    parameters: BTreeMap<String, String>,
    reader: Reader,
}

/// How answers become facts.
#[derive(Clone)]
struct Reader {
    kind: ReadableKind,
    form: FactForm,
    read: Arc<ReadAnswer>,
    is_same: fn(&Object, &Object) -> bool,
}

type ReadAnswer = dyn Fn(&Answer, Freshness) -> Result<Facts, String> + Send + Sync;

/// A kind of facts, by its name and the plural of it.
pub const fn fact_kind(kind: &'static str, plural: &'static str) -> KindId {
    KindId { group: FACTS_GROUP, version: "v1alpha1", kind, plural }
}

/// Whether a kind is one of facts.
pub const fn is_fact_kind(kind: KindId) -> bool {
    let (group, facts) = (kind.group.as_bytes(), FACTS_GROUP.as_bytes());
    if group.len() != facts.len() {
        return false;
    }
    let mut index = 0;
    while index < facts.len() {
        if group[index] != facts[index] {
            return false;
        }
        index += 1;
    }
    true
}

impl Query {
    /// A query whose answers say something about nodes. `read` names a node by its name or by one of its internal addresses, each with
    /// or without a port; which node that is, is found out later. There is one such query for a kind `T`, whose objects are named like
    /// the nodes.
    ///
    /// What differs from one configuration to another is not captured by `read`, but goes into the source or is a
    /// [parameter](Query::with), so that queries can be told apart.
    pub fn per_node<T: Kind + PartialEq>(
        name: impl Into<String>,
        source: impl Into<QuerySource>,
        read: fn(&Answer, &mut NodeFacts<T>) -> Result<(), String>,
    ) -> Self {
        Self::of_reader::<T>(name.into(), source.into(), FactForm::PerNode, move |answer, freshness| {
            let mut nodes = NodeFacts::new(freshness);
            read(answer, &mut nodes)?;
            Ok(nodes.into_facts())
        })
    }

    /// A query whose answers say one thing, which becomes the object of kind `T` that is named like the query.
    pub fn whole<T: Kind + PartialEq>(
        name: impl Into<String>,
        source: impl Into<QuerySource>,
        read: fn(&Answer) -> Result<T, String>,
    ) -> Self {
        let name = name.into();
        let object_name = name.clone();
        Self::of_reader::<T>(name, source.into(), FactForm::Whole, move |answer, freshness| {
            let at = answer.oldest().unwrap_or(freshness.now).min(freshness.now);
            Ok(Facts::whole_at(&object_name, read(answer)?, at))
        })
    }

    fn of_reader<T: Kind + PartialEq>(
        name: String,
        source: QuerySource,
        form: FactForm,
        read: impl Fn(&Answer, Freshness) -> Result<Facts, String> + Send + Sync + 'static,
    ) -> Self {
        const { assert!(is_fact_kind(T::ID), "the kind of a query's facts is made by `fact_kind`") };
        Query {
            name,
            source,
            interval: INTERVAL_DEFAULT,
            deadline: DEADLINE_DEFAULT,
            max_age: None,
            bytes_max: BYTES_MAX_DEFAULT,
            parameters: BTreeMap::new(),
            reader: Reader {
                kind: ReadableKind::of::<T>(),
                form,
                read: Arc::new(read),
                is_same: |one, other| one.get::<T>() == other.get::<T>(),
            },
        }
    }

    /// Asks so often.
    #[must_use]
    pub fn every(self, interval: Duration) -> Self {
        Query { interval, ..self }
    }

    /// An answer may take so long, all of it.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        Query { deadline, ..self }
    }

    /// Facts are there for so long after they were measured, or after they were told if nobody says when they were measured; three
    /// intervals if this is not said.
    #[must_use]
    pub fn fresh_for(self, max_age: Duration) -> Self {
        Query { max_age: Some(max_age), ..self }
    }

    /// So much of an answer is read; a longer one counts for nothing.
    #[must_use]
    pub fn at_most(self, bytes_max: usize) -> Self {
        Query { bytes_max, ..self }
    }

    /// Something that whoever reads the answers wants to know, and finds by [`Answer::parameter`]: from the plugin's arguments.
    #[must_use]
    pub fn with(mut self, parameter: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.insert(parameter.into(), value.into());
        self
    }

    /// Its name: in messages, in metrics and, if it is about everything, of the one object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who is asked, and what.
    pub fn source(&self) -> &QuerySource {
        &self.source
    }

    /// How often is asked.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// How long an answer may take.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How old facts become.
    pub fn max_age(&self) -> Duration {
        self.max_age.unwrap_or(self.interval.saturating_mul(FRESH_INTERVALS))
    }

    /// How much of an answer is read.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The kind of its facts, and how they are read where they stand in a file.
    pub fn kind(&self) -> ReadableKind {
        self.reader.kind
    }

    /// Whether its facts are about nodes.
    pub fn form(&self) -> FactForm {
        self.reader.form
    }

    /// Reads an answer, as it came.
    pub fn read(&self, body: &[u8], now: Timestamp) -> Result<Facts, String> {
        let freshness = Freshness { now, max_age: self.max_age() };
        let mut left_out = LeftOut::default();
        let answer = Answer::read(&self.source, body, freshness, &mut left_out)?;
        let answer = answer.with_parameters(self.parameters.clone());
        let facts = (self.reader.read)(&answer, freshness)?;
        Ok(facts.and_left_out(&left_out).and_warnings(answer.into_warnings()))
    }

    /// Whether two facts of this query say the same.
    pub fn is_same_fact(&self, one: &Object, other: &Object) -> bool {
        (self.reader.is_same)(one, other)
    }

    /// Whether facts are of a kind and a form that this query has.
    pub fn owns(&self, facts: &Facts) -> bool {
        facts.form() == self.reader.form && facts.kind().is_same(&self.reader.kind)
    }

    /// Whether the answers to another query mean the same, however often it is asked.
    pub fn asks_the_same(&self, other: &Query) -> bool {
        let parts = |query: &Self| (query.name.clone(), query.reader.form, query.parameters.clone());
        parts(self) == parts(other)
            && self.source == other.source
            && self.reader.kind.is_same(&other.reader.kind)
    }

    /// Whether facts of both would be the same objects, so that they cannot be asked side by side.
    pub fn collides_with(&self, other: &Query) -> bool {
        let is_same_object = self.reader.kind.id == other.reader.kind.id
            && (self.reader.form == FactForm::PerNode || other.reader.form == FactForm::PerNode);
        self != other && (is_same_object || self.name == other.name)
    }

    /// What is wrong with it; nothing if it can be asked.
    pub fn validate(&self) -> Result<(), String> {
        check_name(&self.name)?;
        let within = |what: &str, value: Duration, least: Duration, most: Duration| {
            let is_within = (least..=most).contains(&value);
            let problem = || format!("{what} of {value:?} is not from {least:?} to {most:?}");
            if is_within { Ok(()) } else { Err(problem()) }
        };
        let checks = [
            within("an interval", self.interval, INTERVAL_MIN, INTERVAL_MAX),
            within("a deadline", self.deadline, Duration::from_millis(1), DEADLINE_MAX),
            within("an age", self.max_age(), self.interval, INTERVAL_MAX * FRESH_INTERVALS).map_err(
                |problem| {
                    format!("{problem}: facts would be gone before they are told again, or stay for ever")
                },
            ),
            if (1..=BYTES_MAX_MAX).contains(&self.bytes_max) {
                Ok(())
            } else {
                Err(format!("a limit of {} bytes is not from 1 to {BYTES_MAX_MAX}", self.bytes_max))
            },
            self.source.validate(),
        ];
        let problems: Vec<String> = checks.into_iter().filter_map(Result::err).collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(format!("query {:?}: {}", self.name, problems.join("; ")))
        }
    }
}

/// Names are labels in metrics, and words in messages.
fn check_name(name: &str) -> Result<(), String> {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_name_byte) {
        return Err(format!(
            "a query is named by 1 to {NAME_BYTES_MAX} letters, digits, '-', '_', '.' and '/', and not {name:?}"
        ));
    }
    Ok(())
}

/// Two queries are the same if they ask the same of the same, as often.
impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |query: &Self| (query.interval, query.deadline, query.max_age, query.bytes_max);
        self.asks_the_same(other) && numbers(self) == numbers(other)
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Query { name, source, interval, deadline, .. } = self;
        write!(formatter, "query {name:?} of {source} every {interval:?} within {deadline:?}")
    }
}

/// How old something may be, and what time it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freshness {
    pub(crate) now: Timestamp,
    pub(crate) max_age: Duration,
}

#[cfg(test)]
mod tests;
