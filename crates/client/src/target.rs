//! A server and how to talk to it, put together from a kubeconfig, from an address, or from what a pod has.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use http::Uri;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use supercargo_model::Timestamp;

use crate::clock::Clock;
use crate::environment::Environment;
use crate::kubeconfig::{Choice, Entry, Fault, Kubeconfig};
use crate::material::{Authority, IdentitySource, Material, Pem, basic, bearer, decode};
use crate::plugin::{Plugin, Recipe};
use crate::words::{AuthProviderWords, ClusterWords, ExecWords, UserWords};

/// The extension of a cluster that a credential plugin gets to see.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";
/// The namespace of a context that names none.
const DEFAULT_NAMESPACE: &str = "default";
/// An id-token that ends sooner than this is not used any more; client-go's number.
const TOKEN_LEEWAY_SECONDS: i64 = 10;

/// A server and how to talk to it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) server: Uri,
    pub(crate) namespace: String,
    pub(crate) authority: Authority,
    /// The name that the server's certificate has to have, if not that of its address.
    pub(crate) server_name: Option<String>,
    /// The proxy that the kubeconfig names.
    pub(crate) proxy: Option<Uri>,
    pub(crate) identity: Option<IdentitySource>,
    pub(crate) authorization: Authorization,
    /// Who the requests are made as.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) who: Who,
}

/// What the requests are authorized with.
#[derive(Clone)]
pub(crate) enum Authorization {
    /// Nothing, or the client certificate.
    None,
    /// A token or a password.
    Fixed(HeaderValue),
    /// A token in a file, which is read again and again; before it could be read, the token beside it.
    File { path: PathBuf, token: Option<HeaderValue> },
    /// Whatever a plugin says.
    Plugin(Arc<Plugin>),
}

/// As whom the server is talked to, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Nobody in particular.
    Nobody,
    /// The service account of the pod.
    Pod,
    /// The user of a kubeconfig.
    User { user: String, context: String, file: PathBuf },
}

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Nobody => formatter.write_str("no credentials"),
            Who::Pod => formatter.write_str("the token of the pod's service account"),
            Who::User { user, context, file } => {
                write!(formatter, "the user {user:?} of the context {context:?} in {}", file.display())
            }
        }
    }
}

impl Target {
    /// An address, and nothing else.
    pub(crate) fn address(server: Uri) -> Self {
        Target {
            server,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            authority: Authority::System,
            server_name: None,
            proxy: None,
            identity: None,
            authorization: Authorization::None,
            headers: Vec::new(),
            who: Who::Nobody,
        }
    }

    /// The cluster that this process is a pod of; an error says why it is none.
    pub(crate) fn of_pod(environment: &Environment) -> Result<Self, String> {
        let (Some(host), Some(port)) = (&environment.service_host, &environment.service_port) else {
            return Err("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set".to_owned());
        };
        let folder = &environment.service_account;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let server = format!("https://{host}:{port}");
        let server = server.parse().map_err(|_| format!("{server} is no address"))?;
        let token = folder.join("token");
        read_token(&token)?;
        let authority = folder.join("ca.crt");
        let namespace = std::fs::read_to_string(folder.join("namespace")).unwrap_or_default();
        let namespace = match namespace.trim() {
            "" => DEFAULT_NAMESPACE.to_owned(),
            namespace => namespace.to_owned(),
        };
        let authority =
            if authority.exists() { Authority::These(Pem::File(authority)) } else { Authority::System };
        let authorization = Authorization::File { path: token, token: None };
        Ok(Target { namespace, authority, authorization, who: Who::Pod, ..Target::address(server) })
    }

    /// What a context of a kubeconfig names.
    pub(crate) fn of_context(kubeconfig: &Kubeconfig, context: Option<&str>) -> Result<Self, Fault> {
        let choice = kubeconfig.choose(context)?;
        let mut target = of_cluster(&choice)?;
        if !choice.context.words.namespace.is_empty() {
            target.namespace.clone_from(&choice.context.words.namespace);
        }
        if let Some(user) = choice.user {
            authenticate(&mut target, choice.cluster, user).map_err(|reason| Fault {
                file: user.file.clone(),
                reason: format!("the user {:?}: {reason}", choice.context.words.user),
            })?;
            target.who = Who::User {
                user: choice.context.words.user.clone(),
                context: choice.name.to_owned(),
                file: user.file.clone(),
            };
        }
        Ok(target)
    }

    /// Reads what connections are secured with, but for what a plugin says.
    pub(crate) fn material(&self) -> Result<Material, String> {
        let authority = match &self.authority {
            Authority::These(pem) => {
                Some(pem.read().map_err(|reason| format!("certificate-authority: {reason}"))?)
            }
            Authority::System | Authority::Anybody => None,
        };
        let identity = self.identity.as_ref().map(IdentitySource::read).transpose();
        Ok(Material {
            authority,
            identity: identity.map_err(|reason| format!("client certificate: {reason}"))?,
        })
    }

    /// Whether any of that is in a file, and may change.
    pub(crate) fn has_files(&self) -> bool {
        let identity = self.identity.as_ref();
        matches!(&self.authority, Authority::These(pem) if pem.is_file())
            || identity.is_some_and(|identity| identity.certificate.is_file() || identity.key.is_file())
    }
}

/// Reads a token from a file.
pub(crate) fn read_token(path: &Path) -> Result<HeaderValue, String> {
    let failed = |reason: String| format!("the token in {}: {reason}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    match text.trim() {
        "" => Err(failed("the file is empty".to_owned())),
        token => bearer(token).map_err(failed),
    }
}

fn of_cluster(choice: &Choice<'_>) -> Result<Target, Fault> {
    let (entry, name) = (choice.cluster, &choice.context.words.cluster);
    let failed = |reason: String| Fault {
        file: entry.file.clone(),
        reason: format!("the cluster {name:?}: {reason}"),
    };
    let words = &entry.words;
    if words.server.is_empty() {
        return Err(failed("server is missing".to_owned()));
    }
    let server = address(&words.server).map_err(|reason| failed(format!("server: {reason}")))?;
    let has_authority =
        !words.certificate_authority.is_empty() || !words.certificate_authority_data.is_empty();
    if words.insecure_skip_tls_verify && has_authority {
        let reason = "insecure-skip-tls-verify and certificate-authority exclude each other: leave one out";
        return Err(failed(reason.to_owned()));
    }
    let authority = pem(
        entry,
        (&words.certificate_authority_data, "certificate-authority-data"),
        &words.certificate_authority,
    );
    let authority = match authority.map_err(failed)? {
        Some(pem) => Authority::These(pem),
        None if words.insecure_skip_tls_verify => Authority::Anybody,
        None => Authority::System,
    };
    let proxy = match &*words.proxy_url {
        "" => None,
        url => Some(url.parse().map_err(|_| failed("proxy-url is no address".to_owned()))?),
    };
    let server_name = Some(words.tls_server_name.clone()).filter(|name| !name.is_empty());
    Ok(Target { authority, proxy, server_name, ..Target::address(server) })
}

/// An address of an API server, as client-go reads it: without a scheme, `http://` is meant.
pub(crate) fn address(text: &str) -> Result<Uri, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = whole.parse().map_err(|error: http::uri::InvalidUri| format!("{text:?}: {error}"))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some() => Ok(uri),
        _ => Err(format!("{text:?} has to begin with http:// or https://")),
    }
}

/// PEM from a kubeconfig itself, which goes first, or from a file that it names.
fn pem<T>(entry: &Entry<T>, (data, field): (&str, &str), file: &str) -> Result<Option<Pem>, String> {
    if !data.is_empty() {
        let decoded = decode(data).map_err(|reason| format!("{field}: {reason}"))?;
        return Ok(Some(Pem::Data(decoded.into())));
    }
    Ok((!file.is_empty()).then(|| Pem::File(entry.path(file))))
}

/// Finds out how a user is authenticated, in client-go's order.
fn authenticate(
    target: &mut Target,
    cluster: &Entry<ClusterWords>,
    user: &Entry<UserWords>,
) -> Result<(), String> {
    let words = &user.words;
    target.headers = impersonation(words)?;
    let certificate =
        pem(user, (&words.client_certificate_data, "client-certificate-data"), &words.client_certificate)?;
    let key = pem(user, (&words.client_key_data, "client-key-data"), &words.client_key)?;
    target.identity = match (certificate, key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(IdentitySource { certificate, key }),
        (Some(_), None) => return Err("client-certificate has no client-key beside it".to_owned()),
        (None, Some(_)) => return Err("client-key has no client-certificate beside it".to_owned()),
    };
    let has_token = !words.token.is_empty() || !words.token_file.is_empty();
    let has_password = !words.username.is_empty() || !words.password.is_empty();
    if has_token && has_password {
        return Err("a token and a password exclude each other: leave one out".to_owned());
    }
    if words.exec.is_some() && words.auth_provider.is_some() {
        return Err("exec and auth-provider exclude each other: leave one out".to_owned());
    }
    target.authorization = if !words.token_file.is_empty() {
        let path = user.path(&words.token_file);
        let token = Some(&words.token).filter(|token| !token.is_empty()).map(|token| bearer(token));
        let token = token.transpose().map_err(|reason| format!("token: {reason}"))?;
        if token.is_none() {
            read_token(&path)?;
        }
        Authorization::File { path, token }
    } else if !words.token.is_empty() {
        Authorization::Fixed(bearer(&words.token).map_err(|reason| format!("token: {reason}"))?)
    } else if has_password {
        let header = basic(&words.username, &words.password);
        Authorization::Fixed(header.map_err(|reason| format!("username and password: {reason}"))?)
    } else if let Some(exec) = &words.exec {
        let program =
            if exec.command.contains('/') { user.path(&exec.command) } else { exec.command.clone().into() };
        Authorization::Plugin(Plugin::shared(Recipe::new(
            exec.clone(),
            program,
            cluster_information(exec, cluster)?,
        )?))
    } else if let Some(provider) = &words.auth_provider {
        Authorization::Fixed(id_token(provider, Clock::system().now())?)
    } else {
        Authorization::None
    };
    Ok(())
}

/// What a plugin is told about the cluster, if the kubeconfig says that it is.
fn cluster_information(exec: &ExecWords, cluster: &Entry<ClusterWords>) -> Result<Option<Value>, String> {
    if !exec.provide_cluster_info {
        return Ok(None);
    }
    let words = &cluster.words;
    let authority = pem(
        cluster,
        (&words.certificate_authority_data, "certificate-authority-data"),
        &words.certificate_authority,
    )?;
    let authority = authority.map(|pem| pem.read()).transpose()?;
    let mut information = json!({ "server": words.server });
    let mut add = |name: &str, value: Value| information[name] = value;
    if !words.tls_server_name.is_empty() {
        add("tls-server-name", words.tls_server_name.clone().into());
    }
    if words.insecure_skip_tls_verify {
        add("insecure-skip-tls-verify", true.into());
    }
    if let Some(authority) = authority {
        add("certificate-authority-data", BASE64_STANDARD.encode(authority).into());
    }
    if !words.proxy_url.is_empty() {
        add("proxy-url", words.proxy_url.clone().into());
    }
    if words.disable_compression {
        add("disable-compression", true.into());
    }
    if let Some(extension) = words.extensions.iter().find(|extension| extension.name == EXEC_EXTENSION) {
        add("config", extension.extension.clone());
    }
    Ok(Some(information))
}

/// The token of an `auth-provider`. Getting another one is the business of a credential plugin.
fn id_token(provider: &AuthProviderWords, now: Timestamp) -> Result<HeaderValue, String> {
    let instead = "use a credential plugin (exec) instead, such as kubelogin";
    let name = &provider.name;
    if name != "oidc" {
        return Err(format!("the auth-provider {name:?} is not supported; {instead}"));
    }
    let Some(token) = provider.config.get("id-token").filter(|token| !token.is_empty()) else {
        return Err(format!("the auth-provider oidc has no id-token; log in again, or {instead}"));
    };
    let Some(expires) = expiry(token) else {
        return Err(format!("the id-token of the auth-provider oidc does not say when it ends; {instead}"));
    };
    if expires.saturating_sub(TOKEN_LEEWAY_SECONDS) <= now.seconds() {
        return Err(format!(
            "the id-token of the auth-provider oidc has expired; kubectl renews it, or log in again, or {instead}"
        ));
    }
    bearer(token).map_err(|reason| format!("id-token: {reason}"))
}

/// When a JSON Web Token ends, in seconds.
fn expiry(token: &str) -> Option<i64> {
    let claims = token.split('.').nth(1)?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["exp"].as_i64()
}

/// The headers that ask the server to take requests for another user's.
fn impersonation(words: &UserWords) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let UserWords { r#as, as_uid, as_groups, as_user_extra, .. } = words;
    if r#as.is_empty() {
        return match as_uid.is_empty() && as_groups.is_empty() && as_user_extra.is_empty() {
            true => Ok(Vec::new()),
            false => Err("as-uid, as-groups and as-user-extra need as: whom to be taken for".to_owned()),
        };
    }
    let value = |field: &str, text: &str| {
        HeaderValue::from_str(text).map_err(|_| format!("{field} has characters that no header can have"))
    };
    let mut headers = vec![(HeaderName::from_static("impersonate-user"), value("as", r#as)?)];
    if !as_uid.is_empty() {
        headers.push((HeaderName::from_static("impersonate-uid"), value("as-uid", as_uid)?));
    }
    for group in as_groups {
        headers.push((HeaderName::from_static("impersonate-group"), value("as-groups", group)?));
    }
    for (key, values) in as_user_extra {
        let name = format!("impersonate-extra-{}", escaped(key));
        let name = HeaderName::try_from(name).map_err(|_| format!("as-user-extra: {key:?} is no name"))?;
        for text in values {
            headers.push((name.clone(), value("as-user-extra", text)?));
        }
    }
    Ok(headers)
}

/// A key in the name of a header: what no name can have is written as in addresses.
fn escaped(key: &str) -> String {
    let mut name = String::new();
    for byte in key.bytes() {
        let is_legal = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        if is_legal {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name.to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
