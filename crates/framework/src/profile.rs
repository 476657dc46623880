//! A profile: the plugins that decide for the pods of one `schedulerName`, in the order in which they run.

use std::fmt;
use std::sync::Arc;

use supercargo_model::Pod;

use crate::effects::Effect;
use crate::events::Enqueue;
use crate::memory::Memories;
use crate::observe::Observe;
use crate::page::Page;
use crate::plugin::{PluginInstance, Point};
use crate::points::{
    Bind, Filter, Permit, PostBind, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve,
    Score,
};
use crate::reads::Reads;

/// A plugin at one extension point.
pub struct Named<T: ?Sized> {
    /// The plugin's name.
    pub name: &'static str,
    /// The plugin's number in [`Profile::plugins`], the same at all points of the profile.
    pub number: usize,
    /// The plugin, as this point calls it.
    pub plugin: Arc<T>,
}

/// The plugins that decide for the pods of one `schedulerName`, at each point in the order in which they run.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the points' names are Kubernetes' own")]
pub struct Profile {
    /// The pods that are meant: those with this `spec.schedulerName`.
    pub scheduler_name: String,
    /// How many of the nodes to look at, in percent; all if none is given.
    pub percentage_of_nodes_to_score: Option<u8>,
    /// What all plugins of the profile read, together.
    pub reads: Option<Reads>,
    pub pre_enqueue: Vec<Named<dyn PreEnqueue>>,
    pub queue_sort: Vec<Named<dyn QueueSort>>,
    pub pre_filter: Vec<Named<dyn PreFilter>>,
    pub filter: Vec<Named<dyn Filter>>,
    pub post_filter: Vec<Named<dyn PostFilter>>,
    pub pre_score: Vec<Named<dyn PreScore>>,
    /// Score plugins with their weights.
    pub score: Vec<(Named<dyn Score>, i64)>,
    pub reserve: Vec<Named<dyn Reserve>>,
    pub permit: Vec<Named<dyn Permit>>,
    pub pre_bind: Vec<Named<dyn PreBind>>,
    pub bind: Vec<Named<dyn Bind>>,
    pub post_bind: Vec<Named<dyn PostBind>>,
    /// What each plugin reacts to; a plugin that is not here reacts to everything.
    pub enqueue: Vec<Named<dyn Enqueue>>,
    /// Who hears of changes between decisions.
    pub observe: Vec<Named<dyn Observe>>,
    /// Plugins with a page.
    pub pages: Vec<Named<dyn Page>>,
    plugins: Vec<PluginInstance>,
}

impl Profile {
    /// A profile without plugins.
    pub fn new(scheduler_name: impl Into<String>) -> Self {
        Profile { scheduler_name: scheduler_name.into(), ..Profile::default() }
    }

    /// Puts a plugin last at one point; false if it does not implement the point.
    pub fn add(&mut self, plugin: &PluginInstance, point: Point, weight: i64) -> bool {
        let id = (plugin.name, self.number_of(plugin));
        let added = match point {
            Point::PreEnqueue => push(&mut self.pre_enqueue, id, &plugin.pre_enqueue),
            Point::QueueSort => push(&mut self.queue_sort, id, &plugin.queue_sort),
            Point::PreFilter => push(&mut self.pre_filter, id, &plugin.pre_filter),
            Point::Filter => push(&mut self.filter, id, &plugin.filter),
            Point::PostFilter => push(&mut self.post_filter, id, &plugin.post_filter),
            Point::PreScore => push(&mut self.pre_score, id, &plugin.pre_score),
            Point::Score => {
                let mut scores = Vec::new();
                let added = push(&mut scores, id, &plugin.score);
                self.score.extend(scores.into_iter().map(|named| (named, weight)));
                added
            }
            Point::Reserve => push(&mut self.reserve, id, &plugin.reserve),
            Point::Permit => push(&mut self.permit, id, &plugin.permit),
            Point::PreBind => push(&mut self.pre_bind, id, &plugin.pre_bind),
            Point::Bind => push(&mut self.bind, id, &plugin.bind),
            Point::PostBind => push(&mut self.post_bind, id, &plugin.post_bind),
        };
        if added {
            self.admit(plugin);
        }
        added
    }

    /// Adds a plugin that does something apart from all points: it observes, or has a page. Nothing happens if it does not.
    pub fn add_apart(&mut self, plugin: &PluginInstance) {
        if plugin.observe.is_some() || plugin.page.is_some() {
            self.admit(plugin);
        }
    }

    /// Takes in what belongs to a plugin wherever it takes part.
    fn admit(&mut self, plugin: &PluginInstance) {
        let id = (plugin.name, self.number_of(plugin));
        if id.1 < self.plugins.len() {
            return;
        }
        self.reads = Some(match self.reads.take() {
            None => plugin.reads.clone(),
            Some(reads) => reads.and(plugin.reads.clone()),
        });
        push(&mut self.enqueue, id, &plugin.enqueue);
        push(&mut self.observe, id, &plugin.observe);
        push(&mut self.pages, id, &plugin.page);
        self.plugins.push(plugin.clone());
    }

    /// The number of a plugin among those that take part, or that it gets when it comes to them.
    fn number_of(&self, plugin: &PluginInstance) -> usize {
        let known = self.plugins.iter().position(|known| known.name == plugin.name);
        known.unwrap_or(self.plugins.len())
    }

    /// The plugins that take part anywhere.
    pub fn plugins(&self) -> &[PluginInstance] {
        &self.plugins
    }

    /// Whether a plugin has anything to say about such a pod; see [`Plugin::concerns`](crate::Plugin::concerns).
    pub fn concerns<T: ?Sized>(&self, named: &Named<T>, pod: &Pod) -> bool {
        self.plugins.get(named.number).is_some_and(|plugin| plugin.concerns(pod))
    }

    /// Whether a plugin has declared that it may order such an effect.
    pub fn may_order(&self, plugin: &str, effect: &Effect) -> bool {
        self.plugins.iter().any(|known| known.name == plugin && known.writes.cover(effect))
    }

    /// Makes the types that the plugins remember known.
    pub fn declare_memories(&self, memories: &mut Memories) {
        for plugin in &self.plugins {
            plugin.declare_memories(memories);
        }
    }
}

/// Puts a plugin last in the list of a point, under its name and number; false if it does not implement the point.
fn push<T: ?Sized>(list: &mut Vec<Named<T>>, id: (&'static str, usize), plugin: &Option<Arc<T>>) -> bool {
    let (name, number) = id;
    list.extend(plugin.iter().cloned().map(|plugin| Named { name, number, plugin }));
    plugin.is_some()
}

impl<T: ?Sized> Clone for Named<T> {
    fn clone(&self) -> Self {
        Named { name: self.name, number: self.number, plugin: self.plugin.clone() }
    }
}

impl<T: ?Sized> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
