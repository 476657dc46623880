//! `SupercargoConfiguration`: what kube-scheduler has no word for.
//!
//! It is the second document of the file, which kube-scheduler does not read, or a file of its own.

use core::net::SocketAddr;

use serde::Serialize;
use serde_json::Value;
use supercargo_framework::{Fixes, PluginType, QUIRKS, Registry};

use crate::codes;
use crate::fields::{Read, read_object};
use crate::nearest::did_you_mean;
use crate::problem::{Problem, Problems};

/// The settings of our own, of kind `SupercargoConfiguration` in `supercargo.dev/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SupercargoConfiguration {
    /// Which of several best nodes is taken.
    pub tie_break: TieBreak,
    /// Where the draw starts, if there is one.
    pub seed: u64,
    /// Which of upstream's quirks are fixed.
    pub fixes: Fixes,
    /// Pages of plugins that are served on an address of their own too.
    pub pages: Vec<PageAddress>,
    /// Programs that run as long as the scheduler does, such as an agent that a plugin asks.
    pub programs: Vec<Program>,
}

/// Where the page of a plugin is served: over HTTP, to everybody who can reach the address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageAddress {
    /// The plugin whose page it is.
    pub plugin: String,
    /// An IP address and a port, such as `127.0.0.1:10000`.
    pub address: String,
}

/// A program that is started with the scheduler, and again when it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// What the log and the metrics call it.
    pub name: String,
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// The folder that it is started in; that of the scheduler if it is empty.
    pub working_dir: String,
}

/// So many programs may run beside a scheduler.
const PROGRAMS_MAX: usize = 8;
/// So long the name of a program may be: it is a label of metrics, and stands in every line that the program writes.
const PROGRAM_NAME_BYTES_MAX: usize = 63;

/// Which of several best nodes is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum TieBreak {
    /// One drawn at random; the same seed draws the same.
    #[default]
    Seeded,
    /// The one whose name sorts first.
    SmallestName,
}

read_object!(SupercargoConfiguration {
    tie_break: "tieBreak",
    seed: "seed",
    fixes: "fixes",
    pages: "pages",
    programs: "programs",
});
read_object!(PageAddress { plugin: "plugin", address: "address" });
read_object!(Program { name: "name", command: "command", working_dir: "workingDir" });

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

/// What is wrong with the pages that the configuration wants on addresses of their own.
pub(crate) fn check_pages(own: &SupercargoConfiguration, registry: &Registry, problems: &mut Problems) {
    for (index, page) in own.pages.iter().enumerate() {
        let (plugin, path) = (page.plugin.as_str(), |field: &str| format!("pages[{index}].{field}"));
        if !registry.get(plugin).is_some_and(PluginType::has_page) {
            let names: Vec<&str> =
                registry.iter().filter(|plugin| plugin.has_page()).map(|plugin| plugin.name).collect();
            let hint = did_you_mean(plugin, names.iter().copied()).unwrap_or_else(|| match names.len() {
                0 => "no plugin of this program has a page".to_owned(),
                _ => format!("the plugins with a page are {}", names.join(", ")),
            });
            let message = format!("no plugin named {plugin:?} has a page");
            problems.push(Problem::new(&codes::NO_SUCH_PAGE, path("plugin"), message).with_hint(hint));
        }
        let is_taken = own.pages[..index].iter().any(|other| other.address == page.address);
        let wrong = match page.address.parse::<SocketAddr>() {
            Err(_) => Some("is no IP address with a port, such as \"127.0.0.1:10000\""),
            Ok(address) if address.port() == 0 => Some("needs a port other than 0"),
            Ok(_) if is_taken => Some("is the address of another page"),
            Ok(_) => None,
        };
        if let Some(wrong) = wrong {
            let message = format!("Invalid value: {:?}: {wrong}", page.address);
            problems.add(&codes::PAGE_ADDRESS, path("address"), message);
        }
    }
}

/// What is wrong with the programs that shall run beside the scheduler. Whether they can be started is found out when they are: the
/// scheduler goes on without them.
pub(crate) fn check_programs(own: &SupercargoConfiguration, problems: &mut Problems) {
    for (index, program) in own.programs.iter().enumerate() {
        let path = |field: &str| format!("programs[{index}].{field}");
        let name = program.name.as_str();
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
        let wrong = match name {
            "" => Some("a program needs a name".to_owned()),
            _ if name.len() > PROGRAM_NAME_BYTES_MAX || !name.chars().all(is_plain) => Some(format!(
                "must be letters, digits, '-', '.' and '_', at most {PROGRAM_NAME_BYTES_MAX} of them"
            )),
            _ if own.programs[..index].iter().any(|other| other.name == name) => {
                Some("is the name of another program".to_owned())
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            problems.add(&codes::PROGRAM, path("name"), format!("Invalid value: {name:?}: {wrong}"));
        }
        if program.command.first().is_none_or(String::is_empty) {
            let message = "Required value: the program to start, and its arguments";
            problems.add(&codes::PROGRAM, path("command"), message.to_owned());
        }
        let words = program.command.iter().chain([&program.working_dir]);
        if words.into_iter().any(|word| word.contains('\0')) {
            problems.add(
                &codes::PROGRAM,
                path("command"),
                "no system takes a null character in a command".to_owned(),
            );
        }
    }
    if own.programs.len() > PROGRAMS_MAX {
        let message = format!("Too many: {}: must have at most {PROGRAMS_MAX} items", own.programs.len());
        problems.add(&codes::PROGRAM, "programs", message);
    }
}
