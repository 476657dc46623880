//! How a connection to an extender is made, and whom it trusts.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{ConfigBuilderExt, FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use supercargo_client::{AnyCertificate, TrustedRoots};
use supercargo_config::{Bytes, Extender, ExtenderTlsConfig};

/// How long it may take until a connection stands; upstream's number.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Why an extender cannot be talked to as the configuration says.
#[derive(Debug, thiserror::Error)]
pub enum ExtenderConfigError {
    /// The server's certificate shall be checked, and not be checked.
    #[error(
        "extender {url:?}: specifying a root certificates file with the insecure flag is not allowed: remove \
         tlsConfig.insecure, or caFile and caData"
    )]
    InsecureWithRoots {
        /// The extender.
        url: String,
    },
    /// A file is not there, or cannot be read.
    #[error("extender {url:?}: cannot read tlsConfig.{field}File {path}: {reason}", path = path.display())]
    File {
        /// The extender.
        url: String,
        /// `ca`, `cert` or `key`.
        field: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// What is given is no certificate, key or name.
    #[error("extender {url:?}: cannot use tlsConfig.{field}: {reason}")]
    Unusable {
        /// The extender.
        url: String,
        /// Which field, or fields.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// Makes connections as upstream's `makeTransport` does (`pkg/scheduler/extender.go`, v1.36): whether TLS is spoken is
/// up to the address. `enableHTTPS` only says that without a certificate authority no certificate is checked; without
/// both, the system's authorities are trusted.
///
/// As upstream, a client certificate without a key, and a key without a certificate, are passed over.
pub(crate) fn connector(extender: &Extender) -> Result<HttpsConnector<HttpConnector>, ExtenderConfigError> {
    let none = ExtenderTlsConfig::default();
    let reader = Reader { url: &extender.url_prefix };
    let tls = extender.tls_config.as_ref().unwrap_or(&none);
    let has_roots = !tls.ca_file.is_empty() || !tls.ca_data.is_empty();
    let has_certificate = !tls.cert_file.is_empty() || !tls.cert_data.is_empty();
    let has_key = !tls.key_file.is_empty() || !tls.key_data.is_empty();
    let is_insecure = tls.insecure || (extender.enable_https && !has_roots);
    if is_insecure && has_roots {
        return Err(ExtenderConfigError::InsecureWithRoots { url: extender.url_prefix.clone() });
    }

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3");
    let builder = if is_insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else if has_roots {
        let roots = reader.certificates("caData", &reader.pem("ca", &tls.ca_data, &tls.ca_file)?)?;
        let verifier =
            TrustedRoots::new(roots, provider).map_err(|reason| reader.unusable("caData", &reason))?;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    } else if is_https(&extender.url_prefix) {
        // A system without authorities trusts nobody, which shows when a connection is made.
        let trusts_nobody = builder.clone().with_root_certificates(RootCertStore::empty());
        builder.with_native_roots().unwrap_or(trusts_nobody)
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    let config = if has_certificate && has_key {
        let (certificates, key) = reader.identity(tls)?;
        builder
            .with_client_auth_cert(certificates, key)
            .map_err(|error| reader.unusable("certData and keyData", &error))?
    } else {
        builder.with_no_client_auth()
    };

    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let mut https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    if !tls.server_name.is_empty() {
        let name = ServerName::try_from(tls.server_name.clone())
            .map_err(|error| reader.unusable("serverName", &error))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(https.enable_http1().wrap_connector(http))
}

fn is_https(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

/// Reads what a configuration gives, or names the file of.
struct Reader<'a> {
    url: &'a str,
}

impl Reader<'_> {
    fn identity(
        &self,
        tls: &ExtenderTlsConfig,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ExtenderConfigError> {
        let pem = self.pem("cert", &tls.cert_data, &tls.cert_file)?;
        let certificates = self.certificates("certData", &pem)?;
        let pem = self.pem("key", &tls.key_data, &tls.key_file)?;
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| self.unusable("keyData", &error))?;
        Ok((certificates, key))
    }

    /// Data go before files.
    fn pem(&self, field: &'static str, data: &Bytes, file: &str) -> Result<Vec<u8>, ExtenderConfigError> {
        if !data.is_empty() {
            return Ok(data.0.clone());
        }
        fs::read(file).map_err(|error| ExtenderConfigError::File {
            url: self.url.to_owned(),
            field,
            path: file.into(),
            reason: error.to_string(),
        })
    }

    fn certificates(
        &self,
        field: &'static str,
        pem: &[u8],
    ) -> Result<Vec<CertificateDer<'static>>, ExtenderConfigError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match certificates {
            Ok(certificates) if certificates.is_empty() => {
                Err(self.unusable(field, &"there is no certificate in PEM format in it"))
            }
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(self.unusable(field, &error)),
        }
    }

    fn unusable(&self, field: &'static str, reason: &dyn std::fmt::Display) -> ExtenderConfigError {
        ExtenderConfigError::Unusable { url: self.url.to_owned(), field, reason: reason.to_string() }
    }
}
