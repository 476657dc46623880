//! Where in a text the reader has stopped: which fields and elements lead there.

/// The path to the value at which an error arose, such as `spec.containers[0].name`; `.` is the whole text. Line and column are those
/// of [`serde_json::Error`]: so far the text has been read.
///
/// Readers that keep the path while they read would be compiled a second time for every type; an error is rare, and its position leads to
/// the same path.
pub(super) fn path_at(json: &str, line: usize, column: usize) -> String {
    let start: usize = json.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let end = (start + column).min(json.len());
    let mut open = Vec::new();
    let mut rest = json.as_bytes()[..end].iter().enumerate();
    while let Some((index, sign)) = rest.next() {
        match sign {
            b'{' => enter(&mut open, Open::Object { key: None }),
            b'[' => enter(&mut open, Open::List { element: None }),
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(Open::Object { key }) => *key = None,
                Some(Open::List { element: Some(element) }) => *element += 1,
                _ => {}
            },
            b'"' => {
                let mut is_escaped = false;
                let closing = rest.find(|(_, sign)| {
                    let closes = **sign == b'"' && !is_escaped;
                    is_escaped = **sign == b'\\' && !is_escaped;
                    closes
                });
                let last = closing.map_or(end, |(last, _)| last + 1);
                if let Some(Open::Object { key: key @ None }) = open.last_mut() {
                    // A key that is cut off, or that no text can be made of, is shown as it stands there.
                    let text = String::from_utf8_lossy(&json.as_bytes()[index..last]);
                    *key = Some(serde_json::from_str(&text).unwrap_or_else(|_| text.into_owned()));
                } else {
                    begin(&mut open);
                }
            }
            b':' | b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => begin(&mut open),
        }
    }
    written(&open)
}

/// An object or a list that has begun and not ended, with what is being read of it.
enum Open {
    Object { key: Option<String> },
    List { element: Option<usize> },
}

/// A value begins, which is an element if it is in a list.
fn begin(open: &mut [Open]) {
    if let Some(Open::List { element: element @ None }) = open.last_mut() {
        *element = Some(0);
    }
}

fn enter(open: &mut Vec<Open>, value: Open) {
    begin(open);
    open.push(value);
}

fn written(open: &[Open]) -> String {
    let mut path = String::new();
    for value in open {
        match value {
            Open::Object { key: Some(key) } if path.is_empty() => path.push_str(key),
            Open::Object { key: Some(key) } => path.extend([".", key]),
            Open::List { element: Some(element) } => path.push_str(&format!("[{element}]")),
            Open::Object { key: None } | Open::List { element: None } => {}
        }
    }
    if path.is_empty() { ".".to_owned() } else { path }
}
