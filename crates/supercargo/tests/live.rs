//! What commands that ask a live cluster say when they cannot.

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::{check, supercargo};

/// A folder for the files of a test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("supercargo-live-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory can be written");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        "clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: alice, user: {user}}}]\n\
         contexts: [{{name: prod, context: {{cluster: c, user: alice}}}}]\ncurrent-context: prod\n"
    )
}

/// Runs the binary as somebody with this `$KUBECONFIG`, in a folder without another one.
fn run(folder: &Path, kubeconfig: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(arguments)
        .current_dir(folder)
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", folder)
        .env_remove("KUBERNETES_SERVICE_HOST")
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built for this test")
}

/// A server that answers every request so; without an answer it accepts and says nothing.
fn server(answer: Option<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it listens"));
    in_background(move || {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let Some(answer) = answer.clone() else {
                silent.push(stream);
                continue;
            };
            in_background(move || {
                let mut asked = [0; 8192];
                while stream.read(&mut asked).is_ok_and(|length| length > 0) {
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn in_background(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().spawn(work).expect("threads can be started");
}

fn refusal(code: u16, message: &str) -> String {
    let body = format!("{{\"kind\":\"Status\",\"message\":{message:?}}}");
    format!("HTTP/1.1 {code} No\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const COMMANDS: [&[&str]; 3] = [&["explain"], &["dump"], &["capacity"]];

#[test]
fn a_kubeconfig_that_is_none_is_named() {
    let folder = Folder::new("garbage");
    let path = folder.write("broken", "users:\n- name: u\n  user: secret\n");
    let broken = path.display().to_string();
    for command in COMMANDS {
        let missing = ["$KUBECONFIG names garbage, and there is no such file"];
        check(&run(&folder.0, "garbage", command), 1, &missing);
        let output = run(&folder.0, &broken, command);
        check(&output, 1, &[&broken, "line 3, column 9", "a mapping is expected there"]);
        assert!(!String::from_utf8_lossy(&output.stderr).contains("secret"));
    }
}

#[test]
fn the_first_file_may_be_missing() {
    let folder = Folder::new("list");
    let good = folder.write("good", &kubeconfig("http://127.0.0.1:1", "{token: t}"));
    let list = format!("/nowhere/kubeconfig:{}", good.display());
    for command in COMMANDS {
        let output = run(&folder.0, &list, command);
        check(&output, 1, &["http://127.0.0.1:1/", "onnection refused"]);
    }
}

#[test]
fn who_is_not_known_is_told_to_log_in_again() {
    let folder = Folder::new("unauthorized");
    let address = server(Some(refusal(401, "Unauthorized")));
    let file = folder.write("kubeconfig", &kubeconfig(&address, "{token: expired}"));
    for command in COMMANDS {
        let output = run(&folder.0, &file.display().to_string(), command);
        let who = format!("{address} does not accept the user \"alice\" of the context \"prod\"");
        check(&output, 1, &[&who, "log in again"]);
    }
}

#[test]
fn who_may_not_is_told_which_rule_is_missing() {
    let folder = Folder::new("forbidden");
    let message = "User 'alice' cannot list resource 'pods' at the cluster scope";
    let address = server(Some(refusal(403, message)));
    let file = folder.write("kubeconfig", &kubeconfig(&address, "{token: t}"));
    for command in [&["explain"][..], &["capacity"]] {
        let output = run(&folder.0, &file.display().to_string(), command);
        let rule = r#"{apiGroups: [""], resources: ["pods"], verbs: ["list"]}"#;
        check(&output, 1, &[&format!("{address}: {message}"), rule]);
    }
}

#[test]
fn a_plugin_that_fails_is_run_once_and_gives_nothing_away() {
    let folder = Folder::new("plugin");
    let script = "echo run >> runs; echo secret-output; echo $TOKEN >&2; exit 3";
    let exec = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, installHint: Ask IT., \
         command: sh, args: ['-c', '{script}'], env: [{{name: TOKEN, value: secret-environment}}]}}}}"
    );
    let file = folder.write("kubeconfig", &kubeconfig("http://127.0.0.1:1", &exec));
    for (number, command) in COMMANDS.into_iter().enumerate() {
        let output = run(&folder.0, &file.display().to_string(), command);
        let expected = "cannot log in to http://127.0.0.1:1: the credential plugin sh failed with exit status: 3; the kubeconfig \
                        says: Ask IT.";
        check(&output, 1, &[expected]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!text.contains("secret") && output.stdout.is_empty(), "{text}");
        let runs = std::fs::read_to_string(folder.0.join("runs")).expect("it was run");
        assert_eq!(runs.lines().count(), number + 1);
    }
}

/// Takes as long as people are asked to wait.
#[test]
fn a_server_that_accepts_and_never_answers_is_given_up() {
    let folder = Folder::new("silent");
    let address = server(None);
    let file = folder.write("kubeconfig", &kubeconfig(&address, "{token: t}"));
    let output = supercargo(&["dump", "--kubeconfig", &file.display().to_string()], "");
    check(&output, 1, &[&format!("GET {address}/"), "no answer within 15 s"]);
}
