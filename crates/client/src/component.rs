//! Another server of the cluster, such as a scheduler, that knows whom the API server knows.

use std::path::PathBuf;

use http::Uri;

use crate::connect::{ConnectError, ConnectOptions, find};
use crate::environment::Environment;
use crate::material::{Authority, Pem};
use crate::request::ApiServer;
use crate::target::Target;
use crate::tls;

/// Which server, and whom to believe that it is that one.
#[derive(Clone, Debug, Default)]
pub struct ComponentOptions {
    /// Its address.
    pub url: String,
    /// The authority that signed its certificate; that of the API server if none is given.
    pub authority: Option<PathBuf>,
    /// Whether to believe anybody.
    pub accepts_any_certificate: bool,
}

impl ApiServer {
    /// Gets ready to talk to another server with the credentials that are for the API server. Only over TLS: whoever
    /// reads a token has it.
    pub async fn connect_component(
        options: &ConnectOptions,
        component: &ComponentOptions,
    ) -> Result<Self, ConnectError> {
        let target = find(options, &Environment::of_process())?;
        ApiServer::of_target(for_component(target, component)?, options)
    }
}

/// The credentials of a server, for another one.
pub(crate) fn for_component(
    mut target: Target,
    component: &ComponentOptions,
) -> Result<Target, ConnectError> {
    target.server = address(&component.url)?;
    if let Some(path) = &component.authority {
        target.authority = read_authority(path)?;
    } else if matches!(target.authority, Authority::Anybody) {
        // Whoever is to believe anybody says so for each server.
        target.authority = Authority::System;
    }
    if component.accepts_any_certificate {
        target.authority = Authority::Anybody;
    }
    target.server_name = None;
    // The proxy of a kubeconfig is on the way to its API server; the environment has a say here as well.
    target.proxy = None;
    Ok(target)
}

fn address(url: &str) -> Result<Uri, ConnectError> {
    let failed = |reason: String| ConnectError::Component { url: url.to_owned(), reason };
    let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| failed(error.to_string()))?;
    match uri.scheme_str() {
        Some("https") if uri.host().is_some() => Ok(uri),
        _ => Err(failed("it has to begin with https://".to_owned())),
    }
}

fn read_authority(path: &PathBuf) -> Result<Authority, ConnectError> {
    let failed = |reason: String| ConnectError::Authority { path: path.clone(), reason };
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    tls::roots(&pem).map_err(failed)?;
    Ok(Authority::These(Pem::Data(pem.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_over_tls_only() {
        assert!(address("https://10.0.0.1:10259").is_ok());
        for url in ["http://10.0.0.1:10259", "10.0.0.1:10259", "https://", "a b"] {
            let error = address(url).expect_err(url).to_string();
            assert!(error.contains("such as https://10.0.0.1:10259"), "{error}");
        }
    }

    #[tokio::test]
    async fn an_authority_that_is_not_there_is_named() {
        let options = ConnectOptions { master: Some("127.0.0.1:1".to_owned()), ..ConnectOptions::default() };
        let component = ComponentOptions {
            url: "https://127.0.0.1:2".to_owned(),
            authority: Some("/nowhere/ca.crt".into()),
            ..ComponentOptions::default()
        };
        let error =
            ApiServer::connect_component(&options, &component).await.expect_err("there is no such file");
        assert!(error.to_string().contains("/nowhere/ca.crt"), "{error}");
    }
}
