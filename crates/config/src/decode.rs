//! The first stage: words to a configuration with its scalar defaults.

use serde_json::Value;

use crate::codes::{self, Code};
use crate::defaults;
use crate::document;
use crate::fields::{self, Object, Read};
use crate::legacy::{self, Document, Release};
use crate::own::SupercargoConfiguration;
use crate::problem::{Problem, Problems};
use crate::types::KubeSchedulerConfiguration;

pub(crate) const KUBE_GROUP: &str = "kubescheduler.config.k8s.io";
pub(crate) const KUBE_API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
pub(crate) const KUBE_KIND: &str = "KubeSchedulerConfiguration";
pub(crate) const OWN_GROUP: &str = "supercargo.dev";
pub(crate) const OWN_API_VERSION: &str = "supercargo.dev/v1alpha1";
pub(crate) const OWN_KIND: &str = "SupercargoConfiguration";
const POLICY_KIND: &str = "Policy";

/// What the words say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// What kube-scheduler would read too.
    pub kube: KubeSchedulerConfiguration,
    /// The settings of our own.
    pub own: SupercargoConfiguration,
    /// What changed on the way from an older version to `kube`, with paths of the older one; empty if there was none.
    pub conversion: Problems,
}

/// Reads a file: a `KubeSchedulerConfiguration`, a `SupercargoConfiguration`, or the one and then the other. Older
/// versions, the Policy, and ConfigMaps that hold them are converted.
pub fn load(text: &str) -> Result<Loaded, Problems> {
    load_all(&[text])
}

/// Reads several files that together hold at most one document of each kind.
pub fn load_all(texts: &[&str]) -> Result<Loaded, Problems> {
    let mut reader = Reader::default();
    for text in texts {
        match document::parse(text) {
            Ok(documents) => reader.read_file(&documents),
            Err(found) => reader.problems.extend(found),
        }
    }
    reader.finish()
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    problems: Problems,
    kube: Option<KubeSchedulerConfiguration>,
    own: Option<SupercargoConfiguration>,
    old: Option<(&'static Release, Document)>,
    policy: Option<Document>,
}

impl Reader {
    fn read_file(&mut self, documents: &[Value]) {
        if documents.is_empty() {
            let hint = format!("start with `apiVersion: {KUBE_API_VERSION}` and `kind: {KUBE_KIND}`");
            let message = "the file is empty: Object 'Kind' is missing";
            self.problems.push(Problem::new(&codes::NO_KIND, "", message).with_hint(hint));
        }
        let several = documents.len() > 1;
        for (index, document) in documents.iter().enumerate() {
            let place = if several { format!("document {}: ", index + 1) } else { String::new() };
            self.read_document(document, index, &place, "");
        }
    }

    /// Reads a document; `path` is where it stands, if it is an entry of a ConfigMap.
    fn read_document(&mut self, document: &Value, index: usize, place: &str, path: &str) {
        let Some((kind, fields)) = kind_of(document, place, path, &mut self.problems) else { return };
        let document = Document { fields, path: path.to_owned() };
        match kind {
            Kind::Kube => {
                if index > 0 {
                    let message = format!("{place}{KUBE_KIND} must be the first document");
                    let hint = "kube-scheduler reads the first document only".to_owned();
                    let path = fields::below(path, "kind");
                    self.problems.push(Problem::new(&codes::DOCUMENT_ORDER, path, message).with_hint(hint));
                }
                let read = read_kube(&document, &mut self.problems);
                store(&mut self.kube, read, KUBE_KIND, place, &mut self.problems);
            }
            Kind::Own => {
                let fields = Value::Object(document.fields);
                let read = SupercargoConfiguration::read(&fields, path, &mut self.problems);
                store(&mut self.own, read, OWN_KIND, place, &mut self.problems);
            }
            Kind::Old(release) => {
                store(&mut self.old, (release, document), KUBE_KIND, place, &mut self.problems);
            }
            Kind::Policy => store(&mut self.policy, document, POLICY_KIND, place, &mut self.problems),
            Kind::ConfigMap => self.read_config_map(&document.fields, place),
        }
    }

    /// Reads the entries of a ConfigMap that are configurations; the others may be there for somebody else.
    fn read_config_map(&mut self, fields: &Object, place: &str) {
        let mut found = false;
        let data = fields.get("data").and_then(Value::as_object);
        for (key, text) in data.into_iter().flatten() {
            let path = format!("data[{key}]");
            let documents = text.as_str().and_then(|text| document::parse(text).ok()).unwrap_or_default();
            let mut read = false;
            for (index, document) in documents.iter().enumerate().filter(|(_, document)| is_ours(document)) {
                read = true;
                self.read_document(document, index, place, &path);
            }
            found |= read;
            if !read {
                let message = format!("{place}is no scheduler's configuration, and was not read");
                self.problems.add(&codes::ENTRY_NOT_READ, path, message);
            }
        }
        if !found {
            let message = format!("{place}no entry of the ConfigMap is a scheduler's configuration");
            self.problems.add(&codes::EMPTY_CONFIG_MAP, "data", message);
        }
    }

    fn finish(self) -> Result<Loaded, Problems> {
        let Reader { mut problems, kube, own, old, policy } = self;
        let kube = match (kube, old) {
            (Some(_), Some(_)) => {
                problems.add(&codes::SECOND_OF_KIND, "kind", format!("there is a {KUBE_KIND} already"));
                None
            }
            (Some(kube), None) => {
                if let Some(policy) = &policy {
                    legacy::refuse_policy(policy, "v1", &mut problems);
                }
                Some(kube)
            }
            (None, Some((release, document))) => {
                Some(legacy::convert(&document, release, policy.as_ref(), &mut problems))
            }
            (None, None) => policy.map(|policy| legacy::convert_policy(&policy, &mut problems)),
        };
        if problems.has_errors() {
            // What the conversion changed would only hide why there is none.
            return Err(problems.into_errors());
        }
        Ok(Loaded { kube: kube.unwrap_or_default(), own: own.unwrap_or_default(), conversion: problems })
    }
}

enum Kind {
    Kube,
    Own,
    Old(&'static Release),
    Policy,
    ConfigMap,
}

/// What a document is, and its fields without those that say so.
fn kind_of(document: &Value, place: &str, path: &str, problems: &mut Problems) -> Option<(Kind, Object)> {
    let Value::Object(fields) = document else {
        fields::wrong_type(document, "an object with apiVersion and kind", path, problems);
        return None;
    };
    let mut fields = fields.clone();
    let before = problems.len();
    let mut take = |name: &str, problems: &mut Problems| match fields.remove(name) {
        None | Some(Value::Null) => String::new(),
        Some(value) => String::read(&value, &fields::below(path, name), problems),
    };
    let api_version = take("apiVersion", problems);
    let kind = take("kind", problems);
    if problems.len() > before {
        return None;
    }
    let group = api_version.split('/').next().unwrap_or_default();
    let (code, field, message, hint): (&Code, _, _, _) = if kind.is_empty() {
        (&codes::NO_KIND, "kind", "Object 'Kind' is missing".to_owned(), format!("add `kind: {KUBE_KIND}`"))
    } else if api_version.is_empty() {
        let hint = format!("add `apiVersion: {KUBE_API_VERSION}`");
        (&codes::NO_KIND, "apiVersion", "Object 'apiVersion' is missing".to_owned(), hint)
    } else if (api_version.as_str(), kind.as_str()) == (KUBE_API_VERSION, KUBE_KIND) {
        return Some((Kind::Kube, fields));
    } else if (api_version.as_str(), kind.as_str()) == (OWN_API_VERSION, OWN_KIND) {
        return Some((Kind::Own, fields));
    } else if kind == KUBE_KIND
        && let Some(release) = legacy::version(&api_version)
    {
        return Some((Kind::Old(release), fields));
    } else if kind == POLICY_KIND && ["v1", KUBE_API_VERSION].contains(&api_version.as_str()) {
        return Some((Kind::Policy, fields));
    } else if (api_version.as_str(), kind.as_str()) == ("v1", "ConfigMap") && path.is_empty() {
        return Some((Kind::ConfigMap, fields));
    } else if (group == KUBE_GROUP && kind == KUBE_KIND) || kind == POLICY_KIND {
        let message = format!("no kind {kind:?} is registered for version {api_version:?}");
        (&codes::OLD_VERSION, "apiVersion", message, format!("write {KUBE_API_VERSION}"))
    } else if group == OWN_GROUP && kind == OWN_KIND {
        let message = format!("no kind {kind:?} is registered for version {api_version:?}");
        (&codes::OLD_VERSION, "apiVersion", message, format!("only {OWN_API_VERSION} is read"))
    } else {
        let message = format!("couldn't decode as {KUBE_KIND}, got {api_version}, Kind={kind}");
        let hint = format!("{KUBE_KIND} of {KUBE_API_VERSION} and {OWN_KIND} of {OWN_API_VERSION} are read");
        (&codes::WRONG_KIND, "kind", message, hint)
    };
    let path = fields::below(path, field);
    problems.push(Problem::new(code, path, format!("{place}{message}")).with_hint(hint));
    None
}

/// Whether an entry of a ConfigMap is meant for us.
fn is_ours(document: &Value) -> bool {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
    [KUBE_KIND, OWN_KIND, POLICY_KIND].contains(&kind)
}

fn store<T>(into: &mut Option<T>, value: T, kind: &str, place: &str, problems: &mut Problems) {
    if into.replace(value).is_some() {
        problems.add(&codes::SECOND_OF_KIND, "kind", format!("{place}there is a {kind} already"));
    }
}

fn read_kube(document: &Document, problems: &mut Problems) -> KubeSchedulerConfiguration {
    let given = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let fields = Value::Object(document.fields.clone());
    let mut config = KubeSchedulerConfiguration::read(&fields, &document.path, problems);
    defaults::complete(
        &mut config,
        given(fields.get("enableContentionProfiling")),
        given(fields.pointer("/profiles/0/schedulerName")),
    );
    config
}
