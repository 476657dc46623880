//! Reads what `kubectl get … -o yaml` and `-o json` print: a cluster in a file; and writes the same, with names masked on
//! request.
//!
//! Dumps are large: 5,000 nodes and 50,000 pods are 440 MB of JSON. So a text is first cut into objects where kubectl's
//! way of printing shows the borders, the objects are decoded on all cores, and YAML as kubectl writes it is
//! turned into JSON line by line ([`block_yaml`]). Whatever looks different takes the slow, general way, which is also what the
//! fast one is held against. Nothing that goes in is lost: it is handed on, counted as left out, or an error.

pub mod block_yaml;
mod cut;
mod fault;
mod general;
mod mask;
mod mistakes;
mod objects;
mod place;
mod read;
mod text;
mod write;

pub use fault::{DumpError, STANDARD_INPUT, Unreadable};
pub use general::SLOW_YAML_BYTES_MAX;
pub use mask::{Mask, MaskBuilder};
pub use read::{Dumps, LESS_THAN_NOTHING, LeftOut, Location};
pub use text::to_text;
pub use write::{ListFormat, ListWriter};
