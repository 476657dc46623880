//! What is odd about topologies, told by an event on each: otherwise pods would stay pending, or go anywhere, and nobody would know why.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Acts, Context, Effect, Memory, Notice, SharedMap, Subject};
use supercargo_model::{Kind, ObjectKey, Timestamp};

use super::NodeResourceTopologyMatch;
use super::args::{CacheMode, Strategy};
use super::topology::{NodeResourceTopology, Policy, Zone};

/// What people should know who wonder about a zone.
pub(super) const ZONES_THAT_COUNT: &str = "NUMA zones are of type Node and named node-0, node-1 and so on";
/// What is odd for shorter is not told: a node may come after its topology, and goes before it.
const PAUSE: Duration = Duration::from_secs(30);
/// So many topologies are told of. Where all of a cluster are odd, a few say as much.
const TOLD_MAX: usize = 100;
/// Who tells.
const REPORTER: &str = "NodeResourceTopologyMatch";

/// What is odd about topologies, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct OddTopologies {
    /// Those that are to be looked at, and since when.
    doubted: SharedMap<String, Timestamp>,
    /// What was told, with the UID of the object.
    told: SharedMap<String, String>,
}

impl Memory for OddTopologies {
    const NAME: &'static str = "NodeResourceTopologyMatch/Odd";
}

impl NodeResourceTopologyMatch {
    /// Looks at all topologies. A replica that begins to lead has told nobody.
    pub(super) fn look_for_odd_ones(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        *acts.memory::<OddTopologies>() = OddTopologies::default();
        for (key, _) in context.cluster.objects().all::<NodeResourceTopology>() {
            self.doubt(context, &key.name, acts);
        }
    }

    /// A topology, or its node, has come, changed or gone.
    pub(super) fn doubt(&self, context: &Context<'_>, name: &str, acts: &mut Acts<'_>) {
        let name = name.to_owned();
        let was_told = acts.recall::<OddTopologies>().is_some_and(|odd| odd.told.contains_key(&name));
        if !was_told && self.faults(context, &name).is_empty() {
            return;
        }
        let doubted = &mut acts.memory::<OddTopologies>().doubted;
        if !doubted.contains_key(&name) {
            doubted.insert(name, context.now);
        }
        self.wake_for_odd_ones(context, acts);
    }

    /// Tells of those that have been odd for long enough.
    pub(super) fn tell_of_odd_ones(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        let Some(odd) = acts.recall::<OddTopologies>().filter(|odd| !odd.doubted.is_empty()) else { return };
        // The clock may have been set back.
        let is_due = |since: Timestamp| since > context.now || context.now.since(since) >= PAUSE;
        let due = odd.doubted.iter().filter(|(_, since)| is_due(**since));
        for name in due.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.tell_of(context, &name, acts);
            acts.memory::<OddTopologies>().doubted.remove(&name);
        }
        if acts.recall::<OddTopologies>().is_some_and(|odd| !odd.doubted.is_empty()) {
            self.wake_for_odd_ones(context, acts);
        }
    }

    /// Whoever looks at topologies every few seconds sees to these then.
    fn wake_for_odd_ones(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        if !matches!(self.cache, CacheMode::OverReserve(_)) {
            acts.wake_by(context.now.after(PAUSE));
        }
    }

    fn tell_of(&self, context: &Context<'_>, name: &String, acts: &mut Acts<'_>) {
        let topology = context.cluster.objects().get::<NodeResourceTopology>("", name);
        let uid = topology.map_or("", |topology| &topology.uid);
        let faults = self.faults(context, name);
        let told = &mut acts.memory::<OddTopologies>().told;
        if faults.is_empty() {
            told.remove(name);
            return;
        }
        let notes: Vec<&str> = faults.iter().map(|(_, note)| &**note).collect();
        let said = format!("{uid}\n{}", notes.join("\n"));
        if told.get(name) == Some(&said) || (told.len() >= TOLD_MAX && !told.contains_key(name)) {
            return;
        }
        told.insert(name.clone(), said);
        for (reason, note) in faults {
            let key = ObjectKey { namespace: "".into(), name: name.as_str().into() };
            acts.order(Effect::Record(Notice {
                about: Subject::Object { kind: NodeResourceTopology::ID, key, uid: Arc::from(uid) },
                reporter: Arc::from(REPORTER),
                is_warning: true,
                reason: reason.into(),
                action: "Reading".into(),
                note,
                related: None,
            }));
        }
    }

    /// What is odd about a topology, if there is one, each in a word and in a sentence.
    fn faults(&self, context: &Context<'_>, name: &str) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let Some(topology) = context.cluster.objects().get::<NodeResourceTopology>("", name) else {
            return faults;
        };
        if context.cluster.row_of(name).is_none() {
            let note = format!(
                "there is no node {name}: a NodeResourceTopology says what is left on the node of its name"
            );
            faults.push(("NodeNotFound", note));
        }
        if topology.zones.is_empty() {
            let what_follows = match topology.manager.policy {
                Policy::SingleNumaNode => {
                    "no pod fits on the node that must have its resources from one zone"
                }
                _ => "the node gets no points for its zones",
            };
            faults.push((
                "NoNumaZone",
                format!("none of its zones counts, so that {what_follows}: {ZONES_THAT_COUNT}"),
            ));
        }
        let knows_costs = topology.zones.iter().any(Zone::has_costs);
        if self.args.strategy() == Strategy::LeastNumaNodes && topology.zones.len() > 1 && !knows_costs {
            let note = "its zones have no costs: LeastNUMANodes takes all of them to be as far from each other as can be";
            faults.push(("UnknownCosts", note.to_owned()));
        }
        faults
    }
}
