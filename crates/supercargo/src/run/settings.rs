//! What the flags and the configuration file say together.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use supercargo_cluster::MemoriesPlace;
use supercargo_config::{
    Extender, KubeSchedulerConfiguration, Loaded, Reading, SupercargoConfiguration, TieBreak, build_profiles,
    effective, memories_object, to_yaml,
};
use supercargo_engine::{EngineOptions, ExtenderSettings, Indexing, Rules, SchedulerOptions, Seed, Ties};
use supercargo_extender::ExtenderClient;
use supercargo_framework::{Profile, Registry};
use supercargo_operations::flags::{Overrides, RunFlags};
use supercargo_operations::leader::LeaderSettings;
use supercargo_operations::reload::{FileWatch, Files};

use super::duration;
use crate::config_check;
use crate::config_file;
use crate::input;

/// What `--config` says for a configuration that comes in through standard input.
const STANDARD_INPUT: &str = "-";

/// What `supercargo run` runs with.
pub(super) struct Settings {
    pub(super) kube: KubeSchedulerConfiguration,
    pub(super) profiles: Vec<Profile>,
    pub(super) scheduler: SchedulerOptions,
    /// The extenders, as the scheduler sees them, and the clients that ask them.
    pub(super) extender_settings: Vec<ExtenderSettings>,
    pub(super) extenders: Vec<ExtenderClient>,
    /// How replicas agree, and the namespace and the name of their lease; none if there is only one.
    pub(super) election: Option<(LeaderSettings, String, String)>,
    /// Where plugins save what they remember.
    pub(super) memories: MemoriesPlace,
    /// The configuration with nothing left to defaults.
    pub(super) effective: KubeSchedulerConfiguration,
    pub(super) own: SupercargoConfiguration,
    /// What people should know.
    pub(super) warnings: Vec<String>,
    /// The file that it comes from, to be watched.
    pub(super) file: Option<FileWatch>,
}

impl Settings {
    /// What the flags say, and the file that they name.
    pub(super) fn of(flags: &RunFlags, registry: &Registry, files: &Files) -> anyhow::Result<Self> {
        flags.check()?;
        let (text, file) = match flags.config.as_deref() {
            None => (None, None),
            // Standard input is read once.
            Some(path) if *path == *STANDARD_INPUT => (Some(input::read(STANDARD_INPUT)?), None),
            Some(path) => {
                let failed = || format!("cannot read {}", path.display());
                let contents = files.read(path).with_context(failed)?;
                let text = String::from_utf8(contents).with_context(failed)?;
                let file = FileWatch::new(path, text.as_bytes()).with_files(files.clone());
                (Some(text), Some(file))
            }
        };
        Ok(Settings { file, ..Settings::of_text(flags, registry, text.as_deref(), None)? })
    }

    /// The same with what the file holds. What cannot be changed while the scheduler runs stays as it is in `running`.
    pub(super) fn of_text(
        flags: &RunFlags,
        registry: &Registry,
        text: Option<&str>,
        running: Option<&RunningConfig>,
    ) -> anyhow::Result<Self> {
        let file = flags.config.as_deref().map(Path::to_string_lossy);
        let (overrides, mut warnings) = flags.overrides();
        let name = file.as_deref().unwrap_or("the configuration");
        let mut reading = read_or_default(text);
        // Flags go before the file, and are checked with it.
        apply(overrides, &mut reading.loaded.kube);
        let found = reading.check(registry);
        let unusable = |problems| config_check::unusable(name, &problems);
        let Loaded { mut kube, mut own, .. } = reading.into_usable(registry).map_err(unusable)?;
        warnings.extend(found.iter().map(|problem| problem.in_file(name)));
        if let Some(running) = running {
            warnings.extend(running.keep_fixed(&mut kube, &mut own));
        }
        let profiles = build_profiles(&kube, registry).map_err(unusable)?;
        let ties = match own.tie_break {
            TieBreak::Seeded => Ties::Seeded,
            TieBreak::SmallestName => Ties::SmallestName,
        };
        let engine = EngineOptions {
            rules: Rules { ties, ..Rules::LIVE },
            seed: Seed(own.seed),
            fixes: own.fixes,
            indexing: Indexing::On,
        };
        let seconds = |seconds: i64| Duration::from_secs(seconds.max(0).unsigned_abs());
        let scheduler = SchedulerOptions {
            engine,
            initial_backoff: seconds(kube.pod_initial_backoff_seconds),
            max_backoff: seconds(kube.pod_max_backoff_seconds),
            max_unschedulable: duration(flags.deprecated.pod_max_in_unschedulable_pods_duration),
        };
        let election = kube.leader_election.leader_elect.then(|| {
            let election = &kube.leader_election;
            let settings = LeaderSettings {
                lease_duration: duration(election.lease_duration),
                renew_deadline: duration(election.renew_deadline),
                retry_period: duration(election.retry_period),
            };
            (settings, election.resource_namespace.clone(), election.resource_name.clone())
        });
        let extenders = kube.extenders.iter().map(|extender| {
            let named = || format!("extender {:?}", extender.url_prefix);
            ExtenderClient::new(extender).with_context(named)
        });
        let extenders = extenders.collect::<anyhow::Result<_>>()?;
        let extender_settings = kube.extenders.iter().map(extender_settings).collect();
        let effective = effective(&kube, registry);
        let (namespace, name) = memories_object(&kube);
        Ok(Settings {
            kube,
            own,
            effective,
            profiles,
            scheduler,
            extender_settings,
            extenders,
            election,
            memories: MemoriesPlace { namespace, name },
            warnings,
            file: None,
        })
    }

    /// What a later configuration is compared with.
    pub(super) fn running_config(&self) -> RunningConfig {
        RunningConfig { kube: self.kube.clone(), own: self.own.clone() }
    }

    /// The whole configuration.
    pub(super) fn as_yaml(&self) -> String {
        to_yaml(&self.effective, &self.own)
    }
}

/// What a file says; without one, everything has its default.
fn read_or_default(text: Option<&str>) -> Reading {
    text.map_or_else(Reading::default, config_file::read)
}

/// The configuration that a scheduler runs with.
#[derive(Clone, Debug)]
pub(super) struct RunningConfig {
    kube: KubeSchedulerConfiguration,
    own: SupercargoConfiguration,
}

impl RunningConfig {
    /// Takes back changes that need a new process; what people should know about them.
    fn keep_fixed(
        &self,
        kube: &mut KubeSchedulerConfiguration,
        own: &mut SupercargoConfiguration,
    ) -> Vec<String> {
        fn keep<T: Clone + PartialEq>(field: &str, new: &mut T, running: &T) -> Option<String> {
            let differs = *new != *running;
            new.clone_from(running);
            differs.then(|| {
                format!(
                    "{field} cannot be changed while the scheduler runs; restart it for the change to count"
                )
            })
        }
        let running = &self.kube;
        let changes = [
            keep("clientConnection", &mut kube.client_connection, &running.client_connection),
            keep("leaderElection", &mut kube.leader_election, &running.leader_election),
            keep("enableProfiling", &mut kube.enable_profiling, &running.enable_profiling),
            keep(
                "enableContentionProfiling",
                &mut kube.enable_contention_profiling,
                &running.enable_contention_profiling,
            ),
            keep(
                "delayCacheUntilActive",
                &mut kube.delay_cache_until_active,
                &running.delay_cache_until_active,
            ),
            keep("pages", &mut own.pages, &self.own.pages),
            keep("programs", &mut own.programs, &self.own.programs),
        ];
        changes.into_iter().flatten().collect()
    }
}

fn extender_settings(extender: &Extender) -> ExtenderSettings {
    ExtenderSettings {
        filters: !extender.filter_verb.is_empty(),
        prioritizes: !extender.prioritize_verb.is_empty(),
        preempts: !extender.preempt_verb.is_empty(),
        binds: !extender.bind_verb.is_empty(),
        weight: extender.weight,
        is_ignorable: extender.ignorable,
        managed_resources: extender
            .managed_resources
            .iter()
            .map(|managed| managed.name.as_str().into())
            .collect(),
    }
}

/// Flags go before the configuration file.
fn apply(overrides: Overrides, kube: &mut KubeSchedulerConfiguration) {
    fn set<T>(place: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *place = value;
        }
    }
    let (election, flags) = (&mut kube.leader_election, overrides.leader_election);
    set(&mut election.leader_elect, flags.leader_elect);
    set(&mut election.lease_duration, flags.leader_elect_lease_duration);
    set(&mut election.renew_deadline, flags.leader_elect_renew_deadline);
    set(&mut election.retry_period, flags.leader_elect_retry_period);
    set(&mut election.resource_lock, flags.leader_elect_resource_lock);
    set(&mut election.resource_name, flags.leader_elect_resource_name);
    set(&mut election.resource_namespace, flags.leader_elect_resource_namespace);
    let connection = &mut kube.client_connection;
    set(&mut connection.kubeconfig, overrides.kubeconfig);
    set(&mut connection.content_type, overrides.content_type);
    set(&mut connection.qps, overrides.qps);
    set(&mut connection.burst, overrides.burst);
    set(&mut kube.enable_profiling, overrides.enable_profiling);
    set(&mut kube.enable_contention_profiling, overrides.enable_contention_profiling);
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use supercargo_config::{PageAddress, Program};

    use super::Settings;
    use crate::CommandLine;

    const KUBE: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

    fn settings(text: &str, running: Option<&super::RunningConfig>) -> Settings {
        let line = CommandLine::try_parse_from(["supercargo", "run"]).expect("flags");
        let crate::Command::Run(flags) = line.command else { panic!("not run") };
        Settings::of_text(&flags, &supercargo_plugins::registry(), Some(text), running)
            .expect("a configuration")
    }

    #[test]
    fn what_needs_a_new_process_is_said_and_so_is_what_a_check_warns_of() {
        let table: [(&str, &[&str]); 4] = [
            ("", &[]),
            ("leaderElection: {leaderElect: false}\n", &["leaderElection cannot be changed"]),
            (
                "delayCacheUntilActive: true\nclientConnection: {qps: 7}\n",
                &["clientConnection cannot be changed", "delayCacheUntilActive cannot be changed"],
            ),
            (
                "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter, httpTimeout: 0s}]\n",
                &["httpTimeout"],
            ),
        ];
        let running = settings(KUBE, None).running_config();
        for (next, expected) in table {
            let told = settings(&format!("{KUBE}{next}"), Some(&running)).warnings;
            assert_eq!(told.len(), expected.len(), "{next}: {told:?}");
            for (told, expected) in told.iter().zip(expected) {
                assert!(told.contains(expected), "{next}: {told}");
            }
        }
        let mut next = settings(KUBE, None);
        next.own.pages.push(PageAddress { plugin: "P".to_owned(), address: "127.0.0.1:1".to_owned() });
        next.own.programs.push(Program { name: "agent".to_owned(), ..Program::default() });
        let told = running.keep_fixed(&mut next.kube, &mut next.own);
        assert!(
            matches!(&told[..], [pages, programs] if pages.starts_with("pages cannot be changed")
                && programs.starts_with("programs cannot be changed")),
            "{told:?}"
        );
        assert!(next.own.pages.is_empty() && next.own.programs.is_empty());
    }
}
