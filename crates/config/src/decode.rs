//! The first stage: words to a configuration with its scalar defaults.

use serde_json::Value;

use crate::codes::{self, Code};
use crate::defaults;
use crate::document::{self, Parsed};
use crate::fields::{self, Object, Read};
use crate::legacy::algorithm::{self, PolicyPlace};
use crate::legacy::{self, Document, Release};
use crate::nearest::did_you_mean;
use crate::other_kinds;
use crate::own::SupercargoConfiguration;
use crate::places::{Inset, Position};
use crate::problem::{Problem, Problems};
use crate::reading::{Origin, Reading};
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
    read(text).into_result()
}

/// Reads several files that together hold at most one document of each kind.
pub fn load_all(texts: &[&str]) -> Result<Loaded, Problems> {
    read_all(texts).into_result()
}

/// As [`load`], but goes on with what can be read, so that the rest can be checked as well.
pub fn read(text: &str) -> Reading {
    read_all(&[text])
}

fn read_all(texts: &[&str]) -> Reading {
    Reader::of(texts).finish()
}

/// As [`read`], of several files; a Policy that the configuration names, and that is not among them, is what `fetch` returns. An error
/// says why there is none.
pub fn read_with_policy(
    texts: &[&str],
    fetch: impl FnOnce(&PolicyPlace) -> Result<String, String>,
) -> Reading {
    let mut reader = Reader::of(texts);
    let place = match &reader.old {
        Some((release, document)) if reader.policy.is_none() => {
            algorithm::policy_place(&document.fields, release)
        }
        _ => None,
    };
    let Some(place) = place else { return reader.finish() };
    reader.take_policy(&place, fetch(&place), texts.len());
    let mut reading = reader.finish();
    for problem in reading.problems.iter_mut() {
        if problem.position.is_some_and(|position| position.file == texts.len())
            && let PolicyPlace::File { path } = &place
        {
            problem.file = Some(path.clone());
        }
    }
    reading
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    problems: Problems,
    kube: Option<(KubeSchedulerConfiguration, Origin)>,
    own: Option<SupercargoConfiguration>,
    old: Option<(&'static Release, Document)>,
    policy: Option<Document>,
    /// Whether the Policy that the configuration names was looked for in vain, which has been said.
    has_no_policy: bool,
}

impl Reader {
    fn of(texts: &[&str]) -> Self {
        let mut reader = Reader::default();
        for (file, text) in texts.iter().enumerate() {
            reader.read_file(text, file);
        }
        reader
    }

    /// Takes the Policy that the configuration names, which is the file of this number.
    fn take_policy(&mut self, place: &PolicyPlace, fetched: Result<String, String>, file: usize) {
        let fault = match fetched {
            Ok(text) => {
                let mut reader = Reader::default();
                reader.read_file(&text, file);
                if let PolicyPlace::File { path } = place {
                    reader.problems.iter_mut().for_each(|problem| problem.file = Some(path.clone()));
                }
                self.policy = reader.policy;
                let is_said = reader.problems.has_errors();
                self.problems.extend(reader.problems);
                (self.policy.is_none() && !is_said).then(|| "holds no Policy".to_owned())
            }
            Err(reason) => Some(reason),
        };
        // That it was not given would be said otherwise.
        self.has_no_policy = self.policy.is_none();
        if let (Some(fault), Some((_, document))) = (fault, &self.old) {
            let field = fields::below(algorithm::NAME, place.field());
            let path = fields::below(&document.path, &field);
            let message = format!("the plugins are chosen by a Policy in {place}, which {fault}");
            let hint = match place {
                PolicyPlace::File { .. } => format!("put it there, or {}", algorithm::HOW_TO_GIVE),
                PolicyPlace::ConfigMap { .. } => algorithm::HOW_TO_GIVE.to_owned(),
            };
            let problem = Problem::new(&codes::NO_POLICY, path, message).with_hint(hint);
            let position = document.places.nearest(&problem.path);
            self.problems.push(problem.at(position));
        }
    }

    fn read_file(&mut self, text: &str, file: usize) {
        let known = self.problems.len();
        let documents = document::parse(text, "", file, &mut self.problems);
        if documents.iter().all(|document| document.value.is_null()) && self.problems.len() == known {
            let hint = format!("start with `apiVersion: {KUBE_API_VERSION}` and `kind: {KUBE_KIND}`");
            let message = "the file is empty: Object 'Kind' is missing";
            self.problems.push(Problem::new(&codes::NO_KIND, "", message).with_hint(hint));
        }
        let several = documents.len() > 1;
        for (index, document) in documents.into_iter().enumerate() {
            let place = if several { format!("document {}: ", index + 1) } else { String::new() };
            self.read_document(document, index, &place, "", text);
        }
    }

    /// Reads a document; `path` is where it stands, if it is an entry of a ConfigMap.
    fn read_document(&mut self, parsed: Parsed, index: usize, place: &str, path: &str, text: &str) {
        let Parsed { value, places } = parsed;
        let known = self.problems.len();
        if let Some((kind, fields)) = kind_of(&value, place, path, &mut self.problems) {
            let document = Document { fields, path: path.to_owned(), places: places.clone() };
            self.read_kind(kind, document, index, place, text);
        }
        self.problems.locate(known, &places);
    }

    fn read_kind(&mut self, kind: Kind, document: Document, index: usize, place: &str, text: &str) {
        let problems = &mut self.problems;
        match kind {
            Kind::Kube => {
                let path = fields::below(&document.path, "kind");
                if index > 0 {
                    let message = format!("{place}{KUBE_KIND} must be the first document");
                    let hint = "kube-scheduler reads the first document only".to_owned();
                    problems.push(Problem::new(&codes::DOCUMENT_ORDER, &path, message).with_hint(hint));
                }
                let config = read_kube(&document, problems);
                let origin = Origin { path: document.path, places: document.places, is_converted: false };
                store(&mut self.kube, (config, origin), KUBE_KIND, place, &path, problems);
            }
            Kind::Own => {
                let path = fields::below(&document.path, "kind");
                let fields = Value::Object(document.fields);
                let config = SupercargoConfiguration::read(&fields, &document.path, problems);
                store(&mut self.own, config.unwrap_or_default(), OWN_KIND, place, &path, problems);
            }
            Kind::Old(release) => {
                let path = fields::below(&document.path, "kind");
                store(&mut self.old, (release, document), KUBE_KIND, place, &path, problems);
            }
            Kind::Policy => {
                let path = fields::below(&document.path, "kind");
                store(&mut self.policy, document, POLICY_KIND, place, &path, problems);
            }
            Kind::ConfigMap => self.read_config_map(&document, place, text),
        }
    }

    /// Reads the entries of a ConfigMap that are configurations; the others may be there for somebody else.
    fn read_config_map(&mut self, document: &Document, place: &str, text: &str) {
        let data = document.fields.get("data").and_then(Value::as_object);
        let mut found = false;
        for (key, entry) in data.into_iter().flatten() {
            found |= self.read_entry(key, entry, document, place, text);
        }
        if !found {
            let message = format!("{place}no entry of the ConfigMap is a scheduler's configuration");
            let hint = match data.map(|data| data.keys().map(String::as_str).collect::<Vec<_>>()) {
                Some(keys) if !keys.is_empty() => format!(
                    "an entry is one if its text has `kind: {KUBE_KIND}`; the entries are {}",
                    keys.join(", ")
                ),
                _ => "it has no entries: a configuration stands as text in an entry below `data`".to_owned(),
            };
            let problem = Problem::new(&codes::EMPTY_CONFIG_MAP, "data", message).with_hint(hint);
            self.problems.push(problem);
        }
    }

    /// Whether the entry of a ConfigMap is a configuration, or was meant to be one.
    fn read_entry(&mut self, key: &str, entry: &Value, document: &Document, place: &str, text: &str) -> bool {
        let path = format!("data[{key}]");
        let field = document.places.nearest(&fields::below("data", key));
        let mut problems = Problems::default();
        let mut documents = Vec::new();
        if let Some(entry) = entry.as_str() {
            documents = document::parse(entry, &path, 0, &mut problems);
            let inset = field.and_then(|field| Inset::find(entry, text, field));
            // Where the text is written otherwise, such as between quotes, the entry is as near as one gets.
            let outer = |inner: Position| match inset {
                Some(inset) => inset.outer(inner),
                None => field.unwrap_or(inner),
            };
            for problem in problems.iter_mut() {
                if let (Some(inner), None) = (problem.position, inset) {
                    problem.message += &format!(", in line {} of the entry", inner.line);
                }
                problem.position = problem.position.map(outer).or(field);
            }
            for document in &mut documents {
                document.places = std::mem::take(&mut document.places).map(outer);
            }
        }
        let is_broken = documents.is_empty() && !problems.is_empty();
        if is_broken && entry.as_str().is_some_and(names_us) {
            self.problems.extend(problems);
            return true;
        }
        let mut found = false;
        for (index, document) in documents.into_iter().enumerate() {
            if is_ours(&document.value) {
                found = true;
                self.read_document(document, index, place, &path, text);
            }
        }
        if found {
            self.problems.extend(problems);
        } else {
            let why = match problems.iter().next() {
                Some(problem) if is_broken => format!(": {}", problem.message),
                _ => String::new(),
            };
            let message = format!("{place}is no scheduler's configuration, and was not read{why}");
            let problem = Problem::new(&codes::ENTRY_NOT_READ, path, message);
            self.problems.push(problem.at(field));
        }
        found
    }

    fn finish(self) -> Reading {
        let Reader { mut problems, kube, own, old, policy, has_no_policy } = self;
        let converted = |kube, path| Some((kube, Origin { path, is_converted: true, ..Origin::default() }));
        let known = problems.len();
        let kube = match (kube, old) {
            (Some(kube), Some((_, document))) => {
                let message = format!("there is a {KUBE_KIND} already");
                problems.add(&codes::SECOND_OF_KIND, fields::below(&document.path, "kind"), message);
                problems.locate(known, &document.places);
                Some(kube)
            }
            (Some(kube), None) => {
                if let Some(policy) = &policy {
                    legacy::refuse_policy(policy, "v1", &mut problems);
                    problems.locate(known, &policy.places);
                }
                Some(kube)
            }
            (None, Some((release, document))) => {
                let kube = legacy::convert(&document, release, policy.as_ref(), &mut problems);
                let mut number = 0;
                problems.retain(|problem| {
                    number += 1;
                    // Why there is none has been said.
                    !has_no_policy || number <= known || problem.code != codes::NO_POLICY.id
                });
                converted(kube, document.path)
            }
            (None, None) => policy
                .and_then(|policy| converted(legacy::convert_policy(&policy, &mut problems), policy.path)),
        };
        // Without a configuration there is nothing to check, unless there need be none.
        let is_checkable = kube.is_some() || !problems.has_errors();
        let (kube, origin) = kube.unwrap_or_default();
        Reading {
            loaded: Loaded { kube, own: own.unwrap_or_default(), conversion: Problems::default() },
            problems,
            origin,
            is_checkable,
        }
    }
}

#[derive(Clone, Copy)]
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
        Some(value) => String::read(&value, &fields::below(path, name), problems).unwrap_or_default(),
    };
    let api_version = take("apiVersion", problems);
    let kind = take("kind", problems);
    if problems.len() > before {
        return None;
    }
    let group = api_version.split('/').next().unwrap_or_default();
    // Whether the rest can be read all the same.
    let mut goes_on = false;
    let (code, field, message, hint): (&Code, _, _, _) = if kind.is_empty() {
        goes_on = api_version == KUBE_API_VERSION;
        (&codes::NO_KIND, "kind", "Object 'Kind' is missing".to_owned(), format!("add `kind: {KUBE_KIND}`"))
    } else if api_version.is_empty() {
        goes_on = kind == KUBE_KIND;
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
        let meant = did_you_mean(&kind, [KUBE_KIND, OWN_KIND]);
        goes_on = api_version == KUBE_API_VERSION && meant.is_some();
        let message = format!("couldn't decode as {KUBE_KIND}, got {api_version}, Kind={kind}");
        let hint = meant.unwrap_or_else(|| other_kinds::hint(&kind, &fields));
        (&codes::WRONG_KIND, "kind", message, hint)
    };
    let path = fields::below(path, field);
    problems.push(Problem::new(code, path, format!("{place}{message}")).with_hint(hint));
    goes_on.then_some((Kind::Kube, fields))
}

/// Whether an entry of a ConfigMap is meant for us.
fn is_ours(document: &Value) -> bool {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
    [KUBE_KIND, OWN_KIND, POLICY_KIND].contains(&kind)
}

/// Whether a text that cannot be parsed was meant for us.
fn names_us(text: &str) -> bool {
    [KUBE_KIND, OWN_KIND, KUBE_GROUP, OWN_GROUP].iter().any(|name| text.contains(name))
        || text.contains("kind: Policy")
        || text.contains("\"Policy\"")
}

fn store<T>(into: &mut Option<T>, value: T, kind: &str, place: &str, path: &str, problems: &mut Problems) {
    if into.replace(value).is_some() {
        problems.add(&codes::SECOND_OF_KIND, path, format!("{place}there is a {kind} already"));
    }
}

fn read_kube(document: &Document, problems: &mut Problems) -> KubeSchedulerConfiguration {
    let given = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let fields = Value::Object(document.fields.clone());
    let mut config = KubeSchedulerConfiguration::read(&fields, &document.path, problems).unwrap_or_default();
    defaults::complete(
        &mut config,
        given(fields.get("enableContentionProfiling")),
        given(fields.pointer("/profiles/0/schedulerName")),
    );
    config
}
