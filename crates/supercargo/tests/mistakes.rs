//! What people get who make one of the common mistakes, to the letter: what is wrong, where, and what to do.

mod support;

use std::path::Path;

use support::supercargo;

/// The file that the commands are given as `FILE`.
fn example() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster.yaml").to_string_lossy().into_owned()
}

fn cluster() -> String {
    std::fs::read_to_string(example()).expect("the example is there")
}

/// A mistake: what it is called, the arguments, what is on standard input, the exit code, and what is said.
type Row = (&'static str, &'static [&'static str], String, i32, &'static str);

const EXPLAIN: &[&str] = &["explain", "-f", "-"];

fn mistakes() -> Vec<Row> {
    let swapped = |from: &str, to: &str| {
        let cluster = cluster();
        assert!(cluster.contains(from), "{from:?} is not in the example");
        cluster.replace(from, to)
    };
    vec![
        (
            "a kind that is spelt wrongly",
            EXPLAIN,
            swapped("kind: Pod", "kind: pod"),
            1,
            "\
error: <stdin>, line 38, column 9: object default/db-0: kind \"pod\" of apiVersion \"v1\" is unknown; did you mean \"Pod\"?
  38 |   kind: pod
     |         ^
",
        ),
        (
            "the plural of a kind",
            EXPLAIN,
            swapped("kind: Node", "kind: nodes"),
            1,
            "\
error: <stdin>, line 5, column 9: object n1: kind \"nodes\" of apiVersion \"v1\" is unknown; did you mean \"Node\"?
  5 |   kind: nodes
    |         ^
",
        ),
        (
            "the wrong apiVersion",
            EXPLAIN,
            swapped("apiVersion: v1\n  kind: Pod", "apiVersion: apps/v1\n  kind: Pod"),
            1,
            "\
error: <stdin>, line 37, column 15: object default/db-0: kind \"Pod\" of apiVersion \"apps/v1\" is unknown; did you mean apiVersion \"v1\"?
  37 | - apiVersion: apps/v1
     |               ^
",
        ),
        ("no -f", &["explain", "FILE"], String::new(), 2, "error: FILE is a file; to read it, write -f FILE\n"),
        (
            "a pod's name with a letter too few",
            &["explain", "-f", "-", "--pod", "web1"],
            cluster(),
            1,
            "error: there is no pod default/web1 in the files; did you mean default/web-1?\n",
        ),
        (
            "a pod's name like no other",
            &["capacity", "-f", "-", "--like", "frontend"],
            cluster(),
            1,
            "error: there is no pod default/frontend in the files, which hold 2 pending and 1 bound ones; finished ones are left out\n",
        ),
        (
            "no namespace",
            &["explain", "-f", "-", "--pod", "web-1"],
            swapped("namespace: default", "namespace: shop"),
            1,
            "error: there is no pod default/web-1 in the files; did you mean shop/web-1?\n",
        ),
        (
            "another namespace",
            &["explain", "-f", "-", "-n", "shpo"],
            cluster() + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
            1,
            "error: no object in the files is of the namespace \"shpo\"; the namespaces there are: shop, default\n",
        ),
        (
            "another namespace to count in",
            &["capacity", "-f", "-", "-n", "shpo"],
            cluster(),
            1,
            "error: no object in the files is of the namespace \"shpo\"; the namespaces there are: default\n",
        ),
        (
            "a pod of another namespace",
            &["explain", "-f", "-", "--pod", "frontend", "-n", "shop"],
            cluster(),
            1,
            "error: there is no pod shop/frontend in the files, nor anything else of its namespace; the namespaces there are: default\n",
        ),
        (
            "too little indentation",
            EXPLAIN,
            swapped("    name: web-1", "   name: web-1"),
            1,
            "\
error: <stdin>, line 60, column 14: a field cannot stand here: is this line, or the one above it, indented wrongly?
  60 |     namespace: default
     |              ^
",
        ),
        (
            "indentation that means something else",
            EXPLAIN,
            swapped("      requests:\n          cpu: 500m", "      requests:\n        cpu: 500m"),
            1,
            "\
error: <stdin>, line 69, column 17: a field cannot stand here: is this line, or the one above it, indented wrongly?
  69 |           memory: 512Mi
     |                 ^
",
        ),
        (
            "a tab",
            EXPLAIN,
            swapped("    name: web-1", "\tname: web-1"),
            1,
            "\
error: <stdin>, line 59, column 1: the line is indented by a tab
  59 | \\tname: web-1
     | ^
help: YAML is indented by spaces; replace the tabs
",
        ),
        (
            "a tab at the start",
            EXPLAIN,
            "apiVersion: v1\n\tkind: Pod\n".to_owned(),
            1,
            "\
error: <stdin>, line 2, column 1: the line is indented by a tab
  2 | \\tkind: Pod
    | ^
help: YAML is indented by spaces; replace the tabs
",
        ),
        (
            "a Helm template",
            EXPLAIN,
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Release.Name }}-web\n".to_owned(),
            1,
            "\
error: <stdin>, line 4, column 9: this is a template, not objects
  4 |   name: {{ .Release.Name }}-web
    |         ^
help: render it first, for example with helm template, and give what that prints
",
        ),
        (
            "a Helm template with a condition",
            EXPLAIN,
            "{{- if .Values.enabled }}\napiVersion: v1\nkind: Pod\n{{- end }}\n".to_owned(),
            1,
            "\
error: <stdin>, line 1, column 1: this is a template, not objects
  1 | {{- if .Values.enabled }}
    | ^
help: render it first, for example with helm template, and give what that prints
",
        ),
        (
            "the table of kubectl get",
            EXPLAIN,
            "NAME    READY   STATUS    RESTARTS   AGE\nweb-1   1/1     Running   0          3d\n".to_owned(),
            1,
            "\
error: <stdin>, line 1, column 1: this is kubectl's table for people, not objects
  1 | NAME    READY   STATUS    RESTARTS   AGE
    | ^
help: let kubectl print objects: add -o yaml
",
        ),
        (
            "an error instead of objects",
            EXPLAIN,
            "Error from server (Forbidden): nodes is forbidden\n".to_owned(),
            1,
            "\
error: <stdin>, line 1, column 1: this is an error that a command printed, not objects
  1 | Error from server (Forbidden): nodes is forbidden
    | ^
help: see to that error first
",
        ),
        (
            "nothing",
            EXPLAIN,
            String::new(),
            1,
            "error: <stdin> holds no objects, nor anything else: did the command before the pipe fail?\n",
        ),
        (
            "nothing to dump",
            &["dump", "-f", "-"],
            "# nothing\n---\n".to_owned(),
            1,
            "error: <stdin> holds no objects, nor anything else but comments: did the command before the pipe fail?\n",
        ),
        (
            "an empty list",
            &["capacity", "-f", "-"],
            "apiVersion: v1\nitems: []\nkind: List\n".to_owned(),
            1,
            "error: there are no objects in <stdin>, only empty lists: did the command that wrote them ask the right cluster, \
             and the right namespace (-A is all)?\n",
        ),
        (
            "no nodes",
            EXPLAIN,
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n".to_owned(),
            1,
            "\
error: there are no nodes in the files, so no pod has anywhere to go; add them:
  kubectl get nodes -o yaml > nodes.yaml
and name both files: -f nodes.yaml -f …
or name a cluster to ask about them there, with --kubeconfig or --context
",
        ),
        (
            "kinds that nobody reads",
            &["explain", "-f", "-"],
            "{apiVersion: v1, kind: Secret}\n---\n{apiVersion: v1, kind: Secret}\n---\n{apiVersion: example.com/v1, kind: Thing}\n"
                .to_owned(),
            0,
            "\
note: 2 of kind Secret left out: no plugin reads them
note: 1 of kind Thing (example.com/v1) left out: no plugin reads it
",
        ),
        (
            "less than nothing",
            EXPLAIN,
            swapped("cpu: 500m", "cpu: -500m"),
            1,
            "\
error: <stdin>, line 68, column 16: Pod default/web-1: spec.containers[0].resources.requests.cpu: nobody can ask for less than nothing; make it 0 or more
  68 |           cpu: -500m
     |                ^
",
        ),
        (
            "garbage behind a list",
            EXPLAIN,
            cluster() + "---\ngarbage\n",
            1,
            "\
error: <stdin>, line 93, column 1: an object of Kubernetes is expected here, and this is the text \"garbage\"
  93 | garbage
     | ^
",
        ),
    ]
}

#[test]
fn each_mistake_gets_an_answer_that_helps() {
    let example = example();
    for (name, arguments, stdin, code, expected) in mistakes() {
        let arguments: Vec<&str> =
            arguments.iter().map(|argument| if *argument == "FILE" { &example } else { *argument }).collect();
        let output = supercargo(&arguments, &stdin);
        let said = String::from_utf8_lossy(&output.stderr).replace(&example, "FILE");
        assert_eq!((said.as_str(), output.status.code()), (expected, Some(code)), "{name}");
    }
}

/// Names from outside start no lines and change no colours, wherever they are printed.
#[test]
fn names_cannot_forge_what_stands_around_them() {
    let forged = "a\\nforged\\u001b[31m\\u009b\\u202e";
    let cluster = cluster();
    let twice = cluster.clone() + &cluster.replace("name: n1", &format!("name: \"{forged}\""));
    for (arguments, text) in [
        (EXPLAIN, cluster.replace("name: web-1", &format!("name: \"{forged}\""))),
        (EXPLAIN, cluster.replace("name: n2", &format!("name: \"{forged}\""))),
        (EXPLAIN, cluster.replace("key: dedicated", &format!("key: \"{forged}\""))),
        (&["explain", "-f", "-", "-o", "json"], cluster.replace("name: n2", &format!("name: \"{forged}\""))),
        (
            &["explain", "-f", "-", "-o", "wide"],
            cluster.replace("key: dedicated", &format!("key: \"{forged}\"")),
        ),
        (
            &["explain", "-f", "-", "--pod", "nobody"],
            cluster.replace("namespace: default", &format!("namespace: \"{forged}\"")),
        ),
        (
            &["explain", "-f", "-", "-n", "nobody"],
            cluster.replace("namespace: default", &format!("namespace: \"{forged}\"")),
        ),
        (&["capacity", "-f", "-"], cluster.replace("name: n2", &format!("name: \"{forged}\""))),
        (&["dump", "-f", "-"], cluster.replace("name: n2", &format!("name: \"{forged}\""))),
        (&["dump", "-f", "-", "-o", "json"], cluster.replace("name: n2", &format!("name: \"{forged}\""))),
        (EXPLAIN, cluster.replace("kind: Node", &format!("kind: \"{forged}\""))),
        (
            EXPLAIN,
            cluster
                .replace("apiVersion: v1\n  kind: Node", &format!("apiVersion: x/v1\n  kind: \"{forged}\"")),
        ),
        (EXPLAIN, cluster.replace("cpu: 500m", &format!("cpu: \"{forged}\""))),
        (EXPLAIN, twice),
    ] {
        let output = supercargo(arguments, &text);
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).expect("is text");
            assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{arguments:?}: {text:?}");
            assert!(
                !text.lines().any(|line| line.trim_start().starts_with("forged")),
                "{arguments:?}: {text}"
            );
        }
    }
}
