//! Our verdicts beside those of kubernetes-sigs/scheduler-plugins: every part of every pod's verdict must be the same.

mod vector_files;

use std::collections::BTreeMap;
use std::path::PathBuf;

use supercargo_conformance::{Case, CaseVerdict, Difference, Judge, compare, family_of};
use vector_files::{lines, report, vectors};

/// Plugins of the vectors that we do not have yet. Their cases are left out; when the list is empty, it goes.
const MISSING: &[&str] = &["NodeResourceTopologyMatch"];

#[test]
#[expect(clippy::disallowed_methods, reason = "whoever runs the test says which cases, by the environment")]
fn our_verdicts_are_those_of_the_community_plugins() {
    let registry = supercargo_plugins::registry();
    for plugin in MISSING {
        assert!(registry.get(plugin).is_none(), "{plugin} is there: take it off the list");
    }
    let mut judge = Judge::new(&registry).checking_index();
    let mut families: BTreeMap<String, usize> = BTreeMap::new();
    let mut differences: Vec<Difference> = Vec::new();
    let folder = std::env::var_os("VECTORS").map_or_else(|| vectors().join("community"), PathBuf::from);
    let family = std::env::var("FAMILY").unwrap_or_default();
    let mut cases = lines(&folder.join("cases.jsonl.gz"));
    for verdict in lines(&folder.join("verdicts.jsonl.gz")) {
        let case = cases.next().expect("there is a case for every verdict");
        let case: Case<'_> = serde_json::from_str(&case).expect("a case");
        let config = case.config.map_or("", |config| config.get());
        let is_missing = MISSING.iter().any(|plugin| config.contains(&format!("{plugin:?}")));
        if is_missing || (!family.is_empty() && case.family() != family) {
            continue;
        }
        let expected: CaseVerdict = serde_json::from_str(&verdict).expect("a verdict");
        let actual = judge.judge(&case);
        assert_eq!(expected.name, actual.name, "cases and verdicts go in step");
        *families.entry(family_of(&expected.name).to_owned()).or_default() += 1;
        differences.extend(compare(&expected, &actual));
    }
    assert!(!families.is_empty(), "no case was judged: are the vectors there?");
    assert!(differences.is_empty(), "{families:?}: {}", report(&differences));
}
