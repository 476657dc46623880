//! Words that more than one sentence needs.

/// Names as people list them: `a, b and c`.
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// How many nodes, in words.
pub(crate) fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

/// How many pods, in words.
pub(crate) fn pods(count: usize) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

/// A sentence names no more taints, labels, resources or volumes than this, one after the other.
const LISTED_MAX: usize = 10;

/// The first few things, and how many more there are.
pub(crate) fn enumeration(things: &[String], separator: &str) -> String {
    let shown = things[..things.len().min(LISTED_MAX)].join(separator);
    match things.len().saturating_sub(LISTED_MAX) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_bounded() {
        let things = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        for (count, expected) in [
            (0, ""),
            (2, "0 and 1"),
            (LISTED_MAX, "0 and 1 and 2 and 3 and 4 and 5 and 6 and 7 and 8 and 9"),
            (2000, "0 and 1 and 2 and 3 and 4 and 5 and 6 and 7 and 8 and 9, and 1990 more"),
        ] {
            assert_eq!(enumeration(&things(count), " and "), expected);
        }
    }
}
