//! Strict reading.

use super::{HEAD, check, check_hint, check_places, plugins};
use supercargo_model::GoDuration;

use crate::{KubeSchedulerConfiguration, Loaded, TieBreak, load, load_all};

const OWN: &str = "apiVersion: supercargo.dev/v1alpha1\nkind: SupercargoConfiguration\n";

#[test]
fn a_document_with_nothing_but_its_kind_is_the_default() {
    let json = r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}"#;
    for text in [HEAD, json, &format!("---\n{HEAD}...\n"), OWN, &format!("# a comment\n---\n---\n{HEAD}")] {
        assert_eq!(load(text), Ok(Loaded::default()), "{text}");
    }
}

#[test]
fn null_is_the_same_as_absent() {
    for field in [
        "parallelism",
        "leaderElection",
        "clientConnection",
        "enableProfiling",
        "enableContentionProfiling",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
        "extenders",
        "delayCacheUntilActive",
    ] {
        assert_eq!(load(&format!("{HEAD}{field}: null\n")), Ok(Loaded::default()), "{field}");
    }
    for rest in [
        "profiles: [null]",
        "profiles: []",
        "profiles: [{schedulerName: null, percentageOfNodesToScore: null, plugins: null, pluginConfig: null}]",
        "profiles: [{plugins: {score: null, filter: {enabled: null, disabled: ~}}}]",
        "leaderElection: {leaderElect: null, resourceLock: null}",
        "clientConnection: {qps: ~, burst: ~, contentType: ~}",
    ] {
        assert_eq!(load(&format!("{HEAD}{rest}\n")), Ok(Loaded::default()), "{rest}");
    }
    check(
        &plugins("{score: {enabled: [null]}}"),
        &["C030 profiles[0].plugins.score.enabled[0].name: ScorePlugin \"\" does not exist"],
    );
    // Go's durations read null themselves, and refuse it.
    check(
        &format!("{HEAD}leaderElection: {{leaseDuration: null}}"),
        &["C005 leaderElection.leaseDuration: time: invalid duration \"\""],
    );
}

#[test]
fn all_fields_are_read() {
    let text = format!(
        "{HEAD}{}",
        r#"
parallelism: 010
leaderElection: {leaderElect: no, leaseDuration: 20s, renewDeadline: 1m30s, retryPeriod: 0s, resourceName: name,
  resourceNamespace: ns, resourceLock: l}
clientConnection: {kubeconfig: k, acceptContentTypes: a, contentType: c, qps: 2.5, burst: 7}
enableProfiling: off
percentageOfNodesToScore: 50
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 3.0
profiles:
- schedulerName: one
  percentageOfNodesToScore: 0
  plugins: {preEnqueue: {enabled: [{name: A, weight: 3}]}, placementScore: {disabled: [{name: "*"}]}}
  pluginConfig: [{name: X, args: {a: [1, null]}}]
- {}
extenders:
- {urlPrefix: u, filterVerb: f, preemptVerb: p, prioritizeVerb: r, weight: 5, bindVerb: b, enableHTTPS: true,
   tlsConfig: {insecure: true, serverName: s, certFile: c, keyFile: k, caFile: a, certData: YQ==, keyData: [98],
   caData: null}, httpTimeout: 5s, nodeCacheCapable: true, managedResources: [{name: a.b/c, ignoredByScheduler: on}],
   ignorable: true}
delayCacheUntilActive: yes
"#
    );
    let config = load(&text).expect("all of it is right").kube;
    assert_eq!(config.parallelism, 8, "octal, as in YAML 1.1");
    assert!(!config.leader_election.leader_elect);
    assert_eq!(config.leader_election.renew_deadline, GoDuration::from_seconds(90));
    assert_eq!(
        config.leader_election.retry_period,
        GoDuration::from_seconds(2),
        "zero stands for the default"
    );
    assert!(!config.enable_profiling && !config.enable_contention_profiling, "the one follows the other");
    assert_eq!(config.pod_max_backoff_seconds, 3, "a float without a fraction is an integer in YAML");
    assert_eq!(config.profiles[0].percentage_of_nodes_to_score, Some(0));
    assert_eq!(config.profiles[0].plugin_config[0].args, serde_json::json!({"a": [1, null]}));
    assert_eq!(config.profiles[1].scheduler_name, "", "several profiles get no default name");
    let tls = config.extenders[0].tls_config.as_ref().expect("is given");
    assert_eq!((tls.cert_data.0.as_slice(), tls.key_data.0.as_slice()), (&b"a"[..], &b"b"[..]));
    assert!(config.extenders[0].managed_resources[0].ignored_by_scheduler);
}

#[test]
fn an_empty_name_is_not_an_absent_one() {
    let names = |text: &str| {
        let config: KubeSchedulerConfiguration =
            load(&format!("{HEAD}profiles: {text}")).expect("is readable").kube;
        config.profiles.into_iter().map(|profile| profile.scheduler_name).collect::<Vec<_>>()
    };
    assert_eq!(names("[{}]"), ["default-scheduler"]);
    assert_eq!(names("[{schedulerName: ''}]"), [""]);
    assert_eq!(names("[{schedulerName: a}, {}]"), ["a", ""]);
}

#[test]
fn unknown_fields_are_all_found_with_their_paths() {
    check(
        &format!(
            "{HEAD}Parallelism: 1\nprofiles: [{{plugins: {{scores: {{}}, score: {{enabled: [{{nmae: a}}]}}}}, x: 1}}]\n\
             extenders: [{{urlPrefix: 'https://x', filterVerb: f, tlsConfig: {{pem: a}}}}]\n"
        ),
        &[
            "C003 profiles[0].plugins.score.enabled[0].nmae: unknown field \"nmae\"",
            "C003 profiles[0].plugins.scores: unknown field \"scores\"",
            "C003 profiles[0].x: unknown field \"x\"",
            "C003 extenders[0].tlsConfig.pem: unknown field \"pem\"",
            "C003 Parallelism: unknown field \"Parallelism\"",
        ],
    );
    check_hint(&format!("{HEAD}Parallelism: 1"), "did you mean \"parallelism\"?");
    check_hint(&plugins("{score: {on: []}}"), "the fields here are enabled, disabled");
}

#[test]
fn repeated_fields_are_found_with_path_and_line() {
    let text =
        format!("{HEAD}profiles:\n- schedulerName: a\n  schedulerName: b\nparallelism: 1\nparallelism: 2\n");
    check(
        &text,
        &[
            "C002 profiles[0].schedulerName: field \"schedulerName\" stands here twice",
            "C002 parallelism: field \"parallelism\" stands here twice",
        ],
    );
    check_places(&text, &["5:3", "7:1"]);
    check_hint(&text.replace("parallelism: 1\n", ""), "the one before is at line 4");
    check(
        r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"score": {}, "score": {}}}]}"#,
        &["C002 profiles[0].plugins.score: field \"score\" stands here twice"],
    );
}

#[test]
fn values_of_the_wrong_type_are_all_found() {
    check(
        &format!(
            "{HEAD}parallelism: '16'\nenableProfiling: 'true'\npodMaxBackoffSeconds: 1.5\nprofiles: {{}}\n\
             percentageOfNodesToScore: 3000000000\nleaderElection: {{leaseDuration: 15, retryPeriod: 2x}}\n\
             clientConnection: {{qps: 1e39, kubeconfig: 5}}\nextenders: [5, {{urlPrefix: 'https://x', filterVerb: f, tlsConfig: {{certData: '?'}}}}]\n"
        ),
        &[
            "C004 parallelism: expected an integer of 32 bits, got the string \"16\"",
            "C004 leaderElection.leaseDuration: expected a string such as \"15s\", got the number 15",
            "C005 leaderElection.retryPeriod: time: unknown unit \"x\" in duration \"2x\"",
            "C004 clientConnection.kubeconfig: expected a string, got the number 5",
            "C004 clientConnection.qps: expected a number, got the number 1e+39",
            "C004 enableProfiling: expected true or false, got the string \"true\"",
            "C004 percentageOfNodesToScore: expected an integer of 32 bits, got the number 3000000000",
            "C004 podMaxBackoffSeconds: expected an integer of 64 bits, got the number 1.5",
            "C004 profiles: expected a list, got an object",
            "C004 extenders[0]: expected an object, got the number 5",
            "C006 extenders[1].tlsConfig.certData: illegal base64 data",
        ],
    );
    check_hint(&format!("{HEAD}parallelism: '16'"), "write it without quotes");
    // In JSON a float stays one.
    check(
        r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 2.0}"#,
        &["C004 parallelism: expected an integer of 32 bits, got the number 2.0"],
    );
}

#[test]
fn text_that_cannot_be_parsed_is_refused_with_its_place() {
    check(&format!("{HEAD}profiles: [1, 2"), &["C001 : not YAML: unclosed bracket '['"]);
    check("{\"apiVersion\": }", &["C001 : not JSON: expected value"]);
    check("{a: 1}", &["C001 : not JSON: key must be a string"]);
    check(
        "just words",
        &["C004 : expected an object with apiVersion and kind, got the string \"just words\""],
    );
}

#[test]
fn documents_say_what_they_are() {
    let missing = "Object 'Kind' is missing";
    for empty in ["", "# nothing\n", "---\n", "null"] {
        check(empty, &[&format!("C007 : the file is empty: {missing}")]);
    }
    check("apiVersion: kubescheduler.config.k8s.io/v1", &[&format!("C007 kind: {missing}")]);
    check("kind: KubeSchedulerConfiguration", &["C007 apiVersion: Object 'apiVersion' is missing"]);
    check(
        "apiVersion: 1\nkind: [a]",
        &["C004 apiVersion: expected a string, got the number 1", "C004 kind: expected a string, got a list"],
    );
    check(
        "apiVersion: v1\nkind: Pod",
        &["C009 kind: couldn't decode as KubeSchedulerConfiguration, got v1, Kind=Pod"],
    );
    for version in ["v1beta4", "v2", "v1alpha0"] {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\nold: 1"
        );
        let message = format!(
            "no kind \"KubeSchedulerConfiguration\" is registered for version \"kubescheduler.config.k8s.io/{version}\""
        );
        check(&text, &[&format!("C008 apiVersion: {message}")]);
        check_hint(&text, "write kubescheduler.config.k8s.io/v1");
    }
    check(
        &format!("{HEAD}---\n{HEAD}"),
        &[
            "C011 kind: document 2: KubeSchedulerConfiguration must be the first document",
            "C010 kind: document 2: there is a KubeSchedulerConfiguration already",
        ],
    );
    check(
        &format!("{OWN}---\n{HEAD}"),
        &["C011 kind: document 2: KubeSchedulerConfiguration must be the first document"],
    );
}

#[test]
fn settings_of_our_own_stand_beside() {
    let own =
        format!("{OWN}tieBreak: SmallestName\nseed: 18446744073709551615\nfixes: [emptySpreadSelector]\n");
    let together = load(&format!("{HEAD}parallelism: 4\n---\n{own}")).expect("both are right");
    assert_eq!(load_all(&[&own, &format!("{HEAD}parallelism: 4\n")]).as_ref(), Ok(&together));
    assert_eq!((together.kube.parallelism, together.own.seed), (4, u64::MAX));
    assert_eq!(together.own.tie_break, TieBreak::SmallestName);
    assert_eq!(together.own.fixes.names(), ["emptySpreadSelector"]);

    check(
        &format!("{OWN}tieBreak: Random\nseed: -1\nfixes: [emptySpreadSelektor, 5, x]\ntiebreak: a\n"),
        &[
            "C060 tieBreak: Unsupported value: \"Random\": supported values: \"Seeded\", \"SmallestName\"",
            "C004 seed: expected an integer that is not negative, got the number -1",
            "C004 fixes[1]: expected a string, got the number 5",
            "C061 fixes[0]: there is no fix named \"emptySpreadSelektor\"",
            "C061 fixes[2]: there is no fix named \"x\"",
            "C003 tiebreak: unknown field \"tiebreak\"",
        ],
    );
    check(
        &format!(
            "{OWN}pages:\n- {{plugin: NodeAffinity, address: \"127.0.0.1:10000\"}}\n- {{plugin: x, address: \"127.0.0.1:10000\"}}\n\
             - {{address: \"localhost:1\"}}\n- {{plugin: z, address: \"[::1]:0\"}}\n"
        ),
        &[
            "C062 pages[0].plugin: no plugin named \"NodeAffinity\" has a page",
            "C062 pages[1].plugin: no plugin named \"x\" has a page",
            "C063 pages[1].address: Invalid value: \"127.0.0.1:10000\": is the address of another page",
            "C062 pages[2].plugin: no plugin named \"\" has a page",
            "C063 pages[2].address: Invalid value: \"localhost:1\": is no IP address with a port, such as \"127.0.0.1:10000\"",
            "C062 pages[3].plugin: no plugin named \"z\" has a page",
            "C063 pages[3].address: Invalid value: \"[::1]:0\": needs a port other than 0",
        ],
    );
    check_hint(&format!("{OWN}fixes: [emptySpreadSelektor]"), "did you mean \"emptySpreadSelector\"?");
}

#[test]
fn programs_beside_the_scheduler_have_names_and_commands() {
    let given = format!(
        "{OWN}programs:\n- {{name: agent, command: [python3, main.py], workingDir: /agent}}\n- {{name: trainer.2, command: [/trainer]}}\n"
    );
    let Loaded { own, .. } = load(&given).expect("it is right");
    assert_eq!(own.programs.len(), 2);
    assert_eq!(own.programs[0].command, ["python3", "main.py"]);
    assert_eq!((own.programs[0].working_dir.as_str(), own.programs[1].working_dir.as_str()), ("/agent", ""));
    check(
        &format!(
            "{OWN}programs:\n- {{name: agent, command: [\"\"]}}\n- {{name: agent, command: [a, \"b\\0\"]}}\n- {{command: []}}\n\
             - {{name: \"a b\"}}\n"
        ),
        &[
            "C065 programs[0].command: Required value: the program to start, and its arguments",
            "C065 programs[1].name: Invalid value: \"agent\": is the name of another program",
            "C065 programs[1].command: no system takes a null character in a command",
            "C065 programs[2].name: Invalid value: \"\": a program needs a name",
            "C065 programs[2].command: Required value: the program to start, and its arguments",
            "C065 programs[3].name: Invalid value: \"a b\": must be letters, digits, '-', '.' and '_', at most 63 of them",
            "C065 programs[3].command: Required value: the program to start, and its arguments",
        ],
    );
    check(
        &format!("{OWN}programs:\n- {{name: a, command: python3}}\n- {{name: b, comand: [x]}}\n"),
        &[
            "C004 programs[0].command: expected a list, got the string \"python3\"",
            "C003 programs[1].comand: unknown field \"comand\"",
        ],
    );
    let many: String = (0..9).map(|number| format!("- {{name: p{number}, command: [x]}}\n")).collect();
    check(&format!("{OWN}programs:\n{many}"), &["C065 programs: Too many: 9: must have at most 8 items"]);
}

/// Found by the program's test `fuzz`.
#[test]
fn no_text_of_a_file_starts_a_line() {
    for text in [
        "apiVersion: v1\nkind: \"x\\nforged\"\n".to_owned(),
        format!("{HEAD}\"x\\nforged\": 1\n"),
        format!("{HEAD}profiles: [{{\"x\\nforged\": 1}}]\n"),
    ] {
        let said = load(&text).expect_err("is wrong").to_string();
        assert!(said.contains("x\\nforged") && !said.contains("\nforged"), "{said}");
    }
}
