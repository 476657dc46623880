//! Names that are looked at in turns: so many at a time, and each before any of them a second time.

use serde::{Deserialize, Serialize};
use supercargo_framework::SharedMap;

/// The names that wait for their turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Turns {
    names: SharedMap<String, ()>,
    /// Whose turn was last. Those that come after it are next, so that no name waits for others that come again and again.
    last: Option<String>,
}

impl Turns {
    /// Has a name looked at; false if it waits already.
    pub(super) fn insert(&mut self, name: String) -> bool {
        self.names.insert(name, ()).is_none()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.find(|known| (**known).cmp(name)).is_some()
    }

    pub(super) fn remove(&mut self, name: &String) {
        self.names.remove(name);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes those out whose turn it is, up to so many.
    pub(super) fn take(&mut self, most: usize) -> Vec<String> {
        let after = self.last.as_ref().map(|last| self.names.after(last));
        let name = |(name, ()): (&String, &())| name.clone();
        let mut taken: Vec<String> = after.into_iter().flatten().take(most).map(name).collect();
        for name in &taken {
            self.names.remove(name);
        }
        // Then it is the turn of the first again.
        let first: Vec<String> = self.names.iter().take(most - taken.len()).map(name).collect();
        for name in &first {
            self.names.remove(name);
        }
        taken.extend(first);
        if let Some(last) = taken.last() {
            self.last = Some(last.clone());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_again_and_again_starve_nobody() {
        let mut turns = Turns::default();
        let busy = ["a", "b", "c"];
        for name in busy.into_iter().chain(["x", "y"]) {
            assert!(turns.insert(name.to_owned()));
        }
        assert!(!turns.insert("x".to_owned()) && turns.contains("x") && !turns.contains("z"));
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(turns.take(2).join(" "));
            for name in busy {
                turns.insert(name.to_owned());
            }
        }
        assert_eq!(seen, ["a b", "c x", "y a", "b c"]);
        turns.remove(&"a".to_owned());
        assert_eq!(turns.take(9), ["b", "c"]);
        assert!(turns.is_empty() && turns.take(9).is_empty());
    }
}
