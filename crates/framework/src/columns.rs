//! What filters and scores of resources read of many nodes, as columns of numbers.

use std::ops::Range;

use supercargo_model::NodeRef;

/// Amounts up to this are exact, also a hundred times as large, in the floating point numbers of a column.
pub const EXACT_AMOUNT_MAX: i64 = 90_000_000_000_000;

/// The resources of many nodes. Whoever computes something for all of them finds the numbers side by side.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    resources: [[Vec<f64>; Amount::COUNT]; ColumnResource::COUNT],
    /// One, divided by what the nodes have of each resource; 0 where that is nothing.
    reciprocals: [Vec<f64>; ColumnResource::COUNT],
    free_pods: Vec<f64>,
    /// Whether all numbers of a node are exact.
    exact: Vec<bool>,
    inexact: usize,
}

/// Nodes next to each other in [`Columns`].
#[derive(Clone, Copy, Debug)]
pub struct ColumnView<'a> {
    columns: &'a Columns,
    first: usize,
    len: usize,
}

/// The numbers of one node: what [`Columns`] have in one place.
#[derive(Clone, Copy, Debug, Default)]
// Two lines of the processor's cache, and not parts of three.
#[repr(align(64))]
pub struct NodeNumbers {
    resources: [[f64; Amount::COUNT]; ColumnResource::COUNT],
    free_pods: f64,
    exact: bool,
}

/// A resource that has columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the resources are Kubernetes' own")]
pub enum ColumnResource {
    /// In thousandths.
    MilliCpu,
    Memory,
    EphemeralStorage,
}

/// What a column says about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// What the node has.
    Allocatable,
    /// What its pods take.
    Requested,
    /// What its pods take, with defaults for those that do not say.
    NonZero,
    /// Which part of the node its pods take, at most 1; not a number, where the node has nothing of the resource.
    RequestedShare,
}

impl ColumnResource {
    const COUNT: usize = 3;
}

impl Amount {
    const COUNT: usize = 4;
}

impl<'a> ColumnView<'a> {
    /// Whether all numbers are exact, and none is below zero; other columns are not to be used.
    pub fn are_exact(&self) -> bool {
        self.columns.inexact == 0 || !self.columns.exact[self.first..][..self.len].contains(&false)
    }

    /// Some of these nodes.
    #[must_use]
    pub fn part(&self, nodes: Range<usize>) -> Self {
        ColumnView { columns: self.columns, first: self.first + nodes.start, len: nodes.len() }
    }

    /// One number a node.
    pub fn get(&self, resource: ColumnResource, amount: Amount) -> &'a [f64] {
        &self.columns.resources[resource as usize][amount as usize][self.first..][..self.len]
    }

    /// One, divided by what each node has of a resource, rounded to the nearest number; 0 where a node has nothing. Multiplying takes a
    /// fraction of the time of a division.
    pub fn reciprocals(&self, resource: ColumnResource) -> &'a [f64] {
        &self.columns.reciprocals[resource as usize][self.first..][..self.len]
    }

    /// How many more pods each node takes.
    pub fn free_pods(&self) -> &'a [f64] {
        &self.columns.free_pods[self.first..][..self.len]
    }
}

impl Columns {
    /// Some of the nodes.
    pub fn view(&self, nodes: Range<usize>) -> ColumnView<'_> {
        ColumnView { columns: self, first: nodes.start, len: nodes.len() }
    }

    /// Makes room for so many nodes; new places have none of anything.
    pub fn resize(&mut self, nodes: usize) {
        if nodes == self.exact.len() {
            return;
        }
        for column in self.resources.as_flattened_mut().iter_mut().chain(&mut self.reciprocals) {
            column.resize(nodes, 0.0);
        }
        self.free_pods.resize(nodes, 0.0);
        for dropped in self.exact.drain(nodes.min(self.exact.len())..) {
            self.inexact -= usize::from(!dropped);
        }
        self.exact.resize(nodes, true);
    }

    /// Writes the numbers of a node.
    pub fn set(&mut self, place: usize, node: NodeRef<'_>) {
        let numbers = NodeNumbers::of(node);
        for (columns, amounts) in self.resources.iter_mut().zip(numbers.resources) {
            for (column, amount) in columns.iter_mut().zip(amounts) {
                column[place] = amount;
            }
        }
        for (reciprocals, [has, ..]) in self.reciprocals.iter_mut().zip(numbers.resources) {
            reciprocals[place] = if has > 0.0 { has.recip() } else { 0.0 };
        }
        self.free_pods[place] = numbers.free_pods;
        self.inexact += usize::from(!numbers.exact);
        self.inexact -= usize::from(!self.exact[place]);
        self.exact[place] = numbers.exact;
    }
}

impl NodeNumbers {
    /// The numbers of a node, as it is now.
    pub fn of(node: NodeRef<'_>) -> Self {
        let (has, usage) = (node.allocatable(), node.usage());
        let taken = usage.requested();
        let amounts = [
            [has.milli_cpu, taken.milli_cpu, usage.non_zero_milli_cpu()],
            [has.memory, taken.memory, usage.non_zero_memory()],
            [has.ephemeral_storage, taken.ephemeral_storage, taken.ephemeral_storage],
        ];
        let is_exact = |amount: &i64| amount.cast_unsigned() <= EXACT_AMOUNT_MAX.cast_unsigned();
        let exact = amounts.as_flattened().iter().fold(true, |exact, amount| exact & is_exact(amount))
            && node.allowed_pods().unsigned_abs() <= EXACT_AMOUNT_MAX.unsigned_abs();
        let resources = amounts.map(|[allocatable, requested, non_zero]| {
            let (has, taken) = (allocatable as f64, requested as f64);
            [has, taken, non_zero as f64, (taken / has).min(1.0)]
        });
        let free_pods = node.allowed_pods().saturating_sub(node.pods().len() as i64) as f64;
        NodeNumbers { resources, free_pods, exact }
    }

    /// Whether all numbers are exact, and none is below zero; others are not to be used.
    pub fn are_exact(&self) -> bool {
        self.exact
    }

    /// What the node has of a resource, or what is taken of it.
    pub fn get(&self, resource: ColumnResource, amount: Amount) -> f64 {
        self.resources[resource as usize][amount as usize]
    }

    /// How many more pods the node takes.
    pub fn free_pods(&self) -> f64 {
        self.free_pods
    }
}
