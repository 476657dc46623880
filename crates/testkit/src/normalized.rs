//! Whether scores become final as a plugin says that they do.

use supercargo_framework::{NodeScore, Normalization};
use supercargo_model::Row;

use crate::reads::{Answers, Scene, Search, Twist};

impl Search<'_> {
    /// Whether scores become final in the way that the plugin declares.
    pub(crate) fn look_at_scores(&mut self, scene: &mut Scene<'_>, truth: &Answers) {
        let Some((named, _)) = self.trial.profile.score.first() else { return };
        let normalization = named.plugin.normalization();
        if normalization == Normalization::Unknown {
            return;
        }
        let world = scene.world;
        if let Some(answers) = self.ask(scene, world, Twist::NobodyFeasible)
            && answers.nodes != truth.nodes
        {
            self.find(
                "which nodes are feasible matters to PreScore: `normalization` must be `Unknown`".to_owned(),
            );
        }
        let pod = scene.cluster.pod(world.pending());
        let rows = scene.cluster.snapshot().rows();
        let Ok((cycle, scores)) = self.trial.raw_scores(&scene.cluster, &pod, rows) else { return };
        let finals = |mut scores: Vec<NodeScore>| {
            named.plugin.normalize(&cycle, &mut scores);
            scores
        };
        if normalization == Normalization::None {
            self.demand(
                finals(scores.clone()) == scores,
                "`normalize` changes scores: `normalization` must not be `None`",
            );
            return;
        }
        let mut values: Vec<i64> = scores.iter().map(|score| score.score).collect();
        values.sort_unstable();
        values.dedup();
        // The same values, each in other places and another number of times.
        let spread = |offset: usize| {
            let value = |place: usize| values[(place * offset) % values.len()];
            let rows: Vec<Row> = scores.iter().map(|score| score.row).collect();
            let spread =
                rows.iter().enumerate().map(|(place, row)| NodeScore { row: *row, score: value(place) });
            spread.collect::<Vec<_>>()
        };
        let last: Vec<NodeScore> = {
            let mut last = spread(1);
            last.iter_mut()
                .skip(values.len())
                .for_each(|score| score.score = *values.last().expect("there are nodes"));
            last
        };
        let beside = match normalization {
            Normalization::ByRange => Some(None),
            Normalization::ByRangeBeside(score) => Some(Some(score)),
            Normalization::Unknown | Normalization::None | Normalization::ByValues => None,
        };
        if let Some(beside) = beside {
            self.look_at_range(&scores, beside, &finals(scores.clone()), finals);
            return;
        }
        let mut known: Vec<(i64, i64)> = Vec::new();
        for before in [scores.clone(), spread(1), last] {
            for (before, after) in before.iter().zip(finals(before.clone())) {
                match known.iter().find(|(value, _)| *value == before.score) {
                    Some((_, expected)) => self.demand(
                        *expected == after.score,
                        "`normalize` looks at more than which scores occur: `normalization` must not be `ByValues`",
                    ),
                    None => known.push((before.score, after.score)),
                }
            }
        }
    }

    /// Whether a final score depends on nothing but the node's own score, the lowest and the highest of those that do not stand beside.
    fn look_at_range(
        &mut self,
        scores: &[NodeScore],
        beside: Option<i64>,
        finals: &[NodeScore],
        normalize: impl Fn(Vec<NodeScore>) -> Vec<NodeScore>,
    ) {
        let values = || scores.iter().map(|score| score.score).filter(|score| Some(*score) != beside);
        for (score, expected) in scores.iter().zip(finals) {
            let range = values().min().into_iter().chain(values().max());
            let alone = std::iter::once(score.score).chain(range);
            let alone: Vec<NodeScore> = alone.map(|value| NodeScore { score: value, ..*score }).collect();
            self.demand(
                normalize(alone)[0].score == expected.score,
                "`normalize` looks at more than the lowest and the highest score: `normalization` must not be `ByRange`",
            );
        }
    }
}
