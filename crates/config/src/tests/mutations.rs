//! No input makes us panic, and what we accept we also print and read back.

use proptest::prelude::*;

use super::support;
use crate::{build_profiles, effective, load, to_yaml, validate};

const VALID: &str = r#"apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 16
percentageOfNodesToScore: 50
leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s}
clientConnection: {qps: 50.5, burst: 100}
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      enabled: [{name: ImageLocality, weight: 5}, {name: Out}]
      disabled: [{name: '*'}]
    multiPoint:
      enabled: [{name: NodeAffinity, weight: 10}]
      disabled: [{name: NodeName}]
  pluginConfig:
  - name: InterPodAffinity
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: InterPodAffinityArgs, hardPodAffinityWeight: 5}
  - {name: NodeResourcesFit, args: {ignoredResources: [a.b/c]}}
extenders:
- urlPrefix: http://localhost
  httpTimeout: 5s
  tlsConfig: {certData: YWJj}
  managedResources: [{name: a.b/c, ignoredByScheduler: true}]
---
apiVersion: supercargo.dev/v1alpha1
kind: SupercargoConfiguration
tieBreak: Seeded
seed: 5
fixes: [emptySpreadSelector]
"#;

const SNIPPETS: [&str; 24] = [
    "null",
    "'*'",
    "{}",
    "[]",
    "-1",
    "1e400",
    "0x10",
    "\n",
    "  ",
    ": ",
    "- ",
    "---\n",
    "&a ",
    "*a",
    "!!binary ",
    "\"",
    "'",
    "ä",
    "99999999999999999999",
    "[[[[",
    "{{{{",
    "<<: ",
    "NodePorts",
    "0s",
];

fn run(text: &str) {
    let Ok(loaded) = load(text) else { return };
    let registry = support::registry();
    let problems = validate(&loaded.kube, &registry);
    let built = build_profiles(&loaded.kube, &registry);
    assert!(
        built.is_ok() || problems.has_errors(),
        "the validator finds whatever the constructor minds:\n{text}"
    );
    let whole = effective(&loaded.kube, &registry);
    let printed = to_yaml(&whole, &loaded.own);
    let again = load(&printed).unwrap_or_else(|problems| panic!("{problems}\nof:\n{printed}"));
    assert_eq!((again.kube, again.own), (whole, loaded.own), "of:\n{printed}");
}

#[test]
fn the_file_is_valid() {
    let loaded = load(VALID).expect("is valid");
    let problems = validate(&loaded.kube, &support::registry());
    assert!(!problems.has_errors(), "{problems}");
    run(VALID);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn mutated_files_do_not_make_us_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(&SNIPPETS[..])), 1..4)
    ) {
        let mut text: Vec<char> = VALID.chars().collect();
        for (at, cut, snippet) in edits {
            let start = at.index(text.len());
            let end = (start + cut).min(text.len());
            text.splice(start..end, snippet.chars());
        }
        run(&text.into_iter().collect::<String>());
    }

    #[test]
    fn any_line_can_be_missing(lines in prop::collection::vec(any::<prop::sample::Index>(), 1..4)) {
        let mut text: Vec<&str> = VALID.lines().collect();
        for line in lines {
            text.remove(line.index(text.len()));
        }
        run(&text.join("\n"));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        run(&text);
    }

    #[test]
    fn any_string_is_printed_so_that_it_is_read_back(name: String, argument: String) {
        let mut loaded = load(VALID).expect("is valid");
        loaded.kube.profiles[0].scheduler_name = name;
        loaded.kube.extenders[0].url_prefix = argument;
        let printed = to_yaml(&loaded.kube, &loaded.own);
        prop_assert_eq!(load(&printed), Ok(loaded), "of:\n{}", printed);
    }
}
