//! Whether a server serves a kind.

use serde::Deserialize;
use supercargo_model::KindId;

use crate::client::{ApiServer, Call, RequestError};
use crate::path;

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourcesWords {
    resources: Vec<ResourceWords>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceWords {
    name: String,
}

/// Whether a server serves a kind. Everybody may ask for that, whatever else they may.
pub(crate) async fn is_served(server: &ApiServer, kind: KindId) -> Result<bool, RequestError> {
    match server.fetch(&Call::get(path::of_version(kind))).await {
        Ok(answer) => {
            let words: ResourcesWords = serde_json::from_slice(&answer).unwrap_or_default();
            Ok(words.resources.iter().any(|resource| resource.name == kind.plural))
        }
        Err(error) if error.code() == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}
