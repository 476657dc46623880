//! What a command comes to: all of its output at once, so that nothing half-written is ever seen.

use std::io::{self, Write};
use std::process::ExitCode;

use supercargo_model::printable_lines;

/// What a command prints, and how it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// 0 for success, 1 for failure, 2 for wrong usage, as with clap.
    pub(crate) code: u8,
}

impl Outcome {
    pub(crate) fn failure(error: &anyhow::Error) -> Self {
        Outcome { stderr: format!("error: {error:#}\n"), code: 1, ..Outcome::default() }
    }

    pub(crate) fn wrong_usage(problem: &str) -> Self {
        Outcome { stderr: format!("error: {problem}\n"), code: 2, ..Outcome::default() }
    }

    /// Prints it.
    pub(crate) fn report(self) -> ExitCode {
        // Whatever a terminal obeys is escaped, wherever it came from; in JSON the escape is JSON's own.
        let (stderr, stdout) = (printable_lines(&self.stderr), printable_lines(&self.stdout));
        let printed = write_all(io::stderr(), &stderr).and(write_all(io::stdout(), &stdout));
        exit_code(printed, self.code)
    }
}

/// Prints what clap says about a command line: help, the version, or what is wrong.
pub(crate) fn report_usage(answer: &clap::Error) -> ExitCode {
    // Standard output keeps the last line until it is flushed.
    let printed = answer.print().and_then(|()| io::stdout().flush());
    exit_code(printed, u8::try_from(answer.exit_code()).unwrap_or(2))
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
