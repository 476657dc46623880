//! A service for whoever can reach it, or has a certificate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::serve::{Check, OpenServer, OpenTls, Routes};

/// An authority, and what it signs for.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("signed").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate and its key.
    fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        (params.signed_by(&key, &self.issuer).expect("signed").pem(), key.serialize_pem())
    }
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("it is written");
    path
}

fn start(tls: Option<OpenTls>) -> SocketAddr {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = OpenServer::listen(address, tls).expect("it listens");
    let address = server.address();
    let routes = Routes::new()
        .health("/healthz", vec![Check::ping()])
        .page("/asked", "text/plain", || "answered".to_owned());
    tokio::spawn(server.run(routes, std::future::pending()));
    address
}

/// Two requests on one connection; status and body of the last.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> (u16, String) {
    let request = |close: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{close}\r\n");
    stream
        .write_all((request("") + &request("Connection: close\r\n")).as_bytes())
        .await
        .expect("it is taken");
    let mut answer = Vec::new();
    // An end without a word of TLS is one all the same.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("text");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
    let last = answer.rsplit("HTTP/1.1 ").next().unwrap_or_default();
    let (head, body) = last.split_once("\r\n\r\n").unwrap_or((last, ""));
    (head[..3].parse().expect("a status"), body.to_owned())
}

#[tokio::test]
async fn whoever_reaches_it_is_answered_and_connections_stay() {
    let address = start(None);
    let connect = || async { TcpStream::connect(address).await.expect("it listens") };
    assert_eq!(ask(connect().await, "/asked").await, (200, "answered".to_owned()));
    assert_eq!(ask(connect().await, "/healthz").await, (200, "ok".to_owned()));
    assert_eq!(ask(connect().await, "/elsewhere").await.0, 404);
}

#[tokio::test]
async fn with_an_authority_only_probes_need_no_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.sign();
    let tls = |client_authority| OpenTls {
        certificate: file(folder.path(), "tls.crt", &certificate),
        key: file(folder.path(), "tls.key", &key),
        client_authority,
    };
    let open = start(Some(tls(None)));
    let closed = start(Some(tls(Some(file(folder.path(), "ca.crt", &authority.pem)))));
    let connect = |address, identity: Option<(String, String)>| {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("PEM")).expect("a root");
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM"),
                )
                .expect("a pair"),
        };
        let connector = TlsConnector::from(Arc::new(config));
        async move {
            let stream = TcpStream::connect(address).await.expect("it listens");
            connector.connect(ServerName::try_from("localhost").expect("a name"), stream).await
        }
    };
    let answered = (200, "answered".to_owned());
    assert_eq!(ask(connect(open, None).await.expect("TLS"), "/asked").await, answered);
    let known = connect(closed, Some(authority.sign())).await.expect("TLS");
    assert_eq!(ask(known, "/asked").await, answered);
    assert_eq!(ask(connect(closed, None).await.expect("TLS"), "/healthz").await, (200, "ok".to_owned()));
    let (status, words) = ask(connect(closed, None).await.expect("TLS"), "/asked").await;
    assert!(status == 401 && words.contains("a certificate is needed"), "{status} {words}");
    // A client learns with its first answer, which does not come, that its certificate is not good.
    if let Ok(mut stream) = connect(closed, Some(stranger.sign())).await {
        let _ = stream.write_all(b"GET /asked HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let mut answer = Vec::new();
        assert!(stream.read_to_end(&mut answer).await.is_err() && answer.is_empty());
    }
    let missing = OpenTls { key: folder.path().join("gone"), ..tls(None) };
    let error = OpenServer::listen(SocketAddr::from(([127, 0, 0, 1], 0)), Some(missing)).expect_err("no key");
    assert!(error.to_string().contains("gone"), "{error}");
}
