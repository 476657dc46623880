//! The scheduler under faults, in virtual time: thousands of runs drawn from seeds, with checkers after every step.
//!
//! `SUPERCARGO_SEEDS` says how many runs there are. A run that fails is cut down to the steps that matter, and the command
//! that replays it is printed.

#![expect(clippy::print_stdout, reason = "the run says how often each fault met each step")]
#![expect(clippy::disallowed_methods, reason = "how many runs there are, and which, is said from outside")]

mod checkers;
mod coverage;
mod orders;
mod plan;
mod plugins;
mod server;
mod world;

use std::fmt;

use checkers::Checker;
use coverage::{Coverage, PodStep};
use orders::OrderKind;
use plan::{Step, plan};
use plugins::HELD;
use server::ServerPod;
use world::World;

/// How many runs there are unless `SUPERCARGO_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;
/// In so many runs each fault meets each step at least [`MET_MIN`] times.
const SEEDS_FOR_COVERAGE: u64 = 2_000;
const MET_MIN: u64 = 50;
/// So many runs are tried to cut a failing one down.
const CUTS_MAX: usize = 600;

/// A run in which something did not hold.
#[derive(Clone, Debug)]
struct Violation {
    seed: u64,
    checker: &'static str,
    message: String,
    /// The steps that were taken, by their numbers in the plan.
    steps: Vec<usize>,
    acts: Vec<plan::Act>,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { seed, checker, message, steps, acts } = self;
        let list: Vec<String> = steps.iter().map(ToString::to_string).collect();
        write!(
            formatter,
            "{checker}: {message}\nafter {acts:?}\nreplay it with\n    SUPERCARGO_SEED={seed} SUPERCARGO_STEPS={} \
             cargo test -p supercargo-conformance --test scheduler faults::replay -- --nocapture\n",
            list.join(",")
        )
    }
}

/// Runs these steps of the plan of a seed; the coverage, or what did not hold.
fn run(seed: u64, only: Option<&[usize]>) -> Result<Coverage, Violation> {
    run_with(seed, only, checkers::all())
}

fn run_with(
    seed: u64,
    only: Option<&[usize]>,
    mut checkers: Vec<Box<dyn Checker>>,
) -> Result<Coverage, Violation> {
    let (setup, steps) = plan(seed);
    let chosen: Vec<(usize, Step)> = steps
        .into_iter()
        .enumerate()
        .filter(|(number, _)| only.is_none_or(|only| only.contains(number)))
        .collect();
    let mut world = World::new(setup);
    let mut done = Vec::new();
    let mut check = |world: &mut World, done: &[(usize, Step)]| {
        for checker in &mut checkers {
            if let Err(message) = checker.check(world) {
                return Err(Violation {
                    seed,
                    checker: checker.name(),
                    message,
                    steps: done.iter().map(|(number, _)| *number).collect(),
                    acts: done.iter().map(|(_, step)| step.act).collect(),
                });
            }
        }
        world.taken.clear();
        Ok(())
    };
    for (number, step) in chosen {
        done.push((number, step));
        world.act(step);
        check(&mut world, &done)?;
    }
    let left_over = |world: &mut World, done: &[(usize, Step)]| {
        at_rest(world).map_err(|message| Violation {
            seed,
            checker: "C8",
            message,
            steps: done.iter().map(|(number, _)| *number).collect(),
            acts: done.iter().map(|(_, step)| step.act).collect(),
        })
    };
    for end in [World::settle, World::try_all_again] {
        end(&mut world);
        check(&mut world, &done)?;
        left_over(&mut world, &done)?;
    }
    Ok(world.coverage)
}

/// C8: when nothing fails any more, every pod that fits is bound, and nothing is left over.
fn at_rest(world: &mut World) -> Result<(), String> {
    let books = world.scheduler.books();
    if !books.binding.is_empty()
        || !books.unconfirmed.is_empty()
        || !books.over.is_empty()
        || books.tickets > 0
    {
        return Err(format!("something is left over: {books:?}"));
    }
    let nodes = world.server.node_names();
    let free = |node: &str| world.server.cpu_of(node).unwrap_or(0).saturating_sub(world.server.used(node));
    let room: Vec<u64> = nodes.iter().map(|node| free(node)).collect();
    let is_forgotten = |pod: &&ServerPod| {
        !pod.has_label(HELD) && pod.node.is_none() && room.iter().any(|room| *room >= pod.cpu)
    };
    let Some(pod) = world.server.pods().find(is_forgotten).cloned() else { return Ok(()) };
    let found = world.scheduler.whereabouts("default", &pod.name, world.now());
    let place = found.map(|found| found.place);
    Err(format!("{} waits for {} CPU, and there is {room:?}: {place:?}", pod.uid, pod.cpu))
}

/// Leaves out whatever a violation does not need.
fn cut_down(found: Violation) -> Violation {
    let mut best = found;
    let mut cuts = 0;
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 && cuts < CUTS_MAX {
        let mut start = 0;
        let mut has_cut = false;
        while start < best.steps.len() && cuts < CUTS_MAX {
            let mut fewer = best.steps.clone();
            fewer.drain(start..(start + size).min(fewer.len()));
            cuts += 1;
            match run(best.seed, Some(&fewer)) {
                Err(violation) if violation.checker == best.checker => {
                    best = violation;
                    has_cut = true;
                }
                _ => start += size,
            }
        }
        if size == 1 && !has_cut {
            break;
        }
        size = if size == 1 { 1 } else { size / 2 };
    }
    best
}

/// Runs seeds on all cores; the coverage of all, or the first violation, cut down.
fn run_seeds(seeds: std::ops::Range<u64>) -> Result<Coverage, Violation> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let parts: Vec<Result<Coverage, Violation>> = std::thread::scope(|scope| {
        let seeds = &seeds;
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let mut coverage = Coverage::default();
                    for seed in (seeds.start + thread..seeds.end).step_by(threads as usize) {
                        coverage.add(run(seed, None)?);
                    }
                    Ok(coverage)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    let mut all = Coverage::default();
    for part in parts {
        all.add(part.map_err(cut_down)?);
    }
    Ok(all)
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

#[test]
fn whatever_goes_wrong_what_is_confirmed_stays_confirmed() {
    let seeds = number_of("SUPERCARGO_SEEDS").unwrap_or(SEEDS);
    let coverage = run_seeds(0..seeds).unwrap_or_else(|violation| panic!("{violation}"));
    println!("how often each fault met each step, in {seeds} runs:{coverage}");
    if seeds < SEEDS_FOR_COVERAGE {
        return;
    }
    let on_the_way =
        [PodStep::Permit, PodStep::PreBind, PodStep::Ordered, PodStep::Sent, PodStep::Unresolved];
    let mut expected: Vec<(&'static str, String)> = Vec::new();
    for fault in ["bound by another", "deleted", "recreated", "profiles swapped", "lease lost", "clock set"] {
        // What is unconfirmed is bound already, so nobody else binds it.
        let steps = PodStep::ALL.iter();
        let possible = steps.filter(|step| fault != "bound by another" || **step != PodStep::Unconfirmed);
        expected.extend(possible.map(|step| (fault, format!("{step:?}"))));
    }
    for fault in ["node gone", "node smaller"] {
        expected.extend(on_the_way.iter().map(|step| (fault, format!("{step:?}"))));
    }
    for kind in [OrderKind::Bind, OrderKind::ExtenderBind] {
        for fault in [
            "done, error",
            "done, no answer",
            "done after given up",
            "answered twice",
            "answered after a change",
        ] {
            expected.push((fault, format!("{kind:?}")));
        }
    }
    for kind in [OrderKind::PreBindWrite, OrderKind::Evict, OrderKind::LookUp, OrderKind::ExtenderFilter] {
        for fault in ["not done, error", "not done, no answer", "answered twice"] {
            expected.push((fault, format!("{kind:?}")));
        }
    }
    for fault in [
        "refused",
        "done, error",
        "done, no answer",
        "not done, error",
        "not done, no answer",
        "answered twice",
        "answered after a change",
        "replaced by a newer one",
        "dropped for a binding",
    ] {
        expected.push((fault, format!("{:?}", OrderKind::Status)));
    }
    expected.push(("refused", format!("{:?}", OrderKind::LookUp)));
    expected.push(("victim of two", format!("{:?}", OrderKind::Evict)));
    for what in ["Node", "Bound"] {
        expected.push(("vanished", format!("{what:?}")));
    }
    let vanishing = PodStep::ALL.iter().filter(|step| **step != PodStep::Decided);
    expected.extend(vanishing.map(|step| ("vanished", format!("{step:?}"))));
    let rare: Vec<_> = expected
        .into_iter()
        .map(|(fault, what)| (coverage.named(fault, &what), fault, what))
        .filter(|(times, ..)| *times < MET_MIN)
        .collect();
    assert!(rare.is_empty(), "these met fewer than {MET_MIN} times: {rare:?}");
}

/// Replays one run, as the message of a failing one says.
#[test]
fn replay() {
    let Some(seed) = number_of("SUPERCARGO_SEED") else { return };
    let steps: Option<Vec<usize>> = std::env::var("SUPERCARGO_STEPS").ok().map(|list| {
        let numbers = list.split(',').filter(|number| !number.is_empty());
        numbers.map(|number| number.parse().expect("steps are numbers")).collect()
    });
    match run(seed, steps.as_deref()) {
        Ok(_) => println!("seed {seed}: everything holds"),
        Err(violation) => panic!("{violation}"),
    }
}

/// Each checker finds the bug that is planted for it.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_are_found() {
    use supercargo_engine::planted::{Bug, plant};

    /// Within so many runs.
    const SEEDS_MAX: u64 = 200;
    type MakeChecker = fn() -> Box<dyn Checker>;
    let planted: [(Bug, MakeChecker); 10] = [
        (Bug::NextBinderAtOnce, || Box::new(checkers::OneBinding)),
        (Bug::ErrorsMeanUnbound, || Box::new(checkers::NoNodeOver)),
        (Bug::BindingsOutliveConfirmation, || Box::new(checkers::ToldIsCounted)),
        (Bug::RoomStaysTaken, || Box::new(checkers::CountedIsBound)),
        (Bug::EvictsForBoundPods, || Box::new(checkers::NoVictimsForBound)),
        (Bug::UnfencedAnswers, || Box::new(checkers::ScheduledIsTrue)),
        (Bug::NewsNests, || Box::new(checkers::ScheduledIsTrue)),
        (Bug::UnwrittenCounts, || Box::new(checkers::MeantIsSaid)),
        (Bug::TicketsStay, || Box::new(checkers::BoundedBooks)),
        (Bug::FreedPodsStayHeld, || Box::new(checkers::HeldForVictims)),
    ];
    for (bug, checker) in planted {
        plant(Some(bug));
        let found = (0..SEEDS_MAX).find_map(|seed| {
            let name = checker().name();
            let violation = run_with(seed, None, vec![checker()]).err()?;
            (violation.checker == name).then_some((seed, violation))
        });
        plant(None);
        let (seed, violation) = found.unwrap_or_else(|| panic!("{bug:?} is not found in {SEEDS_MAX} runs"));
        println!("{bug:?}: found in run {seed} by {}: {}", violation.checker, violation.message);
    }
}
