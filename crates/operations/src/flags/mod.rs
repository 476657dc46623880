//! kube-scheduler's flags.
//!
//! Names, defaults and precedence are those of 1.36: flags of the leader election go before the configuration file; the
//! deprecated ones (`--kubeconfig`, `--kube-api-*`, `--profiling` …) count only without `--config`; where both are given they are
//! ignored, which is said in a warning. What Supercargo accepts without doing anything about it is said in a warning too.

mod ciphers;
mod gates;
mod ignored;
mod known_gates;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use supercargo_model::GoDuration;

pub use ignored::IgnoredFlags;

use crate::serve::{CertificateSource, ClientAuthority, FollowedAuthority, ServeOptions, TlsOptions};

/// Where kube-scheduler serves.
pub const DEFAULT_SECURE_PORT: u16 = 10259;

/// How long a pod that fits nowhere waits before it is tried all the same, if nothing else is said.
const DEFAULT_UNSCHEDULABLE: GoDuration = GoDuration::from_seconds(5 * 60);

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LoggingFormat {
    /// As klog writes them.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A version of TLS, as Go names it. What is older than 1.2 is not spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TlsVersion {
    #[default]
    #[value(name = "VersionTLS12", aliases = ["VersionTLS10", "VersionTLS11"])]
    Tls12,
    #[value(name = "VersionTLS13")]
    Tls13,
}

/// The flags of `supercargo run`.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct RunFlags {
    /// The path to the configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the configuration values to this file and exit
    #[arg(long, value_name = "FILE")]
    pub write_config_to: Option<PathBuf>,
    /// The address of the Kubernetes API server (overrides any value in kubeconfig)
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,

    /// Which replica schedules, if there are several.
    #[command(flatten)]
    pub leader_election: LeaderElectionFlags,
    /// Where health, metrics and pages are served.
    #[command(flatten)]
    pub serving: ServingFlags,
    /// Who may read them.
    #[command(flatten)]
    pub access: AccessFlags,
    /// What the configuration file says, for those who have none.
    #[command(flatten)]
    pub deprecated: DeprecatedFlags,

    /// What is taken and does nothing.
    #[command(flatten)]
    pub ignored: IgnoredFlags,

    /// Pairs that describe feature gates, such as `A=true,B=false`: those of kube-scheduler; a warning tells where Supercargo
    /// behaves otherwise
    #[arg(long, value_name = "GATES", help_heading = "Feature gates")]
    pub feature_gates: Vec<String>,

    /// How much to log: 0 what matters, 2 bound pods, 4 for debugging, 5 and more everything
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0, help_heading = "Logs")]
    pub verbosity: u8,
    /// How logs are written
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = "Logs")]
    pub logging_format: LoggingFormat,

    /// All flags by name, with their values, for people to look at. Whoever has read the command line fills it in.
    #[arg(skip)]
    pub shown: BTreeMap<String, String>,
    /// The names of those that stand on the command line. Whoever has read the command line fills it in.
    #[arg(skip)]
    pub given: BTreeSet<String>,
}

/// Which replica schedules, if there are several. These go before the configuration file.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderElectionFlags {
    /// Gain leadership before scheduling, for replicated schedulers [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go_bool)]
    pub leader_elect: Option<bool>,
    /// How long others wait after the leader's last renewal before they take over [default: 15s]
    #[arg(long, value_name = "DURATION")]
    pub leader_elect_lease_duration: Option<GoDuration>,
    /// How long a leader tries to renew before it gives up [default: 10s]
    #[arg(long, value_name = "DURATION")]
    pub leader_elect_renew_deadline: Option<GoDuration>,
    /// How long to wait between tries [default: 2s]
    #[arg(long, value_name = "DURATION")]
    pub leader_elect_retry_period: Option<GoDuration>,
    /// The type of the object that is used for locking; only leases [default: leases]
    #[arg(long, value_name = "KIND")]
    pub leader_elect_resource_lock: Option<String>,
    /// The name of the object that is used for locking [default: kube-scheduler]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,
    /// The namespace of the object that is used for locking [default: kube-system]
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_elect_resource_namespace: Option<String>,
}

/// Where health, metrics and pages are served.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Serving")]
pub struct ServingFlags {
    /// The address on which to serve; 0.0.0.0 and :: mean all
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub bind_address: IpAddr,
    /// The port on which to serve HTTPS with authentication and authorization; 0 for not serving
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_SECURE_PORT)]
    pub secure_port: u16,
    /// The folder of kube-scheduler.crt and kube-scheduler.key; a self-signed pair is put there if it has none. Ignored
    /// if --tls-cert-file is given
    #[arg(long, value_name = "FOLDER")]
    pub cert_dir: Option<PathBuf>,
    /// The certificate for HTTPS, with the chain after it; without it and --cert-dir one is made in memory
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// The private key that belongs to --tls-cert-file
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// The lowest version of TLS: VersionTLS12 or VersionTLS13; older ones mean VersionTLS12
    #[arg(long, value_name = "VERSION")]
    pub tls_min_version: Option<TlsVersion>,
    /// The cipher suites for TLS 1.2, by their names, as far as they are spoken; those of TLS 1.3 are always there
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<String>,
}

/// Who may read what is served.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Authentication and authorization")]
pub struct AccessFlags {
    /// Who shows a certificate signed by one of these authorities is who the certificate says
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// A kubeconfig with enough rights to create tokenreviews; without it, and outside a cluster, tokens count for
    /// nothing
    #[arg(long, value_name = "FILE")]
    pub authentication_kubeconfig: Option<PathBuf>,
    /// Do not look up a missing --client-ca-file in the cluster
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", value_parser = go_bool, action = clap::ArgAction::Set)]
    pub authentication_skip_lookup: bool,
    /// Go on if the authorities cannot be looked up in the cluster
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_parser = go_bool, action = clap::ArgAction::Set)]
    pub authentication_tolerate_lookup_failure: bool,
    /// A kubeconfig with enough rights to create subjectaccessreviews; without it, and outside a cluster, everything is
    /// forbidden that is not always allowed
    #[arg(long, value_name = "FILE")]
    pub authorization_kubeconfig: Option<PathBuf>,
    /// Paths that everybody may read; one that ends in * stands for all that begin so
    #[arg(long, value_name = "PATHS", value_delimiter = ',', default_values_t = crate::serve::ALWAYS_ALLOW_PATHS.map(String::from))]
    pub authorization_always_allow_paths: Vec<String>,
}

/// What the configuration file says, for those who have none. All but one are ignored beside `--config`.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Deprecated")]
pub struct DeprecatedFlags {
    /// The kubeconfig file with which to reach the API server; ignored beside --config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<String>,
    /// The content type of requests; ignored: Supercargo speaks JSON
    #[arg(long, value_name = "TYPE")]
    pub kube_api_content_type: Option<String>,
    /// How many requests a second to send to the API server; ignored beside --config [default: 50]
    #[arg(long, value_name = "NUMBER")]
    pub kube_api_qps: Option<f32>,
    /// How many requests to send at once; ignored beside --config [default: 100]
    #[arg(long, value_name = "NUMBER")]
    pub kube_api_burst: Option<i32>,
    /// Serve pages for debugging; ignored beside --config [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go_bool)]
    pub profiling: Option<bool>,
    /// Profile waiting for locks; ignored beside --config
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go_bool)]
    pub contention_profiling: Option<bool>,
    /// How long a pod that fits nowhere waits before it is tried all the same; counts beside --config too
    #[arg(long, value_name = "DURATION", default_value_t = DEFAULT_UNSCHEDULABLE)]
    pub pod_max_in_unschedulable_pods_duration: GoDuration,
}

/// What the flags say instead of the configuration file. What is none is as the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `leaderElection`.
    pub leader_election: LeaderElectionFlags,
    /// `clientConnection.kubeconfig`.
    pub kubeconfig: Option<String>,
    /// `clientConnection.contentType`.
    pub content_type: Option<String>,
    /// `clientConnection.qps`.
    pub qps: Option<f32>,
    /// `clientConnection.burst`.
    pub burst: Option<i32>,
    /// `enableProfiling`.
    pub enable_profiling: Option<bool>,
    /// `enableContentionProfiling`.
    pub enable_contention_profiling: Option<bool>,
}

impl ServingFlags {
    /// Where and how to serve; none if nothing is to be served. The authority is what was looked up in the cluster, which
    /// counts if no file is given.
    pub fn options(
        &self,
        access: &AccessFlags,
        looked_up: Option<FollowedAuthority>,
    ) -> Option<ServeOptions> {
        if self.secure_port == 0 {
            return None;
        }
        let certificate = match (&self.tls_cert_file, &self.tls_private_key_file, &self.cert_dir) {
            (Some(certificate), Some(key), _) => {
                CertificateSource::Files { certificate: certificate.clone(), key: key.clone() }
            }
            (_, _, Some(folder)) => CertificateSource::Folder(folder.clone()),
            _ => CertificateSource::SelfSigned,
        };
        let client_authority = match (&access.client_ca_file, looked_up) {
            (Some(path), _) => ClientAuthority::File(path.clone()),
            (None, Some(followed)) => ClientAuthority::Followed(followed),
            (None, None) => ClientAuthority::None,
        };
        Some(ServeOptions {
            bind_address: self.bind_address,
            port: self.secure_port,
            certificate,
            client_authority,
            tls: TlsOptions {
                version_min: self.tls_min_version.unwrap_or_default(),
                cipher_suites: self.tls_cipher_suites.clone(),
            },
        })
    }
}

/// A flag that kube-scheduler refuses. The texts are its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid argument for {flag}: {reason}")]
pub struct InvalidFlag {
    /// The flag.
    pub flag: &'static str,
    /// What is wrong.
    pub reason: String,
}

impl RunFlags {
    /// Refuses values that can be read, and that kube-scheduler refuses all the same: feature gates that it does not know or that are
    /// locked, and cipher suites that it does not know, if anything is served.
    pub fn check(&self) -> Result<(), InvalidFlag> {
        let refused = |flag| move |reason| InvalidFlag { flag, reason };
        gates::check(&self.feature_gates).map_err(refused("--feature-gates"))?;
        if self.serving.secure_port != 0 {
            ciphers::check(&self.serving.tls_cipher_suites).map_err(refused("--tls-cipher-suites"))?;
        }
        Ok(())
    }

    /// What the flags say instead of the configuration file, and what they say in vain.
    pub fn overrides(&self) -> (Overrides, Vec<String>) {
        let mut warnings = gates::warnings(&self.feature_gates);
        warnings.extend(self.ignored.warnings());
        let deprecated = &self.deprecated;
        let mut overrides =
            Overrides { leader_election: self.leader_election.clone(), ..Overrides::default() };
        if self.config.is_none() {
            overrides.kubeconfig.clone_from(&deprecated.kubeconfig);
            overrides.content_type.clone_from(&deprecated.kube_api_content_type);
            overrides.qps = deprecated.kube_api_qps;
            overrides.burst = deprecated.kube_api_burst;
            overrides.enable_profiling = deprecated.profiling;
            overrides.enable_contention_profiling = deprecated.contention_profiling;
        } else {
            let given = [
                ("--kubeconfig", deprecated.kubeconfig.is_some(), "clientConnection.kubeconfig"),
                (
                    "--kube-api-content-type",
                    deprecated.kube_api_content_type.is_some(),
                    "clientConnection.contentType",
                ),
                ("--kube-api-qps", deprecated.kube_api_qps.is_some(), "clientConnection.qps"),
                ("--kube-api-burst", deprecated.kube_api_burst.is_some(), "clientConnection.burst"),
                ("--profiling", deprecated.profiling.is_some(), "enableProfiling"),
                (
                    "--contention-profiling",
                    deprecated.contention_profiling.is_some(),
                    "enableContentionProfiling",
                ),
            ];
            let ignored = given.iter().filter(|(_, given, _)| *given);
            warnings.extend(ignored.map(|(flag, _, field)| {
                format!("{flag} is ignored because --config is given: write {field} in that file")
            }));
        }
        (overrides, warnings)
    }
}

/// A truth value as Go's `strconv.ParseBool` reads it.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}
