//! Lists all objects of a kind, once, as text.

use bytes::Bytes;
use supercargo_model::KindId;

use super::discovery::is_served;
use super::pages::{PAGE_OBJECTS, Pages};
use supercargo_api::path;
use supercargo_api::watch::PageWords;
use supercargo_client::{ApiServer, Call, RequestError};

/// What to list.
#[derive(Clone, Copy, Debug)]
pub struct ListRequest<'a> {
    /// The kind.
    pub kind: KindId,
    /// Of which namespace; none for all.
    pub namespace: Option<&'a str>,
    /// Which objects of the kind; none for all.
    pub field_selector: Option<&'static str>,
}

/// All objects of a kind, as the server wrote them. Objects in lists do not say what they are.
#[derive(Clone, Debug, Default)]
pub struct WholeList {
    items: Vec<Bytes>,
}

/// Why a kind cannot be listed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ListError {
    /// The server does not know the kind.
    #[error("the server does not serve {api_version} {kind}", api_version = .0.api_version(), kind = .0.kind)]
    NotServed(KindId),
    /// The user may not read it.
    #[error("{0}")]
    Forbidden(String),
    /// The server did not answer, or something else than a list.
    #[error("cannot list {plural}: {reason}", plural = kind.plural)]
    Failed {
        /// The kind.
        kind: KindId,
        /// What the server said, or why it did not answer.
        reason: String,
    },
}

impl WholeList {
    /// The objects, each as JSON.
    pub fn items(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| std::str::from_utf8(item).expect("was read as text before"))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the objects of a page; where the next page begins, or nothing after the last.
    fn take_page(&mut self, kind: KindId, page: &Bytes) -> Result<String, String> {
        let words = PageWords::read(kind, page)?;
        let items = words.items.into_iter().flatten();
        self.items.extend(items.map(|item| page.slice_ref(item.get().as_bytes())));
        Ok(words.metadata.r#continue)
    }
}

/// Lists all objects of a kind, in pages.
pub async fn list(server: &ApiServer, request: ListRequest<'_>) -> Result<WholeList, ListError> {
    let failed = |reason| ListError::Failed { kind: request.kind, reason };
    let mut list = WholeList::default();
    let mut pages = Pages::default();
    let mut in_pages = true;
    loop {
        let path = page_path(request, in_pages, pages.next());
        match server.fetch(&Call::get(path)).await {
            Ok(page) => {
                let next = list.take_page(request.kind, &page).map_err(failed)?;
                if next.is_empty() {
                    return Ok(list);
                }
                pages.turn(next).map_err(failed)?;
            }
            // The list has become too old between two pages. As client-go does, everything is asked for at once then.
            Err(error) if error.code() == Some(410) && in_pages => {
                list = WholeList::default();
                pages = Pages::default();
                in_pages = false;
            }
            Err(error) => return Err(refusal(server, request.kind, error).await),
        }
    }
}

fn page_path(request: ListRequest<'_>, in_pages: bool, next: &str) -> String {
    let mut path = path::of_kind_in(request.kind, request.namespace);
    let mut separator = '?';
    let mut add = |name: &str, value: &str| {
        path.push(separator);
        separator = '&';
        path.push_str(name);
        path::push_escaped(&mut path, value);
    };
    if in_pages {
        add("limit=", &PAGE_OBJECTS.to_string());
    }
    if let Some(selector) = request.field_selector {
        add("fieldSelector=", selector);
    }
    if !next.is_empty() {
        add("continue=", next);
    }
    path
}

async fn refusal(server: &ApiServer, kind: KindId, error: RequestError) -> ListError {
    match error.code() {
        // A user without any rights gets 403 for kinds that do not exist, too.
        Some(code @ (403 | 404)) => match is_served(server, kind).await {
            Ok(false) => ListError::NotServed(kind),
            _ if code == 403 => {
                let KindId { group, plural, .. } = kind;
                ListError::Forbidden(format!(
                    "{error}; ask for the rule {{apiGroups: [{group:?}], resources: [{plural:?}], verbs: [\"list\"]}}"
                ))
            }
            _ => ListError::Failed { kind, reason: error.to_string() },
        },
        _ => ListError::Failed { kind, reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{PODS, PODS_NOT_FINISHED};
    use supercargo_client::fake::{Answer, Asked, Fake};

    const REQUEST: ListRequest<'static> = ListRequest { kind: PODS, namespace: None, field_selector: None };

    fn page(names: &[&str], next: &str) -> Answer {
        let items: Vec<_> =
            names.iter().map(|name| serde_json::json!({ "metadata": { "name": name } })).collect();
        let metadata = serde_json::json!({ "resourceVersion": "5", "continue": next });
        Answer::ok(
            &serde_json::json!({ "kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items })
                .to_string(),
        )
    }

    fn texts(list: &WholeList) -> Vec<&str> {
        list.items().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn pages_follow_each_other() {
        let fake = Fake::numbered(|number, _| match number {
            0 => page(&["a", "b"], "x/y"),
            _ => page(&["c"], ""),
        });
        let request =
            ListRequest { namespace: Some("shop"), field_selector: Some(PODS_NOT_FINISHED), ..REQUEST };
        let list = list(&ApiServer::new(fake.service(), None), request).await.expect("is served");
        assert_eq!(list.len(), 3);
        assert_eq!(texts(&list)[2], r#"{"metadata":{"name":"c"}}"#);
        let lines: Vec<String> = fake.requests().iter().map(Asked::line).collect();
        let selector = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
        assert_eq!(
            lines,
            [
                format!("GET /api/v1/namespaces/shop/pods?limit=500&{selector}"),
                format!("GET /api/v1/namespaces/shop/pods?limit=500&{selector}&continue=x%2Fy"),
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_has_become_too_old_is_asked_for_at_once() {
        let fake = Fake::numbered(|number, _| match number {
            0 => page(&["a"], "more"),
            1 => Answer::status(410, "too old"),
            _ => page(&["a", "b"], ""),
        });
        let list = list(&ApiServer::new(fake.service(), None), REQUEST).await.expect("is served");
        assert_eq!(list.len(), 2);
        assert_eq!(fake.requests()[2].line(), "GET /api/v1/pods");
    }

    /// A server that is broken, or a proxy that answers everything with the same page.
    #[tokio::test(start_paused = true)]
    async fn a_list_without_an_end_is_an_error() {
        let fake = Fake::new(|_| page(&["a"], "more"));
        let error = list(&ApiServer::new(fake.service(), None), REQUEST).await.expect_err("it never ends");
        let words = "cannot list pods: the server tells of a next page again and again: its continue token repeats itself";
        assert_eq!(error.to_string(), words);
        assert_eq!(fake.requests().len(), 2);

        let fake = Fake::numbered(|number, _| page(&[], &number.to_string()));
        let error = list(&ApiServer::new(fake.service(), None), REQUEST).await.expect_err("it never ends");
        assert!(error.to_string().contains("more than 10000 pages"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_there_is_told_from_what_is_forbidden() {
        let ask = async |code: u16, resources: &'static str| {
            let fake = Fake::new(move |asked| match &*asked.path {
                "/api/v1" => Answer::ok(resources),
                _ => Answer::status(code, "no"),
            });
            list(&ApiServer::new(fake.service(), None), REQUEST).await.expect_err("is refused")
        };
        let served = r#"{"kind":"APIResourceList","resources":[{"name":"pods"}]}"#;
        let unserved = r#"{"kind":"APIResourceList","resources":[]}"#;
        assert!(matches!(ask(404, unserved).await, ListError::NotServed(PODS)));
        assert!(matches!(ask(403, unserved).await, ListError::NotServed(PODS)));
        assert_eq!(ask(404, served).await.to_string(), "cannot list pods: no");
        assert_eq!(ask(404, "welcome").await.to_string(), "cannot list pods: no");
        let rule = r#"{apiGroups: [""], resources: ["pods"], verbs: ["list"]}"#;
        assert_eq!(ask(403, served).await.to_string(), format!("no; ask for the rule {rule}"));
        assert_eq!(ask(500, served).await.to_string(), "cannot list pods: no");
    }
}
