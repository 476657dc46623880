//! Where saved memories are: a ConfigMap of the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use supercargo_api::path;
use supercargo_client::{ApiServer, Call, RequestError, WriteGate};
use supercargo_model::{KindId, ObjectKey, Timestamp};
use tokio::time::sleep;

/// So often a write is tried whose answer says that somebody else has written, created or deleted the object meanwhile.
const WRITES_MAX: usize = 4;
/// How long it is waited before what is saved is read again, after that has failed.
const READ_PAUSE: Duration = Duration::from_millis(200);
/// The entry that says when the others were written.
const SAVED_AT: &str = "savedAt";

const CONFIG_MAP: KindId = KindId { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };

/// The name of the ConfigMap in which a scheduler's plugins save what they remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoriesPlace {
    /// Its namespace: that of the lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Reads and writes one ConfigMap. Writes go through a gate.
#[derive(Clone, Debug)]
pub(crate) struct MemoryStore {
    server: ApiServer,
    place: MemoriesPlace,
}

/// The ConfigMap as it was when it was last read or written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stored {
    /// The object without its data, so that what others have added to it stays; none if there is no such object.
    object: Option<Value>,
    pub(crate) entries: BTreeMap<String, String>,
    /// When the entries were written, if they say so.
    pub(crate) saved_at: Option<Timestamp>,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wrote {
    pub(crate) stored: Stored,
    /// Whether somebody else had written since the object was last read or written.
    pub(crate) had_conflict: bool,
}

impl MemoryStore {
    pub(crate) fn new(server: &ApiServer, gate: WriteGate, place: MemoriesPlace) -> Self {
        // What is saved waits for no binding, and takes no binding's turn.
        MemoryStore { server: server.with_own_limit().with_gate(gate), place }
    }

    /// `NAMESPACE/NAME`
    pub(crate) fn place(&self) -> String {
        format!("{}/{}", self.place.namespace, self.place.name)
    }

    /// Reads until that succeeds, or cannot succeed. How long that may take is up to the caller, who is left the last error.
    pub(crate) async fn read_at_last(&self, last_error: &mut String) -> Result<Stored, String> {
        loop {
            match self.read().await {
                Ok(stored) => return Ok(stored),
                // Who may not read it may not a moment later either.
                Err(error) if matches!(error.code(), Some(401 | 403)) => return Err(error.to_string()),
                Err(error) => *last_error = error.to_string(),
            }
            sleep(READ_PAUSE).await;
        }
    }

    /// Writes the entries in the place of those that are there, whoever wrote them: only a leader comes this far.
    pub(crate) async fn write(
        &self,
        entries: BTreeMap<String, String>,
        saved_at: Timestamp,
        mut before: Stored,
    ) -> Result<Wrote, RequestError> {
        let mut had_conflict = false;
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.server.fetch(&self.call(&before, &entries, saved_at)).await {
                Ok(answer) => {
                    let object = serde_json::from_slice(&answer).ok().map(without_data);
                    let stored = Stored { object, entries, saved_at: Some(saved_at) };
                    return Ok(Wrote { stored, had_conflict });
                }
                Err(error) => error,
            };
            if !matches!(error.code(), Some(404 | 409)) || tries >= WRITES_MAX {
                return Err(error);
            }
            had_conflict = true;
            before = self.read().await?;
            // Not the object is missing, but its namespace.
            if error.code() == Some(404) && before.object.is_none() && tries > 1 {
                return Err(error);
            }
        }
    }

    fn call(&self, before: &Stored, entries: &BTreeMap<String, String>, saved_at: Timestamp) -> Call {
        let mut data = json!(entries);
        data[SAVED_AT] = json!(saved_at);
        match &before.object {
            Some(object) => {
                let mut object = object.clone();
                object["data"] = data;
                Call::put(self.path(), object.to_string().into_bytes())
            }
            None => {
                let object = json!({
                    "apiVersion": CONFIG_MAP.version,
                    "kind": CONFIG_MAP.kind,
                    "metadata": { "namespace": self.place.namespace, "name": self.place.name },
                    "data": data,
                });
                let path = path::of_kind_in(CONFIG_MAP, Some(&self.place.namespace));
                Call::post(path, object.to_string().into_bytes())
            }
        }
    }

    async fn read(&self) -> Result<Stored, RequestError> {
        let call = Call::get(self.path());
        let text = match self.server.fetch(&call).await {
            Ok(text) => text,
            Err(error) if error.code() == Some(404) => return Ok(Stored::default()),
            Err(error) => return Err(error),
        };
        let unreadable = |error: serde_json::Error| self.server.broken(&call, error.to_string());
        let object: Value = serde_json::from_slice(&text).map_err(unreadable)?;
        // An entry that is no text was written by no scheduler of ours.
        let mut entries: BTreeMap<String, String> = BTreeMap::<_, Value>::deserialize(&object["data"])
            .unwrap_or_default()
            .into_iter()
            .filter_map(text_of)
            .collect();
        let saved_at = entries.remove(SAVED_AT).and_then(|time| serde_json::from_value(json!(time)).ok());
        Ok(Stored { object: Some(without_data(object)), entries, saved_at })
    }

    fn path(&self) -> String {
        let MemoriesPlace { namespace, name } = &self.place;
        let key = ObjectKey { namespace: namespace.as_str().into(), name: name.as_str().into() };
        path::of_object(CONFIG_MAP, &key, None)
    }
}

fn without_data(mut object: Value) -> Value {
    object["data"] = Value::Null;
    object
}

fn text_of((name, value): (String, Value)) -> Option<(String, String)> {
    match value {
        Value::String(text) => Some((name, text)),
        _ => None,
    }
}
