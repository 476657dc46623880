//! The ways in which several of the community's plugins bring raw scores into the range from 0 to 100.

use supercargo_framework::{MAX_NODE_SCORE, NodeScore};

/// The lowest becomes 0, the highest 100. Where all are the same, they become 0.
pub(super) fn by_range(scores: &mut [NodeScore]) {
    let Some((lowest, highest)) = range(scores, |_| true) else { return };
    let (lowest, highest) = (i128::from(lowest), i128::from(highest));
    for score in scores {
        score.score = match highest - lowest {
            0 => 0,
            // A hundred times a score may be more than 64 bits hold.
            range => ((i128::from(score.score) - lowest) * i128::from(MAX_NODE_SCORE) / range) as i64,
        };
    }
}

/// The lowest cost becomes 100, the highest 0. Where all are the same, they become 100, but where all are 0 they stay so. What is not
/// known to cost anything, as this number says, becomes 0 and counts as neither.
pub(super) fn by_inverse_cost_beside(scores: &mut [NodeScore], unknown: i64) {
    let Some((lowest, highest)) = range(scores, |score| score != unknown) else {
        return scores.iter_mut().for_each(|score| score.score = 0);
    };
    for NodeScore { score, .. } in scores {
        *score = if *score == unknown { 0 } else { inverse_cost(*score, lowest, highest) };
    }
}

/// The same, where all costs are known.
pub(super) fn by_inverse_cost(scores: &mut [NodeScore]) {
    let Some((lowest, highest)) = range(scores, |_| true) else { return };
    for score in scores {
        score.score = inverse_cost(score.score, lowest, highest);
    }
}

/// The score of a cost, by the lowest and the highest of all.
pub(super) fn inverse_cost(cost: i64, lowest: i64, highest: i64) -> i64 {
    if lowest == 0 && highest == 0 {
        return 0;
    }
    // Differences of scores may be more than 64 bits hold.
    match i128::from(highest) - i128::from(lowest) {
        0 => MAX_NODE_SCORE,
        range => {
            let above = (i128::from(cost) - i128::from(lowest)) as f64;
            MAX_NODE_SCORE - (MAX_NODE_SCORE as f64 * above / range as f64) as i64
        }
    }
}

fn range(scores: &[NodeScore], counts: impl Fn(i64) -> bool) -> Option<(i64, i64)> {
    let mut values = scores.iter().map(|score| score.score).filter(|score| counts(*score));
    let first = values.next()?;
    Some(values.fold((first, first), |(lowest, highest), score| (lowest.min(score), highest.max(score))))
}

#[cfg(test)]
mod tests {
    use supercargo_model::Row;

    use super::*;

    fn apply(normalize: fn(&mut [NodeScore]), raw: &[i64]) -> Vec<i64> {
        let mut scores: Vec<NodeScore> =
            raw.iter().map(|score| NodeScore { row: Row(0), score: *score }).collect();
        normalize(&mut scores);
        scores.iter().map(|score| score.score).collect()
    }

    #[test]
    fn vectors() {
        let beside = |scores: &mut [NodeScore]| by_inverse_cost_beside(scores, i64::MAX);
        assert_eq!(apply(by_range, &[2, -1, 0]), [100, 0, 33]);
        assert_eq!(apply(by_range, &[7, 7]), [0, 0]);
        assert_eq!(apply(by_range, &[i64::MIN, 0, i64::MAX]), [0, 50, 100]);
        assert_eq!(apply(by_inverse_cost, &[20, 20, 0, 1, 10]), [0, 0, 100, 95, 50]);
        assert_eq!(apply(by_inverse_cost, &[0, 0]), [0, 0]);
        assert_eq!(apply(by_inverse_cost, &[5, 5]), [100, 100]);
        assert_eq!(apply(beside, &[5, i64::MAX, 7]), [100, 0, 0]);
        assert_eq!(apply(beside, &[i64::MAX, 0]), [0, 0]);
        assert!(apply(by_inverse_cost, &[]).is_empty() && apply(by_range, &[]).is_empty());
    }
}
