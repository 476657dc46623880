//! Reading what Kubernetes writes.
//!
//! Go's decoder takes `null` for any value and leaves the zero value; serde wants to be told. And it takes an
//! object only where it expects one, where serde also takes a list of the fields in the order of the struct.

use std::fmt;
use std::iter::empty;

use serde::Deserialize;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, Expected, MapAccess, SeqAccess, Unexpected,
    Visitor,
};

/// Reads `null` as the default value, whoever reads. [`from_json`] does so anyway.
pub fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads JSON text by Go's rules.
pub fn from_json<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = T::deserialize(ByGoRules(&mut deserializer))?;
    deserializer.end()?;
    Ok(value)
}

/// A deserializer, or what it hands out, that keeps to Go's rules.
#[derive(Debug)]
pub struct ByGoRules<T>(pub T);

/// A visitor of one kind of value, to which `null` is the zero value of that kind.
struct Expect<V> {
    visitor: V,
    zero: Zero,
}

/// What `null` stands for.
#[derive(Clone, Copy)]
enum Zero {
    /// Itself: the visitor knows what to do.
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

macro_rules! expect {
    ($($method:ident: $zero:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.deserialize_any(Expect { visitor, zero: Zero::$zero })
        }
    )*};
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*),)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* Expect { visitor, zero: Zero::Null })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ByGoRules<D> {
    type Error = D::Error;

    expect! {
        deserialize_any: Null,
        deserialize_unit: Null,
        deserialize_bool: Bool,
        deserialize_i8: Number, deserialize_i16: Number, deserialize_i32: Number, deserialize_i64: Number,
        deserialize_u8: Number, deserialize_u16: Number, deserialize_u32: Number, deserialize_u64: Number,
        deserialize_i128: Number, deserialize_u128: Number, deserialize_f32: Number, deserialize_f64: Number,
        deserialize_str: Text, deserialize_string: Text,
        deserialize_seq: List,
        deserialize_map: Object,
    }

    forward! {
        deserialize_char(), deserialize_bytes(), deserialize_byte_buf(), deserialize_option(),
        deserialize_unit_struct(name: &'static str),
        deserialize_newtype_struct(name: &'static str),
        deserialize_tuple(len: usize),
        deserialize_tuple_struct(name: &'static str, len: usize),
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_identifier(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(visitor)
    }
}

macro_rules! visit {
    ($($method:ident($value:ident: $type:ty): $unexpected:expr,)*) => {$(
        fn $method<E: Error>(self, $value: $type) -> Result<V::Value, E> {
            match self.zero {
                // Whoever wants an object takes nothing else.
                Zero::Object => Err(E::invalid_type($unexpected, &self)),
                _ => self.visitor.$method($value),
            }
        }
    )*};
}

macro_rules! pass_on {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

/// What a visitor says it expects.
fn expected_by<'de>(visitor: &impl Visitor<'de>) -> String {
    let expected: &dyn Expected = visitor;
    expected.to_string()
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Expect<V> {
    type Value = V::Value;

    /// What was expected, for people: the name of the type that holds an object is none of theirs.
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = expected_by(&self.visitor);
        f.write_str(if expected.starts_with("struct ") { "an object" } else { &expected })
    }

    visit! {
        visit_bool(value: bool): Unexpected::Bool(value),
        visit_i64(value: i64): Unexpected::Signed(value),
        visit_u64(value: u64): Unexpected::Unsigned(value),
        visit_i128(value: i128): Unexpected::Other("a large number"),
        visit_u128(value: u128): Unexpected::Other("a large number"),
        visit_f64(value: f64): Unexpected::Float(value),
        visit_str(value: &str): Unexpected::Str(value),
        visit_borrowed_str(value: &'de str): Unexpected::Str(value),
        visit_string(value: String): Unexpected::Str(&value),
    }

    pass_on! {
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(ByGoRules(deserializer))
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        match self.zero {
            Zero::Null => self.visitor.visit_unit(),
            Zero::Bool => self.visitor.visit_bool(false),
            Zero::Number => self.visitor.visit_u64(0),
            Zero::Text => self.visitor.visit_borrowed_str(""),
            Zero::List => self.visitor.visit_seq(SeqDeserializer::new(empty::<&str>())),
            Zero::Object => self.visitor.visit_map(MapDeserializer::new(empty::<(&str, &str)>())),
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(ByGoRules(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        match self.zero {
            Zero::Object => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
            _ => self.visitor.visit_seq(ByGoRules(list)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(ByGoRules(map))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for ByGoRules<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(ByGoRules(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for ByGoRules<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(ByGoRules(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for ByGoRules<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        self.0.deserialize(ByGoRules(deserializer))
    }
}
