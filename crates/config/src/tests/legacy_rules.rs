//! Old configurations: the rules, one by one.

use supercargo_framework::Point;

use super::support;
use crate::legacy::tables;
use crate::{
    KubeSchedulerConfiguration, Loaded, PolicyPlace, Problems, Slot, build_profiles, load, load_all,
    minimal_yaml, read_with_policy,
};

fn old(version: &str, rest: &str) -> String {
    format!("apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n{rest}\n")
}

const POLICY: &str = r#"{"apiVersion": "v1", "kind": "Policy", "priorities": [{"name": "ImageLocalityPriority", "weight": 4}]}"#;

fn kube(text: &str) -> KubeSchedulerConfiguration {
    load(text).unwrap_or_else(|problems| panic!("{problems}\nof:\n{text}")).kube
}

fn codes(problems: &Problems) -> Vec<String> {
    problems.iter().map(|problem| format!("{} {}", problem.code, problem.path)).collect()
}

#[track_caller]
fn check_errors(texts: &[&str], expected: &[&str]) {
    assert_eq!(codes(&load_all(texts).expect_err("is wrong")), expected);
}

#[test]
fn the_table_of_points_is_todays() {
    let registry = support::registry();
    for (name, points) in tables::POINTS {
        let plugin = registry.get(name).unwrap_or_else(|| panic!("{name} is a plugin"));
        for point in Point::ALL {
            assert_eq!(points.contains(&point), plugin.points().contains(&point), "{name} at {point:?}");
        }
    }
    let merged = crate::merged_plugins(&crate::Plugins::default());
    let defaults: Vec<&str> = merged.multi_point.enabled.iter().map(|plugin| plugin.name.as_str()).collect();
    assert_eq!(defaults, tables::POINTS.map(|(name, _)| name));
}

/// The weights that count in the end are those of the release.
#[test]
fn default_weights_stay_what_they_were() {
    let betas =
        [("NodeAffinity", 1), ("TaintToleration", 1), ("InterPodAffinity", 1), ("PodTopologySpread", 2)];
    let alphas =
        [("NodeAffinity", 1), ("TaintToleration", 1), ("InterPodAffinity", 1), ("PodTopologySpread", 1)];
    let today =
        [("NodeAffinity", 2), ("TaintToleration", 3), ("InterPodAffinity", 2), ("PodTopologySpread", 2)];
    for (version, weights) in [
        ("v1alpha1", alphas),
        ("v1alpha2", alphas),
        ("v1beta1", betas),
        ("v1beta2", betas),
        ("v1beta3", today),
        ("v1", today),
    ] {
        let registry = support::registry();
        let mut config = kube(&old(version, ""));
        config.profiles[0].plugin_config.clear();
        let profiles =
            build_profiles(&config, &registry).unwrap_or_else(|problems| panic!("{version}: {problems}"));
        assert_eq!(profiles.len(), 1);
        let score = &config.profiles[0].plugins.get(Slot::Point(Point::Score)).enabled;
        for (name, weight) in weights {
            let written = score.iter().find(|plugin| plugin.name == name).and_then(|plugin| plugin.weight);
            let counts = written.or(crate::defaults::default_weight(name));
            assert_eq!(counts, Some(weight), "{name} in {version}");
        }
    }
}

#[test]
fn v1_stays_as_it_is() {
    let text =
        old("v1", "percentageOfNodesToScore: 0\nprofiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]");
    let loaded = load(&text).expect("is right");
    assert!(loaded.conversion.is_empty());
    assert_eq!(load(&minimal_yaml(&loaded)), Ok(loaded));
    assert_eq!(minimal_yaml(&Loaded::default()), old("v1", "").trim_end().to_owned() + "\n");
}

#[test]
fn a_policy_beside_its_configuration() {
    for source in ["file: {path: /etc/policy.cfg}", "configMap: {name: policy}"] {
        let config =
            old("v1alpha1", &format!("schedulerName: mine\nalgorithmSource: {{policy: {{{source}}}}}"));
        for texts in [[config.as_str(), POLICY], [POLICY, config.as_str()]] {
            let profile = load_all(&texts).expect("both are there").kube.profiles.remove(0);
            assert_eq!(profile.scheduler_name, "mine");
            let weights: Vec<(&str, Option<i32>)> = profile
                .plugins
                .score
                .enabled
                .iter()
                .map(|plugin| (plugin.name.as_str(), plugin.weight))
                .collect();
            assert_eq!(weights, [("ImageLocality", Some(4))]);
        }
    }
    let file = old("v1alpha1", "algorithmSource: {policy: {file: {path: /etc/policy.cfg}}}");
    check_errors(&[&file], &["C070 algorithmSource.policy.file.path"]);
    let map = old("v1alpha1", "algorithmSource: {policy: {configMap: {name: policy}}}");
    check_errors(&[&map], &["C070 algorithmSource.policy.configMap"]);
    let problems = load(&map).expect_err("has no Policy");
    assert!(problems.to_string().contains("kube-system/policy"), "{problems}");
    assert!(problems.to_string().contains("config convert CONFIG POLICY"), "{problems}");
}

#[test]
fn a_policy_that_the_configuration_names_is_fetched() {
    let path = "/etc/policy.cfg";
    let config = old("v1alpha1", &format!("algorithmSource: {{policy: {{file: {{path: {path}}}}}}}"));
    let read = |fetched: Result<&str, &str>| {
        let reading = read_with_policy(&[&config], |place| {
            assert_eq!(*place, PolicyPlace::File { path: path.to_owned() });
            fetched.map(str::to_owned).map_err(str::to_owned)
        });
        reading.into_result().map_err(|problems| problems.in_file("config.yaml"))
    };
    let given = load_all(&[&config, POLICY]).expect("both are there");
    assert_eq!(read(Ok(POLICY)).expect("it is fetched").kube, given.kube);
    let table = [
        (
            Err("cannot be read: it is gone"),
            "config.yaml:",
            "C070 algorithmSource.policy.file.path",
            "it is gone",
        ),
        (Ok("{\"kind\": \"Policy\","), "/etc/policy.cfg:1:", "C001", "not JSON"),
        (Ok("<html>"), "/etc/policy.cfg:1:1:", "C004", ""),
        (Ok(""), "/etc/policy.cfg", "C007", "the file is empty"),
        (Ok("apiVersion: v1\nkind: Pod\n"), "/etc/policy.cfg:2:1:", "C009", "Kind=Pod"),
        (
            Ok("apiVersion: supercargo.dev/v1alpha1\nkind: SupercargoConfiguration\n"),
            "config.yaml:",
            "C070",
            "holds no Policy",
        ),
        (
            Ok(
                "{\"kind\": \"Policy\", \"apiVersion\": \"v1\",\n \"predicates\": [{\"name\": \"Nonsense\"}]}",
            ),
            "/etc/policy.cfg:2:",
            "C073",
            "Nonsense",
        ),
    ];
    for (fetched, place, code, words) in table {
        let problems = read(fetched).expect_err("is not usable");
        let (first, count) =
            (problems.lines().next().unwrap_or_default(), problems.matches("error C").count());
        assert!(first.starts_with(place) && first.contains(code) && first.contains(words), "{problems}");
        assert_eq!(count, 1, "{problems}");
    }
    // One that is given goes before one that is named.
    let given = read_with_policy(&[&config, POLICY], |_| panic!("need not be fetched"));
    assert!(given.into_result().is_ok());
    let map = old("v1alpha1", "algorithmSource: {policy: {configMap: {name: policy}}}");
    let reading = read_with_policy(&[&map], |place| Err(format!("is {place:?}")));
    let problems = reading.into_result().expect_err("there is none").to_string();
    assert!(problems.contains("C070 algorithmSource.policy.configMap"), "{problems}");
    assert!(problems.contains("ConfigMap kube-system/policy, which is ConfigMap"), "{problems}");
}

#[test]
fn what_does_not_go_together() {
    check_errors(&[&old("v1", ""), POLICY], &["C072 kind"]);
    check_errors(&[&old("v1beta3", ""), POLICY], &["C072 kind"]);
    check_errors(&[&old("v1", ""), &old("v1beta1", "")], &["C010 kind"]);
    check_errors(&[&old("v1beta1", ""), &old("v1beta2", "")], &["C010 kind"]);
    check_errors(&[POLICY, POLICY], &["C010 kind"]);
    let plugins = old("v1beta1", "profiles: [{plugins: {score: {disabled: [{name: ImageLocality}]}}}]");
    check_errors(&[&plugins, POLICY], &["C072 profiles[0].plugins"]);
    let both = old("v1alpha1", "algorithmSource: {provider: DefaultProvider, policy: {file: {path: a}}}");
    check_errors(&[&both], &["C071 algorithmSource"]);
    let places = old("v1alpha1", "algorithmSource: {policy: {file: {path: a}, configMap: {name: a}}}");
    check_errors(&[&places], &["C071 algorithmSource.policy"]);
    let none = old("v1alpha1", "algorithmSource: {policy: {}}");
    check_errors(&[&none], &["C071 algorithmSource.policy"]);
}

#[test]
fn config_maps() {
    let map = |data: &str| format!("apiVersion: v1\nkind: ConfigMap\ndata:\n{data}");
    check_errors(&[&map("  a: b\n")], &["C077 data"]);
    check_errors(&[&map("  {}\n")], &["C077 data"]);
    let policy = format!("  policy.cfg: '{POLICY}'\n");
    let loaded = load(&map(&format!("{policy}  note: |\n    hello\n"))).expect("has a Policy");
    let found = codes(&loaded.conversion);
    assert_eq!(found[..2], ["W115 data[note]", "W100 data[policy.cfg].apiVersion"]);
    let today =
        "  a.yaml: |\n    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: KubeSchedulerConfiguration\n";
    assert_eq!(kube(&map(&format!("{today}    parallelism: 3\n"))).parallelism, 3);
    check_errors(&[&map(&format!("{today}    parallel: 3\n"))], &["C003 data[a.yaml].parallel"]);
    check_errors(&[&map(&today.replace("/v1", "/v2"))], &["C008 data[a.yaml].apiVersion"]);
}

#[test]
fn spreading_that_was_off_stays_off() {
    let off = "profiles: [{plugins: {score: {disabled: [{name: SPREAD}]}, preScore: {disabled: [{name: SPREAD}]}}}]";
    let off = off.replace("SPREAD", "DefaultPodTopologySpread");
    for (version, rest, expected) in [
        ("v1alpha2", off.as_str(), Some("List")),
        ("v1alpha2", "", None),
        ("v1beta1", "", None),
        (
            "v1beta1",
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{}]}}]}]",
            Some("List"),
        ),
        (
            "v1beta2",
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [{}]}}]}]",
            None,
        ),
    ] {
        let config = kube(&old(version, rest));
        let args = config.profiles[0].plugin_config.iter().find(|entry| entry.name == "PodTopologySpread");
        let kind = args.and_then(|entry| entry.args.get("defaultingType")).and_then(|value| value.as_str());
        assert_eq!(kind, expected, "{version} {rest}");
    }
}

#[test]
fn points_that_plugins_left() {
    let text = old("v1beta1", "profiles: [{plugins: {preFilter: {enabled: [{name: ImageLocality}]}}}]");
    let loaded = load(&text).expect("is right");
    assert!(codes(&loaded.conversion).contains(&"W112 profiles[0].plugins.preFilter.enabled[0]".to_owned()));
    assert_eq!(loaded.kube.profiles[0].plugins.pre_filter, crate::PluginSet::default());
}
