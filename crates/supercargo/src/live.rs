//! A cluster from its API server: what the commands that read a live cluster share. They never write.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use supercargo_client::{ApiServer, ConnectOptions, RequestError};
use supercargo_cluster::{ListError, ListRequest, NODES, PODS, PODS_NOT_FINISHED, WholeList, list};
use supercargo_explain::{Missing, MissingReason, missing_sentence};
use supercargo_framework::{Needs, Unread};
use supercargo_model::{KindId, printable};

use crate::loaded_config::LoadedConfig;
use crate::outcome::Outcome;

/// How long the first byte of an answer may take: somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(15);

/// One thread for the network, one for the work.
const THREADS: usize = 2;
/// How many versions of a group are looked through for a kind.
const GROUP_VERSIONS_MAX: usize = 8;

/// Which cluster.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConnectArguments {
    /// The kubeconfig of the cluster; without it, the cluster that this runs in, `$KUBECONFIG` or `~/.kube/config`
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; its current one if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The address of the API server; goes before what the kubeconfig says
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
}

/// All objects that a scheduler reads, as the API server wrote them.
pub(crate) struct LiveObjects {
    pub(crate) lists: Vec<(KindId, WholeList)>,
    /// What could not be read, and why.
    pub(crate) missing: Vec<Missing>,
}

impl ConnectArguments {
    pub(crate) fn options(&self) -> ConnectOptions {
        let ConnectArguments { kubeconfig, context, master } = self.clone();
        ConnectOptions { kubeconfig, context, master, patience: PATIENCE, ..ConnectOptions::default() }
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<ApiServer> {
        Ok(ApiServer::connect(&self.options()).await?)
    }

    /// What is wrong with naming a cluster where files are named already.
    pub(crate) fn conflict(&self, files: &[String]) -> Option<Outcome> {
        let flag = match self {
            _ if files.is_empty() => return None,
            ConnectArguments { kubeconfig: Some(file), .. } => format!("--kubeconfig {}", file.display()),
            ConnectArguments { context: Some(context), .. } => format!("--context {context}"),
            ConnectArguments { master: Some(master), .. } => format!("--master {master}"),
            ConnectArguments { .. } => return None,
        };
        Some(Outcome::wrong_usage(&format!("{flag} names a live cluster, and -f names files: leave one out")))
    }
}

impl LiveObjects {
    /// Lists everything that the plugins of a scheduler read. Where the user may not read a kind in all namespaces, those
    /// of `namespace` have to do.
    pub(crate) async fn read(
        server: &ApiServer,
        config: &LoadedConfig,
        namespace: Option<&str>,
    ) -> anyhow::Result<Self> {
        let mut objects = LiveObjects { lists: Vec::new(), missing: Vec::new() };
        let needs = Needs::of(&config.profiles);
        for kind in config.kinds() {
            if is_secret(kind) {
                objects.miss(kind, None, MissingReason::Secret, "");
                continue;
            }
            match list_kind(server, kind, None).await {
                Ok(list) => objects.lists.push((kind, list)),
                Err(ListError::Forbidden(reason)) => {
                    objects.read_namespace(server, kind, namespace, &reason).await;
                }
                Err(error @ ListError::NotServed(_)) => match why_not_served(server, kind).await {
                    // Where nobody misses it, there is nothing to say.
                    MissingReason::NotServed => {
                        if let Some(absence) = needs.absence(kind) {
                            objects.miss(kind, None, MissingReason::NotServed, &absence);
                        }
                    }
                    reason => objects.miss(kind, None, reason, &error.to_string()),
                },
                Err(error @ ListError::Failed { .. }) => return Err(error.into()),
            }
        }
        Ok(objects)
    }

    async fn read_namespace(
        &mut self,
        server: &ApiServer,
        kind: KindId,
        namespace: Option<&str>,
        refusal: &str,
    ) {
        if let Some(namespace) = namespace
            && let Ok(list) = list_kind(server, kind, Some(namespace)).await
        {
            self.miss(kind, Some(namespace), MissingReason::Forbidden, refusal);
            self.lists.push((kind, list));
        } else {
            self.miss(kind, None, MissingReason::Forbidden, refusal);
        }
    }

    fn miss(&mut self, kind: KindId, known_namespace: Option<&str>, reason: MissingReason, message: &str) {
        let unread = Unread { kind, known_namespace: known_namespace.map(Into::into) };
        self.missing.push(Missing { unread, reason, message: message.to_owned() });
    }

    /// Pods and nodes, without which nothing can be said; an error says why one of them could not be read, then what else is
    /// missing.
    pub(crate) fn require_pods_and_nodes(&self) -> anyhow::Result<()> {
        for kind in [PODS, NODES] {
            if self.lists.iter().any(|(listed, _)| *listed == kind) {
                continue;
            }
            let plural = kind.plural;
            let missing = self.missing.iter().find(|missing| missing.unread.kind == kind);
            let why = missing.map_or("", |missing| &missing.message);
            bail!(
                "you may not read {plural}, and without {plural} there is nothing to say: {why}\n{}",
                self.notes().trim_end()
            );
        }
        Ok(())
    }

    /// What could not be read, in one line.
    pub(crate) fn notes(&self) -> String {
        missing_note(&self.missing)
    }
}

/// What could not be read, for standard error: in one line, and a line for each kind that the API server does not have.
pub(crate) fn missing_note(missing: &[Missing]) -> String {
    let (absent, unread): (Vec<Missing>, Vec<Missing>) =
        missing.iter().cloned().partition(|missing| missing.reason == MissingReason::NotServed);
    let absent = absent.iter().map(|missing| missing.message.clone());
    let unread = missing_sentence(&unread)
        .map(|sentence| format!("{sentence}; what depends on that is marked as uncertain"));
    absent.chain(unread).map(|sentence| format!("note: {}\n", printable(&sentence))).collect()
}

/// Whether a kind that is not served exists in other versions, so that there may be objects of it. If that cannot be told,
/// there may.
async fn why_not_served(server: &ApiServer, kind: KindId) -> MissingReason {
    let is_absent = |error: &RequestError| error.code() == Some(404);
    let group = match server.get(&format!("/apis/{}", kind.group)).await {
        Ok(text) => serde_json::from_slice::<GroupWords>(&text).unwrap_or_default(),
        Err(error) if is_absent(&error) => return MissingReason::NotServed,
        Err(_) => return MissingReason::OtherVersion,
    };
    for version in group.versions.iter().take(GROUP_VERSIONS_MAX) {
        let served = match server.get(&format!("/apis/{}", version.group_version)).await {
            Ok(text) => serde_json::from_slice::<ResourcesWords>(&text).unwrap_or_default(),
            Err(error) if is_absent(&error) => continue,
            Err(_) => return MissingReason::OtherVersion,
        };
        if served.resources.iter().any(|resource| resource.name == kind.plural) {
            return MissingReason::OtherVersion;
        }
    }
    MissingReason::NotServed
}

/// What is read of an API group.
#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupWords {
    versions: Vec<VersionWords>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VersionWords {
    group_version: String,
}

/// What is read of the resources of a version.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourcesWords {
    resources: Vec<ResourceWords>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceWords {
    name: String,
}

pub(crate) async fn list_kind(
    server: &ApiServer,
    kind: KindId,
    namespace: Option<&str>,
) -> Result<WholeList, ListError> {
    let field_selector = (kind == PODS).then_some(PODS_NOT_FINISHED);
    list(server, ListRequest { kind, namespace, field_selector }).await
}

/// What is in secrets is nobody's business, whatever a plugin says it reads.
fn is_secret(kind: KindId) -> bool {
    kind.group.is_empty() && kind.plural == "secrets"
}

/// Waits for work that talks to the network.
pub(crate) fn wait_for<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(work);
    // Whatever still waits for the network need not be waited for.
    runtime.shutdown_background();
    result
}
