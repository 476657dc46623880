//! Pods, nodes and clusters for tests, in a few words each.
//!
//! The builders write JSON, and the cluster reads it with the decoder that reads real objects, so a test goes the way
//! that a real object goes:
//!
//! ```
//! use supercargo_framework::{Cycle, Extensions, Filter, NoArgs, Plugin, Status};
//! use supercargo_model::{LabelLookup, NodeRef};
//! use supercargo_testkit::{cluster, node, pod, trial};
//! # struct Ssd;
//! # impl Plugin for Ssd {
//! #     const NAME: &'static str = "Ssd";
//! #     type Args = NoArgs;
//! #     fn new(_: NoArgs) -> Self { Ssd }
//! #     fn extensions(points: Extensions<Self>) -> Extensions<Self> { points.filter() }
//! # }
//! # impl Filter for Ssd {
//! #     fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
//! #         if node.label("disk") == Some("ssd") { Status::success() } else { Status::unschedulable("no SSD") }
//! #     }
//! # }
//!
//! let mut cluster = cluster().with(node("fast").label("disk", "ssd")).with(node("slow"));
//! assert_eq!(trial::<Ssd>().filter(&mut cluster, pod("a").cpu("100m")), ["fast: ok", "slow: unschedulable: no SSD"]);
//! ```

mod acting;
mod attempt;
mod build;
mod cluster;
mod counted;
#[doc(hidden)]
pub mod listed;
mod normalized;
mod observing;
mod queries;
pub mod random;
mod reads;
mod rehearsal;
mod trial;

pub use attempt::Attempt;
pub use build::{NodeBuilder, PodBuilder, node, pod};
pub use cluster::{TestCluster, cluster};
pub use reads::{ReadsCheck, check_reads, check_reads_with};
pub use trial::{
    Happening, Trial, added, args_of, deleted, problems_of, status_text, trial, trial_with, updated,
};
