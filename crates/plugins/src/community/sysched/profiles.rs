//! Which system calls a pod may make, by the profiles that it names.

use std::collections::BTreeSet;

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

/// System calls by name.
pub(super) type Calls<'a> = BTreeSet<&'a str>;

/// A profile of the Security Profiles Operator, in a namespace as its versions before 0.9 have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SeccompProfile {
    #[serde(deserialize_with = "null_default")]
    spec: ProfileWords,
}

/// A profile as later versions have it, of the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClusterSeccompProfile {
    #[serde(deserialize_with = "null_default")]
    spec: ProfileWords,
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

impl ProfileWords {
    /// The calls that the profile allows, be they logged or not.
    fn allowed(&self) -> impl Iterator<Item = &str> {
        let is_allowed = |calls: &&CallsWords| matches!(&*calls.action, "SCMP_ACT_ALLOW" | "SCMP_ACT_LOG");
        self.syscalls.iter().filter(is_allowed).flat_map(|calls| &calls.names).map(|name| &**name)
    }
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
        let mut calls = Calls::new();
        let init_containers = if self.count_all { &*pod.spec.init_containers } else { &[] };
        let containers = pod.spec.containers.iter().chain(init_containers);
        let named = containers.map(|container| &container.seccomp_profile);
        for profile in std::iter::once(&pod.spec.seccomp_profile).chain(named).flatten() {
            if let NamedProfile::Localhost(path) = &**profile {
                self.add(path, &mut calls);
            }
        }
        if let Some((_, path)) = pod.annotations.iter().find(|(key, _)| key.contains(ANNOTATION)) {
            self.add(path, &mut calls);
        }
        if calls.is_empty() {
            self.extend(self.default, &mut calls);
        }
        calls
    }

    /// Adds the calls of the profile at a path such as `operator/NAMESPACE/NAME.json`, or `operator/NAME.json` of later versions.
    fn add(self, path: &str, calls: &mut Calls<'a>) {
        let Some((folder, file)) = path.rsplit_once('/') else { return };
        let namespace = folder.rsplit_once('/').map_or(folder, |(_, namespace)| namespace);
        let name = file.rsplit_once('.').map_or(file, |(name, _)| name);
        if !self.extend((namespace, name), calls) && namespace == OPERATOR {
            self.extend(("", name), calls);
        }
    }

    /// Adds the calls of a profile, and of those that it is based on; whether there is such a profile.
    fn extend(self, (namespace, name): (&str, &str), calls: &mut Calls<'a>) -> bool {
        let Some(mut profile) = find(namespace, name, self.objects) else { return false };
        calls.extend(profile.allowed());
        for _ in 0..BASES_MAX {
            let base = if self.count_all { &*profile.base } else { "" };
            let Some(found) = (!base.is_empty()).then(|| find(namespace, base, self.objects)).flatten()
            else {
                break;
            };
            calls.extend(found.allowed());
            profile = found;
        }
        true
    }
}

fn find<'a>(namespace: &str, name: &str, objects: &'a Objects) -> Option<&'a ProfileWords> {
    let early = objects.get::<SeccompProfile>(namespace, name).map(|profile| &profile.spec);
    early.or_else(|| objects.get::<ClusterSeccompProfile>(namespace, name).map(|profile| &profile.spec))
}
