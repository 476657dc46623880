//! What goes over the wire between a scheduler and its extenders.
//!
//! The types have no JSON names upstream (`k8s.io/kube-scheduler/extender/v1`, since 1.17), so that Go writes the names of
//! their fields, `NodeNames`, and reads them in any case: `nodenames` and `nodeNames` mean the same. Objects inside, pods
//! and nodes, are written as Kubernetes writes them. Here `O` is such an object: text that is passed on as it is, or
//! [`NamedObject`] for whoever wants no more of it.
//!
//! Values are read by [`read`], which takes `null` for anything, as Go does.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use supercargo_model::wire::ByGoRules;

/// An object as text.
pub type RawJson = Box<RawValue>;

/// Reads one value, as Go's `Decoder` does: names in any case, `null` for anything, and what follows the value is left
/// alone.
pub fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    ByGoRules(PhantomData::<T>).deserialize(&mut deserializer)
}

/// Structs whose fields Go names. What is not given, or is `null`, has its zero value.
macro_rules! go_structs {
    ($(
        $(#[$about:meta])*
        struct $name:ident $(<$object:ident>)? {
            $($(#[$about_field:meta])* $field:ident: $type:ty = $key:literal,)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Serialize)]
        pub struct $name $(<$object = RawJson>)? {
            $($(#[$about_field])* #[serde(rename = $key)] pub $field: $type,)*
        }

        // Not derived: that would ask for a default of the object.
        impl $(<$object>)? Default for $name $(<$object>)? {
            fn default() -> Self {
                $name { $($field: Default::default(),)* }
            }
        }

        impl<'de $(, $object: Deserialize<'de>)?> Deserialize<'de> for $name $(<$object>)? {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<T>(PhantomData<T>);
                impl<'de $(, $object: Deserialize<'de>)?> Visitor<'de> for Fields<$name $(<$object>)?> {
                    type Value = $name $(<$object>)?;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("an object (", stringify!($name), ")"))
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
                        let mut value = Self::Value::default();
                        while let Some(key) = fields.next_key::<String>()? {
                            $(if key.eq_ignore_ascii_case($key) {
                                value.$field = fields.next_value::<Option<$type>>()?.unwrap_or_default();
                                continue;
                            })*
                            fields.next_value::<IgnoredAny>()?;
                        }
                        Ok(value)
                    }
                }
                deserializer.deserialize_map(Fields(PhantomData))
            }
        }
    )*};
}

go_structs! {
    /// The question which nodes a pod can run on, and the question how good they are.
    struct ExtenderArgs<O> {
        /// The pod.
        pod: Option<O> = "Pod",
        /// The nodes, for an extender that does not know them itself.
        nodes: Option<NodeList<O>> = "Nodes",
        /// Their names, for one that does (`nodeCacheCapable`).
        node_names: Option<Vec<Box<str>>> = "NodeNames",
    }

    /// A `v1.NodeList`.
    struct NodeList<O> {
        /// Always empty, and always there.
        metadata: ListMetadata = "metadata",
        /// The nodes.
        items: Vec<O> = "items",
    }

    /// Which nodes a pod can run on.
    struct ExtenderFilterResult<O> {
        /// The nodes, if the question named [`ExtenderArgs::nodes`].
        nodes: Option<NodeList<O>> = "Nodes",
        /// Their names, if the question named [`ExtenderArgs::node_names`].
        node_names: Option<Vec<Box<str>>> = "NodeNames",
        /// Why the pod cannot run on others, where evicting pods may help.
        failed_nodes: BTreeMap<Box<str>, String> = "FailedNodes",
        /// Why it cannot, where evicting pods does not help. Goes before `failed_nodes`.
        failed_and_unresolvable_nodes: BTreeMap<Box<str>, String> = "FailedAndUnresolvableNodes",
        /// What went wrong; empty if nothing did.
        error: String = "Error",
    }

    /// How good a node is for a pod.
    struct HostPriority {
        /// The node's name.
        host: Box<str> = "Host",
        /// From 0 to 10.
        score: i64 = "Score",
    }

    /// The question which nodes victims may be evicted from.
    struct ExtenderPreemptionArgs<O> {
        /// The pod that needs the room.
        pod: Option<O> = "Pod",
        /// The victims by node, for an extender that does not know the pods itself.
        node_name_to_victims: Option<BTreeMap<Box<str>, Victims<O>>> = "NodeNameToVictims",
        /// The same, for one that does (`nodeCacheCapable`).
        node_name_to_meta_victims: Option<BTreeMap<Box<str>, MetaVictims>> = "NodeNameToMetaVictims",
    }

    /// The pods that would have to go from a node.
    struct Victims<O> {
        /// The pods.
        pods: Vec<O> = "Pods",
        /// How many of them a disruption budget protects.
        pdb_violations: i64 = "NumPDBViolations",
    }

    /// The nodes that victims may be evicted from. Whatever the question was, pods are named by UID.
    struct ExtenderPreemptionResult {
        /// The victims by node.
        node_name_to_meta_victims: BTreeMap<Box<str>, MetaVictims> = "NodeNameToMetaVictims",
    }

    /// The pods that would have to go from a node, by UID.
    struct MetaVictims {
        /// The pods.
        pods: Vec<MetaPod> = "Pods",
        /// How many of them a disruption budget protects.
        pdb_violations: i64 = "NumPDBViolations",
    }

    /// A pod, by UID.
    struct MetaPod {
        /// `metadata.uid`
        uid: Box<str> = "UID",
    }

    /// The order to bind a pod to a node.
    struct ExtenderBindingArgs {
        /// The pod's name.
        pod_name: Box<str> = "PodName",
        /// The pod's namespace.
        pod_namespace: Box<str> = "PodNamespace",
        /// The pod's UID.
        pod_uid: Box<str> = "PodUID",
        /// The node's name.
        node: Box<str> = "Node",
    }

    /// What came of an [`ExtenderBindingArgs`].
    struct ExtenderBindingResult {
        /// What went wrong; empty if nothing did.
        error: String = "Error",
    }

    /// An object of which only the name and the UID matter.
    struct NamedObject {
        /// `metadata`
        metadata: NamedMetadata = "metadata",
    }

    /// The name and the UID.
    struct NamedMetadata {
        /// `metadata.name`
        name: Box<str> = "name",
        /// `metadata.uid`
        uid: Box<str> = "uid",
    }
}

/// How good nodes are for a pod.
pub type HostPriorityList = Vec<HostPriority>;

/// The `metadata` of a list, of which nothing matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListMetadata {}

impl<O> NodeList<O> {
    /// A list of these nodes.
    pub fn new(items: Vec<O>) -> Self {
        NodeList { metadata: ListMetadata {}, items }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for text in [
            r#"{"NodeNames": ["a", "b"], "FailedNodes": {"c": "full"}, "Error": "none"}"#,
            r#"{"nodeNames": ["a", "b"], "failedNodes": {"c": "full"}, "error": "none"}"#,
            r#"{"nodenames": ["a", "b"], "failednodes": {"c": "full"}, "ERROR": "none", "more": [{}]}"#,
        ] {
            let result: ExtenderFilterResult = read(text.as_bytes()).expect(text);
            assert_eq!(result.node_names.as_deref(), Some(&["a".into(), "b".into()][..]), "{text}");
            assert_eq!(result.failed_nodes.get("c").map(String::as_str), Some("full"), "{text}");
            assert_eq!(result.error, "none", "{text}");
            assert!(result.nodes.is_none(), "{text}");
        }
    }

    #[test]
    fn anything_may_be_null() {
        let result: ExtenderFilterResult<NamedObject> = read(
            br#"{"Nodes": {"metadata": null, "items": null}, "NodeNames": [null], "FailedNodes": {"a": null},
                 "FailedAndUnresolvableNodes": null, "Error": null}"#,
        )
        .expect("null is nothing");
        assert!(result.nodes.expect("is there").items.is_empty());
        assert_eq!(result.node_names.expect("is there"), ["".into()]);
        assert_eq!(result.failed_nodes["a"], "");
        assert!(read::<ExtenderFilterResult>(b"null").expect("null is nothing").node_names.is_none());
        assert!(read::<HostPriorityList>(b"null").expect("null is nothing").is_empty());
        let list: HostPriorityList =
            read(br#"[null, {"host": "a", "score": null}]"#).expect("null is nothing");
        assert_eq!(
            list.iter().map(|entry| (&*entry.host, entry.score)).collect::<Vec<_>>(),
            [("", 0), ("a", 0)]
        );
        let result: ExtenderPreemptionResult =
            read(br#"{"nodeNameToMetaVictims": {"a": null, "b": {"pods": [null]}}}"#)
                .expect("null is nothing");
        assert!(result.node_name_to_meta_victims["a"].pods.is_empty());
        assert_eq!(&*result.node_name_to_meta_victims["b"].pods[0].uid, "");
    }

    #[test]
    fn the_last_word_counts_and_what_follows_does_not() {
        let result: ExtenderBindingResult =
            read(br#"{"error": "a", "Error": "b"} and more"#).expect("is read");
        assert_eq!(result.error, "b");
        assert!(read::<ExtenderBindingResult>(b"").is_err());
        assert!(read::<ExtenderBindingResult>(br#"["a"]"#).is_err(), "a list is no object");
        assert!(
            read::<HostPriorityList>(br#"[{"Host": "a", "Score": 1.5}]"#).is_err(),
            "Go refuses fractions"
        );
        assert!(read::<HostPriorityList>(br#"[{"Host": "a", "Score": "1"}]"#).is_err(), "Go refuses texts");
    }

    #[test]
    fn questions_are_written_as_go_writes_them() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("is JSON");
        let args = ExtenderArgs {
            pod: Some(raw(r#"{"a":  1}"#)),
            node_names: Some(vec!["n".into()]),
            ..Default::default()
        };
        let text = serde_json::to_string(&args).expect("can be written");
        assert_eq!(text, r#"{"Pod":{"a":  1},"Nodes":null,"NodeNames":["n"]}"#);
        let args = ExtenderArgs { nodes: Some(NodeList::new(vec![raw("{}")])), ..ExtenderArgs::default() };
        let text = serde_json::to_string(&args).expect("can be written");
        assert_eq!(text, r#"{"Pod":null,"Nodes":{"metadata":{},"items":[{}]},"NodeNames":null}"#);
        // And read again, object by object, as they were.
        let args: ExtenderArgs =
            read(br#"{"pod": {"b":  [2]}, "nodes": {"Items": [{"c": null}, 5]}}"#).expect("is read");
        assert_eq!(args.pod.expect("is there").get(), r#"{"b":  [2]}"#);
        let nodes = args.nodes.expect("is there");
        assert_eq!(nodes.items.iter().map(|item| item.get()).collect::<Vec<_>>(), [r#"{"c": null}"#, "5"]);

        let victims = BTreeMap::from([(
            "n".into(),
            MetaVictims { pods: vec![MetaPod { uid: "u".into() }], pdb_violations: 1 },
        )]);
        let args: ExtenderPreemptionArgs =
            ExtenderPreemptionArgs { node_name_to_meta_victims: Some(victims), ..Default::default() };
        assert_eq!(
            serde_json::to_value(&args).expect("can be written"),
            json!({
                "Pod": null,
                "NodeNameToVictims": null,
                "NodeNameToMetaVictims": { "n": { "Pods": [{ "UID": "u" }], "NumPDBViolations": 1 } }
            })
        );
    }
}
