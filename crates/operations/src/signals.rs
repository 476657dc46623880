//! What the outside asks of the process by signals.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::sync::mpsc;

/// Something asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM or SIGINT: finish what is under way, and end.
    Stop,
    /// SIGTERM or SIGINT once more: end at once.
    StopNow,
    /// SIGUSR2: write what the queue and the cache hold to the log.
    Dump,
}

/// How many signals that a test gives may wait to be taken.
const GIVEN_WAITING_MAX: usize = 16;

/// Where signals come from: the system, or a test.
#[derive(Debug)]
pub struct Signals {
    source: Source,
    stopping: bool,
}

#[derive(Debug)]
enum Source {
    System { terminate: Stream, interrupt: Stream, dump: Stream },
    Given(mpsc::Receiver<Given>),
}

/// A signal that a test gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// As SIGTERM or SIGINT.
    Terminate,
    /// As SIGUSR2.
    Dump,
}

impl Signals {
    /// Begins to listen to the system: from now on, signals no longer end the process by themselves. Must be called within
    /// a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        let source = Source::System {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            dump: signal(SignalKind::user_defined2())?,
        };
        Ok(Signals { source, stopping: false })
    }

    /// Signals that are sent through a channel, for a process that lives in a test or in a simulation.
    pub fn given() -> (mpsc::Sender<Given>, Self) {
        let (sender, given) = mpsc::channel(GIVEN_WAITING_MAX);
        (sender, Signals { source: Source::Given(given), stopping: false })
    }

    /// Waits for the next one. Giving up the wait loses none.
    pub async fn next(&mut self) -> Signal {
        let given = match &mut self.source {
            Source::System { terminate, interrupt, dump } => tokio::select! {
                biased;
                _ = terminate.recv() => Given::Terminate,
                _ = interrupt.recv() => Given::Terminate,
                _ = dump.recv() => Given::Dump,
            },
            Source::Given(given) => match given.recv().await {
                Some(given) => given,
                // There will be no more.
                None => std::future::pending().await,
            },
        };
        match given {
            Given::Terminate => self.stop(),
            Given::Dump => Signal::Dump,
        }
    }

    fn stop(&mut self) -> Signal {
        let before = std::mem::replace(&mut self.stopping, true);
        if before { Signal::StopNow } else { Signal::Stop }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Signal, Signals};

    /// One test for all: the process has only one set of signals.
    #[tokio::test]
    async fn a_second_request_to_stop_means_at_once() {
        let mut signals = Signals::listen().expect("signals can be listened for");
        let send = |name: &str| {
            // Every shell has a kill of its own; not every machine has the program.
            let kill = format!("kill {name} {}", std::process::id());
            assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell runs").success());
        };
        for (name, expected) in [
            ("-USR2", Signal::Dump),
            ("-TERM", Signal::Stop),
            ("-USR2", Signal::Dump),
            ("-INT", Signal::StopNow),
            ("-TERM", Signal::StopNow),
        ] {
            send(name);
            assert_eq!(signals.next().await, expected, "{name}");
        }
    }
}
