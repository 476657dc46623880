//! `SupercargoConfiguration`: what kube-scheduler has no word for.
//!
//! It is the second document of the file, which kube-scheduler does not read, or a file of its own.

use serde::Serialize;
use serde_json::Value;
use supercargo_framework::{Fixes, QUIRKS};

use crate::codes;
use crate::fields::{Read, read_object};
use crate::nearest::did_you_mean;
use crate::problem::{Problem, Problems};

/// The settings of our own, of kind `SupercargoConfiguration` in `supercargo.dev/v1alpha1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SupercargoConfiguration {
    /// Which of several best nodes is taken.
    pub tie_break: TieBreak,
    /// Where the draw starts, if there is one.
    pub seed: u64,
    /// Which of upstream's quirks are fixed.
    pub fixes: Fixes,
}

/// Which of several best nodes is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum TieBreak {
    /// One drawn at random; the same seed draws the same.
    #[default]
    Seeded,
    /// The one whose name sorts first.
    SmallestName,
}

read_object!(SupercargoConfiguration { tie_break: "tieBreak", seed: "seed", fixes: "fixes" });

impl Read for TieBreak {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        match String::read(value, path, problems)?.as_str() {
            "Seeded" => Some(TieBreak::Seeded),
            "SmallestName" => Some(TieBreak::SmallestName),
            other => {
                let supported = "supported values: \"Seeded\", \"SmallestName\"";
                let message = format!("Unsupported value: {other:?}: {supported}");
                let hint = did_you_mean(other, ["Seeded", "SmallestName"]);
                problems.push(Problem::new(&codes::UNKNOWN_TIE_BREAK, path, message).with_hint(hint));
                None
            }
        }
    }
}

impl Read for Fixes {
    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        let mut fixes = Fixes::default();
        for (index, name) in Vec::<String>::read(value, path, problems)?.into_iter().enumerate() {
            // What is no string has been reported already.
            if value[index].is_string() && !fixes.enable(&name) {
                let names: Vec<&str> = QUIRKS.iter().map(|quirk| quirk.name).collect();
                let hint = did_you_mean(&name, names.iter().copied())
                    .unwrap_or_else(|| format!("the fixes are {}", names.join(", ")));
                let message = format!("there is no fix named {name:?}");
                let path = format!("{path}[{index}]");
                problems.push(Problem::new(&codes::UNKNOWN_FIX, path, message).with_hint(hint));
            }
        }
        Some(fixes)
    }
}
