//! Running the binary as its user does.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs the binary; `stdin` is all it gets to read.
#[allow(dead_code, reason = "not every test gives text")]
pub(crate) fn supercargo(arguments: &[&str], stdin: &str) -> Output {
    run(arguments, stdin.as_bytes())
}

/// The same with input that need not be text.
pub(crate) fn run(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(arguments)
        // Whatever cluster the machine knows, tests ask none.
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", "/nowhere")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut input = child.stdin.take().expect("standard input is piped");
    // A program that has seen enough may close its end first.
    let _ = input.write_all(stdin);
    drop(input);
    child.wait_with_output().expect("the binary ends")
}

/// Checks how a run ended, and that its output says these things.
#[allow(dead_code, reason = "not every test looks for words only")]
#[track_caller]
pub(crate) fn check(output: &Output, code: i32, expected: &[&str]) {
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for expected in expected {
        assert!(text.contains(expected), "{expected:?} is missing in:\n{text}");
    }
}
