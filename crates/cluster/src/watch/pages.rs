//! The pages of a list, which has to come to an end.

/// How many objects a page of a list has.
pub(super) const PAGE_OBJECTS: usize = 500;
/// How many pages a list has at most. With so many objects a page that is more than any etcd holds.
const PAGES_MAX: usize = 10_000;

/// Where a list goes on.
#[derive(Debug, Default)]
pub(super) struct Pages {
    next: String,
    turned: usize,
}

impl Pages {
    /// The `continue` token of the next page; empty for the first.
    pub(super) fn next(&self) -> &str {
        &self.next
    }

    /// There is another page; an error says that there seems to be no last one.
    pub(super) fn turn(&mut self, next: String) -> Result<(), String> {
        self.turned += 1;
        if next == self.next {
            return Err("the server tells of a next page again and again: its continue token repeats itself"
                .to_owned());
        }
        if self.turned >= PAGES_MAX {
            return Err(format!("the server tells of more than {PAGES_MAX} pages: the list has no end"));
        }
        self.next = next;
        Ok(())
    }
}
