//! The plugins that come with Supercargo.
//!
//! One plugin is one file or folder. Its doc comment always has the same sections: *What* it does, *Why* one wants
//! it, its *Arguments*, an *Example*, and the *Difference from upstream*.

mod added;
pub mod community;
pub mod kubernetes;
pub mod network_traffic;
pub mod qos_aware;

use supercargo_framework::Registry;

pub use added::{Plugins, TakenName};
use network_traffic::NetworkTraffic;
use qos_aware::QosAware;

/// All plugins that come with Supercargo.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    kubernetes::register(&mut registry)
        .and_then(|()| registry.register::<NetworkTraffic>())
        .and_then(|()| community::register(&mut registry))
        .and_then(|()| registry.register::<QosAware>())
        .expect("the names of our own plugins differ");
    registry
}
