use std::collections::BTreeSet;

use super::*;

/// A folder for a test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("supercargo-new-plugin-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary directory can be written");
        Folder(path)
    }

    fn options(&self, name: &str) -> NewPluginOptions {
        NewPluginOptions {
            name: name.to_owned(),
            folder: Some(self.0.join(name)),
            path: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")),
            git: None,
            revision: None,
        }
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn registry() -> Registry {
    supercargo_plugins::registry()
}

fn error_of(options: &NewPluginOptions) -> String {
    let error = run(options, &registry()).expect_err("this cannot be done");
    format!("{error:#}")
}

#[test]
fn a_whole_crate_is_written() {
    let folder = Folder::new("whole");
    let said = run(&folder.options("gpu-nodes"), &registry()).expect("it can be written").stdout;
    assert!(said.contains("the crate gpu-nodes with the plugin GpuNodes"), "{said}");
    let manifest = folder.read("gpu-nodes/Cargo.toml");
    assert!(manifest.contains("name = \"gpu-nodes\""), "{manifest}");
    assert!(manifest.contains("/crates/sdk\", features = [\"testkit\"] }"), "{manifest}");
    assert!(folder.read("gpu-nodes/src/main.rs").contains("use gpu_nodes::GpuNodes;"));
    assert!(folder.read("gpu-nodes/src/lib.rs").contains("pub struct GpuNodesArgs"));
    assert!(folder.read("gpu-nodes/scheduler-config.yaml").contains("- name: GpuNodes\n"));
    assert!(folder.read("gpu-nodes/Cargo.lock").contains("supercargo-sdk"));
    for file in ["README.md", "tests/plugin.rs", ".gitignore"] {
        let text = folder.read(&format!("gpu-nodes/{file}"));
        for place in
            ["@crate@", "@module@", "@Plugin@", "@sdk@", "@supercargo@", "@testkit@", "@dependencies@"]
        {
            assert!(!text.contains(place), "{place} is left in {file}");
        }
    }
}

#[test]
fn a_repository_takes_the_place_of_a_checkout() {
    let folder = Folder::new("git");
    let options = NewPluginOptions {
        path: None,
        git: Some("https://example.com/\"supercargo\"".to_owned()),
        revision: Some("v1".to_owned()),
        ..folder.options("a")
    };
    run(&options, &registry()).expect("it can be written");
    let manifest = folder.read("a/Cargo.toml");
    let expected = r#"supercargo = { git = "https://example.com/\"supercargo\"", rev = "v1" }"#;
    assert!(manifest.contains(expected), "{manifest}");
    assert!(!folder.0.join("a/Cargo.lock").exists());
}

#[test]
fn what_is_there_is_left_alone() {
    let folder = Folder::new("there");
    fs::create_dir(folder.0.join("mine")).expect("the folder can be written");
    fs::write(folder.0.join("mine/file"), "precious").expect("the folder can be written");
    let error = error_of(&folder.options("mine"));
    assert!(error.contains("is there already: choose another name, or another --folder"), "{error}");
    assert_eq!(folder.read("mine/file"), "precious");
    assert_eq!(fs::read_dir(folder.0.join("mine")).expect("it is there").count(), 1);

    let nowhere = NewPluginOptions { folder: Some(folder.0.join("no/such/folder")), ..folder.options("a") };
    assert!(error_of(&nowhere).contains("cannot make the folder"));
}

#[test]
fn a_crate_comes_from_somewhere() {
    let folder = Folder::new("sources");
    let no_checkout = NewPluginOptions { path: Some(folder.0.clone()), ..folder.options("a") };
    assert!(
        error_of(&no_checkout)
            .contains("is no checkout of Supercargo: there is no crates/sdk/Cargo.toml in it")
    );

    let nothing = NewPluginOptions { path: None, ..folder.options("a") };
    let error = Sources::chosen(&nothing, &folder.0).expect_err("there is no checkout around it");
    assert!(error.to_string().contains("--path, or its repository with --git"), "{error}");
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert!(matches!(Sources::chosen(&nothing, &around), Ok(Sources::Checkout { .. })));

    let controlled = NewPluginOptions { path: None, git: Some("a\nb".to_owned()), ..folder.options("a") };
    assert!(error_of(&controlled).contains("--git \"a\\nb\" cannot stand in a manifest"));
    assert!(!folder.0.join("a").exists(), "nothing is left of what cannot be done");
}

#[test]
fn names_that_would_not_build_are_refused() {
    let long = "a".repeat(65);
    let table = [
        ("", "begins with a letter"),
        ("GpuNodes", "lower case letters, digits and '-', and begins with a letter; gpu-nodes can"),
        ("gpu_nodes", "; gpu-nodes can"),
        ("../gpu", "; gpu can"),
        ("9lives", "begins with a letter"),
        ("a-", "a letter or a digit follows each '-'; a can"),
        ("a--b", "a letter or a digit follows each '-'; a-b can"),
        ("ü", "lower case letters"),
        (&long, "more than 64 letters"),
        ("match", "a word of Rust's"),
        ("std", "Rust, Cargo or Supercargo has something of that name"),
        ("supercargo-model", "Rust, Cargo or Supercargo has something of that name"),
        ("node-name", "there is a plugin NodeName already"),
        (
            "filter",
            "Filter is the name of something that every plugin uses: choose another one, such as my-filter",
        ),
        ("no", "such as my-no"),
        ("string", "such as my-string"),
    ];
    for (name, expected) in table {
        let error = PluginNames::from_crate(name, &registry()).expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn names_of_the_plugin_follow_from_that_of_the_crate() {
    for (name, plugin, module) in
        [("gpu", "Gpu", "gpu"), ("gpu-nodes-2", "GpuNodes2", "gpu_nodes_2"), ("a-b", "AB", "a_b")]
    {
        let names = PluginNames::from_crate(name, &registry()).expect("it is a name");
        assert_eq!((names.plugin.as_str(), names.module.as_str()), (plugin, module));
    }
}

/// The list of names that a plugin must not have is the prelude's.
#[test]
fn no_name_of_the_prelude_is_forgotten() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/src/prelude.rs");
    let text = fs::read_to_string(file).expect("the prelude is there");
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let words = code.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    let is_type = |word: &&str| word.starts_with(char::is_uppercase) && !word.contains('_');
    let exported: BTreeSet<&str> = words.filter(is_type).collect();
    assert_eq!(names::PRELUDE_NAMES.iter().copied().collect::<BTreeSet<_>>(), exported);
}
