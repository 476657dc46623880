//! The whole of a configuration, and what is made from tables.

use super::{HEAD, plugins, support};
use crate::{Loaded, codes, effective, load, to_yaml};
use supercargo_framework::QUIRKS;

fn whole(text: &str) -> Loaded {
    let loaded = load(text).unwrap_or_else(|problems| panic!("{problems}\nof:\n{text}"));
    Loaded { kube: effective(&loaded.kube, &support::registry()), ..loaded }
}

#[test]
fn the_whole_is_read_back_as_itself() {
    for text in [
        HEAD.to_owned(),
        plugins("{score: {disabled: [{name: '*'}], enabled: [{name: Out, weight: 4}]}}"),
        plugins(
            "{multiPoint: {disabled: [{name: NodeName}, {name: NodePorts}], enabled: [{name: NodePorts}, {name: Out}]}}",
        ),
        plugins(
            "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}",
        ),
        format!(
            "{HEAD}clientConnection: {{qps: 0.5, kubeconfig: 'yes'}}\nleaderElection: {{leaseDuration: 1m0.5s}}\n\
             profiles: [{{schedulerName: '012', pluginConfig: [{{name: InterPodAffinity, args: \
             {{hardPodAffinityWeight: 7}}}}, {{name: NodeName, args: {{a: '*'}}}}]}}, {{schedulerName: '~'}}]\n\
             extenders: [{{urlPrefix: 'http://a:1/b', tlsConfig: {{certData: YQ==}}, httpTimeout: 100ms}}]\n\
             ---\napiVersion: supercargo.dev/v1alpha1\nkind: SupercargoConfiguration\ntieBreak: SmallestName\n\
             seed: 18446744073709551615\nfixes: [fitScorePodLevelRequests, namespaceSelectorAbsence]\n"
        ),
    ] {
        let once = whole(&text);
        let printed = to_yaml(&once.kube, &once.own);
        let twice = whole(&printed);
        assert_eq!(once, twice, "of:\n{printed}");
        assert_eq!(to_yaml(&twice.kube, &twice.own), printed);
    }
}

#[test]
fn the_whole_of_the_default() {
    let whole = whole(HEAD);
    let args: Vec<&str> =
        whole.kube.profiles[0].plugin_config.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(
        args,
        [
            "DefaultPreemption",
            "DynamicResources",
            "InterPodAffinity",
            "NodeAffinity",
            "NodeResourcesBalancedAllocation",
            "NodeResourcesFit",
            "PodTopologySpread",
            "VolumeBinding"
        ]
    );
    let fit = &whole.kube.profiles[0].plugin_config[5].args;
    assert_eq!(
        *fit,
        serde_json::json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs",
            "ignoredResources": [], "ignoredResourceGroups": []})
    );
    let printed = to_yaml(&whole.kube, &whole.own);
    assert!(!printed.contains("null"), "{printed}");
    let start = "apiVersion: kubescheduler.config.k8s.io/v1\n\
                 clientConnection:\n  acceptContentTypes: ''\n  burst: 100\n  contentType: application/vnd.kubernetes.protobuf\n  \
                 kubeconfig: ''\n  qps: 50\n\
                 delayCacheUntilActive: false\nenableContentionProfiling: true\nenableProfiling: true\n\
                 kind: KubeSchedulerConfiguration\n\
                 leaderElection:\n  leaderElect: true\n  leaseDuration: 15s\n";
    assert!(printed.replace('"', "'").starts_with(start), "{printed}");
    assert!(printed.ends_with(
        "---\napiVersion: supercargo.dev/v1alpha1\nfixes: []\nkind: SupercargoConfiguration\npages: []\nprograms: []\nseed: 0\ntieBreak: Seeded\n"
    ), "{printed}");
}

#[test]
fn codes_are_distinct_and_in_order() {
    let errors: Vec<&str> = codes::ALL.iter().map(|code| code.id).filter(|id| id.starts_with('C')).collect();
    let warnings: Vec<&str> =
        codes::ALL.iter().map(|code| code.id).filter(|id| id.starts_with('W')).collect();
    assert!(errors.is_sorted_by(|a, b| a < b) && warnings.is_sorted_by(|a, b| a < b));
    assert_eq!(errors.len() + warnings.len(), codes::ALL.len());
}

#[test]
fn names_of_quirks_are_distinct() {
    for quirk in QUIRKS {
        let mut fixes = supercargo_framework::Fixes::default();
        assert!(fixes.enable(quirk.name));
        assert_eq!(fixes.names(), [quirk.name]);
    }
}

#[test]
fn references_are_fresh() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
    for (name, wanted) in
        [("config-codes.md", codes::reference()), ("quirks.md", supercargo_framework::quirks_reference())]
    {
        let path = format!("{directory}/{name}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(directory).expect("can be made");
            std::fs::write(&path, &wanted).expect("can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == wanted, "{path} is not fresh: run UPDATE_DOCS=1 cargo test -p supercargo-config");
    }
}
