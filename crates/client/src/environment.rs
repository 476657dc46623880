//! What the environment of this process says about API servers and proxies.

use std::path::PathBuf;

/// Where a pod finds the credentials of its service account.
const SERVICE_ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the environment says. Empty values count as none, as in Go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// `$KUBECONFIG`: files, with colons in between.
    pub(crate) kubeconfig: Option<String>,
    /// `$HOME`, where `.kube/config` is.
    pub(crate) home: Option<PathBuf>,
    /// Where a pod's API server is.
    pub(crate) service_host: Option<String>,
    pub(crate) service_port: Option<String>,
    /// Where a pod's credentials are.
    pub(crate) service_account: PathBuf,
    pub(crate) proxies: ProxyEnvironment,
}

/// What the environment says about proxies.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProxyEnvironment {
    pub(crate) https_proxy: Option<String>,
    pub(crate) http_proxy: Option<String>,
    pub(crate) no_proxy: Option<String>,
}

impl Environment {
    /// That of this process.
    #[expect(clippy::disallowed_methods, reason = "how every client of Kubernetes is told")]
    pub(crate) fn of_process() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Environment {
            kubeconfig: read("KUBECONFIG"),
            home: read("HOME").map(PathBuf::from),
            service_host: read("KUBERNETES_SERVICE_HOST"),
            service_port: read("KUBERNETES_SERVICE_PORT"),
            service_account: PathBuf::from(SERVICE_ACCOUNT_FOLDER),
            proxies: ProxyEnvironment {
                https_proxy: read("HTTPS_PROXY").or_else(|| read("https_proxy")),
                http_proxy: read("HTTP_PROXY").or_else(|| read("http_proxy")),
                no_proxy: read("NO_PROXY").or_else(|| read("no_proxy")),
            },
        }
    }
}
