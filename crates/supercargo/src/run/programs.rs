//! Programs that the configuration wants beside the scheduler, as tasks of the process.

use supercargo_cluster::{Task, Tasks};
use supercargo_config::Program as ConfiguredProgram;
use supercargo_operations::metrics::Metrics;
use supercargo_operations::programs::{Patience, Program, keep_running};
use tokio::sync::watch;

/// Programs that run as long as the scheduler does.
#[derive(Debug)]
pub(super) struct Programs {
    stop: watch::Sender<()>,
    tasks: Vec<Task>,
}

impl Programs {
    /// Starts them. Those that cannot be started are tried again; nobody waits for them.
    pub(super) fn start(programs: &[ConfiguredProgram], metrics: &Metrics, tasks: &Tasks) -> Self {
        let (stop, stopped) = watch::channel(());
        let tasks = programs.iter().map(|program| {
            let mut stopped = stopped.clone();
            // Nothing is ever sent: that the sender is dropped says it.
            let stopped = async move { while stopped.changed().await.is_ok() {} };
            let work = keep_running(program_of(program), Patience::default(), metrics.clone(), stopped);
            tasks.spawn(format!("program {}", program.name), work)
        });
        Programs { tasks: tasks.collect(), stop }
    }

    /// Ends all of them at the same time, and waits for that.
    pub(super) async fn stop(self) {
        drop(self.stop);
        for mut task in self.tasks {
            task.ended().await;
        }
    }
}

fn program_of(configured: &ConfiguredProgram) -> Program {
    let ConfiguredProgram { name, command, working_dir } = configured.clone();
    let working_dir = Some(working_dir).filter(|folder| !folder.is_empty());
    Program { name, command, working_dir: working_dir.map(Into::into) }
}
