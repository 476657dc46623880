//! Texts that many share.

use std::sync::Arc;

use rustc_hash::FxHashSet;

/// Each text once. Whoever has one gives it back with [`Texts::release`].
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: FxHashSet<Arc<str>>,
    bytes: usize,
}

impl Texts {
    pub(super) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = text.into();
        self.bytes += cost(text);
        self.texts.insert(shared.clone());
        shared
    }

    /// Forgets a text that nobody else has.
    pub(super) fn release(&mut self, text: &Arc<str>) {
        // One is ours, the other the one that is given back.
        if Arc::strong_count(text) == 2 && self.texts.remove(text) {
            self.bytes -= cost(text);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What a text takes: itself, its counters, and its place in a table that is not quite full.
fn cost(text: &str) -> usize {
    text.len() + 2 * size_of::<usize>() + 2 * size_of::<Arc<str>>()
}
