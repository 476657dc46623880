//! What a program prints, as lines of the log.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep};
use tracing::info;

/// How much of a line is logged; the rest of it is left out.
const LINE_BYTES_MAX: usize = 4096;
/// So many lines of a program are logged within [`WINDOW`]; a log must have room for others.
const LINES_MAX: u32 = 100;
const WINDOW: Duration = Duration::from_secs(1);
/// How much is read at a time.
const READ_BYTES: usize = 8192;
/// The pause after each read of a program that prints more than is logged: a program that prints for ever must not have the processor for
/// ever, which the lease and probes need too.
const PAUSE: Duration = Duration::from_millis(10);

/// Copies what a program prints into the log until it closes both streams. Everything is read, though not faster than there is time for:
/// a program whose output nobody reads would wait for ever.
pub(super) async fn copy_to_log(
    program: &str,
    output: Option<impl AsyncRead + Unpin>,
    errors: Option<impl AsyncRead + Unpin>,
) {
    tokio::join!(copy(program, "stdout", output), copy(program, "stderr", errors));
}

async fn copy(program: &str, stream: &'static str, from: Option<impl AsyncRead + Unpin>) {
    let Some(mut from) = from else { return };
    let (mut lines, mut allowance) = (Lines::default(), Allowance::new(Instant::now()));
    let mut buffer = vec![0; READ_BYTES];
    loop {
        // One that cannot be read from has closed it, for all that can be known.
        let count = from.read(&mut buffer).await.unwrap_or(0);
        let mut log = |line: &str| {
            let Some(left_out) = allowance.take(Instant::now()) else { return };
            if left_out > 0 {
                info!(program, stream, lines = left_out, "A program prints more than is logged");
            }
            info!(program, stream, line, "A program says");
        };
        lines.push(&buffer[..count], &mut log);
        if count == 0 {
            lines.end(&mut log);
            break;
        }
        if allowance.is_spent() {
            sleep(PAUSE).await;
        }
    }
    if allowance.left_out > 0 {
        info!(program, stream, lines = allowance.left_out, "A program prints more than is logged");
    }
}

/// Makes lines of bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// Whether the rest of the line is left out.
    is_full: bool,
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8], log: &mut impl FnMut(&str)) {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            let room = LINE_BYTES_MAX - self.begun.len();
            self.is_full |= part.len() > room;
            self.begun.extend_from_slice(&part[..part.len().min(room)]);
            if parts.peek().is_some() {
                self.end(log);
            }
        }
    }

    /// The line is over. One of nothing but spaces is nothing to log.
    pub(super) fn end(&mut self, log: &mut impl FnMut(&str)) {
        let line = String::from_utf8_lossy(&self.begun);
        match (line.trim_end(), self.is_full) {
            ("", _) => {}
            (line, false) => log(line),
            (line, true) => log(&format!("{line}…")),
        }
        self.begun.clear();
        self.is_full = false;
    }
}

/// Which lines are logged.
#[derive(Debug)]
pub(super) struct Allowance {
    since: Instant,
    taken: u32,
    /// How many were left out, and nobody was told.
    left_out: u64,
}

impl Allowance {
    pub(super) fn new(now: Instant) -> Self {
        Allowance { since: now, taken: 0, left_out: 0 }
    }

    /// Whether the next line will be left out, unless it comes later.
    fn is_spent(&self) -> bool {
        self.taken == LINES_MAX
    }

    /// Whether a line is logged, and how many were left out before it.
    pub(super) fn take(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= WINDOW {
            (self.since, self.taken) = (now, 0);
        }
        if self.is_spent() {
            self.left_out += 1;
            return None;
        }
        self.taken += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}
