//! Plugin arguments: typed, defaulted, validated, each problem with its path.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The arguments of a plugin, as they stand in `pluginConfig[].args`.
///
/// Derive `Deserialize` with `#[serde(default, deny_unknown_fields, rename_all = "camelCase")]`; the `Default` value
/// is what an enabled plugin without arguments gets. Arguments are read by Go's rules: `null` is nothing anywhere. A
/// field that is an enum needs `#[serde(deserialize_with = "null_default")]` for that, of `supercargo_model::wire`.
pub trait Args: Default + DeserializeOwned + Serialize + Send + Sync + 'static {
    /// Fills in what depends on other fields; called after reading, before validation.
    fn complete(&mut self) {}

    /// Finds everything that is wrong.
    fn validate(&self, problems: &mut FieldProblems) {
        let _ = problems;
    }
}

/// For plugins that take no arguments. Whatever stands there is ignored, as Kubernetes does.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct NoArgs {}

impl<'de> serde::Deserialize<'de> for NoArgs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| NoArgs {})
    }
}

impl Args for NoArgs {}

/// Everything that is wrong with a value, each with its path below it.
#[derive(Clone, Debug, Default)]
pub struct FieldProblems(Vec<FieldProblem>);

/// Something that is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Where, such as `scoringStrategy.resources[0].weight`; empty for the value itself.
    pub path: String,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What is wrong.
    pub detail: String,
}

/// Kinds of problems, as the API machinery tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The value cannot be read at all, or has fields that do not exist.
    Unreadable,
    /// The value is not allowed.
    Invalid {
        /// The value, as JSON.
        value: String,
    },
    /// A value is missing.
    Required,
    /// The value must not be there.
    Forbidden,
    /// The value stands there twice.
    Duplicate {
        /// The value, as JSON.
        value: String,
    },
    /// The value is none of the known ones.
    Unsupported {
        /// The value, as JSON.
        value: String,
    },
}

impl FieldProblems {
    /// A value that is not allowed.
    pub fn invalid(&mut self, path: impl Into<String>, value: impl Serialize, detail: impl Into<String>) {
        self.add(path, ProblemKind::Invalid { value: json(value) }, detail);
    }

    /// A value that is missing.
    pub fn required(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.add(path, ProblemKind::Required, detail);
    }

    /// A value that must not be there.
    pub fn forbidden(&mut self, path: impl Into<String>, detail: impl Into<String>) {
        self.add(path, ProblemKind::Forbidden, detail);
    }

    /// A value that stands there twice.
    pub fn duplicate(&mut self, path: impl Into<String>, value: impl Serialize) {
        self.add(path, ProblemKind::Duplicate { value: json(value) }, "");
    }

    /// A value that is none of the known ones.
    pub fn unsupported(&mut self, path: impl Into<String>, value: impl Serialize, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        self.add(path, ProblemKind::Unsupported { value: json(value) }, detail);
    }

    /// Any problem.
    pub fn add(&mut self, path: impl Into<String>, kind: ProblemKind, detail: impl Into<String>) {
        self.0.push(FieldProblem { path: path.into(), kind, detail: detail.into() });
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The problems, in the order in which they were found.
    pub fn into_vec(self) -> Vec<FieldProblem> {
        self.0
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.kind {
            ProblemKind::Unreadable => {}
            ProblemKind::Invalid { value } => write!(f, "Invalid value: {value}: ")?,
            ProblemKind::Required => f.write_str("Required value: ")?,
            ProblemKind::Forbidden => f.write_str("Forbidden: ")?,
            ProblemKind::Duplicate { value } => write!(f, "Duplicate value: {value}")?,
            ProblemKind::Unsupported { value } => write!(f, "Unsupported value: {value}: ")?,
        }
        f.write_str(&self.detail)
    }
}

fn json(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_else(|error| error.to_string())
}
