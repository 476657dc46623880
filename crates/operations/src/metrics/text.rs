//! From OpenMetrics text to the older format that everybody reads.
//!
//! prometheus-client writes OpenMetrics only, which a reader must ask for, and which names a counter without its `_total`.
//! Go's scheduler answers in the older format unless asked; so do we, always, with numbers as Go prints them.

/// The same metrics in the text format 0.0.4.
pub(super) fn plain(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    // HELP comes before TYPE, and only TYPE says whether it is a counter.
    let mut help: Option<(&str, &str)> = None;
    for line in open.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let suffix = if kind == "counter" { "_total" } else { "" };
            if let Some((_, words)) = help.take().filter(|(helped, _)| *helped == name) {
                text.push_str(&format!("# HELP {name}{suffix} {words}\n"));
            }
            text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            push_sample(&mut text, line);
        }
    }
    text
}

/// A sample, with the bound of a bucket as Go prints it.
fn push_sample(text: &mut String, line: &str) {
    const BOUND: &str = "le=\"";
    // Values of other labels may hold anything, but a quote in them is escaped, so that this finds only a label's name.
    let found = line.find(BOUND).filter(|start| line[..*start].ends_with(['{', ',']));
    let bound = found.and_then(|start| {
        let (bound, rest) = line[start + BOUND.len()..].split_once('"')?;
        let number: f64 = bound.parse().ok()?;
        number.is_finite().then_some((start + BOUND.len(), number, rest))
    });
    match bound {
        Some((start, number, rest)) => {
            text.push_str(&line[..start]);
            text.push_str(&go_number(number));
            text.push('"');
            text.push_str(rest);
        }
        // What has no labels has no brackets in Go.
        None => match line.split_once("{} ") {
            Some((name, value)) if !name.contains('{') => text.push_str(&format!("{name} {value}")),
            _ => text.push_str(line),
        },
    }
    text.push('\n');
}

/// A number as Go's `strconv.FormatFloat(number, 'g', -1, 64)` prints it.
pub(super) fn go_number(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
