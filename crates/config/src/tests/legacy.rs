//! Old configurations: what each fixture becomes, and that nothing else happens to it on the way.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::{Problem, load, minimal_yaml};

/// All fixtures, by name.
fn fixtures() -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder()).expect("the fixtures are there");
    let files = entries.map(|entry| entry.expect("can be listed").path()).filter(|path| path.is_file());
    let named = |path: PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are plain").to_owned();
        (name, fs::read_to_string(&path).expect("fixtures are text"))
    };
    files.map(named).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/legacy")
}

/// What the command says and prints: the problems as comments, and the configuration.
fn converted(text: &str) -> String {
    let (problems, yaml) = match load(text) {
        Ok(loaded) => (loaded.conversion.clone(), minimal_yaml(&loaded)),
        Err(problems) => (problems, String::new()),
    };
    let comment = |problem: &Problem| {
        let text = problem.to_string();
        text.lines().map(|line| format!("# {line}\n")).collect::<String>()
    };
    problems.iter().map(comment).collect::<String>() + &yaml
}

#[test]
fn fixtures_become_what_is_expected() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 20, "{} fixtures", fixtures.len());
    for (name, text) in fixtures {
        let path = folder().join("expected").join(format!("{name}.yaml"));
        let found = converted(&text);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(folder().join("expected")).expect("can be made");
            fs::write(&path, &found).expect("can be written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, expected, "{name}: see it, and run UPDATE_DOCS=1 cargo test -p supercargo-config");
    }
}

/// Reading back what was converted gives the same, without anything to convert.
fn check_again(text: &str) {
    let Ok(loaded) = load(text) else { return };
    let printed = minimal_yaml(&loaded);
    let again = load(&printed).unwrap_or_else(|problems| panic!("{problems}\nof:\n{printed}\nof:\n{text}"));
    assert!(again.conversion.is_empty(), "{}\nof:\n{printed}", again.conversion);
    assert_eq!(again.kube, loaded.kube, "of:\n{printed}");
    assert_eq!(minimal_yaml(&again), printed);
}

#[test]
fn converting_again_changes_nothing() {
    for text in fixtures().values() {
        check_again(text);
    }
}

const SNIPPETS: [&str; 20] = [
    "null",
    "'*'",
    "{}",
    "[]",
    "-1",
    "0",
    "99999999999",
    "\n",
    "  ",
    ": ",
    "- ",
    "---\n",
    "v1beta2",
    "v1beta3",
    "v1alpha1",
    "NodeLabel",
    "NodeResourcesMostAllocated",
    "EBSLimits",
    "[[[[",
    "\"",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(768) })]

    #[test]
    fn mutated_fixtures_do_not_make_us_panic(
        fixture in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(&SNIPPETS[..])), 1..4),
    ) {
        let fixtures: Vec<String> = fixtures().into_values().collect();
        let mut text: Vec<char> = fixtures[fixture.index(fixtures.len())].chars().collect();
        for (at, cut, snippet) in edits {
            let start = at.index(text.len());
            let end = (start + cut).min(text.len());
            text.splice(start..end, snippet.chars());
        }
        check_again(&text.into_iter().collect::<String>());
    }

    #[test]
    fn lines_of_fixtures_can_be_missing(
        fixture in any::<prop::sample::Index>(),
        lines in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let fixtures: Vec<String> = fixtures().into_values().collect();
        let mut text: Vec<&str> = fixtures[fixture.index(fixtures.len())].lines().collect();
        for line in lines {
            if !text.is_empty() {
                text.remove(line.index(text.len()));
            }
        }
        check_again(&text.join("\n"));
    }
}
