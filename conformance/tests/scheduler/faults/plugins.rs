//! Plugins that make pods stop at every step on their way to a node.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use supercargo_framework::{
    Actions, Acts, Change, ClusterEvent, Context, Cycle, Effect, Enqueue, Extensions, Memory, News, NoArgs,
    Observe, Permit, PermitDecision, Plugin, PostBind, PreBind, PreEnqueue, Reads, Registry, Reserve,
    SharedMap, Status, Step, Verb, Write, Writes,
};
use supercargo_model::{KindId, LabelLookup, NodeRef, ObjectKey, Pod};

/// Pods with this label wait at Permit for another such pod.
pub(super) const GANG: &str = "gang";
/// Pods with this label have something written before they are bound.
pub(super) const PREPARED: &str = "prepared";
/// How long a pod waits at Permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the write of [`Prepares`] may take.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(15);

/// Pods with this label are held back, and say so.
pub(super) const HELD: &str = "held";

/// Pods with this label wait before they are bound until other pods come or go.
pub(super) const AWAITS: &str = "awaits";
/// How long [`Awaits`] has a pod wait.
const AWAIT_TIMEOUT: Duration = Duration::from_secs(25);

const CONFIG_MAPS: KindId = KindId { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };

/// Lets pods go to their nodes two at a time.
struct Pairs;

#[derive(Clone, Default, Deserialize, Serialize)]
struct Reserved(BTreeSet<Arc<str>>);

impl Memory for Reserved {
    const NAME: &'static str = "Pairs";
}

impl Plugin for Pairs {
    const NAME: &'static str = "Pairs";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Pairs
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.reserve().permit().post_bind().remembers::<Reserved>()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.labels.label(GANG).is_some()
    }
}

impl Reserve for Pairs {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        acts.memory::<Reserved>().0.insert(cycle.pod.uid.clone());
        Status::success()
    }

    fn unreserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.memory::<Reserved>().0.remove(&cycle.pod.uid);
    }
}

impl Permit for Pairs {
    fn permit(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> PermitDecision {
        let reserved = acts.memory::<Reserved>().0.clone();
        if reserved.len() < 2 {
            return PermitDecision::wait_until(cycle.context.now.after(PERMIT_TIMEOUT));
        }
        for other in reserved.iter().filter(|uid| **uid != cycle.pod.uid) {
            acts.allow(other);
        }
        PermitDecision::Allow
    }
}

impl PostBind for Pairs {
    fn post_bind(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.memory::<Reserved>().0.remove(&cycle.pod.uid);
    }
}

/// Writes something before a pod is bound.
struct Prepares;

impl Plugin for Prepares {
    const NAME: &'static str = "Prepares";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Prepares
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_bind()
    }

    fn writes(&self) -> Writes {
        Writes::nothing().write(Write { kind: CONFIG_MAPS, subresource: None, verb: Verb::Patch })
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.labels.label(PREPARED).is_some()
    }
}

impl PreBind for Prepares {
    fn pre_bind(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        let key = ObjectKey { namespace: "default".into(), name: (*cycle.pod.name).into() };
        let patch = Effect::Patch {
            kind: CONFIG_MAPS,
            key,
            subresource: None,
            patch: json!({"data": {"ready": "yes"}}),
        };
        Step::Wait {
            effects: vec![patch],
            events: Vec::new(),
            deadline: Some(cycle.context.now.after(PREPARE_TIMEOUT)),
        }
    }
}

/// When other pods come or go, fails pods that wait, lets them go, or has them wait on. A pod that fails is one that goes for the others.
struct Awaits;

impl Plugin for Awaits {
    const NAME: &'static str = "Awaits";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Awaits
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_bind().enqueue()
    }

    fn concerns(&self, pod: &Pod) -> bool {
        pod.labels.label(AWAITS).is_some()
    }
}

impl Awaits {
    fn wait(cycle: &Cycle<'_>) -> Step {
        let own = ObjectKey { namespace: "default".into(), name: (*cycle.pod.name).into() };
        let events = vec![
            ClusterEvent::pod(Actions::ADD.or(Actions::DELETE)).into(),
            ClusterEvent::pod(Actions::ALL).of(own),
        ];
        let deadline = Some(cycle.context.now.after(AWAIT_TIMEOUT));
        Step::Wait { effects: Vec::new(), events, deadline }
    }
}

impl PreBind for Awaits {
    fn pre_bind(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>) -> Step {
        Self::wait(cycle)
    }

    fn resume(&self, cycle: &mut Cycle<'_>, _: NodeRef<'_>, news: &News<'_>) -> Step {
        match (news, cycle.cluster().version() % 4) {
            (News::Changed(_), 0) => Step::Done(Status::error("not this one")),
            (News::Changed(_), 1 | 2) => Step::Done(Status::success()),
            (News::Changed(_), _) => Self::wait(cycle),
            // It may be rejected after what would have helped it.
            _ if cycle.context.seed.is_multiple_of(3) => Step::Done(Status::unschedulable("nothing came")),
            _ => Step::Done(Status::success()),
        }
    }
}

impl Enqueue for Awaits {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::DELETE)]
    }
}

/// Holds pods back.
struct Holds;

impl Plugin for Holds {
    const NAME: &'static str = "Holds";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Holds
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.pre_enqueue().enqueue()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl PreEnqueue for Holds {
    fn pre_enqueue(&self, _: &Context<'_>, pod: &Pod) -> Status {
        match pod.labels.label(HELD) {
            Some(_) => Status::unresolvable("it is held back"),
            None => Status::success(),
        }
    }

    fn is_told(&self) -> bool {
        true
    }
}

impl Enqueue for Holds {
    fn events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }
}

/// Panics at Reserve in one attempt of three for every fifth pod, after it has changed what it remembers.
struct Panics;

/// How many attempts came to their end at Reserve, and how many began.
#[derive(Clone, Default, Deserialize, Serialize)]
struct Attempts {
    begun: u64,
    ended: u64,
}

impl Memory for Attempts {
    const NAME: &'static str = "Panics";
}

impl Plugin for Panics {
    const NAME: &'static str = "Panics";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Panics
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.reserve().remembers::<Attempts>()
    }
}

impl Reserve for Panics {
    fn reserve(&self, cycle: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) -> Status {
        let attempts = acts.memory::<Attempts>();
        assert_eq!(attempts.begun, attempts.ended, "what a panic left half done is undone");
        attempts.begun += 1;
        if cycle.pod.name.ends_with(['0', '5']) && cycle.context.seed.is_multiple_of(3) {
            acts.activate(&cycle.pod.uid);
            panic!("{PANIC}");
        }
        acts.memory::<Attempts>().ended += 1;
        Status::success()
    }

    fn unreserve(&self, _: &mut Cycle<'_>, _: &mut Acts<'_>, _: NodeRef<'_>) {}
}

/// What [`Panics`] says.
pub(super) const PANIC: &str = "this plugin panics now and then";

/// Keeps books of all pods, by what it is told.
struct PodBooks;

/// The node of every pod that there is, by UID; empty for pods without a node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct KnownPods(pub(super) SharedMap<Arc<str>, Arc<str>>);

impl Memory for KnownPods {
    const NAME: &'static str = "PodBooks";
}

impl Plugin for PodBooks {
    const NAME: &'static str = "PodBooks";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        PodBooks
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.observe().remembers::<KnownPods>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl Observe for PodBooks {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::ALL)]
    }

    fn observed(&self, _: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        let known = &mut acts.memory::<KnownPods>().0;
        let Change::Pod { old, new } = change else { return };
        let was_known = old.map(|pod| known.contains_key(&pod.uid));
        assert_ne!(was_known, Some(false), "what changes or goes has come: {change:?}");
        match (old, new) {
            (_, Some(pod)) => _ = known.insert(pod.uid.clone(), pod.node_name.clone().unwrap_or_default()),
            (Some(pod), None) => _ = known.remove(&pod.uid),
            (None, None) => {}
        }
    }
}

pub(super) fn registry() -> Registry {
    let mut registry = supercargo_plugins::registry();
    registry.register::<Pairs>().expect("the name is free");
    registry.register::<Prepares>().expect("the name is free");
    registry.register::<Awaits>().expect("the name is free");
    registry.register::<Holds>().expect("the name is free");
    registry.register::<Panics>().expect("the name is free");
    registry.register::<PodBooks>().expect("the name is free");
    registry
}
