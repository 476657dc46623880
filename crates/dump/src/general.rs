//! YAML of any style, by a general parser: slow, and the definition of what a document means.

use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location, MessageFormatter, Options, UserMessageFormatter};

use crate::fault::Fault;

/// A document, or an item of a list, in a style that kubectl does not write goes through a general parser, which takes some
/// fifty bytes of memory for each of its own. What is larger than this is refused instead.
pub const SLOW_YAML_BYTES_MAX: usize = 64 << 20;
/// Deeper nesting is refused: no object of Kubernetes has it, and every level takes stack.
const DEPTH_MAX: usize = 120;
/// So many values may stand in a document because of aliases: a few lines could be made into billions.
const ALIASED_VALUES_MAX: usize = 1_000_000;

/// The value of a YAML document.
pub(crate) fn value(yaml: &str) -> Result<Value, Fault> {
    if yaml.len() > SLOW_YAML_BYTES_MAX {
        return Err(Fault::new(
            0,
            format!(
                "YAML in a style that kubectl does not write is read up to {} MiB a document or item, and this has {}; \
                 print it as JSON instead",
                SLOW_YAML_BYTES_MAX >> 20,
                yaml.len() >> 20
            ),
        ));
    }
    serde_saphyr::from_str_with_options(yaml, options()).map_err(|error| {
        let error = error.without_snippet();
        let offset = error.location().and_then(|location| offset_of(yaml, location));
        Fault::new(offset.unwrap_or(0), reason(error))
    })
}

/// Where a location is. Not all have an offset; a line and a column they have.
fn offset_of(yaml: &str, location: Location) -> Option<usize> {
    if let Some(offset) = location.span().byte_offset() {
        return usize::try_from(offset).ok();
    }
    let (line, column) = (usize::try_from(location.line()).ok()?, usize::try_from(location.column()).ok()?);
    let start: usize = yaml.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let characters = yaml.get(start..)?.chars().take(column.saturating_sub(1));
    Some(start + characters.map(char::len_utf8).sum::<usize>())
}

fn options() -> Options {
    // What a document may take is limited by its size; these are for texts that mean more than they hold.
    serde_saphyr::options! {
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_aliases: ALIASED_VALUES_MAX,
            max_anchors: ALIASED_VALUES_MAX,
            max_merge_keys: ALIASED_VALUES_MAX,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED_VALUES_MAX },
    }
}

/// What is wrong, in words for those who wrote the text.
fn reason(error: &Error) -> String {
    match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            format!("its aliases stand for more than {ALIASED_VALUES_MAX} values")
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias stands inside of what it stands for".to_owned()
        }
        Error::UnknownAnchor { .. } => "there is no anchor of this name before the alias".to_owned(),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {key:?} stands here a second time")
        }
        Error::Eof { .. } => "the text ends too early: was it cut?".to_owned(),
        other => {
            let said = UserMessageFormatter.format_message(other).into_owned();
            match () {
                () if said.contains("recursion limit") || said.contains("nesting limit") => too_deep(),
                () if said.contains("mapping values are not allowed") => {
                    "a field cannot stand here: is this line, or the one above it, indented wrongly?"
                        .to_owned()
                }
                () => said,
            }
        }
    }
}

fn too_deep() -> String {
    format!("it is nested deeper than {DEPTH_MAX} levels")
}
