//! What looks wrong with extenders, and what is.

use super::{HEAD, check, check_hint};
use crate::read;

/// Checks the problems of one extender, without its path.
#[track_caller]
fn check_extender(fields: &str, expected: &[&str]) {
    let text = format!("{HEAD}extenders:\n- {{{fields}}}\n");
    let found = read(&text).check(&super::support::registry());
    let found: Vec<String> = found
        .iter()
        .map(|problem| {
            assert!(problem.position.is_some(), "{problem}");
            let path = problem.path.trim_start_matches("extenders[0]").trim_start_matches('.');
            format!("{} {path}: {}", problem.code, problem.message)
        })
        .collect();
    assert_eq!(found, expected, "of:\n{text}");
}

#[test]
fn addresses() {
    for good in [
        "http://a",
        "https://a.b:8443/x/y",
        "http://[::1]:80/",
        "HTTP://10.0.0.1:1",
        "http://a:/x",
        "http://[fe80::1%eth0]",
    ] {
        let verb = if good.starts_with("https") { "filterVerb: f" } else { "filterVerb: g" };
        check_extender(&format!("urlPrefix: '{good}', {verb}"), &[]);
    }
    for (bad, why) in [
        ("", "it is empty"),
        ("not a url", "it has white space in it"),
        ("localhost:8888", "it does not say http:// or https://"),
        ("ftp://x", "extenders speak http or https"),
        ("http://[::1", "a bracket is not closed"),
        ("http://[zz]:80", "what stands between the brackets is no IPv6 address"),
        ("http://", "it names no host"),
        ("http://:80/x", "it names no host"),
        ("http://a:99999", "a port is a number from 1 to 65535"),
        ("http://a:0", "a port is a number from 1 to 65535"),
        ("http://a:+80", "a port is a number from 1 to 65535"),
        ("http://a:b:c", "a port is a number from 1 to 65535"),
    ] {
        let message = format!("W013 urlPrefix: {bad:?} is no address that can be asked: {why}");
        check_extender(&format!("urlPrefix: '{bad}', filterVerb: f"), &[&message]);
    }
    check_extender(
        "urlPrefix: 'http://me:secret@a/x?y=1#z', filterVerb: f",
        &[
            "W014 urlPrefix: a user and a password in the address are not sent, and end up in logs",
            "W014 urlPrefix: verbs are put behind the address: the query would swallow them",
            "W014 urlPrefix: verbs are put behind the address: the fragment would swallow them",
        ],
    );
    check_hint(
        &format!("{HEAD}extenders: [{{urlPrefix: 'localhost:8888', filterVerb: f}}]"),
        "write http://localhost:8888",
    );
}

#[test]
fn timeouts_weights_and_verbs() {
    for (fields, expected) in [
        ("filterVerb: f, httpTimeout: 30s", &[][..]),
        ("filterVerb: f, httpTimeout: 5m", &[]),
        (
            "filterVerb: f, httpTimeout: -5s",
            &["W015 httpTimeout: -5s is negative, which means that there is no limit at all"],
        ),
        ("filterVerb: f, httpTimeout: 0s", &["W015 httpTimeout: 0 means 5s, not that there is no limit"]),
        (
            "filterVerb: f, httpTimeout: 1000h",
            &[
                "W015 httpTimeout: 1000h0m0s is very long: while a pod waits for an extender, all others wait too",
            ],
        ),
        (
            "filterVerb: f, weight: -5",
            &["W016 weight: the weight has no effect: the extender has no prioritizeVerb"],
        ),
        (
            "prioritizeVerb: f, weight: 0",
            &["C050 weight: Invalid value: 0: must have a positive weight applied to it"],
        ),
        (
            "prioritizeVerb: f, weight: 'x'",
            &["C004 weight: expected an integer of 64 bits, got the string \"x\""],
        ),
        (
            "ignorable: true",
            &[
                "W018 : the extender is never asked: it has neither filterVerb nor prioritizeVerb, preemptVerb, bindVerb",
            ],
        ),
        ("managedResources: [{name: a.b/c}]", &[]),
    ] {
        check_extender(&format!("urlPrefix: 'http://a', {fields}"), expected);
    }
}

#[test]
fn certificates() {
    for (fields, expected) in [
        ("urlPrefix: 'https://a', tlsConfig: {caFile: a, certFile: b, keyFile: c}", &[][..]),
        ("urlPrefix: 'https://a', tlsConfig: {insecure: true}, enableHTTPS: true", &[]),
        (
            "urlPrefix: 'https://a', tlsConfig: {insecure: true, caData: YQ==}",
            &[
                "C055 tlsConfig.insecure: specifying a root certificates file with the insecure flag is not allowed",
            ],
        ),
        (
            "urlPrefix: 'https://a', tlsConfig: {certFile: a}",
            &["W017 tlsConfig: the certificate is not shown: it has no keyFile or keyData"],
        ),
        (
            "urlPrefix: 'https://a', tlsConfig: {keyData: YQ==}",
            &["W017 tlsConfig: the key is not used: it has no certFile or certData"],
        ),
        (
            "urlPrefix: 'https://a', tlsConfig: {caFile: a, caData: YQ==}",
            &["W017 tlsConfig.caFile: the file is not read: caData goes before it"],
        ),
        (
            "urlPrefix: 'https://a', enableHTTPS: true",
            &["W017 enableHTTPS: certificates are not checked: tlsConfig has neither caFile nor caData"],
        ),
        (
            "urlPrefix: 'http://a', enableHTTPS: true, tlsConfig: {caFile: a}",
            &[
                "W017 enableHTTPS: no TLS is spoken: urlPrefix starts with http://",
                "W017 tlsConfig: no TLS is spoken: urlPrefix starts with http://",
            ],
        ),
    ] {
        check_extender(&format!("filterVerb: f, {fields}"), expected);
    }
}

#[test]
fn who_binds_is_named() {
    let text = format!(
        "{HEAD}extenders: [{{urlPrefix: 'http://a', bindVerb: b}}, {{urlPrefix: 'http://a', filterVerb: f}}, \
         {{urlPrefix: 'http://a', bindVerb: b}}]"
    );
    check(
        &text,
        &[
            "C051 extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can implement bind",
        ],
    );
    check_hint(&text, "keep one of extenders[0].bindVerb, extenders[2].bindVerb");
}

#[test]
fn files_that_are_not_there() {
    let text = format!(
        "{HEAD}clientConnection: {{kubeconfig: /k}}\nextenders:\n- urlPrefix: https://a\n  filterVerb: f\n  \
         tlsConfig: {{caFile: /ca, certFile: /c, keyFile: /here, certData: YQ==}}\n"
    );
    let found = read(&text).check_files(|file| file == "/here");
    let found: Vec<String> = found.iter().map(|problem| problem.in_file("f").replace('\n', " ")).collect();
    let hint = "    hint: it must be there where the scheduler runs";
    assert_eq!(
        found,
        [
            format!(
                "f:3:20: warning W019 clientConnection.kubeconfig: there is no file \"/k\" on this machine {hint}"
            ),
            format!(
                "f:7:15: warning W019 extenders[0].tlsConfig.caFile: there is no file \"/ca\" on this machine {hint}"
            ),
        ]
    );
}
