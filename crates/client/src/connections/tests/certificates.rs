//! Client certificates that change, and authorities that count.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::component::{ComponentOptions, for_component};
use crate::material::Pem;

/// Signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("it can sign");
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Authority { issuer: Issuer::new(params, key), pem, der }
    }

    fn sign(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("keys can be made");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        (params.signed_by(&key, &self.issuer).expect("it can sign"), key)
    }
}

/// A server that wants a client certificate, notes down which one each request came with, and refuses all that it is told to.
struct Verifying {
    url: String,
    seen: Arc<Mutex<Vec<CertificateDer<'static>>>>,
    refused: Arc<Mutex<Option<CertificateDer<'static>>>>,
}

impl Verifying {
    async fn start(authority: &Authority) -> Self {
        let (certificate, key) = authority.sign();
        let mut roots = RootCertStore::empty();
        roots.add(authority.der.clone()).expect("an authority");
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots));
        let verifier = verifier.allow_unauthenticated().build().expect("there is an authority");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("they belong together");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("https://localhost:{}", listener.local_addr().expect("it listens").port());
        let server = Verifying { url, seen: Arc::default(), refused: Arc::default() };
        let (seen, refused) = (server.seen.clone(), server.refused.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen, refused) = (acceptor.clone(), seen.clone(), refused.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                    let peer = chain.first().cloned().map(CertificateDer::into_owned);
                    let mut asked = vec![0; 4096];
                    while stream.read(&mut asked).await.is_ok_and(|length| length > 0) {
                        seen.lock().expect("no test panics here").extend(peer.clone());
                        let is_refused =
                            peer.is_some() && *refused.lock().expect("no test panics here") == peer;
                        let status = if is_refused { "401 Unauthorized" } else { "200 OK" };
                        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        server
    }

    fn last_seen(&self) -> Option<CertificateDer<'static>> {
        self.seen.lock().expect("no test panics here").last().cloned()
    }

    /// A client with these credentials.
    async fn client(&self, folder: &Path, authority: &Authority, user: serde_json::Value) -> ApiServer {
        let file = folder.join("authority");
        std::fs::write(&file, &authority.pem).expect("written");
        let text = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": { "server": self.url, "certificate-authority": file } }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
            "users": [{ "name": "u", "user": user }],
        });
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, text.to_string()).expect("written");
        let options = ConnectOptions { kubeconfig: Some(kubeconfig), ..ConnectOptions::default() };
        ApiServer::connect(&options).await.expect("the credentials are good")
    }

    /// Makes requests until one comes with this certificate; false if none does.
    async fn sees(&self, client: &ApiServer, expected: &rcgen::Certificate) -> bool {
        for _ in 0..100 {
            // A certificate that is refused is asked for once more.
            let _ = client.get("/").await;
            if self.last_seen().as_ref() == Some(expected.der()) {
                return true;
            }
            sleep(Duration::from_millis(20)).await;
        }
        false
    }
}

#[tokio::test]
async fn a_client_certificate_that_was_renewed_is_used_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let authority = Authority::new();
    let server = Verifying::start(&authority).await;
    let (certificate_file, key_file) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let write = |(certificate, key): &(rcgen::Certificate, KeyPair)| {
        std::fs::write(&certificate_file, certificate.pem()).expect("written");
        std::fs::write(&key_file, key.serialize_pem()).expect("written");
    };
    let (first, second) = (authority.sign(), authority.sign());
    write(&first);
    let user = serde_json::json!({ "client-certificate": certificate_file, "client-key": key_file });
    let client = server.client(folder.path(), &authority, user).await;
    assert!(server.sees(&client, &first.0).await);
    // A key without its certificate is no identity: the old one stays.
    std::fs::write(&key_file, second.1.serialize_pem()).expect("written");
    expire(&client);
    for _ in 0..5 {
        client.get("/").await.expect("the old one is still good");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.last_seen().as_ref(), Some(first.0.der()));
    write(&second);
    expire(&client);
    assert!(server.sees(&client, &second.0).await, "the connections that there were are not used any more");
}

/// The files are looked at with the next request.
fn expire(client: &ApiServer) {
    let connections = client.connections().expect("it is a real one");
    connections.state().files_seen = Instant::now().checked_sub(FILES_INTERVAL).expect("time has passed");
}

#[tokio::test]
async fn a_plugin_is_asked_for_another_certificate_after_its_own_was_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let authority = Authority::new();
    let server = Verifying::start(&authority).await;
    let said = folder.path().join("said");
    let write = |(certificate, key): &(rcgen::Certificate, KeyPair)| {
        let status = serde_json::json!({
            "clientCertificateData": certificate.pem(), "clientKeyData": key.serialize_pem(),
        });
        let credential = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
        });
        std::fs::write(&said, credential.to_string()).expect("written");
    };
    let (first, second) = (authority.sign(), authority.sign());
    write(&first);
    let user = serde_json::json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [said],
        "interactiveMode": "Never",
    } });
    let client = server.client(folder.path(), &authority, user).await;
    assert!(server.sees(&client, &first.0).await);
    write(&second);
    client.get("/").await.expect("the first is still good");
    assert_eq!(server.last_seen().as_ref(), Some(first.0.der()), "there was no reason to ask");
    *server.refused.lock().expect("no test panics here") = Some(first.0.der().clone());
    assert!(server.sees(&client, &second.0).await);
}

#[tokio::test]
async fn the_authority_of_a_scheduler_goes_before_that_of_the_pod() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (pods, schedulers) = (Authority::new(), Authority::new());
    let server = Verifying::start(&schedulers).await;
    let file = |name: &str, authority: &Authority| {
        let path = folder.path().join(name);
        std::fs::write(&path, &authority.pem).expect("written");
        path
    };
    // What a pod of a cluster has.
    let mut pod = Target::address("https://10.0.0.1".parse().expect("an address"));
    pod.authority = crate::material::Authority::These(Pem::File(file("pods.crt", &pods)));
    let connect = |target: Target| {
        ApiServer::of_target(target, &ConnectOptions::default()).expect("nothing is sent yet")
    };
    for (authority, is_believed) in [(Some(file("schedulers.crt", &schedulers)), true), (None, false)] {
        let component =
            ComponentOptions { url: server.url.clone(), authority, accepts_any_certificate: false };
        let target = for_component(pod.clone(), &component).expect("the options are good");
        let answer = connect(target).get("/").await;
        assert_eq!(answer.is_ok(), is_believed, "{answer:?}");
    }
    let component =
        ComponentOptions { url: server.url.clone(), authority: None, accepts_any_certificate: true };
    let target = for_component(pod, &component).expect("the options are good");
    connect(target).get("/").await.expect("all are believed");
}
