//! Tasks with names, each of which is heard of when it ends.
//!
//! A task that panics, or returns although it should go on for ever, leaves a process that looks alive and does not work.
//! So tasks are started through [`Tasks`] alone, and the [`Supervisor`] that owns them hears of every such end;
//! `crates/supercargo/tests/tidy.rs` looks for tasks that are started in other ways.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

/// How many ends of tasks may wait to be heard of. The first one is enough to end a process; what does not fit is logged.
const ENDS_WAITING_MAX: usize = 64;

/// Owns tasks. When it is dropped they are aborted, so none outlives the process that it belongs to.
#[derive(Debug)]
pub struct Supervisor {
    set: Arc<Mutex<JoinSet<()>>>,
    ends: mpsc::Receiver<TaskEnd>,
    told: mpsc::Sender<TaskEnd>,
}

/// Starts tasks that a [`Supervisor`] owns. Clones start tasks of the same supervisor.
#[derive(Clone, Debug)]
pub struct Tasks {
    set: Weak<Mutex<JoinSet<()>>>,
    told: mpsc::Sender<TaskEnd>,
    /// The runtime that the tasks run on; none for the runtime of whoever starts them.
    runtime: Option<Handle>,
}

/// One task that was started. Dropping this neither ends the task nor hides its end.
#[derive(Debug)]
pub struct Task {
    /// None if the supervisor had ended before, so that the task was never started.
    abort: Option<AbortHandle>,
    over: oneshot::Receiver<()>,
}

/// The end of a task that should have gone on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEnd {
    /// The name of the task.
    pub task: Cow<'static, str>,
    /// How it came to its end.
    pub cause: TaskEndCause,
}

/// How a task came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEndCause {
    /// It returned.
    Returned,
    /// It panicked with this message.
    Panicked(String),
}

/// Whether a task may end by returning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    /// It goes on until the process stops.
    Lasting,
    /// It may return.
    Finite,
}

impl Supervisor {
    /// A supervisor without tasks.
    #[expect(clippy::new_without_default, reason = "a supervisor is nothing that comes about by default")]
    pub fn new() -> Self {
        let (told, ends) = mpsc::channel(ENDS_WAITING_MAX);
        Supervisor { set: Arc::default(), ends, told }
    }

    /// Starts tasks of this supervisor.
    pub fn tasks(&self) -> Tasks {
        Tasks { set: Arc::downgrade(&self.set), told: self.told.clone(), runtime: None }
    }

    /// Waits for the next end of a task. Giving up the wait loses none.
    pub async fn next_end(&mut self) -> TaskEnd {
        match self.ends.recv().await {
            Some(end) => end,
            // The supervisor has a sender itself, so the channel never closes.
            None => std::future::pending().await,
        }
    }
}

impl Tasks {
    /// Starts tasks of the same supervisor on another runtime, whoever starts them.
    #[must_use]
    pub fn on(&self, runtime: Handle) -> Self {
        Tasks { runtime: Some(runtime), ..self.clone() }
    }

    /// Starts a task that goes on until the process stops. Its return and its panic are told to the supervisor.
    pub fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        self.start(name.into(), Span::Lasting, work)
    }

    /// Starts a task that may return: it does one thing, such as a request, or ends with the task that it works for. Only its
    /// panic is told to the supervisor.
    pub fn spawn_finite(
        &self,
        name: impl Into<Cow<'static, str>>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        self.start(name.into(), Span::Finite, work)
    }

    fn start(
        &self,
        name: Cow<'static, str>,
        span: Span,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        let (ended, over) = oneshot::channel::<()>();
        let Some(set) = self.set.upgrade() else { return Task { abort: None, over } };
        let told = self.told.clone();
        let supervised = async move {
            // Declared before the work, therefore dropped after it when the task is aborted.
            let ended = ended;
            #[cfg(feature = "test-faults")]
            let work = faults::with_fault(name.clone(), work);
            let cause = match caught(work).await {
                Ok(()) if span == Span::Finite => None,
                Ok(()) => Some(TaskEndCause::Returned),
                Err(message) => Some(TaskEndCause::Panicked(message)),
            };
            if let Some(cause) = cause
                && let Err(unheard) = told.try_send(TaskEnd { task: name, cause })
            {
                tracing::error!(err = %unheard.into_inner(), "A task has ended after too many others");
            }
            drop(ended);
        };
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        // What has ended is let go of, so that finite tasks do not pile up.
        while set.try_join_next().is_some() {}
        let abort = match &self.runtime {
            Some(runtime) => set.spawn_on(supervised, runtime),
            None => set.spawn(supervised),
        };
        Task { abort: Some(abort), over }
    }
}

impl Task {
    /// Waits until the task has ended, in whatever way.
    pub async fn ended(&mut self) {
        // The sender is never used: that it is dropped says that the task has ended.
        let _ = (&mut self.over).await;
    }

    /// Aborts the task, without waiting. The supervisor is not told.
    pub fn abort(&self) {
        if let Some(abort) = &self.abort {
            abort.abort();
        }
    }

    /// Aborts the task, and waits until nothing of it is left. The supervisor is not told.
    pub async fn end(mut self) {
        self.abort();
        self.ended().await;
    }
}

impl fmt::Display for TaskEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            TaskEndCause::Returned => write!(formatter, "task {} returned, but should go on", self.task),
            TaskEndCause::Panicked(message) => write!(formatter, "task {} panicked: {message}", self.task),
        }
    }
}

/// Runs work to its end; the message of its panic if it panics.
async fn caught(work: impl Future<Output = ()>) -> Result<(), String> {
    let mut work = Box::pin(work);
    poll_fn(move |context| {
        // Nobody looks at the work again after a panic.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic_message(&*panic))),
        }
    })
    .await
}

/// What a panic says.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Faults that an end-to-end test asks for.
#[cfg(feature = "test-faults")]
mod faults {
    use std::borrow::Cow;
    use std::future::Future;

    use tokio::signal::unix::{SignalKind, signal};

    /// The name of the task that panics when the process gets SIGUSR1.
    const TASK_VARIABLE: &str = "SUPERCARGO_TEST_FAULT_TASK";

    /// The work of a task, which panics on demand if it is the task that the environment names.
    pub(super) async fn with_fault(name: Cow<'static, str>, work: impl Future<Output = ()>) {
        #[expect(clippy::disallowed_methods, reason = "how a test of the whole process names a task")]
        let is_named = std::env::var(TASK_VARIABLE).is_ok_and(|named| named == name);
        if !is_named {
            return work.await;
        }
        let mut demand = signal(SignalKind::user_defined1()).expect("a test can listen for signals");
        tokio::select! {
            biased;
            _ = demand.recv() => panic!("asked to by a test"),
            () = work => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn the_end_of_a_task_is_told_with_its_name_and_reason() {
        let mut supervisor = Supervisor::new();
        let tasks = supervisor.tasks();
        tasks.spawn("returns", async {});
        let end = supervisor.next_end().await;
        assert_eq!(end.to_string(), "task returns returned, but should go on");
        tasks.spawn_finite("fails", async { panic!("number {}", 7) });
        let end = supervisor.next_end().await;
        assert_eq!(end.to_string(), "task fails panicked: number 7");
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_end_ends_unheard() {
        let mut supervisor = Supervisor::new();
        let tasks = supervisor.tasks();
        let mut finite = tasks.spawn_finite("finite", async {});
        finite.ended().await;
        tasks.spawn("aborted", pending()).end().await;
        let heard = timeout(Duration::from_secs(60), supervisor.next_end()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    #[tokio::test]
    async fn tasks_run_on_the_runtime_that_was_named_for_them() {
        let mut supervisor = Supervisor::new();
        let builder =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("other").build();
        let other = builder.expect("a runtime");
        let (told, heard) = oneshot::channel();
        supervisor.tasks().on(other.handle().clone()).spawn("elsewhere", async move {
            let _ = told.send(std::thread::current().name().map(str::to_owned));
        });
        assert_eq!(heard.await.expect("the task runs").as_deref(), Some("other"));
        // And its end is heard of here.
        assert_eq!(supervisor.next_end().await.task, "elsewhere");
        other.shutdown_background();
    }

    #[tokio::test]
    async fn no_task_outlives_its_supervisor() {
        let supervisor = Supervisor::new();
        let tasks = supervisor.tasks();
        let mut going_on = tasks.spawn("going on", pending());
        drop(supervisor);
        going_on.ended().await;
        // And none is started afterwards.
        tasks.spawn("late", pending()).ended().await;
    }
}
