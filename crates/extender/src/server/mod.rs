//! The other side: answers a scheduler's questions with the plugins of a profile.
//!
//! [`Answerer`] says what the plugins say of a [`View`] of the cluster; it is pure. [`Service`] reads questions from HTTP requests and writes the
//! answers, within [`Limits`]; where the view comes from, and who carries out bindings, is [`Surroundings`].

mod answering;
mod legacy;
mod scaling;
mod service;

#[cfg(test)]
mod tests;

pub use answering::{Answerer, NoSuchProfile, View};
pub use scaling::{HIGHEST_SCORE, scaled};
pub use service::{Answered, Limits, Outcome, Service, Surroundings, Verb, WireNames};
