//! Whom a query trusts, and who it says it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use supercargo_framework::{Endpoint, HttpSource, QueryTls};
use supercargo_model::Timestamp;

use super::{NOW, nobody, query, words};
use crate::{Asker, FailureKind};
use supercargo_client::loopback::{LoopbackServer, Play};

/// An authority, and a certificate that it has signed.
struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).expect("no name is wrong");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("it can sign");
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    fn signed(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a good name");
        let key = KeyPair::generate().expect("keys can be made");
        (params.signed_by(&key, &self.issuer).expect("it can sign"), key)
    }
}

fn server(authority: &Authority, name: &str, clients: Option<&Authority>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            roots.add(clients.certificate.der().clone()).expect("it is a certificate");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("there is an authority"))
        }
    };
    let (certificate, key) = authority.signed(name);
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("it is a key");
    let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
    builder.with_single_cert(chain, key).expect("they belong together")
}

fn file(folder: &Path, name: &str, content: &str) -> Option<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("there is room for files");
    Some(path)
}

#[tokio::test]
async fn servers_are_trusted_by_what_the_query_says() {
    let (authority, other) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().expect("there is room for files");
    let ca_file = file(folder.path(), "ca", &authority.certificate.pem());
    let other_file = file(folder.path(), "other", &other.certificate.pem());
    let junk = file(folder.path(), "junk", "junk");
    let none = QueryTls::default;
    let table = [
        ("localhost", QueryTls { ca_file: ca_file.clone(), ..none() }, Ok(())),
        ("localhost", QueryTls { insecure_skip_verify: true, ..none() }, Ok(())),
        ("localhost", none(), Err(FailureKind::Unreachable)),
        ("localhost", QueryTls { ca_file: other_file, ..none() }, Err(FailureKind::Unreachable)),
        ("elsewhere", QueryTls { ca_file: ca_file.clone(), ..none() }, Err(FailureKind::Unreachable)),
        ("elsewhere", QueryTls { ca_file, server_name: Some("elsewhere".to_owned()), ..none() }, Ok(())),
        ("localhost", QueryTls { ca_file: junk, ..none() }, Err(FailureKind::Credentials)),
        (
            "localhost",
            QueryTls { ca_file: Some("/no/such/file".into()), ..none() },
            Err(FailureKind::Credentials),
        ),
    ];
    for (name, tls, expected) in table {
        let server = LoopbackServer::https(Play::ok(r#"{"n1": 1}"#), server(&authority, name, None)).await;
        let endpoint = Endpoint::new(format!("https://localhost:{}", server.port())).tls(tls.clone());
        let found = words(&super::ask(query(HttpSource::get(endpoint))).await);
        assert_eq!(
            found.as_ref().map(|_| ()).map_err(|(kind, _)| *kind),
            expected,
            "{name} {tls:?}: {found:?}"
        );
    }
}

#[tokio::test]
async fn files_that_change_count_from_then_on() {
    let (authority, clients, others) = (Authority::new(), Authority::new(), Authority::new());
    let config = server(&authority, "localhost", Some(&clients));
    let server = LoopbackServer::https(Play::ok(r#"{"n1": 1}"#), config).await;
    let folder = tempfile::tempdir().expect("there is room for files");
    let write = |issuer: &Authority| {
        let (certificate, key) = issuer.signed("client");
        (file(folder.path(), "cert", &certificate.pem()), file(folder.path(), "key", &key.serialize_pem()))
    };
    let (cert_file, key_file) = write(&others);
    let ca_file = file(folder.path(), "ca", &authority.certificate.pem());
    let tls = QueryTls { ca_file, cert_file, key_file, ..QueryTls::default() };
    let endpoint = Endpoint::new(format!("https://localhost:{}", server.port())).tls(tls);
    let asker = Asker::new(query(HttpSource::get(endpoint)), &nobody());
    let now = || Timestamp::from_seconds(NOW);
    assert!(words(&asker.ask(now).await).is_err(), "the server does not know us");
    write(&clients);
    assert_eq!(words(&asker.ask(now).await), Ok("n1 1".to_owned()));
    assert_eq!(words(&asker.ask(now).await), Ok("n1 1".to_owned()));
    write(&others);
    assert!(words(&asker.ask(now).await).is_err(), "a connection of before would hide that");
}
