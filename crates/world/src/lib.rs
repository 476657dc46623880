//! A cluster in virtual time: a whole scheduler with its queue, its bindings and its timers, and an API server that does what it
//! orders, or fails when a test says so. No thread, no socket, no clock: a minute passes when the test says so, and two runs of a
//! test are the same to the last line.
//!
//! ```
//! use serde_json::json;
//! use supercargo_framework::{Cycle, Extensions, Filter, NoArgs, NodeField, Plugin, Reads, Status};
//! use supercargo_model::{LabelLookup, NodeRef};
//! use supercargo_testkit::{node, pod};
//! use supercargo_world::World;
//! # struct Ssd;
//! # impl Plugin for Ssd {
//! #     const NAME: &'static str = "Ssd";
//! #     type Args = NoArgs;
//! #     fn new(_: NoArgs) -> Self { Ssd }
//! #     fn extensions(points: Extensions<Self>) -> Extensions<Self> { points.filter() }
//! #     fn reads(&self) -> Reads { Reads::nothing().node(&[NodeField::Labels]) }
//! # }
//! # impl Filter for Ssd {
//! #     fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
//! #         if node.label("disk") == Some("ssd") { Status::success() } else { Status::unschedulable("no SSD") }
//! #     }
//! # }
//!
//! let mut world = World::of::<Ssd>();
//! world.put(node("n1"));
//! world.put(pod("web"));
//! world.run();
//! assert_eq!(world.place_of("web"), "unschedulable: Ssd");
//!
//! world.change("Node n1", &json!({ "metadata": { "labels": { "disk": "ssd" } } }));
//! assert_eq!(world.run()[0], "bind web to n1");
//! assert_eq!(world.node_of("web"), Some("n1"));
//! ```
//!
//! What a test says wrongly, such as the name of an object that is not there, is a panic at the line of the test.

#![warn(missing_docs)]

mod name;
mod place;
mod plugins;
mod queries;
mod saving;
mod server;
mod settings;
mod words;
mod world;

pub use supercargo_plugins::{Plugins, TakenName};
pub use words::only;
pub use world::World;
