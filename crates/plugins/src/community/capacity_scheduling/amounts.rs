//! What pods take, compared with what they may.

use supercargo_model::names::resource;
use supercargo_model::{ResourceList, Resources};

/// A bound of a quota, by resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bound {
    amounts: Resources,
    /// Whether cpu, memory and ephemeral-storage are named.
    listed: [bool; 3],
    /// The bound of resources that are counted by name and not named here.
    unlisted_scalars: i64,
    /// Whether the whole bound is missing, and so is no bound.
    is_boundless: bool,
}

impl Bound {
    /// What is guaranteed: nothing, of what is not named.
    pub(super) fn least(list: Option<&ResourceList>) -> Self {
        Bound { unlisted_scalars: 0, is_boundless: false, ..Self::of(list) }
    }

    /// What is never exceeded: there is no such bound for what is not named, but for the three that upstream has at 0 then.
    pub(super) fn most(list: Option<&ResourceList>) -> Self {
        Bound { unlisted_scalars: i64::MAX, is_boundless: list.is_none(), ..Self::of(list) }
    }

    fn of(list: Option<&ResourceList>) -> Self {
        let Some(list) = list else { return Bound::default() };
        let names = [resource::CPU, resource::MEMORY, resource::EPHEMERAL_STORAGE];
        let listed = names.map(|name| list.get(name).is_some());
        Bound { amounts: Resources::from_list(list), listed, ..Bound::default() }
    }

    /// The bounds of cpu, memory and ephemeral-storage.
    fn standard(&self, unlisted_is_unbounded: bool) -> [i64; 3] {
        let Resources { milli_cpu, memory, ephemeral_storage, .. } = &self.amounts;
        let mut bounds = [*milli_cpu, *memory, *ephemeral_storage];
        for (bound, is_listed) in bounds.iter_mut().zip(self.listed) {
            if self.is_boundless || (unlisted_is_unbounded && !is_listed) {
                *bound = i64::MAX;
            }
        }
        bounds
    }

    /// Whether so much, and this besides, is more than the bound. Of resources that are counted by name, only those count that `much` names.
    pub(super) fn is_exceeded_by(
        &self,
        much: &Resources,
        besides: Option<&Resources>,
        unlisted_is_unbounded: bool,
    ) -> bool {
        let bounds = self.standard(unlisted_is_unbounded);
        let besides_standard = besides.map_or([0; 3], standard);
        let is_more = |((amount, besides), bound): ((i64, i64), i64)| amount.wrapping_add(besides) > bound;
        standard(much).into_iter().zip(besides_standard).zip(bounds).any(is_more)
            || much.scalars().any(|(name, amount)| {
                let besides = besides.and_then(|besides| besides.scalar(name)).unwrap_or(0);
                let bound = self.amounts.scalar(name).unwrap_or(self.unlisted_scalars);
                amount.wrapping_add(besides) > bound
            })
    }

    /// Adds what another quota guarantees.
    pub(super) fn add(&mut self, other: &Bound) {
        self.amounts.add(&other.amounts);
        for (listed, other) in self.listed.iter_mut().zip(other.listed) {
            *listed |= other;
        }
    }

    /// How much more this is than the bound, by resource, in the scheduler's units; less than 0 if there is something left.
    pub(super) fn excess(&self, much: &Resources, unlisted_is_unbounded: bool) -> Vec<(String, i64)> {
        let names = [resource::CPU, resource::MEMORY, resource::EPHEMERAL_STORAGE];
        let bounds = self.standard(unlisted_is_unbounded);
        let standard = names.into_iter().zip(standard(much)).zip(bounds);
        let standard = standard.map(|((name, amount), bound)| (name, amount.saturating_sub(bound)));
        let bound_of = |name: &str| self.amounts.scalar(name).unwrap_or(self.unlisted_scalars);
        let scalars = much.scalars().map(|(name, amount)| (name, amount.saturating_sub(bound_of(name))));
        standard.chain(scalars).map(|(name, excess)| (name.to_owned(), excess)).collect()
    }
}

fn standard(resources: &Resources) -> [i64; 3] {
    [resources.milli_cpu, resources.memory, resources.ephemeral_storage]
}

/// The sum of two.
pub(super) fn sum(a: &Resources, b: &Resources) -> Resources {
    let mut sum = a.clone();
    sum.add(b);
    sum
}
