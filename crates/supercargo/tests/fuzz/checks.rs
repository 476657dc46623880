//! What holds for every answer, whatever went in.

use std::path::Path;
use std::process::Output;
use std::thread;

use serde_json::Value;
use supercargo::Outcome;

use crate::support;

/// As much as the main thread of a process usually has; a thread of a test has less.
const STACK_BYTES: usize = 8 << 20;

/// Words of Rust, and of crates, that no user should have to know.
const INSIDE_WORDS: [&str; 12] = [
    "panicked",
    "struct ",
    "enum ",
    "variant ",
    "tuple ",
    "Words",
    "Option<",
    "Vec<",
    "::",
    "serde",
    "saphyr",
    "weak recursion",
];

/// What a text in an input says, which is at the start of a line only if somebody prints it as it is.
const FORGED: &str = "error: forged";

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command in this process, and checks what holds for every answer.
pub(crate) fn ask(arguments: &[&str]) -> Result<Answer, String> {
    let words: Vec<String> = ["supercargo"].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    let running =
        thread.spawn(move || supercargo::outcome_of(words, |_| Ok(()))).expect("a thread can be started");
    let Outcome { stdout, stderr, code } = running.join().map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        format!("{}: panicked: {message}", shown(arguments))
    })?;
    let answer = Answer { code, stdout, stderr };
    check(arguments, &answer)?;
    Ok(answer)
}

/// Runs a command as a process.
pub(crate) fn ask_process(arguments: &[&str], stdin: &[u8]) -> Result<Answer, String> {
    let Output { status, stdout, stderr } = support::supercargo(arguments, stdin);
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    let code = code.ok_or_else(|| format!("{}: ended by {status}", shown(arguments)))?;
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes).map_err(|_| format!("{}: prints what is no text", shown(arguments)))
    };
    let answer = Answer { code, stdout: text(stdout)?, stderr: text(stderr)? };
    check(arguments, &answer)?;
    Ok(answer)
}

/// That two answers are the same to the letter.
pub(crate) fn same(what: &str, one: &Answer, other: &Answer) -> Result<(), String> {
    if one == other {
        return Ok(());
    }
    let lines = |answer: &Answer| -> Vec<String> {
        let head = format!("exit code {}", answer.code);
        [&*head]
            .into_iter()
            .chain(answer.stderr.lines())
            .chain(answer.stdout.lines())
            .map(str::to_owned)
            .collect()
    };
    let (one, other) = (lines(one), lines(other));
    let at = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "nothing more".to_owned());
    Err(format!("{what}: another answer\n    {}\n    {}", line(&one), line(&other)))
}

/// What holds for every answer.
fn check(arguments: &[&str], answer: &Answer) -> Result<(), String> {
    for property in [
        known_exit_code,
        message_with_failure,
        nothing_for_terminals,
        nothing_forged,
        no_inside_words,
        readable_json,
    ] {
        property(arguments, answer).map_err(|what| {
            let said = answer.stderr.chars().take(400).collect::<String>();
            format!("{}: exit code {}: {what}\n    {}", shown(arguments), answer.code, said.trim_end())
        })?;
    }
    Ok(())
}

fn known_exit_code(_: &[&str], answer: &Answer) -> Result<(), String> {
    if answer.code <= 2 { Ok(()) } else { Err("no such exit code".to_owned()) }
}

/// Problems of configurations are what `config check` is asked for, and verdicts say themselves what failed.
fn message_with_failure(arguments: &[&str], answer: &Answer) -> Result<(), String> {
    let is_asked_for = arguments.starts_with(&["config", "check"]) || arguments.starts_with(&["verdicts"]);
    let message = if is_asked_for { &answer.stdout } else { &answer.stderr };
    if answer.code != 0 && !message.contains("error") {
        return Err("does not say why".to_owned());
    }
    if answer.code != 0 && !is_asked_for && arguments[0] != "dump" && !answer.stdout.is_empty() {
        return Err("answers all the same".to_owned());
    }
    Ok(())
}

/// Nothing that moves a cursor, changes colours or turns the direction of writing.
fn nothing_for_terminals(_: &[&str], answer: &Answer) -> Result<(), String> {
    let is_obeyed = |character: char| {
        character.is_control() && !['\n', '\t'].contains(&character)
            || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    for text in [&answer.stdout, &answer.stderr] {
        if let Some(line) = text.lines().find(|line| line.contains(is_obeyed)) {
            return Err(format!(
                "prints what a terminal obeys: {:?}",
                line.chars().take(300).collect::<String>()
            ));
        }
    }
    Ok(())
}

fn nothing_forged(_: &[&str], answer: &Answer) -> Result<(), String> {
    let is_forged =
        [&answer.stdout, &answer.stderr].iter().any(|text| text.lines().any(|line| line.starts_with(FORGED)));
    if is_forged { Err("prints a line that an object forged".to_owned()) } else { Ok(()) }
}

fn no_inside_words(_: &[&str], answer: &Answer) -> Result<(), String> {
    match INSIDE_WORDS.iter().find(|word| answer.stderr.contains(**word)) {
        Some(word) => Err(format!("says {word:?}")),
        None => Ok(()),
    }
}

fn readable_json(arguments: &[&str], answer: &Answer) -> Result<(), String> {
    if answer.code != 0 || !arguments.windows(2).any(|pair| pair == ["-o", "json"]) {
        return Ok(());
    }
    let read: Result<Value, _> = serde_json::from_str(&answer.stdout);
    read.map(|_| ()).map_err(|error| format!("prints JSON that cannot be read: {error}"))
}

/// A command line with names of files instead of their paths.
pub(crate) fn shown(arguments: &[&str]) -> String {
    let short = |argument: &&str| {
        let path = Path::new(argument);
        let name = path.file_name().filter(|_| path.is_absolute()).and_then(|name| name.to_str());
        format!("{:?}", name.unwrap_or(argument)).trim_matches('"').to_owned()
    };
    arguments.iter().map(short).collect::<Vec<_>>().join(" ")
}
