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

/// Which of several best nodes is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum TieBreak {
    /// One drawn at random; the same seed draws the same.
    #[default]
    Seeded,
    /// The one whose name sorts first.
    SmallestName,
}

read_object!(SupercargoConfiguration { tie_break: "tieBreak", seed: "seed", fixes: "fixes", pages: "pages" });
read_object!(PageAddress { plugin: "plugin", address: "address" });

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
