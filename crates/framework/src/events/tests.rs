use std::sync::Arc;

use supercargo_model::kinds::{DeviceClass, Service};
use supercargo_model::{Kind, PodWords, Snapshot, Timestamp};

use super::*;
use crate::memory::Memories;

#[test]
fn which_registered_events_cover_which_incoming_ones() {
    let any = |actions| ClusterEvent { resource: EventResource::Any, actions };
    let (pod, node) = (ClusterEvent::pod, ClusterEvent::node);
    let label_or_toleration = Actions::UPDATE_POD_LABEL.or(Actions::UPDATE_POD_TOLERATION);
    for (what, registered, incoming, covers) in [
        ("the same", pod(Actions::ADD), pod(Actions::ADD), true),
        ("another resource", pod(Actions::ADD), node(Actions::ADD), false),
        ("another action", pod(Actions::ADD), pod(Actions::DELETE), false),
        ("one of several", pod(label_or_toleration), pod(Actions::UPDATE_POD_LABEL), true),
        ("a general update", pod(Actions::UPDATE), pod(Actions::UPDATE), true),
        ("a particular update", pod(Actions::UPDATE), pod(Actions::UPDATE_POD_LABEL), true),
        (
            "a general update is no particular one",
            pod(Actions::UPDATE_POD_LABEL),
            pod(Actions::UPDATE),
            false,
        ),
        ("everything", any(Actions::ALL), node(Actions::DELETE), true),
        ("everything of one kind", pod(Actions::ALL), pod(Actions::UPDATE), true),
        ("additions of anything", any(Actions::ADD), node(Actions::ADD), true),
        ("additions of anything", any(Actions::ADD), node(Actions::DELETE), false),
        ("anything happens", any(Actions::ALL), any(Actions::ALL), true),
        ("anything happens", node(Actions::ALL), any(Actions::ALL), false),
        (
            "another kind",
            ClusterEvent::kind(Service::ID, Actions::ADD),
            ClusterEvent::kind(DeviceClass::ID, Actions::ADD),
            false,
        ),
    ] {
        assert_eq!(registered.covers(&incoming), covers, "{what}: {registered:?} {incoming:?}");
    }
}

/// Reacts to what it is told to, and helps or not.
struct Reacts(Vec<ClusterEvent>, Hint);

impl Enqueue for Reacts {
    fn events(&self) -> Vec<ClusterEvent> {
        self.0.clone()
    }

    fn hint(&self, _: &Context<'_>, _: &Pod, _: &Change<'_>) -> Hint {
        self.1
    }
}

#[test]
fn a_plugin_is_asked_about_its_events_only() {
    let add = ClusterEvent::node(Actions::ADD);
    let taint = ClusterEvent::node(Actions::UPDATE_NODE_TAINT);
    let both = ClusterEvent::node(Actions::ADD.or(Actions::UPDATE_NODE_TAINT));
    let label = ClusterEvent::node(Actions::UPDATE_NODE_LABEL);
    let memories = Memories::default();
    let context = Context {
        cluster: &Snapshot::default(),
        now: Timestamp::from_seconds(0),
        memories: &memories,
        seed: 0,
        fixes: crate::Fixes::default(),
    };
    let pod = Arc::new(supercargo_model::Interner::default().pod(PodWords::default()));
    let change = Change::Node { old: None, new: None };
    for (what, registered, hint, event, expected) in [
        ("it says", add, Hint::Queue, add, Hint::Queue),
        ("it says", add, Hint::Skip, add, Hint::Skip),
        ("it did not ask for it", add, Hint::Queue, label, Hint::Skip),
        ("taints count for who waits for nodes", add, Hint::Skip, taint, Hint::Queue),
        ("unless it asked for them", both, Hint::Skip, taint, Hint::Skip),
        ("or does not wait for nodes", label, Hint::Queue, taint, Hint::Skip),
    ] {
        let plugin = Reacts(vec![registered], hint);
        assert_eq!(Hint::on(&plugin, &context, &pod, event, &change), expected, "{what}");
    }
}
