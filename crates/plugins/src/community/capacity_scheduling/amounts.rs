//! What pods take, compared with what they may.

use supercargo_model::names::resource;
use supercargo_model::{ResourceList, Resources};

/// The resources that are counted by column: [`Counted::Standard`] has the place of one here.
const STANDARD: [&str; 3] = [resource::CPU, resource::MEMORY, resource::EPHEMERAL_STORAGE];

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

/// A resource: cpu, memory or ephemeral-storage by its place, or one that is counted by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted<'a> {
    Standard(usize),
    Scalar(&'a str),
}

impl Counted<'_> {
    /// So much of it is among these amounts.
    pub(super) fn of(self, amounts: &Resources) -> i64 {
        match self {
            Counted::Standard(place) => standard(amounts)[place],
            Counted::Scalar(name) => amounts.scalar(name).unwrap_or(0),
        }
    }
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
        let listed = STANDARD.map(|name| list.get(name).is_some());
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

    /// Whether all these amounts together are more than the bound: see [`Bound::left`].
    pub(super) fn is_exceeded_by(
        &self,
        named: &[&Resources],
        besides: &[&Resources],
        unlisted_is_unbounded: bool,
    ) -> bool {
        self.left(named, besides, unlisted_is_unbounded).any(|(_, left)| left < 0)
    }

    /// How much is left of the bound beyond all these amounts, by resource; less than 0 where they are more. Of resources that are
    /// counted by name, only those count that one of the `named` amounts has. No sum overflows.
    pub(super) fn left<'a>(
        &'a self,
        named: &'a [&'a Resources],
        besides: &'a [&'a Resources],
        unlisted_is_unbounded: bool,
    ) -> impl Iterator<Item = (Counted<'a>, i128)> {
        let all = move || named.iter().chain(besides);
        let mut left = self.standard(unlisted_is_unbounded).map(i128::from);
        for amounts in all() {
            for (left, amount) in left.iter_mut().zip(standard(amounts)) {
                *left -= i128::from(amount);
            }
        }
        let standard = left.into_iter().enumerate().map(|(place, left)| (Counted::Standard(place), left));
        let scalars = named.iter().flat_map(|amounts| amounts.scalars()).map(move |(name, _)| {
            let sum: i128 = all().filter_map(|amounts| amounts.scalar(name)).map(i128::from).sum();
            let bound = self.amounts.scalar(name).unwrap_or(self.unlisted_scalars);
            (Counted::Scalar(name), i128::from(bound) - sum)
        });
        standard.chain(scalars)
    }

    /// Adds what another quota guarantees.
    pub(super) fn add(&mut self, other: &Bound) {
        self.amounts.add_saturating(&other.amounts);
        for (listed, other) in self.listed.iter_mut().zip(other.listed) {
            *listed |= other;
        }
    }

    /// How much more this is than the bound, by resource, in the scheduler's units; less than 0 if there is something left.
    pub(super) fn excess(&self, much: &Resources, unlisted_is_unbounded: bool) -> Vec<(String, i64)> {
        let bounds = self.standard(unlisted_is_unbounded);
        let standard = STANDARD.into_iter().zip(standard(much)).zip(bounds);
        let standard = standard.map(|((name, amount), bound)| (name, amount.saturating_sub(bound)));
        let bound_of = |name: &str| self.amounts.scalar(name).unwrap_or(self.unlisted_scalars);
        let scalars = much.scalars().map(|(name, amount)| (name, amount.saturating_sub(bound_of(name))));
        standard.chain(scalars).map(|(name, excess)| (name.to_owned(), excess)).collect()
    }
}

fn standard(resources: &Resources) -> [i64; 3] {
    [resources.milli_cpu, resources.memory, resources.ephemeral_storage]
}

/// The sum of two, or as much as 64 bits hold.
pub(super) fn sum(a: &Resources, b: &Resources) -> Resources {
    let mut sum = a.clone();
    sum.add_saturating(b);
    sum
}
