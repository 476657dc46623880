//! SySched: nodes whose pods may make the same system calls.

mod profiles;

use std::hash::{DefaultHasher, Hasher};

use serde::{Deserialize, Serialize};
use supercargo_framework::{
    Args, Cycle, Extensions, FieldProblems, MAX_NODE_SCORE, NodeScore, Normalization, Plugin, PodField,
    Reads, Score, Status,
};
use supercargo_model::pod::PodPhase;
use supercargo_model::{NodeRef, Pod};

use profiles::{Calls, Profiles, hash_named};
pub use profiles::{ClusterSeccompProfile, SeccompProfile};

/// # What
/// Prefers nodes where the pod's system calls are those of the pods that run there: one point less for each call that the node's
/// pods may make and this pod may not, and for each call that would be made on the node and that one of its pods may not make. Which
/// calls a pod may make its seccomp profiles say, objects of the Security Profiles Operator. The best node gets 100 points.
///
/// # Why
/// A pod that may make few calls is exposed to what the others on its node may do: a call through which they break out harms it as well.
///
/// # Arguments
/// `defaultProfileNamespace` (`default`) and `defaultProfileName` (`all-syscalls`): the profile of pods that name none.
///
/// # Example
/// ```yaml
/// plugins:
///   score: {enabled: [{name: SySched, weight: 1}]}
/// pluginConfig:
/// - name: SySched
///   args: {defaultProfileNamespace: security, defaultProfileName: full-seccomp}
/// ```
/// A pod may make the calls a, b and d. A node whose pod may make a, b and c gets 60 points, one whose pod may make x and y none, and one without pods
/// 100.
///
/// # Difference from upstream
/// Profiles of later versions of the operator, which belong to no namespace, are found as well. What a profile says is read when
/// a pod is scored, so that changed profiles count at once. Pods of the same name in two namespaces are two pods. Of several annotations that name
/// profiles the first by name counts whose profile there is. As upstream, the profiles of init containers, and what `baseProfileName` names, do not count, unless
/// the fix `allSeccompProfiles` is asked for.
#[derive(Debug)]
pub struct SySched {
    args: SySchedArgs,
}

/// Arguments of [`SySched`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SySchedArgs {
    /// The namespace of the profile of pods that name none.
    pub default_profile_namespace: Option<String>,
    /// Its name.
    pub default_profile_name: Option<String>,
}

impl Args for SySchedArgs {
    fn complete(&mut self) {
        self.default_profile_namespace.get_or_insert_with(|| "default".to_owned());
        self.default_profile_name.get_or_insert_with(|| "all-syscalls".to_owned());
    }

    fn validate(&self, _: &mut FieldProblems) {}
}

impl Plugin for SySched {
    const NAME: &'static str = "SySched";
    type Args = SySchedArgs;

    fn new(args: SySchedArgs) -> Self {
        SySched { args }
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.score()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
            .pod(&[PodField::SeccompProfiles, PodField::Annotations])
            .progress_of_pods()
            .kind::<SeccompProfile>()
            .optional_kind::<ClusterSeccompProfile>()
            .alike()
    }

    fn alike(&self, pod: &Pod) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash_named(pod, &mut hasher);
        hasher.finish()
    }
}

impl SySched {
    fn default_profile(&self) -> (&str, &str) {
        (
            self.args.default_profile_namespace.as_deref().unwrap_or_default(),
            self.args.default_profile_name.as_deref().unwrap_or_default(),
        )
    }
}

impl Score for SySched {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let profiles = Profiles {
            objects: cycle.cluster().objects(),
            default: self.default_profile(),
            count_all: cycle.context.fixes.all_seccomp_profiles,
        };
        let own = profiles.calls_of(cycle.pod);
        if own.is_empty() {
            // Nothing is known about the pod, so that all nodes are as good.
            return Ok(0);
        }
        let (mut on_node, mut pods, mut allowed) = (Calls::default(), 0, 0);
        // Many pods of a node have the same spec; how many calls one may make is worked out once.
        let mut last: Option<(&Pod, i64)> = None;
        for pod in node.pods().iter().filter(|pod| pod.phase() == PodPhase::Running) {
            let is_same =
                |known: &Pod| known.spec.is_same(&pod.spec) && known.annotations.is_same(&pod.annotations);
            let count = match last.filter(|(known, _)| is_same(known)) {
                Some((_, count)) => count,
                None => {
                    let calls = profiles.calls_of(pod);
                    on_node.extend(&calls);
                    calls.len() as i64
                }
            };
            last = Some((pod, count));
            (pods, allowed) = (pods + 1, allowed + count);
        }
        let foreign = on_node.count_beyond(&own) as i64;
        let together = own.len() as i64 + foreign;
        // Each pod of the node lacks what all together may do, less its own calls.
        Ok(if pods == 0 { 0 } else { foreign + pods * together - allowed })
    }

    fn normalize(&self, _: &Cycle<'_>, scores: &mut [NodeScore]) -> Status {
        let most = scores.iter().map(|score| score.score).max().unwrap_or(0);
        for score in scores {
            score.score = match most {
                0 => MAX_NODE_SCORE,
                most => MAX_NODE_SCORE - MAX_NODE_SCORE * score.score / most,
            };
        }
        Status::success()
    }

    fn normalization(&self) -> Normalization {
        Normalization::ByRange
    }
}

#[cfg(test)]
mod tests;
