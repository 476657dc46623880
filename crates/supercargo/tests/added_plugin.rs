//! Every subcommand knows a plugin that was added, and says so where it was not.

use std::path::{Path, PathBuf};

use supercargo::{Outcome, Plugins, TakenName, outcome_of};
use supercargo_sdk::prelude::*;

/// Lets pods only onto nodes with a berth.
struct Berths {
    args: BerthsArgs,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(crate = "supercargo_sdk::serde", default, deny_unknown_fields, rename_all = "camelCase")]
struct BerthsArgs {
    node: String,
}

impl Args for BerthsArgs {}

/// A custom resource that the plugin reads.
#[derive(Debug, Deserialize)]
#[serde(crate = "supercargo_sdk::serde")]
struct Berth {}

impl Kind for Berth {
    const ID: KindId =
        KindId { group: "harbour.example.com", version: "v1", kind: "Berth", plural: "berths" };
}

impl Plugin for Berths {
    const NAME: &'static str = "Berths";
    type Args = BerthsArgs;

    fn new(args: BerthsArgs) -> Self {
        Berths { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Name]).kind::<Berth>()
    }
}

impl Filter for Berths {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let is_free = self.args.node.is_empty() || **node.name() == *self.args.node;
        if is_free { Status::success() } else { Status::unresolvable("node(s) had no berth") }
    }
}

/// Only n1 of `examples/cluster.yaml` has a berth.
const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: KUBECONFIG}
profiles:
- schedulerName: harbour
  plugins:
    multiPoint:
      enabled: [{name: Berths}]
  pluginConfig:
  - name: Berths
    args: {node: NODE}
";

/// Nobody listens at port 1.
const KUBECONFIG: &str = "\
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
";

/// A folder with the files of a test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("supercargo-added-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory can be written");
        let folder = Folder(path);
        let config = CONFIG.replace("KUBECONFIG", &folder.path("kubeconfig"));
        for (name, text) in [
            ("kubeconfig", KUBECONFIG),
            ("config.yaml", &config.replace("NODE", "n1")),
            ("anywhere.yaml", &config.replace("NODE", "''")),
        ] {
            std::fs::write(folder.path(name), text).expect("the folder can be written");
        }
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the temporary directory has a plain name").to_owned()
    }

    /// A command line, in which names of files of the folder stand in braces.
    fn run(&self, line: &str, add: impl FnOnce(&mut Plugins) -> Result<(), TakenName>) -> Outcome {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster.yaml");
        let word = |word: &str| match word.strip_prefix('@') {
            Some("cluster.yaml") => example.to_str().expect("a plain name").to_owned(),
            Some(name) => self.path(name),
            None => word.to_owned(),
        };
        outcome_of(line.split(' ').map(word), add)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A subcommand with the plugin says this; without it, that there is no such plugin.
#[track_caller]
fn check(test: &str, line: &str, code: u8, expected: &[&str]) {
    let folder = Folder::new(test);
    let with = folder.run(line, Plugins::add::<Berths>);
    let text = format!("{}{}", with.stdout, with.stderr);
    assert_eq!(with.code, code, "{text}");
    for expected in expected {
        assert!(text.contains(expected), "{expected:?} is missing in:\n{text}");
    }
    let without = folder.run(line, |_| Ok(()));
    let text = format!("{}{}", without.stdout, without.stderr);
    assert!(text.contains("\"Berths\" does not exist"), "{text}");
}

#[test]
fn config_check_accepts_it() {
    check("check", "supercargo config check @config.yaml", 0, &[]);
}

#[test]
fn config_check_reads_its_arguments() {
    let folder = Folder::new("arguments");
    let wrong = CONFIG.replace("node: NODE", "nodes: n1");
    std::fs::write(folder.path("config.yaml"), wrong).expect("the folder can be written");
    let outcome = folder.run("supercargo config check @config.yaml", Plugins::add::<Berths>);
    assert!(outcome.stdout.contains("C021"), "{outcome:?}");
    assert!(outcome.stdout.contains("unknown field \"nodes\""), "{outcome:?}");
}

#[test]
fn config_default_prints_its_arguments() {
    let folder = Folder::new("default");
    let line = "supercargo config default --config @config.yaml";
    let outcome = folder.run(line, Plugins::add::<Berths>);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for expected in ["kind: BerthsArgs", "node: n1", "- name: Berths"] {
        assert!(outcome.stdout.contains(expected), "{expected:?} is missing in:\n{}", outcome.stdout);
    }
}

#[test]
fn explain_says_what_it_says() {
    let line = "supercargo explain -f @cluster.yaml --config @config.yaml --pod web-1";
    check("explain", line, 0, &["default/web-1 would go to n1", "1 of 3 nodes feasible"]);
}

#[test]
fn capacity_counts_with_it() {
    let line = "supercargo capacity -f @cluster.yaml --config @config.yaml --like web-1";
    check("capacity", line, 0, &["Berths", "node(s) had no berth"]);
}

#[test]
fn rbac_prints_what_it_reads() {
    let line = "/opt/harbour.exe rbac --config @config.yaml";
    check("rbac", line, 0, &["# Made by: harbour rbac --mode second", "harbour.example.com", "berths"]);
}

#[test]
fn dump_reads_what_it_reads() {
    let line = "supercargo dump --config @config.yaml --kubeconfig @kubeconfig";
    check("dump", line, 1, &["127.0.0.1:1"]);
}

#[test]
fn shadow_decides_with_it() {
    let line = "supercargo shadow --config @config.yaml --kubeconfig @kubeconfig --for 1ms";
    check("shadow", line, 0, &[]);
}

#[test]
fn bench_measures_it() {
    let line =
        "supercargo bench decide --config @anywhere.yaml --workload basic --nodes 10 --pods 20 --init 0";
    check("bench", line, 0, &["basic"]);
}

#[test]
fn run_begins_with_it() {
    let folder = Folder::new("run");
    let line = "supercargo run --config @config.yaml --write-config-to @written.yaml";
    let outcome = folder.run(line, Plugins::add::<Berths>);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let written = std::fs::read_to_string(folder.path("written.yaml")).expect("it was written");
    assert!(written.contains("- name: Berths"), "{written}");
    check("run-without", line, 0, &[]);
}

#[test]
fn a_name_that_is_taken_is_an_error() {
    struct Taken;
    impl Plugin for Taken {
        const NAME: &'static str = "NodeName";
        type Args = NoArgs;
        fn new(_: NoArgs) -> Self {
            Taken
        }
        fn extensions(points: Extensions<Self>) -> Extensions<Self> {
            points
        }
    }
    let outcome = outcome_of(["supercargo", "--version"], Plugins::add::<Taken>);
    let expected =
        "error: a plugin named NodeName already exists: give the one that this program adds another NAME\n";
    assert_eq!((outcome.stderr.as_str(), outcome.code), (expected, 1));
}
