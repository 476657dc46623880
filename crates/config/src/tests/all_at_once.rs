//! All problems of a file at once, each with its place; one hides no other, and none follows from another.

use super::{HEAD, check, check_hint, check_places, plugins, support};
use crate::{load_all, read};

#[test]
fn no_problem_hides_another() {
    let text = format!(
        "{HEAD}parallelism: -1\nprofiles:\n- plugins:\n    score:\n      enabled:\n      - name: NodeAfinity\n  \
         pluginConfigs: []\n"
    );
    check(
        &text,
        &[
            "C003 profiles[0].pluginConfigs: unknown field \"pluginConfigs\"",
            "C040 parallelism: Invalid value: -1: should be an integer value greater than zero",
            "C030 profiles[0].plugins.score.enabled[0].name: ScorePlugin \"NodeAfinity\" does not exist",
        ],
    );
    check_places(&text, &["9:3", "3:1", "8:9"]);
}

#[test]
fn what_cannot_be_read_has_no_other_problems() {
    for (rest, expected) in [
        // The default holds in its place.
        (
            "leaderElection: {leaderElect: 'true', leaseDuration: 5s}",
            &[
                "C004 leaderElection.leaderElect: expected true or false, got the string \"true\"",
                "C044 leaderElection.leaseDuration: Invalid value: \"5s\": must be greater than `RenewDeadline`",
            ][..],
        ),
        (
            "podInitialBackoffSeconds: x\npodMaxBackoffSeconds: 0",
            &[
                "C004 podInitialBackoffSeconds: expected an integer of 64 bits, got the string \"x\"",
                "C042 podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds",
            ],
        ),
        (
            "profiles: [{schedulerName: 5}, {schedulerName: b}, {schedulerNam: c}]",
            &[
                "C004 profiles[0].schedulerName: expected a string, got the number 5",
                "C003 profiles[2].schedulerNam: unknown field \"schedulerNam\"",
            ],
        ),
        (
            "profiles: [{plugins: {score: {enabled: [5, {name: NodeAffinity, weight: x}, {nmae: b}]}}}]",
            &[
                "C004 profiles[0].plugins.score.enabled[0]: expected an object, got the number 5",
                "C004 profiles[0].plugins.score.enabled[1].weight: expected an integer of 32 bits, got the string \"x\"",
                "C003 profiles[0].plugins.score.enabled[2].nmae: unknown field \"nmae\"",
            ],
        ),
        (
            "profiles: {}\nparallelism: 0",
            &[
                "C004 profiles: expected a list, got an object",
                "C040 parallelism: Invalid value: 0: should be an integer value greater than zero",
            ],
        ),
        (
            "parallelism: 0\nparallelism: -2",
            &[
                "C002 parallelism: field \"parallelism\" stands here twice",
                "C040 parallelism: Invalid value: -2: should be an integer value greater than zero",
            ],
        ),
    ] {
        check(&format!("{HEAD}{rest}\n"), expected);
    }
}

#[test]
fn arguments_are_read_to_their_end() {
    check(
        &super::plugin_config(
            "[{name: NodeResourcesFit, args: {ignoredResource: [a], ignoredResources: [5, {}], \
             ignoredResourceGroups: [a/b]}}, {name: InterPodAffinity, args: {hardPodAffinityWeight: 101, x: 1}}]",
        ),
        &[
            "C021 profiles[0].pluginConfig[0].args.ignoredResource: decoding args for plugin NodeResourcesFit: unknown \
             field \"ignoredResource\"",
            "C021 profiles[0].pluginConfig[0].args.ignoredResources[0]: decoding args for plugin NodeResourcesFit: \
             expected a string, got the number 5",
            "C021 profiles[0].pluginConfig[0].args.ignoredResources[1]: decoding args for plugin NodeResourcesFit: \
             expected a string, got an object",
            "C022 profiles[0].pluginConfig[0].args.ignoredResourceGroups[0]: initializing plugin \"NodeResourcesFit\": \
             Invalid value: \"a/b\": resource group name can't contain '/'",
            "C021 profiles[0].pluginConfig[1].args.x: decoding args for plugin InterPodAffinity: unknown field \"x\"",
            "C022 profiles[0].pluginConfig[1].args.hardPodAffinityWeight: initializing plugin \"InterPodAffinity\": \
             Invalid value: 101: not in valid range [0-100]",
        ],
    );
}

#[test]
fn a_document_whose_kind_is_missing_is_checked_all_the_same() {
    let rest = "parallelism: 0\n";
    let problem = "C040 parallelism: Invalid value: 0: should be an integer value greater than zero";
    for (head, first) in [
        ("apiVersion: kubescheduler.config.k8s.io/v1\n", "C007 kind: Object 'Kind' is missing"),
        ("kind: KubeSchedulerConfiguration\n", "C007 apiVersion: Object 'apiVersion' is missing"),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfig\n",
            "C009 kind: couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, \
             Kind=KubeSchedulerConfig",
        ),
    ] {
        let follows = if first.contains("Kind=") { &[first][..] } else { &[first, problem] };
        check(&format!("{head}{rest}"), follows);
    }
    check_hint(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfigurations\n",
        "did you mean \"KubeSchedulerConfiguration\"?",
    );
}

#[test]
fn durations() {
    for (written, code, hint) in [
        ("15", "C004", "write \"15s\""),
        ("'15'", "C005", "write \"15s\""),
        ("'1.5'", "C005", "write \"1.5s\""),
        ("15sec", "C005", "write \"15s\""),
        ("'15 s'", "C005", "write \"15s\""),
        ("5 minutes", "C005", "write \"5m\""),
        ("1d", "C005", "write \"24h\""),
        ("20S", "C005", "write \"20s\""),
        (
            "2x",
            "C005",
            "write a duration as \"15s\", \"1m30s\" or \"0s\"; the units are h, m, s, ms, us and ns",
        ),
        ("''", "C005", "write a duration as \"15s\", \"1m30s\" or \"0s\""),
        ("soon", "C005", "write a duration as \"15s\", \"1m30s\" or \"0s\""),
        ("[1]", "C004", "write a duration as \"15s\", \"1m30s\" or \"0s\""),
    ] {
        for field in [
            "leaderElection: {leaseDuration: ",
            "extenders: [{urlPrefix: 'http://a', filterVerb: f, httpTimeout: ",
        ] {
            let end = if field.starts_with('l') { "}" } else { "}]" };
            let text = format!("{HEAD}{field}{written}{end}\n");
            check_hint(&text, hint);
            let problems = read(&text).check(&support::registry());
            assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), [code], "{text}");
        }
    }
}

/// A ConfigMap with an entry, as kubectl prints it.
fn config_map(entry: &str) -> String {
    let lines: String = entry.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  other.txt: hello\n  config.yaml: |\n{lines}"
    )
}

#[test]
fn problems_inside_a_config_map_have_the_lines_of_the_file() {
    let text = config_map(&format!("{HEAD}parallelism: 0\nprofiles:\n- schedulerNam: x\n"));
    let read = "is no scheduler's configuration, and was not read";
    check(
        &text,
        &[
            "C003 data[config.yaml].profiles[0].schedulerNam: unknown field \"schedulerNam\"",
            &format!("W115 data[other.txt]: {read}"),
            "C040 data[config.yaml].parallelism: Invalid value: 0: should be an integer value greater than zero",
        ],
    );
    check_places(&text, &["11:7", "5:3", "9:5"]);
}

#[test]
fn broken_text_inside_a_config_map() {
    let broken = format!("{HEAD}profiles: [\n");
    let text = config_map(&broken);
    let other = "W115 data[other.txt]: is no scheduler's configuration, and was not read";
    check(&text, &["C001 data[config.yaml]: not YAML: unclosed bracket '['", other]);
    check_places(&text, &["9:15", "5:3"]);
    // Between quotes, the text has no lines of its own in the file.
    let json = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": broken}});
    check(
        &json.to_string(),
        &["C001 data[config.yaml]: not YAML: unclosed bracket '[', in line 3 of the entry"],
    );
    // What was hardly meant for us is no error beside what was.
    let text = config_map(HEAD).replace("hello", "'[broken'");
    check(
        &text,
        &[
            "W115 data[other.txt]: is no scheduler's configuration, and was not read: not YAML: unclosed bracket '[', \
           in line 1 of the entry",
        ],
    );
    check_hint(
        "apiVersion: v1\nkind: ConfigMap\ndata: {a: x, b: y}\n",
        "an entry is one if its text has `kind: KubeSchedulerConfiguration`; the entries are a, b",
    );
}

#[test]
fn other_kinds_are_named() {
    for (text, hint) in [
        (
            "apiVersion: v1\nkind: List\nitems: [{kind: ConfigMap, metadata: {namespace: shop, name: c}}, {kind: Pod}]",
            "this is a list of 2 objects (ConfigMap shop/c, Pod); give a KubeSchedulerConfiguration of \
             kubescheduler.config.k8s.io/v1, or one ConfigMap that holds it: kubectl get configmap c -o yaml",
        ),
        (
            "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration",
            "this is kubeadm's configuration; give the KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 \
             that `scheduler.extraArgs` names with config",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment",
            "this is a Deployment, which may run a scheduler; give the KubeSchedulerConfiguration of \
             kubescheduler.config.k8s.io/v1 that its --config names, or the ConfigMap that it mounts there",
        ),
        (
            "apiVersion: v1\nkind: Config",
            "this is a kubeconfig, which `--kubeconfig` takes; give a KubeSchedulerConfiguration of \
             kubescheduler.config.k8s.io/v1",
        ),
        (
            "a: {{ .Values.x }}\n",
            "this looks like a template: render it first, with `helm template` for example",
        ),
        ("a:\n\tb: 1\n", "a tab indents this line: YAML wants spaces"),
    ] {
        check_hint(text, hint);
    }
}

/// No message names a type of Rust, or an option of a parser.
#[test]
fn messages_are_in_words() {
    let long: String = (0..300_000).map(|_| "- a\n").collect();
    let bombs = format!("a: &a [x]\nb: [{}]\n", "*a, ".repeat(100_000));
    for text in [
        long.as_str(),
        &bombs,
        "a: &a [*a]\n",
        "? [a]\n: b\n",
        "*a\n",
        "!!binary x\n",
        "a: .inf\n",
        "%YAML 9\n---\na\n",
        "a: !x b\n",
        "<<: 5\n",
        "null: 5\n",
        "~: 5\n",
        "a: 1e999\n",
        "{\"a\": 1e999}",
        "{\"a\": \"\\ud800\"}",
        "a: b: c\n",
        &format!("{}1", "[".repeat(100)),
        &format!("{}1", "{\"a\":".repeat(200)),
        "\u{0}",
        "- a\nb: c\n",
        "a: 'x\n",
        "a: \"\\q\"\n",
        "@a\n",
        &plugins("{score: {enabled: [{name: &a NodeName}, {name: *b}]}}"),
    ] {
        let problems = read(text).check(&support::registry());
        let shown: String = text.chars().take(40).collect();
        assert!(problems.has_errors(), "{shown}");
        for word in [
            "struct", "enum", "Options", "budget", "weak", "i32", "u64", "deserial", "serde", "Policy", "_",
            "visitor",
        ] {
            assert!(!problems.to_string().contains(word), "{word:?} of {shown:?}: {problems}");
        }
    }
}

#[test]
fn positions_of_several_files_say_which() {
    let config = "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n\
                  algorithmSource: {policy: {file: {path: /etc/policy.json}}}\nx: 1\n";
    let policy = "{\"apiVersion\": \"v1\", \"kind\": \"Policy\",\n \"predicates\": [{\"name\": \"Nope\"}]}";
    let problems = load_all(&[config, policy]).expect_err("both are wrong");
    let found: Vec<(usize, u64, &str)> = problems
        .iter()
        .map(|problem| {
            let position = problem.position.expect("both have places");
            (position.file, position.line, problem.code)
        })
        .collect();
    assert_eq!(found, [(0, 4, "C003"), (1, 2, "C073")], "{problems}");
}
