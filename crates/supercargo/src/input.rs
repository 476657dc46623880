//! Files that a command reads; `-` is standard input.

use std::io::Read;
use std::{fs, io};

use anyhow::Context;

/// What messages call a file.
pub(crate) fn display_name(file: &str) -> &str {
    if file == "-" { "<stdin>" } else { file }
}

pub(crate) fn read(file: &str) -> anyhow::Result<String> {
    let text = if file == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    text.with_context(|| format!("cannot read {}", display_name(file)))
}
