//! What can be wrong with a configuration.

use std::fmt;

use serde::Serialize;
use supercargo_model::printable;

use crate::codes::{self, Code};
use crate::places::{Places, Position};

/// Something that is wrong, or looks so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether it stops the scheduler.
    pub severity: Severity,
    /// A stable name for this kind of problem, such as `C030`; `docs/reference/config-codes.md` explains it.
    pub code: &'static str,
    /// Where, such as `profiles[0].plugins.score.enabled[1].name`; empty for the whole file.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The line and the column of the file; none if the path is not of the file, but of what the file was converted to.
    #[serde(flatten)]
    pub position: Option<Position>,
    /// The file that it is of, if that is another than was given: one that the configuration names.
    #[serde(skip)]
    pub file: Option<String>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A scheduler cannot run with this configuration.
    Error,
    /// It can, but perhaps not as its author thinks.
    Warning,
}

/// Everything that is wrong with a configuration, in the order in which it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problem {
    pub(crate) fn new(code: &Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        Problem {
            severity: code.severity(),
            code: code.id,
            path: path.into(),
            message: message.into(),
            hint: None,
            position: None,
            file: None,
        }
    }

    /// A file that cannot be read at all.
    pub fn unreadable_file(message: impl Into<String>) -> Self {
        Problem::new(&codes::UNREADABLE_FILE, "", message)
    }

    pub(crate) fn at(mut self, position: Option<Position>) -> Self {
        self.position = position;
        self
    }

    /// The problem behind its place in a file, as compilers print it: `config.yaml:3:1: error C040 …`.
    pub fn in_file(&self, file: &str) -> String {
        let file = self.file.as_deref().unwrap_or(file);
        match self.position {
            Some(Position { line, column, .. }) => format!("{file}:{line}:{column}: {self}"),
            None => format!("{file}: {self}"),
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl Problems {
    pub(crate) fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub(crate) fn add(&mut self, code: &Code, path: impl Into<String>, message: impl Into<String>) {
        self.push(Problem::new(code, path, message));
    }

    /// A value that is not allowed, worded as the API machinery words it.
    pub(crate) fn invalid(
        &mut self,
        code: &Code,
        path: impl Into<String>,
        value: impl Serialize,
        detail: &str,
    ) {
        let value = serde_json::to_string(&value).unwrap_or_default();
        self.add(code, path, format!("Invalid value: {value}: {detail}"));
    }

    pub(crate) fn extend(&mut self, others: Problems) {
        self.0.extend(others.0);
    }

    /// These problems, and then others.
    #[must_use]
    pub fn and(mut self, others: Problems) -> Problems {
        self.extend(others);
        self
    }

    /// All problems behind their places in a file, each on lines of its own.
    pub fn in_file(&self, file: &str) -> String {
        self.0.iter().map(|problem| problem.in_file(file)).collect::<Vec<_>>().join("\n")
    }

    /// Gives those that were found after the first `known` ones, and have no place yet, their places.
    pub(crate) fn locate(&mut self, known: usize, places: &Places) {
        for problem in self.0.iter_mut().skip(known).filter(|problem| problem.position.is_none()) {
            problem.position = places.nearest(&problem.path);
        }
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Problem) -> bool) {
        self.0.retain(keep);
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Problem> {
        self.0.iter_mut()
    }

    /// All problems.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// The problems that stop the scheduler; the first one is the one that upstream would report.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter().filter(|problem| problem.severity == Severity::Error)
    }

    /// Whether something stops the scheduler.
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The errors alone.
    pub(crate) fn into_errors(self) -> Problems {
        Problems(self.0.into_iter().filter(|problem| problem.severity == Severity::Error).collect())
    }

    /// `Ok` unless something stops the scheduler.
    pub(crate) fn into_result<T>(self, value: T) -> Result<T, Problems> {
        if self.has_errors() { Err(self) } else { Ok(value) }
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

/// A line, and one for the hint. What a file says cannot break out of them: field names and kinds may hold line breaks.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.severity, self.code)?;
        if !self.path.is_empty() {
            write!(f, " {}", printable(&self.path))?;
        }
        write!(f, ": {}", printable(&self.message))?;
        if let Some(hint) = &self.hint {
            write!(f, "\n    hint: {}", printable(hint))?;
        }
        Ok(())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}
