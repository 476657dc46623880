//! What all quotas guarantee together, kept up as quotas come, change and go: with ten thousand quotas it takes too long to add them up for each
//! pod.

use std::sync::Arc;

use supercargo_framework::{Context, SharedMap};

use super::amounts::{Bound, SumOfBounds};
use super::elastic_quota::{QUOTA_KINDS, quota_of, quotas};
use super::status::QuotaMemory;

/// What quotas guarantee, by one state of the quotas.
#[derive(Clone, Debug, Default)]
pub(super) struct Guaranteed {
    /// The versions of both kinds: with any others it does not hold.
    versions: [u64; QUOTA_KINDS.len()],
    by_namespace: SharedMap<String, Arc<Bound>>,
    sum: SumOfBounds,
}

/// What all quotas guarantee together.
pub(super) fn guaranteed(context: &Context<'_>) -> Bound {
    let known = context.memories.get::<QuotaMemory>().map(|memory| &memory.guaranteed);
    match known.filter(|known| known.is_of(context)) {
        Some(known) => known.sum.get(),
        None => added_up(context).get(),
    }
}

/// The same, by a look at every quota.
pub(super) fn added_up(context: &Context<'_>) -> SumOfBounds {
    let mut sum = SumOfBounds::default();
    quotas(context).for_each(|quota| sum.add(&quota.object.min));
    sum
}

/// Numbers that change with the quotas.
fn versions(context: &Context<'_>) -> [u64; QUOTA_KINDS.len()] {
    QUOTA_KINDS.map(|kind| context.cluster.objects().version(kind))
}

impl Guaranteed {
    /// Of the quotas that there are.
    pub(super) fn of(context: &Context<'_>) -> Self {
        let own = |namespace: &str, min: &Bound| (namespace.to_owned(), Arc::new(min.clone()));
        Guaranteed {
            versions: versions(context),
            by_namespace: quotas(context).map(|quota| own(quota.namespace, &quota.object.min)).collect(),
            sum: added_up(context),
        }
    }

    /// Whether it holds for the quotas that there are now.
    pub(super) fn is_of(&self, context: &Context<'_>) -> bool {
        self.versions == versions(context)
    }

    /// A quota of a namespace came, changed or went.
    pub(super) fn follow(&mut self, context: &Context<'_>, namespace: &str) {
        let versions = versions(context);
        // Versions only grow, so this was the only change since.
        if versions.iter().sum::<u64>() != self.versions.iter().sum::<u64>() + 1 {
            *self = Self::of(context);
            return;
        }
        self.versions = versions;
        let namespace = namespace.to_owned();
        let min = quota_of(context, &namespace).map(|quota| &quota.min);
        if self.by_namespace.get(&namespace).map(|known| &**known) == min {
            return;
        }
        let old = match min {
            Some(min) => self.by_namespace.insert(namespace, Arc::new(min.clone())),
            None => self.by_namespace.remove(&namespace),
        };
        old.iter().for_each(|old| self.sum.subtract(old));
        min.into_iter().for_each(|min| self.sum.add(min));
    }
}
