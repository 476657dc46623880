//! Clusters and configurations, mutated by chance, and what holds whatever comes of it.
//!
//! Seeds are numbers; each is one trial, and the same one every time. `SUPERCARGO_FUZZ_SEEDS=100000` tries more of
//! them, `SUPERCARGO_FUZZ_SEEDS=800..900` others, `SUPERCARGO_FUZZ_SEED=17` one alone. Trials run in processes of their
//! own, several at a time, so that an overflow of the stack, an endless loop or a flood of memory is found as a panic is, and
//! has a seed.

mod bases;
mod chance;
mod checks;
mod mutate;
mod notations;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "seeds are checked by properties, not by words")]
mod support;
mod trial;
mod values;
#[path = "../support/writers.rs"]
mod writers;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::bases::Bases;
use crate::trial::{TrialFolder, run_trial};

/// How many seeds are tried if nobody says otherwise: about a minute's worth on a busy machine with two cores.
const SEEDS: u64 = 800;

/// How long a trial may take: it has some twenty commands on clusters of a few dozen objects, and other tests run beside it.
const TRIAL_SECONDS_MAX: u64 = 60;

/// How much memory a trial may ever take.
const RESIDENT_MIB_MAX: u64 = 1_024;

/// How many failures a process collects before it ends.
const FAILURES_MAX: usize = 20;

/// How many processes run trials at most.
const WORKERS_MAX: usize = 4;

const SEED: &str = "SUPERCARGO_FUZZ_SEED";
const SEED_COUNT: &str = "SUPERCARGO_FUZZ_SEEDS";
/// Says to a process started here which seeds are its own: `FIRST END STEP`.
const SHARE: &str = "SUPERCARGO_FUZZ_SHARE";

/// What such a process says at the start of a line.
const BEGUN: &str = "fuzz begun ";
const FAILED: &str = "fuzz failed ";
const DONE: &str = "fuzz done";

#[test]
fn nothing_that_goes_in_breaks_what_holds() {
    let number =
        |text: &str| -> u64 { text.parse().unwrap_or_else(|_| panic!("{text:?} is no number of seeds")) };
    let seeds = match (variable(SEED), variable(SEED_COUNT)) {
        (Some(seed), _) => number(&seed)..number(&seed) + 1,
        (None, None) => 0..SEEDS,
        (None, Some(seeds)) => match seeds.split_once("..") {
            Some((first, end)) => number(first)..number(end),
            None => 0..number(&seeds),
        },
    };
    let failures = try_seeds(seeds);
    assert!(failures.is_empty(), "\n{}", failures.concat());
}

/// The other end of [`try_seeds`]; nothing for people to run.
#[test]
#[ignore = "is started by the other test"]
#[expect(clippy::print_stdout, reason = "it is how the process that started this one hears of it")]
fn worker() {
    let Some(share) = variable(SHARE) else { return };
    let share: Vec<u64> = share.split(' ').map(|word| word.parse().expect("is a number")).collect();
    let [first, end, step] = share[..] else { panic!("a share is three numbers") };
    let bases = Bases::load();
    let mut failures = 0;
    for seed in (first..end).step_by(step as usize) {
        println!("\n{BEGUN}{seed}");
        let folder = TrialFolder::new(seed);
        let resident = || match resident_mib() {
            Some(mib) if mib > RESIDENT_MIB_MAX => Err(format!("{mib} MiB of memory were taken")),
            _ => Ok(()),
        };
        if let Err(failure) = run_trial(seed, &bases, &folder).and_then(|()| resident()) {
            println!("\n{FAILED}{seed} {}", folder.keep(&failure));
            failures += 1;
            if failures == FAILURES_MAX || resident().is_err() {
                break;
            }
        }
    }
    println!("\n{DONE}");
}

/// A process that runs trials, and what it said last.
struct Worker {
    child: Child,
    seed: Option<u64>,
    heard: Instant,
    is_done: bool,
}

/// Tries the seeds, and returns what failed, with how to try it again.
fn try_seeds(seeds: Range<u64>) -> Vec<String> {
    let count = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    let count = (count as u64).min(seeds.end.saturating_sub(seeds.start));
    let (sender, receiver) = mpsc::channel();
    let mut failures = Vec::new();
    thread::scope(|scope| {
        let mut workers: Vec<Worker> = (0..count)
            .map(|number| {
                let mut child = start(&format!("{} {} {count}", seeds.start + number, seeds.end));
                let output = child.stdout.take().expect("its output is piped");
                let sender = sender.clone();
                scope.spawn(move || {
                    for line in BufReader::new(output).lines() {
                        // Lines of the process itself are all that matter, and are text.
                        let Ok(line) = line else { continue };
                        let _ = sender.send((number as usize, Some(line)));
                    }
                    let _ = sender.send((number as usize, None));
                });
                Worker { child, seed: None, heard: now(), is_done: false }
            })
            .collect();
        let mut running = workers.len();
        while running > 0 {
            let (number, line) = match receiver.recv_timeout(Duration::from_secs(1)) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    workers.iter_mut().for_each(Worker::end_if_late);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let worker = &mut workers[number];
            match line {
                Some(line) => failures.extend(worker.hear(&line)),
                None => {
                    failures.extend(worker.ended());
                    running -= 1;
                }
            }
        }
    });
    failures
}

fn start(share: &str) -> Child {
    Command::new(env::current_exe().expect("this program has a name"))
        .args(["--exact", "worker", "--ignored", "--nocapture"])
        .env(SHARE, share)
        // Manifests without nodes are asked about in whatever cluster is known: here in none.
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("this program can be started once more")
}

impl Worker {
    /// Takes note of a line; returned is the failure that it tells of.
    fn hear(&mut self, line: &str) -> Option<String> {
        self.heard = now();
        if let Some(seed) = line.strip_prefix(BEGUN) {
            self.seed = seed.parse().ok();
        } else if let Some(failure) = line.strip_prefix(FAILED) {
            let (seed, what) = failure.split_once(' ')?;
            return Some(report(seed.parse().ok()?, &what.replace("\\n", "\n")));
        } else if line == DONE {
            self.is_done = true;
        }
        None
    }

    /// Ends a trial that takes too long; that it ended so is then heard.
    fn end_if_late(&mut self) {
        if self.heard.elapsed() > Duration::from_secs(TRIAL_SECONDS_MAX) {
            // It may have ended by itself meanwhile.
            let _ = self.child.kill();
        }
    }

    /// How the process ended, if it was not at its end.
    fn ended(&mut self) -> Option<String> {
        let is_late = self.heard.elapsed() > Duration::from_secs(TRIAL_SECONDS_MAX);
        let status = self.child.wait().expect("a process that was started ends");
        let what = match (self.is_done && status.success(), is_late) {
            (true, _) => return None,
            (false, true) => format!("takes longer than {TRIAL_SECONDS_MAX} s"),
            (false, false) => format!("the process that ran it ended: {status}"),
        };
        Some(report(self.seed.unwrap_or_default(), &what))
    }
}

fn report(seed: u64, what: &str) -> String {
    let mut report = format!("seed {seed}: {what}\n");
    write!(report, "    again: {SEED}={seed} cargo test -p supercargo --test fuzz -- --nocapture\n\n")
        .expect("writing to a string does not fail");
    report
}

/// The most memory that this process ever had, where the system says so.
fn resident_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? / 1_024)
}

#[expect(clippy::disallowed_methods, reason = "how a person asks for more seeds, or for one")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "a trial has a time limit")]
fn now() -> Instant {
    Instant::now()
}
