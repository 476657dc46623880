//! What the outside asks of the process by signals.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

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

/// Listens for signals. From its making on, they no longer end the process by themselves.
#[derive(Debug)]
pub struct Signals {
    terminate: Stream,
    interrupt: Stream,
    dump: Stream,
    stopping: bool,
}

impl Signals {
    /// Begins to listen. Must be called within a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            dump: signal(SignalKind::user_defined2())?,
            stopping: false,
        })
    }

    /// Waits for the next one. Giving up the wait loses none.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => self.stop(),
            _ = self.interrupt.recv() => self.stop(),
            _ = self.dump.recv() => Signal::Dump,
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
