//! The scheduler's configuration: read, defaulted, validated, and made into profiles.
//!
//! Three stages, so that each caller takes what it needs:
//!
//! 1. [`load`] turns words into a [`KubeSchedulerConfiguration`] with its defaults. It is as strict as Kubernetes:
//!    unknown fields, repeated fields and values of the wrong type are errors. Older versions are converted, and what
//!    changed is said. [`read()`] does the same and goes on with what could be read, so that [`Reading::check`] finds all
//!    problems of a file, with lines and columns.
//! 2. [`validate`] finds everything that is wrong or suspicious, all at once, each with a stable code and a path.
//! 3. [`build_profiles`] makes the plugins and puts them in order. Like upstream's framework constructor, it does not
//!    look at what only the validator complains about.
//!
//! One difference from kube-scheduler is on by default: `percentageOfNodesToScore` absent or 0 means all nodes, where
//! upstream looks at a share that shrinks as the cluster grows. From 1 to 99 the two agree.

mod args;
mod build;
mod bytes;
pub mod codes;
mod decode;
mod defaults;
mod document;
mod effective;
mod extenders;
mod fields;
mod json_tree;
mod legacy;
mod memories;
mod merge;
mod minimal;
mod nearest;
mod other_kinds;
mod own;
mod places;
mod plain_words;
mod plan;
mod problem;
mod reading;
pub mod traps;
mod types;
mod validate;
mod words;

pub use build::{build_profile, build_profiles};
pub use bytes::Bytes;
pub use decode::{Loaded, load, load_all, read, read_with_policy};
pub use effective::{effective, print_yaml, to_yaml};
pub use legacy::algorithm::PolicyPlace;
pub use memories::{MEMORIES_SUFFIX, memories_object};
pub use merge::merged_plugins;
pub use minimal::{minimal_json, minimal_yaml};
pub use own::{PageAddress, Program, SupercargoConfiguration, TieBreak};
pub use places::Position;
pub use problem::{Problem, Problems, Severity};
pub use reading::Reading;
pub use types::{
    ClientConnection, Extender, ExtenderTlsConfig, KubeSchedulerConfiguration, KubeSchedulerProfile,
    LeaderElection, ManagedResource, Plugin, PluginConfig, PluginSet, Plugins, Slot,
};
pub use validate::validate;

#[cfg(test)]
mod tests;
