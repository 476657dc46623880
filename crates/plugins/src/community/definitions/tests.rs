//! A schema names the fields that the type reads, and no others.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::super::capacity_scheduling::{ElasticQuotaSpec, ElasticQuotaStatus};
use super::super::coscheduling::{PodGroupSpec, PodGroupStatus};
use super::super::node_resource_topology_match::topology::{
    AttributeWords, CostWords, NodeResourceTopologyWords, ZoneResourceWords, ZoneWords,
};
use super::*;
use crate::community::network_aware::{
    AppGroupSpec, AppGroupStatus, NetworkTopologySpec, NetworkTopologyStatus,
};

/// Asks a type which fields it reads, and gives it nothing.
struct FieldNames<'a>(&'a mut BTreeSet<String>);

#[derive(Debug)]
struct Nothing;

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is nothing to read")
    }
}

impl std::error::Error for Nothing {}

impl serde::de::Error for Nothing {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Nothing
    }
}

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Nothing;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Nothing> {
        Err(Nothing)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Nothing> {
        self.0.extend(fields.iter().map(ToString::to_string));
        Err(Nothing)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields_of<'de, T: Deserialize<'de>>() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    assert!(T::deserialize(FieldNames(&mut fields)).is_err());
    fields
}

#[test]
fn schemas_name_what_the_types_read() {
    let named = |schema: &Value| -> BTreeSet<String> {
        schema["properties"].as_object().expect("an object has properties").keys().cloned().collect()
    };
    let [quota, group, app, network, topology] = &definitions()[..] else { panic!("there are five") };
    assert_eq!(named(&quota.spec), fields_of::<ElasticQuotaSpec>());
    assert_eq!(named(&quota.status), fields_of::<ElasticQuotaStatus>());
    assert_eq!(named(&group.spec), fields_of::<PodGroupSpec>());
    assert_eq!(named(&group.status), fields_of::<PodGroupStatus>());
    assert_eq!(named(&app.spec), fields_of::<AppGroupSpec>());
    assert_eq!(named(&app.status), fields_of::<AppGroupStatus>());
    assert_eq!(named(&network.spec), fields_of::<NetworkTopologySpec>());
    assert_eq!(named(&network.status), fields_of::<NetworkTopologyStatus>());
    let whole = topology.whole.as_ref().expect("it has neither spec nor status");
    let mut fields = fields_of::<NodeResourceTopologyWords>();
    assert!(fields.remove("metadata"), "which is the API's own");
    assert_eq!(named(whole), fields);
    let items = |schema: &Value, field: &str| schema["properties"][field]["items"].clone();
    let zone = items(whole, "zones");
    assert_eq!(named(&zone), fields_of::<ZoneWords>());
    assert_eq!(named(&items(&zone, "costs")), fields_of::<CostWords>());
    assert_eq!(named(&items(&zone, "resources")), fields_of::<ZoneResourceWords>());
    for attributes in [items(whole, "attributes"), items(&zone, "attributes")] {
        assert_eq!(named(&attributes), fields_of::<AttributeWords>());
    }
}
