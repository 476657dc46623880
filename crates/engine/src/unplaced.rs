//! What becomes of pods that the index finds no node for: who rejected them, and whether room can be made.

use std::collections::BTreeSet;

use supercargo_framework::{Diagnosis, PostFilterResult, Rejections, unfit_message};

use crate::decision::Outcome;
use crate::evaluate::run_post_filters;
use crate::index::{KnownClass, Question, Refused, Unfit};
use crate::rehearsal::{LateStage, Stage};

/// What becomes of a pod that fits nowhere.
pub(crate) fn unfit_outcome(question: &Question<'_>, unfit: &Unfit<'_>) -> Outcome {
    let result = make_room(question, &unfit.class, unfit);
    let message = |said: &str| {
        unfit_message(question.context.cluster.node_count(), None, unfit.counts().into_iter(), said)
    };
    unschedulable(result, message, unfit.plugins(), unfit.pending())
}

/// What becomes of a pod that a PreFilter plugin refuses.
pub(crate) fn refused_outcome(question: &Question<'_>, refused: Refused<'_>) -> Outcome {
    let Refused { status, class } = refused;
    let mut diagnosis = Diagnosis { pre_filter_message: Some(status.message()), ..Diagnosis::default() };
    diagnosis.note_plugin(&status);
    diagnosis.others = status;
    let result = make_room(question, &class, &diagnosis);
    let message = |said: &str| diagnosis.message(question.context.cluster.node_count(), said);
    let (plugins, pending) = (diagnosis.unschedulable_plugins.clone(), diagnosis.pending_plugins.clone());
    unschedulable(result, message, plugins, pending)
}

/// Asks the PostFilter plugins; none if they are not to be asked.
fn make_room(
    question: &Question<'_>,
    class: &KnownClass<'_>,
    rejections: &dyn Rejections,
) -> Option<PostFilterResult> {
    let Question { profile, context, pod, rules, .. } = question;
    rules.run_post_filter.then(|| {
        let (cycle, filters) = class.cycle(question);
        if class.is_counted() {
            let stage = LateStage::new(profile, pod, context.clone());
            run_post_filters(profile, &cycle, rejections, &stage)
        } else {
            let stage = Stage::with_findings(&filters, &cycle, class.findings());
            run_post_filters(profile, &cycle, rejections, &stage)
        }
    })
}

/// The outcome for a pod without a node, with what came of asking the PostFilter plugins.
fn unschedulable(
    result: Option<PostFilterResult>,
    message: impl FnOnce(&str) -> String,
    plugins: BTreeSet<&'static str>,
    pending: BTreeSet<&'static str>,
) -> Outcome {
    let message = result.as_ref().map(|result| message(&result.status.message()));
    let PostFilterResult { nomination, victims, .. } = result.unwrap_or_default();
    Outcome::Unschedulable {
        message: message.unwrap_or_default(),
        plugins,
        pending,
        nomination,
        victims: victims.into_iter().filter(|victim| !victim.is_terminating()).collect(),
    }
}
