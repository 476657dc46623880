//! The first stage: words to a configuration with its scalar defaults.

use serde_json::Value;

use crate::codes::{self, Code};
use crate::defaults;
use crate::document;
use crate::fields::{self, Object, Read, read_object};
use crate::own::SupercargoConfiguration;
use crate::problem::{Problem, Problems};
use crate::types::{
    ClientConnection, Extender, ExtenderTlsConfig, KubeSchedulerConfiguration, KubeSchedulerProfile,
    LeaderElection, ManagedResource, Plugin, PluginConfig, PluginSet, Plugins,
};

pub(crate) const KUBE_GROUP: &str = "kubescheduler.config.k8s.io";
pub(crate) const KUBE_API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
pub(crate) const KUBE_KIND: &str = "KubeSchedulerConfiguration";
pub(crate) const OWN_GROUP: &str = "supercargo.dev";
pub(crate) const OWN_API_VERSION: &str = "supercargo.dev/v1alpha1";
pub(crate) const OWN_KIND: &str = "SupercargoConfiguration";

/// What the words say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// What kube-scheduler would read too.
    pub kube: KubeSchedulerConfiguration,
    /// The settings of our own.
    pub own: SupercargoConfiguration,
}

/// Reads a file: a `KubeSchedulerConfiguration`, a `SupercargoConfiguration`, or the one and then the other.
pub fn load(text: &str) -> Result<Loaded, Problems> {
    load_all(&[text])
}

/// Reads several files that together hold at most one document of each kind.
pub fn load_all(texts: &[&str]) -> Result<Loaded, Problems> {
    let mut problems = Problems::default();
    let (mut kube, mut own) = (None, None);
    for text in texts {
        let documents = match document::parse(text) {
            Ok(documents) => documents,
            Err(found) => {
                problems.extend(found);
                continue;
            }
        };
        if documents.is_empty() {
            let hint = format!("start with `apiVersion: {KUBE_API_VERSION}` and `kind: {KUBE_KIND}`");
            let message = "the file is empty: Object 'Kind' is missing";
            problems.push(Problem::new(&codes::NO_KIND, "", message).with_hint(hint));
        }
        let several = documents.len() > 1;
        for (index, document) in documents.iter().enumerate() {
            let place = if several { format!("document {}: ", index + 1) } else { String::new() };
            match kind_of(document, &place, &mut problems) {
                None => {}
                Some((Kind::Kube, fields)) => {
                    if several && index > 0 {
                        let message = format!("{place}{KUBE_KIND} must be the first document");
                        let hint = "kube-scheduler reads the first document only".to_owned();
                        problems.push(Problem::new(&codes::DOCUMENT_ORDER, "kind", message).with_hint(hint));
                    }
                    store(&mut kube, read_kube(&fields, &mut problems), KUBE_KIND, &place, &mut problems);
                }
                Some((Kind::Own, fields)) => {
                    let read = SupercargoConfiguration::read(&Value::Object(fields), "", &mut problems);
                    store(&mut own, read, OWN_KIND, &place, &mut problems);
                }
            }
        }
    }
    problems.into_result(Loaded { kube: kube.unwrap_or_default(), own: own.unwrap_or_default() })
}

enum Kind {
    Kube,
    Own,
}

/// What a document is, and its fields without those that say so.
fn kind_of(document: &Value, place: &str, problems: &mut Problems) -> Option<(Kind, Object)> {
    let Value::Object(fields) = document else {
        fields::wrong_type(document, "an object with apiVersion and kind", "", problems);
        return None;
    };
    let mut fields = fields.clone();
    let before = problems.len();
    let mut take = |name: &str, problems: &mut Problems| match fields.remove(name) {
        None | Some(Value::Null) => String::new(),
        Some(value) => String::read(&value, name, problems),
    };
    let api_version = take("apiVersion", problems);
    let kind = take("kind", problems);
    if problems.len() > before {
        return None;
    }
    let group = api_version.split('/').next().unwrap_or_default();
    let (code, path, message, hint): (&Code, _, _, _) = if kind.is_empty() {
        (&codes::NO_KIND, "kind", "Object 'Kind' is missing".to_owned(), format!("add `kind: {KUBE_KIND}`"))
    } else if api_version.is_empty() {
        let hint = format!("add `apiVersion: {KUBE_API_VERSION}`");
        (&codes::NO_KIND, "apiVersion", "Object 'apiVersion' is missing".to_owned(), hint)
    } else if (api_version.as_str(), kind.as_str()) == (KUBE_API_VERSION, KUBE_KIND) {
        return Some((Kind::Kube, fields));
    } else if (api_version.as_str(), kind.as_str()) == (OWN_API_VERSION, OWN_KIND) {
        return Some((Kind::Own, fields));
    } else if (group == KUBE_GROUP && kind == KUBE_KIND) || kind == "Policy" {
        // The place where older versions will be read and converted.
        let message = format!("no kind {kind:?} is registered for version {api_version:?}");
        let hint = format!("only {KUBE_API_VERSION} is read; conversion comes with `config convert`");
        (&codes::OLD_VERSION, "apiVersion", message, hint)
    } else if group == OWN_GROUP && kind == OWN_KIND {
        let message = format!("no kind {kind:?} is registered for version {api_version:?}");
        (&codes::OLD_VERSION, "apiVersion", message, format!("only {OWN_API_VERSION} is read"))
    } else {
        let message = format!("couldn't decode as {KUBE_KIND}, got {api_version}, Kind={kind}");
        let hint = format!("{KUBE_KIND} of {KUBE_API_VERSION} and {OWN_KIND} of {OWN_API_VERSION} are read");
        (&codes::WRONG_KIND, "kind", message, hint)
    };
    problems.push(Problem::new(code, path, format!("{place}{message}")).with_hint(hint));
    None
}

fn store<T>(into: &mut Option<T>, value: T, kind: &str, place: &str, problems: &mut Problems) {
    if into.replace(value).is_some() {
        problems.add(&codes::SECOND_OF_KIND, "kind", format!("{place}there is a {kind} already"));
    }
}

fn read_kube(fields: &Object, problems: &mut Problems) -> KubeSchedulerConfiguration {
    let given = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let fields = Value::Object(fields.clone());
    let mut config = KubeSchedulerConfiguration::read(&fields, "", problems);
    defaults::complete(
        &mut config,
        given(fields.get("enableContentionProfiling")),
        given(fields.pointer("/profiles/0/schedulerName")),
    );
    config
}

read_object!(KubeSchedulerConfiguration {
    parallelism: "parallelism",
    leader_election: "leaderElection",
    client_connection: "clientConnection",
    enable_profiling: "enableProfiling",
    enable_contention_profiling: "enableContentionProfiling",
    percentage_of_nodes_to_score: "percentageOfNodesToScore",
    pod_initial_backoff_seconds: "podInitialBackoffSeconds",
    pod_max_backoff_seconds: "podMaxBackoffSeconds",
    profiles: "profiles",
    extenders: "extenders",
    delay_cache_until_active: "delayCacheUntilActive",
});

read_object!(LeaderElection {
    leader_elect: "leaderElect",
    lease_duration: "leaseDuration",
    renew_deadline: "renewDeadline",
    retry_period: "retryPeriod",
    resource_lock: "resourceLock",
    resource_name: "resourceName",
    resource_namespace: "resourceNamespace",
});

read_object!(ClientConnection {
    kubeconfig: "kubeconfig",
    accept_content_types: "acceptContentTypes",
    content_type: "contentType",
    qps: "qps",
    burst: "burst",
});

read_object!(KubeSchedulerProfile {
    scheduler_name: "schedulerName",
    percentage_of_nodes_to_score: "percentageOfNodesToScore",
    plugins: "plugins",
    plugin_config: "pluginConfig",
});

read_object!(Plugins {
    pre_enqueue: "preEnqueue",
    queue_sort: "queueSort",
    pre_filter: "preFilter",
    filter: "filter",
    post_filter: "postFilter",
    pre_score: "preScore",
    score: "score",
    reserve: "reserve",
    permit: "permit",
    pre_bind: "preBind",
    bind: "bind",
    post_bind: "postBind",
    multi_point: "multiPoint",
    placement_generate: "placementGenerate",
    placement_score: "placementScore",
});

read_object!(PluginSet { enabled: "enabled", disabled: "disabled" });

read_object!(Plugin { name: "name", weight: "weight" });

read_object!(PluginConfig { name: "name", args: "args" });

read_object!(Extender {
    url_prefix: "urlPrefix",
    filter_verb: "filterVerb",
    preempt_verb: "preemptVerb",
    prioritize_verb: "prioritizeVerb",
    weight: "weight",
    bind_verb: "bindVerb",
    enable_https: "enableHTTPS",
    tls_config: "tlsConfig",
    http_timeout: "httpTimeout",
    node_cache_capable: "nodeCacheCapable",
    managed_resources: "managedResources",
    ignorable: "ignorable",
});

read_object!(ExtenderTlsConfig {
    insecure: "insecure",
    server_name: "serverName",
    cert_file: "certFile",
    key_file: "keyFile",
    ca_file: "caFile",
    cert_data: "certData",
    key_data: "keyData",
    ca_data: "caData",
});

read_object!(ManagedResource { name: "name", ignored_by_scheduler: "ignoredByScheduler" });
