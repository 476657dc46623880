//! What kube-scheduler has around scheduling, and what a scheduler that takes its place needs as a process. Nothing here decides where
//! pods go.
//!
//! - [`leader`]: of several replicas one schedules, agreed upon through a Lease as client-go does.
//! - [`serve`]: health, metrics and pages over HTTPS, with authentication and authorization delegated to the API server.
//! - [`metrics`]: kube-scheduler's metrics under kube-scheduler's names.
//! - [`flags`]: kube-scheduler's flags.
//! - [`logs`]: structured logs as klog writes them, or JSON.
//! - [`signals`] and [`reload`]: what the outside asks of a running process.
//! - [`programs`]: programs that run beside the scheduler, such as an agent that a plugin asks.
//!
//! Time passes by tokio's clock, so that tests run in virtual time; the time of day comes in through [`clock`] alone.

#![warn(missing_docs)]

pub mod clock;
pub mod flags;
pub mod leader;
pub mod logs;
pub mod metrics;
pub mod programs;
pub mod reload;
pub mod serve;
pub mod signals;

#[cfg(test)]
mod api_tests;
