//! The metrics API, which the API server hands on.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use supercargo_client::{ApiServer, Call, RequestError, with_causes};

use crate::failure::{Failure, FailureKind};

/// What all nodes use.
const PATH: &str = "/apis/metrics.k8s.io/v1beta1/nodes";

/// Asks what all nodes use.
pub(crate) async fn ask(server: &ApiServer, bytes_max: usize) -> Result<Bytes, Failure> {
    let call = Call::get(PATH.to_owned());
    let mut body = server.open(&call).await.map_err(|error| failure(&error))?.into_body();
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let reason = format!("the metrics API broke off its answer: {}", with_causes(&*error));
            Failure::new(FailureKind::Cut, reason)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > bytes_max {
            let reason = format!("the metrics API answers with more than {bytes_max} bytes");
            return Err(Failure::new(FailureKind::TooLong, reason));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

fn failure(error: &RequestError) -> Failure {
    let (kind, advice) = match error {
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
