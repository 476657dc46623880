//! The configuration that `explain`, `capacity`, `dump` and their like decide with.

use std::collections::BTreeSet;

use supercargo_config::{ClientConnection, LeaderElection, Loaded, Problems, build_profiles};
use supercargo_framework::{Fixes, Needs, Profile, Registry};
use supercargo_model::{Decoder, KindId, Pod, ReadableKind};

use crate::config_check;
use crate::config_file;
use crate::input;
use crate::unread_record::UnreadRecord;

/// A configuration that was read and made into profiles, as far as the subcommands that only look need it.
pub(crate) struct LoadedConfig {
    pub(crate) profiles: Vec<Profile>,
    pub(crate) fixes: Fixes,
    /// How many extenders the configuration has. Only `run` asks them.
    pub(crate) extenders: usize,
    /// How replicas of it agree.
    pub(crate) election: LeaderElection,
    /// Which API server it names, and how that is asked.
    pub(crate) connection: ClientConnection,
    /// What chance is drawn from.
    pub(crate) seed: u64,
    /// What was changed in an old configuration to read it.
    pub(crate) notes: String,
}

/// The name of the scheduler of pods that do not ask for one.
pub(crate) const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Whether a profile is responsible for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsOurs {
    Yes,
    No,
}

impl LoadedConfig {
    /// As a configuration file says, or the default.
    pub(crate) fn from_file(file: Option<&str>, registry: &Registry) -> anyhow::Result<Self> {
        let name = file.map_or("the configuration", input::display_name);
        let (loaded, problems) = match file {
            None => (Ok(Loaded::default()), Problems::default()),
            Some(file) => {
                let reading = config_file::read(&input::read(file)?);
                let problems = reading.check(registry);
                (reading.into_result(), problems)
            }
        };
        let unusable = |_| config_check::unusable(name, &problems);
        let Loaded { kube, own, conversion } = loaded.map_err(unusable)?;
        let profiles = build_profiles(&kube, registry).map_err(unusable)?;
        let notes = config_check::lines(name, &conversion);
        Ok(LoadedConfig {
            profiles,
            fixes: own.fixes,
            extenders: kube.extenders.len(),
            election: kube.leader_election,
            connection: kube.client_connection,
            seed: own.seed,
            notes,
        })
    }

    /// The profile that is responsible for a pod; or else that of the default scheduler, or the first.
    pub(crate) fn profile_for(&self, pod: &Pod) -> (usize, IsOurs) {
        let named = |wanted: &str| self.profiles.iter().position(|profile| profile.scheduler_name == wanted);
        match named(&pod.spec.scheduler_name) {
            Some(index) => (index, IsOurs::Yes),
            None => (named(DEFAULT_SCHEDULER).unwrap_or(0), IsOurs::No),
        }
    }

    /// What to know about a pod that no profile is responsible for.
    pub(crate) fn foreign_note(&self, pod: &Pod) -> Option<String> {
        let (index, is_ours) = self.profile_for(pod);
        let (wanted, used) = (&pod.spec.scheduler_name, &self.profiles[index].scheduler_name);
        (is_ours == IsOurs::No).then(|| {
            format!(
                "note: computed with the profile {used}: the pod asks for scheduler {wanted:?}, which the configuration does \
                 not have (--config names another)"
            )
        })
    }

    /// Pods, nodes, and the kinds that the plugins of all profiles read.
    pub(crate) fn kinds(&self) -> BTreeSet<KindId> {
        Needs::of(&self.profiles).kinds()
    }

    /// Reads the kinds that the plugins of all profiles read.
    pub(crate) fn decoder(&self) -> Decoder {
        Needs::of(&self.profiles).and(ReadableKind::of::<UnreadRecord>()).decoder()
    }
}
