//! The metrics API, which the API server hands on.

use bytes::Bytes;
use supercargo_client::{ApiServer, RequestError};

use crate::failure::{Failure, FailureKind};
use crate::http::whole;

/// What all nodes use.
const PATH: &str = "/apis/metrics.k8s.io/v1beta1/nodes";

/// Asks what all nodes use.
pub(crate) async fn ask(server: &ApiServer, bytes_max: usize) -> Result<Bytes, Failure> {
    let body = server.open(PATH).await.map_err(failure)?;
    whole("the metrics API", body, bytes_max).await
}

fn failure(error: RequestError) -> Failure {
    let (kind, advice) = match &error {
        RequestError::Refused { code: 404, .. } => {
            (FailureKind::Refused, ": nobody serves metrics.k8s.io here; install metrics-server or the like")
        }
        RequestError::Refused { .. } | RequestError::NotLeading { .. } => (FailureKind::Refused, ""),
        RequestError::NotLoggedIn { .. } => (FailureKind::Credentials, ""),
        RequestError::TimedOut { .. } => (FailureKind::TimedOut, ""),
        RequestError::Broken { .. } => (FailureKind::Unreachable, ""),
    };
    Failure::new(kind, format!("the metrics API: {error}{advice}"))
}
