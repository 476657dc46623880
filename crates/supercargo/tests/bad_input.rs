//! What the binary says to bad input: what is wrong, where, and how it ends. Nothing panics, nothing is half-written.

mod support;

use support::{check, supercargo};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

#[test]
fn configurations() {
    let config = |body: &str| format!("{HEAD}{body}");
    for (text, expected) in [
        ("a: [".to_owned(), &["<stdin>:1:4: error C001"][..]),
        (config("profiles:\n- schedulerNam: x\n"), &["C003", "profiles[0].schedulerNam", "schedulerName"]),
        (
            config(
                "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality}, {name: NodeAfinity}]}}\n",
            ),
            &["C030", "profiles[0].plugins.score.enabled[1].name", "did you mean \"NodeAffinity\"?"],
        ),
        (
            config("profiles:\n- schedulerName: a\n- schedulerName: a\n"),
            &["C047", "profiles[1].schedulerName"],
        ),
        (
            config("profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: 0}]}}\n"),
            &["C039", "profiles[0].plugins.score.enabled[0].weight", "hint: disable it"],
        ),
        (
            config("profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: 3000000000}]}}\n"),
            &["C004", "profiles[0].plugins.score.enabled[0].weight"],
        ),
        (
            config(
                "profiles:\n- pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Best}}}]\n",
            ),
            &["C022", "profiles[0].pluginConfig[0].args.scoringStrategy.type", "LeastAllocated"],
        ),
        (
            config("percentageOfNodesToScore: 101\nparallelism: -1\n"),
            &["C041 percentageOfNodesToScore", "C040 parallelism"],
        ),
        ("apiVersion: v1\nkind: Pod\n".to_owned(), &["C009"]),
        (String::new(), &["C007"]),
    ] {
        check(&supercargo(&["config", "check", "-"], &text), 1, expected);
    }
}

#[test]
fn the_sum_of_weights_must_fit() {
    let plugins: String = ["NodeAffinity", "ImageLocality"]
        .map(|name| format!("{{name: {name}, weight: 2147483647}}, "))
        .concat();
    let text = format!("{HEAD}profiles:\n- plugins: {{score: {{enabled: [{plugins}]}}}}\n");
    // 32-bit weights cannot overflow 64 bits by themselves; a negative one is where upstream's check ends up.
    check(&supercargo(&["config", "check", "-"], &text), 0, &[]);
    let text = text.replacen("2147483647", "-1", 1);
    check(
        &supercargo(&["config", "check", "-"], &text),
        1,
        &["C035", "total score of Score plugins could overflow"],
    );
}

#[test]
fn a_valid_configuration_ends_well() {
    check(&supercargo(&["config", "check", "-"], HEAD), 0, &[]);
    check(&supercargo(&["config", "check", "no-such-file.yaml"], ""), 1, &["cannot read no-such-file.yaml"]);
}

#[test]
fn all_problems_of_all_files_are_found_at_once() {
    let three = format!(
        "{HEAD}parallelism: -1\nprofiles:\n- plugins:\n    score:\n      enabled: [{{name: NodeAfinity}}]\n  pluginConfigs: []\n"
    );
    let output = supercargo(&["config", "check", "no-such-file.yaml", "-", "nor-this.yaml"], &three);
    check(
        &output,
        1,
        &[
            "no-such-file.yaml: error C012: cannot read no-such-file.yaml",
            "<stdin>:3:1: error C040 parallelism",
            "<stdin>:7:18: error C030 profiles[0].plugins.score.enabled[0].name",
            "did you mean \"NodeAffinity\"?",
            "<stdin>:8:3: error C003 profiles[0].pluginConfigs",
            "did you mean \"pluginConfig\"?",
            "nor-this.yaml: error C012",
        ],
    );
    // Whoever else reads a configuration says as much.
    let problems = ["<stdin>:3:1: error C040", "<stdin>:7:18: error C030", "<stdin>:8:3: error C003"];
    for arguments in [
        &["run", "--master=http://127.0.0.1:1", "--secure-port=0", "--config", "-"][..],
        &["explain", "-f", "/dev/null", "--config", "-"],
        &["rbac", "--config", "-"],
        &["config", "default", "--config", "-"],
    ] {
        let output = supercargo(arguments, &three);
        let said: Vec<String> =
            problems
                .iter()
                .map(|problem| {
                    if arguments[0] == "run" {
                        problem.replace("<stdin>", "-")
                    } else {
                        (*problem).to_owned()
                    }
                })
                .collect();
        check(&output, 1, &said.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn extenders_that_cannot_be_asked_are_warned_of() {
    let text = format!(
        "{HEAD}extenders:\n- urlPrefix: not a url\n  filterVerb: f\n  httpTimeout: -5s\n  weight: -5\n  tlsConfig: \
         {{caFile: /no/such/file}}\n"
    );
    check(
        &supercargo(&["config", "check", "-"], &text),
        0,
        &[
            "<stdin>:4:3: warning W013",
            "<stdin>:6:3: warning W015",
            "<stdin>:7:3: warning W016",
            "<stdin>:8:15: warning W019",
        ],
    );
}

/// Where output goes that cannot be written, and that somebody closed.
#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_ends_with_1() {
    let run = |arguments: &[&str], stdout: std::process::Stdio| {
        std::process::Command::new(env!("CARGO_BIN_EXE_supercargo"))
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .stdout(stdout)
            .output()
            .expect("the binary was built for this test")
    };
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["help", "config"],
        &["config", "default"],
        &["rbac"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = run(arguments, full.into());
        check(&output, 1, &["error: cannot write: No space left on device"]);
        let (reader, writer) = std::io::pipe().expect("pipes can be made");
        drop(reader);
        let output = run(arguments, writer.into());
        check(&output, 0, &[]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn versions_and_flags_are_those_of_kube_scheduler() {
    for arguments in [&["--version"][..], &["run", "--version"]] {
        check(
            &supercargo(arguments, ""),
            0,
            &[env!("CARGO_PKG_VERSION"), ", decides as kube-scheduler 1.36\n"],
        );
    }
    for (flag, error) in [
        ("--feature-gates=Nonsense=true", "--feature-gates: unrecognized feature gate: Nonsense"),
        ("--tls-cipher-suites=FOO", "--tls-cipher-suites: Cipher suite FOO not supported or doesn't exist"),
        // It is taken, so that what is missing is a cluster.
        ("--min-compatibility-version=1.35", "no configuration has been provided"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_supercargo"))
            .args(["run", flag])
            .env_remove("KUBERNETES_SERVICE_HOST")
            .env_remove("KUBECONFIG")
            .output()
            .expect("the binary was built for this test");
        check(&output, 1, &[error]);
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in [&["config"][..], &["config", "check"], &["verdict"], &["verdicts", "--fast"]] {
        check(&supercargo(arguments, ""), 2, &["Usage"]);
    }
}

const NODE: &str = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"1","pods":"9"}}}"#;
const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"d"},"spec":{"containers":[{"name":"c"}]}}"#;

fn case(objects: &str, pod: &str) -> String {
    format!("{{\"name\":\"case\",\"objects\":[{objects}],\"pods\":[{pod}]}}\n")
}

#[test]
fn cases_that_cannot_be_judged_get_their_error_and_end_with_1() {
    let bad_quantity = NODE.replace(r#""cpu":"1""#, r#""cpu":"1x""#);
    let unknown_kind = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}"#;
    let misspelt_kind = r#"{"apiVersion":"v1","kind":"Nod","metadata":{"name":"w"}}"#;
    for (text, expected) in [
        (case(&bad_quantity, POD), &["objects[0]", "Node n1", "status.allocatable", "1x"][..]),
        (case(unknown_kind, POD), &["objects[0]", "Widget", "is unknown"]),
        (case(misspelt_kind, POD), &["objects[0]", "Nod", "is unknown"]),
        (case(NODE, NODE), &["pods[0] is not a pod"]),
        (case("7", POD), &["objects[0]", "not a Kubernetes object"]),
        (case(&NODE.replace(r#""n1""#, "[1]"), POD), &["objects[0]", "metadata.name"]),
    ] {
        let good = case(NODE, POD);
        let output = supercargo(&["verdicts"], &format!("{text}{good}"));
        check(&output, 1, expected);
        let lines: Vec<&[u8]> = output.stdout.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 2, "a verdict a case");
        for line in lines {
            let verdict: serde_json::Value = serde_json::from_slice(line).expect("each line is whole");
            assert_eq!(verdict["name"], "case");
        }
    }
}

/// A line that is no case gets a verdict that says so, and the lines after it are judged.
#[test]
fn lines_that_are_no_cases_hide_no_others() {
    let good = case(NODE, POD);
    let cut = &good[..good.len() / 2];
    let output = supercargo(&["verdicts"], &format!("{good}{cut}\nwords\n\n[]\n{good}"));
    let error =
        "error: 3 of 5 cases could not be judged; the first is line 2 of the input is not a case: EOF";
    check(&output, 1, &[error]);
    let text = String::from_utf8(output.stdout).expect("verdicts are text");
    let verdicts: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is whole")).collect();
    let names: Vec<&str> = verdicts.iter().filter_map(|verdict| verdict["name"].as_str()).collect();
    assert_eq!(names, ["case", "line 2", "line 3", "line 5", "case"]);
    assert_eq!(verdicts[0], verdicts[4]);
    assert!(verdicts[3]["error"].as_str().is_some_and(|error| error.contains("line 5")), "{text}");
}

/// Unschedulable is an answer, not an error.
#[test]
fn odd_clusters_get_verdicts() {
    let no_allocatable = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}"#;
    let bad_selector = POD.replace(
        r#""spec":{"#,
        r#""spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
            {"topologyKey":"zone","labelSelector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}]}},"#,
    );
    let bad_selector = bad_selector.replace('\n', "");
    for (text, message) in [
        (case("", POD), "0/0 nodes are available: preemption: no nodes available"),
        (case(no_allocatable, POD), "0/1 nodes are available: 1 Too many pods."),
        (
            case(NODE, &bad_selector),
            "parsing pod: requiredAffinityTerms: \\\"Is\\\" is not a valid label selector operator",
        ),
    ] {
        check(&supercargo(&["verdicts"], &text), 0, &[message]);
    }
    check(&supercargo(&["verdicts"], ""), 0, &[]);
}

/// A scheduler that took whatever cluster the shell points at would take over somebody's production. Commands that only read
/// use what kubectl uses.
#[test]
fn run_takes_no_cluster_that_is_not_named() {
    let kubeconfig = std::env::temp_dir().join(format!("supercargo-run-{}.yaml", std::process::id()));
    let text = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n\
                users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
                current-context: c\n";
    std::fs::write(&kubeconfig, text).expect("the temporary directory can be written");
    let run = |arguments: &[&str]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_supercargo"))
            .args(arguments)
            .env("KUBECONFIG", &kubeconfig)
            .env_remove("KUBERNETES_SERVICE_HOST")
            .stdin(std::process::Stdio::null())
            .output()
            .expect("the binary was built for this test")
    };
    let (scheduling, explaining) = (run(&["run", "--secure-port=0"]), run(&["explain"]));
    std::fs::remove_file(&kubeconfig).expect("it was written");
    let unnamed = "error: invalid configuration: no configuration has been provided";
    check(&scheduling, 1, &[unnamed, "--kubeconfig", "--master"]);
    check(&explaining, 1, &["onnection refused"]);
}
