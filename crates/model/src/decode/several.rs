//! Kinds that several plugins read, each as a type of its own.

use super::*;
use crate::kinds::Service;
use crate::object::Objects;
use crate::{Kind, KindId};

/// Services again, as somebody else reads them.
#[derive(Debug, Deserialize)]
struct ServiceType {
    spec: ServiceTypeSpec,
}

#[derive(Debug, Deserialize)]
struct ServiceTypeSpec {
    r#type: String,
}

impl Kind for ServiceType {
    const ID: KindId = Service::ID;
}

#[test]
fn two_readers_of_one_kind_read_what_each_of_them_wants() {
    let kinds =
        [ReadableKind::of::<Service>(), ReadableKind::of::<ServiceType>(), ReadableKind::of::<Service>()];
    let text = r#"{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"a","name":"b"},
        "spec":{"type":"ClusterIP","selector":{"app":"x"}}}"#;
    for (kinds, has_types) in [(&kinds[..], true), (&kinds[..1], false)] {
        let decoder = Decoder::new(kinds.iter().copied(), false);
        let Ok(Decoded::Object(object)) = decoder.decode(text) else { panic!("it is a service") };
        let mut objects = Objects::default();
        objects.put(object.clone());
        let r#type = object.get::<ServiceType>().map(|service| service.spec.r#type.clone());
        assert_eq!(r#type.as_deref(), has_types.then_some("ClusterIP"));
        assert!(object.get::<Service>().is_some());
        assert!(objects.get::<Service>("a", "b").is_some());
        assert_eq!(objects.get::<ServiceType>("a", "b").is_some(), has_types);
        assert_eq!(objects.get_shared::<ServiceType>("a", "b").is_some(), has_types);
        assert_eq!(objects.all::<ServiceType>().count(), usize::from(has_types));
        assert_eq!(objects.all_shared::<Service>(|_| true).len(), 1);
        assert_eq!(objects.in_namespace::<ServiceType>("a").count(), usize::from(has_types));
    }
    // Whoever of them cannot read an object says so.
    let decoder = Decoder::new(kinds, false);
    assert!(decoder.decode(&text.replace(r#""type":"ClusterIP","#, "")).is_err());
}
