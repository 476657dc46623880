//! Which name was meant.

/// Nobody mistypes names of that length, and the cost of comparing them grows with the square.
const NAME_CHARACTERS_MAX: usize = 300;

/// The name that takes the fewest edits; none if that is more than a third of it. The first of equals wins.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let measured = known.into_iter().filter_map(|known| Some((distance(name, known)?, known)));
    measured
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The names, those that take the fewest edits first; equals stay as they are.
pub fn nearest_first<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut sorted: Vec<&str> = known.into_iter().collect();
    sorted.sort_by_cached_key(|known| distance(name, known).unwrap_or(usize::MAX));
    sorted
}

/// How many letters to insert, delete, replace or swap with their neighbour, whatever their case; none if nobody would
/// count that.
fn distance(from: &str, to: &str) -> Option<usize> {
    let letters =
        |name: &str| name.to_lowercase().chars().take(NAME_CHARACTERS_MAX + 1).collect::<Vec<char>>();
    let (from, to) = (letters(from), letters(to));
    if from.is_empty() || from.len().max(to.len()) > NAME_CHARACTERS_MAX {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut best = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let known = ["default/web-1", "default/web-2", "shop/db-0"];
        for (name, expected) in [
            ("default/web1", Some("default/web-1")),
            ("default/wbe-2", Some("default/web-2")),
            ("DEFAULT/WEB-2", Some("default/web-2")),
            ("shop/db0", Some("shop/db-0")),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        let plugins = ["NodeResourcesFit", "NodeAffinity", "InterPodAffinity", "NodeName", "NodePorts"];
        for (name, expected) in [
            ("NodeResourceFit", Some("NodeResourcesFit")),
            ("noderesourcesfit", Some("NodeResourcesFit")),
            ("NodeAffintiy", Some("NodeAffinity")),
            ("NodeNames", Some("NodeName")),
            ("PodAffinity", Some("NodeAffinity")),
            ("Coscheduling", None),
        ] {
            assert_eq!(nearest(name, plugins), expected, "{name}");
        }
        assert_eq!(
            nearest_first("shop", ["default", "shoop", "kube-system", "shop2"]),
            ["shoop", "shop2", "default", "kube-system"]
        );
        assert_eq!(nearest(&"x".repeat(NAME_CHARACTERS_MAX + 1), known), None);
    }
}
