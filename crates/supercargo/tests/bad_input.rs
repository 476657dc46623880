//! What the binary says to bad input: what is wrong, where, and how it ends. Nothing panics, nothing is half-written.

mod support;

use support::{check, supercargo};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

#[test]
fn configurations() {
    let config = |body: &str| format!("{HEAD}{body}");
    for (text, expected) in [
        ("a: [".to_owned(), &["C001", "line"][..]),
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

#[test]
fn a_line_that_is_cut_ends_the_run_after_whole_verdicts() {
    let good = case(NODE, POD);
    let output = supercargo(&["verdicts"], &format!("{good}{}", &good[..good.len() / 2]));
    check(&output, 1, &["line 2 of the input is not a case", "EOF"]);
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(output.stdout.ends_with(b"\n"));
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
