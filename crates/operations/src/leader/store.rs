//! Where the lease is kept.

use std::future::Future;

use jiff::Timestamp;
use serde_json::{Value, json};
use supercargo_client::{ApiServer, Call, RequestError};

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
    /// What the lease is called.
    fn name(&self) -> &str;
    /// Reads the lease; none if there is no such lease.
    fn get(&self) -> impl Future<Output = Result<Option<Value>, StoreError>> + Send;
    /// Creates the lease, and returns it as it now is. A lease that is there already is a conflict.
    fn create(&self, spec: Value) -> impl Future<Output = Result<Value, StoreError>> + Send;
    /// Replaces the lease, and returns it as it now is. A resource version that is not the last is a conflict.
    fn update(&self, lease: Value) -> impl Future<Output = Result<Value, StoreError>> + Send;
}

/// A `coordination.k8s.io/v1` Lease behind an API server.
#[derive(Clone)]
pub struct ApiLeaseStore {
    server: ApiServer,
    namespace: String,
    name: String,
}

impl std::fmt::Debug for ApiLeaseStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ApiLeaseStore({}/{})", self.namespace, self.name)
    }
}

impl ApiLeaseStore {
    /// The lease of this name. The server should have connections of its own, lest a renewal wait behind thousands of bindings.
    ///
    /// A server that asks to wait is not waited for: a try that takes longer than its time limit would only say that nobody answers.
    /// An election tries again after its retry period.
    pub fn new(server: ApiServer, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let server = server.without_asked_retries();
        ApiLeaseStore { server, namespace: namespace.into(), name: name.into() }
    }

    /// Tells people that we lead, by an event on the lease: with client-go's reason and words, in the core group as it does.
    pub async fn announce(&self, identity: &str, component: &str, now: Timestamp) -> Result<(), StoreError> {
        let lease = self.send(Call::get(self.object())).await?;
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
        self.send(Call::post(events, event.to_string().into_bytes())).await.map(|_| ())
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn object(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    async fn send(&self, call: Call) -> Result<Value, StoreError> {
        let answer = self.server.fetch(&call).await.map_err(|error| match error {
            RequestError::Refused { code: 409, message, .. } => StoreError::Conflict(message),
            RequestError::Refused { code: 404, .. } => StoreError::Failed(NOT_FOUND.to_owned()),
            other => StoreError::Failed(other.to_string()),
        })?;
        serde_json::from_slice(&answer)
            .map_err(|error| StoreError::Failed(format!("the lease cannot be read: {error}")))
    }
}

const NOT_FOUND: &str = "the lease, or its namespace, is not there";

impl LeaseStore for ApiLeaseStore {
    fn name(&self) -> &str {
        &self.name
    }

    async fn get(&self) -> Result<Option<Value>, StoreError> {
        match self.send(Call::get(self.object())).await {
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
        self.send(Call::post(self.collection(), lease.to_string().into_bytes())).await
    }

    async fn update(&self, lease: Value) -> Result<Value, StoreError> {
        self.send(Call::put(self.object(), lease.to_string().into_bytes())).await
    }
}
