//! The live driver: what is scheduled comes from an API server and goes to it through this crate.
//!
//! [`list()`] lists a kind once, [`watch()`] keeps up with it. [`Performer`] does in the
//! world what the scheduler orders.
//!
//! Pods and nodes are watched in protobuf where the server writes it; all else is read, and every body written, as text. Either
//! way no types of the API stand between the wire and the scheduler, which costs a third of the time, and nothing that we do
//! not know of gets lost on the way.

#![warn(missing_docs)]

mod backoff;
mod binder;
mod clock;
mod driver;
mod event_sink;
mod heartbeat;
mod memory_store;
mod order_log;
mod perform;
mod queries;
mod rest;
mod tasks;
mod timer;
mod watch;
mod watches;

pub use binder::bind;
pub use driver::{Command, Driver, DriverOptions, KnownCluster, ReloadRefused, RenderedPage, Replacement};
pub use heartbeat::{HEARTBEAT_TOLERANCE, Heartbeat};
pub use memory_store::MemoriesPlace;
pub use perform::{Concluded, OrderOutcome, Performer, PerformerOptions};
pub use queries::{QueryLine, QueryStatuses};
pub use rest::{end_rest, rest_after_bindings};
pub use supercargo_client::LimitedLog;
pub use tasks::{Supervisor, Task, TaskEnd, TaskEndCause, Tasks};
pub use watch::{
    ListError, ListRequest, NODES, PODS, PODS_NOT_FINISHED, WatchEvent, WatchRequest, Watched, WholeList,
    list, watch,
};
pub use watches::Progress;
