//! Roles and bindings as YAML for people: a rule is three or four lines, lists stand in one.

use std::fmt::Write as _;

use super::rules::Rule;

const RBAC: &str = "rbac.authorization.k8s.io";

/// An object to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Document {
    ServiceAccount { namespace: String, name: String },
    ClusterRole { name: String, rules: Vec<Rule> },
    Role { namespace: String, name: String, rules: Vec<Rule> },
    Binding(Binding),
}

/// Who has a role: in one namespace, or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// Its kind and its name.
    pub(super) role: (&'static str, String),
    /// The namespace and the name of the service account.
    pub(super) account: (String, String),
}

pub(super) fn print(made_by: &str, documents: &[Document]) -> String {
    let mut text = format!("# Made by: {made_by}\n");
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        match document {
            Document::ServiceAccount { namespace, name } => {
                head(&mut text, "v1", "ServiceAccount", Some(namespace), name);
            }
            Document::ClusterRole { name, rules: list } => {
                head(&mut text, &format!("{RBAC}/v1"), "ClusterRole", None, name);
                text.push_str(&rules(list));
            }
            Document::Role { namespace, name, rules: list } => {
                head(&mut text, &format!("{RBAC}/v1"), "Role", Some(namespace), name);
                text.push_str(&rules(list));
            }
            Document::Binding(made) => binding(&mut text, made),
        }
    }
    text
}

/// The rules of a role, with the word `rules` before them.
pub(super) fn rules(rules: &[Rule]) -> String {
    let mut text = String::from("rules:\n");
    let mut last = "";
    for rule in rules {
        if !rule.comment.is_empty() && rule.comment != last {
            _ = writeln!(text, "# {}", rule.comment);
        }
        last = &rule.comment;
        if rule.urls.is_empty() {
            _ = writeln!(text, "- apiGroups: {}", list(&rule.groups));
            _ = writeln!(text, "  resources: {}", list(&rule.resources));
        } else {
            _ = writeln!(text, "- nonResourceURLs: {}", list(&rule.urls));
        }
        if !rule.names.is_empty() {
            _ = writeln!(text, "  resourceNames: {}", list(&rule.names));
        }
        _ = writeln!(text, "  verbs: {}", list(&rule.verbs));
    }
    text
}

fn head(text: &mut String, api_version: &str, kind: &str, namespace: Option<&str>, name: &str) {
    _ = writeln!(text, "apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {}", scalar(name));
    if let Some(namespace) = namespace {
        _ = writeln!(text, "  namespace: {}", scalar(namespace));
    }
}

fn binding(text: &mut String, Binding { namespace, name, role, account }: &Binding) {
    let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    head(text, &format!("{RBAC}/v1"), kind, namespace.as_deref(), name);
    _ = writeln!(text, "roleRef:\n  apiGroup: {RBAC}\n  kind: {}\n  name: {}", role.0, scalar(&role.1));
    _ = writeln!(
        text,
        "subjects:\n- kind: ServiceAccount\n  name: {}\n  namespace: {}",
        scalar(&account.1),
        scalar(&account.0)
    );
}

fn list<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<_> = words.iter().map(|word| scalar(word.as_ref())).collect();
    format!("[{}]", words.join(", "))
}

/// A word as YAML writes it: in quotes where it could be read as anything but a string.
fn scalar(word: &str) -> String {
    let is_plain = word.starts_with(|first: char| first.is_ascii_lowercase())
        && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'/'))
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"].contains(&word);
    if is_plain { word.to_owned() } else { serde_json::Value::from(word).to_string() }
}
