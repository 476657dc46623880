//! Quantities in JSON: a string or a number when read, a string when written.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Quantity;

/// Integers below this parse to the small amount they are; longer ones are big amounts in Go.
const SMALL_INTEGERS: u64 = 10_u64.pow(18);

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a quantity, as a string or a number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        // Go trims the text before it resolves escapes. Control characters are always escaped in JSON, so they
        // are not space to it.
        let text = text.trim_matches(|character: char| character.is_whitespace() && character >= ' ');
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
        match i64::try_from(value) {
            Ok(small) if value < SMALL_INTEGERS => Ok(Quantity::from(small)),
            _ => self.visit_str(&value.to_string()),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
        if value.unsigned_abs() < SMALL_INTEGERS {
            Ok(Quantity::from(value))
        } else {
            self.visit_str(&value.to_string())
        }
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
        // The spelling of the number is lost by now; this is the one most JSON writers choose.
        let plain = value == 0.0 || (1e-6..1e21).contains(&value.abs());
        self.visit_str(&if plain { value.to_string() } else { format!("{value:e}") })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }

    fn visit_none<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::default())
    }
}
