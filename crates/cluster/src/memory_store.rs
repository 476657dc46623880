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
    ///
    /// What is not there is overwritten by the next save, so that is believed only if the API server says so twice: one that has just
    /// started, or another one behind the same balancer, may not have what is there.
    pub(crate) async fn read_at_last(&self, last_error: &mut String) -> Result<Stored, String> {
        let mut is_confirmed = false;
        loop {
            match self.read().await {
                Ok(stored) if stored.object.is_some() || is_confirmed => return Ok(stored),
                Ok(_) => is_confirmed = true,
                // Who may not read it may not a moment later either. Somebody whom the API server does not know (401) may have new
                // credentials by then.
                Err(error) if error.code() == Some(403) => return Err(error.to_string()),
                Err(error) => *last_error = error.to_string(),
            }
            sleep(READ_PAUSE).await;
        }
    }

    /// Writes the entries in the place of those that are there, whoever wrote them: only a leader comes this far.
    ///
    /// An answer that is not the object comes from somebody else, and does not say that anything was written. If it was, the next try
    /// meets a conflict and reads the object first.
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
            let call = self.call(&before, &entries, saved_at);
            let error = match self.server.fetch(&call).await {
                Ok(answer) => {
                    let (object, _) = self.taken_apart(&call, &answer)?;
                    let stored = Stored { object: Some(object), entries, saved_at: Some(saved_at) };
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
            // A proxy that says so knows nothing of the object.
            Err(error) if error.is_not_found() => return Ok(Stored::default()),
            Err(error) => return Err(error),
        };
        let (object, data) = self.taken_apart(&call, &text)?;
        // An entry that is no text was written by no scheduler of ours.
        let mut entries: BTreeMap<String, String> = BTreeMap::<_, Value>::deserialize(data)
            .unwrap_or_default()
            .into_iter()
            .filter_map(text_of)
            .collect();
        let saved_at = entries.remove(SAVED_AT).and_then(|time| serde_json::from_value(json!(time)).ok());
        Ok(Stored { object: Some(object), entries, saved_at })
    }

    /// The object of an answer without its data, and the data. Whatever else comes with 200, such as the word of a gateway, is neither a
    /// ConfigMap without entries nor one that was written.
    fn taken_apart(&self, call: &Call, answer: &[u8]) -> Result<(Value, Value), RequestError> {
        let broken = |reason: String| self.server.broken(call, reason);
        let mut object: Value = serde_json::from_slice(answer).map_err(|error| broken(error.to_string()))?;
        if object["kind"] != CONFIG_MAP.kind || object["metadata"]["name"] != *self.place.name {
            return Err(broken(format!("the answer is not the ConfigMap {}", self.place())));
        }
        let data = object["data"].take();
        Ok((object, data))
    }

    fn path(&self) -> String {
        let MemoriesPlace { namespace, name } = &self.place;
        let key = ObjectKey { namespace: namespace.as_str().into(), name: name.as_str().into() };
        path::of_object(CONFIG_MAP, &key, None)
    }
}

fn text_of((name, value): (String, Value)) -> Option<(String, String)> {
    match value {
        Value::String(text) => Some((name, text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use supercargo_client::fake::{Answer, Fake};
    use tokio::time::{Instant, timeout};

    use super::*;

    fn not_found() -> Answer {
        Answer::plain(
            404,
            r#"{"kind":"Status","reason":"NotFound","code":404,"message":"configmaps \"m\" not found"}"#,
        )
    }

    fn found() -> Answer {
        Answer::ok(
            r#"{"kind":"ConfigMap","metadata":{"name":"m","resourceVersion":"1"},"data":{"memory.Counter":"7"}}"#,
        )
    }

    fn store(fake: &Fake) -> MemoryStore {
        let place = MemoriesPlace { namespace: "n".to_owned(), name: "m".to_owned() };
        MemoryStore::new(&ApiServer::new(fake.service(), None), WriteGate::always_open(), place)
    }

    /// What a predecessor has saved is lost if it is believed too easily that there is nothing.
    #[tokio::test(start_paused = true)]
    async fn only_what_the_api_server_says_twice_is_not_there() {
        let proxy = || Answer::plain(404, "404 page not found");
        let unknown = || Answer::status(401, "who are you?");
        let refused = || Answer::status(403, "you may not");
        type Script = [fn() -> Answer; 4];
        // What is answered, and what is read after how many requests.
        let cases: [(Script, &str, usize); 6] = [
            ([found, found, found, found], "1 entries", 1),
            ([proxy, found, found, found], "1 entries", 2),
            ([unknown, unknown, found, found], "1 entries", 3),
            ([not_found, found, found, found], "1 entries", 2),
            ([not_found, proxy, not_found, found], "0 entries", 3),
            ([refused, found, found, found], "you may not", 1),
        ];
        for (number, (script, expected, requests)) in cases.into_iter().enumerate() {
            let fake = Fake::numbered(move |number, _| script[number]());
            let began = Instant::now();
            let read = timeout(Duration::from_secs(5), store(&fake).read_at_last(&mut String::new())).await;
            let read = read.expect("in time").map(|stored| format!("{} entries", stored.entries.len()));
            assert_eq!(read.unwrap_or_else(|error| error), expected, "case {number}");
            assert_eq!(fake.requests().len(), requests, "case {number}");
            assert_eq!(began.elapsed(), READ_PAUSE * (requests as u32 - 1), "case {number}");
        }
    }

    /// A gateway answers 200 with anything, to what is read and to what is written.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_the_object_neither_empties_nor_replaces_it() {
        let entries = BTreeMap::from([("memory.Counter".to_owned(), "8".to_owned())]);
        for body in [
            "[]",
            r#""ok""#,
            "{}",
            "null",
            "true",
            "1",
            "",
            r#"{"kind":"Status","metadata":{},"status":"Success"}"#,
            r#"{"kind":"ConfigMap","metadata":{"name":"another"},"data":{}}"#,
            r#"{"kind":"Secret","metadata":{"name":"m"},"data":{}}"#,
        ] {
            // The gateway answers the first read and the first write; after that its owner notices.
            let fake = Fake::numbered(move |number, _| match number {
                0 | 2 => Answer::ok(body),
                _ => found(),
            });
            let store = store(&fake);
            let mut error = String::new();
            let before = store.read_at_last(&mut error).await.expect("it is there in the end");
            assert_eq!((before.entries.len(), fake.requests().len()), (1, 2), "{body}");
            assert!(
                body.is_empty() || error.ends_with("the answer is not the ConfigMap n/m"),
                "{body}: {error}"
            );

            let saved_at = Timestamp::from_seconds(1_800_000_000);
            let wrote = store.write(entries.clone(), saved_at, before.clone()).await;
            assert!(matches!(wrote, Err(RequestError::Broken { .. })), "{body}: {wrote:?}");
            let wrote = store.write(entries.clone(), saved_at, before.clone()).await.expect("it is written");
            assert_eq!((&wrote.stored.object, &wrote.stored.entries), (&before.object, &entries), "{body}");
            let lines: Vec<_> =
                fake.requests()[2..].iter().map(supercargo_client::fake::Asked::line).collect();
            assert_eq!(lines, ["PUT /api/v1/namespaces/n/configmaps/m"; 2], "{body}");
        }
    }
}
