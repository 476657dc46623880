//! What a cluster is made of: quantities, resources, selectors, pods, nodes and the table they live in.
//!
//! Everything here is pure: no I/O, no clock, no randomness. Types named `…Words` are what the API writes, as far
//! as the scheduler reads it; they are converted once into the types that the rest of Supercargo works with.

#![warn(missing_docs)]

pub mod cluster;
mod decode;
mod duration;
mod everything;
mod intern;
pub mod kinds;
pub mod labels;
pub mod lookups;
pub mod names;
mod nearest;
mod node;
pub mod node_selector;
mod object;
pub mod pod;
mod printable;
pub mod protobuf;
pub mod quantity;
mod raw;
pub mod resources;
pub mod taints;
mod time;
pub mod wire;

pub use cluster::{
    Cluster, ClusterError, CountedPods, NodeRef, PodSet, PodSetId, Pods, Row, Snapshot, Standing,
    StandingCounts, StandingPod,
};
pub use decode::{DecodeError, Decoded, Decoder, FieldPath, FieldStep, OtherVersion, leading_header};
pub use duration::{GoDuration, InvalidDuration};
pub use everything::Everything;
pub use intern::{Interned, Interner};
pub use labels::{LabelLookup, LabelSelector, Labels};
pub use nearest::{nearest, nearest_first};
pub use node::{Node, NodeWords};
pub use node_selector::{NodeSelector, SelectableNode};
pub use object::{
    Kind, KindId, MetadataWords, Object, ObjectKey, Objects, OwnerReferenceWords, ReadableKind,
};
pub use pod::{Pod, PodSpec, PodWords};
pub use printable::{printable, printable_lines};
pub use quantity::Quantity;
pub use raw::RawObject;
pub use resources::{ResourceList, Resources};
pub use time::Timestamp;

/// How property tests run: from the same seed every time, unless `PROPTEST_RNG_SEED` names another.
#[cfg(test)]
pub(crate) fn seeded() -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    let config = Config { failure_persistence: None, ..Config::default() };
    match config.rng_seed {
        RngSeed::Random => Config { rng_seed: RngSeed::Fixed(1), ..config },
        RngSeed::Fixed(_) => config,
    }
}
