//! How many nodes are looked at, where a configuration asks for a sample.

/// Samples are never smaller than this.
const MIN_FEASIBLE_NODES: usize = 100;

/// How many feasible nodes are enough: all, or a share that is never below [`MIN_FEASIBLE_NODES`].
pub(crate) fn feasible_nodes_wanted(percentage: Option<u8>, node_count: usize) -> usize {
    match percentage {
        Some(percentage) if (1..100).contains(&percentage) => {
            (node_count * usize::from(percentage) / 100).max(MIN_FEASIBLE_NODES).min(node_count)
        }
        _ => node_count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_nodes() {
        for (percentage, node_count, wanted) in [
            (None, 5000, 5000),
            (Some(100), 5000, 5000),
            (Some(0), 5000, 5000),
            (Some(10), 5000, 500),
            (Some(1), 5000, 100),
            (Some(50), 99, 99),
            (Some(42), 1000, 420),
            (Some(5), 0, 0),
        ] {
            assert_eq!(
                feasible_nodes_wanted(percentage, node_count),
                wanted,
                "{percentage:?} of {node_count}"
            );
        }
    }
}
