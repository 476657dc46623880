//! What a dump says about what could not be read for it: an object among the others, so that whoever reads the dump knows what
//! may be wrong. In a cluster there are none.

use serde::Deserialize;
use serde_json::{Value, json};
use supercargo_dump::Mask;
use supercargo_explain::{Missing, MissingReason, kind_name};
use supercargo_framework::Unread;
use supercargo_model::{Kind, KindId, Snapshot};

use crate::loaded_config::LoadedConfig;

/// Objects of a kind that a dump lacks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct UnreadRecord {
    /// The group of the kind, empty for the core group.
    group: String,
    /// The name of the kind in URLs.
    plural: String,
    /// The one namespace of which they are there.
    except_namespace: Option<String>,
    /// Why, for people.
    why: String,
}

impl Kind for UnreadRecord {
    const ID: KindId =
        KindId { group: "supercargo.dev", version: "v1alpha1", kind: "UnreadKind", plural: "unreadkinds" };
}

/// The object that says that something is missing. What does not exist at all is not missing.
pub(crate) fn record(missing: &Missing) -> Option<Value> {
    let Unread { kind, known_namespace } = &missing.unread;
    let why = match missing.reason {
        MissingReason::NotServed => return None,
        MissingReason::Forbidden => "whoever wrote this may not read them",
        MissingReason::OtherVersion => "the API server has them in other versions only",
        MissingReason::Unreadable => "some could not be understood",
        MissingReason::Secret => "secrets are never read",
        MissingReason::NotInFile => "they were not in the file that this was made from",
    };
    let mut object = json!({
        "apiVersion": UnreadRecord::ID.api_version(),
        "kind": UnreadRecord::ID.kind,
        "metadata": { "name": kind_name(*kind) },
        "group": kind.group,
        "plural": kind.plural,
        "why": why,
    });
    if let Some(namespace) = known_namespace {
        object["exceptNamespace"] = (&**namespace).into();
    }
    Some(object)
}

/// Whether an object is such a record.
pub(crate) fn is_record(object: &Value) -> bool {
    object["kind"] == UnreadRecord::ID.kind && object["apiVersion"] == UnreadRecord::ID.api_version()
}

/// Masks the name in a record; the names of kinds are no secret.
pub(crate) fn mask_record(object: &mut Value, mask: &mut Mask) {
    if let Some(namespace) = object.get("exceptNamespace").and_then(Value::as_str) {
        let mut stand_in =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        mask.apply(&mut stand_in);
        object["exceptNamespace"] = stand_in["metadata"]["name"].take();
    }
}

/// What the records of a dump say is missing, of the kinds that the scheduler reads.
pub(crate) fn missing_in(cluster: &Snapshot, config: &LoadedConfig) -> Vec<Missing> {
    let kinds = config.kinds();
    let records = cluster.objects().all::<UnreadRecord>();
    let missing = records.filter_map(|(_, record)| {
        let kind = kinds.iter().find(|kind| kind.group == record.group && kind.plural == record.plural)?;
        Some(Missing {
            unread: Unread {
                kind: *kind,
                known_namespace: record.except_namespace.as_deref().map(Into::into),
            },
            reason: MissingReason::NotInFile,
            message: record.why.clone(),
        })
    });
    missing.collect()
}
