//! Engines with planted bugs: each must be found, or the histories would find none of ours either.

use std::sync::Arc;

use supercargo_engine::{
    Decision, Engine, EngineOptions, IndexStatistics, Indexing, Outcome, Rules, Seed, Ties,
};
use supercargo_framework::{Nomination, Profile};
use supercargo_model::{Interner, Pod, Row, Snapshot, Timestamp};

use crate::court::{Budget, Counterexample, Subject, compare_histories};
use crate::profiles::Profiles;
use crate::setup::Setup;
use crate::world::Change;

/// Within so many histories a bug is found.
const HISTORIES: u64 = 128;
/// A change that an engine forgets, it forgets once in so many times.
const FORGETS_EVERY: usize = 2;

/// An engine that misses some changes.
struct Forgetful {
    engine: Engine,
    /// The steps that it does not always hear of.
    forgets: &'static str,
    heard: usize,
    /// One that misses nothing, whose cluster is shown: as if not the cluster were stale, but what is kept beside it.
    shown: Option<Engine>,
}

/// Changes what an engine says.
type Lie = fn(&mut Decision);

/// An engine that says something else than it thinks.
struct Liar {
    engine: Engine,
    lie: Lie,
}

impl Subject for Forgetful {
    fn tell(&mut self, step: &'static str, change: &Change) {
        if let Some(shown) = &mut self.shown {
            shown.tell(step, change);
        }
        self.heard += usize::from(step == self.forgets);
        if step == self.forgets && self.heard.is_multiple_of(FORGETS_EVERY) {
            return;
        }
        match change {
            // Its rows may be others.
            Change::AssumePod(pod, _) => self.engine.tell(step, &Change::AddPod(pod.clone())),
            _ => self.engine.tell(step, change),
        }
    }

    fn decide(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Option<Decision> {
        let decision = Subject::decide(&mut self.engine, pod, now)?;
        Some(Decision { version: self.snapshot().version(), ..decision })
    }

    fn unfold(&mut self, decision: &Decision) -> Option<Row> {
        let version = self.engine.snapshot().version();
        Subject::unfold(&mut self.engine, &Decision { version, ..decision.clone() })
    }

    fn snapshot(&mut self) -> Snapshot {
        self.shown.as_mut().unwrap_or(&mut self.engine).snapshot()
    }

    fn interner(&mut self) -> &mut Interner {
        self.engine.interner()
    }

    fn index_statistics(&self) -> IndexStatistics {
        self.engine.index_statistics()
    }
}

impl Subject for Liar {
    fn tell(&mut self, step: &'static str, change: &Change) {
        self.engine.tell(step, change);
    }

    fn decide(&mut self, pod: &Arc<Pod>, now: Timestamp) -> Option<Decision> {
        let mut decision = Subject::decide(&mut self.engine, pod, now)?;
        (self.lie)(&mut decision);
        Some(decision)
    }

    fn unfold(&mut self, decision: &Decision) -> Option<Row> {
        Subject::unfold(&mut self.engine, decision)
    }

    fn snapshot(&mut self) -> Snapshot {
        self.engine.snapshot()
    }

    fn interner(&mut self) -> &mut Interner {
        self.engine.interner()
    }

    fn index_statistics(&self) -> IndexStatistics {
        self.engine.index_statistics()
    }
}

const FORGOTTEN: [&str; 27] = [
    "node added",
    "node put anew",
    "node removed",
    "node relabelled",
    "node retainted",
    "node cordoned or uncordoned",
    "node resized",
    "node images changed",
    "node features changed",
    "pod bound by somebody else",
    "pod confirmed",
    "pod relabelled",
    "pod resized",
    "pod resize held",
    "pod moved",
    "pod removed",
    "pod nominated by somebody else",
    "nomination cleared",
    "namespace put",
    "service put",
    "controller put",
    "budget put",
    "claim put",
    "volume put",
    "CSI node put",
    "node load put",
    "decided",
];

#[test]
fn a_cluster_that_misses_changes_is_found() {
    for forgets in FORGOTTEN {
        let found = find(
            forgets,
            |setup| happens_often(setup, forgets),
            0,
            |profiles, options| {
                let engine = Engine::new(profiles, options);
                Forgetful { engine, forgets, heard: 0, shown: None }
            },
        );
        // Its own cluster and what it decides agree, so nothing else can show it.
        assert!(!found.difference.starts_with("beside the plain way"), "{forgets}: {found}");
    }
}

#[test]
fn an_index_that_misses_changes_is_found() {
    for forgets in FORGOTTEN {
        find(
            forgets,
            |setup| happens_often(setup, forgets),
            0,
            |profiles, options| {
                let shown = Some(Engine::new(profiles.clone(), options));
                Forgetful { engine: Engine::new(profiles, options), forgets, heard: 0, shown }
            },
        );
    }
}

#[test]
fn a_lie_about_any_part_is_found() {
    let lies: [(&str, Lie); 10] = [
        ("attempt", |decision| decision.attempt += decision.attempt / 10),
        ("start", |decision| decision.start = 0),
        ("score", |decision| {
            if let Outcome::Place { score, .. } = &mut decision.outcome {
                *score += *score / 600;
            }
        }),
        ("number of feasible nodes", |decision| {
            if let Outcome::Place { feasible, .. } = &mut decision.outcome {
                *feasible = (*feasible).min(10);
            }
        }),
        ("plans", |decision| {
            if let Outcome::Place { plans, .. } = &mut decision.outcome {
                plans.clear();
            }
        }),
        ("message", |decision| {
            if let Outcome::Unschedulable { message, .. } = &mut decision.outcome {
                *message = message.replace("Insufficient cpu, 1 ", "Insufficient cpu, 2 ");
            }
        }),
        ("plugins", |decision| {
            if let Outcome::Unschedulable { plugins, .. } = &mut decision.outcome
                && plugins.len() > 2
            {
                plugins.pop_last();
            }
        }),
        ("nomination", |decision| {
            if let Outcome::Unschedulable { nomination, .. } = &mut decision.outcome
                && *nomination == Nomination::Clear
            {
                *nomination = Nomination::Keep;
            }
        }),
        ("victims", |decision| {
            if let Outcome::Unschedulable { victims, .. } = &mut decision.outcome {
                victims.reverse();
            }
        }),
        ("error", |decision| {
            if let Outcome::Failed { error } = &mut decision.outcome {
                error.pop();
            }
        }),
    ];
    for (part, lie) in lies {
        let found =
            find(part, |_| true, 0, |profiles, options| Liar { engine: Engine::new(profiles, options), lie });
        assert!(found.difference.contains(&format!("the {part} differs")), "{part}: {found}");
    }
}

#[test]
fn an_engine_that_decides_otherwise_is_found() {
    /// Changes what an engine decides by.
    type Bug = fn(&mut Vec<Profile>, &mut EngineOptions);
    fn rules(options: &mut EngineOptions, change: impl FnOnce(&mut Rules)) {
        change(&mut options.rules);
    }
    let bugs: [(&str, Bug); 8] = [
        ("other ties", |_, options| options.seed = Seed(options.seed.0 + 1)),
        ("no chance", |_, options| rules(options, |rules| rules.ties = Ties::SmallestName)),
        ("nominated nodes not tried first", |_, options| {
            rules(options, |rules| rules.prefer_nominated_node = false);
        }),
        ("a single node scored", |_, options| rules(options, |rules| rules.score_single_node = true)),
        ("all plugins blamed", |_, options| rules(options, |rules| rules.blame_all_plugins = true)),
        ("no samples", |_, options| rules(options, |rules| rules.sample_nodes = false)),
        ("a weight", |profiles, _| {
            let images = profiles[0].score.iter_mut().find(|(named, _)| named.name == "ImageLocality");
            images.into_iter().for_each(|(_, weight)| *weight += 1);
        }),
        ("the order of filters", |profiles, _| profiles[0].filter.rotate_left(1)),
    ];
    for (name, bug) in bugs {
        find(
            name,
            |setup| name != "no samples" || setup.node_count > 100,
            0,
            |mut profiles, mut options| {
                bug(&mut profiles, &mut options);
                Engine::new(profiles, options)
            },
        );
    }
}

#[test]
fn a_counterexample_is_cut_down_to_what_matters() {
    let found = find(
        "pod removed",
        |_| true,
        30_000,
        |profiles, options| {
            let engine = Engine::new(profiles, options);
            Forgetful { engine, forgets: "pod removed", heard: FORGETS_EVERY - 1, shown: None }
        },
    );
    let names: Vec<&str> = found.steps.iter().map(crate::steps::Step::name).collect();
    assert!(names.len() <= 12, "{found}");
    assert!(names.contains(&"pod removed") && names.ends_with(&["decided"]), "{found}");
    assert!(found.to_string().contains("decide: p"), "{found}");
}

fn happens_often(setup: &Setup, step: &str) -> bool {
    setup.focus.is_some_and(|(_, often)| often == step)
}

/// A history that shows a bug. The likely ones are tried first, and small ones before large ones: that saves time.
fn find<S: Subject>(
    bug: &str,
    likely: impl Fn(&Setup) -> bool,
    shrinking: usize,
    make_engine: impl FnMut(Vec<Profile>, EngineOptions) -> S,
) -> Box<Counterexample> {
    let budget = Budget { seeds: likely_first(likely), indexing: Indexing::Off, shrinking };
    match compare_histories(make_engine, &budget) {
        Ok(_) => panic!("{bug}: not found in {HISTORIES} histories"),
        Err(found) => {
            assert!(!found.difference.starts_with("panic"), "{bug}: {found}");
            found
        }
    }
}

/// What the index keeps of domains and of rows goes stale: only builds for tests have these bugs.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_of_the_index_are_found() {
    use supercargo_engine::IndexLimits;
    use supercargo_engine::planted::{Bug, plant};
    // Classes have planes of their own at once.
    let limits = IndexLimits { domains: 1, singles: 0, ..IndexLimits::default() };
    let bugs: [(Bug, fn(&Setup) -> bool); 3] = [
        (Bug::DomainsStay, Setup::is_racked),
        (Bug::DomainsAreNotCountedAgain, Setup::is_racked),
        (Bug::TouchedRowsStay, Setup::is_claimed),
    ];
    for (bug, is_likely) in bugs {
        plant(Some(bug));
        let likely = |seed: &u64| is_likely(&Setup::new(*seed, Profiles::all().count()));
        let seeds = (0..HISTORIES).filter(likely).collect();
        let budget = Budget { seeds, indexing: Indexing::On, shrinking: 0 };
        let make_engine = |profiles, options| Engine::new(profiles, options).with_index_limits(limits);
        let found = compare_histories(make_engine, &budget);
        plant(None);
        assert!(found.is_err(), "{bug:?} is not found");
    }
}

/// The seeds of all histories, in the order in which they are tried.
fn likely_first(likely: impl Fn(&Setup) -> bool) -> Vec<u64> {
    let mut seeds: Vec<u64> = (0..HISTORIES).collect();
    seeds.sort_by_key(|seed| {
        let setup = Setup::new(*seed, Profiles::all().count());
        (!likely(&setup), setup.node_count > 12)
    });
    seeds
}
