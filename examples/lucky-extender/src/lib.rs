//! The plugin `Lucky`: half of the nodes have luck, and which of them is best is luck as well.

use supercargo_sdk::prelude::*;

/// What a node without luck gets to hear.
pub const UNLUCKY: &str = "Well, you're not lucky";

/// The highest score, as extenders count; the engine counts to 100.
const HIGHEST: u64 = 10;
const POINTS: i64 = MAX_NODE_SCORE / HIGHEST as i64;

/// Keeps each node with a probability of a half, and gives those that are left from 0 to 10 points each.
///
/// It declares nothing that it reads, so that every pod is looked at anew: what chance said about one says nothing about the next.
#[derive(Debug)]
pub struct Lucky;

impl Plugin for Lucky {
    const NAME: &'static str = "Lucky";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Lucky
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().score()
    }
}

impl Filter for Lucky {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        if draw(cycle, node, "filter").is_multiple_of(2) {
            Status::success()
        } else {
            Status::unschedulable(UNLUCKY)
        }
    }
}

impl Score for Lucky {
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        Ok((draw(cycle, node, "score") % (HIGHEST + 1)) as i64 * POINTS)
    }
}

/// A number for a node. A plugin draws none itself: it comes from the seed that the engine has drawn for this question, so that the same
/// seed always means the same luck, in tests and when a decision is looked at again.
fn draw(cycle: &Cycle<'_>, node: NodeRef<'_>, purpose: &str) -> u64 {
    let bytes = purpose.bytes().chain(node.name().bytes());
    // FNV-1a, and the last steps of SplitMix64, which spread what differs over all bits.
    let mut mixed = bytes.fold(cycle.context.seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
