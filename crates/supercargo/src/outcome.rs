//! What a command comes to: all of its output at once, so that nothing half-written is ever seen.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use supercargo_model::printable_lines;

/// What a command prints, and how it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// 0 for success, 1 for failure, 2 for wrong usage, as with clap.
    pub code: u8,
}

impl Outcome {
    pub(crate) fn failure(error: &anyhow::Error) -> Self {
        Outcome { stderr: format!("error: {error:#}\n"), code: 1, ..Outcome::default() }
    }

    pub(crate) fn wrong_usage(problem: &str) -> Self {
        Outcome { stderr: format!("error: {problem}\n"), code: 2, ..Outcome::default() }
    }

    /// What clap says about a command line, without colours.
    pub(crate) fn usage(answer: &clap::Error) -> Self {
        let (text, code) = (answer.render().to_string(), usage_code(answer));
        if answer.use_stderr() {
            Outcome { stderr: text, code, ..Outcome::default() }
        } else {
            Outcome { stdout: text, code, ..Outcome::default() }
        }
    }

    /// As it is printed: whatever a terminal obeys is escaped, wherever it came from; in JSON the escape is JSON's own.
    pub(crate) fn printable(mut self) -> Self {
        for text in [&mut self.stdout, &mut self.stderr] {
            if let Cow::Owned(escaped) = printable_lines(text) {
                *text = escaped;
            }
        }
        self
    }

    /// Prints it.
    pub(crate) fn report(self) -> ExitCode {
        let Outcome { stdout, stderr, code } = self.printable();
        let printed = write_all(io::stderr(), &stderr).and(write_all(io::stdout(), &stdout));
        exit_code(printed, code)
    }
}

/// Prints what clap says about a command line: help, the version, or what is wrong.
pub(crate) fn report_usage(answer: &clap::Error) -> ExitCode {
    // Standard output keeps the last line until it is flushed.
    let printed = answer.print().and_then(|()| io::stdout().flush());
    exit_code(printed, usage_code(answer))
}

fn usage_code(answer: &clap::Error) -> u8 {
    u8::try_from(answer.exit_code()).unwrap_or(2)
}

/// The exit code of a command, unless it could not be printed.
fn exit_code(printed: io::Result<()>, code: u8) -> ExitCode {
    match printed {
        Ok(()) => ExitCode::from(code),
        // Whoever read along has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(code),
        Err(error) => {
            // If standard error is gone as well, the exit code is all that is left to say.
            let _ = write_all(io::stderr(), &format!("error: cannot write: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn write_all(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}
