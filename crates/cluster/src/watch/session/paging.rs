//! Lists that come in pages, or in one answer.

use supercargo_api::path;
use supercargo_api::watch::{EventKind, PageWords, Written};
use supercargo_client::Call;

use super::Session;
use crate::watch::decoding::decode;
use crate::watch::pages::Pages;
use crate::watch::stop::{Asked, Stop, stop_of};

impl Session {
    /// Lists everything in pages of a size, or in one answer.
    pub(super) async fn list(&mut self, page_objects: Option<usize>) -> Result<(), Stop> {
        let mut listing = None;
        let mut pages = Pages::default();
        loop {
            let path = self.page_path(page_objects, pages.next());
            // What the first page has to wait for is told, and the list is tried again. A further one waits, lest everything begin anew.
            let (asked, server) = match pages.next() {
                "" => (Asked::List, self.server.clone().without_asked_retries()),
                _ => (Asked::NextPage, self.server.clone()),
            };
            let page = match server.fetch(&Call::get(path)).await {
                Ok(page) => page,
                Err(error) => return Err(stop_of(self.kind(), asked, &error)),
            };
            let unreadable = |reason: String| Stop::refused(format!("unreadable list: {reason}"));
            let page = PageWords::read(self.kind(), &page).map_err(unreadable)?;
            if page.metadata.resource_version.is_empty() {
                return Err(unreadable("it has no resourceVersion to go on from".to_owned()));
            }
            let mut read = match listing.take() {
                Some(listing) => listing,
                None => self.begin().await?,
            };
            for object in page.items.into_iter().flatten() {
                let object = decode(&self.telling.decoder, self.kind(), Written::Json(object.get()));
                self.tell_object(EventKind::Put, object, Some(&mut read)).await?;
            }
            if page.metadata.r#continue.is_empty() {
                return self.end(read, page.metadata.resource_version).await;
            }
            listing = Some(read);
            pages.turn(page.metadata.r#continue).map_err(Stop::refused)?;
        }
    }

    fn page_path(&self, page_objects: Option<usize>, next: &str) -> String {
        let mut query = self.selection();
        if let Some(limit) = page_objects {
            query = format!("&limit={limit}{query}");
        }
        if !next.is_empty() {
            query.push_str("&continue=");
            path::push_escaped(&mut query, next);
        }
        let path = path::of_kind(self.kind());
        match query.strip_prefix('&') {
            Some(query) => format!("{path}?{query}"),
            None => path,
        }
    }
}
