//! A request to an API server.

use bytes::Bytes;
use http::Method;

const JSON: &str = "application/json";
/// A watch in protobuf, by those who can; else in JSON. Refusals come in the same notation: [`ErrorWords::in_body`] reads both.
///
/// [`ErrorWords::in_body`]: crate::watch::ErrorWords::in_body
const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch, application/json";
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
    /// The notation of the answer.
    pub accept: &'static str,
    /// The notation of the body.
    pub content_type: &'static str,
    /// The object, the patch or the options that are sent; empty if there are none.
    pub body: Bytes,
}

impl Call {
    /// Reads what is at a path, or lists it.
    pub fn get(path: String) -> Self {
        Call::new(Method::GET, path, JSON, Vec::new())
    }

    /// The same for a watch of objects that can be read from protobuf, which not every server writes.
    pub fn watch_in_protobuf(path: String) -> Self {
        Call { accept: PROTOBUF_WATCH, ..Call::get(path) }
    }

    /// Creates something at a path.
    pub fn post(path: String, body: Vec<u8>) -> Self {
        Call::new(Method::POST, path, JSON, body)
    }

    /// Replaces what is at a path.
    pub fn put(path: String, body: Vec<u8>) -> Self {
        Call::new(Method::PUT, path, JSON, body)
    }

    /// Changes what is at a path.
    pub fn patch(path: String, content_type: &'static str, body: Vec<u8>) -> Self {
        Call::new(Method::PATCH, path, content_type, body)
    }

    /// Deletes what is at a path.
    pub fn delete(path: String, body: Vec<u8>) -> Self {
        Call::new(Method::DELETE, path, JSON, body)
    }

    fn new(method: Method, path: String, content_type: &'static str, body: Vec<u8>) -> Self {
        Call { method, path, accept: JSON, content_type, body: body.into() }
    }
}
