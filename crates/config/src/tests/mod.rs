//! Tests of the whole way from words to profiles, as tables: what is written, and what comes of it.

mod all_at_once;
mod building;
mod effective;
mod extenders;
mod formats;
mod legacy;
mod legacy_model;
mod legacy_rules;
mod mutations;
mod orders;
mod queries;
mod reading;
mod support;
mod traps;
mod validation;
mod values;

use supercargo_framework::Registry;

use crate::{Problems, read};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// A configuration of one profile with these plugins.
fn plugins(plugins: &str) -> String {
    format!("{HEAD}profiles: [{{plugins: {plugins}}}]\n")
}

/// A configuration of one profile with these arguments.
fn plugin_config(config: &str) -> String {
    format!("{HEAD}profiles: [{{pluginConfig: {config}}}]\n")
}

/// What `config check` finds.
fn problems_of(text: &str, registry: &Registry) -> Problems {
    read(text).check(registry)
}

/// Checks the problems of a text, one a line without hints.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found: Vec<String> = problems_of(text, &support::registry())
        .into_iter()
        .map(|problem| format!("{} {}: {}", problem.code, problem.path, problem.message))
        .collect();
    assert_eq!(found, expected, "of:\n{text}");
}

/// Checks the only hint.
#[track_caller]
fn check_hint(text: &str, expected: &str) {
    let problems = problems_of(text, &support::registry());
    let hints: Vec<&str> = problems.iter().filter_map(|problem| problem.hint.as_deref()).collect();
    assert_eq!(hints, [expected], "of:\n{text}");
}

/// Checks the lines and columns of the problems.
#[track_caller]
fn check_places(text: &str, expected: &[&str]) {
    let place = |problem: crate::Problem| {
        problem.position.map_or_else(String::new, |position| format!("{}:{}", position.line, position.column))
    };
    let places: Vec<String> = problems_of(text, &support::registry()).into_iter().map(place).collect();
    assert_eq!(places, expected, "of:\n{text}");
}
