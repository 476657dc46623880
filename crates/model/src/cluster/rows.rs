//! A vector whose clones share what has not changed since.

use std::sync::Arc;

/// Rows in a chunk: a write to a shared chunk copies this many.
const CHUNK: usize = 64;

/// A growing list of rows, kept in chunks. A clone copies one pointer a chunk; a write copies a chunk only while
/// a clone still shares it.
#[derive(Clone, Debug)]
pub(super) struct Rows<T> {
    chunks: Vec<Arc<[T; CHUNK]>>,
    len: usize,
}

impl<T: Clone + Default> Rows<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK][index % CHUNK]
    }

    /// Whether a write to a row copies its chunk first.
    pub(super) fn is_shared(&self, index: usize) -> bool {
        Arc::strong_count(&self.chunks[index / CHUNK]) > 1
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut T {
        let chunk = &mut self.chunks[index / CHUNK];
        if Arc::strong_count(chunk) > 1 {
            unshare(chunk);
        }
        &mut Arc::get_mut(chunk).expect("nobody else has the chunk")[index % CHUNK]
    }

    pub(super) fn push(&mut self, row: T) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::new(std::array::from_fn(|_| T::default())));
        }
        self.len += 1;
        *self.get_mut(self.len - 1) = row;
    }
}

/// Copies a chunk. Rare, and so large that it would cost every write something if it stood there.
#[cold]
#[inline(never)]
fn unshare<T: Clone>(chunk: &mut Arc<[T; CHUNK]>) {
    Arc::make_mut(chunk);
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Rows { chunks: Vec::new(), len: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_does_not_see_later_writes_and_shares_the_rest() {
        let mut rows = Rows::default();
        for value in 0..200 {
            rows.push(value);
        }
        let before = rows.clone();
        *rows.get_mut(70) = 1000;
        rows.push(200);
        assert_eq!((*before.get(70), before.len()), (70, 200));
        assert_eq!((*rows.get(70), *rows.get(200), rows.len()), (1000, 200, 201));
        assert!(Arc::ptr_eq(&before.chunks[0], &rows.chunks[0]), "an untouched chunk is shared");
        assert!(!Arc::ptr_eq(&before.chunks[1], &rows.chunks[1]));
    }
}
