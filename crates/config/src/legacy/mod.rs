//! Configurations of old: read as strictly as their releases read them, and made into one of today that decides the same
//! as far as today's plugins can.
//!
//! [`release`] and [`tables`] say what an old release knew and had on by default. [`wanted`] works out which plugins it
//! would have run, in today's names, and [`plugins`] writes down how that differs from today's defaults. Everything that
//! changed, and everything that could not be kept, is a warning with its path in the old document.

pub(crate) mod algorithm;
mod args;
mod extenders;
mod old;
mod plugins;
mod policy;
mod policy_words;
mod release;
pub(crate) mod tables;
mod v1alpha1;
mod v1alpha2;
mod v1beta1;
mod v1beta2;
mod v1beta3;
mod wanted;

pub(crate) use self::release::Release;
use crate::codes;
use crate::decode::{KUBE_API_VERSION, KUBE_GROUP};
use crate::fields::{Object, below};
use crate::places::Places;
use crate::problem::{Problem, Problems};
use crate::types::KubeSchedulerConfiguration;

/// A document without its kind, and where it stands: empty, or an entry of a ConfigMap.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) fields: Object,
    pub(crate) path: String,
    pub(crate) places: Places,
}

/// The old version that an apiVersion names.
pub(crate) fn version(api_version: &str) -> Option<&'static Release> {
    let version = api_version.strip_prefix(KUBE_GROUP)?.strip_prefix('/')?;
    const RELEASES: [&Release; 5] =
        [&v1alpha1::RELEASE, &v1alpha2::RELEASE, &v1beta1::RELEASE, &v1beta2::RELEASE, &v1beta3::RELEASE];
    RELEASES.into_iter().find(|release| release.version == version)
}

/// A configuration of an old version as one of today. The Policy that it may need comes with it.
pub(crate) fn convert(
    document: &Document,
    release: &'static Release,
    policy: Option<&Document>,
    problems: &mut Problems,
) -> KubeSchedulerConfiguration {
    let known = problems.len();
    note(release, &document.path, problems);
    if let (Some(policy), "v1beta3") = (policy, release.version) {
        let known = problems.len();
        refuse_policy(policy, release.version, problems);
        problems.locate(known, &policy.places);
    }
    let config = old::convert(document, release, policy, problems);
    // What is wrong with the Policy has its places already.
    problems.locate(known, &document.places);
    config
}

/// A Policy as a configuration of today.
pub(crate) fn convert_policy(document: &Document, problems: &mut Problems) -> KubeSchedulerConfiguration {
    let known = problems.len();
    note(&policy::RELEASE, &document.path, problems);
    let config = policy::convert(document, problems);
    problems.locate(known, &document.places);
    config
}

/// Releases that read newer versions read no Policy.
pub(crate) fn refuse_policy(policy: &Document, version: &str, problems: &mut Problems) {
    let message = format!("a Policy cannot be combined with a configuration of {version}");
    let hint = "convert the Policy by itself, and merge the two by hand".to_owned();
    problems
        .push(Problem::new(&codes::POLICY_COMBINED, below(&policy.path, "kind"), message).with_hint(hint));
}

fn note(release: &Release, path: &str, problems: &mut Problems) {
    let message = format!(
        "{} was converted to {KUBE_API_VERSION}, with the defaults of Kubernetes {} kept",
        release.api_version(),
        release.kubernetes
    );
    let hint = "what has a line is of this file; other paths are of the converted one, which `supercargo config convert` \
                prints"
        .to_owned();
    problems.push(Problem::new(&codes::CONVERTED, below(path, "apiVersion"), message).with_hint(hint));
}
