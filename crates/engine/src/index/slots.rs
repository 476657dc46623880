//! Lists whose places are given to others when they become free.

/// Puts a value into the first free place of a list.
pub(super) fn place<T>(list: &mut Vec<Option<T>>, value: T) -> usize {
    match list.iter().position(Option::is_none) {
        Some(free) => {
            list[free] = Some(value);
            free
        }
        None => {
            list.push(Some(value));
            list.len() - 1
        }
    }
}
