//! What a plugin writes: the ground for access rules, and the limit of what it may order.

use std::borrow::Cow;

use supercargo_model::{Kind, KindId};

use crate::effects::Effect;

/// What a plugin writes. Whatever it orders that is not declared here is refused, so that a scheduler with exactly the rights that
/// `supercargo rbac` prints never meets a refusal of the API server instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Why, for whoever reads the access rules.
    pub reason: Cow<'static, str>,
    list: Vec<Write>,
}

/// Something that is done to objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Write {
    /// The kind.
    pub kind: KindId,
    /// The part of the object that has a path of its own, such as `status`; none for the object itself.
    pub subresource: Option<&'static str>,
    /// What is done.
    pub verb: Verb,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verb {
    /// It is made.
    Create,
    /// Parts of it are changed.
    Patch,
    /// It is removed.
    Delete,
}

impl Write {
    /// A pod is bound to a node.
    pub const BINDING: Write = Write { kind: KindId::POD, subresource: Some("binding"), verb: Verb::Create };
    /// A pod says something about its scheduling.
    pub const POD_STATUS: Write = Write { kind: KindId::POD, subresource: Some("status"), verb: Verb::Patch };
    /// A pod is evicted.
    pub const EVICTION: Write = Write { kind: KindId::POD, subresource: None, verb: Verb::Delete };

    /// What the resource is called in access rules, such as `pods/status`.
    pub fn resource(&self) -> Cow<'static, str> {
        match self.subresource {
            None => Cow::Borrowed(self.kind.plural),
            Some(subresource) => Cow::Owned(format!("{}/{subresource}", self.kind.plural)),
        }
    }
}

impl Verb {
    /// The name that access rules have for it.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
        }
    }
}

impl Writes {
    /// Writes nothing: the start of a declaration. Events may be told all the same, as every scheduler may.
    pub fn nothing() -> Self {
        Writes::default()
    }

    /// Says why, for whoever reads the access rules.
    #[must_use]
    pub fn because(self, reason: impl Into<Cow<'static, str>>) -> Self {
        Writes { reason: reason.into(), ..self }
    }

    /// Also makes objects of kind `K`.
    #[must_use]
    pub fn create<K: Kind>(self) -> Self {
        self.write(Write { kind: K::ID, subresource: None, verb: Verb::Create })
    }

    /// Also changes objects of kind `K`.
    #[must_use]
    pub fn patch<K: Kind>(self) -> Self {
        self.write(Write { kind: K::ID, subresource: None, verb: Verb::Patch })
    }

    /// Also changes the status of objects of kind `K`.
    #[must_use]
    pub fn patch_status<K: Kind>(self) -> Self {
        self.write(Write { kind: K::ID, subresource: Some("status"), verb: Verb::Patch })
    }

    /// Also removes objects of kind `K`.
    #[must_use]
    pub fn delete<K: Kind>(self) -> Self {
        self.write(Write { kind: K::ID, subresource: None, verb: Verb::Delete })
    }

    /// Also binds pods to nodes.
    #[must_use]
    pub fn bindings(self) -> Self {
        self.write(Write::BINDING)
    }

    /// Also evicts pods, as preemption does.
    #[must_use]
    pub fn evictions(self) -> Self {
        self.write(Write::EVICTION)
    }

    /// Also does this.
    #[must_use]
    pub fn write(mut self, write: Write) -> Self {
        if !self.list.contains(&write) {
            self.list.push(write);
        }
        self
    }

    /// What is written, in the order of the declaration.
    pub fn iter(&self) -> impl Iterator<Item = &Write> {
        self.list.iter()
    }

    /// Whether this is declared.
    pub fn contains(&self, write: &Write) -> bool {
        self.list.contains(write)
    }

    /// Whether a plugin that declared this may order such an effect.
    pub fn cover(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Bind { .. } => self.contains(&Write::BINDING),
            Effect::Evict { .. } => self.contains(&Write::EVICTION),
            Effect::UpdateStatus { .. } => self.contains(&Write::POD_STATUS),
            Effect::Create { kind, .. } => {
                self.contains(&Write { kind: *kind, subresource: None, verb: Verb::Create })
            }
            Effect::Patch { kind, subresource, .. } => {
                self.contains(&Write { kind: *kind, subresource: *subresource, verb: Verb::Patch })
            }
            Effect::Delete { kind, .. } => {
                self.contains(&Write { kind: *kind, subresource: None, verb: Verb::Delete })
            }
            Effect::Record(_) => true,
            // These are the scheduler's own.
            Effect::Ask { .. } | Effect::LookUp { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use supercargo_model::ObjectKey;
    use supercargo_model::kinds::PersistentVolume;

    use super::*;

    #[test]
    fn what_is_declared_may_be_ordered_and_nothing_else() {
        let key = || ObjectKey { namespace: "a".into(), name: "b".into() };
        let patch = |subresource| Effect::Patch {
            kind: PersistentVolume::ID,
            key: key(),
            subresource,
            patch: Value::Null,
        };
        let create =
            || Effect::Create { kind: PersistentVolume::ID, namespace: "a".into(), object: Value::Null };
        let nothing = Writes::nothing();
        let cases = [
            (patch(None), Writes::nothing().patch::<PersistentVolume>(), "persistentvolumes", "patch"),
            (
                patch(Some("status")),
                nothing.clone().patch_status::<PersistentVolume>(),
                "persistentvolumes/status",
                "patch",
            ),
            (create(), nothing.clone().create::<PersistentVolume>(), "persistentvolumes", "create"),
            (
                Effect::Bind { pod: Default::default(), node: "n".into() },
                nothing.clone().bindings(),
                "pods/binding",
                "create",
            ),
        ];
        for (number, (effect, writes, resource, verb)) in cases.iter().enumerate() {
            assert!(!nothing.cover(effect), "{}", effect.words());
            for (other, (_, declared, ..)) in cases.iter().enumerate() {
                assert_eq!(declared.cover(effect), other == number, "{} by {declared:?}", effect.words());
            }
            let write = writes.iter().next().expect("one is declared");
            assert_eq!((&*write.resource(), write.verb.name()), (*resource, *verb));
        }
        assert_eq!(patch(Some("status")).words(), "patch status of persistentvolumes a/b");
    }
}
