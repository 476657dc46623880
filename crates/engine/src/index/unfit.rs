//! Why a pod fits nowhere, from counts.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_framework::{Code, Context, Cycle, PreFilterResult, Rejections as RejectionsView, Status};
use supercargo_model::{Row, Snapshot};

use super::Question;
use super::base::Base;
use super::class::Indexed;
use super::groups::{GroupRows, Scratch};
use super::rejections::Rejections;
use super::table::{RowLog, Table};
use crate::filtering::Filters;

/// A pod that fits nowhere: what was said about each row, and how often.
pub(crate) struct Unfit<'a> {
    /// What filters say that look at one row.
    local: &'a Rejections,
    /// What filters say that count, and about how many rows.
    counted: Vec<(Status, usize)>,
    /// Which of those holds for a plane.
    of_plane: Vec<Option<u16>>,
    /// Which of those holds for a row that stands alone.
    of_single: Vec<(u32, u16)>,
    plane_of: &'a [u16],
    /// What holds for rows that pods are nominated to.
    nominated: &'a [(u32, Status)],
    pub(crate) class: KnownClass<'a>,
}

/// A pod that a PreFilter plugin refuses which is asked about each pod.
pub(crate) struct Refused<'a> {
    /// What it says.
    pub(crate) status: Status,
    pub(crate) class: KnownClass<'a>,
}

/// What is known of pods of the class of one that fits nowhere, for whoever tries to make room for it.
pub(crate) struct KnownClass<'a> {
    indexed: &'a Indexed,
    findings: Findings<'a>,
}

impl<'a> KnownClass<'a> {
    pub(super) fn new(indexed: &'a Indexed, findings: Findings<'a>) -> Self {
        KnownClass { indexed, findings }
    }

    /// Whether filters that count have a say: then trying out a node takes more than the class knows.
    pub(crate) fn is_counted(&self) -> bool {
        !self.indexed.filters.is_empty()
    }

    /// What was found out about nodes for such pods.
    pub(crate) fn findings(&self) -> Findings<'a> {
        self.findings
    }

    /// A cycle of the pod, as if PreFilter and PreScore had run for it, and the filters that have something to say. Plugins that are
    /// asked about each pod, and need at PostFilter what they worked out then, are asked once more.
    pub(crate) fn cycle<'q>(&self, question: &Question<'q>) -> (Cycle<'q>, Filters<'q>) {
        let Question { profile, context, pod, .. } = question;
        let Indexed { recipe, asked, state, .. } = self.indexed;
        let mut cycle = Cycle::resume(pod, context.clone(), state.clone());
        let mut skipped = recipe.names_without(*asked);
        for position in recipe.verdicts(pod) {
            let named = &profile.pre_filter[position];
            if profile.post_filter.iter().any(|later| later.number == named.number)
                && !matches!(named.run(|plugin| plugin.pre_filter(&mut cycle)), PreFilterResult::Skip)
            {
                skipped.remove(named.name);
            }
        }
        (cycle, Filters::with_skipped(profile, skipped))
    }
}

/// What PostFilter plugins found out about rows, with the version of the row that it holds for.
pub(super) type FindingTable = FxHashMap<FindingKey, (u32, Arc<dyn Any + Send + Sync>)>;

/// Whose finding it is, and about what.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FindingKey {
    /// The generation of the class, which belongs to one profile.
    class: u64,
    /// The number of the plugin in the profile, and below it the row: two numbers would take longer to hash.
    plugin_and_row: u64,
}

/// The findings of one class.
#[derive(Clone, Copy)]
pub(crate) struct Findings<'a> {
    table: &'a RefCell<FindingTable>,
    /// More of them are not kept.
    max: usize,
    class: u64,
    log: &'a RowLog,
}

impl<'a> Findings<'a> {
    pub(super) fn new(table: &'a RefCell<FindingTable>, max: usize, class: u64, log: &'a RowLog) -> Self {
        Findings { table, max, class, log }
    }

    /// What a plugin found out about a row, if the row has not changed since.
    pub(crate) fn recall(&self, plugin: usize, row: Row) -> Option<Arc<dyn Any + Send + Sync>> {
        let table = self.table.borrow();
        let (version, finding) = table.get(&self.key(plugin, row))?;
        (*version == self.log.version(row.0)).then(|| finding.clone())
    }

    pub(crate) fn remember(&self, plugin: usize, row: Row, finding: Arc<dyn Any + Send + Sync>) {
        let mut table = self.table.borrow_mut();
        if table.len() >= self.max {
            table.clear();
        }
        table.insert(self.key(plugin, row), (self.log.version(row.0), finding));
    }

    fn key(&self, plugin: usize, row: Row) -> FindingKey {
        FindingKey { class: self.class, plugin_and_row: (plugin as u64) << u32::BITS | u64::from(row.0) }
    }
}

impl<'a> Unfit<'a> {
    /// Whether it can be told why the pod fits nowhere: there are not too many reasons, and no filter that counts goes before one that
    /// rejects a row by itself.
    pub(super) fn is_known(indexed: &Indexed, base: &mut Base, table: &Table, context: &Context<'_>) -> bool {
        if indexed.filters.iter().any(|filter| filter.filter.rejections().is_empty()) {
            return false;
        }
        let Some(rejections) = base.rejections(context, table) else { return false };
        let filters = &indexed.plugins.filters;
        let late = filters.iter().filter(|filter| filter.is_late && !indexed.filters.is_empty());
        let mut late = late.map(|filter| filter.named.name);
        !late
            .any(|late| rejections.counts().any(|(status, count)| count > 0 && status.plugin() == Some(late)))
    }

    /// For a pod whose reasons are known.
    pub(super) fn new(
        indexed: &'a Indexed,
        base: &'a Base,
        scratch: &'a Scratch,
        findings: Findings<'a>,
    ) -> Option<Self> {
        let class = KnownClass::new(indexed, findings);
        let local = base.known_rejections()?;
        let plane_of = indexed.planes.as_ref().map_or(&*base.part_of, |planes| &*planes.of_row);
        let plane_count = indexed.planes.as_ref().map_or(base.planes.len(), |planes| planes.planes.len());
        let mut unfit = Unfit {
            local,
            counted: Vec::new(),
            of_plane: vec![None; plane_count],
            of_single: Vec::new(),
            plane_of,
            nominated: &scratch.nominated,
            class,
        };
        for (member, nodes) in scratch.members.iter().zip(&scratch.nodes) {
            let (filter, rejection) = member.rejected?;
            let filter = &indexed.filters[usize::from(filter)];
            let status = filter.filter.rejections()[usize::from(rejection)].clone().from_plugin(filter.name);
            let number = unfit.counted.iter().position(|(known, _)| *known == status).unwrap_or_else(|| {
                unfit.counted.push((status, 0));
                unfit.counted.len() - 1
            });
            unfit.counted[number].1 += *nodes as usize;
            match member.rows {
                GroupRows::Plane(plane) => unfit.of_plane[usize::from(plane)] = Some(number as u16),
                GroupRows::Single(row) => unfit.of_single.push((row, number as u16)),
            }
        }
        Some(unfit)
    }

    /// The different answers, and how many rows got each.
    pub(crate) fn counts(&self) -> Vec<(&Status, usize)> {
        let counted = self.counted.iter().map(|(status, count)| (status, *count));
        let mut counts: Vec<(&Status, usize)> = self.local.counts().chain(counted).collect();
        for (row, status) in self.nominated {
            // It is counted under what would hold without those pods, unless it would be feasible then.
            let otherwise = self.without_nominees(*row);
            let counted = otherwise.and_then(|status| counts.iter_mut().find(|(known, _)| *known == status));
            if let Some((_, count)) = counted {
                *count -= 1;
            }
            counts.push((status, 1));
        }
        counts
    }

    /// The plugins that rejected the pod anywhere.
    pub(crate) fn plugins(&self) -> BTreeSet<&'static str> {
        self.plugins_that(Status::is_rejected)
    }

    /// The plugins that wait for something outside.
    pub(crate) fn pending(&self) -> BTreeSet<&'static str> {
        self.plugins_that(|status| status.code() == Code::Pending)
    }

    fn plugins_that(&self, said: impl Fn(&Status) -> bool) -> BTreeSet<&'static str> {
        let counts = self.counts().into_iter().filter(|(status, count)| *count > 0 && said(status));
        counts.filter_map(|(status, _)| status.plugin()).collect()
    }

    fn without_nominees(&self, row: u32) -> Option<&Status> {
        if let Some(status) = self.local.of(Row(row)) {
            return Some(status);
        }
        let single = self.of_single.iter().find(|(single, _)| *single == row).map(|(_, number)| *number);
        let number = single.or_else(|| {
            let plane = *self.plane_of.get(row as usize)?;
            self.of_plane.get(usize::from(plane)).copied().flatten()
        })?;
        Some(&self.counted[usize::from(number)].0)
    }
}

/// What holds for a row of which nothing is known, because there is no node in it.
static NOTHING: Status = Status::success();

impl RejectionsView for Unfit<'_> {
    fn pre_filter_message(&self) -> Option<&str> {
        None
    }

    fn status(&self, row: Row) -> &Status {
        let nominated = self.nominated.iter().find(|(nominated, _)| *nominated == row.0);
        match nominated {
            Some((_, status)) => status,
            None => self.without_nominees(row.0).unwrap_or(&NOTHING),
        }
    }

    fn count(&self, _: &Snapshot, code: Code) -> usize {
        let with_code = self.counts().into_iter().filter(|(status, _)| status.code() == code);
        with_code.map(|(_, count)| count).sum()
    }
}
