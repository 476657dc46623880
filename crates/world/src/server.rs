//! The API server of a world: what it has, and what it does when it is asked to.

use serde_json::{Value, json};
use supercargo_api::{Applied, Refusal};
use supercargo_engine::{ExtenderSettings, Order, Ticket};
use supercargo_framework::{AskFailure, Conclusion, Effect, ExtenderAnswer, ExtenderQuestion, Profile};
use supercargo_model::{DecodeError, Decoded, KindId};

use crate::name::ObjectName;
use crate::words::words;
use crate::world::World;

/// What extenders answer.
pub(crate) type Extender = fn(&ExtenderQuestion) -> Result<ExtenderAnswer, String>;

/// For the tests of this repository: no promise.
#[doc(hidden)]
impl World {
    /// With these extenders, which all answer alike.
    #[must_use]
    pub fn with_extenders(mut self, settings: Vec<ExtenderSettings>, extender: Extender) -> Self {
        self.scheduler = self.scheduler.with_extenders(settings);
        self.extender = extender;
        self
    }

    /// Takes an order that was not done yet, and will not be by itself.
    pub fn take_undone(&mut self, line: &str) -> Option<Ticket> {
        let position = self.undone.iter().position(|order| words(&order.effect) == line)?;
        self.undone.remove(position).ticket
    }
}

impl World {
    /// Keeps an object under its name and tells the scheduler; or says why it cannot be.
    pub(crate) fn store(&mut self, object: Value, by_order: bool) -> Result<Value, String> {
        let name = ObjectName::of(&object)?;
        let object = self.completed(object, &name);
        let uid = uid_of_pod(&name, &object);
        if uid.as_ref().and_then(|uid| self.pod_names.get(uid)).is_some_and(|other| *other != name) {
            return Err(format!("another pod has the UID {}", object["metadata"]["uid"]));
        }
        let decoded = match self.decoder.decode(&object.to_string()) {
            Ok(Decoded::Unread { other_version: Some(other), .. }) if !by_order => {
                return Err(format!(
                    "it is {}, and what plugins read is {}",
                    other.found,
                    other.read.api_version()
                ));
            }
            Ok(decoded) => Some(decoded),
            // A plugin may write what nobody reads.
            Err(DecodeError::UnknownKind { .. }) if by_order || self.is_written(&object) => None,
            Err(error) => return Err(error.to_string()),
        };
        // A pod that comes in the place of another one is another pod.
        if let Some(before) = self.objects.get(&name)
            && name.kind == "Pod"
            && before["metadata"]["uid"] != object["metadata"]["uid"]
        {
            self.forget(&name);
        }
        self.pod_names.extend(uid.map(|uid| (uid, name.clone())));
        self.objects.insert(name, object.clone());
        if let Some(decoded) = decoded {
            self.scheduler.put(decoded, self.now);
        }
        Ok(object)
    }

    /// Whether a plugin declares that it writes objects of such a kind.
    fn is_written(&self, object: &Value) -> bool {
        let plugins = self.scheduler.profiles().iter().flat_map(Profile::plugins);
        let mut writes = plugins.flat_map(|plugin| plugin.writes.iter());
        writes.any(|write| {
            object["kind"] == write.kind.kind && object["apiVersion"] == *write.kind.api_version()
        })
    }

    /// An object goes.
    pub(crate) fn forget(&mut self, name: &ObjectName) {
        let Some(object) = self.objects.remove(name) else { return };
        if let Some(uid) = uid_of_pod(name, &object) {
            self.pod_names.remove(&uid);
        }
        if let Ok(decoded) = self.decoder.decode(&object.to_string()) {
            self.scheduler.remove(&decoded, self.now);
        }
    }

    /// Does what is ordered, or fails as the test says, and tells the scheduler how it ended.
    #[track_caller]
    pub(crate) fn perform(&mut self, order: &Order) {
        let line = words(&order.effect);
        let fault = self.faults.iter().find(|(start, _)| line.starts_with(start));
        let conclusion = match fault {
            Some((_, conclusion)) => conclusion.clone(),
            None => self.carried_out(&order.effect),
        };
        self.log.push(match conclusion.error() {
            None => line,
            Some(error) => format!("{line}: {error}"),
        });
        let Some(ticket) = order.ticket else { return };
        let failed = conclusion.error().map(str::to_owned);
        match &order.effect {
            Effect::LookUp { pod } => {
                let found = match failed {
                    Some(error) => Err(error),
                    None => Ok(self.looked_up(&pod.namespace, &pod.name)),
                };
                self.scheduler.looked_up(ticket, found, self.now);
            }
            Effect::Ask { question, .. } => {
                let answer = failed.map_or_else(|| (self.extender)(question), Err);
                if let (Ok(ExtenderAnswer::Bound), ExtenderQuestion::Bind { pod, node }) = (&answer, question)
                {
                    let bound = self.carried_out(&Effect::Bind { pod: pod.clone(), node: node.clone() });
                    assert!(bound.is_done(), "the extender says that it bound the pod: {bound:?}");
                }
                self.scheduler.answer(ticket, answer.map_err(AskFailure::Answered), self.now);
            }
            _ => self.scheduler.conclude(ticket, &conclusion, self.now),
        }
    }

    fn looked_up(&self, namespace: &str, name: &str) -> Option<Decoded> {
        let object = self.objects.get(&ObjectName::new("", "Pod", namespace, name))?;
        Some(self.decoder.decode(&object.to_string()).expect("it could be read when it was put"))
    }

    /// Does to the objects what an effect asks for.
    #[track_caller]
    fn carried_out(&mut self, effect: &Effect) -> Conclusion {
        let (kind, namespace, name) = match effect {
            Effect::Create { kind, namespace, .. } => return self.create(effect, *kind, namespace),
            Effect::Bind { pod, .. }
            | Effect::UpdateStatus { pod, .. }
            | Effect::Evict { victim: pod, .. } => (KindId::POD, &*pod.namespace, &*pod.name),
            Effect::Patch { kind, key, .. } | Effect::Delete { kind, key, .. } => {
                (*kind, &*key.namespace, &*key.name)
            }
            Effect::Ask { .. } | Effect::LookUp { .. } | Effect::Record(_) => return Conclusion::Done,
        };
        let name = ObjectName::new(kind.group, kind.kind, namespace, name);
        // A pod that is gone need neither be told of nor evicted.
        let is_optional = matches!(effect, Effect::UpdateStatus { .. } | Effect::Evict { .. });
        let Some(stored) = self.objects.get(&name).cloned() else {
            let gone = Conclusion::Gone { error: "not found".to_owned() };
            return if is_optional { Conclusion::Done } else { gone };
        };
        let mut object = stored.clone();
        for call in supercargo_api::calls(effect, self.now) {
            object = match supercargo_api::applied(&call, &object) {
                Ok(Applied::Changed(changed)) => changed,
                Ok(Applied::Deleted) => return self.delete(&name, object),
                // It is another one of that name.
                Err(_) if is_optional => return Conclusion::Done,
                Err(Refusal::Conflict(error)) => return Conclusion::Conflict { error },
                Err(Refusal::Invalid(error)) => return Conclusion::Refused { error, code: Some(422) },
            };
        }
        // What changes nothing is no change: nobody is told.
        let object = if object == stored { stored } else { self.written(object) };
        match effect {
            Effect::Patch { .. } => Conclusion::DoneWith(Box::new(object)),
            _ => Conclusion::Done,
        }
    }

    #[track_caller]
    fn create(&mut self, effect: &Effect, kind: KindId, namespace: &str) -> Conclusion {
        let calls = supercargo_api::calls(effect, self.now);
        let mut object: Value = serde_json::from_slice(&calls[0].body).expect("bodies are JSON");
        let metadata = &mut object["metadata"];
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        if let (None, Some(prefix)) = (metadata["name"].as_str(), metadata["generateName"].as_str()) {
            metadata["name"] = json!(format!("{prefix}{}", self.versions));
        }
        let Some(name) = metadata["name"].as_str() else {
            let error = "metadata.name: Required value: name or generateName is required".to_owned();
            return Conclusion::Refused { error, code: Some(422) };
        };
        let name = ObjectName::new(kind.group, kind.kind, namespace, name);
        if self.objects.contains_key(&name) {
            return Conclusion::Conflict { error: format!("{} {:?} already exists", kind.plural, name.name) };
        }
        Conclusion::DoneWith(Box::new(self.written(object)))
    }

    /// A pod on a node is given time to end; everything else goes at once.
    #[track_caller]
    fn delete(&mut self, name: &ObjectName, mut object: Value) -> Conclusion {
        let is_on_node = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        if name.kind != "Pod" || !is_on_node {
            self.forget(name);
        } else {
            if object["metadata"]["deletionTimestamp"].is_null() {
                object["metadata"]["deletionTimestamp"] = json!(self.now);
            }
            self.written(object);
        }
        Conclusion::Done
    }

    /// Keeps what an order made of an object.
    #[track_caller]
    fn written(&mut self, object: Value) -> Value {
        let shown = object.clone();
        match self.store(object, true) {
            Ok(stored) => stored,
            Err(error) => panic!("what was ordered leaves an object that cannot be: {error}\n{shown:#}"),
        }
    }
}

/// The UID of an object that is a pod, in JSON.
fn uid_of_pod(name: &ObjectName, object: &Value) -> Option<String> {
    (name.kind == "Pod").then(|| object["metadata"]["uid"].to_string())
}
