use clap::Parser;
use supercargo_model::GoDuration;

use crate::serve::{CertificateSource, ClientAuthority, FollowedAuthority};

use super::{LoggingFormat, RunFlags, TlsVersion};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    flags: RunFlags,
}

fn parse(words: &str) -> RunFlags {
    try_parse(words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn try_parse(words: &str) -> Result<RunFlags, clap::Error> {
    let words = ["run"].into_iter().chain(words.split_whitespace());
    Line::try_parse_from(words).map(|line| line.flags)
}

#[test]
fn nothing_said_is_what_upstream_does() {
    let flags = parse("");
    assert_eq!(flags.serving.bind_address.to_string(), "0.0.0.0");
    assert_eq!(flags.serving.secure_port, 10259);
    assert_eq!(flags.access.authorization_always_allow_paths, ["/healthz", "/readyz", "/livez"]);
    assert!(!flags.access.authentication_skip_lookup);
    assert!(flags.access.authentication_tolerate_lookup_failure);
    assert_eq!(flags.deprecated.pod_max_in_unschedulable_pods_duration, GoDuration::from_seconds(300));
    assert_eq!(flags.logging_format, LoggingFormat::Text);
    assert_eq!(flags.overrides(), (super::Overrides::default(), Vec::new()));
}

#[test]
fn truth_values_are_written_as_in_go() {
    for (words, expected) in [
        ("--leader-elect", Some(true)),
        ("--leader-elect=true", Some(true)),
        ("--leader-elect=false", Some(false)),
        ("--leader-elect=F", Some(false)),
        ("--leader-elect=1 --leader-elect=0", Some(false)),
        ("", None),
    ] {
        assert_eq!(parse(words).leader_election.leader_elect, expected, "{words}");
    }
    assert!(try_parse("--leader-elect=perhaps").is_err());
    assert!(try_parse("--leader-elect false").is_err(), "Go would take it as true and an argument too many");
    assert!(parse("--authentication-skip-lookup").access.authentication_skip_lookup);
    assert!(!parse("--authentication-skip-lookup=false").access.authentication_skip_lookup);
}

#[test]
fn flags_of_the_election_go_before_the_file() {
    let flags = parse(
        "--config c.yaml --leader-elect=false --leader-elect-lease-duration 1m30s --leader-elect-renew-deadline=20s \
         --leader-elect-retry-period 500ms --leader-elect-resource-lock leases --leader-elect-resource-name mine \
         --leader-elect-resource-namespace here",
    );
    let (overrides, warnings) = flags.overrides();
    let election = overrides.leader_election;
    assert_eq!(election.leader_elect, Some(false));
    assert_eq!(election.leader_elect_lease_duration, Some(GoDuration::from_seconds(90)));
    assert_eq!(election.leader_elect_renew_deadline, Some(GoDuration::from_seconds(20)));
    assert_eq!(election.leader_elect_retry_period, Some(GoDuration(500_000_000)));
    assert_eq!(election.leader_elect_resource_lock.as_deref(), Some("leases"));
    assert_eq!(election.leader_elect_resource_name.as_deref(), Some("mine"));
    assert_eq!(election.leader_elect_resource_namespace.as_deref(), Some("here"));
    assert!(warnings.is_empty());
}

#[test]
fn deprecated_flags_count_only_without_a_file() {
    let words = "--kubeconfig k --kube-api-qps 5000 --kube-api-burst 10000 --profiling=false \
                 --contention-profiling=false --kube-api-content-type application/json";
    let (overrides, warnings) = parse(words).overrides();
    assert_eq!(overrides.kubeconfig.as_deref(), Some("k"));
    assert_eq!((overrides.qps, overrides.burst), (Some(5000.0), Some(10000)));
    assert_eq!(overrides.content_type.as_deref(), Some("application/json"));
    assert_eq!(overrides.enable_profiling, Some(false));
    assert_eq!(overrides.enable_contention_profiling, Some(false));
    assert!(warnings.is_empty());

    let flags = parse(&format!(
        "{words} --config c.yaml --pod-max-in-unschedulable-pods-duration 1m --master http://a"
    ));
    let (overrides, warnings) = flags.overrides();
    assert_eq!(overrides, super::Overrides::default());
    assert_eq!(warnings.len(), 6);
    assert_eq!(
        warnings[0],
        "--kubeconfig is ignored because --config is given: write clientConnection.kubeconfig in that file"
    );
    assert_eq!(flags.deprecated.pod_max_in_unschedulable_pods_duration, GoDuration::from_seconds(60));
    assert_eq!(flags.master.as_deref(), Some("http://a"));
}

#[test]
fn gates_are_accepted_and_talked_about() {
    let flags = parse(
        "--feature-gates SchedulerQueueingHints=true,GenericWorkload=true --feature-gates=kube:KubeletInUserNamespace=true,",
    );
    assert_eq!(flags.check(), Ok(()));
    let (_, warnings) = flags.overrides();
    assert_eq!(
        warnings,
        [
            "--feature-gates: GenericWorkload=true is ignored: Supercargo behaves as kube-scheduler does with GenericWorkload=false",
        ]
    );
}

/// The words behind the flag's name are kube-scheduler 1.36.4's.
#[test]
fn what_kube_scheduler_refuses_is_refused() {
    for (words, reason) in [
        ("--feature-gates=Nonsense=true", "unrecognized feature gate: Nonsense"),
        ("--feature-gates=AllBeta=true,kube:Nonsense=true", "unrecognized feature gate: Nonsense"),
        ("--feature-gates=Odd", "missing bool value for Odd"),
        (
            "--feature-gates=GenericWorkload=maybe",
            "invalid value of GenericWorkload=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax",
        ),
        (
            "--feature-gates=SidecarContainers=false",
            "cannot set feature gate SidecarContainers to false, feature is locked to true",
        ),
        ("--feature-gates=foo:GenericWorkload=true", "component not registered: foo"),
        ("--tls-cipher-suites=TLS_AES_128_GCM_SHA256,FOO", "Cipher suite FOO not supported or doesn't exist"),
    ] {
        let error = parse(words).check().expect_err(words);
        assert_eq!(error.reason, reason);
        assert!(words.starts_with(error.flag));
    }
    assert_eq!(parse("--tls-cipher-suites=FOO --secure-port=0").check(), Ok(()), "nothing is served");
}

#[test]
fn the_rest_is_read() {
    let flags = parse(
        "-v4 --logging-format=json --bind-address ::1 --secure-port 0 --tls-cert-file a.crt --tls-private-key-file a.key \
         --client-ca-file ca.crt --authorization-always-allow-paths /healthz,/metrics* --authentication-kubeconfig a \
         --authorization-kubeconfig b --write-config-to out.yaml --cert-dir d",
    );
    assert_eq!(flags.verbosity, 4);
    assert_eq!(parse("--v=10").verbosity, 10);
    assert_eq!(flags.logging_format, LoggingFormat::Json);
    assert_eq!(flags.serving.bind_address.to_string(), "::1");
    assert_eq!(flags.serving.secure_port, 0);
    assert_eq!(flags.access.authorization_always_allow_paths, ["/healthz", "/metrics*"]);
    for bad in
        ["--nonsense", "--secure-port 65536", "--leader-elect-lease-duration 15", "--tls-cert-file a.crt"]
    {
        assert!(try_parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_does_nothing_here_is_taken_and_talked_about() {
    let flags = parse(
        "--min-compatibility-version=1.35 --permit-port-sharing --disable-http2-serving=true --vmodule a=1 --vmodule=b=2 --tls-min-version VersionTLS13 \
         --tls-cipher-suites A,B",
    );
    let (_, warnings) = flags.overrides();
    assert_eq!(
        warnings,
        [
            "--min-compatibility-version is ignored: there is only one version",
            "--permit-port-sharing is ignored: ports are not shared",
            "--vmodule is ignored: --v holds for all files"
        ]
    );
    assert_eq!(flags.serving.tls_min_version, Some(TlsVersion::Tls13));
    assert_eq!(flags.serving.tls_cipher_suites, ["A", "B"]);
    assert_eq!(parse("--tls-min-version=VersionTLS10").serving.tls_min_version, Some(TlsVersion::Tls12));
    assert!(try_parse("--tls-min-version=VersionTLS14").is_err());
    assert!(try_parse("--vmodule").is_err(), "a value is missing");
}

/// What kubeadm, k3s and OpenShift write.
#[test]
fn command_lines_of_others_work() {
    for words in [
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf --authorization-kubeconfig=/etc/kubernetes/scheduler.conf \
         --bind-address=127.0.0.1 --kubeconfig=/etc/kubernetes/scheduler.conf --leader-elect=true",
        "--authentication-kubeconfig=a --authorization-kubeconfig=a --bind-address=127.0.0.1 --kubeconfig=a \
         --profiling=false --secure-port=10259",
        "--config=a --cert-dir=/var/run/kubernetes --authentication-kubeconfig=a --authorization-kubeconfig=a \
         --feature-gates=AllAlpha=false -v=2 --tls-cert-file=a --tls-private-key-file=b \
         --tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256 --tls-min-version=VersionTLS12",
    ] {
        assert_eq!(parse(words).check(), Ok(()));
    }
}

#[test]
fn what_is_served_and_how() {
    let followed = FollowedAuthority::new(Some("PEM".to_owned()));
    let options = |words: &str, looked_up: Option<&FollowedAuthority>| {
        let flags = parse(words);
        flags.serving.options(&flags.access, looked_up.cloned())
    };
    assert!(options("--secure-port=0", None).is_none());
    let plain = options("", None).expect("served");
    assert_eq!(plain.certificate, CertificateSource::SelfSigned);
    assert_eq!(plain.client_authority, ClientAuthority::None);
    assert_eq!(plain.port, 10259);
    let folder = options("--cert-dir d", Some(&followed)).expect("served");
    assert_eq!(folder.certificate, CertificateSource::Folder("d".into()));
    assert_eq!(folder.client_authority, ClientAuthority::Followed(followed.clone()));
    let files = options(
        "--cert-dir d --tls-cert-file c --tls-private-key-file k --client-ca-file a",
        Some(&followed),
    )
    .expect("served");
    assert_eq!(files.certificate, CertificateSource::Files { certificate: "c".into(), key: "k".into() });
    assert_eq!(files.client_authority, ClientAuthority::File("a".into()), "a file goes before the cluster");
}
