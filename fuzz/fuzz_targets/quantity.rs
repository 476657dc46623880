//! Two quantities: they are read, printed, read again, compared and calculated with.

#![no_main]

use std::hash::{DefaultHasher, Hash, Hasher};

use libfuzzer_sys::fuzz_target;
use supercargo_model::Quantity;

fuzz_target!(|text: &str| {
    let text = text.trim_end_matches('\n');
    let (a, b) = text.split_once(' ').unwrap_or((text, "1"));
    let (Ok(a), Ok(b)) = (a.parse::<Quantity>(), b.parse::<Quantity>()) else { return };
    let is_exact = is_ordinary(&a) && is_ordinary(&b);
    for quantity in [&a, &b] {
        check_printing(quantity);
    }
    check_arithmetic(&a, &b, is_exact);
});

/// Whether it is as large as amounts are. Beyond, Go loses suffixes and digits, and so do we.
fn is_ordinary(quantity: &Quantity) -> bool {
    let limit = Quantity::from(1_000_000_000_000_000_000);
    *quantity < limit && *quantity > -limit
}

/// What is printed is read as the same number, in text and in JSON, and is printed in the same way from then on. Not at once: as in
/// Go, 62.5Ki is printed as 64000, which is read as a decimal number and printed as 64k.
fn check_printing(quantity: &Quantity) {
    let printed = quantity.to_string();
    let _ = (quantity.value(), quantity.milli_value(), hash(quantity), serde_json::to_string(quantity));
    if !is_ordinary(quantity) {
        return;
    }
    let read: Quantity = printed.parse().expect("what is printed can be read");
    assert_eq!(read, *quantity, "{printed}");
    let again: Quantity = read.to_string().parse().expect("what is printed can be read");
    assert_eq!(again.to_string(), read.to_string(), "{printed}");
    assert_eq!(hash(&read), hash(quantity), "{printed}");
    let json = serde_json::to_string(quantity).expect("is written as a text");
    let read: Quantity = serde_json::from_str(&json).expect("what is written can be read");
    assert_eq!(read, *quantity, "{json}");
}

fn check_arithmetic(a: &Quantity, b: &Quantity, is_exact: bool) {
    let (mut forth, mut back) = (a.clone(), b.clone());
    forth += b;
    back += a;
    assert_eq!(forth, back, "{a} + {b}");
    forth -= b;
    assert!(forth == *a || !is_exact, "{a} + {b} - {b} is {forth}");
    assert_eq!(-(-a.clone()), *a);
    let mut raised = a.clone();
    raised.raise_to(b);
    assert_eq!(raised, a.max(b).clone());
    assert_eq!(a.cmp(b), b.cmp(a).reverse());
}

fn hash(quantity: &Quantity) -> u64 {
    let mut hasher = DefaultHasher::new();
    quantity.hash(&mut hasher);
    hasher.finish()
}
