//! Which name was meant.

use supercargo_model::nearest;

/// "did you mean …?", if one of the names is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, known).map(|known| format!("did you mean {known:?}?"))
}
