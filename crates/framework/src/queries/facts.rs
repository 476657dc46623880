//! What answers say, in the types of plugins, and what of them counts.

use std::collections::BTreeMap;
use std::time::Duration;

use supercargo_model::{Kind, Object, ReadableKind, Timestamp};

use super::Freshness;
use super::answer::Series;

/// Something that was measured so long after now was measured by a clock that goes wrong. What is nearer counts as measured now.
pub const SAMPLE_FUTURE_MAX: Duration = Duration::from_secs(30);

/// What an answer says.
#[derive(Clone, Debug)]
pub struct Facts {
    form: FactForm,
    kind: ReadableKind,
    list: Vec<Fact>,
    left_out: LeftOut,
    warnings: Vec<String>,
}

/// One thing that an answer says.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The object; its name is that of the query or, of a node, whatever the source calls it.
    pub object: Object,
    /// When it was measured, as far as is known; when it was told otherwise.
    pub at: Timestamp,
}

/// What facts are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactForm {
    /// A node each.
    PerNode,
    /// There is one, about everything.
    Whole,
}

/// Why something that was answered does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutReason {
    /// It was measured too long ago.
    Old,
    /// It was measured in the future.
    Future,
    /// It is not a number, or infinite.
    NotFinite,
    /// It is a number that cannot be meant, such as a load far below 0.
    OutOfRange,
    /// It lacks something, or has something else in its place.
    Unreadable,
    /// It does not say which node it is about.
    NoNode,
    /// There is no such node.
    UnknownNode,
    /// Several things are said about the node.
    Duplicate,
}

/// How much of an answer does not count, by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<LeftOutReason, u64>);

/// The facts about nodes, as they are found in an answer.
#[derive(Debug)]
pub struct NodeFacts<T> {
    freshness: Freshness,
    list: Vec<Fact>,
    left_out: LeftOut,
    warnings: Vec<String>,
    type_of: std::marker::PhantomData<T>,
}

impl<T: Kind> NodeFacts<T> {
    pub(super) fn new(freshness: Freshness) -> Self {
        NodeFacts {
            freshness,
            list: Vec::new(),
            left_out: LeftOut::default(),
            warnings: Vec::new(),
            type_of: std::marker::PhantomData,
        }
    }

    /// Says something about a node, which is true now. The node is named by its name or by an internal address, with or without a port.
    pub fn put(&mut self, node: &str, value: T) {
        self.put_at(node, value, self.freshness.now);
    }

    /// Says something about a node that was measured at some time. It is left out if that is too long ago, or lies ahead.
    pub fn put_at(&mut self, node: &str, value: T, at: Timestamp) {
        match judged(at, self.freshness) {
            Err(reason) => self.left_out.count(reason, 1),
            Ok(at) if !node.is_empty() => self.list.push(Fact { object: Object::new("", node, value), at }),
            Ok(_) => self.left_out.count(LeftOutReason::NoNode, 1),
        }
    }

    /// Says of each node what the newest sample of its series says. The node is what a label has.
    pub fn put_latest(&mut self, series: &[Series], label: &str, value: impl Fn(f64) -> T) {
        for series in series {
            match (series.label(label), series.latest()) {
                (Some(node), Some(sample)) => self.put_at(node, value(sample.value), sample.at),
                _ => self.left_out.count(LeftOutReason::NoNode, 1),
            }
        }
    }

    /// When it was answered.
    pub fn now(&self) -> Timestamp {
        self.freshness.now
    }

    /// Something is wrong with the answer, though it can be read: it is logged.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Something does not count, for a reason that whoever reads the answer has found.
    pub fn leave_out(&mut self, reason: LeftOutReason) {
        self.left_out.count(reason, 1);
    }

    pub(super) fn into_facts(self) -> Facts {
        Facts {
            form: FactForm::PerNode,
            kind: ReadableKind::of::<T>(),
            list: self.list,
            left_out: self.left_out,
            warnings: self.warnings,
        }
    }
}

/// When something counts as measured, or why it does not count.
pub(super) fn judged(at: Timestamp, freshness: Freshness) -> Result<Timestamp, LeftOutReason> {
    let Freshness { now, max_age } = freshness;
    if at > now.after(SAMPLE_FUTURE_MAX) {
        Err(LeftOutReason::Future)
    } else if now.since(at) >= max_age {
        Err(LeftOutReason::Old)
    } else {
        Ok(at.min(now))
    }
}

impl Facts {
    /// Facts about nodes, as a test or a simulation tells them, all of them measured at that time.
    pub fn per_node<'a, T: Kind>(facts: impl IntoIterator<Item = (&'a str, T)>, at: Timestamp) -> Self {
        let list = facts.into_iter().map(|(node, value)| Fact { object: Object::new("", node, value), at });
        Facts {
            form: FactForm::PerNode,
            kind: ReadableKind::of::<T>(),
            list: list.collect(),
            left_out: LeftOut::default(),
            warnings: Vec::new(),
        }
    }

    /// The one fact of a query, as a test or a simulation tells it.
    pub fn whole_at<T: Kind>(query: &str, value: T, at: Timestamp) -> Self {
        Facts {
            form: FactForm::Whole,
            kind: ReadableKind::of::<T>(),
            list: vec![Fact { object: Object::new("", query, value), at }],
            left_out: LeftOut::default(),
            warnings: Vec::new(),
        }
    }

    /// What they are about.
    pub fn form(&self) -> FactForm {
        self.form
    }

    /// Their kind.
    pub fn kind(&self) -> ReadableKind {
        self.kind
    }

    /// How much did not count.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// What the source says against its own answer, and what else is wrong with it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// When each was measured, to change it: the clock was set.
    pub fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.list.iter_mut().map(|fact| &mut fact.at)
    }

    /// All of them.
    pub fn into_list(self) -> Vec<Fact> {
        self.list
    }

    pub(super) fn and_left_out(mut self, more: &LeftOut) -> Self {
        self.left_out.add(more);
        self
    }

    pub(super) fn and_warnings(mut self, more: Vec<String>) -> Self {
        self.warnings.extend(more);
        self
    }
}

impl LeftOut {
    /// So much more does not count.
    pub fn count(&mut self, reason: LeftOutReason, times: u64) {
        if times > 0 {
            *self.0.entry(reason).or_default() += times;
        }
    }

    /// So much, by the reason; reasons that there were not are left away.
    pub fn iter(&self) -> impl Iterator<Item = (LeftOutReason, u64)> {
        self.0.iter().map(|(reason, times)| (*reason, *times))
    }

    /// Whether everything counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much does not count.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn add(&mut self, more: &LeftOut) {
        for (reason, times) in more.iter() {
            self.count(reason, times);
        }
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> =
            self.iter().map(|(reason, times)| format!("{times} {}", reason.words())).collect();
        formatter.write_str(&words.join(", "))
    }
}

impl LeftOutReason {
    /// Every reason.
    pub const ALL: [LeftOutReason; 8] = [
        LeftOutReason::Old,
        LeftOutReason::Future,
        LeftOutReason::NotFinite,
        LeftOutReason::OutOfRange,
        LeftOutReason::Unreadable,
        LeftOutReason::NoNode,
        LeftOutReason::UnknownNode,
        LeftOutReason::Duplicate,
    ];

    /// What it is called in metrics.
    pub fn label(self) -> &'static str {
        match self {
            LeftOutReason::Old => "old",
            LeftOutReason::Future => "future",
            LeftOutReason::NotFinite => "not finite",
            LeftOutReason::OutOfRange => "out of range",
            LeftOutReason::Unreadable => "unreadable",
            LeftOutReason::NoNode => "no node",
            LeftOutReason::UnknownNode => "unknown node",
            LeftOutReason::Duplicate => "duplicate",
        }
    }

    /// The same in words that follow a number.
    fn words(self) -> &'static str {
        match self {
            LeftOutReason::Old => "too old",
            LeftOutReason::Future => "from the future",
            LeftOutReason::NotFinite => "no finite numbers",
            LeftOutReason::OutOfRange => "that cannot be meant",
            LeftOutReason::Unreadable => "that cannot be read",
            LeftOutReason::NoNode => "without a node",
            LeftOutReason::UnknownNode => "of unknown nodes",
            LeftOutReason::Duplicate => "of nodes that are told of twice",
        }
    }
}
