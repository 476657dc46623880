//! A cluster from its API server: what the commands that read a live cluster share. They never write.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use supercargo_client::{ApiServer, ConnectOptions};
use supercargo_cluster::{ListError, ListRequest, PODS, PODS_NOT_FINISHED, WholeList, list};
use supercargo_model::KindId;

use crate::cluster_files::Scheduler;
use crate::outcome::Outcome;

/// How long the first byte of an answer may take: somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(15);

/// One thread for the network, one for the work.
const THREADS: usize = 2;

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
    pub(crate) missing: Vec<(KindId, String)>,
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
        scheduler: &Scheduler,
        namespace: Option<&str>,
    ) -> anyhow::Result<Self> {
        let mut objects = LiveObjects { lists: Vec::new(), missing: Vec::new() };
        for kind in scheduler.kinds() {
            if is_secret(kind) {
                objects.missing.push((kind, "note: secrets are never read".to_owned()));
                continue;
            }
            match list_kind(server, kind, None).await {
                Ok(list) => objects.lists.push((kind, list)),
                Err(ListError::Forbidden(reason)) => {
                    objects.read_namespace(server, kind, namespace, &reason).await?;
                }
                Err(error @ ListError::NotServed(_)) => {
                    objects.missing.push((kind, format!("note: {error}: treated as if there were none")));
                }
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
        reason: &str,
    ) -> anyhow::Result<()> {
        let plural = kind.plural;
        if let Some(namespace) = namespace
            && let Ok(list) = list_kind(server, kind, Some(namespace)).await
        {
            let note =
                format!("note: not allowed to read {plural} of other namespaces than {namespace}: {reason}");
            self.missing.push((kind, note));
            self.lists.push((kind, list));
            return Ok(());
        }
        self.missing.push((kind, format!("note: not allowed to read {plural}: {reason}")));
        Ok(())
    }

    /// Whether there is anything of a kind to work with.
    pub(crate) fn has(&self, kind: KindId) -> bool {
        self.lists.iter().any(|(listed, _)| *listed == kind)
    }

    /// What could not be read, a line each.
    pub(crate) fn notes(&self) -> String {
        self.missing.iter().map(|(_, note)| format!("{note}\n")).collect()
    }
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
