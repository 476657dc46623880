//! How tests name objects: `Pod web`, `Pod team-a/web`, `Gang.example.com team-a/g`.

use std::fmt;

use serde_json::Value;

/// The namespace of whoever names none. Objects of the whole cluster are kept as if they were in it: a kind has either the
/// ones or the others.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// An object by its name. Two kinds of one name differ by their groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) group: String,
}

/// What a test calls an object: like [`ObjectName`], but the group may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) kind: String,
    pub(crate) group: Option<String>,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectName {
    pub(crate) fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        ObjectName {
            kind: kind.to_owned(),
            namespace: or_default(namespace).to_owned(),
            name: name.to_owned(),
            group: group.to_owned(),
        }
    }

    /// The name of a whole object, or what it lacks.
    pub(crate) fn of(object: &Value) -> Result<Self, &'static str> {
        let word = |value: &Value| value.as_str().filter(|word| !word.is_empty()).map(str::to_owned);
        let api_version = word(&object["apiVersion"]).ok_or("it has no apiVersion")?;
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = word(&object["kind"]).ok_or("it has no kind")?;
        let name = word(&object["metadata"]["name"]).ok_or("it has no metadata.name")?;
        let namespace = word(&object["metadata"]["namespace"]).unwrap_or_default();
        Ok(ObjectName::new(group, &kind, &namespace, &name))
    }
}

impl Wanted {
    /// Reads `KIND NAME`, `KIND NAMESPACE/NAME`, both with or without `.GROUP` behind the kind.
    pub(crate) fn parse(words: &str) -> Option<Self> {
        let (kind, name) = words.split_once(' ')?;
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group.to_owned())),
            None => (kind, None),
        };
        let (namespace, name) = split(name);
        let is_name = |part: &str| !part.is_empty() && !part.contains([' ', '/']);
        let is_whole = is_name(kind) && is_name(namespace) && is_name(name);
        is_whole.then(|| Wanted {
            kind: kind.to_owned(),
            group,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    pub(crate) fn means(&self, name: &ObjectName) -> bool {
        self.kind == name.kind
            && self.namespace == name.namespace
            && self.name == name.name
            && self.group.as_ref().is_none_or(|group| *group == name.group)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, short(&self.namespace, &self.name))
    }
}

/// The namespace and the name in `NAME` or `NAMESPACE/NAME`.
pub(crate) fn split(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((DEFAULT_NAMESPACE, name))
}

/// A name as short as it can be: with its namespace unless that is the default one.
pub(crate) fn short(namespace: &str, name: &str) -> String {
    match or_default(namespace) {
        DEFAULT_NAMESPACE => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

fn or_default(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_has_one_name_however_it_is_called() {
        let object = |namespace: Value| json!({ "apiVersion": "example.com/v1", "kind": "Gang", "metadata": { "name": "g", "namespace": namespace } });
        for (words, namespace, is_meant) in [
            ("Gang g", json!("default"), true),
            ("Gang g", json!(null), true),
            ("Gang default/g", json!(""), true),
            ("Gang.example.com g", json!("default"), true),
            ("Gang.other.com g", json!("default"), false),
            ("Gang g", json!("team-a"), false),
            ("Gang team-a/g", json!("team-a"), true),
            ("Gang.example.com team-a/g", json!("team-a"), true),
            ("Pod g", json!("default"), false),
            ("Gang h", json!("default"), false),
        ] {
            let wanted = Wanted::parse(words).expect("it is a name");
            let name = ObjectName::of(&object(namespace)).expect("it is whole");
            assert_eq!(wanted.means(&name), is_meant, "{words} and {name}");
        }
    }

    #[test]
    fn what_is_no_name_is_none() {
        for words in ["", "Pod", "Pod ", " a", "Pod a b", "Pod a/b/c", "Pod /a", "Pod a/"] {
            assert_eq!(Wanted::parse(words), None, "{words:?}");
        }
        let lacks = |object: Value| ObjectName::of(&object).expect_err("something is missing");
        assert_eq!(lacks(json!(3)), "it has no apiVersion");
        assert_eq!(lacks(json!({ "apiVersion": "v1" })), "it has no kind");
        assert_eq!(lacks(json!({ "apiVersion": "v1", "kind": "Pod" })), "it has no metadata.name");
    }
}
