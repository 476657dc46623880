//! Container images and how far they are spread over the cluster.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::node::ImageWords;

/// The number of an image name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(u32);

/// An image, by one of its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageState {
    /// Its size in bytes, as the first node to have it reported.
    pub size: i64,
    /// How many nodes have it.
    pub node_count: u32,
}

/// All image names that nodes report.
#[derive(Clone, Debug, Default)]
pub(super) struct ImageTable {
    ids: FxHashMap<Arc<str>, ImageId>,
    states: Vec<ImageState>,
}

impl ImageTable {
    pub(super) fn id(&self, name: &str) -> Option<ImageId> {
        self.ids.get(name).copied()
    }

    pub(super) fn state(&self, id: ImageId) -> ImageState {
        self.states[id.0 as usize]
    }

    /// The sizes of images.
    pub(super) fn sizes(&self, ids: &[ImageId]) -> Vec<i64> {
        ids.iter().map(|id| self.state(*id).size).collect()
    }

    /// Counts a node that has these images; its image names come back sorted, each once.
    pub(super) fn add_node(&mut self, images: &[ImageWords]) -> Box<[ImageId]> {
        let mut ids: Vec<ImageId> = Vec::new();
        for image in images {
            for name in &image.names {
                let id = self.intern(name);
                let state = &mut self.states[id.0 as usize];
                if ids.contains(&id) {
                    continue;
                }
                if state.node_count == 0 {
                    state.size = image.size_bytes;
                }
                state.node_count += 1;
                ids.push(id);
            }
        }
        ids.sort_unstable();
        ids.into()
    }

    pub(super) fn remove_node(&mut self, images: &[ImageId]) {
        for id in images {
            self.states[id.0 as usize].node_count -= 1;
        }
    }

    fn intern(&mut self, name: &str) -> ImageId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id =
            ImageId(u32::try_from(self.states.len()).expect("a cluster has fewer than 2^32 image names"));
        self.ids.insert(name.into(), id);
        self.states.push(ImageState::default());
        id
    }
}
