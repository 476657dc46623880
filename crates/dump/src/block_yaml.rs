//! YAML in block style, as kubectl and most programs write it, turned into JSON.
//!
//! This is no YAML parser: it knows mappings and sequences by indentation, plain, quoted and literal scalars, and gives up
//! on everything else (anchors, tags, flow collections, odd numbers). Giving up is always safe, since the general parser
//! is asked then; reading something wrongly would not be.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Deeper nesting is left to the general parser.
const DEPTH_MAX: usize = 100;
/// Mappings of more lines than this whose keys are in no order are left to the general parser, which finds repeated keys
/// faster.
const UNSORTED_LINES_MAX: usize = 2048;

/// The JSON for a YAML document in block style; none if it is not plainly that.
pub fn to_json(yaml: &str) -> Option<String> {
    let mut parser = Parser { lines: lines(yaml)?, next: 0, json: String::with_capacity(yaml.len()) };
    let indent = parser.peek()?.indent;
    parser.node(indent, 0)?;
    parser.peek().is_none().then_some(parser.json)
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    text: &'a str,
}

struct Parser<'a> {
    lines: Vec<Line<'a>>,
    next: usize,
    json: String,
}

/// The lines with something on them, and how far each is indented. Blank lines are kept, with no text: they matter in
/// literal scalars.
fn lines(yaml: &str) -> Option<Vec<Line<'_>>> {
    if memchr::memchr(b'\t', yaml.as_bytes()).is_some() {
        return None;
    }
    let mut lines = Vec::with_capacity(yaml.len() / 32);
    for line in yaml.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let text = skip_spaces(line);
        if text.as_bytes().first() == Some(&b'%') {
            return None;
        }
        lines.push(Line { indent: line.len() - text.len(), text });
    }
    Some(lines)
}

impl<'a> Parser<'a> {
    /// The next line that is neither blank nor a comment.
    fn peek(&mut self) -> Option<Line<'a>> {
        while let Some(line) = self.lines.get(self.next) {
            if !line.text.is_empty() && !line.text.starts_with('#') {
                return Some(*line);
            }
            self.next += 1;
        }
        None
    }

    /// A mapping, a sequence or a scalar that starts at this indentation.
    fn node(&mut self, indent: usize, depth: usize) -> Option<()> {
        let line = self.peek()?;
        if line.indent != indent || depth > DEPTH_MAX {
            return None;
        }
        if is_item(line.text) {
            self.sequence(indent, depth)
        } else if split_key(line.text).is_some() {
            self.mapping(indent, depth)
        } else {
            self.next += 1;
            self.scalar(line.text, indent, false)
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Option<()> {
        self.json.push('[');
        let mut first = true;
        while let Some(line) = self.peek().filter(|line| line.indent == indent && is_item(line.text)) {
            self.comma(&mut first);
            let rest = skip_spaces(&line.text[1..]);
            if rest.is_empty() {
                self.next += 1;
                self.nested(indent, indent + 1, depth)?;
            } else {
                // What follows the dash is a node of its own, indented by what stands before it. To a scalar the dash is
                // the parent.
                let inner = indent + line.text.len() - rest.len();
                if is_item(rest) || split_key(rest).is_some() {
                    self.lines[self.next] = Line { indent: inner, text: rest };
                    self.node(inner, depth + 1)?;
                } else {
                    self.next += 1;
                    self.scalar(rest, indent, false)?;
                }
            }
        }
        self.json.push(']');
        self.ended(indent)
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Option<()> {
        self.json.push('{');
        let mut first = true;
        let mut keys = Keys { first_line: self.next, indent, greatest: "", has_odd: false };
        while let Some(line) = self.peek().filter(|line| line.indent == indent && !is_item(line.text)) {
            let (key, value) = split_key(line.text)?;
            self.comma(&mut first);
            self.check_new(key, &mut keys)?;
            self.key(key)?;
            self.json.push(':');
            self.next += 1;
            if value.is_empty() {
                // A sequence may stand as far left as its key.
                self.nested(indent, indent, depth)?;
            } else {
                self.scalar(value, indent, true)?;
            }
        }
        self.json.push('}');
        self.ended(indent)
    }

    /// None if the key stands in its mapping already. Keys are mostly sorted, so that one look is enough.
    fn check_new(&self, key: &'a str, keys: &mut Keys<'a>) -> Option<()> {
        // The same key can be written in several ways.
        let bytes = key.as_bytes();
        let is_odd = matches!(bytes, [b'"' | b'\'', ..] | [.., b' ']);
        // The first letters tell most keys apart.
        let is_greater = match bytes.first().cmp(&keys.greatest.as_bytes().first()) {
            Ordering::Equal => key > keys.greatest,
            order => order.is_gt(),
        };
        if is_greater && !is_odd && !keys.has_odd {
            keys.greatest = key;
            return Some(());
        }
        keys.has_odd |= is_odd;
        keys.greatest = keys.greatest.max(key);
        let plain = |key: &'a str| match quoted_key(key) {
            Some(text) => Cow::Owned(text),
            None => Cow::Borrowed(key.trim_end()),
        };
        let lines = &self.lines[keys.first_line..self.next];
        let mut others =
            lines.iter().filter(|line| line.indent == keys.indent).filter_map(|line| split_key(line.text));
        let is_new =
            lines.len() <= UNSORTED_LINES_MAX && !others.any(|(other, _)| plain(other) == plain(key));
        is_new.then_some(())
    }

    /// After a collection nothing may be indented between it and its parent.
    fn ended(&mut self, indent: usize) -> Option<()> {
        match self.peek() {
            Some(line) if line.indent > indent => None,
            Some(line) if line.indent == indent && split_key(line.text).is_none() && !is_item(line.text) => {
                None
            }
            _ => Some(()),
        }
    }

    /// What stands below a key or a dash without a value; nothing there is null.
    fn nested(&mut self, indent: usize, sequence_indent: usize, depth: usize) -> Option<()> {
        match self.peek() {
            Some(line) if line.indent > indent => self.node(line.indent, depth + 1),
            Some(line) if line.indent == sequence_indent && is_item(line.text) => {
                self.sequence(line.indent, depth + 1)
            }
            _ => {
                self.json.push_str("null");
                Some(())
            }
        }
    }

    fn key(&mut self, key: &str) -> Option<()> {
        match key.as_bytes().first()? {
            b'"' | b'\'' => {
                let (text, rest) = quoted(key)?;
                rest.is_empty().then(|| push_string(&mut self.json, &text))
            }
            _ if is_indicator(key) || key.contains(" #") => None,
            _ => {
                push_string(&mut self.json, key.trim_end());
                Some(())
            }
        }
    }

    /// A scalar whose first line is `text`; `indent` is that of its parent.
    fn scalar(&mut self, text: &str, indent: usize, in_mapping: bool) -> Option<()> {
        match text.as_bytes()[0] {
            b'"' | b'\'' => {
                let (value, rest) = quoted(text)?;
                if !rest.trim().is_empty() || self.continues(indent, in_mapping) {
                    return None;
                }
                push_string(&mut self.json, &value);
                Some(())
            }
            b'|' => self.literal(text, indent),
            _ if text == "{}" || text == "[]" => {
                self.json.push_str(text);
                Some(())
            }
            _ if is_indicator(text) => None,
            _ => self.plain(text, indent, in_mapping),
        }
    }

    /// Whether the next line goes on with the scalar before it.
    fn continues(&self, indent: usize, in_mapping: bool) -> bool {
        let next = self.lines.get(self.next);
        in_mapping && next.is_some_and(|line| line.indent > indent && !line.text.is_empty())
    }

    fn plain(&mut self, text: &str, indent: usize, in_mapping: bool) -> Option<()> {
        let text = text.trim_end();
        if has_notation(text) {
            return None;
        }
        if !self.continues(indent, in_mapping) {
            return self.resolve(text);
        }
        // A long text that was folded: each break is a space. Only words can be folded, so it is a string.
        let mut whole = text.to_owned();
        while self.continues(indent, in_mapping) {
            let line = self.lines[self.next].text.trim_end();
            if has_notation(line) || line.starts_with('#') {
                return None;
            }
            whole.push(' ');
            whole.push_str(line);
            self.next += 1;
        }
        if self.lines.get(self.next).is_some_and(|line| line.text.is_empty())
            && self.next + 1 < self.lines.len()
        {
            return None;
        }
        push_string(&mut self.json, &whole);
        Some(())
    }

    /// A plain scalar by its looks: null, a boolean, a number or a string.
    fn resolve(&mut self, text: &str) -> Option<()> {
        if !may_be_word(text) && !may_be_number(text) {
            push_string(&mut self.json, text);
            return Some(());
        }
        match text {
            "null" | "~" | "Null" | "NULL" => self.json.push_str("null"),
            "true" | "True" | "TRUE" => self.json.push_str("true"),
            "false" | "False" | "FALSE" => self.json.push_str("false"),
            // What older YAML takes for booleans is left to the parser that knows what Kubernetes' does.
            "y" | "Y" | "n" | "N" | "yes" | "Yes" | "YES" | "no" | "No" | "NO" | "on" | "On" | "ON"
            | "off" | "Off" | "OFF" => return None,
            _ if is_json_number(text) => self.json.push_str(text),
            _ if looks_numeric(text) => return None,
            _ => push_string(&mut self.json, text),
        }
        Some(())
    }

    /// `|`, `|-` and `|+`: the lines below as they are.
    fn literal(&mut self, header: &str, indent: usize) -> Option<()> {
        let chomp = match header.trim_end() {
            "|" => Chomp::Clip,
            "|-" => Chomp::Strip,
            "|+" => Chomp::Keep,
            _ => return None,
        };
        let mut text = String::new();
        let mut block_indent = None;
        while let Some(line) = self.lines.get(self.next) {
            if !line.text.is_empty() {
                if line.indent <= indent {
                    break;
                }
                let block_indent = *block_indent.get_or_insert(line.indent);
                for _ in block_indent..line.indent {
                    text.push(' ');
                }
                if line.indent < block_indent {
                    return None;
                }
                text.push_str(line.text);
            } else if line.indent > indent + 1 {
                // A line of spaces only may belong to the text; leave that to the general parser.
                return None;
            }
            text.push('\n');
            self.next += 1;
        }
        // The last line break of the document is not an empty line of the text.
        if self.next == self.lines.len() && text.ends_with('\n') && self.lines.last()?.text.is_empty() {
            text.pop();
        }
        match chomp {
            Chomp::Keep => {}
            Chomp::Strip => text.truncate(text.trim_end_matches('\n').len()),
            Chomp::Clip => {
                text.truncate(text.trim_end_matches('\n').len());
                if !text.is_empty() {
                    text.push('\n');
                }
            }
        }
        push_string(&mut self.json, &text);
        Some(())
    }

    fn comma(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.json.push(',');
        }
    }
}

/// The keys of a mapping so far.
struct Keys<'a> {
    first_line: usize,
    indent: usize,
    greatest: &'a str,
    /// Whether one of them is in quotes, or has a space before its colon.
    has_odd: bool,
}

fn quoted_key(key: &str) -> Option<String> {
    key.starts_with(['"', '\'']).then(|| quoted(key))?.map(|(text, _)| text)
}

enum Chomp {
    Clip,
    Strip,
    Keep,
}

fn skip_spaces(text: &str) -> &str {
    &text[text.bytes().take_while(|byte| *byte == b' ').count()..]
}

/// Whether a plain scalar may end in it: before a comment, or a key's colon.
fn has_notation(text: &str) -> bool {
    memchr::memchr2(b'#', b':', text.as_bytes()).is_some()
        && (text.contains(" #") || text.contains(": ") || text.ends_with(':'))
}

/// Whether a plain scalar may be one of the words that stand for something else.
fn may_be_word(text: &str) -> bool {
    text.len() <= "false".len()
        && matches!(
            text.as_bytes(),
            [b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'y' | b'Y' | b'o' | b'O', ..]
        )
}

/// Whether a plain scalar may be a number.
fn may_be_number(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9' | b'+' | b'-' | b'.', ..])
}

fn is_item(text: &str) -> bool {
    matches!(text.as_bytes(), [b'-'] | [b'-', b' ', ..])
}

/// The key and what follows its colon; none if the line is no entry of a mapping.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let end = match text.as_bytes().first()? {
        b'"' | b'\'' => {
            let (_, rest) = quoted(text)?;
            let end = text.len() - rest.len();
            rest.starts_with(':').then_some(end)?
        }
        _ => match memchr::memmem::find(text.as_bytes(), b": ") {
            Some(end) => end,
            None => text.strip_suffix(':')?.len(),
        },
    };
    let value = &text[end + 1..];
    (value.is_empty() || value.starts_with(' ')).then(|| (&text[..end], skip_spaces(value)))
}

/// What YAML gives a meaning at the start of a plain scalar.
fn is_indicator(text: &str) -> bool {
    let first = text.as_bytes()[0];
    let starts_word = || text.as_bytes().get(1).is_some_and(|byte| *byte != b' ');
    match first {
        b'-' | b'?' | b':' => !starts_word(),
        b'{' | b'}' | b'[' | b']' | b',' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%' | b'@' | b'`' => {
            true
        }
        _ => false,
    }
}

/// A quoted scalar that ends on its line, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.as_bytes()[0];
    let mut value = String::new();
    let mut rest = &text[1..];
    loop {
        let end = rest.bytes().position(|byte| byte == quote || (byte == b'\\' && quote == b'"'))?;
        value.push_str(&rest[..end]);
        let marker = rest.as_bytes()[end];
        rest = &rest[end + 1..];
        if marker == b'\\' {
            let (character, length) = match rest.as_bytes().first()? {
                b'n' => ('\n', 1),
                b't' => ('\t', 1),
                b'r' => ('\r', 1),
                b'0' => ('\0', 1),
                b'"' => ('"', 1),
                b'\\' => ('\\', 1),
                b'/' => ('/', 1),
                b'x' => (char::from_u32(u32::from_str_radix(rest.get(1..3)?, 16).ok()?)?, 3),
                b'u' => (char::from_u32(u32::from_str_radix(rest.get(1..5)?, 16).ok()?)?, 5),
                _ => return None,
            };
            value.push(character);
            rest = &rest[length..];
        } else if quote == b'\'' && rest.starts_with('\'') {
            value.push('\'');
            rest = &rest[1..];
        } else {
            return Some((value, rest));
        }
    }
}

fn is_json_number(text: &str) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if text.starts_with("-0") {
        // Minus zero is an integer in YAML and none in JSON.
        return false;
    }
    let mut rest = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    rest = &rest[whole..];
    if let Some(after) = rest.strip_prefix(b".") {
        let fraction = digits(after);
        if fraction == 0 {
            return false;
        }
        rest = &after[fraction..];
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let after = after.strip_prefix(b"+").or(after.strip_prefix(b"-")).unwrap_or(after);
        let exponent = digits(after);
        if exponent == 0 {
            return false;
        }
        rest = &after[exponent..];
    }
    rest.is_empty()
}

/// Whether YAML may take the text for a number that JSON writes differently or not at all: `0x1f`, `007`, `1_000`, `.5`,
/// `1:30`. UIDs and addresses start with digits as well, but are none.
fn looks_numeric(text: &str) -> bool {
    let body = text.trim_start_matches(['+', '-']);
    let bytes = body.as_bytes();
    match bytes {
        [b'.', ..] => true,
        [b'0', b'x' | b'X' | b'o' | b'b', rest @ ..] => {
            rest.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'_')
        }
        [b'0'..=b'9', ..] => {
            let mantissa =
                bytes.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b':'));
            let (mantissa, rest) = bytes.split_at(mantissa.count());
            let dots = mantissa.iter().filter(|byte| **byte == b'.').count();
            let exponent = match rest {
                [] => true,
                [b'e' | b'E', rest @ ..] => {
                    let rest = rest.strip_prefix(b"+").or(rest.strip_prefix(b"-")).unwrap_or(rest);
                    rest.iter().all(u8::is_ascii_digit)
                }
                _ => false,
            };
            dots <= 1 && exponent
        }
        _ => false,
    }
}

fn push_string(json: &mut String, text: &str) {
    json.push('"');
    let mut plain = 0;
    for (index, byte) in text.bytes().enumerate() {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            json.push_str(&text[plain..index]);
            plain = index + 1;
            match byte {
                b'"' => json.push_str("\\\""),
                b'\\' => json.push_str("\\\\"),
                b'\n' => json.push_str("\\n"),
                _ => json.push_str(&format!("\\u{byte:04x}")),
            }
        }
    }
    json.push_str(&text[plain..]);
    json.push('"');
}

#[cfg(test)]
mod tests;
