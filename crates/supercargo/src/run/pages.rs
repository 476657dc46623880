//! What a running scheduler serves.

use std::collections::BTreeMap;

use supercargo_client::MissingRights;
use supercargo_cluster::{Heartbeat, Progress, QueryLine, QueryStatuses};
use supercargo_operations::clock::time_of_day;
use supercargo_operations::leader::Watchdog;
use supercargo_operations::metrics::{self, Exposition};
use supercargo_operations::serve::{Check, Component, Note, Routes};
use tokio::sync::watch;

use super::decisions::{DECISIONS_PATH, DecisionsPage};
use super::plugin_pages::{PAGES_PATH, PluginPages};
use super::process::VERSION;

/// The version of kube-scheduler whose decisions, flags and metrics these are.
pub(crate) const EMULATED_VERSION: &str = "1.36";

/// What is served.
pub(super) struct Pages {
    pub(super) exposition: Exposition,
    pub(super) progress: Progress,
    pub(super) queries: QueryStatuses,
    pub(super) heartbeat: Heartbeat,
    pub(super) missing_rights: MissingRights,
    pub(super) watchdog: Option<Watchdog>,
    pub(super) config: watch::Receiver<serde_json::Value>,
    pub(super) decisions: DecisionsPage,
    pub(super) plugins: PluginPages,
    pub(super) flags: BTreeMap<String, String>,
}

impl Pages {
    pub(super) fn routes(self) -> Routes {
        let Pages {
            exposition,
            progress,
            queries,
            heartbeat,
            missing_rights,
            watchdog,
            config,
            decisions,
            plugins,
            flags,
        } = self;
        let candidate = watchdog.clone();
        let candidate =
            Check::new("lease", move || candidate.as_ref().map_or(Ok(()), Watchdog::check_access));
        let allowed = Check::new("rights", move || missing_rights.check());
        let leader = move || {
            let watchdog = watchdog.clone();
            Check::new("leaderElection", move || watchdog.as_ref().map_or(Ok(()), Watchdog::check))
        };
        let (absences, holds) = (progress.clone(), decisions.holds.clone());
        let notes = move || {
            // A standby is ready, but schedules nothing. Who leads is for users who are known.
            let standby = |reason| Note { summary: "not leading".to_owned(), reason: Some(reason) };
            let standby = holds.not_leading().map(standby);
            let absences = absences.absences().into_iter().map(|summary| Note { summary, reason: None });
            standby.into_iter().chain(absences).chain(queries.lines().into_iter().map(note)).collect()
        };
        let synced = Check::new("sched-handler-sync", move || progress.check());
        // A driver that no longer turns schedules nothing while its lease is renewed: only a restart helps.
        let turning = Check::new("driver", move || heartbeat.check());
        Routes::new()
            .health("/healthz", vec![Check::ping(), leader()])
            .health("/livez", vec![Check::ping(), turning])
            .health_with_notes("/readyz", vec![Check::ping(), leader(), candidate, synced, allowed], notes)
            .page("/metrics", metrics::CONTENT_TYPE, move || exposition.text())
            .object(DECISIONS_PATH, move |namespace, name| {
                let decisions = decisions.clone();
                async move { decisions.report(namespace, name).await }
            })
            .tree(PAGES_PATH, move |path, query| {
                let plugins = plugins.clone();
                async move { plugins.at(path, query).await }
            })
            .json("/configz", move || serde_json::json!({ "componentconfig": &*config.borrow() }))
            .slis()
            .zpages(component(), flags)
    }
}

fn note(QueryLine { summary, reason }: QueryLine) -> Note {
    Note { summary, reason }
}

/// What runs, for those who look at it.
fn component() -> Component {
    Component {
        name: "supercargo",
        version: VERSION,
        emulated_version: EMULATED_VERSION,
        started: time_of_day(),
        clock: time_of_day,
    }
}
