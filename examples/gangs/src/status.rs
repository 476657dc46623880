//! How the gangs do: a status that the plugin keeps, and its page.

use std::borrow::Cow;

use supercargo_sdk::prelude::*;
use supercargo_sdk::serde_json::json;
use supercargo_sdk::{ObjectKey, escape_html};

use crate::{Gang, Gangs, LABEL, members};

/// A controller that writes how many pods of each gang are bound. Only the replica that leads writes.
impl Observe for Gangs {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::ALL), ClusterEvent::kind(Gang::ID, Actions::ADD)]
    }

    fn started(&self, context: &Context<'_>, acts: &mut Acts<'_>) {
        for (key, _) in context.cluster.objects().all::<Gang>() {
            let bound = members(context, &key.namespace, &key.name).count(Standing::Bound);
            acts.order(bound_pods(key.clone(), bound));
        }
    }

    fn observed(&self, context: &Context<'_>, change: &Change<'_>, acts: &mut Acts<'_>) {
        let key = match change {
            Change::Pod { old, new } => new.or(*old).and_then(|pod| {
                let name = pod.labels.label(LABEL)?;
                Some(ObjectKey { namespace: (*pod.namespace).into(), name: name.into() })
            }),
            Change::Object { new: Some(gang), .. } => Some(gang.key.clone()),
            _ => None,
        };
        if let Some(key) = key
            && context.cluster.objects().get::<Gang>(&key.namespace, &key.name).is_some()
        {
            let bound = members(context, &key.namespace, &key.name).count(Standing::Bound);
            acts.order(bound_pods(key, bound));
        }
    }
}

fn bound_pods(key: ObjectKey, bound: usize) -> Effect {
    Effect::Patch {
        kind: Gang::ID,
        key,
        subresource: Some("status"),
        patch: json!({ "status": { "bound": bound } }),
    }
}

impl Page for Gangs {
    fn title(&self) -> Cow<'static, str> {
        "Gangs and their pods".into()
    }

    fn render(&self, context: &Context<'_>, _: &PageRequest) -> Rendered {
        let row = |(key, gang): (&ObjectKey, &Gang)| {
            let pods = members(context, &key.namespace, &key.name);
            let [waiting, at_permit, bound] =
                [Standing::Waiting, Standing::AtPermit, Standing::Bound].map(|standing| pods.count(standing));
            let name = format!("{}/{}", key.namespace, key.name);
            let size = gang.spec.size;
            format!("<tr><td>{}<td>{size}<td>{waiting}<td>{at_permit}<td>{bound}\n", escape_html(&name))
        };
        let rows: String = context.cluster.objects().all::<Gang>().map(row).collect();
        Rendered::html(format!(
            "<table>\n<tr><th>gang<th>size<th>waiting<th>at Permit<th>bound\n{rows}</table>\n"
        ))
    }
}
