use std::path::Path;

use tempfile::TempDir;
use tokio::sync::oneshot;

use super::output::{Allowance, Lines};
use super::*;

/// As in earnest, but over soon.
const SOON: Patience = Patience {
    pause_min: Duration::from_millis(1),
    pause_max: Duration::from_millis(20),
    steady: Duration::from_secs(60),
    stop: Duration::from_millis(300),
    last_words: Duration::from_millis(300),
};
/// How long a test waits for what is sure to happen.
const LONG: Duration = Duration::from_secs(30);

fn shell(folder: &TempDir, script: &str) -> Program {
    Program {
        name: "agent".to_owned(),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        working_dir: Some(folder.path().to_owned()),
    }
}

/// A program that is kept running, until it is stopped.
struct Kept {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Kept {
    fn start(program: Program, metrics: &Metrics) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move { _ = stopped.await };
        Kept { stop, task: tokio::spawn(keep_running(program, SOON, metrics.clone(), stopped)) }
    }

    async fn stop(self) {
        drop(self.stop);
        timeout(LONG, self.task).await.expect("it ends").expect("it does not panic");
    }
}

/// Waits for a file that a program writes, and returns what it holds.
async fn written(file: &Path) -> String {
    let found = timeout(LONG, async {
        loop {
            match std::fs::read_to_string(file) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => sleep(Duration::from_millis(2)).await,
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("{} is not written", file.display()))
}

/// Whether there is a process of that number that is more than a zombie.
fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    status.is_ok_and(|status| !status.contains(") Z "))
}

async fn wait_dead(pid: &str) {
    let dead = async {
        while is_alive(pid) {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, dead).await.unwrap_or_else(|_| panic!("{pid} lives on"));
}

#[test]
fn pauses_double_until_a_program_stays() {
    let patience = Patience::default();
    let mut pauses = Pauses::new(patience);
    let seconds = Duration::from_secs;
    for (ran, expected) in
        [(0, 1), (0, 2), (59, 4), (0, 8), (0, 16), (0, 32), (0, 60), (59, 60), (60, 1), (0, 2), (3600, 1)]
    {
        assert_eq!(pauses.after(seconds(ran)), seconds(expected), "after {ran} s");
    }
}

#[test]
fn lines_are_lines_however_they_come() {
    let long = "x".repeat(5000);
    for (parts, expected) in [
        (vec!["a\nb\n"], vec!["a".to_owned(), "b".to_owned()]),
        (vec!["a", "b\nc", "\n"], vec!["ab".to_owned(), "c".to_owned()]),
        (vec!["no end"], vec!["no end".to_owned()]),
        (vec!["\n \n\r\n", "a\r\n"], vec!["a".to_owned()]),
        (vec![&long, &long, "\nnext\n"], vec![format!("{}…", "x".repeat(4096)), "next".to_owned()]),
        (vec![&long[..4096], "\n"], vec!["x".repeat(4096)]),
        (vec![], vec![]),
    ] {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        let mut log = |line: &str| found.push(line.to_owned());
        for part in &parts {
            lines.push(part.as_bytes(), &mut log);
        }
        lines.end(&mut log);
        assert_eq!(found, expected, "{parts:?}");
    }
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    lines.push(b"\xff\xfe\n", &mut |line| found.push(line.to_owned()));
    assert_eq!(found, ["\u{fffd}\u{fffd}"], "what is no text is no reason to fail");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_prints_too_much_is_cut_short_and_that_is_said() {
    let begin = Instant::now();
    let mut allowance = Allowance::new(begin);
    let logged = (0..250).filter(|_| allowance.take(begin).is_some()).count();
    assert_eq!(logged, 100);
    assert_eq!(allowance.take(begin + Duration::from_millis(999)), None);
    assert_eq!(allowance.take(begin + Duration::from_secs(1)), Some(151));
    assert_eq!(allowance.take(begin + Duration::from_secs(1)), Some(0));
}

#[tokio::test]
async fn a_program_that_ends_is_started_again() {
    let folder = TempDir::new().expect("a folder");
    let (metrics, exposition) = Metrics::new();
    // The third one stays.
    let script =
        "echo x >> starts; [ $(wc -l < starts) -lt 3 ] && exit 7; echo ready > ready; exec sleep 600";
    let kept = Kept::start(shell(&folder, script), &metrics);
    written(&folder.path().join("ready")).await;
    assert_eq!(written(&folder.path().join("starts")).await.lines().count(), 3);
    let text = exposition.text();
    for line in [
        r#"supercargo_program_starts_total{program="agent",result="success"} 3"#,
        r#"supercargo_program_running{program="agent"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
    }
    kept.stop().await;
    assert!(exposition.text().contains(r#"supercargo_program_running{program="agent"} 0"#));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_tried_again() {
    let folder = TempDir::new().expect("a folder");
    let (metrics, exposition) = Metrics::new();
    let script = folder.path().join("agent");
    let program = Program {
        name: "agent".to_owned(),
        command: vec![script.to_string_lossy().into_owned()],
        working_dir: Some(folder.path().to_owned()),
    };
    let kept = Kept::start(program, &metrics);
    let failed = async {
        while !exposition
            .text()
            .contains(r#"supercargo_program_starts_total{program="agent",result="error"}"#)
        {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LONG, failed).await.expect("it cannot be started");
    let installed = "#!/bin/sh\necho ready > ready\nexec sleep 600\n";
    std::fs::write(folder.path().join("new"), installed).expect("a file");
    let shown = std::process::Command::new("sh")
        .args(["-c", "chmod +x new && mv new agent"])
        .current_dir(folder.path())
        .status();
    assert!(shown.expect("a shell runs").success());
    written(&folder.path().join("ready")).await;
    kept.stop().await;
}

#[tokio::test]
async fn a_program_ends_with_the_scheduler_and_so_does_what_it_started() {
    for (what, script) in [
        ("one that ends when it is asked", "sleep 600 & echo $! > child; echo $$ > pid; wait"),
        (
            "one that does not listen",
            "trap '' TERM; sleep 600 & echo $! > child; echo $$ > pid; while :; do sleep 1; done",
        ),
        (
            "one that prints for ever",
            "sleep 600 & echo $! > child; echo $$ > pid; while :; do echo spam; done",
        ),
        (
            "one that closes its output",
            "exec > /dev/null 2>&1; sleep 600 & echo $! > child; echo $$ > pid; wait",
        ),
    ] {
        let folder = TempDir::new().expect("a folder");
        let (metrics, _) = Metrics::new();
        let kept = Kept::start(shell(&folder, script), &metrics);
        let (pid, child) =
            (written(&folder.path().join("pid")).await, written(&folder.path().join("child")).await);
        assert!(is_alive(&pid) && is_alive(&child), "{what}");
        kept.stop().await;
        wait_dead(&pid).await;
        wait_dead(&child).await;
    }
}

#[tokio::test]
async fn a_program_does_not_outlive_a_task_that_is_aborted() {
    let folder = TempDir::new().expect("a folder");
    let (metrics, _) = Metrics::new();
    let script = "trap '' TERM; sleep 600 & echo $! > child; echo $$ > pid; wait; wait";
    let kept = Kept::start(shell(&folder, script), &metrics);
    let (pid, child) =
        (written(&folder.path().join("pid")).await, written(&folder.path().join("child")).await);
    kept.task.abort();
    wait_dead(&pid).await;
    wait_dead(&child).await;
}
