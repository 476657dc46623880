//! The files of a new plugin.

use super::names::PluginNames;
use super::sources::Sources;

/// Where each file goes, and its text with places for names.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    ("README.md", include_str!("template/README.md.txt")),
    ("scheduler-config.yaml", include_str!("template/scheduler-config.yaml.txt")),
    ("src/lib.rs", include_str!("template/lib.rs.txt")),
    ("src/main.rs", include_str!("template/main.rs.txt")),
    ("tests/plugin.rs", include_str!("template/test.rs.txt")),
    (".gitignore", "/target\n"),
];

/// The files of a plugin with these names, by where they go.
pub(super) fn files(names: &PluginNames, sources: &Sources) -> Vec<(&'static str, String)> {
    let places = [
        ("@crate@", names.crate_name.clone()),
        ("@module@", names.module.clone()),
        ("@Plugin@", names.plugin.clone()),
        // Last, as their text comes from outside.
        ("@dependencies@", sources.note().to_owned()),
        ("@supercargo@", sources.dependency("crates/supercargo", &[])),
        ("@sdk@", sources.dependency("crates/sdk", &[])),
        ("@testkit@", sources.dependency("crates/sdk", &["testkit"])),
    ];
    let fill =
        |text: &str| places.iter().fold(text.to_owned(), |text, (place, value)| text.replace(place, value));
    let mut files: Vec<_> = FILES.iter().map(|(file, text)| (*file, fill(text))).collect();
    files.extend(sources.lock().map(|lock| ("Cargo.lock", lock.to_owned())));
    files
}
