//! What is asked of extenders: servers outside that filter, score, preempt and bind as well.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use supercargo_model::{Pod, RawObject};

/// An extender that was not waited for may bind the pod for so long. It does not notice that nobody waits.
pub const EXTENDER_SETTLES_AFTER: Duration = Duration::from_secs(30);

/// A question to an extender.
#[derive(Clone, Debug)]
pub enum ExtenderQuestion {
    /// Which of these nodes can the pod run on?
    Filter {
        /// The pod.
        pod: Arc<Pod>,
        /// The nodes that all plugins, and the extenders before, let through.
        nodes: Vec<AskedNode>,
    },
    /// How good are these nodes for the pod?
    Prioritize {
        /// The pod.
        pod: Arc<Pod>,
        /// The feasible nodes.
        nodes: Vec<AskedNode>,
    },
    /// Which of these nodes may victims be evicted from?
    Preempt {
        /// The pod that needs the room.
        pod: Arc<Pod>,
        /// The victims on each node that comes into question.
        victims: BTreeMap<Arc<str>, NodeVictims>,
    },
    /// Bind the pod to the node.
    Bind {
        /// The pod.
        pod: Arc<Pod>,
        /// The node's name.
        node: Arc<str>,
    },
}

/// A node in a question.
#[derive(Clone, Debug)]
pub struct AskedNode {
    /// Its name.
    pub name: Arc<str>,
    /// The whole of it, for extenders that do not know the nodes themselves.
    pub raw: Option<Arc<RawObject>>,
}

/// The pods that would have to go from a node.
#[derive(Clone, Debug, Default)]
pub struct NodeVictims {
    /// The pods.
    pub pods: Vec<Arc<Pod>>,
    /// How many of them a disruption budget protects.
    pub budget_violations: i64,
}

/// What an extender answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtenderAnswer {
    /// To [`ExtenderQuestion::Filter`].
    Filtered {
        /// The nodes that it lets through.
        kept: Vec<Box<str>>,
        /// The nodes that it does not, and why; evicting pods may help.
        failed: BTreeMap<Box<str>, String>,
        /// The same where evicting pods does not help.
        unresolvable: BTreeMap<Box<str>, String>,
    },
    /// To [`ExtenderQuestion::Prioritize`]: scores from 0 to 10.
    Prioritized(Vec<(Box<str>, i64)>),
    /// To [`ExtenderQuestion::Preempt`]: the UIDs of the victims on the nodes that are left.
    Preempted(BTreeMap<Box<str>, (Vec<Box<str>>, i64)>),
    /// To [`ExtenderQuestion::Bind`]: it is bound.
    Bound,
}

/// Why an extender gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskFailure {
    /// The extender answered, and is done with the question: it says that it failed, or something that nobody understands.
    Answered(String),
    /// No whole answer came. The extender may still be at work, and do what it was asked.
    Unanswered(String),
}

impl AskFailure {
    /// What went wrong, in words for people.
    pub fn error(&self) -> &str {
        let (AskFailure::Answered(error) | AskFailure::Unanswered(error)) = self;
        error
    }
}

impl fmt::Display for AskFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.error())
    }
}
