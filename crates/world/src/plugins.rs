//! What plugins leave behind: pages, memories, counts, and complaints about them.

use supercargo_engine::Observation;
use supercargo_framework::{Memory, PageRequest, Rendered};

use crate::name::short;
use crate::world::World;

impl World {
    /// The page of a plugin as somebody sees it who asks for this path below it: empty for the page itself, and a query goes behind a
    /// question mark.
    #[track_caller]
    pub fn page(&mut self, plugin: &str, path: &str) -> Rendered {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match self.scheduler.render(plugin, &PageRequest::new(path, query), self.now) {
            Some(Ok(page)) => page,
            Some(Err(error)) => panic!("{error}"),
            None => {
                let pages: Vec<&str> = self.scheduler.pages().iter().map(|(plugin, _)| *plugin).collect();
                panic!("no plugin {plugin:?} of this configuration has a page; these have one: {pages:?}")
            }
        }
    }

    /// What plugins remember.
    pub fn memory<M: Memory>(&mut self) -> Option<&M> {
        self.scheduler.memories().get::<M>()
    }

    /// What plugins counted with `acts.count` since the last time: `name`, or `name{label=value}`.
    pub fn counted(&mut self) -> Vec<String> {
        self.observe();
        std::mem::take(&mut self.counted)
    }

    /// What plugins did wrong since the last time: what they asked for and was not done, such as a write that they do not declare, and
    /// panics. A test of a plugin that does nothing wrong finds none.
    pub fn complaints(&mut self) -> Vec<String> {
        self.observe();
        std::mem::take(&mut self.complaints)
    }

    fn observe(&mut self) {
        for seen in self.scheduler.take_observations() {
            match seen {
                Observation::Counted { name, labels, .. } if labels.is_empty() => {
                    self.counted.push(name.into_owned());
                }
                Observation::Counted { name, labels, .. } => {
                    let labels: Vec<String> =
                        labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
                    self.counted.push(format!("{name}{{{}}}", labels.join(",")));
                }
                Observation::ActsRefused { plugin, refusal, .. } => {
                    self.complaints.push(format!("{plugin}: {}", refusal.words()));
                }
                Observation::PluginPanicked { plugin, pod, message } => {
                    let pod = short(&pod.namespace, &pod.name);
                    self.complaints.push(format!("{plugin} panicked for {pod}: {message}"));
                }
                _ => {}
            }
        }
    }
}
