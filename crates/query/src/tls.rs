//! How a connection is made, and whom it trusts; the files that say so.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{ConfigBuilderExt as _, FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use supercargo_client::{AnyCertificate, TrustedRoots};
use supercargo_framework::Endpoint;

use crate::failure::{Failure, FailureKind};

/// How long it may take until a connection stands; a query may have less time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How large a file with a token, a key or certificates may be.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What files say about a server, and about us. There are secrets in it, so that it cannot be printed.
#[derive(Default)]
pub(crate) struct Material {
    pub(crate) token: Option<String>,
    authority: Option<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

impl Material {
    /// Reads the files, away from other tasks: a disk may be slow, or gone.
    pub(crate) async fn read(endpoint: &Endpoint) -> Result<Self, Failure> {
        let (token, tls) = (endpoint.bearer_token_file.clone(), endpoint.tls.clone());
        if token.is_none() && tls.ca_file.is_none() && tls.cert_file.is_none() && tls.key_file.is_none() {
            return Ok(Material::default());
        }
        let reading = tokio::task::spawn_blocking(move || {
            Ok(Material {
                token: read(token)?.map(|token| String::from_utf8_lossy(&token).trim().to_owned()),
                authority: read(tls.ca_file)?,
                certificate: read(tls.cert_file)?,
                key: read(tls.key_file)?,
            })
        });
        let material = reading.await.unwrap_or_else(|error| Err(error.to_string()));
        let material = material.and_then(|material: Material| match &material.token {
            Some(token) if token.is_empty() => Err("the file with the token is empty".to_owned()),
            _ => Ok(material),
        });
        material
            .map_err(|reason| Failure::new(FailureKind::Credentials, format!("{}: {reason}", endpoint.url)))
    }

    /// Whether connections that are secured by one need not be made anew for the other. Tokens are sent with each request.
    pub(crate) fn secures_as(&self, other: &Material) -> bool {
        (&self.authority, &self.certificate, &self.key) == (&other.authority, &other.certificate, &other.key)
    }
}

fn read(path: Option<PathBuf>) -> Result<Option<Vec<u8>>, String> {
    let Some(path) = path else { return Ok(None) };
    let content = read_file(&path).map_err(|reason| format!("cannot read {}: {reason}", path.display()))?;
    Ok(Some(content))
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    // To open a pipe would wait for somebody who writes into it.
    if !std::fs::metadata(path).map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    Ok(content)
}

/// What makes connections to a server; an error says what is wrong with the certificates.
pub(crate) fn connector(
    endpoint: &Endpoint,
    material: &Material,
) -> Result<HttpsConnector<HttpConnector>, String> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let mut https =
        HttpsConnectorBuilder::new().with_tls_config(configuration(endpoint, material)?).https_or_http();
    if let Some(name) = &endpoint.tls.server_name {
        let name =
            ServerName::try_from(name.clone()).map_err(|error| format!("serverName {name:?}: {error}"))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(https.enable_http1().wrap_connector(http))
}

fn configuration(endpoint: &Endpoint, material: &Material) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3");
    let builder = if endpoint.tls.insecure_skip_verify {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else if let Some(pem) = &material.authority {
        let roots = TrustedRoots::new(certificates("caFile", pem)?, provider);
        let roots = roots.map_err(|reason| format!("caFile: {reason}"))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(roots))
    } else if endpoint.is_https() {
        // A machine without authorities trusts nobody, which shows when a connection is made.
        let trusts_nobody = builder.clone().with_root_certificates(RootCertStore::empty());
        builder.with_native_roots().unwrap_or(trusts_nobody)
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    match (&material.certificate, &material.key) {
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("keyFile: {error}"))?;
            let identity = builder.with_client_auth_cert(certificates("certFile", certificate)?, key);
            identity.map_err(|error| format!("certFile and keyFile: {error}"))
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(field: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(format!("{field}: there is no certificate in it")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(format!("{field}: {error}")),
    }
}
