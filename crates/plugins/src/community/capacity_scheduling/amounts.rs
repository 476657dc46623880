//! What pods take, compared with what they may.

use supercargo_model::names::resource;
use supercargo_model::resources::ResourceSum;
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

/// Of which of cpu, memory and ephemeral-storage a bound that does not name them is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unbounded([bool; 3]);

/// The sum of what quotas guarantee, to which some are added and from which some are taken again.
#[derive(Clone, Debug, Default)]
pub(super) struct SumOfBounds {
    amounts: ResourceSum,
    /// How many of them name cpu, memory and ephemeral-storage.
    listed: [usize; 3],
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

impl Unbounded {
    /// All of them, or none.
    pub(super) fn all(are_unbounded: bool) -> Self {
        Unbounded([are_unbounded; 3])
    }

    /// Those of them that this bound does not name either: what one namespace is guaranteed is not guaranteed to the others.
    pub(super) fn unless_listed_by(self, bound: &Bound) -> Self {
        let mut unbounded = self;
        for (unbounded, is_listed) in unbounded.0.iter_mut().zip(bound.listed) {
            *unbounded &= !is_listed;
        }
        unbounded
    }
}

impl SumOfBounds {
    pub(super) fn add(&mut self, bound: &Bound) {
        self.amounts.add(&bound.amounts);
        for (count, is_listed) in self.listed.iter_mut().zip(bound.listed) {
            *count += usize::from(is_listed);
        }
    }

    /// Takes one away that was added.
    pub(super) fn subtract(&mut self, bound: &Bound) {
        self.amounts.subtract(&bound.amounts);
        for (count, is_listed) in self.listed.iter_mut().zip(bound.listed) {
            *count -= usize::from(is_listed);
        }
    }

    /// The sum as a bound of all together.
    pub(super) fn get(&self) -> Bound {
        let (amounts, listed) = (self.amounts.get().clone(), self.listed.map(|count| count > 0));
        Bound { amounts, listed, ..Bound::default() }
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
    fn standard(&self, unbounded: Unbounded) -> [i64; 3] {
        let mut bounds = standard(&self.amounts);
        for (bound, (is_listed, is_unbounded)) in
            bounds.iter_mut().zip(self.listed.into_iter().zip(unbounded.0))
        {
            if self.is_boundless || (is_unbounded && !is_listed) {
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
        unbounded: Unbounded,
    ) -> bool {
        self.left(named, besides, unbounded).any(|(_, left)| left < 0)
    }

    /// How much is left of the bound beyond all these amounts, by resource; less than 0 where they are more. Of resources that are
    /// counted by name, only those count that one of the `named` amounts has. No sum overflows.
    pub(super) fn left<'a>(
        &'a self,
        named: &'a [&'a Resources],
        besides: &'a [&'a Resources],
        unbounded: Unbounded,
    ) -> impl Iterator<Item = (Counted<'a>, i128)> {
        let all = move || named.iter().chain(besides);
        let mut left = self.standard(unbounded).map(i128::from);
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

    /// How much more this is than the bound, by resource, in the scheduler's units; less than 0 if there is something left.
    pub(super) fn excess(&self, much: &Resources, unbounded: Unbounded) -> Vec<(String, i64)> {
        let bounds = self.standard(unbounded);
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
