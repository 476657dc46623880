//! How connections are secured.

mod any_certificate;
mod trusted_roots;

use std::sync::Arc;

use hyper_rustls::{ConfigBuilderExt as _, FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

pub use any_certificate::AnyCertificate;
pub use trusted_roots::TrustedRoots;

use crate::material::{Authority, Identity, Material};
use crate::target::Target;

/// Secures the connections that a connector makes; an error says what is wrong with the certificates.
pub(crate) fn connector<C>(
    target: &Target,
    material: &Material,
    connector: C,
) -> Result<HttpsConnector<C>, String> {
    let tls = configuration(target, material)?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &target.server_name {
        let name = ServerName::try_from(name.clone())
            .map_err(|error| format!("tls-server-name {name:?}: {error}"))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_http1().wrap_connector(connector))
}

fn configuration(target: &Target, material: &Material) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3");
    let builder = match (&target.authority, &material.authority) {
        (Authority::Anybody, _) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        }
        (_, Some(pem)) => {
            let roots = Arc::new(roots(pem).map_err(|reason| format!("certificate-authority: {reason}"))?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| format!("certificate-authority: {error}"))?;
            builder.with_webpki_verifier(verifier)
        }
        (_, None) if target.server.scheme_str() == Some("https") => {
            // A machine without authorities trusts nobody, which shows when a connection is made.
            let trusts_nobody = builder.clone().with_root_certificates(RootCertStore::empty());
            builder.with_native_roots().unwrap_or(trusts_nobody)
        }
        (_, None) => builder.with_root_certificates(RootCertStore::empty()),
    };
    match &material.identity {
        Some(identity) => {
            let (certificates, key) = identity.read()?;
            builder
                .with_client_auth_cert(certificates, key)
                .map_err(|error| format!("client-certificate and client-key: {error}"))
        }
        None => Ok(builder.with_no_client_auth()),
    }
}

/// The certificates of authorities. As in Go, what is no certificate of an authority is passed over, unless nothing is left.
pub(crate) fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(roots)
}

impl Identity {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let certificates = certificates.map_err(|error| format!("client-certificate: {error}"))?;
        if certificates.is_empty() {
            return Err("client-certificate: there is no certificate in it".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        Ok((certificates, key.map_err(|error| format!("client-key: {error}"))?))
    }
}
