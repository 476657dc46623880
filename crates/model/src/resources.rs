//! Amounts of resources: what a node has, what a pod asks for.

use std::sync::Arc;

use serde::Deserialize;

use crate::names::resource;
use crate::protobuf::message;
use crate::quantity::Quantity;
use crate::wire::null_default;

/// Exact quantities by resource name, sorted by name: a `ResourceList` as the API writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceList(Vec<(Arc<str>, Quantity)>);

/// Requests and limits as a container (or a pod) writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// What must be there.
    #[serde(deserialize_with = "null_default")]
    pub requests: ResourceList,
    /// What must not be exceeded.
    #[serde(deserialize_with = "null_default")]
    pub limits: ResourceList,
}

/// Whole numbers as the scheduler counts them: cpu in thousandths of a core, everything else in its unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
// In this order, so that what every decision reads stands together in whatever has it.
#[repr(C)]
pub struct Resources {
    /// Thousandths of a core.
    pub milli_cpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Bytes.
    pub ephemeral_storage: i64,
    scalars: Vec<(Arc<str>, i64)>,
}

/// A sum of amounts to which some are added and from which some are taken again. It is exact, however large; what 64 bits do not hold
/// shows as their limit.
#[derive(Clone, Debug, Default)]
pub struct ResourceSum {
    /// Of cpu, memory and ephemeral-storage.
    standard: [i128; 3],
    scalars: Vec<(Arc<str>, i128)>,
    shown: Resources,
}

message!(ResourceRequirements { 1 => limits, 2 => requests });

impl ResourceList {
    /// A list that names nothing.
    pub const fn new() -> Self {
        ResourceList(Vec::new())
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All entries, in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Quantity)> {
        self.0.iter().map(|(name, quantity)| (name, quantity))
    }

    /// The quantity of one resource, if it is named.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.position(name).ok().map(|index| &self.0[index].1)
    }

    /// The amount of one resource in the scheduler's unit; 0 if it is not named.
    pub fn amount(&self, name: &str) -> i64 {
        self.get(name).map_or(0, |quantity| amount_of(name, quantity))
    }

    /// Sets the quantity of one resource.
    pub fn set(&mut self, name: &Arc<str>, quantity: Quantity) {
        match self.position(name) {
            Ok(index) => self.0[index].1 = quantity,
            Err(index) => self.0.insert(index, (name.clone(), quantity)),
        }
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        for (name, quantity) in other.iter() {
            match self.position(name) {
                Ok(index) => self.0[index].1 += quantity,
                Err(index) => self.0.insert(index, (name.clone(), quantity.clone())),
            }
        }
    }

    /// Raises each resource of `other` to at least its quantity there.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, quantity) in other.iter() {
            match self.position(name) {
                Ok(index) => self.0[index].1.raise_to(quantity),
                Err(index) => self.0.insert(index, (name.clone(), quantity.clone())),
            }
        }
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(candidate, _)| (**candidate).cmp(name))
    }
}

impl<N: Into<Arc<str>>> FromIterator<(N, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (N, Quantity)>>(entries: I) -> Self {
        let mut list = ResourceList::default();
        for (name, quantity) in entries {
            list.set(&name.into(), quantity);
        }
        list
    }
}

impl<'de> Deserialize<'de> for ResourceList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> serde::de::Visitor<'de> for Entries {
            type Value = ResourceList;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map of resource names to quantities")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<ResourceList, A::Error> {
                let mut list = ResourceList::default();
                while let Some((name, quantity)) = map.next_entry::<Arc<str>, Quantity>()? {
                    list.set(&name, quantity);
                }
                Ok(list)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Resources {
    /// The amounts of the resources that the scheduler counts; others are left out.
    pub fn from_list(list: &ResourceList) -> Self {
        let mut resources = Resources::default();
        for (name, quantity) in list.iter() {
            let amount = amount_of(name, quantity);
            match &**name {
                resource::CPU => resources.milli_cpu = amount,
                resource::MEMORY => resources.memory = amount,
                resource::EPHEMERAL_STORAGE => resources.ephemeral_storage = amount,
                other if resource::is_scalar(other) => resources.scalars.push((name.clone(), amount)),
                _ => {}
            }
        }
        resources
    }

    /// The same, where amounts below zero count as zero.
    pub fn from_list_non_negative(list: &ResourceList) -> Self {
        let mut resources = Self::from_list(list);
        resources.milli_cpu = resources.milli_cpu.max(0);
        resources.memory = resources.memory.max(0);
        resources.ephemeral_storage = resources.ephemeral_storage.max(0);
        for (_, amount) in &mut resources.scalars {
            *amount = (*amount).max(0);
        }
        resources
    }

    /// The resources counted by name, in name order.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, i64)> {
        self.scalars.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// The amount of a resource counted by name, if it is there.
    pub fn scalar(&self, name: &str) -> Option<i64> {
        let index = self.scalars.binary_search_by(|(candidate, _)| (**candidate).cmp(name)).ok()?;
        Some(self.scalars[index].1)
    }

    /// Whether nothing is asked for: all fields zero and no resource counted by name, not even at zero.
    pub fn is_nothing(&self) -> bool {
        self.milli_cpu == 0 && self.memory == 0 && self.ephemeral_storage == 0 && self.scalars.is_empty()
    }

    /// Adds `other`. Amounts wrap around as they do upstream, where hostile quantities can reach the limit.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::wrapping_add);
    }

    /// Adds `other`. What is more than 64 bits hold stays at their limit.
    pub fn add_saturating(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Adds how much `other` can change a sum by, be it added or taken away. What is more than 64 bits hold stays at their limit.
    pub fn add_magnitude(&mut self, other: &Self) {
        self.combine(other, |sum, amount| sum.saturating_add(amount.saturating_abs()));
    }

    /// Takes `other` away.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::wrapping_sub);
    }

    fn combine(&mut self, other: &Self, operation: impl Fn(i64, i64) -> i64) {
        self.milli_cpu = operation(self.milli_cpu, other.milli_cpu);
        self.memory = operation(self.memory, other.memory);
        self.ephemeral_storage = operation(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            match self.scalars.binary_search_by(|(candidate, _)| candidate.cmp(name)) {
                Ok(index) => self.scalars[index].1 = operation(self.scalars[index].1, *amount),
                Err(index) => self.scalars.insert(index, (name.clone(), operation(0, *amount))),
            }
        }
    }
}

impl ResourceSum {
    /// The sum, as far as 64 bits hold it.
    pub fn get(&self) -> &Resources {
        &self.shown
    }

    /// Adds amounts.
    pub fn add(&mut self, amounts: &Resources) {
        self.change(amounts, 1);
    }

    /// Takes amounts away that were added.
    pub fn subtract(&mut self, amounts: &Resources) {
        self.change(amounts, -1);
    }

    /// Adds all that was added to another sum.
    pub(crate) fn add_sum(&mut self, other: &ResourceSum) {
        self.change_by(other.standard, other.scalars(), 1);
    }

    /// Takes all of another sum away.
    pub(crate) fn subtract_sum(&mut self, other: &ResourceSum) {
        self.change_by(other.standard, other.scalars(), -1);
    }

    fn scalars(&self) -> impl Iterator<Item = (&Arc<str>, i128)> {
        self.scalars.iter().map(|(name, amount)| (name, *amount))
    }

    fn change(&mut self, amounts: &Resources, sign: i128) {
        let Resources { milli_cpu, memory, ephemeral_storage, scalars } = amounts;
        let standard = [*milli_cpu, *memory, *ephemeral_storage].map(i128::from);
        let scalars = scalars.iter().map(|(name, amount)| (name, i128::from(*amount)));
        self.change_by(standard, scalars, sign);
    }

    fn change_by<'a>(
        &mut self,
        standard: [i128; 3],
        scalars: impl Iterator<Item = (&'a Arc<str>, i128)>,
        sign: i128,
    ) {
        for (sum, amount) in self.standard.iter_mut().zip(standard) {
            *sum += sign * amount;
        }
        [self.shown.milli_cpu, self.shown.memory, self.shown.ephemeral_storage] =
            self.standard.map(saturated);
        for (name, amount) in scalars {
            // Both lists have the same names, in the same order.
            let found = self.scalars.binary_search_by(|(candidate, _)| candidate.cmp(name));
            let index = found.unwrap_or_else(|index| {
                self.scalars.insert(index, (name.clone(), 0));
                self.shown.scalars.insert(index, (name.clone(), 0));
                index
            });
            let sum = &mut self.scalars[index].1;
            *sum += sign * amount;
            self.shown.scalars[index].1 = saturated(*sum);
        }
    }
}

fn saturated(sum: i128) -> i64 {
    sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A quantity in the scheduler's unit, rounded up: thousandths for cpu, whole units for the rest.
pub fn amount_of(name: &str, quantity: &Quantity) -> i64 {
    if name == resource::CPU { quantity.milli_value() } else { quantity.value() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(memory: i64, gpus: i64) -> Resources {
        Resources { memory, scalars: vec![("example.com/gpu".into(), gpus)], ..Resources::default() }
    }

    #[test]
    fn a_sum_that_is_too_large_to_show_is_exact_again_when_it_is_not() {
        let mut sum = ResourceSum::default();
        for _ in 0..3 {
            sum.add(&amounts(i64::MAX, i64::MAX));
        }
        sum.add(&amounts(5, 7));
        assert_eq!(*sum.get(), amounts(i64::MAX, i64::MAX));
        for _ in 0..3 {
            sum.subtract(&amounts(i64::MAX, i64::MAX));
        }
        assert_eq!(*sum.get(), amounts(5, 7));
    }

    #[test]
    fn amounts_at_their_limit_stay_there() {
        let mut sum = amounts(i64::MAX - 1, 1);
        sum.add_saturating(&amounts(2, i64::MAX));
        assert_eq!(sum, amounts(i64::MAX, i64::MAX));
        let mut reach = amounts(1, 0);
        reach.add_magnitude(&amounts(-3, i64::MIN));
        assert_eq!(reach, amounts(4, i64::MAX));
    }
}
