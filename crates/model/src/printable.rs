//! Text from outside, as a terminal may see it.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with everything escaped that would move the cursor, change colours, start a line or turn the direction of
/// writing: whoever wrote a name cannot forge what stands around it. Escapes are JSON's, so that JSON stays JSON.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// The same for a text of several lines, whose line breaks and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| !['\n', '\t'].contains(&character) && is_control(character))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most text is plain, and long where it is JSON.
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let mut escaped = text[..first].to_owned();
    for character in text[first..].chars() {
        match character {
            '\n' if is_escaped('\n') => escaped.push_str("\\n"),
            '\t' if is_escaped('\t') => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            other if is_escaped(other) => {
                write!(escaped, "\\u{:04x}", u32::from(other)).expect("writing to a string does not fail");
            }
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// What Unicode calls control characters, separators of lines, and marks that turn the direction of writing. All of them
/// have four digits.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for (text, line, lines) in [
            ("web-1", "web-1", "web-1"),
            ("ü ✓", "ü ✓", "ü ✓"),
            ("a\nb\tc\r", "a\\nb\\tc\\r", "a\nb\tc\\r"),
            ("\u{1b}[31mred", "\\u001b[31mred", "\\u001b[31mred"),
            (
                "x\u{7f}\u{9b}\u{202e}\u{2028}",
                "x\\u007f\\u009b\\u202e\\u2028",
                "x\\u007f\\u009b\\u202e\\u2028",
            ),
        ] {
            assert_eq!((&*printable(text), &*printable_lines(text)), (line, lines), "{text:?}");
        }
    }
}
