//! Rules of this repository that no compiler knows: which room may use which, what pure crates must not touch, what every
//! plugin says about itself, and what no text file has in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may depend on whom. Dependencies point one way: towards the model.
const EDGES: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("framework", &["model"]),
    ("testkit", &["framework", "model"]),
    ("sdk", &["framework", "model", "testkit", "world"]),
    ("config", &["framework", "model"]),
    ("plugins", &["framework", "model"]),
    ("engine", &["framework", "model"]),
    ("dump", &["model"]),
    ("extender", &["client", "config", "engine", "framework", "model"]),
    ("api", &["framework", "model"]),
    ("world", &["api", "config", "engine", "framework", "model", "plugins"]),
    ("client", &["api", "config", "model"]),
    ("query", &["client", "framework", "model"]),
    ("cluster", &["api", "client", "config", "engine", "extender", "framework", "model", "query"]),
    ("operations", &["client", "model"]),
    ("explain", &["engine", "framework", "model"]),
    ("conformance", &["config", "engine", "framework", "model"]),
    ("fuzz", &["config", "dump", "framework", "model", "plugins"]),
    (
        "supercargo",
        &[
            "client",
            "cluster",
            "config",
            "conformance",
            "dump",
            "engine",
            "explain",
            "extender",
            "framework",
            "model",
            "operations",
            "plugins",
            "query",
        ],
    ),
];

/// These do no I/O, read no clock, spawn nothing. `clippy.toml` bans the calls it can name; these are the rest.
const PURE: &[&str] = &["model", "framework", "config", "plugins", "engine", "explain", "api", "world"];
const IMPURE_PATHS: &[&str] =
    &["std::fs", "std::net", "std::io", "std::env", "std::process", "std::thread", "std::time::Instant"];

/// The sections that the doc comment of every plugin has, in this order.
const SECTIONS: &[&str] =
    &["/// # What", "/// # Why", "/// # Arguments", "/// # Example", "/// # Difference from upstream"];

/// Longer files tell two stories.
const LINES_MAX: usize = 600;

#[test]
fn dependencies_point_one_way() {
    for manifest in files(&root(), "Cargo.toml") {
        let text = read(&manifest);
        let Some(name) = text.lines().find_map(|line| line.strip_prefix("name = \"")) else { continue };
        let name = name.trim_end_matches('"').trim_start_matches("supercargo-");
        let Some((_, allowed)) = EDGES.iter().find(|(crate_name, _)| *crate_name == name) else {
            let example = manifest.starts_with(root().join("examples"));
            assert!(example, "{name} is a new room: say in EDGES what it may use");
            continue;
        };
        // What only tests use may point anywhere.
        let dependencies = section(&text, "[dependencies]");
        for line in dependencies.lines() {
            if let Some(dependency) = line.strip_prefix("supercargo-") {
                let dependency = dependency.split(['.', ' ']).next().unwrap_or_default();
                assert!(allowed.contains(&dependency), "{name} must not depend on {dependency}");
            }
        }
    }
}

/// Files that use other cores and wait for them, so that what comes out is the same on one.
const WAITS_FOR_ITS_THREADS: [&str; 1] = ["engine/src/index/kernels.rs"];

#[test]
fn pure_crates_touch_nothing_outside() {
    for name in PURE {
        for file in files(&root().join("crates").join(name).join("src"), ".rs") {
            if is_test(&file) {
                continue;
            }
            for (number, line) in code(&read(&file)) {
                for path in IMPURE_PATHS {
                    if WAITS_FOR_ITS_THREADS.iter().any(|end| file.ends_with(end)) && *path == "std::thread" {
                        continue;
                    }
                    assert!(!line.contains(path), "{}:{number} uses {path}", file.display());
                }
            }
        }
    }
}

#[test]
fn no_signature_of_the_sdk_names_another_ones_types() {
    for name in ["model", "framework"] {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        for foreign in ["k8s-openapi", "kube", "tokio"] {
            assert!(!manifest.contains(&format!("\n{foreign}")), "{name} must not depend on {foreign}");
        }
    }
}

/// `docs/adr/0010-a-client-of-our-own.md` has the reasons.
#[test]
fn only_our_own_client_talks_to_api_servers() {
    for manifest in files(&root(), "Cargo.toml") {
        for foreign in ["k8s-openapi", "kube", "kube-client"] {
            let is_named =
                read(&manifest).lines().any(|line| line.split([' ', '.', '=']).next() == Some(foreign));
            assert!(!is_named, "{} must not depend on {foreign}: use supercargo-client", manifest.display());
        }
    }
}

/// Every plugin has its doc comment, and the reference is made of them.
#[test]
fn every_plugin_says_what_it_is() {
    let mut plugins: BTreeMap<String, String> = BTreeMap::new();
    for file in files(&root().join("crates/plugins/src"), ".rs") {
        let text = read(&file);
        for (position, _) in text.match_indices("\nimpl Plugin for ") {
            let name = text[position + "\nimpl Plugin for ".len()..].split(' ').next().unwrap_or_default();
            if is_test(&file) {
                continue;
            }
            let declaration =
                text.find(&format!("\npub struct {name}")).unwrap_or_else(|| panic!("{name} is public"));
            let before = &text[..declaration];
            let doc = &before[before.rfind("\n\n").unwrap_or(0)..];
            let mut rest = doc;
            for section in SECTIONS {
                let found = rest.find(section);
                let found = found.unwrap_or_else(|| panic!("{name} in {}: no {section}", file.display()));
                rest = &rest[found..];
            }
            plugins.insert(name.to_owned(), markdown(doc));
        }
    }
    assert!(plugins.len() >= 20, "only {} plugins were found", plugins.len());
    let mut reference = String::from(
        "# Plugins\n\nMade from the doc comments of the plugins; run `UPDATE_DOCS=1 cargo test -p supercargo --test tidy` \
         to make it anew.\n",
    );
    for (name, doc) in &plugins {
        reference.push_str(&format!("\n## {name}\n\n{doc}"));
    }
    let path = root().join("docs/reference/plugins.md");
    #[expect(clippy::disallowed_methods, reason = "how a person asks for the document to be written")]
    if std::env::var("UPDATE_DOCS").is_ok() {
        fs::write(&path, &reference).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert_eq!(read(&path), reference, "docs/reference/plugins.md is stale: run with UPDATE_DOCS=1");
}

/// A doc comment as Markdown: its sections become bold words, links to code become code.
fn markdown(doc: &str) -> String {
    let lines = doc.lines().filter_map(|line| line.strip_prefix("///"));
    let mut text = String::new();
    for line in lines.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        match line.strip_prefix("# ") {
            Some(section) => text.push_str(&format!("**{section}**\n\n")),
            None => text.push_str(&format!("{}\n", line.replace("[`", "`").replace("`]", "`"))),
        }
    }
    text
}

/// Files that start tasks themselves, with the reason why nobody would miss a task of theirs that ends.
const STARTS_TASKS: [(&str, &str); 2] = [
    ("cluster/src/tasks.rs", "the supervisor, whose tasks are heard of"),
    ("operations/src/serve", "a connection: its client sees that it breaks"),
];
const TASK_STARTS: [&str; 4] = ["tokio::spawn(", "task::spawn(", "spawn_local(", "runtime.spawn("];

/// A task that nobody hears of could end, and leave a process that looks alive and does not work.
#[test]
fn no_task_is_started_that_nobody_supervises() {
    for file in files(&root().join("crates"), ".rs") {
        let name = file.to_string_lossy().into_owned();
        let is_excepted = STARTS_TASKS.iter().any(|(path, _)| name.contains(path));
        let is_for_tests = is_test(&file)
            || ["/fake.rs", "/loopback.rs"].iter().any(|end| name.ends_with(end))
            || name.contains("/examples/");
        if is_excepted || is_for_tests {
            continue;
        }
        for (number, line) in code(&read(&file)) {
            let start = TASK_STARTS.iter().find(|start| line.contains(**start));
            assert!(
                start.is_none(),
                "{name}:{number} starts a task: use Tasks of crates/cluster/src/tasks.rs"
            );
        }
    }
}

/// A plugin's panic is caught, which only works if panics unwind.
#[test]
fn panics_unwind_in_every_profile() {
    let manifest = read(&root().join("Cargo.toml"));
    for (number, line) in (1..).zip(manifest.lines()) {
        assert!(
            !line.trim_start().starts_with("panic"),
            "Cargo.toml:{number}: {line}: plugins' panics must unwind"
        );
    }
}

#[test]
fn files_can_be_read_at_a_sitting() {
    for file in files(&root(), ".rs") {
        let lines = read(&file).lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines: is it one story, or two?", file.display());
    }
}

#[test]
fn nothing_is_left_lying_about() {
    // Written so that this file does not find itself.
    let words =
        [concat!("FIX", "ME"), concat!("XX", "X"), concat!("todo", "!("), concat!("unimplemented", "!(")];
    for file in files(&root(), ".rs") {
        for (number, line) in read(&file).lines().enumerate() {
            for word in words {
                assert!(!line.contains(word), "{}:{}: {word}", file.display(), number + 1);
            }
        }
    }
}

/// Folders of the machine that a file was written on. Written so that this file does not find itself.
const MACHINE_FOLDERS: &[&str] = &[concat!("/ro", "ot"), concat!("/wo", "rk"), concat!("/ho", "me")];

/// Hosts that packages are fetched from: which one is reached is the business of the machine that builds.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("static.crates", ".io"),
    concat!("index.crates", ".io"),
    concat!("proxy.golang", ".org"),
    concat!("sum.golang", ".org"),
    concat!("files.pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("deb.debian", ".org"),
    concat!("artifac", "tory"),
    concat!("jfr", "og.io"),
];

/// Every text file of the repository, whatever its language.
#[test]
fn text_files_are_clean() {
    let mut read = 0;
    let mut found = Vec::new();
    for path in repository_files() {
        // A file that git knows of and that was just removed, or a compressed one: neither has text.
        let Some(text) = fs::read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok()) else {
            continue;
        };
        read += 1;
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        found.extend(text_faults(&text).into_iter().map(|fault| format!("{name}:{fault}")));
        if path.ends_with("Cargo.lock") {
            found.extend(lock_faults(&text).into_iter().map(|fault| format!("{name}:{fault}")));
        }
    }
    assert!(read >= 300, "only {read} text files were found");
    assert!(found.is_empty(), "text files are not clean:\n{}", found.join("\n"));
}

#[test]
fn a_text_file_that_is_not_clean_is_found() {
    let marker = |sign: &str| sign.repeat(7);
    let (folder, host) = (MACHINE_FOLDERS[0], REGISTRY_HOSTS[0]);
    let table = [
        (String::new(), None),
        ("a line\n\nanother, with == in it\n".to_owned(), None),
        ("see docs/root and network/work, at https://example.com/home/page\n".to_owned(), None),
        (format!("a heading\n{}\n", "=".repeat(9)), None),
        (format!("one\n{} HEAD\ntwo\n", marker("<")), Some("2: a conflict marker")),
        (format!("one\n{}\ntwo\n", marker("=")), Some("2: a conflict marker")),
        (format!("{} 462a2b3 (subject)\n", marker(">")), Some("1: a conflict marker")),
        (format!("{} 462a2b3\n", marker("|")), Some("1: a conflict marker")),
        (format!("path = \"{folder}/file\"\n"), Some("1: a folder of one machine")),
        (format!("cd {folder}\n"), Some("1: a folder of one machine")),
        (format!("file://{folder}/x\n"), Some("1: a folder of one machine")),
        (format!("one\nfrom https://{host}/x\n"), Some("2: the host of a package registry")),
        ("one \ntwo\n".to_owned(), Some("1: white space at the end")),
        ("one\ntwo\t\n".to_owned(), Some("2: white space at the end")),
        ("one\r\n".to_owned(), Some("1: white space at the end")),
        ("one\ntwo".to_owned(), Some("2: no newline at the end of the file")),
        ("one\n\n".to_owned(), Some("2: an empty line at the end of the file")),
    ];
    for (text, expected) in table {
        let found = text_faults(&text);
        let expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(found, expected, "in {text:?}");
    }
    let line = |address: &str| format!("source = \"registry+{address}\"\n");
    assert_eq!(lock_faults(&line(LOCKED_REGISTRY)), Vec::<String>::new());
    assert_eq!(lock_faults(&line("https://mirror.example.com/index")).len(), 1);
}

/// What a text file must not have, each with the number of its line.
fn text_faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in text.split_terminator('\n').enumerate() {
        let mut fault = |what: &str| faults.push(format!("{}: {what}", number + 1));
        if is_conflict_marker(line) {
            fault("a conflict marker");
        }
        if MACHINE_FOLDERS.iter().any(|folder| names_folder(line, folder)) {
            fault("a folder of one machine");
        }
        if REGISTRY_HOSTS.iter().any(|host| line.contains(host)) {
            fault("the host of a package registry");
        }
        if line.ends_with(char::is_whitespace) {
            fault("white space at the end");
        }
    }
    let lines = text.split_terminator('\n').count();
    if !text.is_empty() && !text.ends_with('\n') {
        faults.push(format!("{lines}: no newline at the end of the file"));
    }
    if text.ends_with("\n\n") {
        faults.push(format!("{lines}: an empty line at the end of the file"));
    }
    faults
}

/// Git writes seven signs at the start of a line, alone or with a name behind them.
fn is_conflict_marker(line: &str) -> bool {
    ['<', '|', '=', '>'].iter().any(|sign| {
        let rest = line.trim_start_matches(*sign);
        line.len() - rest.len() == 7 && (rest.is_empty() || rest.starts_with(' '))
    })
}

/// Whether a line names this absolute folder, or something in it. A folder of the same name further down a path is not it.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + folder.len()..].chars().next();
        let begins = before.is_none_or(|sign| !sign.is_alphanumeric() && !"_-.}$*".contains(sign));
        let ends = after.is_none_or(|sign| !sign.is_alphanumeric() && !"_-".contains(sign));
        begins && ends
    })
}

/// The one registry that the lock file names: a mirror is set in the configuration of the machine that has it.
const LOCKED_REGISTRY: &str = "https://github.com/rust-lang/crates.io-index";

fn lock_faults(text: &str) -> Vec<String> {
    let numbered = text.lines().enumerate().filter(|(_, line)| line.starts_with("source = "));
    let others = numbered.filter(|(_, line)| *line != format!("source = \"registry+{LOCKED_REGISTRY}\""));
    others.map(|(number, line)| format!("{}: another registry: {line}", number + 1)).collect()
}

/// The files that git keeps or would keep. Without git (an unpacked archive), all that are there and not hidden.
fn repository_files() -> Vec<PathBuf> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(arguments).current_dir(root()).output();
    match listed {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).expect("names of files are UTF-8");
            names.split_terminator('\0').map(|name| root().join(name)).collect()
        }
        _ => files(&root(), ""),
    }
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    for file in files(&root(), ".md") {
        let text = read(&file);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let folder = file.parent().unwrap_or(&file);
            assert!(folder.join(target).exists(), "{}: {link} leads nowhere", file.display());
        }
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace is there")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of code, numbered: comments and what follows `#[cfg(test)]` are left out.
fn code(text: &str) -> Vec<(usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .collect()
}

fn is_test(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("tests.rs")
}

/// One section of a manifest.
fn section(text: &str, heading: &str) -> String {
    let body = text.split(&format!("{heading}\n")).nth(1).unwrap_or_default();
    body.split("\n[").next().unwrap_or_default().to_owned()
}

/// All files below a folder whose name ends so, what is built or hidden left out.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path, ending));
            }
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}
