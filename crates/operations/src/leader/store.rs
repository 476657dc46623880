//! Where the lease is kept.

use std::future::Future;

use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use supercargo_framework::with_causes;

/// Why a lease could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else has written it in between, or created it before us.
    #[error("somebody else wrote the lease first: {0}")]
    Conflict(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Where one lease is kept. Whole objects go in and out, so that fields we do not know survive.
pub trait LeaseStore: Send + Sync {
    /// Reads the lease; none if there is no such lease.
    fn get(&self) -> impl Future<Output = Result<Option<Value>, StoreError>> + Send;
    /// Creates the lease, and returns it as it now is. A lease that is there already is a conflict.
    fn create(&self, spec: Value) -> impl Future<Output = Result<Value, StoreError>> + Send;
    /// Replaces the lease, and returns it as it now is. A resource version that is not the last is a conflict.
    fn update(&self, lease: Value) -> impl Future<Output = Result<Value, StoreError>> + Send;
}

/// A `coordination.k8s.io/v1` Lease behind an API server.
#[derive(Clone)]
pub struct KubeLeaseStore {
    client: Client,
    namespace: String,
    name: String,
}

impl std::fmt::Debug for KubeLeaseStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "KubeLeaseStore({}/{})", self.namespace, self.name)
    }
}

impl KubeLeaseStore {
    /// The lease of this name. The client should be one of its own, lest a renewal wait behind thousands of bindings.
    pub fn new(client: Client, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        KubeLeaseStore { client, namespace: namespace.into(), name: name.into() }
    }

    /// Tells people that we lead, by an event on the lease: with client-go's reason and words, in the core group as it does.
    pub async fn announce(&self, identity: &str, component: &str, now: Timestamp) -> Result<(), StoreError> {
        let lease = self.send(Method::GET, self.object(), None).await?;
        let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{}.{:x}", self.name, now.as_nanosecond()),
                "namespace": self.namespace,
            },
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": self.namespace,
                "name": self.name,
                "uid": lease["metadata"]["uid"],
                "resourceVersion": lease["metadata"]["resourceVersion"],
            },
            "type": "Normal",
            "reason": "LeaderElection",
            "message": format!("{identity} became leader"),
            "source": {"component": component},
            "reportingComponent": component,
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        });
        let events = format!("/api/v1/namespaces/{}/events", self.namespace);
        self.send(Method::POST, events, Some(event)).await.map(|_| ())
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn object(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    async fn send(&self, method: Method, path: String, body: Option<Value>) -> Result<Value, StoreError> {
        let failed = |error: &dyn std::error::Error| StoreError::Failed(with_causes(error));
        let bytes = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(bytes)
            .map_err(|error| failed(&error))?;
        self.client.request::<Value>(request).await.map_err(|error| match error {
            kube::Error::Api(status) if status.code == 409 => StoreError::Conflict(status.message.clone()),
            kube::Error::Api(status) if status.code == 404 => StoreError::Failed(NOT_FOUND.to_owned()),
            other => failed(&other),
        })
    }
}

const NOT_FOUND: &str = "the lease, or its namespace, is not there";

impl LeaseStore for KubeLeaseStore {
    async fn get(&self) -> Result<Option<Value>, StoreError> {
        match self.send(Method::GET, self.object(), None).await {
            Ok(lease) => Ok(Some(lease)),
            Err(StoreError::Failed(text)) if text == NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, spec: Value) -> Result<Value, StoreError> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": spec,
        });
        self.send(Method::POST, self.collection(), Some(lease)).await
    }

    async fn update(&self, lease: Value) -> Result<Value, StoreError> {
        self.send(Method::PUT, self.object(), Some(lease)).await
    }
}
