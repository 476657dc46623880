//! One attempt to place one pod, as its plugins see it.

use std::sync::Arc;

use supercargo_model::{Kind, NodeRef, Pod, Pods, Snapshot, Timestamp};

use crate::memory::Memories;
use crate::quirks::Fixes;
use crate::typed::TypedMap;

/// What a plugin can look at: nothing else, so that the same question always gets the same answer.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The cluster, as it is for the whole of the attempt.
    pub cluster: &'a Snapshot,
    /// The time, as the driver gives it; plugins read no clock.
    pub now: Timestamp,
    /// What plugins remember from earlier attempts.
    pub memories: &'a Memories,
    /// A number drawn for this attempt: the only chance there is.
    pub seed: u64,
    /// Which upstream mistakes are not repeated.
    pub fixes: Fixes,
}

impl<'a> Context<'a> {
    /// The pods by label and by namespace, and where they stand: waiting, gated, at Permit, bound, finished. Only what the
    /// plugin declares is there: [`Reads::pods_by_label`](crate::Reads::pods_by_label) and its neighbours.
    ///
    /// A pod that is being tried counts as waiting, also while its own plugins are asked about it.
    pub fn pods(&self) -> Pods<'a> {
        self.cluster.pods()
    }
}

/// One attempt to place a pod. Plugins leave what they worked out for their later methods in it, by type.
///
/// A clone shares that state until one side changes it, so trying something out is cheap.
#[derive(Clone, Debug)]
pub struct Cycle<'a> {
    /// The pod to be placed.
    pub pod: &'a Arc<Pod>,
    /// What there is to look at.
    pub context: Context<'a>,
    state: TypedMap,
}

/// What plugins left in a cycle, kept while the pod waits for something.
#[derive(Clone, Debug, Default)]
pub struct CycleState(TypedMap);

impl<'a> Cycle<'a> {
    /// Goes on with a cycle after a wait, on the cluster as it is by then.
    pub fn resume(pod: &'a Arc<Pod>, context: Context<'a>, state: CycleState) -> Self {
        Cycle { pod, context, state: state.0 }
    }

    /// What plugins left in the cycle, to go on with later.
    pub fn into_state(self) -> CycleState {
        CycleState(self.state)
    }

    /// A new attempt.
    pub fn new(pod: &'a Arc<Pod>, context: Context<'a>) -> Self {
        Cycle { pod, context, state: TypedMap::default() }
    }

    /// The cluster, as it is for the whole of the attempt.
    pub fn cluster(&self) -> &'a Snapshot {
        self.context.cluster
    }

    /// The object of kind `K` that is named like the node; see [`Reads::of_node`](crate::Reads::of_node).
    pub fn object_of<K: Kind>(&self, node: NodeRef<'_>) -> Option<&'a K> {
        self.context.cluster.object_of(node.row())
    }

    /// Leaves a value for later in the cycle, in place of an earlier one of its type.
    pub fn put<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.state.put(value);
    }

    /// The value of that type that was left earlier in the cycle.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        self.state.get()
    }

    /// The same, to change it. Other clones of the cycle do not see the change.
    pub fn get_mut<T: Clone + Send + Sync + 'static>(&mut self) -> Option<&mut T> {
        self.state.get_mut()
    }
}
