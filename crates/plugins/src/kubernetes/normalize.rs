//! Bringing raw scores into the range from 0 to 100.

use supercargo_framework::{MAX_NODE_SCORE, NodeScore};

/// The highest score becomes 100, the others follow in proportion; if all are 0 they stay so.
pub(super) fn by_maximum(scores: &mut [NodeScore]) {
    let Some(maximum) = positive_maximum(scores) else { return };
    for score in scores {
        score.score = MAX_NODE_SCORE.wrapping_mul(score.score) / maximum;
    }
}

/// The highest score becomes 0 and a score of 0 becomes 100.
pub(super) fn by_maximum_reversed(scores: &mut [NodeScore]) {
    let maximum = positive_maximum(scores);
    for score in scores {
        score.score = match maximum {
            None => MAX_NODE_SCORE,
            Some(maximum) => MAX_NODE_SCORE - MAX_NODE_SCORE.wrapping_mul(score.score) / maximum,
        };
    }
}

fn positive_maximum(scores: &[NodeScore]) -> Option<i64> {
    scores.iter().map(|score| score.score).max().filter(|maximum| *maximum > 0)
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
        assert_eq!(apply(by_maximum_reversed, &[0, 1, 3]), [100, 67, 0]);
        assert_eq!(apply(by_maximum_reversed, &[0, 0]), [100, 100]);
        assert_eq!(apply(by_maximum, &[0, 1, 3]), [0, 33, 100]);
        assert_eq!(apply(by_maximum, &[0, 0]), [0, 0]);
        assert!(apply(by_maximum, &[]).is_empty());
    }
}
