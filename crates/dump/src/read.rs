//! From texts to the objects in them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use serde::de::IgnoredAny;
use serde_json::Value;
use supercargo_model::{DecodeError, Decoded, Decoder, FieldStep, leading_header, printable};

use crate::block_yaml;
use crate::cut::{Cut, Form, Piece, cut};
use crate::fault::{DumpError, Fault};
use crate::general;
use crate::objects::{Convert, Expansion, Found, Frame, ItemKind, Trouble};
use crate::place::{find_in_json, find_in_yaml, position};

/// How many pieces a core takes at a time.
const BLOCK_PIECES: usize = 128;

/// As much stack as nesting to the limit takes, also where nothing is optimised, and several times over.
const STACK_BYTES: usize = 16 << 20;
/// What is said of requests and limits below zero.
pub const LESS_THAN_NOTHING: &str = "nobody can ask for less than nothing; make it 0 or more";

/// Dumps, cut into pieces and ready to be read.
#[derive(Debug)]
pub struct Dumps<'a> {
    dumps: Vec<Dump<'a>>,
}

#[derive(Debug)]
struct Dump<'a> {
    name: &'a str,
    text: &'a str,
    cut: Cut<'a>,
}

/// Where an object stands; [`Dumps::place`] puts it into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Which of the dumps.
    pub dump: usize,
    source: Source,
    /// Which of the objects there.
    nth: usize,
}

/// What an object was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Piece(usize),
    /// What the pieces were cut from, if one of them could not be read by itself.
    Whole(usize),
}

/// Kinds that were left out and why, with how many objects of each there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<(String, WhyLeftOut), usize>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WhyLeftOut {
    Unread,
    /// What is in secrets is nobody's business.
    Secret,
    /// The kind is read in this version.
    OtherVersion(String),
}

/// An object, or that it is left out.
enum Object {
    Read(Decoded),
    LeftOut(String, WhyLeftOut),
}

impl<'a> Dumps<'a> {
    /// Cuts dumps, given with the names that errors call them by.
    pub fn new(dumps: &[(&'a str, &'a str)]) -> Result<Self, DumpError> {
        let cut_one = |(name, text): &(&'a str, &'a str)| {
            let cut = cut(text).map_err(|fault| DumpError::of_fault(name, text, text, fault))?;
            if cut.wholes.is_empty() {
                let is_blank = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty();
                return Err(DumpError::Empty { name: (*name).to_owned(), is_blank });
            }
            Ok(Dump { name, text, cut })
        };
        Ok(Dumps { dumps: dumps.iter().map(cut_one).collect::<Result<_, _>>()? })
    }

    /// Reads all objects, on all cores. Each is handed on when its turn has come, in the order in which they were written, so
    /// that few of them are held at a time. Returned is what was left out.
    pub fn read<E: From<DumpError>>(
        &self,
        decoder: &Decoder,
        mut each: impl FnMut(Location, Decoded) -> Result<(), E>,
    ) -> Result<LeftOut, E> {
        let mut left_out = LeftOut::default();
        let convert = |json: &str, kind: Option<&ItemKind>| decode(decoder, json, kind);
        self.convert(&convert, |location, object| match object {
            Object::Read(decoded) => each(location, decoded),
            Object::LeftOut(kind, why) => {
                *left_out.0.entry((kind, why)).or_default() += 1;
                Ok(())
            }
        })?;
        Ok(left_out)
    }

    /// The same objects as they are written.
    pub fn values<E: From<DumpError>>(
        &self,
        each: impl FnMut(Location, Value) -> Result<(), E>,
    ) -> Result<(), E> {
        self.convert(&object_value, each)
    }

    /// Where an object stands: `line 12 of nodes.yaml`.
    pub fn place(&self, location: Location) -> String {
        let dump = &self.dumps[location.dump];
        let offset = dump.offset(location);
        format!("line {} of {}", position(dump.text, offset).line, dump.name)
    }

    fn convert<T: Send, E: From<DumpError>>(
        &self,
        convert: &Convert<'_, T>,
        mut each: impl FnMut(Location, T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut count = 0;
        for (number, dump) in self.dumps.iter().enumerate() {
            dump.convert(convert, |source, nth, object| {
                count += 1;
                each(Location { dump: number, source, nth }, object)
            })?;
        }
        if count == 0 {
            let names: Vec<&str> = self.dumps.iter().map(|dump| dump.name).collect();
            return Err(DumpError::NoObjects { names: names.join(", ") }.into());
        }
        Ok(())
    }
}

/// Why reading stopped.
enum Stop<E> {
    /// A piece cannot be read by itself.
    Broken {
        piece: usize,
        fault: Fault,
    },
    Failed(E),
}

impl<'a> Dump<'a> {
    fn convert<T: Send, E: From<DumpError>>(
        &self,
        convert: &Convert<'_, T>,
        mut each: impl FnMut(Source, usize, T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = 0;
        loop {
            // How many objects have come from the whole that the last piece belongs to.
            let (mut whole, mut handed_on) = (usize::MAX, 0);
            let stop = self.in_order(next, convert, |index, piece, objects| {
                let objects = objects.map_err(|fault| Stop::Broken { piece: index, fault })?;
                if piece.whole != whole {
                    (whole, handed_on) = (piece.whole, 0);
                }
                handed_on += objects.len();
                self.hand_on(Source::Piece(index), 0, objects, &mut each).map_err(Stop::Failed)
            });
            let (piece, fault) = match stop {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Broken { piece, fault }) => (piece, fault),
            };
            let broken = self.cut.pieces[piece];
            if broken.whole != whole {
                handed_on = 0;
            }
            let objects = self.read_whole(broken, fault, handed_on, convert)?;
            self.hand_on(Source::Whole(broken.whole), handed_on, objects, &mut each)?;
            next = self.cut.end_of(broken.whole);
        }
    }

    /// Reads what a piece was cut from, as it cannot be read by itself: perhaps it was cut in the wrong place, or uses what
    /// another one says. Of a list, the pieces before it were right, and their objects are left out.
    fn read_whole<T: Send>(
        &self,
        broken: Piece<'a>,
        fault: Fault,
        handed_on: usize,
        convert: &Convert<'_, T>,
    ) -> Result<Vec<Found<T>>, DumpError> {
        let whole = &self.cut.wholes[broken.whole];
        let fault = fault.within(self.offset_of(broken.text));
        let error = |fault: Fault, part: &str| Err(DumpError::of_fault(self.name, self.text, part, fault));
        let is_list = matches!(broken.form, Form::JsonItem | Form::YamlItem);
        let is_same = whole.text.len() == broken.text.len();
        let not_json = whole.not_json.clone().filter(|_| looks_like_json(whole.text));
        if is_same || whole.form == Form::Yaml && whole.text.len() > general::SLOW_YAML_BYTES_MAX {
            return error(not_json.unwrap_or(fault), broken.text);
        }
        let piece = Piece { text: whole.text, form: whole.form, whole: broken.whole };
        match with_stack(|| read_piece(piece, None, convert)) {
            Ok(objects) if is_list || handed_on == 0 => Ok(objects.into_iter().skip(handed_on).collect()),
            Ok(_) => error(fault, broken.text),
            Err(of_whole) => {
                let of_whole = of_whole.within(self.offset_of(whole.text));
                // Whichever came further has understood more of the text.
                let further = if of_whole.offset > fault.offset { of_whole } else { fault };
                error(not_json.unwrap_or(further), whole.text)
            }
        }
    }

    fn hand_on<T, E: From<DumpError>>(
        &self,
        source: Source,
        first: usize,
        objects: Vec<Found<T>>,
        each: &mut impl FnMut(Source, usize, T) -> Result<(), E>,
    ) -> Result<(), E> {
        for (nth, (path, object)) in objects.into_iter().enumerate() {
            match object {
                Ok(object) => each(source, first + nth, object)?,
                Err(trouble) => return Err(self.error(source, &path, trouble).into()),
            }
        }
        Ok(())
    }

    /// What is wrong with an object that a path leads to.
    fn error(&self, source: Source, path: &[FieldStep], trouble: Trouble) -> DumpError {
        let (text, form) = self.source(source);
        let (steps, object, reason) = match trouble {
            Trouble::Meaning { path, object, reason } => (path.0, object, reason),
            Trouble::Malformed { reason, .. } => (Vec::new(), None, reason),
        };
        let offset = find(text, form, &[path, &steps].concat());
        let fault = Fault { offset, object, reason }.within(self.offset_of(text));
        DumpError::of_fault(self.name, self.text, text, fault)
    }

    fn source(&self, source: Source) -> (&'a str, Form) {
        match source {
            Source::Piece(piece) => (self.cut.pieces[piece].text, self.cut.pieces[piece].form),
            Source::Whole(whole) => (self.cut.wholes[whole].text, self.cut.wholes[whole].form),
        }
    }

    /// Where an object starts.
    fn offset(&self, location: Location) -> usize {
        let (text, form) = self.source(location.source);
        // The paths of all objects there are found by reading it again.
        let objects = with_stack(|| read_piece(Piece { text, form, whole: 0 }, None, &|_, _| Ok(())));
        let object = objects.ok().and_then(|objects| objects.into_iter().nth(location.nth));
        let path = object.map(|(path, _)| path).unwrap_or_default();
        self.offset_of(text) + find(text, form, &path)
    }

    fn offset_of(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }

    /// Reads pieces on all cores, a block of them at a time; what comes of them is handed on in order.
    fn in_order<T: Send, E>(
        &self,
        first: usize,
        convert: &Convert<'_, T>,
        mut each: impl FnMut(usize, Piece<'a>, Result<Vec<Found<T>>, Fault>) -> Result<(), E>,
    ) -> Result<(), E> {
        let pieces = &self.cut.pieces[first..];
        let read = |piece: &Piece<'a>| {
            let kind = self.cut.wholes[piece.whole].item_kind.as_ref();
            read_piece(*piece, kind, convert)
        };
        let blocks = pieces.len().div_ceil(BLOCK_PIECES);
        let workers = thread::available_parallelism().map_or(1, usize::from).min(blocks);
        let next = &AtomicUsize::new(0);
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(2 * workers.max(1));
            for _ in 0..workers {
                let (sender, read) = (sender.clone(), &read);
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                let work = move || {
                    while let block = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(pieces) = pieces.get(block_range(block, pieces.len()))
                        && !pieces.is_empty()
                    {
                        let results: Vec<_> = pieces.iter().map(read).collect();
                        // Nobody listens any more after an error.
                        if sender.send((block, results)).is_err() {
                            break;
                        }
                    }
                };
                thread.spawn_scoped(scope, work).expect("a thread can be started");
            }
            drop(sender);
            let (mut early, mut turn) = (BTreeMap::new(), 0);
            for (block, results) in receiver {
                early.insert(block, results);
                while let Some(results) = early.remove(&turn) {
                    for (place, result) in results.into_iter().enumerate() {
                        let index = turn * BLOCK_PIECES + place;
                        each(first + index, pieces[index], result)?;
                    }
                    turn += 1;
                }
            }
            Ok(())
        })
    }
}

/// Does some work on a stack that is large enough, whatever the caller's is.
fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, work).expect("a thread can be started");
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn block_range(block: usize, length: usize) -> Range<usize> {
    let start = block.saturating_mul(BLOCK_PIECES).min(length);
    start..(start + BLOCK_PIECES).min(length)
}

/// Reads an object of a kind that somebody reads.
fn decode(decoder: &Decoder, json: &str, kind: Option<&ItemKind>) -> Result<Object, Trouble> {
    let decoded = match own_kind(json, kind) {
        None => decoder.decode(json),
        Some(ItemKind { api_version, kind }) => decoder.decode_as(json, api_version, kind),
    };
    match decoded {
        Ok(Decoded::Unread { kind, api_version, other_version }) => {
            let why = other_version
                .map_or(WhyLeftOut::Unread, |other| WhyLeftOut::OtherVersion(other.read.api_version()));
            Ok(Object::LeftOut(named_kind(&kind, &api_version), why))
        }
        Ok(Decoded::Pod(words)) => match words.negative_amount() {
            None => Ok(Object::Read(Decoded::Pod(words))),
            Some(path) => {
                let metadata = words.metadata();
                let object = Some(format!("Pod {}/{}", metadata.namespace, metadata.name));
                let reason = format!("{path}: {LESS_THAN_NOTHING}");
                Err(Trouble::Meaning { path, object, reason })
            }
        },
        Ok(decoded) => Ok(Object::Read(decoded)),
        Err(error) => undecoded(json, error),
    }
}

/// The kind that a list says an item has, if the item does not say it itself.
fn own_kind<'k>(json: &str, kind: Option<&'k ItemKind>) -> Option<&'k ItemKind> {
    let kind = kind?;
    if leading_header(json).is_some() {
        return None;
    }
    let frame: Frame<'_> = serde_json::from_str(json).ok()?;
    frame.kind().is_none_or(|kind| kind.is_empty()).then_some(kind)
}

fn undecoded(json: &str, error: DecodeError) -> Result<Object, Trouble> {
    match error {
        // A cluster is full of kinds that scheduling has nothing to do with.
        DecodeError::UnknownKind { kind, api_version, .. }
            if api_version.contains('/') && !["Pod", "Node", ""].contains(&&*kind) =>
        {
            Ok(Object::LeftOut(named_kind(&kind, &api_version), WhyLeftOut::Unread))
        }
        DecodeError::UnknownKind { kind, api_version, .. } if kind.is_empty() => {
            let has = if api_version.is_empty() { "neither apiVersion nor kind" } else { "no kind" };
            Err(Trouble::meaning([], format!("this has {has}, so it is no object of Kubernetes")))
        }
        DecodeError::UnknownKind { ref object, ref meant, .. } => {
            let field = if meant.as_ref().is_some_and(|meant| meant.starts_with("apiVersion")) {
                "apiVersion"
            } else {
                "kind"
            };
            let reason = error.to_string();
            let reason = reason.strip_prefix(&format!("{object}: ")).unwrap_or(&reason).to_owned();
            let path = [FieldStep::Field(field.to_owned())].into_iter().collect();
            Err(Trouble::Meaning { path, object: Some(object.clone()), reason })
        }
        DecodeError::Field { object, path, reason } => {
            let reason = format!("{path}: {reason}");
            Err(Trouble::Meaning { path, object: Some(object), reason })
        }
        // What is JSON at all was cut in the right place.
        DecodeError::Malformed { reason, .. } if serde_json::from_str::<IgnoredAny>(json).is_ok() => {
            Err(Trouble::meaning([], reason))
        }
        DecodeError::Malformed { reason, offset } => {
            Err(Trouble::Malformed { offset: offset.saturating_sub(1), reason })
        }
    }
}

fn named_kind(kind: &str, api_version: &str) -> String {
    if api_version.contains('/') { format!("{kind} ({api_version})") } else { kind.to_owned() }
}

/// An object as it is written, which says what it is.
fn object_value(json: &str, kind: Option<&ItemKind>) -> Result<Value, Trouble> {
    let mut value: Value = serde_json::from_str(json).map_err(|error| Trouble::of_json(json, &error))?;
    if let (Some(ItemKind { api_version, kind }), Some(fields)) =
        (own_kind(json, kind), value.as_object_mut())
    {
        fields.insert("apiVersion".to_owned(), api_version.as_str().into());
        fields.insert("kind".to_owned(), kind.as_str().into());
    }
    if value["kind"].as_str().is_none_or(str::is_empty) {
        return Err(Trouble::meaning([], "this has no kind, so it is no object of Kubernetes"));
    }
    Ok(value)
}

impl LeftOut {
    /// One more secret that the caller leaves out.
    pub fn add_secret(&mut self) {
        *self.0.entry(("Secret".to_owned(), WhyLeftOut::Secret)).or_default() += 1;
    }
}

/// A note for each kind, a line each.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((kind, why), count) in &self.0 {
            let them = if *count == 1 { "it" } else { "them" };
            write!(f, "note: {count} of kind {} left out: ", printable(kind))?;
            match why {
                WhyLeftOut::Secret => writeln!(f, "secrets are never dumped")?,
                WhyLeftOut::Unread => writeln!(f, "no plugin reads {them}")?,
                WhyLeftOut::OtherVersion(read) => writeln!(f, "print {them} as {read} instead")?,
            }
        }
        Ok(())
    }
}

/// The objects of a piece. A fault is what keeps it from being read at all; what is wrong with single objects is among them.
fn read_piece<T>(
    piece: Piece<'_>,
    kind: Option<&ItemKind>,
    convert: &Convert<'_, T>,
) -> Result<Vec<Found<T>>, Fault> {
    let expansion = Expansion { convert, is_cut_visible: matches!(piece.form, Form::Json | Form::JsonItem) };
    let text = piece.text;
    let found = match piece.form {
        Form::Json => expansion.of_document(text),
        Form::JsonItem => expansion.of_item(text, kind),
        Form::Yaml => expansion.of_document(&to_json(text)?),
        Form::YamlItem => {
            // A dash makes it a list of one.
            let json = to_json(text)?;
            let item = json.strip_prefix('[').and_then(|item| item.strip_suffix(']'));
            let item = item.ok_or_else(|| Fault::new(0, "an item of a list is expected here"))?;
            expansion.of_item(item, kind)
        }
    };
    // Only JSON can be malformed now: YAML has been read.
    for (_, object) in &found {
        if let Err(Trouble::Malformed { offset, reason }) = object {
            return Err(Fault::new(*offset, reason.clone()));
        }
    }
    Ok(found)
}

/// A document in YAML as JSON.
fn to_json(yaml: &str) -> Result<String, Fault> {
    match block_yaml::to_json(yaml) {
        Some(json) => Ok(json),
        None => general::value(yaml).map(|value| value.to_string()),
    }
}

fn find(text: &str, form: Form, path: &[FieldStep]) -> usize {
    match form {
        Form::Json | Form::JsonItem => find_in_json(text, path),
        Form::Yaml => find_in_yaml(text, path),
        Form::YamlItem => find_in_yaml(text, &[&[FieldStep::Element(0)], path].concat()),
    }
}

/// Whether braces are JSON's: keys are in quotes.
fn looks_like_json(text: &str) -> bool {
    let inside = text.trim_start().trim_start_matches('[').trim_start();
    let inside = inside.strip_prefix('{').unwrap_or(inside).trim_start();
    inside.starts_with('"')
}

#[cfg(test)]
mod tests;
