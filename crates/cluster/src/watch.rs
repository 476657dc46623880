//! Keeps up with all objects of a kind.
//!
//! A watch lists what there is and then follows what changes. Where the server can, both are one stream
//! (`sendInitialEvents`), so that neither side holds a whole list; else the list comes in pages. After a broken connection it
//! goes on where it was, and only when the server no longer remembers that place (410 Gone) is everything listed again.
//!
//! No connection is waited for longer than [`SILENCE_MAX`](supercargo_client::SILENCE_MAX) without a byte: the server is asked to end
//! each watch sooner than that, and the next one goes on where it was. A connection that carries bytes and no event, or that is kept open beyond
//! that end, is not waited for either.
//!
//! Events are decoded as they come, from the bytes of the connection into the words that the scheduler reads: pods and nodes from protobuf, if
//! the server writes it and nobody wants their text, everything else from JSON. An object that
//! cannot be read stays as it was known, with a warning; it never ends a watch.

mod decoding;
mod discovery;
mod frames;
mod listing;
mod pages;
mod session;
mod stop;
mod whole_list;

use std::sync::Arc;

use supercargo_model::{Decoded, Decoder, Everything, KindId};
use tokio::sync::{mpsc, watch};

pub(crate) use discovery::is_served;
use session::Session;
use supercargo_client::ApiServer;
pub use whole_list::{ListError, ListRequest, WholeList, list};

/// Pods.
pub const PODS: KindId = KindId::POD;
/// Nodes.
pub const NODES: KindId = KindId::NODE;

/// The pods that kube-scheduler looks at: one that has run its course goes as if it were deleted.
pub const PODS_NOT_FINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// What to watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchRequest {
    /// The kind.
    pub kind: KindId,
    /// Which objects of the kind; none for all.
    pub field_selector: Option<&'static str>,
    /// Whether another watch has told of the kind before: then already the first list says what has vanished since.
    pub is_known: bool,
}

/// What a watch is asked to tell, and how it reads objects. Another one asks a watch that is running to tell everything again.
#[derive(Clone, Debug)]
pub(crate) struct Telling {
    /// The number of this one, which its events carry.
    pub(crate) number: u64,
    /// How objects are read.
    pub(crate) decoder: Arc<Decoder>,
    /// Only the objects that this selects are told.
    pub(crate) field_selector: Option<&'static str>,
}

/// Something that a watch tells.
#[derive(Debug)]
pub struct WatchEvent {
    /// What it is about.
    pub kind: KindId,
    /// How often the watch had been asked to tell everything again when it told this.
    pub telling: u64,
    /// What it tells.
    pub watched: Watched,
}

/// What a watch tells about a kind.
#[derive(Debug)]
pub enum Watched {
    /// A list begins: what is put until [`Watched::Listed`] is everything that there is. If another list begins before that,
    /// this one was broken off. What was told before stays true meanwhile, as far as it was.
    Began,
    /// An object came, or changed.
    Put(Decoded),
    /// An object went. This is how it was at last, or nothing but what it was known by, if that could not be read.
    Removed(Decoded),
    /// An object came or changed, and cannot be read: what was known of it stays as it was. The watch has said in the log which one it is.
    Unreadable,
    /// The list is complete. With everything that there is, unless it is the first list and nothing can have vanished.
    Listed(Option<Everything>),
    /// The server does not serve the kind, as its discovery says: there are no objects of it until it is served, or a list begins.
    Unserved,
    /// The server serves the kind, after it was told that it does not: there may be objects of it, and a list is to come.
    Served,
    /// The watch does not go on for now; it is tried again by and by, until something else is told.
    Stalled {
        /// Why it does not go on.
        reason: String,
    },
    /// The watch goes on after it was stalled.
    Resumed,
}

/// Watches a kind until the receiver is dropped.
///
/// A kind that the server does not serve is looked for again from time to time.
pub async fn watch(
    server: ApiServer,
    request: WatchRequest,
    decoder: Arc<Decoder>,
    seed: u64,
    sender: mpsc::Sender<WatchEvent>,
) {
    let field_selector = request.field_selector;
    let (_asking, asked) = watch::channel(Telling { number: 0, decoder, field_selector });
    watch_as_asked(server, request, asked, seed, sender).await;
}

/// The same, for a watch that may be asked to tell everything again.
pub(crate) async fn watch_as_asked(
    server: ApiServer,
    request: WatchRequest,
    asked: watch::Receiver<Telling>,
    seed: u64,
    sender: mpsc::Sender<WatchEvent>,
) {
    Session::new(server, request, asked, seed, sender).run().await;
}

#[cfg(test)]
mod tests;
