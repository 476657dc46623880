//! A line that says how far something is that takes long.

use std::io::{IsTerminal, Stderr, Write, stderr, stdout};
use std::time::{Duration, Instant};

/// What is done sooner needs no such line.
const PATIENCE: Duration = Duration::from_secs(1);
/// The line is written anew that often at most.
const PACE: Duration = Duration::from_millis(100);
/// More would not fit beside each other on a narrow terminal, and a line that wraps cannot be rewritten.
const WIDTH_MAX: usize = 72;

/// Says on a terminal how far something is, in a line that is rewritten in place and erased at the end. Where standard error
/// is no terminal nothing is written. It has no thread: whoever works tells it now and then.
pub(crate) struct Progress {
    /// None if nobody looks.
    line: Option<Line<Stderr>>,
    began: Instant,
}

impl Progress {
    #[expect(clippy::disallowed_methods, reason = "the binary is where time comes from")]
    pub(crate) fn new() -> Self {
        let line = stderr().is_terminal().then(|| Line::new(stderr()));
        Progress { line, began: Instant::now() }
    }

    /// The same for work that prints what it is done with: on a terminal that says enough.
    pub(crate) fn beside_output() -> Self {
        let mut progress = Progress::new();
        progress.line = progress.line.filter(|_| !stdout().is_terminal());
        progress
    }

    /// How far it is now. The text is made only if it is shown.
    pub(crate) fn tell(&mut self, text: impl FnOnce() -> String) {
        if let Some(line) = &mut self.line {
            line.tell(self.began.elapsed(), text);
        }
    }
}

/// The line itself.
struct Line<W: Write> {
    output: W,
    /// When it is written next.
    due: Duration,
    is_shown: bool,
}

impl<W: Write> Line<W> {
    fn new(output: W) -> Self {
        Line { output, due: PATIENCE, is_shown: false }
    }

    fn tell(&mut self, elapsed: Duration, text: impl FnOnce() -> String) {
        if elapsed < self.due {
            return;
        }
        self.due = elapsed + PACE;
        self.is_shown = true;
        let shown: String =
            text().chars().filter(|character| !character.is_control()).take(WIDTH_MAX).collect();
        // Whether anybody sees it is no reason to stop.
        let _ = write!(self.output, "\r\x1b[K{shown}").and_then(|()| self.output.flush());
    }
}

impl<W: Write> Drop for Line<W> {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(self.output, "\r\x1b[K").and_then(|()| self.output.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written when somebody tells at these milliseconds.
    fn written(times: &[u64]) -> String {
        let mut output = Vec::new();
        let mut line = Line::new(&mut output);
        for time in times {
            line.tell(Duration::from_millis(*time), || format!("at\n{time}{}", "x".repeat(2 * WIDTH_MAX)));
        }
        drop(line);
        String::from_utf8(output).expect("text").replace("\r\x1b[K", "|").replace('x', "")
    }

    #[test]
    fn it_waits_keeps_its_pace_and_cleans_up() {
        for (times, expected) in [
            (&[][..], ""),
            (&[0, 500, 999], ""),
            (&[0, 1000], "|at1000|"),
            (&[1000, 1050, 1099, 1100, 1150, 3000], "|at1000|at1100|at3000|"),
        ] {
            assert_eq!(written(times), expected, "{times:?}");
        }
    }

    #[test]
    fn it_never_wraps() {
        let mut output = Vec::new();
        Line::new(&mut output).tell(PATIENCE, || "ü".repeat(1000));
        let text = String::from_utf8(output).expect("text");
        assert_eq!(text.matches('ü').count(), WIDTH_MAX);
    }
}
