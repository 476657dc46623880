//! Objects other than pods and nodes: whatever kinds the enabled plugins say they read.
//!
//! A kind is a struct with the few fields somebody reads, and its name in the API ([`Kind`]). Built-in kinds and
//! custom resources are the same thing here.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::decode::{DecodeError, NamedWords, read};
use crate::labels::Labels;
use crate::lookups::{self, Lookup};
use crate::raw::RawObject;
use crate::time::Timestamp;
use crate::wire::null_default;

/// A kind of object, as far as somebody reads it.
pub trait Kind: DeserializeOwned + Send + Sync + 'static {
    /// Where the kind lives in the API.
    const ID: KindId;
}

/// The name of a kind in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId {
    /// The API group, empty for the core group.
    pub group: &'static str,
    /// The version that is read.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource's name in URLs.
    pub plural: &'static str,
}

/// Where an object is found among those of its kind. Cluster-wide objects have an empty namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// `metadata.namespace`
    pub namespace: Box<str>,
    /// `metadata.name`
    pub name: Box<str>,
}

/// An object of some kind, read.
#[derive(Clone)]
pub struct Object {
    /// Its kind.
    pub kind: KindId,
    /// Its name.
    pub key: ObjectKey,
    /// The object as it came, if somebody asked for it to be kept.
    pub raw: Option<Arc<RawObject>>,
    pub(crate) value: Arc<dyn Any + Send + Sync>,
}

/// What is read of an object of which only the text is wanted.
struct TextOnly;

/// What several readers of one kind read of an object, each as a type of its own.
struct Several(Vec<Arc<dyn Any + Send + Sync>>);

/// An object's value as a `T`, if it was read as one.
pub(crate) fn as_type<T: Kind>(value: &Arc<dyn Any + Send + Sync>) -> Option<&T> {
    let several = || value.downcast_ref::<Several>()?.0.iter().find_map(|value| value.downcast_ref());
    value.downcast_ref().or_else(several)
}

/// The same, to be kept.
fn as_shared<T: Kind>(value: &Arc<dyn Any + Send + Sync>) -> Option<Arc<T>> {
    match value.downcast_ref::<Several>() {
        None => value.clone().downcast().ok(),
        Some(several) => several.0.iter().find_map(|value| value.clone().downcast().ok()),
    }
}

/// All objects other than pods and nodes; a clone shares everything with its original.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    version: u64,
    kinds: BTreeMap<KindId, KindStore>,
}

#[derive(Clone, Default)]
struct KindStore {
    version: u64,
    objects: Arc<BTreeMap<ObjectKey, Arc<dyn Any + Send + Sync>>>,
}

/// How objects of one kind are read; [`ReadableKind::of`] makes one for any [`Kind`].
#[derive(Clone, Copy, Debug)]
pub struct ReadableKind {
    /// The kind.
    pub id: KindId,
    type_id: fn() -> TypeId,
    read: fn(&str) -> Result<Object, DecodeError>,
}

impl KindId {
    /// Pods.
    pub const POD: KindId = KindId { group: "", version: "v1", kind: "Pod", plural: "pods" };
    /// Nodes.
    pub const NODE: KindId = KindId { group: "", version: "v1", kind: "Node", plural: "nodes" };

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl ReadableKind {
    /// How objects of kind `T` are read.
    pub const fn of<T: Kind>() -> Self {
        ReadableKind { id: T::ID, type_id: TypeId::of::<T>, read: read_object::<T> }
    }

    /// Whether both read the same kind as the same type.
    pub fn is_same(&self, other: &ReadableKind) -> bool {
        self.id == other.id && (self.type_id)() == (other.type_id)()
    }

    /// Reads an object of this kind.
    pub fn read(&self, json: &str) -> Result<Object, DecodeError> {
        (self.read)(json)
    }
}

fn read_object<T: Kind>(json: &str) -> Result<Object, DecodeError> {
    let value: T = read(json, T::ID.kind)?;
    let NamedWords { metadata } = read(json, T::ID.kind)?;
    let key = ObjectKey { namespace: metadata.namespace.into(), name: metadata.name.into() };
    Ok(Object { kind: T::ID, key, raw: None, value: Arc::new(value) })
}

impl Object {
    /// An object made by hand, as tests and simulators do.
    pub fn new<T: Kind>(namespace: &str, name: &str, value: T) -> Self {
        let key = ObjectKey { namespace: namespace.into(), name: name.into() };
        Object { kind: T::ID, key, raw: None, value: Arc::new(value) }
    }

    /// An object of which only the text is wanted.
    pub(crate) fn of_text(kind: KindId, json: &str) -> Result<Self, DecodeError> {
        let NamedWords { metadata } = read(json, kind.kind)?;
        let key = ObjectKey { namespace: metadata.namespace.into(), name: metadata.name.into() };
        Ok(Object { kind, key, raw: None, value: Arc::new(TextOnly) })
    }

    /// The object as a `T`, if it is one.
    pub fn get<T: Kind>(&self) -> Option<&T> {
        as_type(&self.value)
    }

    /// The same object, read by one more reader as another type.
    #[must_use]
    pub(crate) fn also_as(mut self, other: Object) -> Self {
        let mut values = match self.value.downcast_ref::<Several>() {
            Some(several) => several.0.clone(),
            None => vec![self.value],
        };
        values.push(other.value);
        self.value = Arc::new(Several(values));
        self
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.kind, self.key.namespace, self.key.name)
    }
}

impl Objects {
    /// Adds an object, or replaces the one of that name.
    pub fn put(&mut self, object: Object) {
        let store = self.kinds.entry(object.kind).or_default();
        store.version += 1;
        self.version += 1;
        Arc::make_mut(&mut store.objects).insert(object.key, object.value);
    }

    /// Removes an object; false if there was none of that name.
    pub fn remove(&mut self, kind: KindId, key: &ObjectKey) -> bool {
        let Some(store) = self.kinds.get_mut(&kind) else { return false };
        let removed = Arc::make_mut(&mut store.objects).remove(key).is_some();
        store.version += u64::from(removed);
        self.version += u64::from(removed);
        removed
    }

    /// The object of that name.
    pub fn get<T: Kind>(&self, namespace: &str, name: &str) -> Option<&T> {
        note_lookup(T::ID, Some(name));
        let key = ObjectKey { namespace: namespace.into(), name: name.into() };
        as_type(self.kinds.get(&T::ID)?.objects.get(&key)?)
    }

    /// The object of that name, to be kept: cycle state outlives the borrow of a snapshot.
    pub fn get_shared<T: Kind>(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        note_lookup(T::ID, Some(name));
        let key = ObjectKey { namespace: namespace.into(), name: name.into() };
        as_shared(self.kinds.get(&T::ID)?.objects.get(&key)?)
    }

    /// All objects of a kind that satisfy a condition, to be kept, in name order.
    pub fn all_shared<T: Kind>(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<Arc<T>> {
        note_lookup(T::ID, None);
        let objects = self.kinds.get(&T::ID).into_iter().flat_map(|store| store.objects.values());
        let wanted = objects.filter(|value| as_type(value).is_some_and(&mut wanted));
        wanted.filter_map(as_shared).collect()
    }

    /// All objects of a kind with their names, in name order.
    pub fn all<T: Kind>(&self) -> impl Iterator<Item = (&ObjectKey, &T)> {
        note_lookup(T::ID, None);
        let objects = self.kinds.get(&T::ID).into_iter().flat_map(|store| store.objects.iter());
        objects.filter_map(|(key, value)| Some((key, as_type(value)?)))
    }

    /// The objects of a kind in one namespace, in name order.
    pub fn in_namespace<T: Kind>(&self, namespace: &str) -> impl Iterator<Item = (&str, &T)> {
        note_lookup(T::ID, None);
        let first = ObjectKey { namespace: namespace.into(), name: Box::default() };
        let objects =
            self.kinds.get(&T::ID).into_iter().flat_map(move |store| store.objects.range(first.clone()..));
        let objects = objects.take_while(move |(key, _)| *key.namespace == *namespace);
        objects.filter_map(|(key, value)| Some((&*key.name, as_type(value)?)))
    }

    /// The object of that name, whatever its type.
    pub fn find(&self, kind: KindId, key: &ObjectKey) -> Option<Object> {
        note_lookup(kind, Some(&key.name));
        let value = self.kinds.get(&kind)?.objects.get(key)?.clone();
        Some(Object { kind, key: key.clone(), raw: None, value })
    }

    /// The objects of that name without a namespace, one of each kind that has one.
    pub(crate) fn named(&self, name: &str) -> Vec<(KindId, Arc<dyn Any + Send + Sync>)> {
        let key = ObjectKey { namespace: Box::default(), name: name.into() };
        let kinds = self.kinds.iter();
        kinds.filter_map(|(kind, store)| Some((*kind, store.objects.get(&key)?.clone()))).collect()
    }

    /// All objects of a kind, whatever its type, in name order.
    pub fn of_kind(&self, kind: KindId) -> impl Iterator<Item = Object> {
        note_lookup(kind, None);
        let objects = self.kinds.get(&kind).into_iter().flat_map(|store| store.objects.iter());
        objects.map(move |(key, value)| Object { kind, key: key.clone(), raw: None, value: value.clone() })
    }

    /// A number that changes whenever any object does.
    pub fn latest_version(&self) -> u64 {
        self.version
    }

    /// A number that changes whenever an object of the kind does.
    pub fn version(&self, kind: KindId) -> u64 {
        self.kinds.get(&kind).map_or(0, |store| store.version)
    }
}

fn note_lookup(kind: KindId, name: Option<&str>) {
    lookups::note(|| Lookup::Objects(kind, name.map(Into::into)));
}

impl fmt::Debug for KindStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects at version {}", self.objects.len(), self.version)
    }
}

/// `metadata` as it is written, as far as anybody reads it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MetadataWords {
    /// The object's name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Its namespace.
    #[serde(deserialize_with = "null_default")]
    pub namespace: String,
    /// What tells it from an earlier object of the same name.
    #[serde(deserialize_with = "null_default")]
    pub uid: String,
    /// What tells it from an earlier state of itself.
    #[serde(deserialize_with = "null_default")]
    pub resource_version: Box<str>,
    /// How often its `spec` was changed.
    #[serde(deserialize_with = "null_default")]
    pub generation: i64,
    /// Its labels.
    #[serde(deserialize_with = "null_default")]
    pub labels: Labels,
    /// Its annotations.
    #[serde(deserialize_with = "null_default")]
    pub annotations: Labels,
    /// The objects it belongs to.
    #[serde(deserialize_with = "null_default")]
    pub owner_references: Vec<OwnerReferenceWords>,
    /// When it was made.
    pub creation_timestamp: Option<Timestamp>,
    /// Since when it is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
}

/// An owner reference as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct OwnerReferenceWords {
    #[serde(deserialize_with = "null_default")]
    pub api_version: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub kind: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub name: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub uid: Box<str>,
    #[serde(deserialize_with = "null_default")]
    pub controller: bool,
}
