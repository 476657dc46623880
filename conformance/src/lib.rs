//! Cases, and the verdicts on them: parity with kube-scheduler as a number.
//!
//! A case is a cluster and the pods to be scheduled into it, one after the other. A verdict is everything that was said
//! about one of those pods. The oracle, a Go program that runs the real plugins, gives the verdicts to compare with.

mod case;
mod compare;
mod judge;
pub mod samples;
mod trial;
mod verdict;

pub use case::{Case, CaseError, family_of};
pub use compare::{Difference, compare};
pub use judge::Judge;
pub use verdict::{CaseVerdict, NodeStatus, PermitVerdict, Verdict};
