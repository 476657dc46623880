//! The ways in which several of the community's plugins bring raw scores into the range from 0 to 100.

use supercargo_framework::{MAX_NODE_SCORE, NodeScore};

/// The lowest becomes 0, the highest 100. Where all are the same, they become 0.
pub(super) fn by_range(scores: &mut [NodeScore]) {
    let Some((lowest, highest)) = range(scores, |_| true) else { return };
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
pub(super) fn by_inverse_cost(scores: &mut [NodeScore], unknown: i64) {
    let (lowest, highest) = range(scores, |score| score != unknown).unwrap_or_default();
    for score in scores {
        score.score = match highest - lowest {
            _ if score.score == unknown => 0,
            0 if lowest == 0 => 0,
            0 => MAX_NODE_SCORE,
            range => {
                let above = (i128::from(score.score) - lowest) as f64;
                MAX_NODE_SCORE - (MAX_NODE_SCORE as f64 * above / range as f64) as i64
            }
        };
    }
}

fn range(scores: &[NodeScore], counts: impl Fn(i64) -> bool) -> Option<(i128, i128)> {
    let mut values = scores.iter().map(|score| score.score).filter(|score| counts(*score));
    let first = values.next()?;
    let (lowest, highest) =
        values.fold((first, first), |(lowest, highest), score| (lowest.min(score), highest.max(score)));
    Some((lowest.into(), highest.into()))
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
        let inverse = |scores: &mut [NodeScore]| by_inverse_cost(scores, i64::MAX);
        assert_eq!(apply(by_range, &[2, -1, 0]), [100, 0, 33]);
        assert_eq!(apply(by_range, &[7, 7]), [0, 0]);
        assert_eq!(apply(by_range, &[i64::MIN, 0, i64::MAX]), [0, 50, 100]);
        assert_eq!(apply(inverse, &[20, 20, 0, 1, 10]), [0, 0, 100, 95, 50]);
        assert_eq!(apply(inverse, &[0, 0]), [0, 0]);
        assert_eq!(apply(inverse, &[5, 5]), [100, 100]);
        assert_eq!(apply(inverse, &[5, i64::MAX, 7]), [100, 0, 0]);
        assert_eq!(apply(inverse, &[i64::MAX, 0]), [0, 0]);
        assert!(apply(inverse, &[]).is_empty() && apply(by_range, &[]).is_empty());
    }
}
