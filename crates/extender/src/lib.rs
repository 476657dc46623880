//! Extenders: servers outside that filter, score, preempt and bind as well.
//!
//! [`ExtenderClient::ask`] puts a question of the engine to one of them, and [`server`] answers such questions with our own plugins. [`wire`] is
//! what both sides of the conversation read and write.

#![warn(missing_docs)]

mod client;
pub mod server;
mod tls;
pub mod wire;

#[cfg(test)]
mod tests;

pub use client::ExtenderClient;
pub use tls::ExtenderConfigError;
