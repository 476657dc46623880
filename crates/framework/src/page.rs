//! Pages of a plugin: what it knows, for people and programs that look at a running scheduler.

use core::net::SocketAddr;
use std::borrow::Cow;

use serde_json::Value;

use crate::cycle::Context;

/// Shows what a plugin knows: what it has remembered, and what it makes of the cluster.
///
/// The page of a plugin is at `/plugins/NAME` of the scheduler's port, for those who may read that path, and on an address of its own
/// if the `SupercargoConfiguration` names one. A plugin that lists `.page()` has its page as soon as a profile has it at any point, or
/// names it under `multiPoint`; if several profiles have it, by the arguments of the first. No pod is tried while a page is made, so
/// it must not take long. A panic here is the answer to whoever asked, and nothing else is lost.
#[diagnostic::on_unimplemented(message = "`{Self}` lists `.page()` but does not implement `Page`")]
pub trait Page: Send + Sync {
    /// What the page is called in the list of all pages.
    fn title(&self) -> Cow<'static, str>;

    /// Where the page is served besides, if no configuration names an address for it: for everybody who can reach that address. If it is
    /// taken when the scheduler starts, there is a warning, and the page is at its path only.
    fn address(&self) -> Option<SocketAddr> {
        None
    }

    /// Makes the page as things are now.
    fn render(&self, context: &Context<'_>, request: &PageRequest) -> Rendered;
}

/// What somebody asks a page for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRequest {
    /// The path below the page, without a slash before it: empty for the page itself.
    pub path: String,
    /// What follows a question mark, as it was written.
    pub query: String,
}

impl PageRequest {
    /// Asks for what is at a path below the page.
    pub fn new(path: impl Into<String>, query: impl Into<String>) -> Self {
        PageRequest { path: path.into(), query: query.into() }
    }
}

/// A page as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// Whether there is such a page at all.
    pub is_found: bool,
    /// What the body is, such as `text/html; charset=utf-8`.
    pub content_type: Cow<'static, str>,
    /// The page.
    pub body: String,
}

impl Rendered {
    /// Plain text.
    pub fn text(body: impl Into<String>) -> Self {
        Rendered::new("text/plain; charset=utf-8", body)
    }

    /// HTML. What comes from the cluster has to be escaped: [`escape_html`].
    pub fn html(body: impl Into<String>) -> Self {
        Rendered::new("text/html; charset=utf-8", body)
    }

    /// JSON.
    pub fn json(value: &Value) -> Self {
        Rendered::new("application/json", format!("{value}\n"))
    }

    /// There is nothing at the path that was asked for.
    pub fn not_found() -> Self {
        Rendered { is_found: false, ..Rendered::text("404 page not found\n") }
    }

    /// A page of some other type.
    pub fn new(content_type: impl Into<Cow<'static, str>>, body: impl Into<String>) -> Self {
        Rendered { is_found: true, content_type: content_type.into(), body: body.into() }
    }
}

/// A text as it has to be written in HTML, between tags and in quoted attributes.
pub fn escape_html(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::escape_html;

    #[test]
    fn no_text_can_become_a_tag_or_end_an_attribute() {
        for (text, expected) in [
            ("", ""),
            ("web-1", "web-1"),
            ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;"),
            ("&lt;", "&amp;lt;"),
            ("ü<", "ü&lt;"),
        ] {
            assert_eq!(escape_html(text), expected);
        }
    }
}
