//! Whether what was measured is right: the run once more, beside the plain evaluation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use supercargo_engine::{Decision, Engine, EngineOptions, Evaluation, Outcome, Thoroughness, evaluate};
use supercargo_framework::{Context, Nomination, Plan as ToDo};
use supercargo_model::{Pod, Row};

use super::figures::clock;
use super::scene::{NOW, Plan, Scene};

/// Repeats a run that placed pods on these nodes, and compares its decisions with plain evaluations of the same cluster.
#[derive(Debug)]
pub(super) struct Check<'a> {
    pub(super) plan: &'a Plan,
    /// Where the measured run put the pods, step by step.
    pub(super) placed: &'a [Option<Row>],
    /// How the plain evaluation decides: as the engine.
    pub(super) options: EngineOptions,
    /// How long plain evaluations may take in all. Where that is not enough for every decision, those that are compared
    /// are spread evenly over the run.
    pub(super) budget: Duration,
}

/// How much was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// Decisions that were compared with a plain evaluation.
    pub(super) compared: usize,
    /// All decisions of the run, those that were not measured included.
    pub(super) decisions: usize,
}

/// What a decision says, in every part that a driver acts on.
#[derive(Debug, Default, PartialEq)]
struct Verdict {
    node: Option<Row>,
    score: i64,
    feasible: usize,
    plans: Vec<(&'static str, ToDo)>,
    message: String,
    plugins: BTreeSet<&'static str>,
    nomination: Nomination,
    victims: Vec<Arc<str>>,
    error: Option<String>,
}

impl Check<'_> {
    pub(super) fn run(&self, mut progress: impl FnMut(usize, usize)) -> anyhow::Result<Checked> {
        let mut checked = Checked::default();
        let mut spent = Duration::ZERO;
        let mut scene: Scene = self.plan.scene()?;
        let steps = scene.steps();
        for step in 0..steps {
            let share = self.budget.mul_f64((step + 1) as f64 / steps as f64);
            let never = self.budget.is_zero();
            let always = step == scene.unmeasured || step + 1 == steps;
            let is_due = !never && (always || spent < share);
            let row = scene
                .step(step, |engine, pod| {
                    let decision = engine.decide(pod, NOW)?;
                    checked.decisions += 1;
                    if is_due {
                        let start = clock();
                        self.compare(engine, pod, &decision)?;
                        spent += start.elapsed();
                        checked.compared += 1;
                    }
                    Ok(decision)
                })
                .with_context(|| self.place(step, &scene))?;
            let placed = self.placed[step];
            if row != placed {
                let place = self.place(step, &scene);
                bail!("{place}: not repeatable: went to {placed:?} when it was measured, and to {row:?} now");
            }
            progress(step + 1, steps);
        }
        Ok(checked)
    }

    fn compare(&self, engine: &mut Engine, pod: &Arc<Pod>, decision: &Decision) -> anyhow::Result<()> {
        let cluster = engine.cluster.snapshot().clone();
        let context = Context {
            cluster: &cluster,
            now: NOW,
            memories: engine.memories(),
            seed: self.options.seed.attempt(decision.attempt),
            fixes: self.options.fixes,
        };
        let mut start = decision.start;
        let evaluation = evaluate(
            &self.plan.profile,
            context,
            pod,
            self.options.rules,
            Thoroughness::FirstRejection,
            &mut start,
        );
        let (ours, plain) = (Verdict::of_outcome(&decision.outcome), Verdict::of_evaluation(evaluation));
        if ours != plain {
            bail!(
                "the decision differs from the plain evaluation\n  decided: {ours:?}\n  plain:   {plain:?}"
            );
        }
        Ok(())
    }

    /// Where in the run a step is, for people.
    fn place(&self, step: usize, scene: &Scene) -> String {
        let (name, pod) = (self.plan.workload.name, scene.pod(step).key());
        match step.checked_sub(scene.unmeasured) {
            Some(measured) => format!("workload {name}, measured pod {measured} ({pod})"),
            None => format!("workload {name}, pod {step} before those that are measured ({pod})"),
        }
    }
}

impl Verdict {
    fn of_outcome(outcome: &Outcome) -> Self {
        match outcome.clone() {
            Outcome::Place { row, score, feasible, plans, .. } => {
                Verdict { node: Some(row), score, feasible, plans, ..Verdict::default() }
            }
            Outcome::Unschedulable { message, plugins, nomination, victims, .. } => {
                let victims = victims.iter().map(|victim| victim.uid.clone()).collect();
                Verdict { message, plugins, nomination, victims, ..Verdict::default() }
            }
            Outcome::Failed { error } => Verdict { error: Some(error), ..Verdict::default() },
        }
    }

    fn of_evaluation(evaluation: Evaluation) -> Self {
        if evaluation.error.is_some() {
            return Verdict { error: evaluation.error, ..Verdict::default() };
        }
        let Some(row) = evaluation.chosen else {
            return Verdict {
                message: evaluation.message,
                plugins: evaluation.diagnosis.unschedulable_plugins,
                nomination: evaluation.nomination,
                victims: evaluation.victims.iter().map(|victim| victim.uid.clone()).collect(),
                ..Verdict::default()
            };
        };
        let place = evaluation.feasible.iter().position(|feasible| *feasible == row);
        Verdict {
            node: Some(row),
            score: place.and_then(|place| evaluation.totals.get(place)).copied().unwrap_or(0),
            feasible: evaluation.feasible.len(),
            plans: evaluation.plans,
            ..Verdict::default()
        }
    }
}
