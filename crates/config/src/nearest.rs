//! Which name was meant.

/// "did you mean …?", if one of the names is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(|known| format!("did you mean {known:?}?"))
}

/// The name that takes the fewest edits; none if that is more than a third of it. The first of equals wins.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    // Nobody mistypes names of that length, and the cost grows with the square.
    if name.is_empty() || name.len() > 100 {
        return None;
    }
    let most = (name.len() / 3).max(1);
    let distance = |known: &str| edits(&name, &known.to_lowercase().chars().collect::<Vec<_>>());
    known
        .into_iter()
        .map(|known| (distance(known), known))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// How many letters to insert, delete, replace or swap with their neighbour.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut rows = vec![(0..=to.len()).collect::<Vec<usize>>()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_was_meant() {
        let known = ["NodeResourcesFit", "NodeAffinity", "InterPodAffinity", "NodeName", "NodePorts"];
        for (name, expected) in [
            ("NodeResourceFit", Some("NodeResourcesFit")),
            ("noderesourcesfit", Some("NodeResourcesFit")),
            ("NodeAffintiy", Some("NodeAffinity")),
            ("NodeNames", Some("NodeName")),
            ("PodAffinity", Some("NodeAffinity")),
            ("Coscheduling", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }
}
