//! The plugin `Ageing`: a pod's priority rises by one for each second that it waits, so that every pod has its turn.

use supercargo_sdk::prelude::*;

/// Sorts waiting pods by their priority and the seconds that they have waited.
#[derive(Debug)]
pub struct Ageing;

impl Plugin for Ageing {
    const NAME: &'static str = "Ageing";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Ageing
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.queue_sort()
    }

    fn reads(&self) -> Reads {
        Reads::nothing().pod(&[PodField::Priority]).time()
    }
}

impl QueueSort for Ageing {
    fn less(&self, context: &Context<'_>, a: &QueuedPod, b: &QueuedPod) -> bool {
        self.rank(context, a) < self.rank(context, b)
    }

    fn rank(&self, context: &Context<'_>, pod: &QueuedPod) -> Option<QueueRank> {
        let since = pod.first_attempt_at.unwrap_or(pod.queued_at);
        let waited = context.now.since(since).as_secs().cast_signed();
        Some([-i64::from(pod.pod.priority()) - waited, since.nanoseconds()])
    }

    fn changes(&self) -> OrderChanges {
        OrderChanges::with_time(Duration::from_secs(1))
    }
}
