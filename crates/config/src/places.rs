//! Where things stand in a file: lines and columns of paths.

use std::collections::BTreeMap;

use serde::Serialize;

/// A place in a file. Lines and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// Which of the texts that were read together.
    #[serde(skip)]
    pub file: usize,
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// Where the fields and items of a document stand, by their paths. Fields stand where their names do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(BTreeMap<String, Position>);

impl Places {
    pub(crate) fn insert(&mut self, path: &str, position: Position) {
        self.0.insert(path.to_owned(), position);
    }

    /// Where a path stands; what is not there, such as a field that is missing, stands where it would belong.
    pub(crate) fn nearest(&self, path: &str) -> Option<Position> {
        let mut path = path;
        loop {
            if let Some(position) = self.0.get(path) {
                return Some(*position);
            }
            if path.is_empty() {
                return None;
            }
            path = parent(path);
        }
    }

    /// Whether something is written at a path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The same places, seen from the file in which the text stands.
    pub(crate) fn map(self, outer: impl Fn(Position) -> Position) -> Places {
        Places(self.0.into_iter().map(|(path, position)| (path, outer(position))).collect())
    }
}

/// The path without its last part; empty for a path of one part.
pub(crate) fn parent(path: &str) -> &str {
    path.rfind(['.', '[']).map_or("", |end| &path[..end])
}

/// Whether a path is another one, or leads to something in it.
pub(crate) fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A text that stands in another one as it is, line by line, each line indented alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inset {
    first: Position,
}

impl Inset {
    /// Finds a text below the line of the field that holds it; none if it is written in another way, such as between quotes.
    pub(crate) fn find(text: &str, file: &str, field: Position) -> Option<Inset> {
        let after = usize::try_from(field.line).ok()?;
        let mut indent = None;
        let mut lines = file.lines().skip(after);
        for line in text.lines() {
            let outer = lines.next()?;
            if line.trim().is_empty() && outer.trim().is_empty() {
                continue;
            }
            let before = outer.strip_suffix(line)?;
            if !before.bytes().all(|byte| byte == b' ') || *indent.get_or_insert(before.len()) != before.len()
            {
                return None;
            }
        }
        let column = u64::try_from(indent? + 1).ok()?;
        Some(Inset { first: Position { line: field.line + 1, column, ..field } })
    }

    /// Where a place in the text is in the file.
    pub(crate) fn outer(&self, inner: Position) -> Position {
        Position {
            line: self.first.line + inner.line - 1,
            column: self.first.column + inner.column - 1,
            ..self.first
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64, column: u64) -> Position {
        Position { file: 0, line, column }
    }

    #[test]
    fn what_is_missing_stands_where_it_belongs() {
        let mut places = Places::default();
        places.insert("", at(1, 1));
        places.insert("a", at(2, 1));
        places.insert("a[0].b", at(3, 5));
        for (path, expected) in
            [("a[0].b", at(3, 5)), ("a[0].b.c[7]", at(3, 5)), ("a[0].x", at(2, 1)), ("x.y", at(1, 1))]
        {
            assert_eq!(places.nearest(path), Some(expected), "{path}");
        }
        assert_eq!(Places::default().nearest("a"), None);
    }

    #[test]
    fn paths_lead_into_others() {
        for (path, outer, expected) in [
            ("a.b", "a", true),
            ("a[0]", "a", true),
            ("a", "a", true),
            ("a", "", true),
            ("ab", "a", false),
            ("a", "a.b", false),
        ] {
            assert_eq!(is_within(path, outer), expected, "{path} in {outer}");
        }
    }

    #[test]
    fn text_is_found_where_it_stands() {
        let file = "data:\n  k: |\n    a: 1\n\n    b:\n      c: 2\n  j: x\n";
        let inset = Inset::find("a: 1\n\nb:\n  c: 2\n", file, at(2, 3)).expect("stands there");
        assert_eq!(inset.outer(at(1, 1)), at(3, 5));
        assert_eq!(inset.outer(at(4, 3)), at(6, 7));
        for (text, file) in
            [("a: 1\n", "k: \"a: 1\\n\"\n"), ("a: 1\nb: 2\n", "k: |\n  a: 1\n   b: 2\n"), ("a", "k: >\n")]
        {
            assert_eq!(Inset::find(text, file, at(1, 1)), None, "{file}");
        }
        let crlf = Inset::find("a: 1\nb: 2\n", "k: |\r\n  a: 1\r\n  b: 2\r\n", at(1, 1));
        assert_eq!(crlf.map(|inset| inset.outer(at(2, 1))), Some(at(3, 3)));
    }
}
