//! Bytes as a file that holds objects: they are read by the fast and the general way, and written again.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use supercargo_config::{build_profiles, load};
use supercargo_dump::{DumpError, Dumps, ListFormat, ListWriter, block_yaml, to_text};
use supercargo_model::{Cluster, Decoded, Decoder};

/// Reads the kinds that the plugins of the default profile read.
static DECODER: LazyLock<Decoder> = LazyLock::new(|| {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let config = load(text).expect("is a configuration").kube;
    let profiles = build_profiles(&config, &supercargo_plugins::registry()).expect("is usable");
    let kinds = profiles.into_iter().filter_map(|profile| profile.reads).flat_map(|reads| reads.kinds);
    Decoder::new(kinds, false)
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = to_text(bytes.to_vec(), true) else { return };
    let _ = block_yaml::to_json(&text);
    let objects = match objects(&text) {
        Ok(objects) => objects,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    put(&text);
    for format in [ListFormat::Json, ListFormat::Yaml] {
        let mut writer = ListWriter::new(format);
        let mut written: String = objects.iter().map(|object| writer.object(object)).collect();
        written.push_str(writer.end());
        let again = self::objects(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(again, objects, "{written}");
    }
});

fn objects(text: &str) -> Result<Vec<Value>, DumpError> {
    let mut objects = Vec::new();
    Dumps::new(&[("input", text)])?.values(|_, object| {
        objects.push(object);
        Ok::<(), DumpError>(())
    })?;
    Ok(objects)
}

/// Decodes the objects, and makes a cluster of them.
fn put(text: &str) {
    let dumps = Dumps::new(&[("input", text)]).expect("was read before");
    let mut cluster = Cluster::default();
    let read = dumps.read(&DECODER, |location, object| {
        assert!(!dumps.place(location).is_empty());
        let _ = cluster.add(object);
        Ok::<(), DumpError>(())
    });
    let said = read.map_or_else(|error| error.to_string(), |left_out| left_out.to_string());
    assert!(!said.contains("Words"), "{said}");
    let _ = cluster.snapshot().node_count();
}
