//! The beta distribution: shares from 0 to 1 with a given mean and deviation.

use std::f64::consts::PI;

/// The continued fraction ends after so many steps at the latest; it needs some tens.
const STEPS_MAX: usize = 1_000;
/// The fraction ends when a step changes it by less than this part.
const PRECISION: f64 = 1e-15;
/// Stands for 0 where something is divided by it.
const TINY: f64 = 1e-300;

/// A beta distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Beta {
    alpha: f64,
    beta: f64,
    /// The logarithm of what makes the whole of it 1.
    scale: f64,
}

impl Beta {
    /// The distribution with that mean and that deviation; none if there is none.
    pub(super) fn matching(mean: f64, deviation: f64) -> Option<Self> {
        // Upstream has it from the second moment, which loses the digits of a deviation that is small beside the mean; where none is
        // left, there is no distribution.
        let variance = (deviation * deviation + mean * mean) - mean * mean;
        if !(0.0..=1.0).contains(&mean) || variance <= 0.0 || variance >= mean * (1.0 - mean) {
            return None;
        }
        let size = (mean * (1.0 - mean) / variance - 1.0).max(f64::from_bits(1));
        Some(Self::new(mean * size, (1.0 - mean) * size))
    }

    fn new(alpha: f64, beta: f64) -> Self {
        Beta { alpha, beta, scale: ln_gamma(alpha + beta) - ln_gamma(alpha) - ln_gamma(beta) }
    }

    /// How likely a share is at most that: the regularised incomplete beta function. 0 if it cannot be worked out.
    pub(super) fn probability_below(&self, share: f64) -> f64 {
        if share <= 0.0 {
            return 0.0;
        }
        if share >= 1.0 {
            return 1.0;
        }
        let Beta { alpha, beta, scale } = *self;
        let logarithm = scale + alpha * share.ln() + beta * (-share).ln_1p();
        // The fraction comes to its end soon on one side of the mean; on the other, the function is turned round.
        let probability = if share < (alpha + 1.0) / (alpha + beta + 2.0) {
            logarithm.exp() * fraction(alpha, beta, share) / alpha
        } else {
            1.0 - logarithm.exp() * fraction(beta, alpha, 1.0 - share) / beta
        };
        if (0.0..=1.0).contains(&probability) { probability } else { 0.0 }
    }
}

/// The continued fraction of the incomplete beta function, by Lentz' method.
fn fraction(alpha: f64, beta: f64, share: f64) -> f64 {
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / nonzero(1.0 - (alpha + beta) * share / (alpha + 1.0));
    let mut value = denominator;
    for step in 1..STEPS_MAX {
        let step = step as f64;
        let even = step * (beta - step) * share / ((alpha + 2.0 * step - 1.0) * (alpha + 2.0 * step));
        denominator = 1.0 / nonzero(1.0 + even * denominator);
        numerator = nonzero(1.0 + even / numerator);
        value *= denominator * numerator;
        let odd = -(alpha + step) * (alpha + beta + step) * share
            / ((alpha + 2.0 * step) * (alpha + 2.0 * step + 1.0));
        denominator = 1.0 / nonzero(1.0 + odd * denominator);
        numerator = nonzero(1.0 + odd / numerator);
        let change = denominator * numerator;
        value *= change;
        if (change - 1.0).abs() < PRECISION {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function of a positive number, by Lanczos' approximation.
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // By reflection, where the approximation does not hold.
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let series =
        COEFFICIENTS[1..].iter().zip(1..).map(|(coefficient, index)| coefficient / (x + f64::from(index)));
    let sum: f64 = COEFFICIENTS[0] + series.sum::<f64>();
    let t = x + G + 0.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (alpha, beta, share, expected) in [
            (2.0, 2.0, 0.5, 0.5),
            (2.0, 2.0, 0.875, 0.957_031_25),
            (1.0, 1.0, 0.3, 0.3),
            (0.5, 0.5, 0.25, 1.0 / 3.0),
            (7.28, 10.92, 0.5, 0.804_9),
            (1.0, 3.0, 0.2, 1.0 - 0.8_f64.powi(3)),
        ] {
            let found = Beta::new(alpha, beta).probability_below(share);
            let tolerance = if alpha == 7.28 { 5e-2 } else { 1e-12 };
            assert!((found - expected).abs() < tolerance, "{alpha} {beta} {share}: {found}");
        }
        assert_eq!(Beta::new(2.0, 2.0).probability_below(0.0), 0.0);
        assert_eq!(Beta::new(2.0, 2.0).probability_below(1.0), 1.0);
        let matched = Beta::matching(0.5, 0.05_f64.sqrt()).expect("there is one");
        assert!((matched.alpha - 2.0).abs() < 1e-12 && (matched.beta - 2.0).abs() < 1e-12, "{matched:?}");
        assert_eq!(Beta::matching(0.5, 0.6), None);
        assert_eq!(Beta::matching(0.5, 1e-9), None, "the digits are lost");
    }

    #[test]
    fn a_share_is_more_likely_below_more() {
        for (alpha, beta) in [(0.1, 0.1), (0.3, 40.0), (500.0, 3.0), (1e-3, 1e-3), (1e4, 1e4)] {
            let distribution = Beta::new(alpha, beta);
            let mut last = 0.0;
            for step in 0..=1_000 {
                let next = distribution.probability_below(f64::from(step) / 1_000.0);
                assert!(next >= last - 1e-12, "{alpha} {beta} at {step}: {next} after {last}");
                last = next;
            }
        }
    }
}
