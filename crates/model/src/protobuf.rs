//! Reads protobuf, which API servers write if they are asked to: about half as many bytes as JSON, and what nobody reads is skipped without
//! a look at it.
//!
//! A type says by `message!` which of its fields is which field of a message. The numbers are those of Kubernetes' `generated.proto`
//! files; they never change there. Fields that are no pointers in Go are written even if they are empty.

use std::borrow::Cow;
use std::sync::Arc;

use crate::quantity::Quantity;
use crate::resources::ResourceList;
use crate::taints::{Effect, TolerationOperator};
use crate::time::Timestamp;

/// Why something cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not protobuf as Kubernetes writes it: {0}")]
pub struct Malformed(&'static str);

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number, of whatever width and sign.
    Number(u64),
    /// A text, or another message.
    Bytes(&'a [u8]),
}

/// The fields of a message in the order in which they are written: their numbers and values.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// Something that is read from a field; if the field comes again, what is in it is added.
pub(crate) trait ReadField: Default {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed>;

    /// Reads it where it may be missing.
    fn read_optional(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), Malformed> {
        slot.get_or_insert_default().read_field(value)
    }
}

/// Reads a message into the fields of a place: the field of a number into the one beside it. One with braces is a message whose fields go there.
/// Maps from texts to texts are `pairs`, and so are lists of messages whose first two fields are a key and a value. Fields of other numbers are
/// left out.
macro_rules! read_message {
    (
        $value:expr, $place:ident { $($number:literal => $field:ident $({ $($inner:tt)* })?),* $(,)? }
        $(pairs { $($pairs_number:literal => $pairs:ident),* })?
    ) => {
        $($(let mut $pairs: Vec<(Box<str>, Box<str>)> = Vec::new();)*)?
        for field in $value.fields()? {
            let (number, value) = field?;
            match number {
                $($number => $crate::protobuf::read_message!(@field value, $place, $field $({ $($inner)* })?),)*
                $($($pairs_number => $pairs.push(value.pair()?),)*)?
                _ => {}
            }
        }
        $($(if !$pairs.is_empty() {
            $place.$pairs = $pairs.into_iter().collect::<$crate::Labels>().into();
        })*)?
    };
    (@field $value:ident, $place:ident, $field:ident) => {
        $crate::protobuf::ReadField::read_field(&mut $place.$field, $value)?
    };
    (@field $value:ident, $place:ident, $field:ident { $($inner:tt)* }) => {{
        let inside = &mut $place.$field;
        $crate::protobuf::read_message!($value, inside { $($inner)* });
    }};
}

/// Lets a type be read from a message by [`read_message!`].
macro_rules! message {
    ($type:ty { $($fields:tt)* } $($pairs:tt)*) => {
        impl $crate::protobuf::ReadField for $type {
            fn read_field(
                &mut self,
                value: $crate::protobuf::Value<'_>,
            ) -> Result<(), $crate::protobuf::Malformed> {
                let words = self;
                $crate::protobuf::read_message!(value, words { $($fields)* } $($pairs)*);
                Ok(())
            }
        }
    };
}
pub(crate) use message;
pub(crate) use read_message;

/// Reads a whole message.
pub(crate) fn read<T: ReadField>(message: &[u8]) -> Result<T, Malformed> {
    let mut value = T::default();
    value.read_field(Value::Bytes(message))?;
    Ok(value)
}

impl<'a> Value<'a> {
    /// The fields of a message.
    pub fn fields(self) -> Result<Fields<'a>, Malformed> {
        self.bytes().map(Fields::of)
    }

    /// Text, or the bytes of a message.
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Number(_) => Err(Malformed("a number where a text or a message is expected")),
        }
    }

    /// A text, as it would be in JSON. Nobody makes sure that texts are UTF-8: a kubelet may report, and whoever writes protobuf may store, any
    /// bytes. They are no reason to know nothing of a pod.
    pub fn text(self) -> Result<Cow<'a, str>, Malformed> {
        let bytes = self.bytes()?;
        Ok(std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(in_json(bytes)), Cow::Borrowed))
    }

    /// A number.
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Value::Number(number) => Ok(number),
            Value::Bytes(_) => Err(Malformed("a text or a message where a number is expected")),
        }
    }

    /// An entry of a map from texts to texts.
    pub(crate) fn pair(self) -> Result<(Box<str>, Box<str>), Malformed> {
        let mut pair = (Cow::default(), Cow::default());
        for field in self.fields()? {
            match field? {
                (1, key) => pair.0 = key.text()?,
                (2, value) => pair.1 = value.text()?,
                _ => {}
            }
        }
        Ok((pair.0.into(), pair.1.into()))
    }
}

impl<'a> Fields<'a> {
    /// The fields of a message of these bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Fields { rest: bytes }
    }

    /// The last value of the field of a number, which is the one that counts; none if there is no such field.
    pub fn last(self, wanted: u32) -> Result<Option<Value<'a>>, Malformed> {
        let mut last = None;
        for field in self {
            let (number, value) = field?;
            if number == wanted {
                last = Some(value);
            }
        }
        Ok(last)
    }

    fn read(&mut self) -> Result<(u32, Value<'a>), Malformed> {
        let tag = self.varint()?;
        let number =
            u32::try_from(tag >> 3).map_err(|_| Malformed("a field of a number that is too large"))?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(u64::from_le_bytes(*self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(*self.array()?))),
            _ => return Err(Malformed("a field of a kind that Kubernetes does not use")),
        };
        Ok((number, value))
    }

    /// A number in groups of seven bits, the least significant first.
    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for (place, byte) in self.rest.iter().take(10).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[place + 1..];
                return Ok(number);
            }
        }
        Err(if self.rest.len() < 10 { CUT } else { Malformed("a number of more than 64 bits") })
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// What Go's JSON encoder makes of bytes that are no UTF-8: each that belongs to no character becomes a U+FFFD of its own.
/// [`String::from_utf8_lossy`] makes one of the beginning of a character.
fn in_json(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

const CUT: Malformed = Malformed("it ends in the middle of a field");

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            // Where the next field would begin is not known.
            self.rest = &[];
        }
        Some(field)
    }
}

// === impl ReadField ===

macro_rules! texts {
    ($($type:ty),*) => {$(
        impl ReadField for $type {
            fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
                *self = (&*value.text()?).into();
                Ok(())
            }
        }
    )*};
}
texts!(String, Box<str>, Effect, TolerationOperator);

/// A name of something else, which is no pointer in Go.
impl ReadField for Arc<str> {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        *self = (&*value.text()?).into();
        Ok(())
    }

    /// An empty text is written where there is none.
    fn read_optional(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), Malformed> {
        *slot = Some(&*value.text()?).filter(|text| !text.is_empty()).map(Into::into);
        Ok(())
    }
}

impl ReadField for bool {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        *self = value.number()? != 0;
        Ok(())
    }
}

impl ReadField for i64 {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        *self = value.number()?.cast_signed();
        Ok(())
    }
}

impl ReadField for i32 {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        // Numbers below 0 are written with 64 bits.
        let number = i32::try_from(value.number()?.cast_signed());
        *self = number.map_err(|_| Malformed("a number of more than 32 bits"))?;
        Ok(())
    }
}

impl<T: ReadField> ReadField for Option<T> {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        T::read_optional(self, value)
    }
}

impl<T: ReadField> ReadField for Box<T> {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        (**self).read_field(value)
    }
}

impl<T: ReadField> ReadField for Vec<T> {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        let mut element = T::default();
        element.read_field(value)?;
        self.push(element);
        Ok(())
    }
}

impl<T: ReadField> ReadField for Box<[T]> {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        let mut list = std::mem::take(self).into_vec();
        list.read_field(value)?;
        *self = list.into();
        Ok(())
    }
}

impl ReadField for Timestamp {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        let (mut seconds, mut nanoseconds) = (0, 0);
        for field in value.fields()? {
            match field? {
                (1, value) => seconds = value.number()?.cast_signed(),
                (2, value) => nanoseconds = value.number()?.cast_signed(),
                _ => {}
            }
        }
        *self =
            Timestamp::from_nanoseconds(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds));
        Ok(())
    }

    /// A message without fields is Go's time that nobody has set, for which JSON has `null`.
    fn read_optional(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), Malformed> {
        if value.bytes()?.is_empty() {
            return Ok(());
        }
        slot.get_or_insert_default().read_field(value)
    }
}

impl ReadField for Quantity {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        let text = value.fields()?.last(1)?.map_or(Ok(Cow::default()), Value::text)?;
        *self = text.parse().map_err(|_| Malformed("a quantity that is none"))?;
        Ok(())
    }
}

/// An entry of the map that a list of resources is.
impl ReadField for ResourceList {
    fn read_field(&mut self, value: Value<'_>) -> Result<(), Malformed> {
        let (mut name, mut quantity) = (Cow::default(), Quantity::default());
        for field in value.fields()? {
            match field? {
                (1, value) => name = value.text()?,
                (2, value) => quantity.read_field(value)?,
                _ => {}
            }
        }
        self.set(&(&*name).into(), quantity);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
