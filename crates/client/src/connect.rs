//! Finds the API server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::causes::with_causes;
use http::Uri;
use supercargo_config::ClientConnection;

use crate::environment::Environment;
use crate::kubeconfig::{Fault, Kubeconfig, NoKubeconfig};
use crate::limiter::RateLimit;
use crate::request::{ApiServer, SILENCE_MAX};
use crate::target::{self, Target};

/// Which API server to talk to, and how much.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The kubeconfig file, `--kubeconfig` or `clientConnection.kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; its current one if none is given.
    pub context: Option<String>,
    /// The address of the server, `--master`: goes before what the kubeconfig says.
    pub master: Option<String>,
    /// How many requests are made; none for as many as there are.
    pub limit: Option<RateLimit>,
    /// Where to look if neither a kubeconfig file nor an address is named.
    pub search: Search,
    /// How long the first byte of an answer may take.
    pub patience: Duration,
}

/// Where to look for a cluster that nobody has named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// The cluster that this process is a pod of, then the kubeconfig of the user (`$KUBECONFIG`, `~/.kube/config`): for commands
    /// that people type, and that write nothing.
    #[default]
    PodThenUser,
    /// The cluster that this process is a pod of, and no other: for a scheduler, which must not take over whatever cluster the
    /// shell that started it happens to point at.
    PodOnly,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            kubeconfig: None,
            context: None,
            master: None,
            limit: None,
            search: Search::default(),
            patience: SILENCE_MAX,
        }
    }
}

impl ConnectOptions {
    /// What a configuration and `--master` say, for a scheduler.
    pub fn new(connection: &ClientConnection, master: Option<String>) -> Self {
        let kubeconfig = Some(&connection.kubeconfig).filter(|path| !path.is_empty()).map(PathBuf::from);
        let limit = RateLimit::new(connection.qps, connection.burst);
        ConnectOptions { kubeconfig, master, limit, search: Search::PodOnly, ..ConnectOptions::default() }
    }
}

/// Why there is no API server to talk to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig file is not there, or is none.
    #[error("cannot use the kubeconfig {path}: {reason}; correct it, or name another with --kubeconfig", path = path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The context is one of the user's kubeconfig, which is not there.
    #[error("there is no context {context:?}: {reason}; name a kubeconfig with --kubeconfig")]
    Context {
        /// The context.
        context: String,
        /// Why there is none.
        reason: String,
    },
    /// The address is none.
    #[error(
        "--master {master:?} is not the address of an API server such as https://10.0.0.1:6443: {reason}"
    )]
    Master {
        /// The address.
        master: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing says where the API server is.
    #[error(
        "no API server is known: this is not a pod of a cluster ({in_cluster}), and there is no kubeconfig of the \
         user ({kubeconfig}); name one with --kubeconfig, or an address with --master"
    )]
    Nowhere {
        /// Why it is none.
        in_cluster: String,
        /// Why there is none.
        kubeconfig: String,
    },
    /// Nothing says where the API server is, and the kubeconfig of the user does not count. Begins as kube-scheduler's message does.
    #[error(
        "invalid configuration: no configuration has been provided: this is not a pod of a cluster ({in_cluster}); name a \
         cluster with --kubeconfig, with --master, or with clientConnection.kubeconfig in the file of --config ($KUBECONFIG and \
         ~/.kube/config are not used, so that no cluster is taken over by mistake)"
    )]
    Unnamed {
        /// Why it is none.
        in_cluster: String,
    },
    /// The address of another server is none.
    #[error("{url:?} is not the address of a scheduler such as https://10.0.0.1:10259: {reason}")]
    Component {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file with the certificates of an authority is not there, or is none.
    #[error("cannot use the certificate authority {path}: {reason}", path = path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The credentials or certificates that belong to the server cannot be used.
    #[error(
        "cannot set up a connection to {server}: {reason}; look at the certificates and credentials of the kubeconfig"
    )]
    Credentials {
        /// The server.
        server: String,
        /// What is wrong with them.
        reason: String,
    },
}

impl ApiServer {
    /// Gets ready to talk to the server. Whether it is there shows at the first request, which also runs a credential plugin if
    /// there is one.
    ///
    /// Found is, in this order: the kubeconfig file that is named, the address alone, the cluster that this process is a
    /// pod of, the kubeconfig of the user (`$KUBECONFIG`, `~/.kube/config`) if the search includes it. With a context, it is a
    /// kubeconfig's.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ConnectError> {
        let target = find(options, &Environment::of_process())?;
        ApiServer::of_target(target, options)
    }
}

pub(crate) fn find(options: &ConnectOptions, environment: &Environment) -> Result<Target, ConnectError> {
    let master = options.master.as_deref().filter(|master| !master.is_empty()).map(address).transpose()?;
    let kubeconfig = options.kubeconfig.as_deref().filter(|path| !path.as_os_str().is_empty());
    let context = options.context.as_deref();
    let mut target = match (kubeconfig, context, &master) {
        (Some(path), ..) => from_file(path, context)?,
        // Only the user's kubeconfig has contexts.
        (None, Some(context), _) => from_user(context, environment)?,
        (None, None, Some(master)) => Target::address(master.clone()),
        (None, None, None) => from_surroundings(options.search, environment)?,
    };
    if let Some(master) = master {
        target.server = master;
    }
    Ok(target)
}

fn from_file(path: &Path, context: Option<&str>) -> Result<Target, ConnectError> {
    Ok(Target::of_context(&Kubeconfig::from_file(path)?, context)?)
}

fn from_user(context: &str, environment: &Environment) -> Result<Target, ConnectError> {
    match Kubeconfig::of_user(environment) {
        Ok(kubeconfig) => Ok(Target::of_context(&kubeconfig, Some(context))?),
        Err(NoKubeconfig::Faulty(fault)) => Err(fault.into()),
        Err(NoKubeconfig::Missing(reason)) => {
            Err(ConnectError::Context { context: context.to_owned(), reason })
        }
    }
}

fn from_surroundings(search: Search, environment: &Environment) -> Result<Target, ConnectError> {
    let in_cluster = match Target::of_pod(environment) {
        Ok(target) => return Ok(target),
        Err(reason) => reason,
    };
    if search == Search::PodOnly {
        return Err(ConnectError::Unnamed { in_cluster });
    }
    match Kubeconfig::of_user(environment) {
        Ok(kubeconfig) => Ok(Target::of_context(&kubeconfig, None)?),
        Err(NoKubeconfig::Faulty(fault)) => Err(fault.into()),
        Err(NoKubeconfig::Missing(kubeconfig)) => Err(ConnectError::Nowhere { in_cluster, kubeconfig }),
    }
}

impl From<Fault> for ConnectError {
    fn from(Fault { file, reason }: Fault) -> Self {
        ConnectError::Kubeconfig { path: file, reason }
    }
}

fn address(master: &str) -> Result<Uri, ConnectError> {
    target::address(master).map_err(|reason| ConnectError::Master { master: master.to_owned(), reason })
}

/// An error with everything that caused it.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let text = with_causes(error);
    // rustls explains at length, with a link, that a server may close a connection just like that.
    match text.find("peer closed connection without sending TLS close_notify") {
        Some(start) => format!("{}the server closed the connection", &text[..start]),
        None => text,
    }
}

/// The name of this machine, which events and leases carry.
pub fn hostname() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname")).unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::material::Authority;
    use supercargo_api::Call;

    #[test]
    fn an_address_may_lack_its_scheme() {
        for (given, meant) in [
            ("https://10.0.0.1:6443", "https://10.0.0.1:6443/"),
            ("10.0.0.1:8080", "http://10.0.0.1:8080/"),
            ("localhost", "http://localhost/"),
        ] {
            assert_eq!(address(given).map(|uri| uri.to_string()).ok().as_deref(), Some(meant), "{given}");
        }
        for given in ["ftp://10.0.0.1", "https://", "a b"] {
            let error = address(given).expect_err(given).to_string();
            assert!(error.contains("--master") && error.contains("such as https://10.0.0.1:6443"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_is_named() {
        let options =
            ConnectOptions { kubeconfig: Some("/nowhere/config".into()), ..ConnectOptions::default() };
        let error = ApiServer::connect(&options).await.expect_err("there is no such file").to_string();
        assert!(error.contains("/nowhere/config") && error.contains("--kubeconfig"), "{error}");
    }

    /// The machine that runs tests is no pod of a cluster; if it were, this would find that cluster.
    #[tokio::test]
    async fn a_scheduler_takes_no_cluster_that_nobody_has_named() {
        let connection = ClientConnection::default();
        let options = ConnectOptions::new(&connection, None);
        assert_eq!(options.search, Search::PodOnly);
        let error = ApiServer::connect(&options).await.expect_err("this is no pod").to_string();
        let begins = "invalid configuration: no configuration has been provided";
        assert!(error.starts_with(begins) && error.contains("--kubeconfig"), "{error}");
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_a_tunnel() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let mut target = Target::address("https://api.example.com:6443".parse().expect("an address"));
        target.proxy = Some(format!("http://{address}").parse().expect("an address"));
        target.authority = Authority::Anybody;
        let server = ApiServer::of_target(target, &ConnectOptions::default()).expect("nothing is sent yet");
        let proxy = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("somebody comes");
            let mut asked = vec![0; 512];
            let length = stream.read(&mut asked).await.expect("it asks");
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.expect("it listens");
            String::from_utf8_lossy(&asked[..length]).into_owned()
        });
        let error = server.get("/api/v1").await.expect_err("the proxy does not let us").to_string();
        let asked = proxy.await.expect("it has ended");
        assert!(asked.starts_with("CONNECT api.example.com:6443 HTTP/1.1\r\n"), "{asked}");
        assert!(error.contains("/api/v1") && error.contains("tunnel"), "{error}");
    }

    /// A server that answers every request with `{}` and counts its connections.
    async fn counting_server() -> (String, Arc<AtomicUsize>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens").to_string();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut asked = vec![0; 4096];
                    while stream.read(&mut asked).await.is_ok_and(|length| length > 0) {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                        stream.write_all(answer).await.expect("it listens");
                    }
                });
            }
        });
        (address, count)
    }

    #[tokio::test]
    async fn connections_of_its_own_are_shared_with_nobody() {
        let (address, connections) = counting_server().await;
        let options = ConnectOptions { master: Some(address), ..ConnectOptions::default() };
        let server = ApiServer::connect(&options).await.expect("nothing is sent yet");
        let lease = server.with_own_connections().expect("nothing is sent yet");
        let events = server.with_own_limit();
        for expected in [[1, 2, 2], [2, 2, 2]] {
            for (server, expected) in [&server, &lease, &events].into_iter().zip(expected) {
                server.get("/api/v1").await.expect("it answers");
                assert_eq!(connections.load(Ordering::SeqCst), expected);
            }
        }
    }

    #[tokio::test]
    async fn an_address_alone_is_enough() {
        let options = ConnectOptions { master: Some("127.0.0.1:1".to_owned()), ..ConnectOptions::default() };
        let server = ApiServer::connect(&options).await.expect("nothing is sent yet");
        let error = server.fetch(&Call::get("/api/v1".to_owned())).await.expect_err("nobody listens there");
        assert!(error.is_connection_refused(), "{error}");
        assert!(error.to_string().contains("/api/v1"), "{error}");
    }
}
