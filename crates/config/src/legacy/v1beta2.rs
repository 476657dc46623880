//! `kubescheduler.config.k8s.io/v1beta2`, read by Kubernetes 1.22 to 1.27.
//!
//! It has v1's arguments, but each point has a list of defaults of its own, and most weights are 1.

use super::release::Release;
use super::tables;

pub(super) const RELEASE: Release = Release {
    version: "v1beta2",
    kubernetes: "1.27",
    fields: &["parallelism", "healthzBindAddress", "metricsBindAddress"],
    points: &["preEnqueue", "postFilter", "preScore"],
    defaults: tables::V1BETA2,
    replaces_defaults: true,
    lists_constraints: false,
    loose_extenders: false,
};
