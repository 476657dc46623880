//! Does in the world what the scheduler orders.
//!
//! One task holds the orders and makes requests, a bounded number at a time. Bindings come first; conditions and events are
//! told when there is time, but what is said about one pod is said in order.

mod queues;
mod requests;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use supercargo_api::Recorder;
use supercargo_engine::{Order, PerformCounts, Ticket};
use supercargo_framework::{Conclusion, Effect, Subject};
use supercargo_model::Pod;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, error, warn};

use crate::backoff::Chance;
use crate::event_sink::Sink;
use crate::order_log::OrderLog;
use crate::tasks::{Task, Tasks};
use queues::{Job, Lane, Queues};
use requests::Requests;
use supercargo_client::ApiServer;
use supercargo_client::Clock;
use supercargo_client::WriteGate;

/// So many bindings may wait to be made; after that no further pod should be scheduled until there is room.
const BINDINGS_WAITING_MAX: usize = 1024;
/// How often it is looked whether something has to be said about events that go on and on.
const SERIES_INTERVAL: Duration = Duration::from_secs(60);

/// How long the first of some events waits for others before they are told. Nobody waits for an event, and telling many in one go
/// costs a fraction of telling each by itself, in a process that has nothing else to do and finds every cache cold.
const EVENTS_GATHERED_FOR: Duration = Duration::from_secs(1);

/// What a performer needs.
#[derive(Clone, Debug)]
pub struct PerformerOptions {
    /// Whom to tell. Events get a limit of the same size to themselves.
    pub server: ApiServer,
    /// What time it is.
    pub clock: Clock,
    /// The name of this machine; see [`supercargo_client::hostname`].
    pub hostname: String,
    /// What chance is drawn from, together with the hostname: waits between retries differ a little, and replicas with the
    /// same seed wait differently.
    pub seed: u64,
    /// What every write goes through.
    pub gate: WriteGate,
    /// Who owns the task that holds the orders.
    pub tasks: Tasks,
    /// Where failures of orders are told that no step waits for.
    pub(crate) log: OrderLog,
}

/// Does what it is told, by and by. It needs a tokio runtime.
#[derive(Debug)]
pub struct Performer {
    orders: mpsc::UnboundedSender<Order>,
    shared: Arc<Shared>,
    task: Task,
}

/// An order that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concluded {
    /// The order's number.
    pub ticket: Ticket,
    /// What came of it.
    pub outcome: OrderOutcome,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// The order ended like this.
    Ended(Conclusion),
    /// A pod was looked up: the text of the pod of that name, or none if there is no such pod; or why it could not be read.
    LookedUp(Result<Option<Bytes>, String>),
}

#[derive(Debug, Default)]
struct Shared {
    bindings_waiting: AtomicUsize,
    bound: AtomicU64,
    bindings_failed: AtomicU64,
    events_told: AtomicU64,
    events_lost: AtomicU64,
}

impl Performer {
    /// Starts a performer. How orders with a ticket went comes out of the receiver.
    pub fn start(options: PerformerOptions) -> (Self, mpsc::UnboundedReceiver<Concluded>) {
        // Orders are moved at once from here into queues that have limits. Of conclusions there are no more than of orders.
        let (orders, received) = mpsc::unbounded_channel();
        let (conclusions, concluded) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::default());
        let server = options.server.with_gate(options.gate);
        let mut chance = Chance::named(options.seed, &options.hostname);
        let dispatcher = Dispatcher {
            requests: Requests::new(server.clone(), options.clock.clone(), chance.fork()),
            sink: Sink::new(server.with_own_limit(), chance.fork()),
            recorder: Recorder::new(&options.hostname),
            queues: Queues::default(),
            events: EventsPhase::Nothing,
            running: FuturesUnordered::new(),
            clock: options.clock,
            conclusions,
            shared: shared.clone(),
            log: options.log,
        };
        let task = options.tasks.spawn_finite("performer", dispatcher.run(received));
        (Performer { orders, shared, task }, concluded)
    }

    /// Takes an order, to be carried out soon.
    pub fn perform(&self, order: Order) {
        if let Effect::Bind { .. } = order.effect {
            self.shared.bindings_waiting.fetch_add(1, Ordering::Relaxed);
        }
        if self.orders.send(order).is_err() {
            error!("the performer has ended, an order is lost");
        }
    }

    /// Whether further bindings are welcome. Whoever goes on regardless is not refused at once, but it gets no faster.
    pub fn has_room(&self) -> bool {
        self.shared.bindings_waiting.load(Ordering::Relaxed) < BINDINGS_WAITING_MAX
    }

    /// What was done so far.
    pub fn counts(&self) -> PerformCounts {
        let Shared { bound, bindings_failed, events_told, events_lost, .. } = &*self.shared;
        PerformCounts {
            bound: bound.load(Ordering::Relaxed),
            bindings_failed: bindings_failed.load(Ordering::Relaxed),
            events_told: events_told.load(Ordering::Relaxed),
            events_lost: events_lost.load(Ordering::Relaxed),
        }
    }

    /// Takes no more orders, and carries out the ones it has, as far as the time allows.
    pub async fn finish(self, patience: Duration) {
        let Performer { orders, mut task, .. } = self;
        drop(orders);
        if timeout(patience, task.ended()).await.is_err() {
            task.abort();
            warn!("not all orders could be carried out within {} s", patience.as_secs());
        }
    }
}

/// The task behind a [`Performer`].
struct Dispatcher {
    requests: Requests,
    sink: Sink,
    recorder: Recorder,
    queues: Queues,
    events: EventsPhase,
    /// Requests run inside this task: one that had a task of its own would be handed from task to task when its answer comes.
    running: FuturesUnordered<Pin<Box<dyn Future<Output = Done> + Send>>>,
    clock: Clock,
    conclusions: mpsc::UnboundedSender<Concluded>,
    shared: Arc<Shared>,
    log: OrderLog,
}

/// Whether events are told now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventsPhase {
    /// There are none.
    Nothing,
    /// They wait for others.
    Gathering,
    /// They are told until there are none left.
    Telling,
}

/// A request that is over.
struct Done {
    lane: Lane,
    ticket: Option<Ticket>,
    /// The pod that it was about, for the log.
    about: Option<Arc<Pod>>,
    outcome: OrderOutcome,
}

impl OrderOutcome {
    fn error(&self) -> Option<&str> {
        match self {
            OrderOutcome::Ended(conclusion) => conclusion.error(),
            OrderOutcome::LookedUp(found) => found.as_ref().err().map(String::as_str),
        }
    }
}

impl Dispatcher {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut series = interval(SERIES_INTERVAL);
        series.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // One timer, set when gathering begins: this loop turns several times for each pod.
        let mut gathered = pin!(sleep(Duration::ZERO));
        let mut is_open = true;
        while is_open || !self.running.is_empty() {
            tokio::select! {
                biased;
                // A panic ends this task, and the process with it: whether the request was carried out is not known, nor whether what
                // else is in memory is right. A new process reads everything anew.
                Some(done) = self.running.next(), if !self.running.is_empty() => self.finish(done),
                order = orders.recv(), if is_open => match order {
                    Some(order) => self.take(order),
                    None => {
                        is_open = false;
                        self.queues.push_calls(self.recorder.finish_all());
                    }
                },
                _ = series.tick(), if is_open => {
                    let calls = self.recorder.finish_old(self.clock.now());
                    self.queues.push_calls(calls);
                }
                () = &mut gathered, if self.events == EventsPhase::Gathering => self.events = EventsPhase::Telling,
            }
            // However much is going on, what is most urgent is known before the next request is made.
            while let Ok(order) = orders.try_recv() {
                self.take(order);
            }
            let phase = self.events_phase(is_open);
            if phase == EventsPhase::Gathering && self.events != phase {
                gathered.as_mut().reset(Instant::now() + EVENTS_GATHERED_FOR);
            }
            self.events = phase;
            self.start();
        }
    }

    fn events_phase(&self, is_open: bool) -> EventsPhase {
        match self.events {
            _ if !self.queues.has_events() => EventsPhase::Nothing,
            // Nothing else will come.
            _ if !is_open => EventsPhase::Telling,
            EventsPhase::Nothing => EventsPhase::Gathering,
            phase => phase,
        }
    }

    fn take(&mut self, order: Order) {
        let now = self.clock.now();
        self.queues.push(order, now);
        let dropped = self.queues.take_bindings_dropped();
        self.shared.bindings_waiting.fetch_sub(dropped, Ordering::Relaxed);
        for (ticket, conclusion) in self.queues.take_concluded() {
            self.conclude(Some(ticket), OrderOutcome::Ended(conclusion));
        }
    }

    /// Starts whatever may be started now.
    fn start(&mut self) {
        let tells_events = self.events == EventsPhase::Telling;
        while let Some(job) = self.queues.next(tells_events) {
            match job {
                Job::LookUp { ticket, pod } => {
                    let requests = self.requests.fork();
                    self.running.push(Box::pin(async move {
                        let outcome = OrderOutcome::LookedUp(requests.look_up(&pod).await);
                        Done { lane: Lane::LookUps, ticket, about: Some(pod), outcome }
                    }));
                }
                Job::Bind { ticket, pod, node } => {
                    crate::rest::binding_sent();
                    self.shared.bindings_waiting.fetch_sub(1, Ordering::Relaxed);
                    let (requests, lane) = (self.requests.fork(), Lane::Bindings(pod.uid.clone()));
                    self.spawn(
                        lane,
                        ticket,
                        Some(pod.clone()),
                        async move { requests.bind(&pod, &node).await },
                    );
                }
                Job::UpdateStatus { ticket, pod, condition, nomination } => {
                    let (mut requests, lane) = (self.requests.fork(), Lane::Statuses(pod.uid.clone()));
                    self.spawn(lane, ticket, Some(pod.clone()), async move {
                        requests.update_status(&pod, condition.as_ref(), &nomination).await
                    });
                }
                Job::Write { ticket, key, effect } => {
                    let mut requests = self.requests.fork();
                    self.spawn(Lane::Writes(key), ticket, None, async move { requests.write(&effect).await });
                }
                Job::Event { ticket, notice, at } => match self.recorder.record(&notice, at) {
                    Some(call) => {
                        let mut sink = self.sink.fork();
                        let about = match notice.about {
                            Subject::Pod(pod) => Some(pod),
                            Subject::Object { .. } => None,
                        };
                        self.spawn(Lane::Events, ticket, about, async move { told(sink.tell(&call).await) });
                    }
                    // It is counted with the one like it.
                    None => self.finish(Done {
                        lane: Lane::Events,
                        ticket,
                        about: None,
                        outcome: OrderOutcome::Ended(Conclusion::Done),
                    }),
                },
                Job::EventCall(call) => {
                    let mut sink = self.sink.fork();
                    self.spawn(Lane::Events, None, None, async move { told(sink.tell(&call).await) });
                }
            }
        }
        let lost = self.queues.take_events_lost() + self.recorder.take_lost();
        self.shared.events_lost.fetch_add(lost, Ordering::Relaxed);
    }

    fn spawn(
        &self,
        lane: Lane,
        ticket: Option<Ticket>,
        about: Option<Arc<Pod>>,
        work: impl Future<Output = Conclusion> + Send + 'static,
    ) {
        // Mapped, and not awaited in a future around it, which would have room for it twice.
        let done = move |conclusion| Done { lane, ticket, about, outcome: OrderOutcome::Ended(conclusion) };
        self.running.push(Box::pin(work.map(done)));
    }

    fn finish(&mut self, done: Done) {
        let Shared { bound, bindings_failed, events_told, events_lost, .. } = &*self.shared;
        let count = match (&done.lane, done.outcome.error()) {
            (Lane::Bindings(_), None) => Some(bound),
            (Lane::Bindings(_), Some(_)) => Some(bindings_failed),
            (Lane::Events, None) => Some(events_told),
            (Lane::Events, Some(_)) => Some(events_lost),
            _ => None,
        };
        if let Some(count) = count {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(error) = done.outcome.error() {
            let about = done.about.as_ref().map(|pod| pod.key()).unwrap_or_default();
            match (&done.lane, done.ticket) {
                // The scheduler says what failed, and what follows from it.
                (lane, Some(_)) => debug!(?lane, err = error, pod = about, "An order failed"),
                (Lane::Events, None) => self.log.event_lost(&about, error),
                (Lane::Writes(key), None) => self.log.change_lost(key, error),
                // Somebody waits for these.
                (Lane::LookUps | Lane::Bindings(_) | Lane::Statuses(_), None) => {}
            }
        }
        self.queues.finished(&done.lane);
        self.conclude(done.ticket, done.outcome);
    }

    fn conclude(&self, ticket: Option<Ticket>, outcome: OrderOutcome) {
        if let Some(ticket) = ticket {
            // It is no error if the driver has stopped and takes no conclusion.
            let _ = self.conclusions.send(Concluded { ticket, outcome });
        }
    }
}

fn told(result: Result<(), String>) -> Conclusion {
    match result {
        Ok(()) => Conclusion::Done,
        Err(error) => Conclusion::not_done(error),
    }
}

#[cfg(test)]
mod tests;
