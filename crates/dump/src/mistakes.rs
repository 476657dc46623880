//! What people often give instead of objects.

/// So far into a text is looked for the signs of a mistake; they are everywhere in it.
const LOOKED_AT_MAX: usize = 1 << 20;

/// A common mistake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Where it is seen, if not where the reader stumbled.
    pub(crate) offset: Option<usize>,
    /// What is wrong, if that is clearer than what the reader says.
    pub(crate) reason: Option<String>,
    pub(crate) help: String,
}

/// The mistake behind what the reader stumbled over at an offset.
pub(crate) fn recognise(text: &str, offset: usize) -> Option<Mistake> {
    let text = &text[..text.floor_char_boundary(text.len().min(LOOKED_AT_MAX))];
    let end = text.len().min(offset);
    let end = memchr::memchr(b'\n', &text.as_bytes()[end..]).map_or(text.len(), |at| end + at);
    // A line may be understood as the rest of the one before it, where the reader stumbles then.
    let next =
        text[end..].bytes().skip(1).position(|byte| byte == b'\n').map_or(text.len(), |at| end + 1 + at);
    template(&text[..end]).or_else(|| tab(&text[..next])).or_else(|| words(text))
}

/// An expression in braces that stands for itself: those of others are in quotes.
fn template(text: &str) -> Option<Mistake> {
    let is_expression = |line: &str| {
        let starts = |text: &str| text.trim_start().starts_with("{{");
        line.contains("}}")
            && (starts(line)
                || [": ", "- "]
                    .iter()
                    .any(|sign| line.split_once(sign).is_some_and(|(_, rest)| starts(rest))))
    };
    let at = find_line(text, is_expression)?;
    let column = text[at..].find("{{")?;
    Some(Mistake {
        offset: Some(at + column),
        reason: Some("this is a template, not objects".to_owned()),
        help: "render it first, for example with helm template, and give what that prints".to_owned(),
    })
}

/// A line that is indented by a tab.
fn tab(text: &str) -> Option<Mistake> {
    let at =
        find_line(text, |line| line.trim_start_matches(' ').starts_with('\t') && !line.trim().is_empty())?;
    let column = text[at..].find('\t')?;
    Some(Mistake {
        offset: Some(at + column),
        reason: Some("the line is indented by a tab".to_owned()),
        help: "YAML is indented by spaces; replace the tabs".to_owned(),
    })
}

/// Words for people instead of objects for programs.
fn words(text: &str) -> Option<Mistake> {
    let at = find_line(text, |line| !line.trim().is_empty() && !line.starts_with('#'))?;
    let line = text[at..].lines().next()?.trim_end();
    let told = |reason: &str, help: &str| {
        Some(Mistake { offset: Some(at), reason: Some(reason.to_owned()), help: help.to_owned() })
    };
    let mut columns = line.split_whitespace();
    let is_heading =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase() || b"-()".contains(&byte));
    if matches!(columns.next(), Some("NAME" | "NAMESPACE"))
        && line.split_whitespace().count() > 1
        && columns.all(is_heading)
    {
        return told(
            "this is kubectl's table for people, not objects",
            "let kubectl print objects: add -o yaml",
        );
    }
    const ERRORS: [&str; 6] = [
        "error:",
        "Error from server",
        "Error:",
        "Unable to connect",
        "The connection to the server",
        "No resources found",
    ];
    if ERRORS.iter().any(|start| line.starts_with(start)) {
        return told("this is an error that a command printed, not objects", "see to that error first");
    }
    if line.starts_with("Name:  ") {
        return told(
            "this is what kubectl describe prints, not objects",
            "let kubectl print objects: kubectl get -o yaml",
        );
    }
    if line.starts_with("<!DOCTYPE") || line.starts_with("<html") {
        return told(
            "this is a web page, not objects",
            "was the address the right one, and were you logged in?",
        );
    }
    None
}

/// Where the first such line starts.
fn find_line(text: &str, is_meant: impl Fn(&str) -> bool) -> Option<usize> {
    let mut start = 0;
    text.split_inclusive('\n').find_map(|line| {
        let at = start;
        start += line.len();
        is_meant(line.trim_end_matches('\n')).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_are_recognised() {
        for (text, offset, expected) in [
            ("NAME    READY   STATUS\nweb-1   1/1     Running\n", 0, Some((0, "add -o yaml"))),
            ("NAMESPACE   NAME    AGE\nx   y  1d\n", 0, Some((0, "add -o yaml"))),
            ("NAME\n", 0, None),
            ("a: b\nreplicas: {{ .Values.replicas }}\n", 6, Some((15, "helm template"))),
            ("{{- if .x }}\na: b\n{{- end }}\n", 0, Some((0, "helm template"))),
            ("a:\n\tb: c\n", 3, Some((3, "spaces"))),
            ("a: b\nc\n\tb: c\n", 5, Some((7, "spaces"))),
            ("a: b\nc\n\tb: c\n", 0, None),
            ("error: the server doesn't have a resource type \"pod\"\n", 0, Some((0, "see to that error"))),
            ("# x\n\nError from server (Forbidden): nodes is forbidden\n", 0, Some((5, "see to that error"))),
            ("a: b\n", 0, None),
            ("", 0, None),
        ] {
            let found = recognise(text, offset);
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some((at, help))) => {
                    assert_eq!(found.offset, Some(at), "{text:?}");
                    assert!(found.help.contains(help), "{text:?}: {found:?}");
                }
                _ => panic!("{text:?}: {found:?}"),
            }
        }
    }
}
