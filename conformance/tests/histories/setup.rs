//! What holds for a whole history, and what happens next in it.

use serde_json::json;
use supercargo_engine::{Rules, Ties};
use supercargo_model::{KindId, ObjectKey};

use crate::chance::Chance;
use crate::profiles::{RANGED, SAMPLED};
use crate::scenery::{self, NODE_CHANGES};
use crate::steps::{Decide, PodChange, Step, Then};
use crate::templates::{APPS, Template, claimed, racked, template};
use crate::world::World;

/// A feature that many pods of a history have, and something that then happens more often than other things.
pub(crate) type Focus = (&'static str, &'static str);

const FOCUSES: [Focus; 27] = [
    ("images", "node images changed"),
    ("priority", "budget put"),
    ("priority", "pod confirmed"),
    ("priority", "pod nominated by somebody else"),
    ("priority", "nomination cleared"),
    ("soft spread", "pod resized"),
    ("preferred node affinity", "pod resize held"),
    ("tolerations", "node cordoned or uncordoned"),
    ("claims", "claim put"),
    ("claims", "volume put"),
    ("claims", "CSI node put"),
    ("claims", "attachment put"),
    ("controller", "service put"),
    ("controller", "controller put"),
    ("required pod anti-affinity", "namespace put"),
    ("preferred pod affinity", "namespace put"),
    ("required pod affinity", "pod relabelled"),
    ("preferred pod anti-affinity", "node relabelled"),
    ("hard spread", "node relabelled"),
    ("soft spread", "node relabelled"),
    ("tolerations", "node retainted"),
    ("declared features", "node features changed"),
    ("host ports", "pod moved"),
    ("soft spread", LOAD),
    ("host ports", LOAD),
    ("required pod anti-affinity", LOAD),
    ("hard spread", LOAD),
];

/// Filters that count leave rows out of the range that a score is normalised by.
const LEAVING_OUT: [&str; 2] = ["required pod anti-affinity", "hard spread"];

/// What happens where there are many racks.
const RACKED: [Focus; 4] = [
    ("soft spread", "pod moved"),
    ("soft spread", "node relabelled"),
    ("hard spread", "pod moved"),
    ("preferred pod affinity", "pod relabelled"),
];

/// What only plugins that others write read.
const LOAD: &str = "node load put";

/// How many things are thought of until the one that is to happen more often.
const FOCUS_DRAWS: usize = 40;

/// What holds for a whole history; all of it comes from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) rules: (&'static str, Rules),
    /// For each scheduler name, which profile decides, and what share of the nodes it looks at.
    pub(crate) profiles: Vec<(usize, Option<u8>)>,
    /// About how many nodes there are.
    pub(crate) node_count: usize,
    pub(crate) step_count: usize,
    /// How many templates are used again and again.
    pub(crate) recurring: usize,
    /// About how many pods there are to a node.
    pods_per_node: usize,
    /// How many of a hundred steps are decisions.
    decisions: usize,
    pub(crate) focus: Option<Focus>,
    /// There are many racks, and mostly pods that are spread over them.
    racked: bool,
    /// Every node takes very few volumes, and most pods have claims and nothing else about them.
    claimed: bool,
    /// Things happen after which the cluster depends on what was before, so it cannot be compared with a fresh one:
    /// pods that share a host port, and images that nodes do not agree on.
    pub(crate) odd: bool,
}

impl Setup {
    pub(crate) fn new(seed: u64, profile_count: usize) -> Self {
        let chance = &mut Chance::new(seed);
        // So large that a tree of 64 rows to a line has three levels; only in long runs.
        let huge = seed % 1024 == 1023;
        let large = seed % 16 == 7 || huge;
        // Each has its turn, and some histories have none.
        let mut focus = FOCUSES.get(seed as usize % (FOCUSES.len() + FOCUSES.len() / 4)).copied();
        // So many racks that rows are grouped by what is counted there, and few kinds of pods that are spread over them.
        let racked = focus.is_none() && seed % 2 == 1;
        let claimed = focus.is_some_and(|(feature, _)| feature == "claims") && seed.is_multiple_of(2);
        let node_count = match (huge, large) {
            (true, _) => chance.between(4090, 4200),
            (_, true) => chance.between(70, 200),
            // In small clusters a few changes make the index look at all rows again.
            _ if racked || claimed => chance.between(20, 48),
            _ => *chance.pick(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12]),
        };
        let smallest_name = Rules { ties: Ties::SmallestName, ..Rules::LIVE };
        let percentage = |chance: &mut Chance| {
            let share = match (large, racked) {
                (_, true) => 0,
                (true, _) => 60,
                _ => 20,
            };
            chance.percent(share).then(|| *chance.pick(&[1, 10, 42, 55, 80, 99]))
        };
        // The default profile comes first, mostly.
        let mut first = if chance.percent(60) { 0 } else { chance.below(profile_count) };
        if racked {
            focus = Some(*chance.pick(&RACKED));
            // A third of them with the plugin that spreads pods by the counts of all racks.
            first = if chance.percent(33) { profile_count - 3 } else { first };
        }
        if let Some((feature, LOAD)) = focus {
            let sampled =
                if LEAVING_OUT.contains(&feature) { *chance.pick(&RANGED) } else { chance.below(SAMPLED) };
            first = profile_count - SAMPLED + sampled;
        }
        let mut profiles = vec![(first, percentage(chance))];
        for _ in 0..chance.below(3) {
            profiles.push((chance.below(profile_count), percentage(chance)));
        }
        // Nobody has to go where there is room.
        let full = focus.is_some_and(|(feature, _)| feature == "priority");
        Setup {
            seed,
            rules: *chance.pick(&[
                ("live", Rules::LIVE),
                ("live", Rules::LIVE),
                ("live, smallest name", smallest_name),
                ("conformance", Rules::CONFORMANCE),
            ]),
            profiles,
            node_count,
            step_count: match seed % 32 {
                _ if large => node_count + 300,
                3 => 3000,
                _ => chance.between(200, 800),
            },
            recurring: if racked || claimed { chance.between(2, 5) } else { chance.between(3, 14) },
            pods_per_node: *chance.pick(if full { &[8, 20] } else { &[1, 2, 3, 5, 8] }),
            decisions: match (racked, claimed) {
                (true, _) => chance.between(85, 95),
                (_, true) => chance.between(70, 85),
                _ => chance.between(35, 80),
            },
            focus,
            racked,
            claimed,
            odd: chance.percent(12),
        }
    }

    #[cfg(feature = "planted-bugs")]
    pub(crate) fn is_racked(&self) -> bool {
        self.racked
    }

    #[cfg(feature = "planted-bugs")]
    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// A template by number. The first few are used again and again, the others once.
    pub(crate) fn template(&self, number: usize) -> Template {
        let chance = &mut Chance::new(self.seed ^ ((number as u64 + 1) << 32));
        // Some are like another one in all but how important they are, which no filter and no score looks at.
        if number % 4 == 3 {
            return self.template(number - 1).with_other_priority(chance);
        }
        if self.racked && chance.percent(80) {
            return racked(chance);
        }
        if self.claimed && chance.percent(70) {
            return claimed(chance);
        }
        let feature = self.focus.filter(|_| chance.percent(60)).map(|(feature, _)| feature);
        template(chance, self.profiles.len(), feature)
    }
}

/// Says what happens next.
#[derive(Debug)]
pub(crate) struct Generator {
    chance: Chance,
    next_pod: u32,
    next_template: usize,
    version: usize,
    /// The scenery, which comes first.
    prologue: Vec<Step>,
    /// A template that is used for so many pods in a row.
    burst: (usize, usize),
}

impl Generator {
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut chance = Chance::new(!setup.seed);
        let mut prologue = Vec::new();
        for number in 0..setup.node_count {
            let node = scenery::node(&mut chance, &format!("n{number}"), setup.odd);
            prologue.push(Step::PutNode { what: "node added", node });
        }
        if chance.percent(80) {
            let objects = scenery::storage(&mut chance, 1).into_iter();
            prologue.extend(objects.map(|(what, object)| Step::PutObject { what, object }));
        }
        if setup.claimed {
            for number in 0..setup.node_count {
                let object = scenery::csi_node_with(&mut chance, &[&format!("n{number}")], &[1, 1, 2]);
                prologue.push(Step::PutObject { what: "CSI node put", object });
            }
        }
        prologue.reverse();
        Generator { chance, next_pod: 0, next_template: setup.recurring, version: 1, prologue, burst: (0, 0) }
    }

    pub(crate) fn next(&mut self, world: &World) -> Step {
        if let Some(step) = self.prologue.pop() {
            return step;
        }
        let crowded = world.bound.len() > world.nodes.len() * world.setup.pods_per_node;
        if crowded
            && self.chance.percent(50)
            && let Some(pod) = self.a_bound_pod(world)
        {
            return Step::RemovePod { pod };
        }
        if self.chance.percent(world.setup.decisions) {
            return self.decide(world);
        }
        let mut step = self.change(world);
        if let Some((_, name)) = world.setup.focus
            && self.chance.percent(30)
        {
            for _ in 0..FOCUS_DRAWS {
                if step.name() == name {
                    break;
                }
                step = self.change(world);
            }
        }
        step
    }

    /// Something other than a decision.
    fn change(&mut self, world: &World) -> Step {
        match self.chance.weighted(&[
            (10, 0),
            (3, 1),
            (8, 2),
            (10, 3),
            (6, 4),
            (3, 5),
            (3, 6),
            (10, 7),
            (1, 8),
        ]) {
            0 => self.change_node(world),
            1 => self.add_or_remove_node(world),
            2 => {
                let (pod, template) = (self.new_pod(), self.template(world));
                Step::BindPod { pod, template, node: self.node_name(world) }
            }
            3 => self.change_pod(world),
            4 => self.a_bound_pod(world).map_or_else(|| self.wait(), |pod| Step::RemovePod { pod }),
            5 => {
                let (pod, template) = (self.a_pending_pod(world), self.template(world));
                let pod = pod.unwrap_or_else(|| self.new_pod());
                Step::Nominate { pod, template, node: self.node_name(world) }
            }
            6 => match self.a_pending_pod(world) {
                None => self.wait(),
                Some(pod) if self.chance.percent(50) => Step::ClearNomination { pod },
                Some(pod) => Step::Withdraw { pod },
            },
            7 => self.put_or_remove_object(world),
            _ => self.wait(),
        }
    }

    fn decide(&mut self, world: &World) -> Step {
        let waiting = if self.chance.percent(15) { self.a_pending_pod(world) } else { None };
        if self.burst.1 == 0 && self.chance.percent(15) {
            self.burst = (self.chance.below(world.setup.recurring), self.chance.between(3, 25));
        }
        // A burst mostly ends where the pods do not fit any more.
        if world.pending.contains_key(&self.next_pod) && self.chance.percent(60) {
            self.burst.1 = 0;
        }
        let template = if self.burst.1 > 0 {
            self.burst.1 -= 1;
            self.burst.0
        } else {
            self.template(world)
        };
        let pod = waiting.unwrap_or_else(|| self.new_pod());
        let chance = &mut self.chance;
        Step::Decide(Decide {
            pod,
            template,
            foreign: chance.percent(5),
            afresh: !world.setup.odd && chance.percent(if world.setup.node_count > 12 { 10 } else { 50 }),
            unfold: chance.percent(4),
            then: chance.weighted(&[(1, Then::Nothing), (4, Then::Assume), (5, Then::Finish)]),
        })
    }

    fn change_node(&mut self, world: &World) -> Step {
        if world.nodes.is_empty() {
            return self.wait();
        }
        let index = self.chance.below(world.nodes.len());
        let (mut node, _) = world.nodes.values().nth(index).expect("it is below the count").clone();
        let (what, change) = *self.chance.pick(&NODE_CHANGES);
        change(&mut self.chance, &mut node, world.setup.odd);
        Step::PutNode { what, node }
    }

    fn add_or_remove_node(&mut self, world: &World) -> Step {
        // Now and then there is none left at all.
        let fewer = self.chance.percent(if world.nodes.len() <= 2 { 40 } else { 50 });
        if fewer && !world.nodes.is_empty() {
            let index = self.chance.below(world.nodes.len());
            let name = world.nodes.keys().nth(index).expect("it is below the count").clone();
            return Step::RemoveNode { name };
        }
        let name = format!("n{}", self.chance.below(world.setup.node_count + 3));
        let what = if world.nodes.contains_key(&name) { "node put anew" } else { "node added" };
        Step::PutNode { what, node: scenery::node(&mut self.chance, &name, world.setup.odd) }
    }

    fn change_pod(&mut self, world: &World) -> Step {
        let Some(pod) = self.a_bound_pod(world) else { return self.wait() };
        let template = self.template(world);
        let change = match self.chance.below(14) {
            0..=3 => PodChange::Confirm,
            4..=7 => PodChange::Relabel(match self.chance.below(4) {
                0 => json!({}),
                1 => json!({ "app": self.chance.pick(&APPS), "tier": "front" }),
                _ => json!({ "app": self.chance.pick(&APPS) }),
            }),
            8 | 9 => PodChange::Terminate { preempted: self.chance.percent(50) },
            10 => PodChange::Resize { template },
            11 => PodChange::Hold { template },
            _ => PodChange::Move { node: self.node_name(world) },
        };
        Step::ChangePod { pod, change }
    }

    fn put_or_remove_object(&mut self, world: &World) -> Step {
        if !world.objects.is_empty() && self.chance.percent(25) {
            let index = self.chance.below(world.objects.len());
            let (kind, key): &(KindId, ObjectKey) =
                world.objects.keys().nth(index).expect("it is below the count");
            return Step::RemoveObject { kind: *kind, key: key.clone() };
        }
        if self.chance.percent(3) {
            return Step::ForgetVolumes;
        }
        self.version += 1;
        let names: Vec<&str> = world.nodes.keys().map(String::as_str).collect();
        let (what, mut object) = scenery::object(&mut self.chance, self.version, &names);
        if what == "claim put" && self.chance.percent(20) {
            // One of the next pods has it for its own.
            let pod = self.next_pod + 1 + self.chance.below(4) as u32;
            scenery::give_to(&mut object, &format!("p{pod}"), &format!("u{pod}"));
        }
        Step::PutObject { what, object }
    }

    fn wait(&mut self) -> Step {
        Step::Wait { seconds: self.chance.between(1, 1000) as i64 }
    }

    fn new_pod(&mut self) -> u32 {
        self.next_pod += 1;
        self.next_pod
    }

    fn template(&mut self, world: &World) -> usize {
        if self.chance.percent(85) {
            return self.chance.below(world.setup.recurring);
        }
        self.next_template += 1;
        self.next_template - 1
    }

    fn a_bound_pod(&mut self, world: &World) -> Option<u32> {
        let index = self.chance.below(world.bound.len().max(1));
        world.bound.keys().nth(index).copied()
    }

    fn a_pending_pod(&mut self, world: &World) -> Option<u32> {
        // Mostly one of the last, so that what just failed is tried again.
        let last = world.pending.len().min(if self.chance.percent(70) { 5 } else { 100 });
        let index = self.chance.below(last.max(1));
        world.pending.keys().rev().nth(index).copied()
    }

    /// The name of a node, or of one that may come.
    fn node_name(&mut self, world: &World) -> String {
        if world.nodes.is_empty() || self.chance.percent(10) {
            return format!("n{}", self.chance.below(world.setup.node_count + 3));
        }
        let index = self.chance.below(world.nodes.len());
        world.nodes.keys().nth(index).expect("it is below the count").clone()
    }
}
