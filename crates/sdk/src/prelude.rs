//! What most plugins name: `use supercargo_sdk::prelude::*`.

pub use std::sync::Arc;
pub use std::time::Duration;

// With `#[serde(crate = "supercargo_sdk::serde")]` they need no dependency of one's own.
pub use serde::{Deserialize, Serialize};

pub use crate::{
    Actions, Acts, Args, Awaited, Bind, Change, ClusterEvent, Context, Cycle, Effect, Enqueue, Extensions,
    FieldProblems, Filter, Hint, Kind, KindId, LabelLookup, MAX_NODE_SCORE, Memories, Memory, News, NoArgs,
    NodeField, NodeRef, NodeScore, Normalization, Observe, OrderChanges, Page, PageRequest, Permit,
    PermitDecision, Plugin, Pod, PodField, PostBind, PostFilter, PostFilterResult, PreBind, PreEnqueue,
    PreFilter, PreFilterResult, PreScore, QueueRank, QueueSort, QueuedPod, Reads, Rehearsal, Rejections,
    Rendered, Reserve, Row, Score, SharedMap, Snapshot, Standing, Status, Step, Timestamp, Writes,
};
