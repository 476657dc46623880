use serde::Deserializer;
use serde::ser::{Error as _, Serializer};

use super::*;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Count(u32);

impl Memory for Count {
    const NAME: &'static str = "Counter/Count_1";
    const SAVED: Option<u32> = Some(2);
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Fleeting(u32);

impl Memory for Fleeting {
    const NAME: &'static str = "Fleeting";
}

/// Text that is as long as a test wants it; `panic` panics when it is read, and `refuse` when it is written.
#[derive(Clone, Debug, Default, PartialEq)]
struct Text(String);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == "refuse" { Err(S::Error::custom("no")) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        assert!(text != "panic", "of a plugin");
        Ok(Text(text))
    }
}

impl Memory for Text {
    const NAME: &'static str = "Text";
    const SAVED: Option<u32> = Some(1);
}

/// Another one, so that there can be too much of them together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Zoo(String);

impl Memory for Zoo {
    const NAME: &'static str = "Zoo";
    const SAVED: Option<u32> = Some(1);
}

fn declared() -> Memories {
    let mut memories = Memories::default();
    memories.declare_for::<Count>("Counter");
    memories.declare_for::<Fleeting>("Counter");
    memories.declare_for::<Text>("Teller");
    memories.declare_for::<Zoo>("Keeper");
    memories
}

fn entries(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn what_asks_for_it_is_saved_and_restored_and_nothing_else() {
    let mut memories = declared();
    memories.get_mut::<Count>().0 = 7;
    memories.get_mut::<Fleeting>().0 = 8;
    let saved = memories.save();
    assert_eq!(saved.unsaved, []);
    assert_eq!(
        saved.entries,
        entries(&[
            ("format", "1"),
            ("memory.Counter_2fCount_5f1", r#"{"plugin":"Counter","version":2,"value":7}"#)
        ])
    );
    let mut restored = declared();
    assert_eq!(restored.restore(&saved.entries), []);
    assert_eq!((restored.get::<Count>(), restored.get::<Fleeting>()), (Some(&Count(7)), None));
    assert!(declared().are_saved() && !Memories::default().are_saved());
}

#[test]
fn what_was_changed_is_another_value_and_what_was_looked_at_is_not() {
    let mut memories = declared();
    let nothing = memories.clone();
    assert!(memories.is_saved_as(&nothing));
    memories.get_mut::<Count>().0 = 1;
    assert!(!memories.is_saved_as(&nothing));
    let saved = memories.clone();
    assert!(memories.is_saved_as(&saved) && memories.get::<Count>() == Some(&Count(1)));
    memories.get_mut::<Fleeting>().0 = 1;
    assert!(memories.is_saved_as(&saved), "nobody wants that saved");
    memories.get_mut::<Count>().0 = 2;
    assert!(!memories.is_saved_as(&saved));
    memories.get_mut::<Count>().0 = 1;
    assert!(!memories.is_saved_as(&saved), "an equal value is not looked into");
}

#[test]
fn what_cannot_be_read_is_dropped_by_name_and_the_rest_is_restored() {
    let whole = ("memory.Text", r#"{"plugin":"Teller","version":1,"value":"kept"}"#);
    let count = "memory.Counter_2fCount_5f1";
    let drop =
        |plugin, memory: &str, reason| vec![DroppedMemory { plugin, memory: memory.to_owned(), reason }];
    let counter = |reason| drop("Counter", "Counter/Count_1", reason);
    let table = [
        (entries(&[("format", "1"), whole]), vec![]),
        (entries(&[("format", "1"), whole, ("savedAt", "noon")]), vec![]),
        (
            entries(&[("format", "1"), whole, (count, r#"{"version":1,"value":7}"#)]),
            counter(DropReason::Version { saved: 1, known: 2 }),
        ),
        (
            entries(&[("format", "1"), whole, (count, r#"{"version":2,"value":"seven"}"#)]),
            counter(DropReason::Unreadable(
                "invalid type: string \"seven\", expected u32 at line 1 column 7".to_owned(),
            )),
        ),
        (
            entries(&[("format", "1"), whole, (count, "{\"version\":2,\"val")]),
            counter(DropReason::Unreadable("EOF while parsing a string at line 1 column 17".to_owned())),
        ),
        (
            entries(&[("format", "1"), whole, ("memory.Gone", "{}")]),
            drop("", "memory.Gone", DropReason::Unknown),
        ),
    ];
    for (entries, expected) in table {
        let mut memories = declared();
        assert_eq!(memories.restore(&entries), expected, "{entries:?}");
        assert_eq!(memories.get::<Text>(), Some(&Text("kept".to_owned())), "{entries:?}");
        assert_eq!(memories.get::<Count>(), None, "{entries:?}");
    }
    for (format, found) in [(Some("2"), "2"), (None, "")] {
        let mut memories = declared();
        let mut entries = entries(&[whole]);
        entries.extend(format.map(|format| ("format".to_owned(), format.to_owned())));
        assert_eq!(memories.restore(&entries), drop("Teller", "Text", DropReason::Format(found.to_owned())));
        assert_eq!(memories.get::<Text>(), None);
    }
}

#[test]
fn a_plugin_that_panics_or_refuses_loses_its_own_memory() {
    let mut memories = declared();
    memories.get_mut::<Text>().0 = "before".to_owned();
    let read = r#"{"plugin":"Teller","version":1,"value":"panic"}"#;
    let dropped = memories.restore(&entries(&[("format", "1"), ("memory.Text", read)]));
    assert_eq!(
        (dropped[0].plugin, dropped[0].reason.to_string().as_str()),
        ("Teller", "it cannot be read: the plugin panicked: of a plugin")
    );
    assert_eq!(memories.get::<Text>(), Some(&Text("before".to_owned())));

    memories.get_mut::<Text>().0 = "refuse".to_owned();
    memories.get_mut::<Count>().0 = 1;
    let saved = memories.save();
    assert_eq!(saved.entries.len(), 2, "{saved:?}");
    assert_eq!(saved.unsaved[0].reason, "it cannot be written: no");
}

#[test]
fn too_large_is_not_saved_alone_and_together() {
    let overhead = r#"{"plugin":"Teller","version":1,"value":""}"#.len();
    let largest = SAVED_MEMORY_BYTES_MAX - overhead;
    let zoo_left = SAVED_BYTES_MAX
        - SAVED_MEMORY_BYTES_MAX
        - "memory.Text".len()
        - "memory.Zoo".len()
        - r#"{"plugin":"Keeper","version":1,"value":""}"#.len();
    let table: [(usize, usize, &[&str]); 4] = [
        (largest, zoo_left, &[]),
        (largest + 1, 9, &["Text"]),
        (largest, zoo_left + 1, &["Zoo"]),
        (2 * largest, 2 * largest, &["Text", "Zoo"]),
    ];
    for (text, zoo, unsaved) in table {
        let mut memories = declared();
        memories.get_mut::<Text>().0 = "x".repeat(text);
        memories.get_mut::<Zoo>().0 = "x".repeat(zoo);
        let saved = memories.save();
        let names: Vec<&str> = saved.unsaved.iter().map(|unsaved| unsaved.memory).collect();
        assert_eq!(names, unsaved, "{text} {zoo}");
        assert!(
            saved.unsaved.iter().all(|unsaved| unsaved.reason.contains("too large")),
            "{:?}",
            saved.unsaved
        );
        let memories = saved.entries.iter().filter(|(name, _)| name.starts_with(MEMORY_PREFIX));
        let bytes: usize = memories.map(|(name, text)| name.len() + text.len()).sum();
        assert!(bytes <= SAVED_BYTES_MAX, "{bytes}");
    }
}
