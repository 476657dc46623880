//! The pages of plugins.

use core::net::SocketAddr;
use std::borrow::Cow;

use supercargo_framework::{Named, Page, PageRequest, Rendered};
use supercargo_model::Timestamp;

use super::Scheduler;
use super::catching::caught;

impl Scheduler {
    /// The plugins with a page, and what their pages are called, by the names of the plugins.
    pub fn pages(&self) -> Vec<(&'static str, Cow<'static, str>)> {
        let mut pages: Vec<_> = self.all_pages().map(|page| (page.name, page.run(Page::title))).collect();
        pages.sort_by_key(|(plugin, _)| *plugin);
        pages.dedup_by_key(|(plugin, _)| *plugin);
        pages
    }

    /// The addresses at which plugins want their pages served besides, by the names of the plugins.
    pub fn page_addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let own = |page: &Named<dyn Page>| Some((page.name, page.run(Page::address)?));
        let mut addresses: Vec<_> = self.all_pages().filter_map(own).collect();
        addresses.sort_by_key(|(plugin, _)| *plugin);
        addresses.dedup_by_key(|(plugin, _)| *plugin);
        addresses
    }

    /// The page of a plugin, as things are now; none if no plugin of that name has one. The error is for whoever asked.
    pub fn render(
        &mut self,
        plugin: &str,
        request: &PageRequest,
        now: Timestamp,
    ) -> Option<Result<Rendered, String>> {
        let page = self.all_pages().find(|page| page.name == plugin)?.clone();
        let (context, _) = self.engine.view(now);
        let rendered = caught(|| page.run(|page| page.render(&context, request)));
        Some(rendered.map_err(|panicked| panicked.to_string()))
    }

    fn all_pages(&self) -> impl Iterator<Item = &Named<dyn Page>> {
        self.engine.profiles().iter().flat_map(|profile| &profile.pages)
    }
}
