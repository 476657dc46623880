//! The object as it came, for whoever needs more of it than the scheduler reads.

use serde::de::DeserializeOwned;

use crate::decode::{DecodeError, read};
use crate::lookups::{self, Lookup};

/// A Kubernetes object as JSON text, parsed when somebody asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawObject(Box<str>);

impl RawObject {
    /// Keeps the text of an object.
    pub fn new(json: impl Into<Box<str>>) -> Self {
        RawObject(json.into())
    }

    /// The text.
    pub fn as_json(&self) -> &str {
        lookups::note(|| Lookup::Text);
        &self.0
    }

    /// The object, as the type that the caller chooses: its own struct, one of k8s-openapi, a `Value`.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_json())
    }

    /// The object by Go's rules: `null` is what is not there. An error says where in the object it is, which is called by
    /// its kind and name.
    pub fn read<T: DeserializeOwned>(&self, kind: &str) -> Result<T, DecodeError> {
        read(self.as_json(), kind)
    }
}
