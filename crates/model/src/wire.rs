//! Reading what Kubernetes writes.
//!
//! Go's decoder takes `null` for any field and leaves the zero value; serde wants to be told.

use serde::{Deserialize, Deserializer};

/// Reads `null` as the default value.
pub fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
