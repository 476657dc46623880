//! Reads what `kubectl get … -o yaml` and `-o json` print: a cluster in a file; and writes the same, with names masked on
//! request.
//!
//! Dumps are large: 5,000 nodes and 50,000 pods are 440 MB of JSON. So a text is first cut into objects where kubectl's
//! way of printing shows the borders ([`split()`]), the objects are decoded on all cores, and YAML as kubectl writes it is
//! turned into JSON line by line ([`block_yaml`]). Whatever looks different takes the slow, general way.

pub mod block_yaml;
mod mask;
mod read;
mod split;
mod write;

pub use mask::{Mask, MaskBuilder};
pub use read::{DumpError, Ignored, Location, read_dumps};
pub use split::{Item, split};
pub use write::{ListFormat, ListWriter};
