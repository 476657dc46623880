//! Kubernetes resource quantities: the numbers in `cpu: 100m` and `memory: 128Mi`.
//!
//! The reference is `resource.Quantity` of apimachinery v0.36.4, and its answers are reproduced where they
//! surprise as well as where they do not: a scheduler that disagrees with kube-scheduler about a number
//! disagrees about the node. Two of its traits shape this module.
//!
//! - An amount is either *small* (an `i64` times a power of ten) or *big* (a decimal of any length). Which of
//!   the two it is depends on how the text was written, and the two round and overflow differently, so the
//!   distinction is kept instead of being normalised away.
//! - Some texts that are not in canonical form are printed back as they were written ("+1", "1.500"), until
//!   arithmetic touches them.
//!
//! In Go, comparing a small amount with a big one turns the former into a big one in place. Here a comparison changes
//! nothing; [`Quantity::raise_to`] makes up for it where the difference can be seen.

mod big;
mod format;
mod parse;
mod serde;
mod small;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::{AddAssign, Neg, SubAssign};

use self::big::BigDecimal;
pub use self::parse::ParseQuantityError;

/// A fixed-point number that remembers which family of suffixes it is printed with.
///
/// Equality, order and hash look at the number alone: "1", "1000m" and "1e0" are the same quantity.
#[derive(Clone)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text this was parsed from, where Go prints that text instead of the canonical form. Boxed twice
    /// because it is rare and two words would make every quantity larger.
    spelling: Option<Box<Spelling>>,
}

/// The family of suffixes a quantity is printed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`, which is 12 times 2 to the 20th.
    BinarySi,
    /// `12M`, which is 12 times 10 to the 6th.
    #[default]
    DecimalSi,
}

#[derive(Clone)]
enum Amount {
    /// `mantissa` times ten to the power of `scale`.
    Small {
        mantissa: i64,
        scale: i32,
    },
    Big(Box<BigDecimal>),
}

#[derive(Clone)]
struct Spelling(Box<str>);

/// The number of decimal places `value` and `milli_value` keep.
const UNIT_PLACES: u8 = 0;
const MILLI_PLACES: u8 = 3;

impl Quantity {
    /// A whole number.
    pub fn new(value: i64, format: Format) -> Self {
        Self::small(value, 0, format)
    }

    /// A number of thousandths.
    pub fn milli(value: i64) -> Self {
        Self::small(value, -i32::from(MILLI_PLACES), Format::DecimalSi)
    }

    /// The notation it was written in, which it is printed in as well.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        match &self.amount {
            Amount::Small { mantissa, .. } => *mantissa == 0,
            Amount::Big(big) => big.is_zero(),
        }
    }

    /// Whether it is less than zero.
    pub fn is_negative(&self) -> bool {
        match &self.amount {
            Amount::Small { mantissa, .. } => *mantissa < 0,
            Amount::Big(big) => big.is_negative(),
        }
    }

    /// The number rounded up to an integer, as Go's `Value` answers.
    ///
    /// What is too large for an `i64` does not saturate: depending on how the quantity was written the answer
    /// is zero or the low 64 bits of the number.
    pub fn value(&self) -> i64 {
        self.scaled_value(UNIT_PLACES)
    }

    /// The number of thousandths, rounded up, as Go's `MilliValue` answers; it overflows as `value` does.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI_PLACES)
    }

    /// Takes over `other` if it is larger. Having been compared with a big amount it is a big one too, as in Go, which
    /// shows in how its value overflows.
    pub fn raise_to(&mut self, other: &Quantity) {
        if *other <= *self {
            return;
        }
        let amount = match &self.amount {
            Amount::Small { .. } => other.amount.clone(),
            Amount::Big(_) => Amount::Big(Box::new(other.amount.as_big().into_owned())),
        };
        *self = Quantity { amount, ..other.clone() };
    }

    fn scaled_value(&self, places: u8) -> i64 {
        match &self.amount {
            Amount::Small { mantissa, scale } => small::scaled_value(*mantissa, *scale, places),
            Amount::Big(big) => big.scaled_value(places),
        }
    }

    fn small(mantissa: i64, scale: i32, format: Format) -> Self {
        Self { amount: Amount::Small { mantissa, scale }, format, spelling: None }
    }

    fn big(decimal: BigDecimal, format: Format) -> Self {
        Self { amount: Amount::Big(Box::new(decimal)), format, spelling: None }
    }
}

impl Amount {
    fn as_big(&self) -> Cow<'_, BigDecimal> {
        match self {
            Self::Small { mantissa, scale } => Cow::Owned(BigDecimal::from_small(*mantissa, *scale)),
            Self::Big(big) => Cow::Borrowed(big),
        }
    }
}

/// Zero, as a field that is absent or null decodes.
impl Default for Quantity {
    fn default() -> Self {
        Self::new(0, Format::default())
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        Self::new(value, Format::DecimalSi)
    }
}

/// Go's `Add`: a zero takes over the format of what is added to it, and a small amount that would overflow
/// becomes a big one.
impl AddAssign<&Quantity> for Quantity {
    fn add_assign(&mut self, other: &Quantity) {
        self.spelling = None;
        if self.is_zero() {
            self.format = other.format;
        }
        if let (&Amount::Small { mantissa, scale }, &Amount::Small { mantissa: addend, scale: addend_scale }) =
            (&self.amount, &other.amount)
            && let Some((mantissa, scale)) = small::add((mantissa, scale), (addend, addend_scale))
        {
            self.amount = Amount::Small { mantissa, scale };
            return;
        }
        let sum = self.amount.as_big().plus(&other.amount.as_big());
        self.amount = Amount::Big(Box::new(sum));
    }
}

/// Go's `Sub`; formats and overflow behave as in `Add`.
impl SubAssign<&Quantity> for Quantity {
    fn sub_assign(&mut self, other: &Quantity) {
        self.spelling = None;
        if self.is_zero() {
            self.format = other.format;
        }
        // Go adds the negated mantissa, so that subtracting the least `i64` adds it: hence the wrapping.
        if let (&Amount::Small { mantissa, scale }, &Amount::Small { mantissa: other, scale: other_scale }) =
            (&self.amount, &other.amount)
            && let Some((mantissa, scale)) =
                small::add((mantissa, scale), (other.wrapping_neg(), other_scale))
        {
            self.amount = Amount::Small { mantissa, scale };
            return;
        }
        let difference = self.amount.as_big().plus(&other.amount.as_big().into_owned().negated());
        self.amount = Amount::Big(Box::new(difference));
    }
}

/// Go's `Neg`, under which the least `i64` stays what it is.
impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        let amount = match self.amount {
            Amount::Small { mantissa, scale } => Amount::Small { mantissa: mantissa.wrapping_neg(), scale },
            Amount::Big(big) => Amount::Big(Box::new(big.negated())),
        };
        Self { amount, format: self.format, spelling: None }
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (&Amount::Small { mantissa, scale }, &Amount::Small { mantissa: other, scale: other_scale }) =
            (&self.amount, &other.amount)
            && let Some(order) = small::compare((mantissa, scale), (other, other_scale))
        {
            return order;
        }
        self.amount.as_big().compare(&other.amount.as_big())
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // A number has many spellings but only one mantissa that does not end in zero.
        match &self.amount {
            Amount::Small { mantissa, scale } => small::significant(*mantissa, *scale).hash(state),
            Amount::Big(big) => match big.as_significant() {
                Some(significant) => significant.hash(state),
                None => big.hash_digits(state),
            },
        }
    }
}
