//! Changes to objects, and to the texts that they are written as.

use serde_json::{Map, Value};

use crate::chance::Chance;
use crate::values;

/// How often a list's element, or an object, is repeated at most.
const REPEATED_MAX: usize = 40;

/// Changes one thing in one of the objects, or in their order.
pub(crate) fn mutate_objects(objects: &mut Vec<Value>, chance: &mut Chance) {
    if objects.is_empty() {
        return;
    }
    let at = chance.below(objects.len());
    match chance.below(24) {
        0 => {
            objects.remove(at);
        }
        1 => {
            let copy = objects[at].clone();
            objects.insert(chance.below(objects.len() + 1), copy);
        }
        2 => chance.shuffle(objects),
        3 => objects[at] = values::odd_value(chance),
        4 => {
            let other = objects[chance.below(objects.len())].clone();
            transplant(&mut objects[at], &other, chance);
        }
        _ => mutate_value(&mut objects[at], chance),
    }
}

/// Changes one thing somewhere in a value.
pub(crate) fn mutate_value(root: &mut Value, chance: &mut Chance) {
    let place = chance.below(count(root));
    let target = nth(root, place);
    match target {
        Value::Object(fields) => mutate_fields(fields, chance),
        Value::Array(items) => mutate_items(items, chance),
        plain if chance.one_in(3) => *plain = values::odd_value(chance),
        plain => *plain = values::odd_alike(plain, chance),
    }
}

fn mutate_fields(fields: &mut Map<String, Value>, chance: &mut Chance) {
    let keys: Vec<String> = fields.keys().cloned().collect();
    if keys.is_empty() {
        fields.insert(values::field(chance), values::odd_value(chance));
        return;
    }
    let key = chance.pick(&keys).clone();
    match chance.below(7) {
        0 => {
            fields.remove(&key);
        }
        1 => {
            fields.insert(values::field(chance), values::odd_value(chance));
        }
        2 => {
            if let Some(value) = fields.remove(&key) {
                fields.insert(values::field(chance), value);
            }
        }
        3 => {
            // A field one level too deep.
            if let Some(value) = fields.remove(&key) {
                fields.insert(key.clone(), Value::Object([(key, value)].into_iter().collect()));
            }
        }
        4 => {
            // Two values change places.
            let other = chance.pick(&keys).clone();
            let (one, two) = (fields.get(&key).cloned(), fields.get(&other).cloned());
            if let (Some(one), Some(two)) = (one, two) {
                fields.insert(key, two);
                fields.insert(other, one);
            }
        }
        _ => {
            fields.insert(key, values::odd_value(chance));
        }
    }
}

fn mutate_items(items: &mut Vec<Value>, chance: &mut Chance) {
    if items.is_empty() {
        items.push(values::odd_value(chance));
        return;
    }
    let at = chance.below(items.len());
    match chance.below(6) {
        0 => {
            items.remove(at);
        }
        1 => {
            let copies = 1 + chance.below(REPEATED_MAX);
            let item = items[at].clone();
            items.extend(std::iter::repeat_n(item, copies));
        }
        2 => items.clear(),
        3 => chance.shuffle(items),
        4 => items[at] = values::odd_value(chance),
        _ => items.insert(at, values::odd_value(chance)),
    }
}

/// Puts a part of another value where a part of this one was.
fn transplant(value: &mut Value, other: &Value, chance: &mut Chance) {
    let mut other = other.clone();
    let place = chance.below(count(&other));
    let part = nth(&mut other, place).take();
    let place = chance.below(count(value));
    *nth(value, place) = part;
}

/// How many values there are in a value, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

fn nth(value: &mut Value, mut place: usize) -> &mut Value {
    if place == 0 {
        return value;
    }
    place -= 1;
    let children: Vec<&mut Value> = match value {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => unreachable!("the place is within the value"),
    };
    for child in children {
        let inside = count(child);
        if place < inside {
            return nth(child, place);
        }
        place -= inside;
    }
    unreachable!("the place is within the value")
}

/// What YAML, JSON and those who read them by lines take for structure.
const TOKENS: [&str; 40] = [
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "  ",
    ": ",
    ":",
    "- ",
    "-",
    "---\n",
    "...\n",
    "# ",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "!!binary ",
    "| ",
    ">-\n",
    "? ",
    "%YAML 1.2\n",
    "\u{feff}",
    "\0",
    "\u{85}",
    "null",
    "items:\n",
    "kind: List\n",
    "kind: Pod\n",
    "apiVersion: v1\n",
    "\n- ",
    "\n\n",
    "\\u0000",
];

/// Changes a text, structure and all. What comes out need not be text.
pub(crate) fn mutate_text(text: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(text.len() + 1);
    match chance.below(10) {
        0 => text.truncate(at),
        1 => {
            text.drain(..at);
        }
        2 => {
            let end = (at + chance.below(40)).min(text.len());
            text.drain(at..end);
        }
        3 | 4 => insert(text, at, chance.pick(&TOKENS).as_bytes()),
        5 => {
            // Something from elsewhere, once more.
            let from = chance.below(text.len() + 1);
            let end = (from + chance.below(400)).min(text.len());
            let piece = text[from..end].to_vec();
            insert(text, at, &piece);
        }
        6 => {
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << chance.below(8);
            }
        }
        7 => mutate_lines(text, chance),
        8 => insert(text, at, values::text(chance).as_bytes()),
        _ => {
            // A value for another.
            let quantity = values::odd_value(chance).to_string();
            let end = (at..text.len()).find(|at| b"\n,}]".contains(&text[*at])).unwrap_or(text.len());
            text.splice(at..end, quantity.into_bytes());
        }
    }
}

fn insert(text: &mut Vec<u8>, at: usize, piece: &[u8]) {
    text.splice(at..at, piece.iter().copied());
}

/// A line is repeated, lost, moved or indented otherwise.
fn mutate_lines(text: &mut Vec<u8>, chance: &mut Chance) {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let at = chance.below(lines.len());
    match chance.below(5) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let line = lines.remove(at);
            lines.insert(chance.below(lines.len() + 1), line);
        }
        3 => lines[at].insert(0, *chance.pick(b" \t-#")),
        _ => {
            lines[at].remove(0);
        }
    }
    *text = lines.concat();
}
