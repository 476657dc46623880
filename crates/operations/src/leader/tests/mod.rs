//! Elections in virtual time, over a store that fails when told to.

mod deciding;
mod properties;
mod running;
mod store;
