//! Another configuration for a scheduler that runs: from the file through the driver to the watches.

use std::sync::Mutex;

use supercargo_cluster::{QueryStatuses, Supervisor};
use supercargo_operations::metrics::Exposition;
use supercargo_operations::reload::FileWatch;

use super::*;
use crate::run::reload::Reloading;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
const PLAIN: &str = "{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: '*'}], \
    enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, {name: DefaultBinder}]}}}";
const VOLUMES: &str = "{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: '*'}], \
    enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, {name: VolumeBinding}, {name: DefaultBinder}]}}}";
const BUDGETS: &str = "{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: '*'}], \
    enabled: [{name: PrioritySort}, {name: DefaultPreemption}, {name: NodeResourcesFit}, {name: DefaultBinder}]}}}";
const SECOND: &str = "{schedulerName: second, plugins: {multiPoint: {disabled: [{name: '*'}], \
    enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, {name: DefaultBinder}]}}}";

/// A scheduler whose configuration file a test writes.
pub(super) struct Reloaded {
    pub(super) server: Server,
    text: Arc<Mutex<String>>,
    shown: watch::Receiver<serde_json::Value>,
    pub(super) exposition: Exposition,
    pub(super) queries: QueryStatuses,
    pods: usize,
    _supervisor: Supervisor,
}

impl Reloaded {
    async fn start() -> Self {
        Reloaded::start_with(supercargo_plugins::registry(), PLAIN).await
    }

    pub(super) async fn start_with(registry: Registry, profile: &str) -> Self {
        let server = Server::with_pods(&[]);
        let text = Arc::new(Mutex::new(format!("{HEAD}profiles: [{profile}]\n")));
        let read = text.clone();
        let files =
            Files::from_fn(move |_| Ok(read.lock().expect("no test panics here").clone().into_bytes()));
        let line = CommandLine::try_parse_from(["supercargo", "run", "--config=/c.yaml"]).expect("flags");
        let crate::Command::Run(flags) = line.command else { panic!("not run") };
        let settings = Settings::of(&flags, &registry, &files).expect("a configuration");
        let running = settings.running_config();
        let supervisor = Supervisor::new();
        let began = Instant::now();
        let clock = Clock::from_fn(move || Timestamp::from_seconds(1_800_000_000).after(began.elapsed()));
        let (metrics, exposition) = Metrics::new();
        let (commands, commanded) = mpsc::channel(1);
        let options = DriverOptions {
            scheduler: Scheduler::new(settings.profiles, settings.scheduler),
            server: server.api_server(),
            clock,
            hostname: "host".to_owned(),
            seed: 1,
            extenders: Vec::new(),
            gate: WriteGate::always_open(),
            memories: None,
            tasks: supervisor.tasks(),
            query_tasks: supervisor.tasks(),
        };
        let driver =
            Driver::start(options, RunObserver::new(metrics.clone(), SharedJournal::default()), commanded);
        let queries = driver.queries();
        supervisor.tasks().spawn("driver", driver.run(std::future::pending()));
        let (shown, config) = watch::channel(serde_json::Value::Null);
        let reloading = Reloading { flags: *flags, registry, running, commands, shown, metrics };
        let file: FileWatch = settings.file.expect("there is a file");
        supervisor.tasks().spawn("reload", reloading.follow(file));
        // Everything is listed.
        sleep(Duration::from_secs(1)).await;
        Reloaded { server, text, shown: config, exposition, queries, pods: 0, _supervisor: supervisor }
    }

    pub(super) fn write(&self, profiles: &[&str]) {
        let text = format!("{HEAD}profiles: [{}]\n", profiles.join(", "));
        *self.text.lock().expect("no test panics here") = text;
    }

    /// A pod that comes now is bound at once.
    async fn works(&mut self) {
        self.pods += 1;
        self.server.add_pod(&format!("p{}", self.pods));
        sleep(Duration::from_millis(200)).await;
        assert_eq!(self.server.bound().len(), self.pods);
    }

    fn shows(&self, word: &str) -> bool {
        self.shown.borrow().to_string().contains(word)
    }

    fn count(&self, result: &str) -> u32 {
        let line = format!("supercargo_config_reloads_total{{result=\"{result}\"}} ");
        let text = self.exposition.text();
        let value = text.lines().find_map(|text| text.strip_prefix(&line));
        value.map_or(0, |value| value.parse().expect("a number"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_configuration_whose_kinds_cannot_be_listed_is_refused_and_the_old_one_goes_on() {
    let mut reloaded = Reloaded::start().await;
    reloaded.works().await;
    reloaded.server.forbid(Some("persistentvolumes"));
    reloaded.write(&[VOLUMES]);
    let changed = Instant::now();
    while reloaded.count("error") == 0 {
        assert!(changed.elapsed() <= Duration::from_secs(33), "{:?}", changed.elapsed());
        reloaded.works().await;
        sleep(Duration::from_secs(1)).await;
    }
    assert!(changed.elapsed() >= Duration::from_secs(30), "{:?}", changed.elapsed());
    assert!(!reloaded.shows("VolumeBinding"));
    assert_eq!(reloaded.count("success"), 0);
    reloaded.works().await;
    let watches = |reloaded: &Reloaded| {
        ["persistentvolumes", "storageclasses"].map(|kind| reloaded.server.watches_opened(kind))
    };
    let opened = watches(&reloaded);
    assert!(opened.iter().all(|count| *count > 0), "{opened:?}");
    sleep(Duration::from_secs(300)).await;
    assert_eq!(watches(&reloaded), opened, "what only the refused one would have read is not watched");

    // As soon as it may be read, the same configuration is taken up; the file has to change for it.
    reloaded.server.forbid(None);
    reloaded.write(&[VOLUMES, ""]);
    sleep(Duration::from_secs(2)).await;
    assert!(reloaded.shows("VolumeBinding"));
    assert_eq!((reloaded.count("success"), reloaded.count("error")), (1, 1));
    reloaded.works().await;
}

#[tokio::test(start_paused = true)]
async fn a_later_change_takes_the_place_of_one_that_waits() {
    let mut reloaded = Reloaded::start().await;
    reloaded.server.forbid(Some("persistentvolumes"));
    reloaded.write(&[VOLUMES]);
    sleep(Duration::from_secs(5)).await;
    reloaded.works().await;
    // What is no configuration changes nothing about the one that waits.
    reloaded.write(&["{"]);
    sleep(Duration::from_secs(5)).await;
    assert_eq!((reloaded.count("success"), reloaded.count("error")), (0, 1));
    reloaded.write(&[BUDGETS]);
    sleep(Duration::from_secs(2)).await;
    assert!(reloaded.shows("DefaultPreemption") && !reloaded.shows("VolumeBinding"));
    assert_eq!((reloaded.count("success"), reloaded.count("error")), (1, 2));
    reloaded.works().await;
    // The one that was superseded does not come back.
    sleep(Duration::from_secs(60)).await;
    assert!(reloaded.shows("DefaultPreemption") && !reloaded.shows("VolumeBinding"));
    assert_eq!((reloaded.count("success"), reloaded.count("error")), (1, 2));
    reloaded.works().await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_new_scheduler_are_found_and_nothing_stops_for_them() {
    let mut reloaded = Reloaded::start().await;
    reloaded.works().await;
    reloaded.server.add_pod_unheard("early", "second");
    reloaded.write(&[PLAIN, SECOND]);
    sleep(Duration::from_millis(1500)).await;
    assert!(reloaded.shows("second"));
    assert_eq!(reloaded.server.bound().last().map(String::as_str), Some("early on n1"));
    reloaded.pods += 1;
    reloaded.works().await;
}
