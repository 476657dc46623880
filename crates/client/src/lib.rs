//! The API server as its client sees it: kubeconfig, credentials, TLS, proxies, connections, requests, limits.
//!
//! [`ApiServer::connect`] finds the server that a kubeconfig, an address, or the pod around this process names;
//! [`ApiServer::new`] takes whatever answers requests, such as a closure of a test. What is asked is a [`Call`]: bytes go out and
//! come back, and no types of the API stand in between.

#![warn(missing_docs)]

mod causes;
mod clock;
mod component;
mod connect;
mod connections;
mod dialer;
mod environment;
mod error;
mod kubeconfig;
mod limited_log;
mod limiter;
mod material;
mod plugin;
mod pool;
mod proxy;
mod request;
mod rights;
mod target;
mod tls;
mod words;
mod write_gate;

#[cfg(any(test, feature = "test-util"))]
pub mod fake;
#[cfg(any(test, feature = "test-util"))]
pub mod logged;
#[cfg(feature = "test-util")]
pub mod loopback;

pub use causes::with_causes;
pub use clock::Clock;
pub use component::ComponentOptions;
pub use connect::{ConnectError, ConnectOptions, Search, chain, hostname};
pub use error::RequestError;
pub use limited_log::LimitedLog;
pub use limiter::RateLimit;
pub use pool::Answer;
pub use request::{AnswerBody, ApiServer, RequestBody, SILENCE_MAX, socket_of};
pub use rights::MissingRights;
pub use supercargo_api::{Call, MERGE_PATCH, STRATEGIC_MERGE_PATCH};
pub use tls::{AnyCertificate, TrustedRoots};
pub use write_gate::{Passage, Tenure, WriteGate};
