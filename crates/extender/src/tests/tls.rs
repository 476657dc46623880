//! Whom the client trusts, and who it says it is.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use supercargo_config::{Bytes, Extender, ExtenderTlsConfig};
use supercargo_framework::ExtenderAnswer;

use super::{ask, bind, extender};
use crate::ExtenderClient;
use supercargo_client::loopback::{LoopbackServer, Play};

/// A certificate and its key.
struct Identity {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Identity {
    /// Signed by itself.
    fn own(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = params(names);
        change(&mut params);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("it can sign");
        Identity { certificate, key }
    }

    fn pem(&self) -> Bytes {
        Bytes(self.certificate.pem().into_bytes())
    }

    fn key_pem(&self) -> Bytes {
        Bytes(self.key.serialize_pem().into_bytes())
    }

    fn der(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).expect("it is a key");
        (self.certificate.der().clone(), key)
    }
}

/// Files that go when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("supercargo-extender-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("there is room for files");
        Folder(path)
    }

    fn file(&self, name: &str, content: &Bytes) -> String {
        let path = self.0.join(name);
        fs::write(&path, &content.0).expect("there is room for files");
        path.to_str().expect("its name is text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("these are names")
}

/// What `openssl req -x509` makes.
fn says_it_is_an_authority(params: &mut CertificateParams) {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
}

fn config(server: &Identity, authority_of_clients: Option<&Identity>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS");
    let builder = match authority_of_clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().0).expect("it is a certificate");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("there is an authority"))
        }
    };
    let (certificate, key) = server.der();
    builder.with_single_cert(vec![certificate], key).expect("the key belongs to the certificate")
}

async fn server_of(identity: &Identity) -> LoopbackServer {
    LoopbackServer::https(Play::ok("{}"), config(identity, None)).await
}

fn secure(server: &LoopbackServer, tls: ExtenderTlsConfig) -> Extender {
    Extender {
        enable_https: true,
        tls_config: Some(tls),
        ..extender(&format!("https://127.0.0.1:{}", server.port()))
    }
}

fn trusting(authority: &Identity) -> ExtenderTlsConfig {
    ExtenderTlsConfig { ca_data: authority.pem(), ..ExtenderTlsConfig::default() }
}

async fn check_refused(extender: &Extender, reason: &str) {
    let error = ask(extender, &bind()).await.expect_err("must not be trusted");
    let beginning = format!(r#"Post "{}/bind": "#, extender.url_prefix);
    assert!(error.starts_with(&beginning) && error.contains(reason), "{error}");
}

#[tokio::test]
async fn a_certificate_that_is_given_is_trusted() {
    let names = ["127.0.0.1", "localhost"];
    for identity in [Identity::own(&names, |_| {}), Identity::own(&names, says_it_is_an_authority)] {
        let server = server_of(&identity).await;
        let mut extender = secure(&server, trusting(&identity));
        assert_eq!(ask(&extender, &bind()).await, Ok(ExtenderAnswer::Bound));
        extender.url_prefix = format!("HTTPS://localhost:{}/", server.port());
        assert_eq!(ask(&extender, &bind()).await, Ok(ExtenderAnswer::Bound));
        extender.enable_https = false;
        assert_eq!(ask(&extender, &bind()).await, Ok(ExtenderAnswer::Bound));
        check_refused(&secure(&server, trusting(&Identity::own(&names, |_| {}))), "invalid peer certificate")
            .await;
    }
}

#[tokio::test]
async fn what_an_authority_has_signed_is_trusted() {
    let authority = Identity::own(&[], says_it_is_an_authority);
    let mut authority_params = params(&[]);
    says_it_is_an_authority(&mut authority_params);
    let key = KeyPair::generate().expect("keys can be made");
    let certificate = params(&["127.0.0.1"])
        .signed_by(&key, &Issuer::from_params(&authority_params, &authority.key))
        .expect("it can sign");
    let identity = Identity { certificate, key };
    let server = server_of(&identity).await;
    assert_eq!(ask(&secure(&server, trusting(&authority)), &bind()).await, Ok(ExtenderAnswer::Bound));
    let folder = Folder::new("authority");
    let tls = ExtenderTlsConfig { ca_file: folder.file("ca.pem", &authority.pem()), ..Default::default() };
    assert_eq!(ask(&secure(&server, tls), &bind()).await, Ok(ExtenderAnswer::Bound));
}

#[tokio::test]
async fn the_name_and_the_dates_count() {
    let authority: fn(&mut CertificateParams) = says_it_is_an_authority;
    for change in [|_: &mut CertificateParams| {}, authority] {
        let identity = Identity::own(&["extender.example"], change);
        let server = server_of(&identity).await;
        let trusting_name =
            |name: &str| ExtenderTlsConfig { server_name: name.to_owned(), ..trusting(&identity) };
        check_refused(&secure(&server, trusting(&identity)), "not valid for name").await;
        check_refused(&secure(&server, trusting_name("other.example")), "not valid for name").await;
        let named = secure(&server, trusting_name("extender.example"));
        assert_eq!(ask(&named, &bind()).await, Ok(ExtenderAnswer::Bound));

        let identity = Identity::own(&["127.0.0.1"], |params| {
            change(params);
            params.not_after = date_time_ymd(2000, 1, 1);
        });
        let server = server_of(&identity).await;
        check_refused(&secure(&server, trusting(&identity)), "expired").await;
    }
}

#[tokio::test]
async fn without_an_authority_enable_https_trusts_anyone() {
    let identity = Identity::own(&["else.example"], says_it_is_an_authority);
    let server = server_of(&identity).await;
    let mut extender = secure(&server, ExtenderTlsConfig::default());
    assert_eq!(ask(&extender, &bind()).await, Ok(ExtenderAnswer::Bound));
    extender.tls_config = None;
    assert_eq!(ask(&extender, &bind()).await, Ok(ExtenderAnswer::Bound));
    // Without `enableHTTPS` it is the system that says who is trusted.
    extender.enable_https = false;
    check_refused(&extender, "invalid peer certificate").await;
    extender.tls_config = Some(ExtenderTlsConfig { insecure: true, ..ExtenderTlsConfig::default() });
    assert_eq!(ask(&extender, &bind()).await, Ok(ExtenderAnswer::Bound));
    // And it is the address that says whether TLS is spoken.
    let plain = LoopbackServer::http(Play::ok("{}")).await;
    let extender = Extender { enable_https: true, ..super::extender(&plain.url()) };
    assert_eq!(ask(&extender, &bind()).await, Ok(ExtenderAnswer::Bound));
}

#[tokio::test]
async fn the_client_says_who_it_is() {
    let identity = Identity::own(&["127.0.0.1"], |_| {});
    let client = Identity::own(&["scheduler"], |_| {});
    let server = LoopbackServer::https(Play::ok("{}"), config(&identity, Some(&client))).await;
    let data =
        ExtenderTlsConfig { cert_data: client.pem(), key_data: client.key_pem(), ..trusting(&identity) };
    assert_eq!(ask(&secure(&server, data.clone()), &bind()).await, Ok(ExtenderAnswer::Bound));

    let folder = Folder::new("client");
    let files = ExtenderTlsConfig {
        cert_file: folder.file("cert.pem", &client.pem()),
        key_file: folder.file("key.pem", &client.key_pem()),
        ..ExtenderTlsConfig::default()
    };
    assert_eq!(ask(&secure(&server, files.clone()), &bind()).await, Ok(ExtenderAnswer::Bound));
    let data_and_files = ExtenderTlsConfig { cert_file: "/nowhere".to_owned(), ..data };
    assert_eq!(ask(&secure(&server, data_and_files), &bind()).await, Ok(ExtenderAnswer::Bound));

    // Half an identity is none.
    let half = ExtenderTlsConfig { key_file: String::new(), ..files };
    for tls in [trusting(&identity), half] {
        ask(&secure(&server, tls), &bind()).await.expect_err("the server wants to know who asks");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let identity = Identity::own(&["127.0.0.1"], |_| {});
    let other = Identity::own(&["127.0.0.1"], |_| {});
    let text = || Bytes(b"no PEM".to_vec());
    let broken = || Bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec());
    let none = ExtenderTlsConfig::default;
    let cases = [
        (
            ExtenderTlsConfig { insecure: true, ..trusting(&identity) },
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        (
            ExtenderTlsConfig { ca_file: "/nowhere".to_owned(), ..none() },
            "cannot read tlsConfig.caFile /nowhere: ",
        ),
        (
            ExtenderTlsConfig { ca_data: text(), ..none() },
            "cannot use tlsConfig.caData: there is no certificate",
        ),
        (ExtenderTlsConfig { ca_data: broken(), ..none() }, "cannot use tlsConfig.caData: "),
        (
            ExtenderTlsConfig { cert_data: identity.pem(), key_data: text(), ..none() },
            "cannot use tlsConfig.keyData: ",
        ),
        (
            ExtenderTlsConfig { cert_data: text(), key_data: identity.key_pem(), ..none() },
            "cannot use tlsConfig.certData: ",
        ),
        (
            ExtenderTlsConfig { cert_data: identity.pem(), key_data: other.key_pem(), ..none() },
            "cannot use tlsConfig.certData and keyData: ",
        ),
        (ExtenderTlsConfig { server_name: "a b".to_owned(), ..none() }, "cannot use tlsConfig.serverName: "),
    ];
    for (tls, reason) in cases {
        let extender = Extender { tls_config: Some(tls), ..extender("https://a") };
        let error = ExtenderClient::new(&extender).expect_err(reason).to_string();
        assert!(error.starts_with(&format!(r#"extender "https://a": {reason}"#)), "{error}");
    }
    ExtenderClient::new(&extender("https://a")).expect("needs no runtime until it asks");
}
