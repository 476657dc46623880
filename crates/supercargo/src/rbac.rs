//! `supercargo rbac`: the rights that a scheduler with a configuration needs, and no others.

mod rules;
mod yaml;

#[cfg(test)]
mod tests;

use anyhow::bail;
use clap::{Args, ValueEnum};
use supercargo_config::{KubeSchedulerConfiguration, Loaded, build_profiles, memories_object};
use supercargo_framework::{Profile, Registry};

use crate::config_check;
use crate::config_file;
use crate::input;
use crate::outcome::Outcome;
use rules::{Rule, binding_rule, decisions_rules, lease_rules, memories_rules, read_rules, write_rules};
use yaml::{Binding, Document};

/// Where Kubernetes keeps what is needed to know who asks for pages, and the role that may read it.
const AUTHENTICATION_NAMESPACE: &str = "kube-system";
const AUTHENTICATION_ROLE: &str = "extension-apiserver-authentication-reader";
/// The lease of kube-scheduler itself.
const UPSTREAM_LEASE: (&str, &str) = ("kube-system", "kube-scheduler");
/// Longer names are no names of objects.
const NAME_BYTES_MAX: usize = 253;

#[derive(Debug, Args)]
pub(crate) struct RbacOptions {
    /// The configuration whose plugins say what they read, `-` for standard input; without it, that of the default plugins
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// What the scheduler is there for
    #[arg(long, value_enum, default_value_t = Mode::Second)]
    pub(crate) mode: Mode,
    /// The name of the service account and of everything that is made for it
    #[arg(long, value_name = "NAME", default_value = "supercargo")]
    pub(crate) name: String,
    /// The namespace of the service account
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub(crate) namespace: String,
    /// What the program is called, which may have plugins of its own
    #[arg(skip = String::from("supercargo"))]
    pub(crate) program: String,
}

/// What a scheduler is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Schedules instead of kube-scheduler, under its lease
    Replace,
    /// Schedules beside kube-scheduler, under a lease of its own
    Second,
    /// Looks on and writes nothing
    Shadow,
    /// Answers another scheduler as its extender, and binds where that asks for it
    Extender,
}

pub(crate) fn run(options: &RbacOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    for (flag, name) in [("--name", &options.name), ("--namespace", &options.namespace)] {
        if !is_name(name) {
            bail!("{flag} {name:?} is no name: use lower case letters, digits, '-' and '.'");
        }
    }
    let file = options.config.as_deref().map_or("the configuration", input::display_name);
    let unusable = |problems| config_check::unusable(file, &problems);
    let kube = match &options.config {
        None => default_configuration(options),
        Some(path) => {
            let reading = config_file::read(&input::read(path)?);
            let Loaded { kube, .. } = reading.into_usable(registry).map_err(unusable)?;
            kube
        }
    };
    let profiles = build_profiles(&kube, registry).map_err(unusable)?;
    let stdout = yaml::print(&made_by(options), &documents(options, &kube, &profiles));
    Ok(Outcome { stdout, stderr: warnings(options, &kube), code: 0 })
}

/// The configuration of one who gives none. A second scheduler must not wait for the lease of the first.
fn default_configuration(options: &RbacOptions) -> KubeSchedulerConfiguration {
    let mut kube = Loaded::default().kube;
    if options.mode == Mode::Second {
        kube.leader_election.resource_namespace.clone_from(&options.namespace);
        kube.leader_election.resource_name.clone_from(&options.name);
    }
    kube
}

fn documents(
    options: &RbacOptions,
    kube: &KubeSchedulerConfiguration,
    profiles: &[Profile],
) -> Vec<Document> {
    let RbacOptions { mode, name, namespace, .. } = options;
    let account = || (namespace.clone(), name.clone());
    let mut documents = vec![
        Document::ServiceAccount { namespace: namespace.clone(), name: name.clone() },
        Document::ClusterRole { name: name.clone(), rules: cluster_rules(*mode, profiles) },
        Document::Binding(Binding {
            namespace: None,
            name: name.clone(),
            role: ("ClusterRole", name.clone()),
            account: account(),
        }),
    ];
    if matches!(mode, Mode::Shadow | Mode::Extender) {
        return documents;
    }
    let election = &kube.leader_election;
    let mut rules = Vec::new();
    if election.leader_elect {
        rules.extend(lease_rules(&election.resource_name));
    }
    rules.extend(memories_rules(profiles, &memories_object(kube).1));
    if !rules.is_empty() {
        documents.push(Document::Role {
            namespace: election.resource_namespace.clone(),
            name: name.clone(),
            rules,
        });
        documents.push(Document::Binding(Binding {
            namespace: Some(election.resource_namespace.clone()),
            name: name.clone(),
            role: ("Role", name.clone()),
            account: account(),
        }));
    }
    documents.push(Document::Binding(Binding {
        namespace: Some(AUTHENTICATION_NAMESPACE.to_owned()),
        name: format!("{name}-authentication-reader"),
        role: ("Role", AUTHENTICATION_ROLE.to_owned()),
        account: account(),
    }));
    documents.push(Document::ClusterRole {
        name: format!("{name}-decisions-reader"),
        rules: decisions_rules(profiles),
    });
    documents
}

/// What may be done with objects of all namespaces and of none.
fn cluster_rules(mode: Mode, profiles: &[Profile]) -> Vec<Rule> {
    let mut rules = read_rules(profiles);
    match mode {
        Mode::Replace | Mode::Second => rules.extend(write_rules(profiles)),
        Mode::Extender => rules.push(binding_rule()),
        Mode::Shadow => {}
    }
    rules
}

fn warnings(options: &RbacOptions, kube: &KubeSchedulerConfiguration) -> String {
    let mut text = String::new();
    let election = &kube.leader_election;
    let lease = (election.resource_namespace.as_str(), election.resource_name.as_str());
    if options.mode == Mode::Second && election.leader_elect && lease == UPSTREAM_LEASE {
        text.push_str(
            "warning: this is the lease of kube-scheduler, and as long as that runs, a second scheduler waits: \
             give leaderElection.resourceName another name\n",
        );
    }
    text
}

/// The command that says the same again.
fn made_by(options: &RbacOptions) -> String {
    let RbacOptions { config, mode, name, namespace, program } = options;
    let mode = match mode {
        Mode::Replace => "replace",
        Mode::Second => "second",
        Mode::Shadow => "shadow",
        Mode::Extender => "extender",
    };
    let config =
        config.as_deref().map(|file| format!(" --config {}", file.escape_debug())).unwrap_or_default();
    let program = program.escape_debug();
    format!("{program} rbac --mode {mode} --name {name} --namespace {namespace}{config}")
}

/// Whether it is a DNS subdomain, as names of objects are.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inner = label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= NAME_BYTES_MAX && text.split('.').all(is_label)
}
