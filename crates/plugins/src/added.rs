//! The plugins of a program: Kubernetes' own, and those that its author adds.

use supercargo_framework::{DuplicatePlugin, Plugin, Registry};

/// The plugins that configurations can name: Kubernetes' own to begin with.
#[derive(Debug)]
pub struct Plugins {
    registry: Registry,
}

/// Two plugins cannot have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenName(DuplicatePlugin);

impl Plugins {
    /// Adds a plugin, which configurations can name from now on.
    pub fn add<P: Plugin>(&mut self) -> Result<(), TakenName> {
        self.registry.register::<P>().map_err(TakenName)
    }

    /// Kubernetes' own plugins, and those that `add` adds.
    pub fn with(add: impl FnOnce(&mut Plugins) -> Result<(), TakenName>) -> Result<Registry, TakenName> {
        let mut plugins = Plugins { registry: crate::registry() };
        add(&mut plugins)?;
        Ok(plugins.registry)
    }
}

impl std::fmt::Display for TakenName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: give the one that this program adds another NAME", self.0)
    }
}

impl std::error::Error for TakenName {}
