use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use supercargo_framework::{
    ClusterEvent, Extensions, Memory, NoArgs, Observe, Plugin, Query, QuerySource, Reads, Writes, fact_kind,
};
use supercargo_model::{Kind, KindId};

use super::rules::{plugin_reads, plugin_rules};
use super::*;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

const SECOND: &str = r#"# Made by: supercargo rbac --mode second --name supercargo --namespace kube-system
apiVersion: v1
kind: ServiceAccount
metadata:
  name: supercargo
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: supercargo
rules:
# Read by the plugins.
- apiGroups: [""]
  resources: [namespaces, nodes, persistentvolumeclaims, persistentvolumes, pods, replicationcontrollers, services]
  verbs: [get, list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [get, list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch]
- apiGroups: [resource.k8s.io]
  resources: [deviceclasses]
  verbs: [get, list, watch]
- apiGroups: [storage.k8s.io]
  resources: [csidrivers, csinodes, csistoragecapacities, storageclasses, volumeattachments]
  verbs: [get, list, watch]
# Pods are bound.
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
# Conditions and nominations.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
# Preemption.
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
# Volumes that wait for their first consumer.
- apiGroups: [""]
  resources: [persistentvolumeclaims, persistentvolumes]
  verbs: [patch]
# Events.
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# Who asks for pages, and whether that is allowed.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: supercargo
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: supercargo
subjects:
- kind: ServiceAccount
  name: supercargo
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: supercargo
  namespace: kube-system
rules:
# Creation cannot be limited by name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [supercargo]
  verbs: [get, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: supercargo
  namespace: kube-system
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: supercargo
subjects:
- kind: ServiceAccount
  name: supercargo
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: supercargo-authentication-reader
  namespace: kube-system
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: extension-apiserver-authentication-reader
subjects:
- kind: ServiceAccount
  name: supercargo
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: supercargo-decisions-reader
rules:
# Nobody has this role yet: bind it to those whom `supercargo explain` shall tell what was decided.
# For the pods of one namespace only, name it: /debug/decisions/NAMESPACE/*
- nonResourceURLs: ["/debug/decisions/*"]
  verbs: [get]
"#;

fn options(mode: Mode) -> RbacOptions {
    let (name, namespace) = ("supercargo".to_owned(), "kube-system".to_owned());
    RbacOptions { config: None, mode, program: name.clone(), name, namespace }
}

/// What is printed for a configuration: the text of a file after its first two lines.
fn printed(mode: Mode, config: &str) -> Outcome {
    let name = format!("supercargo-rbac-{}-{:?}.yaml", std::process::id(), std::thread::current().id());
    let file = std::env::temp_dir().join(name);
    fs::write(&file, format!("{HEAD}{config}")).expect("the temporary directory can be written");
    let config = Some(file.to_str().expect("the temporary directory has a plain name").to_owned());
    let outcome = run(&RbacOptions { config, ..options(mode) }, &supercargo_plugins::registry());
    fs::remove_file(&file).expect("it was just written");
    outcome.expect("the configuration is usable")
}

fn without_config(mode: Mode) -> String {
    run(&options(mode), &supercargo_plugins::registry()).expect("the defaults are usable").stdout
}

#[test]
fn a_second_scheduler() {
    assert_eq!(without_config(Mode::Second), SECOND);
}

#[test]
fn instead_of_kube_scheduler_only_the_lease_is_another() {
    let expected = SECOND
        .replace("--mode second", "--mode replace")
        .replace("resourceNames: [supercargo]", "resourceNames: [kube-scheduler]");
    assert_eq!(without_config(Mode::Replace), expected);
}

#[test]
fn an_extender_may_bind_and_nothing_else() {
    let (shadow, extender) = (without_config(Mode::Shadow), without_config(Mode::Extender));
    let added = extender.lines().filter(|line| !shadow.contains(line)).collect::<Vec<_>>();
    assert_eq!(
        added,
        [
            "# Made by: supercargo rbac --mode extender --name supercargo --namespace kube-system",
            "# Pods are bound.",
            "  resources: [pods/binding]",
            "  verbs: [create]"
        ]
    );
}

#[test]
fn a_shadow_may_write_nothing() {
    let text = without_config(Mode::Shadow);
    let verbs: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("verbs: ")).collect();
    assert_eq!(verbs, ["[get, list, watch]"; 5]);
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);
}

#[test]
fn what_no_plugin_needs_is_not_allowed() {
    let disable = |names: &str| {
        let names: String = names.split(' ').map(|name| format!("      - name: {name}\n")).collect();
        format!("profiles:\n- schedulerName: own\n  plugins:\n    multiPoint:\n      disabled:\n{names}")
    };
    let storage = "VolumeBinding VolumeRestrictions VolumeZone NodeVolumeLimits";
    // What is disabled, what is there all the same, and what is not.
    let cases: [(&str, &[&str], &[&str]); 5] = [
        (
            storage,
            &["[namespaces, nodes, pods, replicationcontrollers, services]"],
            &["storage.k8s.io", "persistentvolume"],
        ),
        // The others still read volumes.
        (
            "VolumeBinding",
            &["volumeattachments"],
            &["resources: [persistentvolumeclaims, persistentvolumes]", "csidrivers"],
        ),
        ("DefaultPreemption", &["pods/status"], &["[delete]", "poddisruptionbudgets"]),
        ("PodTopologySpread", &["namespaces"], &["services", "apps", "replicationcontrollers"]),
        ("InterPodAffinity", &["services"], &["namespaces"]),
    ];
    for (names, present, absent) in cases {
        let config = disable(names);
        let text = printed(Mode::Second, &config).stdout;
        for word in present {
            assert!(text.contains(word), "without {names}, {word} is missing:\n{text}");
        }
        for word in absent {
            assert!(!text.contains(word), "without {names}, {word} is there:\n{text}");
        }
    }
}

/// A custom resource that a plugin from elsewhere reads.
#[derive(Deserialize)]
struct Quota {}

impl Kind for Quota {
    const ID: KindId = KindId { group: "example.com", version: "v1", kind: "Quota", plural: "quotas" };
}

/// What the metrics API says, which no API server keeps.
#[derive(PartialEq, Deserialize)]
struct Usage {}

impl Kind for Usage {
    const ID: KindId = fact_kind("Usage", "usages");
}

#[test]
fn custom_resources_and_metrics_are_read_where_plugins_declare_them() {
    let query = Query::per_node::<Usage>("usage", QuerySource::NodeMetrics, |_, _| Ok(()));
    let reads = Reads::nothing().kind::<Quota>().query(query);
    let mut profile = Profile::new("own");
    profile.reads = Some(reads);
    let expected = r#"rules:
# Read by the plugins.
- apiGroups: [""]
  resources: [nodes, pods]
  verbs: [get, list, watch]
- apiGroups: [example.com]
  resources: [quotas]
  verbs: [get, list, watch]
# Asked by the plugins.
- apiGroups: [metrics.k8s.io]
  resources: [nodes]
  verbs: [get, list]
"#;
    assert_eq!(yaml::rules(&cluster_rules(Mode::Shadow, &[profile])), expected);
}

#[test]
fn the_lease_is_that_of_the_configuration() {
    let election = "leaderElection:\n  resourceNamespace: batch\n  resourceName: own\n";
    let Outcome { stdout, stderr, .. } = printed(Mode::Second, election);
    assert!(stdout.contains("kind: Role\nmetadata:\n  name: supercargo\n  namespace: batch\n"), "{stdout}");
    assert!(stdout.contains("resourceNames: [own]"), "{stdout}");
    assert_eq!(stderr, "");

    let Outcome { stdout, .. } = printed(Mode::Second, "leaderElection:\n  leaderElect: false\n");
    assert!(!stdout.contains("leases"), "{stdout}");

    let Outcome { stderr, .. } = printed(Mode::Second, "");
    assert!(stderr.starts_with("warning: this is the lease of kube-scheduler"), "{stderr}");
    let Outcome { stderr, .. } = printed(Mode::Replace, "");
    assert_eq!(stderr, "");
}

#[test]
fn names_are_checked() {
    for name in ["", "Upper", "under_score", "-first", "last-", "a..b", "a: b", "a\nb"] {
        assert!(!is_name(name), "{name:?}");
        let error = run(
            &RbacOptions { name: name.to_owned(), ..options(Mode::Second) },
            &supercargo_plugins::registry(),
        );
        assert!(error.expect_err("it is no name").to_string().starts_with("--name"), "{name:?}");
    }
    for name in ["a", "supercargo", "supercargo-2.example"] {
        assert!(is_name(name), "{name:?}");
    }
}

/// The chart takes the rules of its roles from these files. If the plugins come to read something else, they have to be
/// made anew.
#[test]
fn the_chart_has_the_same_rules() {
    let kube = Loaded::default().kube;
    let profiles = build_profiles(&kube, &supercargo_plugins::registry()).expect("the defaults are usable");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/supercargo/files");
    for (file, mode) in [("schedule.yaml", Mode::Second), ("shadow.yaml", Mode::Shadow)] {
        let expected = format!(
            "# Made by `UPDATE_DOCS=1 cargo test -p supercargo rbac`.\n{}",
            yaml::rules(&cluster_rules(mode, &profiles))
        );
        let path = folder.join(file);
        #[expect(clippy::disallowed_methods, reason = "how a person asks for the file to be written")]
        if std::env::var("UPDATE_DOCS").is_ok() {
            fs::write(&path, &expected).expect("the chart can be written");
        }
        let found = fs::read_to_string(&path).expect("the chart is there");
        assert_eq!(found, expected, "{file} is stale: run with UPDATE_DOCS=1");
    }
}

/// The configurations of the pages about plugins.
fn pages() -> Vec<(String, supercargo_config::Loaded)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plugins");
    let entries =
        fs::read_dir(folder).expect("the pages are there").map(|entry| entry.expect("it can be read"));
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let config_of = |text: &str| {
        let blocks = text.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
        let mut configs = blocks.filter(|block| block.contains("KubeSchedulerConfiguration"));
        configs.next().map(ToOwned::to_owned)
    };
    let read = |file: &std::path::PathBuf| {
        let name = file.display().to_string();
        let config = config_of(&fs::read_to_string(file).expect("it can be read"))?;
        Some((name, supercargo_config::load(&config).expect("the page has a configuration to copy")))
    };
    files.iter().filter_map(read).collect()
}

/// What each plugin beyond the default profile reads and writes that no default plugin does: what its page's configuration needs, and what it
/// needs with no arguments at all, if that is possible.
fn rules_of_plugins() -> BTreeMap<&'static str, [Vec<Rule>; 2]> {
    let registry = supercargo_plugins::registry();
    let kube = Loaded::default().kube;
    let default = build_profiles(&kube, &registry).expect("the defaults are usable");
    let known = cluster_rules(Mode::Second, &default);
    let read_by_default = supercargo_framework::Needs::of(&default).kinds();
    let mut plugins: BTreeMap<&'static str, [Vec<Rule>; 2]> = BTreeMap::new();
    for (page, loaded) in pages() {
        let mut bare = loaded.kube.clone();
        bare.profiles.iter_mut().for_each(|profile| profile.plugin_config.clear());
        let profiles =
            build_profiles(&loaded.kube, &registry).unwrap_or_else(|problems| panic!("{page}: {problems:?}"));
        let bare = build_profiles(&bare, &registry).unwrap_or_default();
        let others = profiles.iter().chain(&bare).flat_map(Profile::plugins);
        let is_default =
            |name: &str| default.iter().flat_map(Profile::plugins).any(|plugin| plugin.name == name);
        for plugin in others.filter(|plugin| !is_default(plugin.name)) {
            let [read, written] = plugins.entry(plugin.name).or_default();
            let reads = plugin_reads(plugin, &read_by_default);
            for (rules, more) in [(read, reads), (written, plugin_rules(plugin))] {
                let new: Vec<Rule> =
                    more.into_iter().filter(|rule| !rules.contains(rule) && !known.contains(rule)).collect();
                rules.extend(new);
            }
        }
    }
    plugins
}

/// The chart adds these rules where its configuration names the plugin.
#[test]
fn the_chart_has_the_rules_of_other_plugins() {
    let mut expected = "# Made by `UPDATE_DOCS=1 cargo test -p supercargo rbac`.\n".to_owned();
    for (plugin, [read, written]) in rules_of_plugins() {
        if read.is_empty() && written.is_empty() {
            continue;
        }
        expected.push_str(&format!("{plugin}:\n"));
        for (what, rules) in [("read", read), ("write", written)] {
            if rules.is_empty() {
                continue;
            }
            expected.push_str(&format!("  {what}:\n"));
            let text = yaml::rules(&rules);
            for line in text.lines().skip(1).filter(|line| !line.starts_with('#')) {
                expected.push_str(&format!("  {line}\n"));
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm/supercargo/files/plugins.yaml");
    #[expect(clippy::disallowed_methods, reason = "how a person asks for the file to be written")]
    if std::env::var("UPDATE_DOCS").is_ok() {
        fs::write(&path, &expected).expect("the chart can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "plugins.yaml is stale: run with UPDATE_DOCS=1");
    for (plugin, rule) in [
        ("Coscheduling", "podgroups/status"),
        ("CapacityScheduling", "elasticquotas/status"),
        ("SySched", "seccompprofiles"),
    ] {
        let rules = found.split(&format!("{plugin}:\n")).nth(1).unwrap_or_default();
        assert!(rules.contains(rule), "{plugin} may not {rule}: {found}");
    }
}

/// A plugin from elsewhere that keeps a status.
struct Quotas;

impl Plugin for Quotas {
    const NAME: &'static str = "Quotas";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Quotas
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.observe()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().patch_status::<Quota>().create::<Quota>().delete::<Quota>()
    }
}

impl Observe for Quotas {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

#[test]
fn what_a_plugin_declares_to_write_is_allowed() {
    let mut registry = supercargo_plugins::registry();
    registry.register::<Quotas>().expect("the name is free");
    let config = format!("{HEAD}profiles:\n- plugins:\n    multiPoint:\n      enabled: [{{name: Quotas}}]\n");
    let loaded = supercargo_config::load(&config).expect("the configuration is right");
    let profiles = supercargo_config::build_profiles(&loaded.kube, &registry).expect("the profile is right");
    let text = yaml::rules(&cluster_rules(Mode::Second, &profiles));
    let expected = "# Written by Quotas.
- apiGroups: [example.com]
  resources: [quotas]
  verbs: [create, delete]
- apiGroups: [example.com]
  resources: [quotas/status]
  verbs: [patch]
";
    assert!(text.contains(expected), "{text}");
}

/// Remembers one thing for the next process, and another one for itself.
struct Keeper;

#[derive(Clone, Default, Deserialize, serde::Serialize)]
struct Kept(u32);

#[derive(Clone, Default, Deserialize, serde::Serialize)]
struct Fleeting(u32);

impl Memory for Kept {
    const NAME: &'static str = "Keeper/Kept";
    const SAVED: Option<u32> = Some(1);
}

impl Memory for Fleeting {
    const NAME: &'static str = "Keeper/Fleeting";
}

impl Plugin for Keeper {
    const NAME: &'static str = "Keeper";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Keeper
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.observe().remembers::<Fleeting>().remembers::<Kept>()
    }
}

impl Observe for Keeper {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

#[test]
fn who_saves_may_write_one_object_beside_the_lease() {
    let mut registry = supercargo_plugins::registry();
    registry.register::<Keeper>().expect("the name is free");
    let keeper = "profiles: [{schedulerName: own, plugins: {multiPoint: {enabled: [{name: Keeper}]}}}]\n";
    let table = [
        (Mode::Second, "profiles: [{schedulerName: own}]\n".to_owned(), None),
        (Mode::Shadow, keeper.to_owned(), None),
        (Mode::Second, keeper.to_owned(), Some(("kube-system", "kube-scheduler-memories", 4))),
        (
            Mode::Replace,
            format!("{keeper}leaderElection: {{resourceNamespace: batch, resourceName: lease}}\n"),
            Some(("batch", "lease-memories", 4)),
        ),
        (
            Mode::Second,
            format!("{keeper}leaderElection: {{leaderElect: false}}\n"),
            Some(("kube-system", "own-memories", 2)),
        ),
    ];
    for (mode, config, expected) in table {
        let kube = supercargo_config::read(&format!("{HEAD}{config}")).loaded.kube;
        let profiles = build_profiles(&kube, &registry).expect("a configuration");
        let documents = documents(&options(mode), &kube, &profiles);
        let role = documents.iter().find_map(|document| match document {
            Document::Role { namespace, rules, .. } => {
                Some((namespace.as_str(), yaml::rules(rules), rules.len()))
            }
            _ => None,
        });
        let Some((namespace, name, rules)) = expected else {
            assert!(!yaml::print("", &documents).contains("configmaps"), "{config}");
            continue;
        };
        let (found, text, count) = role.expect("there is a role");
        assert_eq!((found, count), (namespace, rules), "{text}");
        let update =
            format!("  resources: [configmaps]\n  resourceNames: [{name}]\n  verbs: [get, update]\n");
        assert!(text.contains("  resources: [configmaps]\n  verbs: [create]\n"), "{text}");
        assert!(text.contains(&update), "{text}");
    }
}
