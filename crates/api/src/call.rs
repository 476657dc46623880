//! A request to an API server.

use bytes::Bytes;
use http::Method;

const JSON: &str = "application/json";
/// Objects in the patch replace what is there, field by field.
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// The same, and lists of named things are merged by name. Only built-in kinds know it.
pub const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

/// A request, which can be made more than once.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is done.
    pub method: Method,
    /// The path of the object, with the query.
    pub path: String,
    /// The notation of the body.
    pub content_type: &'static str,
    /// The object, the patch or the options that are sent; empty if there are none.
    pub body: Bytes,
}

impl Call {
    /// Reads what is at a path, or lists it.
    pub fn get(path: String) -> Self {
        Call { method: Method::GET, path, content_type: JSON, body: Bytes::new() }
    }

    /// Creates something at a path.
    pub fn post(path: String, body: Vec<u8>) -> Self {
        Call { method: Method::POST, path, content_type: JSON, body: body.into() }
    }

    /// Replaces what is at a path.
    pub fn put(path: String, body: Vec<u8>) -> Self {
        Call { method: Method::PUT, path, content_type: JSON, body: body.into() }
    }

    /// Changes what is at a path.
    pub fn patch(path: String, content_type: &'static str, body: Vec<u8>) -> Self {
        Call { method: Method::PATCH, path, content_type, body: body.into() }
    }

    /// Deletes what is at a path.
    pub fn delete(path: String, body: Vec<u8>) -> Self {
        Call { method: Method::DELETE, path, content_type: JSON, body: body.into() }
    }
}
