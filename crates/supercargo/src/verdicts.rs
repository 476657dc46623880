//! `supercargo verdicts`.

use std::io::{self, BufRead, BufWriter, ErrorKind, Read, Write};

use anyhow::{Context, bail};
use supercargo_conformance::{Case, CaseVerdict, Judge};
use supercargo_framework::Registry;

use crate::outcome::Outcome;

/// A case is one line; a longer one is refused instead of filling the memory.
const CASE_BYTES_MAX: u64 = 1 << 30;

pub(crate) fn run(registry: &Registry, check_index: bool) -> anyhow::Result<Outcome> {
    let judge = Judge::new(registry);
    let judge = if check_index { judge.checking_index() } else { judge };
    judge_all(io::stdin().lock(), BufWriter::new(io::stdout().lock()), judge)
}

/// Judges a case a line, and writes a verdict a line. A line is written whole or not at all.
pub(crate) fn judge_all(
    mut input: impl BufRead,
    mut output: impl Write,
    mut judge: Judge<'_>,
) -> anyhow::Result<Outcome> {
    let mut failures = Failures::default();
    let mut line = String::new();
    for number in 1_u64.. {
        line.clear();
        let length = input.by_ref().take(CASE_BYTES_MAX).read_line(&mut line);
        if length.with_context(|| format!("cannot read case {number}"))? == 0 {
            break;
        }
        if line.len() as u64 == CASE_BYTES_MAX {
            bail!("case {number} is longer than {CASE_BYTES_MAX} bytes");
        }
        if line.trim().is_empty() {
            continue;
        }
        let verdict = match serde_json::from_str::<Case<'_>>(&line) {
            Ok(case) => judge.judge(&case),
            Err(error) => {
                output.flush().context("cannot write verdicts")?;
                bail!("line {number} of the input is not a case: {error}");
            }
        };
        failures.count(number, &verdict);
        let mut text = serde_json::to_vec(&verdict).context("cannot write a verdict as JSON")?;
        text.push(b'\n');
        match output.write_all(&text) {
            // Whoever read along has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            written => written.context("cannot write verdicts")?,
        }
    }
    match output.flush() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write verdicts")?,
        _ => {}
    }
    Ok(failures.into_outcome())
}

/// The cases that could not be judged.
#[derive(Default)]
struct Failures {
    cases: u64,
    failed: u64,
    first: Option<String>,
}

impl Failures {
    fn count(&mut self, line: u64, verdict: &CaseVerdict) {
        self.cases += 1;
        if !verdict.error.is_empty() {
            self.failed += 1;
            self.first.get_or_insert_with(|| format!("line {line}, {}: {}", verdict.name, verdict.error));
        }
    }

    fn into_outcome(self) -> Outcome {
        let Some(first) = self.first else { return Outcome::default() };
        let (failed, cases) = (self.failed, self.cases);
        let stderr = format!("error: {failed} of {cases} cases could not be judged; the first is {first}\n");
        Outcome { stderr, code: 1, ..Outcome::default() }
    }
}
