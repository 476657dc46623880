//! Which system calls a pod may make, by the profiles that it names.

use std::hash::{Hash, Hasher};

use serde::Deserialize;
use supercargo_model::pod::SeccompProfile as NamedProfile;
use supercargo_model::wire::null_default;
use supercargo_model::{Kind, KindId, Objects, Pod};

/// What the key of an annotation contains that names a profile.
const ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io";
/// The folder of the operator's profiles.
const OPERATOR: &str = "operator";

/// How many profiles, each based on the next, are followed: a circle of them comes to an end.
const BASES_MAX: usize = 16;

/// The system calls of one profile, in order and without what stands there twice.
type Names = [Box<str>];

/// The calls that pods may make: those of several profiles.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls<'a>(Vec<&'a Names>);

/// A profile of the Security Profiles Operator, in a namespace as its versions before 0.9 have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SeccompProfile {
    #[serde(deserialize_with = "null_default")]
    spec: Profile,
}

/// A profile as later versions have it, of the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClusterSeccompProfile {
    #[serde(deserialize_with = "null_default")]
    spec: Profile,
}

impl Kind for SeccompProfile {
    const ID: KindId = KindId {
        group: "security-profiles-operator.x-k8s.io",
        version: "v1beta1",
        kind: "SeccompProfile",
        plural: "seccompprofiles",
    };
}

impl Kind for ClusterSeccompProfile {
    const ID: KindId = KindId { version: "v1", ..SeccompProfile::ID };
}

/// What of a profile counts: worked out once, where it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "ProfileWords")]
struct Profile {
    base: Box<str>,
    /// The calls that it allows, be they logged or not.
    allowed: Box<Names>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ProfileWords {
    #[serde(rename = "baseProfileName", deserialize_with = "null_default")]
    base: Box<str>,
    #[serde(deserialize_with = "null_default")]
    syscalls: Vec<CallsWords>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct CallsWords {
    #[serde(deserialize_with = "null_default")]
    action: Box<str>,
    #[serde(deserialize_with = "null_default")]
    names: Vec<Box<str>>,
}

impl From<ProfileWords> for Profile {
    fn from(words: ProfileWords) -> Self {
        let is_allowed = |calls: &CallsWords| matches!(&*calls.action, "SCMP_ACT_ALLOW" | "SCMP_ACT_LOG");
        let allowed = words.syscalls.into_iter().filter(is_allowed).flat_map(|calls| calls.names);
        let mut allowed: Vec<Box<str>> = allowed.collect();
        allowed.sort_unstable();
        allowed.dedup();
        Profile { base: words.base, allowed: allowed.into() }
    }
}

impl<'a> Calls<'a> {
    fn add(&mut self, names: &'a Names) {
        if !names.is_empty() && !self.0.iter().any(|known| std::ptr::eq(*known, names)) {
            self.0.push(names);
        }
    }

    /// Adds the calls of other pods.
    pub(super) fn extend(&mut self, other: &Calls<'a>) {
        other.0.iter().for_each(|names| self.add(names));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many calls there are.
    pub(super) fn len(&self) -> usize {
        match &*self.0 {
            [] => 0,
            [names] => names.len(),
            _ => union(self.0.iter().flat_map(|names| *names).map(|name| &**name)),
        }
    }

    /// How many calls there are that are not among others.
    pub(super) fn count_beyond(&self, others: &Calls<'a>) -> usize {
        let is_of = |name: &str, names: &Names| names.binary_search_by(|known| (**known).cmp(name)).is_ok();
        let of_others = |name: &&str| others.0.iter().any(|names| is_of(name, names));
        let is_other = |names: &&&Names| !others.0.iter().any(|known| std::ptr::eq(*known, **names));
        let new = self.0.iter().filter(is_other).flat_map(|names| *names).map(|name| &**name);
        union(new.filter(|name| !of_others(name)))
    }
}

/// How many different names there are.
fn union<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// The profiles of a cluster, and how they count.
#[derive(Clone, Copy)]
pub(super) struct Profiles<'a> {
    pub(super) objects: &'a Objects,
    /// Namespace and name of the profile of pods that name none.
    pub(super) default: (&'a str, &'a str),
    /// Whether the profiles of init containers, and those that other profiles are based on, count as well.
    pub(super) count_all: bool,
}

impl<'a> Profiles<'a> {
    /// The calls that a pod may make: those of all profiles that it and its containers name, or else of the default profile.
    pub(super) fn calls_of(self, pod: &Pod) -> Calls<'a> {
        let mut calls = Calls::default();
        let init_containers = if self.count_all { &*pod.spec.init_containers } else { &[] };
        let containers = pod.spec.containers.iter().chain(init_containers);
        let named = containers.map(|container| &container.seccomp_profile);
        for profile in std::iter::once(&pod.spec.seccomp_profile).chain(named).flatten() {
            if let NamedProfile::Localhost(path) = &**profile {
                self.add(path, &mut calls);
            }
        }
        // One counts; as upstream, one whose profile cannot be read is passed over.
        annotated(pod).any(|path| self.add(path, &mut calls));
        if calls.is_empty() {
            self.extend(self.default, &mut calls);
        }
        calls
    }

    /// Adds the calls of the profile at a path such as `operator/NAMESPACE/NAME.json`, or `operator/NAME.json` of later versions; whether
    /// there is such a profile, or the path names none.
    fn add(self, path: &str, calls: &mut Calls<'a>) -> bool {
        let Some((folder, file)) = path.rsplit_once('/') else { return true };
        let namespace = folder.rsplit_once('/').map_or(folder, |(_, namespace)| namespace);
        let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
        namespace.is_empty()
            || name.is_empty()
            || self.extend((namespace, name), calls)
            || namespace == OPERATOR && self.extend(("", name), calls)
    }

    /// Adds the calls of a profile, and of those that it is based on; whether there is such a profile.
    fn extend(self, (namespace, name): (&str, &str), calls: &mut Calls<'a>) -> bool {
        let Some(mut profile) = find(namespace, name, self.objects) else { return false };
        calls.add(&profile.allowed);
        for _ in 0..BASES_MAX {
            let base = if self.count_all { &*profile.base } else { "" };
            let Some(found) = (!base.is_empty()).then(|| find(namespace, base, self.objects)).flatten()
            else {
                break;
            };
            calls.add(&found.allowed);
            profile = found;
        }
        true
    }
}

/// The paths of the profiles that the annotations of a pod name.
fn annotated(pod: &Pod) -> impl Iterator<Item = &str> {
    pod.annotations.iter().filter(|(key, _)| key.contains(ANNOTATION)).map(|(_, path)| path)
}

/// All that tells apart which profiles pods name: their other annotations do not, and are often different for each pod.
pub(super) fn hash_named(pod: &Pod, hasher: &mut impl Hasher) {
    pod.spec.seccomp_profile.hash(hasher);
    for containers in [&pod.spec.containers, &pod.spec.init_containers] {
        containers.len().hash(hasher);
        containers.iter().for_each(|container| container.seccomp_profile.hash(hasher));
    }
    annotated(pod).for_each(|path| path.hash(hasher));
}

fn find<'a>(namespace: &str, name: &str, objects: &'a Objects) -> Option<&'a Profile> {
    let early = objects.get::<SeccompProfile>(namespace, name).map(|profile| &profile.spec);
    early.or_else(|| objects.get::<ClusterSeccompProfile>(namespace, name).map(|profile| &profile.spec))
}
