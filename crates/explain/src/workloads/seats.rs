//! How many pods a workload would create, and what each is called.

use std::sync::Arc;

use supercargo_model::{LabelLookup, Pod};

use super::words::{ActiveWords, WorkloadSpecWords};
use super::{PODS_MADE_MAX, Workload, WorkloadKind};

/// The label, and the annotation, of a pod that has an index in a Job.
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// How many pods there are to be.
#[derive(Debug, Default)]
pub(super) struct Seats {
    pub(super) wants: u64,
    pub(super) exists: u64,
    pub(super) missing: u64,
    /// Those that are missing, or the first of them.
    pub(super) seats: Vec<Seat>,
    /// What to tell about them.
    pub(super) remarks: Vec<String>,
}

/// A pod that is missing, by what tells it from the others.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) annotations: Vec<(&'static str, String)>,
    /// The node that it is for.
    pub(super) node: Option<Arc<str>>,
}

/// How many pods a workload is to have, other than a DaemonSet. `members` are those it has.
pub(super) fn seats(workload: &Workload, spec: &WorkloadSpecWords, members: &[&Arc<Pod>]) -> Seats {
    let mut seats = match workload.kind {
        WorkloadKind::StatefulSet => stateful(workload, members),
        WorkloadKind::Job | WorkloadKind::CronJob => job(workload, spec, members),
        _ => replicas(workload, members),
    };
    if workload.words.spec.paused {
        seats.remarks.push("it is paused: this is what it would create once it is resumed".to_owned());
    }
    if workload.words.spec.suspend || (workload.kind == WorkloadKind::CronJob && spec.suspend) {
        seats.remarks.push("it is suspended: this is what it would create once it is resumed".to_owned());
    }
    seats
}

impl Seat {
    pub(super) fn named(name: String) -> Self {
        Seat { name, labels: Vec::new(), annotations: Vec::new(), node: None }
    }
}

impl Seats {
    /// With what the workload's own status says to exist: its pods may not be here.
    fn count(wants: i64, here: usize, by_status: i64) -> Self {
        let wants = u64::try_from(wants).unwrap_or(0);
        let (here, by_status) = (here as u64, u64::try_from(by_status).unwrap_or(0));
        let mut remarks = Vec::new();
        if by_status > here && here < wants {
            remarks.push(format!(
                "{by_status} exist by its status, {here} of them here: add its pods; or leave out its status, and what \
                 is not here is taken to be missing"
            ));
        }
        let exists = here.max(by_status);
        Seats { wants, exists, missing: wants.saturating_sub(exists), seats: Vec::new(), remarks }
    }

    /// How many are made.
    fn made(&self) -> usize {
        usize::try_from(self.missing).unwrap_or(usize::MAX).min(PODS_MADE_MAX)
    }
}

/// Pods that are alike. As for its controller, one that is being deleted is there no more.
fn replicas(workload: &Workload, members: &[&Arc<Pod>]) -> Seats {
    let active = members.iter().filter(|pod| !pod.is_terminating()).count();
    let wants = workload.words.spec.replicas.unwrap_or(1);
    let mut seats = Seats::count(wants, active, workload.words.status.replicas);
    let name = &workload.words.metadata.name;
    seats.seats = (1..=seats.made()).map(|number| Seat::named(format!("{name}-new-{number}"))).collect();
    seats
}

/// Pods with numbers. One that is being deleted keeps its number until it is gone.
fn stateful(workload: &Workload, members: &[&Arc<Pod>]) -> Seats {
    let spec = &workload.words.spec;
    let name = &workload.words.metadata.name;
    let (start, wants) = (spec.ordinals.start.max(0), spec.replicas.unwrap_or(1).max(0));
    let end = start.saturating_add(wants);
    let ordinal = |pod: &&Arc<Pod>| pod.name.strip_prefix(&**name)?.strip_prefix('-')?.parse::<i64>().ok();
    let mut taken: Vec<i64> = members.iter().filter_map(ordinal).collect();
    taken.retain(|ordinal| (start..end).contains(ordinal));
    taken.sort_unstable();
    taken.dedup();
    let mut seats = Seats::count(wants, taken.len(), workload.words.status.replicas);
    // Of pods that are not here the lowest numbers are taken to be theirs: those were created first.
    let unseen = seats.exists.saturating_sub(taken.len() as u64);
    let mut first = start.saturating_add(i64::try_from(unseen).unwrap_or(i64::MAX));
    for ordinal in taken.iter().filter(|_| unseen > 0) {
        first = first.saturating_add(i64::from(*ordinal <= first));
    }
    let free = (first..end).filter(|ordinal| taken.binary_search(ordinal).is_err());
    seats.seats = free
        .take(seats.made())
        .map(|ordinal| {
            let pod_name = format!("{name}-{ordinal}");
            let labels = vec![
                ("statefulset.kubernetes.io/pod-name", pod_name.clone()),
                ("apps.kubernetes.io/pod-index", ordinal.to_string()),
            ];
            Seat { labels, ..Seat::named(pod_name) }
        })
        .collect();
    if spec.pod_management_policy != "Parallel"
        && let [next, _, ..] = &*seats.seats
    {
        let next = &next.name;
        seats.remarks.push(format!(
            "{next} is next; the others follow in their order, each once all before it are ready"
        ));
    }
    seats
}

/// The pods of a Job that has not finished, or of one run of a CronJob.
fn job(workload: &Workload, spec: &WorkloadSpecWords, members: &[&Arc<Pod>]) -> Seats {
    let is_run = workload.kind == WorkloadKind::CronJob;
    let status = &workload.words.status;
    let (succeeded, active_by_status) = match status.active {
        ActiveWords::Pods(active) if !is_run => (status.succeeded.max(0), active),
        _ => (0, 0),
    };
    if !is_run && status.is_finished() {
        return Seats { remarks: vec!["it has finished".to_owned()], ..Seats::default() };
    }
    // Without a policy that looks at failures, a pod that is being deleted is replaced at once.
    let waits = match spec.pod_replacement_policy.as_deref() {
        Some(policy) => policy == "Failed",
        None => spec.pod_failure_policy.is_some(),
    };
    let active: Vec<&&Arc<Pod>> = members.iter().filter(|pod| waits || !pod.is_terminating()).collect();
    let name = &workload.words.metadata.name;
    let parallelism = spec.parallelism.unwrap_or(1).max(0);
    let completions = spec.completions.or(spec.parallelism.is_none().then_some(1));
    let mut remarks = Vec::new();
    if is_run {
        remarks.push("one run of it".to_owned());
    }
    let failed = Indexes::parse(&status.failed_indexes);
    let wants = match completions {
        Some(completions) => {
            parallelism.min(completions.saturating_sub(succeeded).saturating_sub(failed.count())).max(0)
        }
        // Once one of them has found that there is no more work, no more are created.
        None if succeeded > 0 => parallelism.min(i64::try_from(active.len()).unwrap_or(i64::MAX)),
        None => parallelism,
    };
    let mut seats = Seats::count(wants, active.len(), active_by_status);
    let labels = |index: Option<i64>| {
        let job_name = if is_run { format!("{name}-new") } else { name.clone() };
        let mut labels = vec![("job-name", job_name.clone()), ("batch.kubernetes.io/job-name", job_name)];
        labels.extend(index.map(|index| (COMPLETION_INDEX, index.to_string())));
        labels
    };
    let seat = |name: String, index: Option<i64>| Seat {
        labels: labels(index),
        annotations: index.map(|index| (COMPLETION_INDEX, index.to_string())).into_iter().collect(),
        ..Seat::named(name)
    };
    seats.seats = if spec.completion_mode == "Indexed" {
        let mut taken = Indexes::parse(&status.completed_indexes);
        taken.0.extend(failed.0);
        let index = |pod: &&&Arc<Pod>| {
            let index = pod.labels.label(COMPLETION_INDEX).or(pod.annotations.label(COMPLETION_INDEX));
            index?.parse().ok().map(|index| (index, index))
        };
        taken.0.extend(active.iter().filter_map(index));
        let free = taken.free(completions.unwrap_or(0)).take(seats.made());
        free.map(|index| seat(format!("{name}-{index}-new"), Some(index))).collect()
    } else {
        (1..=seats.made()).map(|number| seat(format!("{name}-new-{number}"), None)).collect()
    };
    seats.remarks.splice(0..0, remarks);
    seats
}

/// Numbers as Jobs write them: `1,3-5,7`.
#[derive(Debug, Default)]
struct Indexes(Vec<(i64, i64)>);

impl Indexes {
    fn parse(text: &str) -> Self {
        let ranges = text.split(',').filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        });
        Indexes(ranges.filter(|(first, last): &(i64, i64)| (0..=*last).contains(first)).collect())
    }

    fn count(&self) -> i64 {
        self.0.iter().fold(0, |count: i64, (first, last)| count.saturating_add(last - first + 1))
    }

    /// The numbers below `end` that are not among these, lowest first.
    fn free(mut self, end: i64) -> impl Iterator<Item = i64> {
        self.0.sort_unstable();
        let mut ranges = self.0.into_iter().peekable();
        let mut next = 0;
        std::iter::from_fn(move || {
            while let Some((first, last)) = ranges.peek().copied()
                && first <= next
            {
                next = next.max(last.saturating_add(1));
                ranges.next();
            }
            let free = next;
            next = next.saturating_add(1);
            (free < end).then_some(free)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_as_jobs_write_them() {
        for (text, end, count, free) in [
            ("", 3, 0, vec![0, 1, 2]),
            ("0,2-3", 6, 3, vec![1, 4, 5]),
            ("1", 2, 1, vec![0]),
            ("0-1999999999", 2_000_000_001, 2_000_000_000, vec![2_000_000_000]),
            ("5-3,x,-1", 1, 0, vec![0]),
        ] {
            assert_eq!(Indexes::parse(text).count(), count, "{text}");
            assert_eq!(Indexes::parse(text).free(end).collect::<Vec<_>>(), free, "{text}");
        }
    }
}
