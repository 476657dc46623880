//! `kubescheduler.config.k8s.io/v1beta1`, read by Kubernetes 1.19 to 1.22.
//!
//! Ways to score resources were plugins of their own, and a default plugin that was enabled again without being
//! disabled was there twice, which failed.

use super::release::Release;
use super::tables;

pub(super) const RELEASE: Release = Release {
    version: "v1beta1",
    kubernetes: "1.22",
    fields: &["parallelism", "healthzBindAddress", "metricsBindAddress"],
    points: &["postFilter", "preScore"],
    defaults: tables::V1BETA1,
    replaces_defaults: false,
    lists_constraints: false,
    loose_extenders: false,
};
