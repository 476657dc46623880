//! The pages of plugins, made by the driver and served here.

use std::net::SocketAddr;

use supercargo_cluster::{Command, RenderedPage, Tasks};
use supercargo_config::PageAddress;
use supercargo_framework::{PageRequest, Rendered, escape_html};
use supercargo_operations::serve::{Content, PlainServer, Routes};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

/// Where the pages are: the one of a plugin below its name, so that rules of RBAC can allow those of one plugin.
pub(crate) const PAGES_PATH: &str = "/plugins";

/// Has the driver make pages.
#[derive(Clone)]
pub(super) struct PluginPages {
    pub(super) commands: mpsc::Sender<Command>,
}

impl PluginPages {
    /// What is at a path below [`PAGES_PATH`]: the page of a plugin, or the list of all.
    pub(super) async fn at(&self, path: String, query: String) -> Content {
        if path.is_empty() {
            return self.render(None, PageRequest::default()).await;
        }
        let (plugin, below) = path.split_once('/').unwrap_or((&path, ""));
        self.render(Some(plugin.to_owned()), PageRequest::new(below, query)).await
    }

    async fn render(&self, plugin: Option<String>, request: PageRequest) -> Content {
        let (answer, rendered) = oneshot::channel();
        let command = Command::Render { plugin, request, answer };
        let ended = || Content::Failed("the scheduler has ended".to_owned());
        if self.commands.send(command).await.is_err() {
            return ended();
        }
        match rendered.await {
            Err(_) => ended(),
            Ok(RenderedPage::List(pages)) => of_rendered(list(&pages)),
            Ok(RenderedPage::Page(rendered)) => of_rendered(rendered),
            Ok(RenderedPage::None) => Content::NotFound,
            Ok(RenderedPage::Failed(error)) => Content::Failed(error),
        }
    }

    /// Serves the pages that have an address of their own, there and for everybody: those that the configuration names, which must be
    /// free, and those that plugins have themselves, unless the configuration names others.
    pub(super) fn serve_alone(
        &self,
        configured: &[PageAddress],
        own: &[(&'static str, SocketAddr)],
        tasks: &Tasks,
    ) -> anyhow::Result<()> {
        for PageAddress { plugin, address } in configured {
            self.serve(plugin, PlainServer::listen(address.parse()?)?, tasks);
        }
        let is_configured = |plugin: &str| configured.iter().any(|page| page.plugin == plugin);
        for (plugin, address) in own.iter().filter(|(plugin, _)| !is_configured(plugin)) {
            match PlainServer::listen(*address) {
                Ok(server) => self.serve(plugin, server, tasks),
                // Another replica on the same host may have it. That is no reason not to schedule.
                Err(error) => {
                    warn!(plugin, %address, err = %error, "The page of a plugin is not served on its address");
                }
            }
        }
        Ok(())
    }

    fn serve(&self, plugin: &str, server: PlainServer, tasks: &Tasks) {
        info!(plugin, address = %server.address(), "Serving the page of a plugin");
        let (pages, name) = (self.clone(), plugin.to_owned());
        let routes = Routes::new().tree("", move |path, query| {
            let (pages, plugin) = (pages.clone(), name.clone());
            async move { pages.render(Some(plugin), PageRequest::new(path, query)).await }
        });
        tasks.spawn("server of a page", server.run(routes));
    }
}

fn list(pages: &[(&'static str, std::borrow::Cow<'static, str>)]) -> Rendered {
    let item = |(plugin, title): &(&'static str, std::borrow::Cow<'static, str>)| {
        let (plugin, title) = (escape_html(plugin), escape_html(title));
        format!("<li><a href=\"{PAGES_PATH}/{plugin}\">{title}</a> ({plugin})</li>\n")
    };
    let items: String = pages.iter().map(item).collect();
    let items = if items.is_empty() { "<li>No plugin has a page.</li>\n".to_owned() } else { items };
    Rendered::html(format!("<!doctype html>\n<title>Pages of plugins</title>\n<ul>\n{items}</ul>\n"))
}

fn of_rendered(rendered: Rendered) -> Content {
    if rendered.is_found {
        Content::Page { content_type: rendered.content_type, body: rendered.body }
    } else {
        Content::NotFound
    }
}
