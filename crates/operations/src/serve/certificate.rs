//! The server's certificate, and the authority of its clients.

use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::time::Instant;

use crate::clock::{Clock, time_of_day};
use crate::flags::TlsVersion;

/// How often files are read again: a certificate lives for days, and its renewal may take a while to be felt.
const REREAD_PERIOD: Duration = Duration::from_secs(10);

/// What the pair of files in `--cert-dir` is called, as upstream calls it.
const PAIR_NAME: &str = "kube-scheduler";

/// Where the server's certificate comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CertificateSource {
    /// From these files, which are read again when they change.
    Files {
        /// The certificate, and its chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// From `kube-scheduler.crt` and `kube-scheduler.key` in this folder; a self-signed pair is put there if it has none.
    Folder(PathBuf),
    /// Self-signed and in memory: nobody can tell who we are, but nobody else can listen.
    #[default]
    SelfSigned,
}

/// Where the authority of client certificates comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientAuthority {
    /// There is none: certificates count for nothing.
    #[default]
    None,
    /// From this file, which is read again when it changes.
    File(PathBuf),
    /// This one, in PEM.
    Pem(String),
    /// The one that somebody follows, such as [`follow_client_authority`](super::follow_client_authority).
    Followed(FollowedAuthority),
}

/// An authority that can change, in PEM, or none. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct FollowedAuthority(Arc<Mutex<Option<String>>>);

impl FollowedAuthority {
    /// This one, until there is another.
    pub fn new(pem: Option<String>) -> Self {
        FollowedAuthority(Arc::new(Mutex::new(pem)))
    }

    /// It is this one from now on; false if it was already.
    pub(super) fn set(&self, pem: String) -> bool {
        let mut known = self.lock();
        let is_news = known.as_ref() != Some(&pem);
        *known = Some(pem);
        is_news
    }

    /// What it is now.
    pub fn get(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for FollowedAuthority {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for FollowedAuthority {}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TlsError {
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error("{what}: {error}")]
    Pem { what: &'static str, error: String },
    #[error("a self-signed certificate could not be made: {0}")]
    SelfSigned(String),
    #[error("certificate and key: {0}")]
    Pair(String),
}

/// How TLS is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The lowest version.
    pub version_min: TlsVersion,
    /// The cipher suites of TLS 1.2 by their names; all that are known if there are none. Those of TLS 1.3 are always there.
    pub cipher_suites: Vec<String>,
}

/// The contents of all files.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<Vec<u8>>,
}

/// How to speak TLS, kept up to date.
pub(super) struct Tls {
    options: TlsOptions,
    source: CertificateSource,
    authority: ClientAuthority,
    contents: Contents,
    spoken: Spoken,
    read_at: Instant,
    /// By which the validity of client certificates is judged.
    pub(super) clock: Clock,
}

/// What is made of the contents of all files.
struct Spoken {
    config: Arc<ServerConfig>,
    /// Verifies client certificates, if there is an authority.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl Tls {
    pub(super) fn new(
        source: CertificateSource,
        authority: ClientAuthority,
        options: TlsOptions,
        address: IpAddr,
    ) -> Result<Self, TlsError> {
        let (source, pair) = match source {
            CertificateSource::SelfSigned => (CertificateSource::SelfSigned, Some(self_signed(address)?)),
            CertificateSource::Folder(folder) => {
                let certificate = folder.join(format!("{PAIR_NAME}.crt"));
                let key = folder.join(format!("{PAIR_NAME}.key"));
                if !certificate.exists() && !key.exists() {
                    save(&folder, &certificate, &key, &self_signed(address)?)?;
                }
                (CertificateSource::Files { certificate, key }, None)
            }
            files @ CertificateSource::Files { .. } => (files, None),
        };
        let contents = read(&source, &authority, pair)?;
        let spoken = configure(&contents, &options)?;
        let read_at = Instant::now();
        Ok(Tls { options, source, authority, contents, spoken, read_at, clock: time_of_day })
    }

    /// How to speak TLS now.
    pub(super) fn config(&mut self) -> Arc<ServerConfig> {
        self.refresh();
        Arc::clone(&self.spoken.config)
    }

    /// Whether the authority of now still signs for a client's certificate at this time of day. A connection may be older than the
    /// authority, and may outlive the certificate.
    pub(super) fn verify(&mut self, chain: &[CertificateDer<'_>]) -> Result<(), String> {
        self.refresh();
        let Some(verifier) = &self.spoken.verifier else {
            return Err("there is no authority of client certificates any more".to_owned());
        };
        let Some((certificate, intermediates)) = chain.split_first() else {
            return Err("there is no client certificate".to_owned());
        };
        let seconds = (self.clock)().as_second().try_into().unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let verified = verifier.verify_client_cert(certificate, intermediates, now);
        verified.map(|_| ()).map_err(|error| format!("the client certificate is not good any more: {error}"))
    }

    /// Reads all files again, now and then. New files that are not good are passed over, and the old ones go on: a certificate and its
    /// key do not change in the same moment.
    fn refresh(&mut self) {
        let now = Instant::now();
        if now >= self.read_at + REREAD_PERIOD {
            self.read_at = now;
            if let Err(error) = self.reread() {
                tracing::warn!(err = %error, "Certificates cannot be read again: the old ones stay");
            }
        }
    }

    fn reread(&mut self) -> Result<(), TlsError> {
        let pair = (self.contents.certificate.clone(), self.contents.key.clone());
        let contents = read(&self.source, &self.authority, Some(pair))?;
        if contents != self.contents {
            self.spoken = configure(&contents, &self.options)?;
            self.contents = contents;
            tracing::info!("Certificates have changed");
        }
        Ok(())
    }
}

fn read(
    source: &CertificateSource,
    authority: &ClientAuthority,
    pair: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<Contents, TlsError> {
    let (certificate, key) = match source {
        CertificateSource::Files { certificate, key } => (file(certificate)?, file(key)?),
        // A folder has become files, and a pair in memory stays what it is.
        _ => pair.unwrap_or_default(),
    };
    let authority = match authority {
        ClientAuthority::None => None,
        ClientAuthority::File(path) => Some(file(path)?),
        ClientAuthority::Pem(text) => Some(text.clone().into_bytes()),
        ClientAuthority::Followed(followed) => followed.get().map(String::into_bytes),
    };
    Ok(Contents { certificate, key, authority })
}

fn file(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| TlsError::File { path: path.display().to_string(), error })
}

fn configure(contents: &Contents, options: &TlsOptions) -> Result<Spoken, TlsError> {
    let pem = |what: &'static str| {
        move |error: rustls::pki_types::pem::Error| TlsError::Pem { what, error: error.to_string() }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&contents.certificate)
        .collect::<Result<_, _>>()
        .map_err(pem("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(pem("private key"))?;
    let provider = provider(&options.cipher_suites);
    let speaks_tls12 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
    let versions: &[&SupportedProtocolVersion] = match options.version_min {
        TlsVersion::Tls12 if speaks_tls12 => &[&TLS12, &TLS13],
        _ => &[&TLS13],
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| TlsError::Pair(error.to_string()))?;
    let verifier = match &contents.authority {
        None => None,
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(authority) {
                let certificate = certificate.map_err(pem("client authority"))?;
                roots
                    .add(certificate)
                    .map_err(|error| TlsError::Pem { what: "client authority", error: error.to_string() })?;
            }
            let verifier: Arc<dyn ClientCertVerifier> =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| TlsError::Pem { what: "client authority", error: error.to_string() })?;
            Some(verifier)
        }
    };
    let builder = match &verifier {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
    };
    let mut config =
        builder.with_single_cert(chain, key).map_err(|error| TlsError::Pair(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Neither kubelets nor Prometheus resume sessions; remembering those that nobody resumes costs memory for each handshake.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Spoken { config: Arc::new(config), verifier })
}

/// What to encrypt with. Of TLS 1.2 only what is named, if anything is.
fn provider(names: &[String]) -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    if !names.is_empty() {
        provider.cipher_suites.retain(|suite| {
            suite.tls13().is_some() || names.iter().any(|name| is_named(suite.suite(), name))
        });
    }
    Arc::new(provider)
}

/// Go calls some suites by a shorter name than everybody else.
fn is_named(suite: CipherSuite, name: &str) -> bool {
    let known = format!("{suite:?}");
    known == name || known.strip_suffix("_SHA256") == Some(name)
}

/// A certificate and its key, in PEM.
fn self_signed(address: IpAddr) -> Result<(Vec<u8>, Vec<u8>), TlsError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    let pair =
        rcgen::generate_simple_self_signed(names).map_err(|error| TlsError::SelfSigned(error.to_string()))?;
    Ok((pair.cert.pem().into_bytes(), pair.signing_key.serialize_pem().into_bytes()))
}

fn save(folder: &Path, certificate: &Path, key: &Path, pair: &(Vec<u8>, Vec<u8>)) -> Result<(), TlsError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| TlsError::File { path, error }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    fs::write(certificate, &pair.0).map_err(failed(certificate))?;
    let mut options = fs::OpenOptions::new();
    // Nobody but the owner may read a private key.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create_new(true).open(key).map_err(failed(key))?;
    file.write_all(&pair.1).map_err(failed(key))
}
