//! What a topology says which pods it has counted: a hash over their names, as github.com/k8stopologyawareschedwg/podfingerprint makes
//! it.

use supercargo_model::Pod;

use super::xxh64::xxh64;

/// What a fingerprint begins with, and its version.
const PREFIX: &str = "pfp0v001";

/// The fingerprint of some pods, in any order. A text that is no fingerprint, or of another version, is that of no pods.
pub(super) fn fingerprint<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> String {
    let name_hash = |pod: &Pod| xxh64(pod.name.as_bytes(), xxh64(pod.namespace.as_bytes(), 0));
    let mut hashes: Vec<u64> = pods.into_iter().map(name_hash).collect();
    hashes.sort_unstable();
    let bytes: Vec<u8> = hashes.into_iter().flat_map(u64::to_le_bytes).collect();
    format!("{PREFIX}{:016x}", xxh64(&bytes, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_that_exporters_write() {
        for (pods, expected) in [
            (&[][..], "pfp0v001ef46db3751d8e999"),
            (&[("namespace1", "pod1")][..], "pfp0v0019e0420efb37746c6"),
            (&[("default", "b"), ("default", "a")][..], "pfp0v001dced628646ab6893"),
            (
                &[("ns3", "n2"), ("ns1", "n1"), ("ns2", "n1"), ("ns1", "n2"), ("ns3", "n1")][..],
                "pfp0v001b92008c14168b3a6",
            ),
        ] {
            let named = |(namespace, name): &(&str, &str)| Pod {
                namespace: (*namespace).into(),
                name: (*name).into(),
                ..Pod::default()
            };
            let pods: Vec<Pod> = pods.iter().map(named).collect();
            assert_eq!(fingerprint(&pods), expected);
        }
    }
}
