//! The same answers as for one node, for many rows at once. Hot: a new class of pods is tried on every node here.
//!
//! The loops are plain and without branches, so that the compiler can do several rows at a time, as many as the processor
//! can: `pulp` has each loop compiled for different ones, and picks. Amounts are floating
//! point numbers, for which there is such a division; up to `EXACT_AMOUNT_MAX` a quotient of a hundredfold amount is
//! never rounded up to the next whole number, so cutting off the fraction gives what whole numbers give.

use pulp::{Arch, NullaryFnOnce};
use supercargo_framework::{
    Amount, ColumnResource, ColumnView, EXACT_AMOUNT_MAX, MAX_NODE_SCORE, NodeNumbers, RowScore,
};
use supercargo_model::Resources;
use supercargo_model::names::resource;

use super::Sums;
use super::strategy::ResourceSpec;

const PERCENT: f64 = MAX_NODE_SCORE as f64;
/// A resource that the pod does not ask for is enough everywhere, also where more is taken than there is.
const NOTHING_ASKED: f64 = f64::NEG_INFINITY;

/// For fewer rows than this the widest registers are not worth it.
const MIN_WIDE_ROWS: usize = 64;

/// How many resources have columns.
pub(super) const COLUMNS_MAX: usize = 3;

/// A resource of all nodes, and how much of it the pod asks for.
#[derive(Clone, Copy)]
pub(super) struct AskedColumn<'a> {
    columns: ColumnView<'a>,
    resource: ColumnResource,
    allocatable: &'a [f64],
    allocated: &'a [f64],
    asked: f64,
}

/// A resource of any node, and how much of it the pod asks for.
#[derive(Clone, Copy)]
pub(super) struct AskedNumber {
    resource: ColumnResource,
    amount: Amount,
    asked: f64,
}

/// Which part of a resource a score is proportional to.
#[derive(Clone, Copy)]
pub(super) enum Share {
    Free,
    Taken,
}

/// The column of each of these resources, if it has one.
pub(super) fn columns_of(resources: &[ResourceSpec]) -> Vec<Option<ColumnResource>> {
    let column = |spec: &ResourceSpec| match &*spec.name {
        resource::CPU => Some(ColumnResource::MilliCpu),
        resource::MEMORY => Some(ColumnResource::Memory),
        resource::EPHEMERAL_STORAGE => Some(ColumnResource::EphemeralStorage),
        _ => None,
    };
    resources.iter().map(column).collect()
}

impl<'a> AskedColumn<'a> {
    /// None if the resource has no column, or if it is not exact.
    pub(super) fn of(
        columns: ColumnView<'a>,
        column: Option<ColumnResource>,
        asked: i64,
        sums: Sums,
    ) -> Option<Self> {
        let AskedNumber { resource, amount, asked } = AskedNumber::of(column, asked, sums)?;
        columns.are_exact().then(|| AskedColumn {
            columns,
            resource,
            allocatable: columns.get(resource, Amount::Allocatable),
            allocated: columns.get(resource, amount),
            asked,
        })
    }

    /// What the first so many rows have, and what is taken of it.
    #[inline(always)]
    fn rows(&self, count: usize) -> (&'a [f64], &'a [f64]) {
        (&self.allocatable[..count], &self.allocated[..count])
    }

    fn reciprocals(&self) -> &'a [f64] {
        self.columns.reciprocals(self.resource)
    }

    fn shares(&self) -> &'a [f64] {
        self.columns.get(self.resource, Amount::RequestedShare)
    }
}

impl AskedNumber {
    /// None if the resource has no column, or if it is not exact.
    pub(super) fn of(column: Option<ColumnResource>, asked: i64, sums: Sums) -> Option<Self> {
        let amount = match sums {
            Sums::Requested => Amount::Requested,
            Sums::NonZero => Amount::NonZero,
        };
        let is_exact = (0..=EXACT_AMOUNT_MAX).contains(&asked);
        column.filter(|_| is_exact).map(|resource| AskedNumber { resource, amount, asked: asked as f64 })
    }

    fn has(&self, node: &NodeNumbers) -> f64 {
        node.get(self.resource, Amount::Allocatable)
    }

    /// What is taken with the pod.
    fn taken(&self, node: &NodeNumbers) -> f64 {
        node.get(self.resource, self.amount) + self.asked
    }

    fn percent(&self, node: &NodeNumbers, share: Share) -> (i32, bool) {
        percent(self.has(node), self.taken(node), share)
    }
}

/// Does the work in the registers that suit the number of rows.
fn dispatch(rows: usize, work: impl NullaryFnOnce<Output = ()>) {
    match Arch::new() {
        #[cfg(target_arch = "x86_64")]
        Arch::V4(wide) if rows < MIN_WIDE_ROWS => pulp::x86::V3::vectorize(*wide, work),
        widest => widest.dispatch(work),
    }
}

/// Which rows have room for a pod, and enough cpu and memory.
struct Room<'a> {
    free_pods: &'a [f64],
    cpu: AskedColumn<'a>,
    memory: AskedColumn<'a>,
    passed: &'a mut [bool],
}

impl NullaryFnOnce for Room<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Room { free_pods, cpu, memory, passed } = self;
        let (cpu_has, cpu_taken) = cpu.rows(passed.len());
        let (memory_has, memory_taken) = memory.rows(passed.len());
        let free_pods = &free_pods[..passed.len()];
        for (row, passed) in passed.iter_mut().enumerate() {
            *passed &= (free_pods[row] >= 1.0)
                & (cpu.asked <= cpu_has[row] - cpu_taken[row])
                & (memory.asked <= memory_has[row] - memory_taken[row]);
        }
    }
}

/// Clears the rows that have no room for the pod, or not enough of what it asks for.
pub(super) fn clear_without_room(columns: ColumnView<'_>, request: &Resources, passed: &mut [bool]) {
    let asked = |resource, amount: i64| AskedColumn {
        columns,
        resource,
        allocatable: columns.get(resource, Amount::Allocatable),
        allocated: columns.get(resource, Amount::Requested),
        asked: if amount > 0 { amount as f64 } else { NOTHING_ASKED },
    };
    let rows = passed.len();
    let room = Room {
        free_pods: columns.free_pods(),
        cpu: asked(ColumnResource::MilliCpu, request.milli_cpu),
        memory: asked(ColumnResource::Memory, request.memory),
        passed: &mut *passed,
    };
    dispatch(rows, room);
    if request.ephemeral_storage > 0 {
        let (storage, asked) = (ColumnResource::EphemeralStorage, request.ephemeral_storage as f64);
        let amounts =
            columns.get(storage, Amount::Allocatable).iter().zip(columns.get(storage, Amount::Requested));
        for (passed, (allocatable, requested)) in passed.iter_mut().zip(amounts) {
            *passed &= asked <= allocatable - requested;
        }
    }
}

/// Whether a node has room for the pod, and enough of what it asks for.
pub(super) fn has_room(request: &Resources) -> impl Fn(&NodeNumbers) -> bool + use<> {
    let asked = [
        (ColumnResource::MilliCpu, request.milli_cpu),
        (ColumnResource::Memory, request.memory),
        (ColumnResource::EphemeralStorage, request.ephemeral_storage),
    ]
    .map(|(resource, amount)| (resource, if amount > 0 { amount as f64 } else { NOTHING_ASKED }));
    move |node| {
        let is_enough = |(resource, asked): (ColumnResource, f64)| {
            asked <= node.get(resource, Amount::Allocatable) - node.get(resource, Amount::Requested)
        };
        (node.free_pods() >= 1.0) & is_enough(asked[0]) & is_enough(asked[1]) & is_enough(asked[2])
    }
}

/// The mean of the shares of two resources.
struct Shares<'a> {
    one: AskedColumn<'a>,
    other: AskedColumn<'a>,
    share: Share,
    scores: &'a mut [i32],
}

impl NullaryFnOnce for Shares<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Shares { one, other, share, scores } = self;
        let (one_has, one_taken) = one.rows(scores.len());
        let (other_has, other_taken) = other.rows(scores.len());
        let (one_inverse, other_inverse) =
            (&one.reciprocals()[..scores.len()], &other.reciprocals()[..scores.len()]);
        for (row, score) in scores.iter_mut().enumerate() {
            let one_taken = one_taken[row] + one.asked;
            let one_share = multiplied_percent(one_has[row], one_inverse[row], one_taken, share);
            let other_taken = other_taken[row] + other.asked;
            let other_share = multiplied_percent(other_has[row], other_inverse[row], other_taken, share);
            let sum = one_share + other_share;
            let has_both = (one_has[row] > 0.0) & (other_has[row] > 0.0);
            // Half of a whole number, rounded down: a quarter less is never half-way between two.
            *score = bits_of(if has_both { nearest(sum * 0.5 - 0.25) } else { sum });
        }
    }
}

/// The same as [`percent`], as a floating point number, without a division.
///
/// The product with the reciprocal is off by less than one in a billion, so that the nearest whole number is the quotient rounded down, or
/// the one above it; which of them, the remainder says. All amounts are whole and exact, so the remainder is, too.
#[inline(always)]
fn multiplied_percent(allocatable: f64, inverse: f64, taken: f64, share: Share) -> f64 {
    let hundredfold = part(allocatable, taken, share) * PERCENT;
    let nearest = nearest(hundredfold * inverse);
    if nearest * allocatable > hundredfold { nearest - 1.0 } else { nearest }
}

/// The mean of the shares of several resources, by weight; one that a node does not have does not count for it.
pub(super) fn score_by_share(
    columns: &[Option<(i64, AskedColumn<'_>)>; COLUMNS_MAX],
    share: Share,
    scores: &mut [i32],
) {
    // What nearly everybody has: cpu and memory, each as important as the other.
    if let [Some((1, one)), Some((1, other)), None] = *columns {
        dispatch(scores.len(), Shares { one, other, share, scores });
        return;
    }
    scores.fill(0);
    let mut weights = vec![0; scores.len()];
    for (weight, column) in columns.iter().flatten() {
        let weight = *weight as i32;
        for (row, (score, weights)) in scores.iter_mut().zip(&mut weights).enumerate() {
            let taken = column.allocated[row] + column.asked;
            let (percent, counts) = percent(column.allocatable[row], taken, share);
            *score += percent * weight;
            *weights += i32::from(counts) * weight;
        }
    }
    for (score, weights) in scores.iter_mut().zip(weights) {
        *score /= weights.max(1);
    }
}

/// The same for one node.
pub(super) fn share_score(columns: &[Option<(i64, AskedNumber)>; COLUMNS_MAX], share: Share) -> RowScore {
    if let [Some((1, one)), Some((1, other)), None] = *columns {
        return Box::new(move |node| {
            let (one_share, one_counts) = one.percent(node, share);
            let (other_share, other_counts) = other.percent(node, share);
            (one_share + other_share) >> u32::from(one_counts & other_counts)
        });
    }
    let columns = *columns;
    Box::new(move |node| {
        let (mut score, mut weights) = (0, 0);
        for (weight, column) in columns.iter().flatten() {
            let (percent, counts) = column.percent(node, share);
            score += percent * *weight as i32;
            weights += i32::from(counts) * *weight as i32;
        }
        score / weights.max(1)
    })
}

/// The share in percent, and whether the node has the resource at all.
#[inline(always)]
fn percent(allocatable: f64, taken: f64, share: Share) -> (i32, bool) {
    let has_any = allocatable > 0.0;
    let hundredfold = part(allocatable, taken, share) * PERCENT;
    (whole(hundredfold / if has_any { allocatable } else { 1.0 }), has_any)
}

/// The part of a resource that counts.
#[inline(always)]
fn part(allocatable: f64, taken: f64, share: Share) -> f64 {
    match share {
        Share::Free => at_least_0(allocatable - taken),
        Share::Taken => at_most(taken, allocatable),
    }
}

/// How even the use of two resources is with the pod, compared with how even it is without.
pub(super) fn score_by_balance(one: AskedColumn<'_>, other: AskedColumn<'_>, scores: &mut [i32]) {
    dispatch(scores.len(), Balance { one, other, scores });
}

struct Balance<'a> {
    one: AskedColumn<'a>,
    other: AskedColumn<'a>,
    scores: &'a mut [i32],
}

impl NullaryFnOnce for Balance<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Balance { one, other, scores } = self;
        let (one_has, one_taken) = one.rows(scores.len());
        let (other_has, other_taken) = other.rows(scores.len());
        let (one_share, other_share) = (&one.shares()[..scores.len()], &other.shares()[..scores.len()]);
        for (row, score) in scores.iter_mut().enumerate() {
            *score = balance(
                [one_has[row], other_has[row]],
                [one_taken[row] + one.asked, other_taken[row] + other.asked],
                [one_share[row], other_share[row]],
            );
        }
    }
}

/// The same for one node.
pub(super) fn balance_score(one: AskedNumber, other: AskedNumber) -> RowScore {
    Box::new(move |node| {
        let share = |column: AskedNumber| node.get(column.resource, Amount::RequestedShare);
        balance(
            [one.has(node), other.has(node)],
            [one.taken(node), other.taken(node)],
            [share(one), share(other)],
        )
    })
}

/// The score by what there is of two resources, what is taken with the pod, and the shares that are taken without it.
#[inline(always)]
fn balance(has: [f64; 2], taken: [f64; 2], shares: [f64; 2]) -> i32 {
    const HALF: i32 = MAX_NODE_SCORE as i32 / 2;
    // A node that lacks one of the two has nothing to balance.
    let has_both = (has[0] > 0.0) & (has[1] > 0.0);
    let with_pod = evenness(at_most(taken[0] / has[0], 1.0), at_most(taken[1] / has[1], 1.0), has_both);
    let without_pod = evenness(shares[0], shares[1], has_both);
    HALF + (HALF + with_pod - without_pod) / 2
}

#[inline(always)]
fn evenness(one_share: f64, other_share: f64, has_both: bool) -> i32 {
    let deviation = ((one_share - other_share) / 2.0).abs();
    whole((1.0 - if has_both { deviation } else { 0.0 }) * PERCENT)
}

/// From this number on, floating point numbers are one apart.
const ONE_APART: f64 = (1_u64 << 52) as f64;

/// The whole part of a number that is neither negative nor large. The conversion that the language has takes care of
/// numbers of all kinds, which keeps the compiler from doing several at a time.
#[inline(always)]
fn whole(number: f64) -> i32 {
    let nearest = nearest(number);
    bits_of(if nearest > number { nearest - 1.0 } else { nearest })
}

/// The whole number next to one that is not large.
#[inline(always)]
fn nearest(number: f64) -> f64 {
    (number + ONE_APART) - ONE_APART
}

/// A whole number that is neither negative nor large.
#[inline(always)]
fn bits_of(whole: f64) -> i32 {
    // Where numbers are one apart, the lowest bits are the whole number.
    (whole + ONE_APART).to_bits() as i32
}

// Unlike the functions of the language, these need not mind numbers that are none.

#[inline(always)]
fn at_least_0(number: f64) -> f64 {
    if number > 0.0 { number } else { 0.0 }
}

#[inline(always)]
fn at_most(number: f64, most: f64) -> f64 {
    if number < most { number } else { most }
}

#[cfg(test)]
mod tests;
