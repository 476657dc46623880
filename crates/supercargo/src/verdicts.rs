//! `supercargo verdicts`.

use std::io::{self, BufRead, BufWriter, ErrorKind, Read, Write};

use anyhow::Context;
use supercargo_conformance::{Case, CaseVerdict, Judge};
use supercargo_framework::Registry;

use crate::outcome::Outcome;

/// A case is one line; a longer one is refused instead of filling the memory.
const CASE_BYTES_MAX: u64 = 1 << 30;

/// Which cases are judged, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct VerdictsOptions {
    /// Decide each pod by the engine's index as well; another decision there is an error of the case
    #[arg(long)]
    check_index: bool,
    /// Judge only cases of these families: `coscheduling` has `coscheduling-1-5`
    #[arg(long, value_name = "NAME", num_args = 1..)]
    family: Vec<String>,
}

pub(crate) fn run(options: &VerdictsOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    let judge = Judge::new(registry);
    let judge = if options.check_index { judge.checking_index() } else { judge };
    judge_all(io::stdin().lock(), BufWriter::new(io::stdout().lock()), judge, &options.family)
}

/// Judges a case a line, and writes a verdict a line, of all cases or of some families. A line is written whole or not at all.
pub(crate) fn judge_all(
    mut input: impl BufRead,
    mut output: impl Write,
    mut judge: Judge<'_>,
    families: &[String],
) -> anyhow::Result<Outcome> {
    let mut failures = Failures::default();
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = input.by_ref().take(CASE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.with_context(|| format!("cannot read case {number}"))? == 0 {
            break;
        }
        let is_cut = line.len() as u64 == CASE_BYTES_MAX && !line.ends_with(b"\n");
        if is_cut {
            input.skip_until(b'\n').with_context(|| format!("cannot read case {number}"))?;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let verdict = match read_case(&line, is_cut) {
            Ok(case) if !families.is_empty() && !families.iter().any(|family| *family == case.family()) => {
                continue;
            }
            Ok(case) => judge.judge(&case),
            Err(error) => CaseVerdict {
                // Whoever compares verdicts needs a name that no other line has.
                name: format!("line {number}"),
                error: format!("line {number} of the input is not a case: {error}"),
                ..CaseVerdict::default()
            },
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

fn read_case(line: &[u8], is_cut: bool) -> Result<Case<'_>, String> {
    if is_cut {
        return Err(format!("it is longer than {CASE_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(line).map_err(|_| "it is no text in UTF-8".to_owned())?;
    let text = text.trim_end();
    if !text.trim_start().starts_with('{') {
        return Err("it is no JSON object".to_owned());
    }
    // The line is the input's, and is named already.
    serde_json::from_str(text).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))
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
            self.first.get_or_insert_with(|| {
                match verdict.error.strip_prefix(&format!("{} ", verdict.name)) {
                    Some(_) => verdict.error.clone(),
                    None => format!("line {line}, {}: {}", verdict.name, verdict.error),
                }
            });
        }
    }

    fn into_outcome(self) -> Outcome {
        let Some(first) = self.first else { return Outcome::default() };
        let (failed, cases) = (self.failed, self.cases);
        let stderr = format!("error: {failed} of {cases} cases could not be judged; the first is {first}\n");
        Outcome { stderr, code: 1, ..Outcome::default() }
    }
}

#[cfg(test)]
mod tests;
