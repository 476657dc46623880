//! `/statusz` and `/flagz`: what runs, since when and with which flags, as Kubernetes 1.36 shows it.
//!
//! As upstream, text is for people. Programs ask for a version of the object:
//! `Accept: application/json;v=v1beta1;g=config.k8s.io;as=Statusz`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::Clock;

const GROUP: &str = "config.k8s.io";
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
/// JSON is YAML, too.
const STRUCTURED: [&str; 2] = ["application/json", "application/yaml"];
const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                       guarantees and is for debugging purposes only.\n";

/// What runs.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The version of Kubernetes that it behaves as.
    pub emulated_version: &'static str,
    /// When it was started.
    pub started: Timestamp,
    /// What time it is.
    pub clock: Clock,
}

/// How a page is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// As an object of this version, under this media type.
    Structured {
        media_type: &'static str,
        version: &'static str,
        kind: &'static str,
    },
}

impl Form {
    /// What an `Accept` header asks for; none if nobody can give that.
    pub(super) fn of(accept: &str, kind: &'static str) -> Option<Self> {
        let mut wanted = accept.split(',').map(str::trim);
        if accept.trim().is_empty() {
            return Some(Form::Text);
        }
        wanted.find_map(|wanted| {
            let mut parts = wanted.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            if ["text/plain", "text/*", "*/*"].contains(&media_type) {
                return Some(Form::Text);
            }
            let media_type = STRUCTURED.into_iter().find(|known| *known == media_type)?;
            let parameters: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
            let version = VERSIONS.into_iter().find(|known| parameters.get("v") == Some(known))?;
            let is_ours = parameters.get("g") == Some(&GROUP) && parameters.get("as") == Some(&kind);
            is_ours.then_some(Form::Structured { media_type, version, kind })
        })
    }

    pub(super) fn content_type(&self) -> String {
        match self {
            Form::Text => "text/plain; charset=utf-8".to_owned(),
            Form::Structured { media_type, version, kind } => {
                format!("{media_type};g={GROUP};v={version};as={kind}")
            }
        }
    }

    fn object(&self, name: &str, mut rest: Value) -> String {
        if let Form::Structured { version, kind, .. } = self {
            rest["kind"] = json!(kind);
            rest["apiVersion"] = json!(format!("{GROUP}/{version}"));
            rest["metadata"] = json!({ "name": name });
        }
        format!("{rest}\n")
    }
}

pub(super) fn statusz(component: &Component, paths: &[String], form: &Form) -> String {
    let Component { name, version, emulated_version, started, clock } = component;
    let up = clock().as_second().saturating_sub(started.as_second()).max(0);
    if *form == Form::Text {
        let (hours, minutes, seconds) = (up / 3_600, up / 60 % 60, up % 60);
        return format!(
            "\n{name} statusz\n{WARNING}\n\
             Started: {}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\nGo version: none\n\
             Binary version: {version}\nEmulation version: {emulated_version}\nPaths: {}\n",
            started.strftime("%a %b %e %H:%M:%S UTC %Y"),
            paths.join(" "),
        );
    }
    form.object(
        name,
        json!({
            "startTime": started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "uptimeSeconds": up,
            "goVersion": "none",
            "binaryVersion": version,
            "emulationVersion": emulated_version,
            "paths": paths,
        }),
    )
}

pub(super) fn flagz(component: &Component, flags: &BTreeMap<String, String>, form: &Form) -> String {
    if *form == Form::Text {
        let lines: String = flags.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        return format!("\n{} flagz\n{WARNING}{lines}", component.name);
    }
    form.object(component.name, json!({ "flags": flags }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component() -> Component {
        Component {
            name: "supercargo",
            version: "0.1.0",
            emulated_version: "1.36",
            started: Timestamp::from_second(1_794_820_414).expect("a time"),
            clock: || Timestamp::from_second(1_794_820_414 + 3_600 + 125).expect("a time"),
        }
    }

    #[test]
    fn people_get_text_and_programs_say_which_version_they_want() {
        let json =
            |version| Some(Form::Structured { media_type: "application/json", version, kind: "Statusz" });
        for (accept, form) in [
            ("", Some(Form::Text)),
            ("*/*", Some(Form::Text)),
            ("text/html, text/plain;q=0.5", Some(Form::Text)),
            ("application/json", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", json("v1beta1")),
            ("application/json;as=Statusz;v=v1alpha1;g=config.k8s.io, text/plain", json("v1alpha1")),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None),
            ("application/json;v=v9;g=config.k8s.io;as=Statusz", None),
        ] {
            assert_eq!(Form::of(accept, "Statusz"), form, "{accept}");
        }
    }

    #[test]
    fn what_runs_and_since_when() {
        let paths = ["/healthz".to_owned(), "/metrics".to_owned()];
        assert_eq!(
            statusz(&component(), &paths, &Form::Text),
            format!(
                "\nsupercargo statusz\n{WARNING}\nStarted: Mon Nov 16 09:13:34 UTC 2026\nUp: 1 hr 02 min 05 sec\n\
                 Go version: none\nBinary version: 0.1.0\nEmulation version: 1.36\nPaths: /healthz /metrics\n"
            )
        );
        let form = Form::of("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "Statusz");
        let form = form.expect("it is known");
        assert_eq!(form.content_type(), "application/json;g=config.k8s.io;v=v1beta1;as=Statusz");
        let object: Value = serde_json::from_str(&statusz(&component(), &paths, &form)).expect("JSON");
        assert_eq!(
            object,
            json!({
                "kind": "Statusz", "apiVersion": "config.k8s.io/v1beta1", "metadata": {"name": "supercargo"},
                "startTime": "2026-11-16T09:13:34Z", "uptimeSeconds": 3725, "goVersion": "none", "binaryVersion": "0.1.0",
                "emulationVersion": "1.36", "paths": ["/healthz", "/metrics"],
            })
        );
    }

    #[test]
    fn flags_are_sorted() {
        let flags = BTreeMap::from([("v".to_owned(), "2".to_owned()), ("config".to_owned(), String::new())]);
        let text = flagz(&component(), &flags, &Form::Text);
        assert_eq!(text, format!("\nsupercargo flagz\n{WARNING}config \nv 2\n"));
    }
}
