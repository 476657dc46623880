//! Programs that run beside the scheduler, such as an agent that a plugin asks: started with it, started again when they end, and
//! ended with it.
//!
//! Nothing that a program does ends the scheduler. One that ends is started again after a pause, which doubles as long as the program
//! does not stay; one that cannot be started is tried again in the same way. What it prints goes into the log, a line each, as much of
//! it as there is room for.
//!
//! A program gets the environment of the scheduler, and a standard input that says nothing and is closed when the scheduler ends,
//! however it ends: a program that must not outlive a killed scheduler outside of a container reads it. What a program starts
//! itself is of its process group, and ends with it.

mod output;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::metrics::Metrics;
use output::copy_to_log;

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What the log and the metrics call it.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder to start it in; that of the scheduler if there is none.
    pub working_dir: Option<PathBuf>,
}

/// How long a program is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The pause before a program is started for the second time.
    pub pause_min: Duration,
    /// The pause doubles up to this.
    pub pause_max: Duration,
    /// A program that has run for so long has been of use: the next pause is the first one again.
    pub steady: Duration,
    /// How long a program may take to end when it is asked to; then it is killed.
    pub stop: Duration,
    /// How long what a program printed last is read after its end.
    pub last_words: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            pause_min: Duration::from_secs(1),
            pause_max: Duration::from_secs(60),
            steady: Duration::from_secs(60),
            stop: Duration::from_secs(3),
            last_words: Duration::from_secs(1),
        }
    }
}

/// Runs a program until it is told to stop, and starts it again whenever it ends.
pub async fn keep_running(
    program: Program,
    patience: Patience,
    mut metrics: Metrics,
    stopped: impl Future<Output = ()>,
) {
    let name = program.name.as_str();
    let mut stopped = pin!(stopped);
    let mut pauses = Pauses::new(patience);
    loop {
        let started = Instant::now();
        let pause = match Running::start(&program) {
            Ok(running) => {
                metrics.program_started(name);
                info!(program = name, pid = running.pid(), "Started a program");
                let ended = running.follow(name, patience, stopped.as_mut()).await;
                metrics.program_ended(name);
                let Some(how) = ended else {
                    info!(program = name, "Ended a program with the scheduler");
                    return;
                };
                let pause = pauses.after(started.elapsed());
                warn!(program = name, err = how, pause = ?pause, "A program has ended, and is started again after a pause");
                pause
            }
            Err(error) => {
                metrics.program_not_started(name);
                let pause = pauses.after(Duration::ZERO);
                let command = program.command.first().map_or("", String::as_str);
                warn!(program = name, err = %error, command, pause = ?pause, "A program cannot be started, and is tried again after a pause");
                pause
            }
        };
        tokio::select! {
            biased;
            () = stopped.as_mut() => return,
            () = sleep(pause) => {}
        }
    }
}

/// How long to wait before a program is started again.
#[derive(Debug)]
struct Pauses {
    patience: Patience,
    next: Duration,
}

impl Pauses {
    fn new(patience: Patience) -> Self {
        Pauses { patience, next: patience.pause_min }
    }

    /// The pause after a program that ran for so long.
    fn after(&mut self, ran: Duration) -> Duration {
        if ran >= self.patience.steady {
            self.next = self.patience.pause_min;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.patience.pause_max);
        pause
    }
}

/// A program that runs. Dropping this kills it, and what it started.
struct Running {
    child: Child,
    /// None if the program ended before anybody asked for its number.
    group: Option<Pid>,
}

impl Running {
    fn start(program: &Program) -> io::Result<Self> {
        let mut words = program.command.iter();
        let first =
            words.next().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "there is no command"))?;
        let mut command = Command::new(first);
        command.args(words);
        if let Some(folder) = &program.working_dir {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: what the program starts can be ended with it, and Ctrl-C at a terminal reaches the scheduler alone.
        command.process_group(0).kill_on_drop(true);
        let child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Running { child, group })
    }

    fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Waits for its end, and says how it ended; none if it was told to stop. What it prints is copied meanwhile, and also what
    /// comes after its end, for a moment.
    async fn follow(
        mut self,
        name: &str,
        patience: Patience,
        stopped: impl Future<Output = ()>,
    ) -> Option<String> {
        // It stays open as long as the program may run.
        let _input = self.child.stdin.take();
        let output = copy_to_log(name, self.child.stdout.take(), self.child.stderr.take());
        let mut output = pin!(output);
        let mut is_silent = false;
        let ended = {
            let mut stopped = pin!(stopped);
            loop {
                tokio::select! {
                    biased;
                    () = stopped.as_mut() => break None,
                    ended = self.child.wait() => break Some(how(ended)),
                    () = output.as_mut(), if !is_silent => is_silent = true,
                }
            }
        };
        if ended.is_none() {
            self.signal(Signal::TERM);
            let ending = async {
                loop {
                    tokio::select! {
                        biased;
                        _ = self.child.wait() => return,
                        () = output.as_mut(), if !is_silent => is_silent = true,
                    }
                }
            };
            if timeout(patience.stop, ending).await.is_err() {
                warn!(program = name, patience = ?patience.stop, "A program does not end when it is asked to, and is killed");
            }
        }
        // What the program has started would keep its ports, and its output open.
        self.kill();
        if !is_silent {
            _ = timeout(patience.last_words, output).await;
        }
        ended
    }

    /// Sends a signal to the program and to what it started.
    fn signal(&self, signal: Signal) {
        // Nobody is left who could take the signal if this fails.
        _ = self.group.map(|group| kill_process_group(group, signal));
    }

    /// Leaves nothing of it. The number of its group may be another's from then on, and is forgotten.
    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.group = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn how(ended: io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => status.to_string(),
        Err(error) => format!("cannot be waited for: {error}"),
    }
}
