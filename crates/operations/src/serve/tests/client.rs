//! Certificates for tests, and a client that believes everybody.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An authority, and what it signs.
pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key).expect("a certificate").pem();
        Authority { pem, issuer: Issuer::new(parameters, key) }
    }

    /// A certificate for this user of these groups, and its key.
    pub(super) fn sign(&self, user: &str, groups: &[&str]) -> (Vec<u8>, Vec<u8>) {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(vec!["client".to_owned()]).expect("a good name");
        for group in groups {
            parameters.distinguished_name.push(DnType::OrganizationName, *group);
        }
        parameters.distinguished_name.push(DnType::CommonName, user);
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.der().to_vec(), key.serialize_der())
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

/// Reads a page.
pub(super) async fn get(
    address: SocketAddr,
    path: &str,
    headers: &str,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
) -> std::io::Result<Reply> {
    send(address, "GET", path, &format!("{headers}\r\n"), certificate).await
}

/// Sends a request, whose last headers and body are `rest`, and reads the answer.
pub(super) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    rest: &str,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
) -> std::io::Result<Reply> {
    let mut stream = connect(address, certificate).await?;
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{rest}");
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Ok(Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}

/// A connection with TLS agreed on.
pub(super) async fn connect(
    address: SocketAddr,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the versions are there")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(BelievesEverybody));
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key).expect("a key");
            builder.with_client_auth_cert(vec![certificate.into()], key).expect("they match")
        }
    };
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Sends a request on a connection that stays open, and reads the answer: its status, and its head and body.
pub(super) async fn ask(
    stream: &mut TlsStream<TcpStream>,
    path: &str,
    headers: &str,
) -> std::io::Result<(u16, String)> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.is_some_and(|length| length.parse() == Ok(body.len())) {
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
            return Ok((status, format!("{head}\n\n{body}")));
        }
    }
}

#[derive(Debug)]
struct BelievesEverybody;

impl ServerCertVerifier for BelievesEverybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}
