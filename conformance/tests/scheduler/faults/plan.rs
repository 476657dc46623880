//! What happens in a run, drawn from its seed as data: any part of a plan can be left out, and the rest stays the same.

/// Numbers that look random, the same ones each time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }
}

/// Something that happens, with chance of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) act: Act,
    pub(super) draw: Draw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A node comes.
    AddNode,
    /// A pod is created.
    AddPod,
    /// Another scheduler binds a pod.
    ForeignBind,
    /// Somebody deletes a pod.
    DeletePod,
    /// A pod is deleted and created again under its name.
    RecreatePod,
    /// A node goes, with its pods or without.
    RemoveNode,
    /// A node goes and comes back smaller.
    ShrinkNode,
    /// Kubelets end the pods that are on their way out.
    EndPods,
    /// The watches tell some of what happened.
    Watch,
    /// The scheduler tries some pods, and its orders are taken.
    Schedule,
    /// An order is carried out, or not.
    Carry,
    /// The same with an order about what a pod says, of which there are many.
    Say,
    /// An answer comes in.
    Answer,
    /// A watch begins anew with a list: what it had yet to tell goes untold.
    Relist,
    /// Time passes.
    Pass,
    /// The configuration is replaced.
    Swap,
    /// The replica loses the lease, or gets it back.
    Lead,
    /// The clock is set.
    SetClock,
}

/// How a run is set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// Whether other writers bind pods and change nodes. Without them no node may ever be over.
    pub(super) has_others: bool,
    pub(super) extender: ExtenderSetup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtenderSetup {
    None,
    /// It filters and binds.
    Binds {
        is_ignorable: bool,
    },
}

/// How many things happen in a run.
const STEPS: usize = 240;

/// How often each act happens, among all of them.
const WEIGHTS: [(Act, u64); 18] = [
    (Act::AddNode, 4),
    (Act::AddPod, 16),
    (Act::ForeignBind, 7),
    (Act::DeletePod, 4),
    (Act::RecreatePod, 4),
    (Act::RemoveNode, 2),
    (Act::ShrinkNode, 3),
    (Act::EndPods, 4),
    (Act::Watch, 15),
    (Act::Schedule, 20),
    (Act::Carry, 24),
    (Act::Say, 12),
    (Act::Answer, 26),
    (Act::Relist, 4),
    (Act::Pass, 7),
    (Act::Swap, 2),
    (Act::Lead, 2),
    (Act::SetClock, 2),
];

/// What happens in the run of a seed.
pub(super) fn plan(seed: u64) -> (Setup, Vec<Step>) {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995);
    let setup = Setup {
        has_others: draw.below(2) == 0,
        extender: match draw.below(4) {
            0 => ExtenderSetup::Binds { is_ignorable: false },
            1 => ExtenderSetup::Binds { is_ignorable: true },
            _ => ExtenderSetup::None,
        },
    };
    let total: u64 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let mut step = || {
        let mut left = draw.below(total);
        let found = WEIGHTS.iter().find(|(_, weight)| {
            let is_it = left < *weight;
            left = left.saturating_sub(*weight);
            is_it
        });
        let (act, _) = found.expect("the weights add up");
        Step { act: *act, draw: Draw(draw.below(u64::MAX) ^ draw.below(u64::MAX) << 20) }
    };
    let first = [Act::AddNode, Act::AddNode, Act::AddNode, Act::AddPod, Act::AddPod, Act::AddPod, Act::Watch];
    let mut steps: Vec<Step> = first.map(|act| Step { act, ..step() }).to_vec();
    steps.extend((0..STEPS).map(|_| step()));
    (setup, steps)
}
