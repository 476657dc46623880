//! Scores of any size as the few that a scheduler takes from an extender.

use supercargo_engine::ScoresAmong;

/// The highest score that a scheduler takes from an extender; the lowest is 0.
pub const HIGHEST_SCORE: i64 = 10;

/// Sums over all plugins as scores from 0 to 10, in the same order: as large a part of 10 as they are of what the plugins could have given.
///
/// Eleven numbers cannot tell all sums apart, but the best nodes always are: no other node has their score. So a scheduler that listens to
/// nobody else chooses one of the nodes that `supercargo run` chooses from, and one that listens to others as well is not told that nodes
/// differ more than they do, as it would be if the worst node got 0 and the best 10.
pub fn scaled(scores: &ScoresAmong) -> Vec<i64> {
    let Some(best) = scores.totals.iter().copied().max() else { return Vec::new() };
    let part = |total: i64| match scores.highest_possible {
        1.. => (i128::from(total.max(0)) * i128::from(HIGHEST_SCORE) / i128::from(scores.highest_possible))
            .min(i128::from(HIGHEST_SCORE)) as i64,
        _ => 0,
    };
    let is_tied = scores.totals.iter().all(|total| *total == best);
    let best_part = if is_tied { part(best) } else { part(best).max(1) };
    let score = |total: &i64| if *total == best { best_part } else { part(*total).min(best_part - 1) };
    scores.totals.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sums_are_scaled_by_what_they_could_have_been() {
        let table: [(i64, &[i64], &[i64]); 8] = [
            (100, &[], &[]),
            (100, &[100, 50, 0], &[10, 5, 0]),
            (700, &[700, 350, 1], &[10, 5, 0]),
            // Nodes that hardly differ differ by a point.
            (700, &[698, 699, 640], &[8, 9, 8]),
            (100, &[4, 3, 0], &[1, 0, 0]),
            // Nothing tells them apart.
            (100, &[4, 4], &[0, 0]),
            (100, &[95, 95], &[9, 9]),
            (0, &[0, 0, 0], &[0, 0, 0]),
        ];
        for (highest_possible, totals, expected) in table {
            let scores = ScoresAmong { totals: totals.to_vec(), highest_possible };
            assert_eq!(scaled(&scores), expected, "{scores:?}");
        }
    }

    proptest! {
        #[test]
        fn the_best_are_the_best_whatever_the_sums_are(
            totals in prop::collection::vec(prop_oneof![0..=700_i64, -5..=5_i64, any::<i64>()], 0..40),
            highest_possible in prop_oneof![Just(0_i64), Just(700), any::<i64>()],
        ) {
            let scores = scaled(&ScoresAmong { totals: totals.clone(), highest_possible });
            prop_assert_eq!(scores.len(), totals.len());
            prop_assert!(scores.iter().all(|score| (0..=HIGHEST_SCORE).contains(score)), "{:?}", scores);
            let best = |values: &[i64]| {
                let highest = values.iter().max().copied();
                (0..values.len()).filter(|place| Some(values[*place]) == highest).collect::<Vec<_>>()
            };
            prop_assert_eq!(best(&scores), best(&totals));
            for (a, b) in (0..totals.len()).flat_map(|a| (0..totals.len()).map(move |b| (a, b))) {
                prop_assert!(totals[a] < totals[b] || scores[a] >= scores[b], "the order is kept");
            }
        }
    }
}
