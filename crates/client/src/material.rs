//! What credentials are made of: tokens, certificates and keys, and the files that hold them. There are secrets in it, so that
//! nothing here can be printed.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;

/// PEM that stands in a kubeconfig, or in a file that is read again when it changes.
#[derive(Clone)]
pub(crate) enum Pem {
    Data(Arc<[u8]>),
    File(PathBuf),
}

/// Whom to believe that it is the server.
#[derive(Clone)]
pub(crate) enum Authority {
    /// Whom the machine believes.
    System,
    /// Whom these certificates vouch for.
    These(Pem),
    /// Everybody, as `insecure-skip-tls-verify` asks for.
    Anybody,
}

/// A client certificate with its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// Where a client certificate and its key are.
#[derive(Clone)]
pub(crate) struct IdentitySource {
    pub(crate) certificate: Pem,
    pub(crate) key: Pem,
}

/// What connections are secured with, as it was read.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Material {
    /// The certificates of the authority; none for those of the machine.
    pub(crate) authority: Option<Vec<u8>>,
    pub(crate) identity: Option<Identity>,
}

impl Pem {
    pub(crate) fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Pem::Data(data) => Ok(data.to_vec()),
            Pem::File(path) => {
                std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
            }
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Pem::File(_))
    }
}

impl IdentitySource {
    pub(crate) fn read(&self) -> Result<Identity, String> {
        Ok(Identity { certificate: self.certificate.read()?, key: self.key.read()? })
    }
}

/// The header for a token.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue, String> {
    header(&format!("Bearer {}", token.trim()))
}

/// The header for a name and a password.
pub(crate) fn basic(username: &str, password: &str) -> Result<HeaderValue, String> {
    header(&format!("Basic {}", BASE64_STANDARD.encode(format!("{username}:{password}"))))
}

fn header(text: &str) -> Result<HeaderValue, String> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| "it has characters that no header can have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// What stands in a kubeconfig as base64, in which line ends do not count.
pub(crate) fn decode(data: &str) -> Result<Vec<u8>, String> {
    let dense: String = data.chars().filter(|character| !character.is_whitespace()).collect();
    BASE64_STANDARD.decode(dense).map_err(|_| "it is not base64".to_owned())
}
