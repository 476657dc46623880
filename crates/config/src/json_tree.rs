//! JSON with the places of its parts. The parser of values does not tell them.

use serde_json::Error;

use crate::document::{Entry, Node, Tree};

/// The value of a text that is known to be JSON, and thereby to be no deeper than the parser of JSON allows.
pub(crate) fn parse(text: &str) -> Result<Node, Error> {
    Scanner { text, offset: 0, line: 1, line_start: 0 }.node()
}

struct Scanner<'a> {
    text: &'a str,
    offset: usize,
    line: u64,
    /// Where the line starts.
    line_start: usize,
}

impl<'a> Scanner<'a> {
    fn node(&mut self) -> Result<Node, Error> {
        let next = self.peek();
        let at = Some(self.at());
        let tree = match next {
            b'{' => Tree::Map(self.entries()?),
            b'[' => Tree::List(self.items()?),
            b'"' => Tree::String(serde_json::from_str(self.string())?),
            _ => match self.word() {
                "null" => Tree::Null,
                "true" => Tree::Bool(true),
                "false" => Tree::Bool(false),
                number => Tree::Number(serde_json::from_str(number)?),
            },
        };
        Ok(Node { tree, at })
    }

    fn entries(&mut self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        self.offset += 1;
        while !matches!(self.peek(), b'}' | 0) {
            let at = Some(self.at());
            let key = serde_json::from_str(self.string())?;
            self.pass(b':');
            let Node { tree, .. } = self.node()?;
            entries.push(Entry { key, at, tree });
            self.pass(b',');
        }
        self.offset += 1;
        Ok(entries)
    }

    fn items(&mut self) -> Result<Vec<Node>, Error> {
        let mut items = Vec::new();
        self.offset += 1;
        while !matches!(self.peek(), b']' | 0) {
            items.push(self.node()?);
            self.pass(b',');
        }
        self.offset += 1;
        Ok(items)
    }

    /// The first byte after white space; 0 at the end of the text.
    fn peek(&mut self) -> u8 {
        while let Some(byte) = self.byte(0).filter(u8::is_ascii_whitespace) {
            self.offset += 1;
            if byte == b'\n' {
                self.line += 1;
                self.line_start = self.offset;
            }
        }
        self.byte(0).unwrap_or(0)
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.offset + ahead).copied()
    }

    fn pass(&mut self, byte: u8) {
        if self.peek() == byte {
            self.offset += 1;
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> &'a str {
        let mut length = 1;
        while let Some(byte) = self.byte(length).filter(|byte| *byte != b'"') {
            length += if byte == b'\\' { 2 } else { 1 };
        }
        self.take(length + 1)
    }

    /// A number, or a name such as `true`.
    fn word(&mut self) -> &'a str {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let mut length = 0;
        while self.byte(length).filter(is_part).is_some() {
            length += 1;
        }
        // A step is always made, whatever the text is.
        self.take(length.max(1))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = self.text.get(self.offset..self.offset + length).unwrap_or_default();
        self.offset += length;
        taken
    }

    fn at(&self) -> (u64, u64) {
        let before = self.text.get(self.line_start..self.offset).unwrap_or_default();
        (self.line, before.chars().count() as u64 + 1)
    }
}
