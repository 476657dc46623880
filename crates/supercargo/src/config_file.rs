//! Configurations as files: what they say, and what files say that they name.

use std::fs::File;
use std::io::Read as _;

use supercargo_config::{PolicyPlace, Reading, read_with_policy};

/// A Policy is a few kilobytes long; a longer file is no Policy.
const POLICY_BYTES_MAX: u64 = 16 << 20;

/// Reads configurations, several of which make one, with the Policy that they name.
pub(crate) fn read_all(texts: &[&str]) -> Reading {
    read_with_policy(texts, policy)
}

/// Reads a configuration, with the Policy that it names.
pub(crate) fn read(text: &str) -> Reading {
    read_all(&[text])
}

/// The Policy that a configuration names; an error goes on with a sentence about its place.
fn policy(place: &PolicyPlace) -> Result<String, String> {
    match place {
        PolicyPlace::File { path } => policy_file(path).map_err(|reason| format!("cannot be read: {reason}")),
        PolicyPlace::ConfigMap { namespace, name } => Err(format!(
            "is not fetched from the cluster: write it down with `kubectl get configmap -n {namespace} {name} -o yaml`"
        )),
    }
}

fn policy_file(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let length =
        file.take(POLICY_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if length as u64 > POLICY_BYTES_MAX {
        return Err(format!("it has more than {POLICY_BYTES_MAX} bytes"));
    }
    Ok(text)
}
