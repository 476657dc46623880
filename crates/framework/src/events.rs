//! What happens in the cluster, and which of it may help a pod that did not fit.

use supercargo_model::{KindId, NodeRef, Object, ObjectKey, Pod};

use crate::cycle::Context;

/// Something that can happen in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterEvent {
    /// What it happens to.
    pub resource: EventResource,
    /// What happens to it: any of these.
    pub actions: Actions,
}

/// Something that a step waits for: an event, whatever it happens to, or only if it happens to one object.
///
/// A step that names the object is not resumed for any other: thousands of pods may wait at once, each for objects of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The event.
    pub event: ClusterEvent,
    /// The object that it happens to, a pod or a node included; none if any will do.
    pub object: Option<ObjectKey>,
}

/// What an event happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventResource {
    /// Anything.
    Any,
    /// A pod, pending or bound.
    Pod,
    /// A node.
    Node,
    /// An object of another kind.
    Kind(KindId),
}

/// A set of things that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions(u32);

/// What changed, with the states before and after; one of them is missing when something came or went.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A pod changed.
    Pod {
        /// The pod as it was; none if it came.
        old: Option<&'a Pod>,
        /// The pod as it is now; none if it went.
        new: Option<&'a Pod>,
    },
    /// A node changed.
    Node {
        /// The node as it was; none if it came.
        old: Option<NodeRef<'a>>,
        /// The node as it is now; none if it went.
        new: Option<NodeRef<'a>>,
    },
    /// An object of another kind changed.
    Object {
        /// The object as it was; none if it came.
        old: Option<&'a Object>,
        /// The object as it is now; none if it went.
        new: Option<&'a Object>,
    },
}

/// Whether a change may help a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// It may: try the pod again.
    Queue,
    /// It cannot: let the pod wait on.
    Skip,
}

/// Whether a plugin is to hear of an event, whatever the change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// It did not register for it.
    Deaf,
    /// It is asked for a hint.
    Asked,
    /// Its pods are tried again without a hint.
    Woken,
}

impl Hearing {
    /// Of this plugin.
    pub fn of(plugin: &dyn Enqueue, event: ClusterEvent) -> Self {
        let registered = plugin.events();
        let covers = |event: &ClusterEvent| registered.iter().any(|registered| registered.covers(event));
        let taint = ClusterEvent::node(Actions::UPDATE_NODE_TAINT);
        if covers(&event) {
            Hearing::Asked
        } else if event == taint && covers(&ClusterEvent::node(Actions::ADD)) {
            Hearing::Woken
        } else {
            Hearing::Deaf
        }
    }
}

/// The events that may help a pod which the plugin rejected.
///
/// A plugin without this is taken to react to everything.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which events it reacts to",
    note = "implement `Enqueue`, or leave `.enqueue()` out of its extensions: then every event counts"
)]
pub trait Enqueue: Send + Sync {
    /// The events.
    fn events(&self) -> Vec<ClusterEvent>;

    /// Whether this change, one of [`Enqueue::events`], may help `pod`.
    fn hint(&self, context: &Context<'_>, pod: &Pod, change: &Change<'_>) -> Hint {
        let _ = (context, pod, change);
        Hint::Queue
    }

    /// The label by which `pod` waits together with others, if it does: with all of its namespace that have the same value, as
    /// [`Pods::by_label_in`](supercargo_model::Pods::by_label_in) has them. The plugin declares that it reads pods by that label.
    fn waits_by_label(&self, pod: &Pod) -> Option<&'static str> {
        let _ = pod;
        None
    }

    /// Whether no event helps any of those that wait together with `pod` because of this plugin alone, until one of all pods with that
    /// label comes, changes, stands elsewhere or goes, or an object of their namespace that has the label's value as its name.
    ///
    /// So long, none of these pods is asked for a hint: there may be many thousands of them, and much may happen meanwhile.
    fn is_in_vain(&self, context: &Context<'_>, pod: &Pod) -> bool {
        let _ = (context, pod);
        false
    }
}

impl ClusterEvent {
    /// Something happens to a pod.
    pub const fn pod(actions: Actions) -> Self {
        ClusterEvent { resource: EventResource::Pod, actions }
    }

    /// Something happens to a node.
    pub const fn node(actions: Actions) -> Self {
        ClusterEvent { resource: EventResource::Node, actions }
    }

    /// Something happens to an object of another kind.
    pub const fn kind(kind: KindId, actions: Actions) -> Self {
        ClusterEvent { resource: EventResource::Kind(kind), actions }
    }

    /// The same, if it happens to the object of that name.
    pub fn of(self, object: ObjectKey) -> Awaited {
        Awaited { event: self, object: Some(object) }
    }

    /// Whether a plugin that registered this event is to hear of `incoming`.
    ///
    /// As upstream, an incoming event with a higher action than any registered one does not count, even if they share
    /// others: a pod update of no particular kind is no label update.
    pub fn covers(&self, incoming: &ClusterEvent) -> bool {
        let everything = self.resource == EventResource::Any && self.actions == Actions::ALL;
        let resource = self.resource == EventResource::Any || self.resource == incoming.resource;
        let actions = self.actions.0 & incoming.actions.0 != 0 && incoming.actions.0 <= self.actions.0;
        everything || (resource && actions)
    }
}

impl Awaited {
    /// Whether a step that waits for this is to hear of something that happened to the object of that name.
    pub fn covers(&self, incoming: &ClusterEvent, object: &ObjectKey) -> bool {
        self.event.covers(incoming) && self.object.as_ref().is_none_or(|known| known == object)
    }
}

impl From<ClusterEvent> for Awaited {
    fn from(event: ClusterEvent) -> Self {
        Awaited { event, object: None }
    }
}

impl Actions {
    /// Something came into the cluster.
    pub const ADD: Self = Actions(1 << 0);
    /// Something went from the cluster.
    pub const DELETE: Self = Actions(1 << 1);
    /// A node's allocatable resources changed.
    pub const UPDATE_NODE_ALLOCATABLE: Self = Actions(1 << 2);
    /// A node's labels changed.
    pub const UPDATE_NODE_LABEL: Self = Actions(1 << 3);
    /// A node's taints changed, or it became schedulable.
    pub const UPDATE_NODE_TAINT: Self = Actions(1 << 4);
    /// A node's conditions changed.
    pub const UPDATE_NODE_CONDITION: Self = Actions(1 << 5);
    /// A node's annotations changed.
    pub const UPDATE_NODE_ANNOTATION: Self = Actions(1 << 6);
    /// A node's declared features changed.
    pub const UPDATE_NODE_DECLARED_FEATURE: Self = Actions(1 << 7);
    /// A pod's labels changed.
    pub const UPDATE_POD_LABEL: Self = Actions(1 << 8);
    /// A pod asks for less than before.
    pub const UPDATE_POD_SCALE_DOWN: Self = Actions(1 << 9);
    /// A pod's tolerations changed.
    pub const UPDATE_POD_TOLERATION: Self = Actions(1 << 10);
    /// A pod's last scheduling gate was removed.
    pub const UPDATE_POD_GATES_ELIMINATED: Self = Actions(1 << 11);
    /// The claims that were generated for a pod changed.
    pub const UPDATE_POD_GENERATED_CLAIM: Self = Actions(1 << 12);
    /// Any change of something that stays.
    pub const UPDATE: Self = Actions(Self::ALL.0 & !(Self::ADD.0 | Self::DELETE.0));
    /// Everything.
    pub const ALL: Self = Actions((1 << 13) - 1);

    /// What upstream calls it; nothing if several things happened of which it knows no common name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::ADD => "Add",
            Self::DELETE => "Delete",
            Self::UPDATE_NODE_ALLOCATABLE => "UpdateNodeAllocatable",
            Self::UPDATE_NODE_LABEL => "UpdateNodeLabel",
            Self::UPDATE_NODE_TAINT => "UpdateNodeTaint",
            Self::UPDATE_NODE_CONDITION => "UpdateNodeCondition",
            Self::UPDATE_NODE_ANNOTATION => "UpdateNodeAnnotation",
            Self::UPDATE_NODE_DECLARED_FEATURE => "UpdateNodeDeclaredFeature",
            Self::UPDATE_POD_LABEL => "UpdatePodLabel",
            Self::UPDATE_POD_SCALE_DOWN => "UpdatePodScaleDown",
            Self::UPDATE_POD_TOLERATION => "UpdatePodToleration",
            Self::UPDATE_POD_GATES_ELIMINATED => "UpdatePodSchedulingGatesEliminated",
            Self::UPDATE_POD_GENERATED_CLAIM => "UpdatePodGeneratedResourceClaim",
            Self::UPDATE => "Update",
            Self::ALL => "All",
            _ => "",
        }
    }

    /// The actions of both sets.
    pub const fn or(self, other: Self) -> Self {
        Actions(self.0 | other.0)
    }
}

impl Hint {
    /// What a plugin makes of an event: [`Hint::Skip`] if it did not register for it, else what it hints.
    ///
    /// As upstream, a plugin that waits for new nodes but not for changes of taints is woken by those all the same: a
    /// node may be new to the pod because it was tainted until now.
    pub fn on(
        plugin: &dyn Enqueue,
        context: &Context<'_>,
        pod: &Pod,
        event: ClusterEvent,
        change: &Change<'_>,
    ) -> Self {
        match Hearing::of(plugin, event) {
            Hearing::Asked => plugin.hint(context, pod, change),
            Hearing::Woken => Hint::Queue,
            Hearing::Deaf => Hint::Skip,
        }
    }

    /// Queue if it helps, skip if it does not.
    pub fn queue_if(helps: bool) -> Self {
        if helps { Hint::Queue } else { Hint::Skip }
    }
}

#[cfg(test)]
mod tests;
