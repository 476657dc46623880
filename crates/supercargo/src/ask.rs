//! Asks the running scheduler what it decided for a pod.
//!
//! With `--scheduler` it is asked directly, as the user that the kubeconfig names. Without, the lease says who leads, and if
//! that is a pod, it is asked through the API server. On that way the scheduler sees nobody's credentials, because the API
//! server takes them off; so it answers only if it lets everybody read the page
//! (`--authorization-always-allow-paths=…,/debug/decisions/*`), and the right to `get` `pods/proxy` is what counts. Sending a
//! token along by another way would hand it to whoever writes the lease.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde::Deserialize;
use supercargo_client::{ApiServer, ComponentOptions, RequestError};
use supercargo_explain::PodReport;
use tokio::time::timeout;

use crate::live::ConnectArguments;
use crate::run::decisions::DECISIONS_PATH;
use crate::scheduling::LeaseName;

/// How long a scheduler may take to answer. What it is asked for it has in memory; what can be computed need not wait.
const PATIENCE: Duration = Duration::from_secs(5);
/// What is written instead of an address by who does not want anybody to be asked.
const NOBODY: &str = "none";
/// Where schedulers serve, unless their pods say otherwise.
const DEFAULT_PORT: u16 = 10259;
/// What kubeadm calls the pod of a scheduler on a node, before the node's name.
const STATIC_POD_PREFIX: &str = "kube-scheduler-";

/// Which scheduler to ask.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The running scheduler")]
pub(crate) struct AskArguments {
    /// The address of the running scheduler, to be asked what it decided for the pod, with the credentials of the
    /// kubeconfig; `none` for asking nobody. Without it, the holder of the lease is asked through the API server
    #[arg(long, value_name = "URL")]
    pub(crate) scheduler: Option<String>,
    /// The authority that signed the scheduler's certificate; the API server's if not given
    #[arg(long, value_name = "FILE", requires = "scheduler")]
    pub(crate) scheduler_certificate_authority: Option<PathBuf>,
    /// Do not check the scheduler's certificate: whoever answers at that address gets to see your token
    #[arg(long, requires = "scheduler", conflicts_with = "scheduler_certificate_authority")]
    pub(crate) scheduler_insecure_skip_tls_verify: bool,
}

impl AskArguments {
    /// Whether nobody is to be asked.
    pub(crate) fn is_nobody(&self) -> bool {
        self.scheduler.as_deref() == Some(NOBODY)
    }

    /// Asks about a pod: who was asked, and what was said. Without an address it is whoever holds the lease.
    pub(crate) async fn ask(
        &self,
        connect: &ConnectArguments,
        server: &ApiServer,
        lease: &LeaseName,
        pod: &str,
    ) -> anyhow::Result<(String, PodReport)> {
        // A name that is none would ask for another page.
        if !pod.bytes().all(|byte| is_of_name(byte) || byte == b'/') {
            bail!("{pod} is no name of a pod");
        }
        let asked = async {
            let page = format!("{DECISIONS_PATH}/{pod}");
            let (who, text) = match &self.scheduler {
                Some(url) => {
                    let component = ComponentOptions {
                        url: url.clone(),
                        authority: self.scheduler_certificate_authority.clone(),
                        accepts_any_certificate: self.scheduler_insecure_skip_tls_verify,
                    };
                    let scheduler = ApiServer::connect_component(&connect.options(), &component).await?;
                    (url.clone(), scheduler.get(&page).await.map_err(|error| refusal(url, &error))?)
                }
                None => {
                    let (pod, port) = leader(server, lease).await?;
                    let path = format!("{}/proxy{page}", proxy(&lease.namespace, &pod, port));
                    let who = format!("pod {}/{pod}", lease.namespace);
                    let text = server.get(&path).await.map_err(|error| refusal(&who, &error))?;
                    (who, text)
                }
            };
            let report = serde_json::from_slice(&text)
                .with_context(|| format!("{who} does not answer as Supercargo does"))?;
            Ok((who, report))
        };
        match timeout(PATIENCE, asked).await {
            Ok(answer) => answer,
            Err(_) => bail!("there was no answer within {} s", PATIENCE.as_secs()),
        }
    }
}

/// Why a scheduler does not say anything.
fn refusal(who: &str, error: &RequestError) -> anyhow::Error {
    match error.code() {
        Some(404) => anyhow!("{who} has no such page: it is not Supercargo, or an older one"),
        Some(401 | 403) => anyhow!("{who} does not let you read {DECISIONS_PATH}: {error}"),
        _ => anyhow!("{who} gives no answer: {error}"),
    }
}

/// What is read of a lease.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LeaseWords {
    spec: LeaseSpecWords,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeaseSpecWords {
    holder_identity: Option<String>,
}

/// What is read of the leader's pod.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PodWords {
    spec: PodSpecWords,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSpecWords {
    containers: Vec<ContainerWords>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerWords {
    ports: Vec<PortWords>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PortWords {
    container_port: u16,
}

/// The pod that holds the lease, and its port.
async fn leader(server: &ApiServer, lease: &LeaseName) -> anyhow::Result<(String, u16)> {
    let LeaseName { namespace, name } = lease;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let text = server.get(&path).await.with_context(|| format!("who leads is not known: lease {lease}"))?;
    let words: LeaseWords = serde_json::from_slice(&text).context("the lease cannot be read")?;
    let holder = words.spec.holder_identity.filter(|holder| !holder.is_empty());
    let holder = holder.with_context(|| format!("nobody holds the lease {lease}"))?;
    for pod in candidates(&holder) {
        match server.get(&format!("/api/v1/namespaces/{namespace}/pods/{pod}")).await {
            Ok(text) => {
                let words: PodWords =
                    serde_json::from_slice(&text).context("the leader's pod cannot be read")?;
                return Ok((pod, port(&words)));
            }
            Err(error) if error.code() == Some(404) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("who leads is not known: pod {namespace}/{pod}"));
            }
        }
    }
    Err(OutOfReach { leader: Some(holder) }.into())
}

/// Nobody knows where the scheduler serves.
#[derive(Debug)]
pub(crate) struct OutOfReach {
    /// Who holds its lease, if there is one.
    pub(crate) leader: Option<String>,
}

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "to see the scheduler's own decision: --scheduler https://HOST:{DEFAULT_PORT}")?;
        match &self.leader {
            Some(leader) => write!(f, " (leader: {leader})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for OutOfReach {}

/// The pods that a holder of a lease may be. It is called by its host name, an underscore and chance; the host name of a pod
/// is the pod's, or its node's if it shares the node's network.
fn candidates(holder: &str) -> Vec<String> {
    let host = holder.rsplit_once('_').map_or(holder, |(host, _)| host);
    if host.bytes().all(is_of_name) && !host.is_empty() {
        vec![host.to_owned(), format!("{STATIC_POD_PREFIX}{host}")]
    } else {
        Vec::new()
    }
}

/// Whether names of objects may have it in them. They go into paths.
pub(crate) fn is_of_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')
}

fn port(pod: &PodWords) -> u16 {
    let mut ports = pod.spec.containers.iter().flat_map(|container| &container.ports);
    ports.next().map_or(DEFAULT_PORT, |port| port.container_port)
}

fn proxy(namespace: &str, pod: &str, port: u16) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/https:{pod}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_a_pod_or_the_node_of_one() {
        assert_eq!(candidates("web-1_0b6d"), ["web-1", "kube-scheduler-web-1"]);
        assert_eq!(
            candidates("node.example.com_0b6d"),
            ["node.example.com", "kube-scheduler-node.example.com"]
        );
        assert_eq!(candidates("../secrets/x_0b6d"), [""; 0], "no path is made of what somebody wrote");
        assert_eq!(candidates("_0b6d"), [""; 0]);
    }

    #[test]
    fn a_pod_says_where_it_serves() {
        let read = |text: &str| port(&serde_json::from_str(text).expect("a pod"));
        assert_eq!(read("{}"), 10259);
        let declared = r#"{"spec":{"containers":[{"name":"sidecar"},{"ports":[{"name":"https","containerPort":10260}]}]}}"#;
        assert_eq!(read(declared), 10260);
    }
}
