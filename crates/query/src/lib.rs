//! Asks whom plugins want to hear from.
//!
//! An [`Asker`] asks what one query asks, and reads the answer: within the query's deadline, no more of it than the query's limit, and
//! whatever the other side does. What comes of it is data for the scheduler; nothing here decides.

#![warn(missing_docs)]

mod asker;
mod failure;
mod http;
mod line;
mod metrics_api;
mod prometheus;
mod tls;

#[cfg(test)]
mod tests;

pub use asker::{Asked, Asker, Inquirer, fetch_page};
pub use failure::{Failure, FailureKind};
