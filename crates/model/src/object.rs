//! Objects other than pods and nodes: whatever kinds the enabled plugins say they read.
//!
//! A kind is a struct with the few fields somebody reads, and its name in the API ([`Kind`]). Built-in kinds and
//! custom resources are the same thing here.

mod store;

use std::any::{Any, TypeId};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::decode::{DecodeError, NamedWords, read};
use crate::labels::Labels;
use crate::lookups::{self, Lookup};
use crate::protobuf::message;
use crate::raw::RawObject;
use crate::time::Timestamp;
use crate::wire::null_default;
use store::{KindStore, Stored};

/// A kind of object, as far as somebody reads it.
pub trait Kind: DeserializeOwned + Send + Sync + 'static {
    /// Where the kind lives in the API.
    const ID: KindId;

    /// The shelves that the object is found on, by any names, without looking at all of its kind: [`Objects::on_shelf`].
    fn shelves(&self) -> Vec<String> {
        Vec::new()
    }
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
    /// Where else than by its name it is found: [`Kind::shelves`].
    shelves: Shelves,
}

/// None for most kinds.
type Shelves = Option<Arc<[String]>>;

/// What is read of an object of which only the text is wanted.
struct TextOnly;

/// What there is of an object that cannot be read.
struct Unread;

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
    /// Few enough to look through.
    kinds: Vec<(KindId, KindStore)>,
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

    /// Whether both are made of the same texts in memory. Two that are not may be equal all the same.
    fn is_same_text(&self, other: &KindId) -> bool {
        let texts = |id: &KindId| [id.plural, id.group, id.version, id.kind];
        texts(self).into_iter().zip(texts(other)).all(|(text, other)| std::ptr::eq(text, other))
    }

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
    Ok(Object { kind: T::ID, key, raw: None, shelves: shelves_of(&value), value: Arc::new(value) })
}

impl Object {
    /// An object made by hand, as tests and simulators do.
    pub fn new<T: Kind>(namespace: &str, name: &str, value: T) -> Self {
        let key = ObjectKey { namespace: namespace.into(), name: name.into() };
        Object { kind: T::ID, key, raw: None, shelves: shelves_of(&value), value: Arc::new(value) }
    }

    /// An object of which only the text is wanted.
    pub(crate) fn of_text(kind: KindId, json: &str) -> Result<Self, DecodeError> {
        let NamedWords { metadata } = read(json, kind.kind)?;
        let key = ObjectKey { namespace: metadata.namespace.into(), name: metadata.name.into() };
        Ok(Object { kind, key, raw: None, shelves: None, value: Arc::new(TextOnly) })
    }

    /// One that cannot be read: only its name is known.
    pub(crate) fn unread(kind: KindId, key: ObjectKey) -> Self {
        Object { kind, key, raw: None, shelves: None, value: Arc::new(Unread) }
    }

    /// Whether anything but its name is known.
    pub fn is_read(&self) -> bool {
        !self.value.is::<Unread>()
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
        let both = [self.shelves, other.shelves];
        let shelves: BTreeSet<String> =
            both.iter().flatten().flat_map(|shelves| shelves.iter().cloned()).collect();
        self.shelves = (!shelves.is_empty()).then(|| shelves.into_iter().collect());
        self
    }
}

fn shelves_of<T: Kind>(value: &T) -> Shelves {
    let shelves = value.shelves();
    (!shelves.is_empty()).then(|| shelves.into())
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.kind, self.key.namespace, self.key.name)
    }
}

impl Objects {
    /// Adds an object, or replaces the one of that name.
    pub fn put(&mut self, object: Object) {
        let Object { kind, key, value, shelves, raw: _ } = object;
        self.version += 1;
        let position = match self.kinds.iter().position(|(known, _)| *known == kind) {
            Some(position) => position,
            None => {
                self.kinds.push((kind, KindStore::default()));
                self.kinds.len() - 1
            }
        };
        self.kinds[position].1.put(key, Stored { value, shelves });
    }

    /// Removes an object; false if there was none of that name.
    pub fn remove(&mut self, kind: KindId, key: &ObjectKey) -> bool {
        let store = self.kinds.iter_mut().find(|(known, _)| *known == kind);
        let removed = store.is_some_and(|(_, store)| store.remove(key));
        self.version += u64::from(removed);
        removed
    }

    /// The object of that name.
    pub fn get<T: Kind>(&self, namespace: &str, name: &str) -> Option<&T> {
        note_lookup(T::ID, Some(name));
        as_type(&self.store(T::ID)?.get(namespace, name)?.value)
    }

    /// The object of that name, to be kept: cycle state outlives the borrow of a snapshot.
    pub fn get_shared<T: Kind>(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        note_lookup(T::ID, Some(name));
        as_shared(&self.store(T::ID)?.get(namespace, name)?.value)
    }

    /// The objects of a kind that stand on a shelf, to be kept, in name order: see [`Kind::shelves`].
    pub fn on_shelf<'a, T: Kind>(
        &'a self,
        shelf: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, Arc<T>)> + use<'a, T> {
        note_lookup(T::ID, None);
        let on_shelf = self.store(T::ID).map(|store| store.shelf(shelf));
        on_shelf.into_iter().flatten().filter_map(|(key, stored)| Some((key, as_shared(&stored.value)?)))
    }

    /// How many objects of a kind stand on a shelf.
    pub fn count_on_shelf<T: Kind>(&self, shelf: &str) -> usize {
        note_lookup(T::ID, None);
        self.store(T::ID).map_or(0, |store| store.shelf_len(shelf))
    }

    /// Whether there are objects of a kind.
    pub fn has_any<T: Kind>(&self) -> bool {
        note_lookup(T::ID, None);
        self.store(T::ID).is_some_and(|store| !store.is_empty())
    }

    /// All objects of a kind that satisfy a condition, to be kept, in name order.
    pub fn all_shared<T: Kind>(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<Arc<T>> {
        note_lookup(T::ID, None);
        let objects = self.store(T::ID).into_iter().flat_map(KindStore::iter);
        let wanted = objects.filter(|(_, stored)| as_type(&stored.value).is_some_and(&mut wanted));
        wanted.filter_map(|(_, stored)| as_shared(&stored.value)).collect()
    }

    /// All objects of a kind with their names, in name order.
    pub fn all<T: Kind>(&self) -> impl Iterator<Item = (&ObjectKey, &T)> {
        note_lookup(T::ID, None);
        let objects = self.store(T::ID).into_iter().flat_map(KindStore::iter);
        objects.filter_map(|(key, stored)| Some((key, as_type(&stored.value)?)))
    }

    /// The objects of a kind in one namespace, in name order.
    pub fn in_namespace<T: Kind>(&self, namespace: &str) -> impl Iterator<Item = (&str, &T)> {
        note_lookup(T::ID, None);
        let first = ObjectKey { namespace: namespace.into(), name: Box::default() };
        let objects = self.store(T::ID).map(|store| store.from(&first)).into_iter().flatten();
        let objects = objects.take_while(move |(key, _)| *key.namespace == *namespace);
        objects.filter_map(|(key, stored)| Some((&*key.name, as_type(&stored.value)?)))
    }

    /// The namespaces of the objects of a kind, each as often as there are objects in it.
    pub(crate) fn namespaces(&self, kind: KindId) -> impl Iterator<Item = &str> {
        let objects = self.store(kind).into_iter().flat_map(KindStore::iter);
        objects.map(|(key, _)| &*key.namespace)
    }

    /// Whether there are objects of a kind in a namespace.
    pub(crate) fn has_any_in(&self, kind: KindId, namespace: &str) -> bool {
        let first = ObjectKey { namespace: namespace.into(), name: Box::default() };
        let mut objects = self.store(kind).into_iter().flat_map(|store| store.from(&first));
        objects.next().is_some_and(|(key, _)| *key.namespace == *namespace)
    }

    /// The object of that name, whatever its type.
    pub fn find(&self, kind: KindId, key: &ObjectKey) -> Option<Object> {
        note_lookup(kind, Some(&key.name));
        Some(self.store(kind)?.get(&key.namespace, &key.name)?.object(kind, key))
    }

    /// The objects of that name without a namespace, one of each kind that has one.
    pub(crate) fn named(&self, name: &str) -> Vec<(KindId, Arc<dyn Any + Send + Sync>)> {
        let kinds = self.kinds.iter();
        kinds.filter_map(|(kind, store)| Some((*kind, store.get("", name)?.value.clone()))).collect()
    }

    /// All objects of a kind, whatever its type, in name order.
    pub fn of_kind(&self, kind: KindId) -> impl Iterator<Item = Object> {
        note_lookup(kind, None);
        let objects = self.store(kind).into_iter().flat_map(KindStore::iter);
        objects.map(move |(key, stored)| stored.object(kind, key))
    }

    /// A number that changes whenever any object does.
    pub fn latest_version(&self) -> u64 {
        self.version
    }

    /// A number that changes whenever an object of the kind does.
    pub fn version(&self, kind: KindId) -> u64 {
        self.store(kind).map_or(0, |store| store.version)
    }

    fn store(&self, kind: KindId) -> Option<&KindStore> {
        // Most often the names are the very same texts, and nobody has to read them.
        let same = self.kinds.iter().find(|(known, _)| known.is_same_text(&kind));
        let found = same.or_else(|| self.kinds.iter().find(|(known, _)| *known == kind));
        found.map(|(_, store)| store)
    }
}

fn note_lookup(kind: KindId, name: Option<&str>) {
    lookups::note(|| Lookup::Objects(kind, name.map(Into::into)));
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

impl MetadataWords {
    /// Where the object is found among those of its kind.
    pub fn object_key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.as_str().into(), name: self.name.as_str().into() }
    }
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

message!(MetadataWords {
    1 => name,
    3 => namespace,
    5 => uid,
    6 => resource_version,
    7 => generation,
    8 => creation_timestamp,
    9 => deletion_timestamp,
    13 => owner_references,
} pairs { 11 => labels, 12 => annotations });

message!(OwnerReferenceWords { 1 => kind, 3 => name, 4 => uid, 5 => api_version, 6 => controller });
