//! What a pod says about its controller, by annotations of the controller's template.

use serde::{Deserialize, Serialize};
use supercargo_model::{LabelLookup, Pod};

/// The SLO of pods that do not say one, or none that can be.
pub(super) const DEFAULT_SLO: f64 = 0.80;
/// Pods of this namespace keep the cluster going: they go first, are never evicted, and are not measured.
pub(super) const SYSTEM_NAMESPACE: &str = "kube-system";

const CONTROLLER: &str = "controller";
const SLO: &str = "slo";
const APPROACH: &str = "qosMeasuring";
const ACCEPTABLE_OVERHEAD: &str = "acceptablePreemptionOverhead";
/// Longer names of controllers count as none: every row of the table is kept, and saved.
const CONTROLLER_BYTES_MAX: usize = 253;

/// How the quality of service of a controller is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approach {
    /// Each replica by itself.
    Independent,
    /// The time that replicas run, of the time that there are replicas, all together.
    #[default]
    Average,
    /// The same, but what a pod ran that did not succeed is lost.
    Aggregate,
    /// Only the time counts in which all replicas run.
    Concurrent,
}

/// What a pod says about its controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Terms<'a> {
    /// The name that all pods of a controller have in common; empty for those that have none.
    pub(super) controller: &'a str,
    /// The share of its time that a replica is to run. It is also how important the controller is.
    pub(super) slo: f64,
    pub(super) approach: Approach,
    /// The share of its time on nodes that the controller may lose to preemption, if it says one.
    pub(super) acceptable_overhead: Option<f64>,
}

/// An annotation that counts as if it were not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadAnnotation {
    pub(super) name: &'static str,
    /// What is wrong with it, and what counts instead.
    pub(super) detail: String,
}

impl Approach {
    const ALL: [Approach; 4] =
        [Approach::Independent, Approach::Average, Approach::Aggregate, Approach::Concurrent];

    /// The word that annotations have for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Approach::Independent => "independent",
            Approach::Average => "average",
            Approach::Aggregate => "aggregate",
            Approach::Concurrent => "concurrent",
        }
    }

    /// The one of pods that do not say: by who controls them.
    fn usual(pod: &Pod) -> Self {
        match pod.controller.as_ref().map(|controller| &*controller.kind) {
            None => Approach::Independent,
            Some("Job") => Approach::Aggregate,
            Some(_) => Approach::Average,
        }
    }
}

impl<'a> Terms<'a> {
    pub(super) fn of(pod: &'a Pod) -> Self {
        Self::read(pod, |_, _| {})
    }

    /// What is wrong with the annotations of a pod.
    pub(super) fn problems(pod: &'a Pod) -> Vec<BadAnnotation> {
        let mut problems = Vec::new();
        Self::read(pod, |name, detail| problems.push(BadAnnotation { name, detail: detail() }));
        problems
    }

    fn read(pod: &'a Pod, mut ignore: impl FnMut(&'static str, &dyn Fn() -> String)) -> Self {
        let annotation = |name| pod.annotations.label(name);
        let mut terms = Terms {
            controller: "",
            slo: DEFAULT_SLO,
            approach: Approach::usual(pod),
            acceptable_overhead: None,
        };
        if let Some(name) = annotation(CONTROLLER) {
            if name.len() <= CONTROLLER_BYTES_MAX {
                terms.controller = name;
            } else {
                ignore(CONTROLLER, &|| {
                    format!("a name of more than {CONTROLLER_BYTES_MAX} bytes; it counts as none")
                });
            }
        }
        match annotation(SLO).map(|text| (share(text), text)) {
            Some((Some(slo), _)) => terms.slo = slo,
            Some((None, text)) => {
                ignore(SLO, &|| format!("{text:?} is no number from 0 to 1; {DEFAULT_SLO:.2} counts"));
            }
            None => {}
        }
        match annotation(ACCEPTABLE_OVERHEAD).map(|text| (share(text), text)) {
            Some((Some(overhead), _)) => terms.acceptable_overhead = Some(overhead),
            Some((None, text)) => {
                ignore(ACCEPTABLE_OVERHEAD, &|| {
                    format!("{text:?} is no number from 0 to 1; the plugin's argument counts")
                });
            }
            None => {}
        }
        if let Some(word) = annotation(APPROACH).filter(|word| !word.is_empty()) {
            match Approach::ALL.into_iter().find(|approach| approach.word() == word) {
                Some(approach) => terms.approach = approach,
                None => ignore(APPROACH, &|| {
                    let usual = terms.approach.word();
                    format!(
                        "{word:?} is none of independent, average, aggregate and concurrent; {usual} counts"
                    )
                }),
            }
        }
        terms
    }
}

/// A number from 0 to 1.
fn share(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

/// Whether a pod is one that is not measured.
pub(super) fn is_system(pod: &Pod) -> bool {
    *pod.namespace == *SYSTEM_NAMESPACE
}
