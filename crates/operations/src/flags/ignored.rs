//! Flags of kube-scheduler that are taken and do nothing here, so that a command line that works there works here.

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, parser::ValueSource};

/// The flags, whether they may stand without a value as truth values may, and what is said about them; nothing, if nothing is
/// different without them.
const FLAGS: &[(&str, bool, Option<&str>)] = &[
    ("allow-metric-labels", false, Some("all labels are shown")),
    ("allow-metric-labels-manifest", false, Some("all labels are shown")),
    ("authentication-token-webhook-cache-ttl", false, Some("answers are kept for 10s")),
    ("authorization-webhook-cache-authorized-ttl", false, Some("answers are kept for 10s")),
    ("authorization-webhook-cache-unauthorized-ttl", false, Some("answers are kept for 10s")),
    ("disable-http2-serving", true, None),
    ("disabled-metrics", false, Some("all metrics are shown")),
    ("emulated-version", false, Some("there is only one version")),
    ("http2-max-streams-per-connection", false, None),
    ("log-flush-frequency", false, None),
    ("log-json-info-buffer-size", false, None),
    ("log-json-split-stream", true, Some("logs go to standard error")),
    ("log-text-info-buffer-size", false, None),
    ("log-text-split-stream", true, Some("logs go to standard error")),
    ("min-compatibility-version", false, Some("there is only one version")),
    ("permit-address-sharing", true, Some("addresses are not shared")),
    ("permit-port-sharing", true, Some("ports are not shared")),
    ("requestheader-allowed-names", false, Some("names in headers count for nothing")),
    ("requestheader-client-ca-file", false, Some("names in headers count for nothing")),
    ("requestheader-extra-headers-prefix", false, Some("names in headers count for nothing")),
    ("requestheader-group-headers", false, Some("names in headers count for nothing")),
    ("requestheader-uid-headers", false, Some("names in headers count for nothing")),
    ("requestheader-username-headers", false, Some("names in headers count for nothing")),
    ("show-hidden-metrics-for-version", false, Some("no metrics are hidden")),
    ("tls-curve-preferences", false, Some("the defaults of rustls are used")),
    ("tls-sni-cert-key", false, Some("there is one certificate for all names")),
    ("vmodule", false, Some("--v holds for all files")),
];

/// Which of these flags were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredFlags {
    given: Vec<usize>,
}

impl IgnoredFlags {
    /// What to say about those that were given.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.given.iter().filter_map(|index| {
            let (name, _, instead) = FLAGS[*index];
            instead.map(|instead| format!("--{name} is ignored: {instead}"))
        })
    }

    fn read(matches: &ArgMatches) -> Self {
        let on_line = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let given = FLAGS.iter().enumerate().filter(|(_, (name, _, _))| on_line(name));
        IgnoredFlags { given: given.map(|(index, _)| index).collect() }
    }
}

impl clap::Args for IgnoredFlags {
    fn augment_args(mut command: Command) -> Command {
        for (name, is_bool, _) in FLAGS {
            let mut flag = Arg::new(*name).long(*name).hide(true).action(ArgAction::Append);
            if *is_bool {
                flag = flag.num_args(0..=1).require_equals(true).default_missing_value("true");
            }
            command = command.arg(flag);
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for IgnoredFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(IgnoredFlags::read(matches))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = IgnoredFlags::read(matches);
        Ok(())
    }
}
