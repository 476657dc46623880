//! The plugins that come with Supercargo.
//!
//! One plugin is one file or folder. Its doc comment always has the same sections: *What* it does, *Why* one wants
//! it, its *Arguments*, an *Example*, and the *Difference from upstream*.

mod added;
pub mod kubernetes;

use supercargo_framework::Registry;

pub use added::{Plugins, TakenName};

/// All plugins that come with Supercargo.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    kubernetes::register(&mut registry).expect("the names of our own plugins differ");
    registry
}
