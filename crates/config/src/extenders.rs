//! What is wrong with extenders. kube-scheduler looks at little of it before it asks an extender for the first time; what it would
//! start with is a warning here.

// Only the form of addresses, which is all that `core` has of networks: nothing is sent anywhere.
use core::net::Ipv6Addr;
use std::collections::BTreeSet;

use supercargo_model::GoDuration;
use supercargo_model::names::{label_key_problems, resource};

use crate::codes;
use crate::problem::{Problem, Problems};
use crate::types::{Extender, ExtenderTlsConfig};

/// A pod waits for its extenders, and all other pods wait for it. Nobody means that for longer than this.
const TIMEOUT_LONG: GoDuration = GoDuration::from_seconds(5 * 60);

/// What upstream refuses.
pub(crate) fn validate(extenders: &[Extender], problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (index, extender) in extenders.iter().enumerate() {
        let path = format!("extenders[{index}]");
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            let detail = "must have a positive weight applied to it";
            problems.invalid(&codes::EXTENDER_WEIGHT, format!("{path}.weight"), extender.weight, detail);
        }
        for (position, managed) in extender.managed_resources.iter().enumerate() {
            let path = format!("{path}.managedResources[{position}].name");
            validate_resource(&managed.name, &path, problems);
            if !seen.insert(&managed.name) {
                let detail = "duplicate extender managed resource name";
                problems.invalid(&codes::EXTENDER_DUPLICATE_RESOURCE, path, &managed.name, detail);
            }
        }
        if extender.tls_config.as_ref().is_some_and(|tls| tls.insecure && has_authority(tls)) {
            let message = "specifying a root certificates file with the insecure flag is not allowed";
            let hint = "remove insecure, or caFile and caData".to_owned();
            let path = format!("{path}.tlsConfig.insecure");
            problems.push(Problem::new(&codes::EXTENDER_INSECURE, path, message).with_hint(hint));
        }
    }
    validate_binders(extenders, problems);
}

/// What upstream starts with, and hardly anybody means.
pub(crate) fn warn(extenders: &[Extender], problems: &mut Problems) {
    for (index, extender) in extenders.iter().enumerate() {
        let path = format!("extenders[{index}]");
        warn_of_url(&extender.url_prefix, &format!("{path}.urlPrefix"), problems);
        warn_of_timeout(extender.http_timeout, &format!("{path}.httpTimeout"), problems);
        if extender.weight != 0 && extender.prioritize_verb.is_empty() {
            let message = "the weight has no effect: the extender has no prioritizeVerb";
            problems.add(&codes::EXTENDER_WEIGHT_IGNORED, format!("{path}.weight"), message);
        }
        let verbs =
            [&extender.filter_verb, &extender.prioritize_verb, &extender.preempt_verb, &extender.bind_verb];
        // An extender that only looks after resources tells NodeResourcesFit what to ignore.
        if verbs.iter().all(|verb| verb.is_empty()) && extender.managed_resources.is_empty() {
            let message = "the extender is never asked: it has neither filterVerb nor prioritizeVerb, preemptVerb, bindVerb";
            problems.add(&codes::EXTENDER_IDLE, &path, message);
        }
        warn_of_tls(extender, &path, problems);
    }
}

/// What a time-out of 0 means that somebody wrote, as opposed to one that is absent.
pub(crate) fn written_zero(path: &str) -> Problem {
    let hint = "leave it out, or write how long to wait, such as \"5s\"".to_owned();
    Problem::new(&codes::EXTENDER_TIMEOUT, path, "0 means 5s, not that there is no limit").with_hint(hint)
}

fn validate_resource(name: &str, path: &str, problems: &mut Problems) {
    let mut details = label_key_problems(name);
    if details.is_empty() && !resource::is_extended(name) {
        details.push("is an invalid extended resource name".to_owned());
    }
    for detail in details {
        problems.invalid(&codes::EXTENDER_RESOURCE, path, name, &detail);
    }
}

fn validate_binders(extenders: &[Extender], problems: &mut Problems) {
    let binders = extenders.iter().enumerate().filter(|(_, extender)| !extender.bind_verb.is_empty());
    let paths: Vec<String> = binders.map(|(index, _)| format!("extenders[{index}].bindVerb")).collect();
    if paths.len() > 1 {
        let count = paths.len();
        let message = format!(
            "Invalid value: \"found {count} extenders implementing bind\": only one extender can implement bind"
        );
        let hint = format!("keep one of {}", paths.join(", "));
        problems.push(Problem::new(&codes::EXTENDER_BINDERS, "extenders", message).with_hint(hint));
    }
}

fn warn_of_url(url: &str, path: &str, problems: &mut Problems) {
    let parts = match read_url(url) {
        Ok(parts) => parts,
        Err(Unusable { why, hint }) => {
            let message = format!("{url:?} is no address that can be asked: {why}");
            problems.push(Problem::new(&codes::EXTENDER_URL, path, message).with_hint(hint));
            return;
        }
    };
    for part in parts {
        let message = match part {
            OddPart::User => "a user and a password in the address are not sent, and end up in logs",
            OddPart::Query => "verbs are put behind the address: the query would swallow them",
            OddPart::Fragment => "verbs are put behind the address: the fragment would swallow them",
        };
        problems.add(&codes::EXTENDER_URL_PARTS, path, message);
    }
}

struct Unusable {
    why: &'static str,
    hint: String,
}

/// A part of an address that has no place in an extender's.
#[derive(Clone, Copy)]
enum OddPart {
    User,
    Query,
    Fragment,
}

fn read_url(url: &str) -> Result<Vec<OddPart>, Unusable> {
    const EXAMPLE: &str = "write such as http://my-extender.kube-system:8888/scheduler";
    let unusable = |why| Err(Unusable { why, hint: EXAMPLE.to_owned() });
    if url.is_empty() {
        return unusable("it is empty");
    }
    if url.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return unusable("it has white space in it");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(Unusable {
            why: "it does not say http:// or https://",
            hint: format!("write http://{url}"),
        });
    };
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return unusable("extenders speak http or https");
    }
    let mut odd = Vec::new();
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host_and_port = match authority.rsplit_once('@') {
        Some((_, host)) => {
            odd.push(OddPart::User);
            host
        }
        None => authority,
    };
    let (host, port) = match host_and_port.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port))
                if host.split('%').next().is_some_and(|host| host.parse::<Ipv6Addr>().is_ok()) =>
            {
                (host, port)
            }
            Some(_) => return unusable("what stands between the brackets is no IPv6 address"),
            None => return unusable("a bracket is not closed"),
        },
        None => host_and_port.split_at(host_and_port.find(':').unwrap_or(host_and_port.len())),
    };
    if host.is_empty() {
        return unusable("it names no host");
    }
    // Go takes a colon without a number for the usual port.
    let is_port = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some("") => true,
        Some(number) => {
            number.bytes().all(|byte| byte.is_ascii_digit())
                && number.parse::<u16>().is_ok_and(|port| port > 0)
        }
    };
    if !is_port {
        return unusable("a port is a number from 1 to 65535");
    }
    if path.contains('?') {
        odd.push(OddPart::Query);
    }
    if path.contains('#') {
        odd.push(OddPart::Fragment);
    }
    Ok(odd)
}

fn warn_of_timeout(timeout: GoDuration, path: &str, problems: &mut Problems) {
    if timeout < GoDuration::ZERO {
        let message = format!("{timeout} is negative, which means that there is no limit at all");
        let hint = "write how long to wait for an answer, such as \"5s\"".to_owned();
        problems.push(Problem::new(&codes::EXTENDER_TIMEOUT, path, message).with_hint(hint));
    } else if timeout > TIMEOUT_LONG {
        let message =
            format!("{timeout} is very long: while a pod waits for an extender, all others wait too");
        problems.add(&codes::EXTENDER_TIMEOUT, path, message);
    }
}

fn warn_of_tls(extender: &Extender, path: &str, problems: &mut Problems) {
    let speaks_tls =
        extender.url_prefix.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"));
    let is_plain =
        extender.url_prefix.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http"));
    let mut add = |field: &str, message: &str| {
        problems.add(&codes::EXTENDER_TLS, format!("{path}.{field}"), message);
    };
    let tls = extender.tls_config.as_ref();
    if extender.enable_https && is_plain {
        add("enableHTTPS", "no TLS is spoken: urlPrefix starts with http://");
    } else if extender.enable_https
        && speaks_tls
        && !tls.is_some_and(|tls| has_authority(tls) || tls.insecure)
    {
        add("enableHTTPS", "certificates are not checked: tlsConfig has neither caFile nor caData");
    }
    let Some(tls) = tls else { return };
    if is_plain && *tls != ExtenderTlsConfig::default() {
        add("tlsConfig", "no TLS is spoken: urlPrefix starts with http://");
    }
    let pairs = [
        ("certFile", &tls.cert_file, "certData", &tls.cert_data),
        ("keyFile", &tls.key_file, "keyData", &tls.key_data),
        ("caFile", &tls.ca_file, "caData", &tls.ca_data),
    ];
    for (file_field, file, data_field, data) in pairs {
        if !file.is_empty() && !data.is_empty() {
            add(
                &format!("tlsConfig.{file_field}"),
                &format!("the file is not read: {data_field} goes before it"),
            );
        }
    }
    let has_certificate = !tls.cert_file.is_empty() || !tls.cert_data.is_empty();
    let has_key = !tls.key_file.is_empty() || !tls.key_data.is_empty();
    if has_certificate && !has_key {
        add("tlsConfig", "the certificate is not shown: it has no keyFile or keyData");
    } else if has_key && !has_certificate {
        add("tlsConfig", "the key is not used: it has no certFile or certData");
    }
}

fn has_authority(tls: &ExtenderTlsConfig) -> bool {
    !tls.ca_file.is_empty() || !tls.ca_data.is_empty()
}
