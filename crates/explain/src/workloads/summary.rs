//! What is said about a workload as a whole.

use serde::{Serialize, Serializer};

use super::WorkloadKind;

/// Which workload, how many pods it wants, and how many of them there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSummary {
    /// What it is.
    #[serde(serialize_with = "as_word")]
    pub kind: WorkloadKind,
    /// `namespace/name`
    pub name: String,
    /// How many pods it wants now.
    pub wants: u64,
    /// How many of them exist.
    pub exists: u64,
    /// How many it would create.
    pub creates: u64,
    /// How many of these are explained; the others are like them.
    #[serde(rename = "explained")]
    pub made: usize,
    /// What else to know about how many there are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What is not known about its pods, and what they are taken for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
}

impl WorkloadSummary {
    /// As a sentence, and a line for each remark and assumption.
    pub fn text(&self) -> String {
        let WorkloadSummary { kind, name, wants, exists, creates, made, remarks, assumptions } = self;
        let pods = if *wants == 1 { "pod" } else { "pods" };
        let existing = match exists {
            0 => "none exists".to_owned(),
            1 => "1 exists".to_owned(),
            more => format!("{more} exist"),
        };
        let created = match (*creates, *made as u64) {
            (0, _) => "it would create none".to_owned(),
            (creates, made) if creates == made => format!("{made} explained as it would create them"),
            (creates, made) => {
                format!("it would create {creates}; {made} explained, the others are like them")
            }
        };
        let mut text = match wants {
            0 => format!("{} {name} wants no pods\n", kind.word()),
            _ => format!("{} {name} wants {wants} {pods}, {existing}: {created}\n", kind.word()),
        };
        remarks.iter().chain(assumptions).for_each(|remark| text.push_str(&format!("  {remark}\n")));
        text
    }
}

fn as_word<S: Serializer>(kind: &WorkloadKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.word())
}
