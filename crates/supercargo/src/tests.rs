//! What the commands print, to the letter.

use clap::{CommandFactory, Parser};

use crate::CommandLine;
use crate::config_check::{self, CheckOptions, Format};
use crate::config_convert::{self, ConvertFormat, ConvertOptions};
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
broken.yaml:3:1: error C040 parallelism: Invalid value: 0: should be an integer value greater than zero
broken.yaml:18:7: error C022 profiles[0].pluginConfig[0].args.hardPodAffinityWeight: initializing plugin \"InterPodAffinity\": Invalid value: 101: not in valid range [0, 100]
broken.yaml:8:9: error C030 profiles[0].plugins.score.enabled[0].name: ScorePlugin \"ImageLocalty\" does not exist
    hint: did you mean \"ImageLocality\"?
broken.yaml:12:5: error C034 profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name \"default-scheduler\"
    hint: enable DefaultBinder at multiPoint or bind
broken.yaml:9:9: warning W003 profiles[0].plugins.score.enabled[1]: NodeAffinity gets weight 1, not its default of 2
    hint: write `weight: 2` to keep it
broken.yaml:11:9: warning W007 profiles[0].plugins.score.disabled[0].name: NodePorts takes no part in score, so there is nothing to disable
unreadable.yaml:2:7: error C001: not YAML: unclosed bracket '['
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
    "message": "0 means all nodes here, where kube-scheduler looks at a share that depends on the cluster's size",
    "line": 3,
    "column": 1
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
    assert_eq!(
        outcome.stdout,
        "missing.yaml: error C012: cannot read missing.yaml: No such file or directory (os error 2)\n"
    );
    assert_eq!(outcome.stderr, "");
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
    assert_eq!((first.stdout, first.code), (second.stdout, second.code));
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
            .starts_with(&format!("error: {file} is not a configuration\n{file}:2:1: error C009 kind: "))
    );
}

#[test]
fn default_says_what_is_wrong_with_what_it_completes() {
    let files = Files::new("wrong-default");
    let table = [
        ("percentageOfNodesToScore: 0\n", ":3:1: warning W009 percentageOfNodesToScore: ", 0),
        ("parallelism: -1\n", ":3:1: error C040 parallelism: ", 1),
    ];
    for (text, expected, code) in table {
        let file = files.write("wrong.yaml", &format!("{HEAD}{text}"));
        let options = DefaultOptions { config: Some(file.clone()) };
        let outcome = config_default::run(&options, &supercargo_plugins::registry()).expect("is there");
        assert_eq!(outcome.code, code, "{text}");
        assert!(outcome.stderr.contains(&format!("{file}{expected}")), "{}", outcome.stderr);
        assert_eq!(outcome.stdout.contains(text), code == 0, "{}", outcome.stdout);
    }
}

const OLD: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: EBSLimits}, {name: Mine}]}
";

fn convert(files: &Files, names: &[&String], output: ConvertFormat) -> Outcome {
    let options = ConvertOptions { files: names.iter().map(|name| (*name).clone()).collect(), output };
    let mut outcome = config_convert::run(&options).expect("the files are there");
    outcome.stderr = outcome.stderr.replace(&format!("{}/", files.directory.display()), "");
    outcome
}

#[test]
fn convert_prints_what_kube_scheduler_reads() {
    let files = Files::new("convert");
    let file = files.write("old.yaml", OLD);
    let outcome = convert(&files, &[&file], ConvertFormat::Yaml);
    assert_eq!(
        outcome.stdout,
        "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: Mine
  schedulerName: default-scheduler
"
    );
    let said = "old.yaml:5:28: warning W102 profiles[0].plugins.multiPoint.enabled[0]: EBSLimits is part of NodeVolumeLimits now\n";
    assert!(outcome.stderr.ends_with(said), "{}", outcome.stderr);
    assert_eq!(outcome.code, 0, "warnings are fine");

    let json = convert(&files, &[&file], ConvertFormat::Json);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).expect("is JSON");
    assert_eq!(value["profiles"][0]["plugins"]["multiPoint"]["enabled"][0]["name"], "Mine");
    let again = files.write("new.json", &json.stdout);
    assert_eq!(convert(&files, &[&again], ConvertFormat::Yaml), Outcome { stderr: String::new(), ..outcome });
}

#[test]
fn convert_takes_a_configuration_and_its_policy() {
    let files = Files::new("convert-policy");
    let config = files.write(
        "config.yaml",
        "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n\
         algorithmSource: {policy: {file: {path: /etc/policy.json}}}\n",
    );
    let policy = files.write("policy.json", r#"{"apiVersion": "v1", "kind": "Policy", "priorities": []}"#);
    let alone = convert(&files, &[&config], ConvertFormat::Yaml);
    assert_eq!((alone.stdout.as_str(), alone.code), ("", 1));
    assert!(
        alone.stderr.starts_with("config.yaml:3:35: error C070 algorithmSource.policy.file.path: "),
        "{}",
        alone.stderr
    );
    let both = convert(&files, &[&config, &policy], ConvertFormat::Yaml);
    assert_eq!(both.code, 0);
    assert!(both.stdout.contains("  - name: ImageLocality\n"), "{}", both.stdout);
}

/// The only thing that can be wrong with what old files come to is that they name plugins of others.
#[test]
fn what_old_files_come_to_is_accepted() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/tests/fixtures/legacy");
    let registry = supercargo_plugins::registry();
    let theirs = ["QosAware", "sample2", "NetworkTraffic", "NodeNumber", "Mine", "Other"];
    let mut converted = 0;
    for entry in std::fs::read_dir(folder).expect("the fixtures are there") {
        let path = entry.expect("can be listed").path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Ok(loaded) = supercargo_config::load(&text) else { continue };
        converted += 1;
        for problem in supercargo_config::validate(&loaded.kube, &registry).errors() {
            let foreign =
                theirs.iter().any(|name| problem.message.contains(&format!("{name:?} does not exist")));
            assert!(problem.code == "C030" && foreign, "{}: {problem}", path.display());
        }
    }
    assert!(converted >= 15, "only {converted} were converted");
}

#[test]
fn check_says_what_changed_and_what_is_wrong() {
    let files = Files::new("check-old");
    let file = files.write("old.yaml", OLD);
    let outcome = files.check(&[&file], Format::Text);
    assert_eq!(
        outcome.stdout,
        "\
old.yaml:1:1: warning W100 apiVersion: kubescheduler.config.k8s.io/v1beta3 was converted to kubescheduler.config.k8s.io/v1, with the defaults of Kubernetes 1.28 kept
    hint: what has a line is of this file; other paths are of the converted one, which `supercargo config convert` prints
old.yaml:5:28: warning W102 profiles[0].plugins.multiPoint.enabled[0]: EBSLimits is part of NodeVolumeLimits now
old.yaml: error C030 profiles[0].plugins.multiPoint.enabled[0].name: PreFilterPlugin \"Mine\" does not exist
"
    );
    assert_eq!(outcome.code, 1);
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
        &["supercargo", "config", "convert", "config.yaml", "policy.json", "-o", "json"],
    ] {
        CommandLine::try_parse_from(right).expect("is right");
    }
}

#[test]
fn a_line_of_kube_schedulers_is_a_run() {
    let parsed = |line: &str| crate::parse(line.split_whitespace().map(Into::into).collect());
    for line in [
        "kube-scheduler",
        "/usr/local/bin/kube-scheduler --authentication-kubeconfig=/etc/kubernetes/scheduler.conf --leader-elect=true --v=2",
        "kube-scheduler -v2",
        "kube-scheduler run --v=2",
        "/app --config=/etc/kubernetes/scheduler-config.yaml --v=3",
        "supercargo --config c.yaml",
        "supercargo run",
    ] {
        let found = parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(matches!(found.command, crate::Command::Run(_)), "{line}: {found:?}");
    }
    let flags = parsed("app --config=/c.yaml --leader-elect=false").expect("a run");
    let crate::Command::Run(flags) = flags.command else { panic!("not run") };
    assert_eq!(flags.given.iter().map(String::as_str).collect::<Vec<_>>(), ["config", "leader-elect"]);
    assert!(matches!(
        parsed("kube-scheduler config check c.yaml").expect("a check").command,
        crate::Command::Config(_)
    ));
    for (line, expected) in [
        ("supercargo", clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand),
        ("app --help", clap::error::ErrorKind::DisplayHelp),
        ("supercargo --version", clap::error::ErrorKind::DisplayVersion),
        ("kube-scheduler --version", clap::error::ErrorKind::DisplayVersion),
        ("kube-scheduler --help", clap::error::ErrorKind::DisplayHelp),
        ("supercargo --nonsense", clap::error::ErrorKind::UnknownArgument),
        ("kube-scheduler nonsense", clap::error::ErrorKind::UnknownArgument),
    ] {
        assert_eq!(parsed(line).expect_err(line).kind(), expected, "{line}");
    }
}
