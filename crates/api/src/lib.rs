//! What goes to an API server and comes back, as data.
//!
//! [`calls`] says which requests carry out an effect, [`applied`] what such a request makes of an object, [`Recorder`] which
//! events are told, and [`watch`] reads what a watch and a list say. Nothing here does I/O, so the live driver, a simulator and a
//! server inside a test speak of the same requests in the same words.

#![warn(missing_docs)]

mod applying;
mod bodies;
mod call;
mod calls;
mod events;
pub mod path;
mod time;
pub mod watch;

pub use applying::{Applied, Refusal, applied, merge};
pub use call::{Call, MERGE_PATCH, STRATEGIC_MERGE_PATCH};
pub use calls::{bind, calls, create, delete, delete_pod, disrupt, look_up, patch, update_status};
pub use events::{EventCall, EventGroup, Recorder};
