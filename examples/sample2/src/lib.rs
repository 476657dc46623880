//! The plugin `sample2`: pods go only onto nodes with the label `cpu=true`.

use supercargo_sdk::prelude::*;

/// Refuses nodes without the label `cpu=true`, each by its name.
#[derive(Debug)]
pub struct Sample2;

impl Plugin for Sample2 {
    const NAME: &'static str = "sample2";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Sample2
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter().pre_score().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().node(&[NodeField::Labels, NodeField::Name])
    }
}

impl Filter for Sample2 {
    fn filter(&self, _: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        match node.label("cpu") {
            Some("true") => Status::success(),
            _ => Status::unschedulable(format!("Node: {}", node.name())),
        }
    }
}

/// The tutorial prints the feasible nodes here. A plugin does no I/O: `explain` shows them instead.
impl PreScore for Sample2 {
    fn pre_score(&self, _: &mut Cycle<'_>, _: &[Row]) -> Status {
        Status::success()
    }
}

/// A pod that was refused is tried again when a node comes with the label, or gets it.
impl Enqueue for Sample2 {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_LABEL))]
    }

    fn hint(&self, _: &Context<'_>, _: &Pod, change: &Change<'_>) -> Hint {
        let Change::Node { new: Some(node), .. } = change else { return Hint::Skip };
        Hint::queue_if(node.label("cpu") == Some("true"))
    }
}
