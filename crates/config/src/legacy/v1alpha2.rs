//! `kubescheduler.config.k8s.io/v1alpha2`, read by Kubernetes 1.18.
//!
//! The first version with profiles. Preemption was no plugin, and giving back a reservation was a point of its own.
//! Where the algorithm comes from was a matter of flags; a file that says it all the same is understood.

use super::release::Release;
use super::tables;

pub(super) const RELEASE: Release = Release {
    version: "v1alpha2",
    kubernetes: "1.18",
    fields: &[
        "healthzBindAddress",
        "metricsBindAddress",
        "disablePreemption",
        "bindTimeoutSeconds",
        "algorithmSource",
        "hardPodAffinitySymmetricWeight",
    ],
    points: &["preScore", "unreserve"],
    defaults: tables::ALPHA,
    replaces_defaults: false,
    lists_constraints: true,
    loose_extenders: true,
};
