//! What the commands print, to the letter.

use clap::{CommandFactory, Parser};

use crate::CommandLine;
use crate::config_check::{self, CheckOptions, Format};
use crate::config_default::{self, DefaultOptions};
use crate::outcome::Outcome;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

const BROKEN: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 0
profiles:
- plugins:
    score:
      enabled:
      - name: ImageLocalty
      - name: NodeAffinity
      disabled:
      - name: NodePorts
    bind:
      disabled:
      - name: '*'
  pluginConfig:
  - name: InterPodAffinity
    args:
      hardPodAffinityWeight: 101
";

/// A file in a directory of its own, which goes with it.
struct Files {
    directory: std::path::PathBuf,
}

impl Files {
    fn new(test: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("supercargo-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory can be written");
        Files { directory }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.directory.join(name);
        std::fs::write(&path, text).expect("the temporary directory can be written");
        path.to_str().expect("the temporary directory has a plain name").to_owned()
    }

    /// An outcome in which the directory is gone from the names.
    fn check(&self, files: &[&String], output: Format) -> Outcome {
        let options = CheckOptions { files: files.iter().map(|file| (*file).clone()).collect(), output };
        let mut outcome = config_check::run(&options, &supercargo_plugins::registry());
        let prefix = format!("{}/", self.directory.display());
        outcome.stdout = outcome.stdout.replace(&prefix, "");
        outcome.stderr = outcome.stderr.replace(&prefix, "");
        outcome
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // A directory that is left behind does no harm.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn check_prints_one_problem_a_line() {
    let files = Files::new("text");
    let broken = files.write("broken.yaml", BROKEN);
    let unreadable = files.write("unreadable.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: [\n");
    let outcome = files.check(&[&broken, &unreadable], Format::Text);
    assert_eq!(
        outcome.stdout,
        "\
broken.yaml: error C040 parallelism: Invalid value: 0: should be an integer value greater than zero
broken.yaml: error C022 profiles[0].pluginConfig[0].args.hardPodAffinityWeight: initializing plugin \"InterPodAffinity\": Invalid value: 101: not in valid range [0, 100]
broken.yaml: error C030 profiles[0].plugins.score.enabled[0].name: ScorePlugin \"ImageLocalty\" does not exist
    hint: did you mean \"ImageLocality\"?
broken.yaml: error C034 profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name \"default-scheduler\"
    hint: enable DefaultBinder at multiPoint or bind
broken.yaml: warning W003 profiles[0].plugins.score.enabled[1]: NodeAffinity gets weight 1, not its default of 2
    hint: write `weight: 2` to keep it
broken.yaml: warning W007 profiles[0].plugins.score.disabled[0].name: NodePorts takes no part in score, so there is nothing to disable
unreadable.yaml: error C001: not YAML: unclosed bracket '[' at line 2, column 7
"
    );
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", 1));
}

#[test]
fn check_prints_json() {
    let files = Files::new("json");
    let warned = files.write("warned.yaml", &format!("{HEAD}percentageOfNodesToScore: 0\n"));
    let outcome = files.check(&[&warned], Format::Json);
    assert_eq!(
        outcome.stdout,
        r#"[
  {
    "file": "warned.yaml",
    "severity": "warning",
    "code": "W009",
    "path": "percentageOfNodesToScore",
    "message": "0 means all nodes here, where kube-scheduler looks at a share that depends on the cluster's size"
  }
]
"#
    );
    assert_eq!((outcome.stderr.as_str(), outcome.code), ("", 0), "warnings are fine");
}

#[test]
fn check_goes_on_after_a_file_that_is_missing() {
    let files = Files::new("missing");
    let fine = files.write("fine.yaml", HEAD);
    let missing = fine.replace("fine", "missing");
    let outcome = files.check(&[&missing, &fine], Format::Text);
    assert_eq!(outcome.stdout, "");
    assert_eq!(outcome.stderr, "error: cannot read missing.yaml: No such file or directory (os error 2)\n");
    assert_eq!(outcome.code, 1);
}

#[test]
fn default_prints_what_check_accepts_and_default_repeats() {
    let registry = supercargo_plugins::registry();
    let first = config_default::run(&DefaultOptions { config: None }, &registry).expect("needs no file");
    let files = Files::new("default");
    let file = files.write("default.yaml", &first.stdout);
    let second =
        config_default::run(&DefaultOptions { config: Some(file.clone()) }, &registry).expect("is there");
    assert_eq!(first, second);
    assert_eq!(files.check(&[&file], Format::Text).code, 0);
}

#[test]
fn default_of_what_is_no_configuration_prints_nothing() {
    let files = Files::new("no-default");
    let file = files.write("pod.yaml", "apiVersion: v1\nkind: Pod\n");
    let outcome =
        config_default::run(&DefaultOptions { config: Some(file.clone()) }, &supercargo_plugins::registry())
            .expect("is there");
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("", 1));
    assert!(
        outcome
            .stderr
            .starts_with(&format!("error: {file} is not a configuration\n{file}: error C009 kind: "))
    );
}

#[test]
fn usage() {
    CommandLine::command().debug_assert();
    for wrong in [&["supercargo"][..], &["supercargo", "config", "check"], &["supercargo", "confg"]] {
        let error = CommandLine::try_parse_from(wrong).expect_err("something is missing");
        assert_eq!(error.exit_code(), 2, "{wrong:?}");
    }
    for right in [
        &["supercargo", "config", "check", "-", "a.yaml", "-o", "json"][..],
        &["supercargo", "config", "default"],
    ] {
        CommandLine::try_parse_from(right).expect("is right");
    }
}
