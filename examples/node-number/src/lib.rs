//! The plugin `NodeNumber`: a pod prefers the node whose name ends with the same digit as its own, and goes there after as many seconds.

use supercargo_sdk::prelude::*;

/// What a node with the pod's digit gets.
const SAME_NUMBER: i64 = 10;
/// What pods without a digit have in common: no digit is as high.
const NO_NUMBER: u64 = 10;

/// Prefers nodes whose names end with the same digit as the pod's.
#[derive(Debug)]
pub struct NodeNumber;

/// The last digit of the pod's name, from PreScore to Score.
#[derive(Clone, Copy, Debug)]
struct PodNumber(u32);

impl Plugin for NodeNumber {
    const NAME: &'static str = "NodeNumber";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        NodeNumber
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_score().score().permit().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Name]).node(&[NodeField::Name]).alike()
    }

    /// Pods of one number are alike, however else they are called: else each would be looked at anew.
    fn alike(&self, pod: &Pod) -> u64 {
        last_digit(&pod.name).map_or(NO_NUMBER, u64::from)
    }
}

impl PreScore for NodeNumber {
    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Row]) -> Status {
        if let Some(number) = last_digit(&cycle.pod.name) {
            cycle.put(PodNumber(number));
        }
        Status::success()
    }
}

impl Score for NodeNumber {
    /// A pod without a number, or a node without one: 0.
    fn score(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Result<i64, Status> {
        let wanted = cycle.get::<PodNumber>().map(|number| number.0);
        let is_same = wanted.is_some() && wanted == last_digit(node.name());
        Ok(if is_same { SAME_NUMBER } else { 0 })
    }

    fn normalization(&self) -> Normalization {
        Normalization::None
    }
}

impl Permit for NodeNumber {
    /// A pod waits for as many seconds as its node's number.
    fn permit(&self, cycle: &mut Cycle<'_>, _: &mut Acts<'_>, node: NodeRef<'_>) -> PermitDecision {
        match last_digit(node.name()) {
            None | Some(0) => PermitDecision::Allow,
            Some(seconds) => {
                let delay = Duration::from_secs(seconds.into());
                PermitDecision::wait_until(cycle.context.now.after(delay))
            }
        }
    }

    /// Its time is over, which is all that it waited for.
    fn reconsider(
        &self,
        _: &mut Cycle<'_>,
        _: &mut Acts<'_>,
        _: NodeRef<'_>,
        _: &News<'_>,
    ) -> Option<PermitDecision> {
        Some(PermitDecision::Allow)
    }
}

impl Enqueue for NodeNumber {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::node(Actions::ADD)]
    }
}

fn last_digit(name: &str) -> Option<u32> {
    name.chars().next_back()?.to_digit(10)
}
