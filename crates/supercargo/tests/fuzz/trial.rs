//! What is done with a seed.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::bases::Bases;
use crate::chance::Chance;
use crate::checks::{Answer, ask, ask_process, same, shown};
use crate::mutate::{mutate_objects, mutate_text, mutate_value};
use crate::notations::{notations, typed_lists};
use crate::values;
use crate::writers::{flow, pretty};

/// Of so many trials, one runs its commands as processes as well.
const PROCESS_EVERY: usize = 12;

/// How many changes are made at most.
const CHANGES_MAX: usize = 4;

/// A folder for the files of a trial, which is gone afterwards unless it is kept.
pub(crate) struct TrialFolder {
    path: PathBuf,
    is_kept: std::cell::Cell<bool>,
}

impl TrialFolder {
    pub(crate) fn new(seed: u64) -> Self {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}-{seed}", std::process::id()));
        fs::create_dir_all(&path).expect("Cargo's folder can be written");
        TrialFolder { path, is_kept: false.into() }
    }

    /// Writes a file and returns its path.
    fn write(&self, name: &str, text: &[u8]) -> String {
        let path = self.path.join(name);
        fs::write(&path, text).expect("Cargo's folder can be written");
        path.to_str().expect("Cargo's folder has a plain name").to_owned()
    }

    /// Keeps the files of a failure; returned is what to say about it, in one line.
    pub(crate) fn keep(&self, failure: &str) -> String {
        self.is_kept.set(true);
        format!("{failure}\n    files: {}", self.path.display()).replace('\n', "\\n")
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        if !self.is_kept.get() {
            // A folder that is left behind does no harm.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// What every trial has.
struct Trial<'a> {
    bases: &'a Bases,
    chance: Chance,
    folder: &'a TrialFolder,
    /// Whether the commands are run as processes, too.
    has_processes: bool,
}

/// Runs the trial of a seed, and says what does not hold.
pub(crate) fn run_trial(seed: u64, bases: &Bases, folder: &TrialFolder) -> Result<(), String> {
    let mut chance = Chance::new(seed);
    let has_processes = chance.one_in(PROCESS_EVERY);
    let kind = chance.below(10);
    let mut trial = Trial { bases, chance, folder, has_processes };
    match kind {
        0 => trial.same_in_every_notation(),
        1..=4 => trial.mutated_objects(),
        5 | 6 => trial.mutated_text(),
        _ => trial.mutated_configuration(),
    }
}

impl Trial<'_> {
    /// Objects as they should be get the same answer in every notation.
    fn same_in_every_notation(&mut self) -> Result<(), String> {
        let objects = self.bases.cluster(&mut self.chance);
        let mut notations = notations(&objects);
        notations.push(("lists of each kind", typed_lists(&objects)));
        let command = self.cluster_command();
        let (first, text) = &notations[0];
        let expected = self.ask_about(&command, text)?;
        for (name, text) in &notations[1..] {
            let answer = self.ask_about(&command, text)?;
            same(&format!("{name} instead of {first}"), &comparable(&expected), &comparable(&answer))?;
        }
        self.processes(&command)
    }

    /// Objects in which values are odd: all that holds for any answer, and the same answer in another notation.
    fn mutated_objects(&mut self) -> Result<(), String> {
        let mut objects = self.bases.cluster(&mut self.chance);
        for _ in 0..1 + self.chance.below(CHANGES_MAX) {
            mutate_objects(&mut objects, &mut self.chance);
        }
        let command = self.cluster_command();
        let notations = notations(&objects);
        let (first, text) = &notations[0];
        let expected = self.ask_about(&command, text)?;
        if has_one_meaning(&objects) {
            for _ in 0..3 {
                let (name, text) = self.chance.pick(&notations[1..]);
                let answer = self.ask_about(&command, text)?;
                let what = format!("{name} instead of {first}");
                same(&what, &comparable(&expected), &comparable(&answer))?;
            }
        }
        let command = self.cluster_command();
        self.ask_about(&command, text)?;
        self.processes(&command)
    }

    /// Texts that may be no objects any more.
    fn mutated_text(&mut self) -> Result<(), String> {
        let objects = self.bases.cluster(&mut self.chance);
        let mut text = self.chance.pick(&notations(&objects)).1.clone();
        for _ in 0..1 + self.chance.below(CHANGES_MAX) {
            mutate_text(&mut text, &mut self.chance);
        }
        for _ in 0..2 {
            let command = self.cluster_command();
            let answer = self.ask_about(&command, &text)?;
            same("once more", &answer, &self.ask_about(&command, &text)?)?;
            self.processes(&command)?;
        }
        Ok(())
    }

    fn mutated_configuration(&mut self) -> Result<(), String> {
        let base = self.bases.configuration(&mut self.chance);
        let mut texts = vec![base.clone().into_bytes()];
        let value: Option<Value> = serde_json::from_str(&base).ok();
        if let (Some(mut value), true) = (value, self.chance.one_in(2)) {
            for _ in 0..1 + self.chance.below(CHANGES_MAX) {
                mutate_value(&mut value, &mut self.chance);
            }
            texts = [value.to_string(), configuration_yaml(&value), pretty(&value, "  ")]
                .map(String::into_bytes)
                .to_vec();
        } else {
            for _ in 0..1 + self.chance.below(CHANGES_MAX) {
                mutate_text(&mut texts[0], &mut self.chance);
            }
        }
        let mut codes = Vec::new();
        for text in &texts {
            codes.push(self.ask_about_configuration(text)?);
        }
        if codes.iter().any(|code| *code != codes[0]) {
            return Err(format!("a configuration in three notations: exit codes {codes:?}"));
        }
        Ok(())
    }

    /// All commands that read a configuration; returned is the exit code of `config check`.
    fn ask_about_configuration(&mut self, text: &[u8]) -> Result<u8, String> {
        let file = self.folder.write("configuration", text);
        let checked = ask(&["config", "check", &file])?;
        ask(&["config", "check", "-o", "json", &file])?;
        ask(&["config", "convert", &file])?;
        let usable = ask(&["config", "default", "--config", &file])?;
        let rbac = ask(&["rbac", "--config", &file])?;
        if rbac.code != checked.code {
            return Err(format!("config check ends with {}, rbac with {}", checked.code, rbac.code));
        }
        // What is wrong but can be read can be completed.
        if usable.code > checked.code {
            return Err("config check finds nothing in what config default cannot read".to_owned());
        }
        if checked.code == 0 {
            let printed = self.folder.write("printed-configuration", usable.stdout.as_bytes());
            let again = ask(&["config", "default", "--config", &printed])?;
            if again.stdout != usable.stdout {
                return Err("config default of what config default prints is something else".to_owned());
            }
            let objects = self.bases.cluster(&mut self.chance);
            let cluster = self.folder.write("cluster", &notations(&objects)[0].1);
            ask(&["explain", "-f", &cluster, "--config", &file])?;
        }
        if self.has_processes {
            let command = ["config", "check", &file];
            same("as a process", &checked, &ask_process(&command, b"")?)?;
            ask_process(&["config", "check", "-"], text)?;
        }
        Ok(checked.code)
    }

    /// A command about the objects in a file, in which `FILE` stands for it.
    fn cluster_command(&mut self) -> Vec<String> {
        let name = match self.chance.below(4) {
            0 => values::text(&mut self.chance).replace('\0', ""),
            1 => "deploy/web".to_owned(),
            2 => "n000/x".to_owned(),
            _ => "default/with-claim".to_owned(),
        };
        let words: &[&str] = match self.chance.below(10) {
            0..=2 => &["explain", "-f", "FILE"],
            3 => &["explain", "-f", "FILE", "-o", "wide"],
            4 | 5 => &["explain", "-f", "FILE", "-o", "json"],
            6 => &["explain", "-f", "FILE", "--pod", &name],
            7 => &["explain", "-f", "FILE", "-n", "team-a"],
            8 => &["capacity", "-f", "FILE"],
            _ => &["capacity", "-f", "FILE", "-o", "json"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn ask_about(&self, command: &[String], text: &[u8]) -> Result<Answer, String> {
        let file = self.folder.write("cluster", text);
        ask(&with_file(command, &file))
    }

    /// Runs the last command as a process, and those that print as they go, on the file that is there.
    fn processes(&mut self, command: &[String]) -> Result<(), String> {
        if !self.has_processes {
            return Ok(());
        }
        let path = self.folder.path.join("cluster");
        let file = path.to_str().expect("Cargo's folder has a plain name");
        let command = with_file(command, file);
        let answer = ask(&command)?;
        same(&format!("{} as a process", shown(&command)), &answer, &ask_process(&command, b"")?)?;
        let explain = ask(&["explain", "-f", file])?;
        for format in ["yaml", "json"] {
            let dumped = ask_process(&["dump", "-f", file, "-o", format], b"")?;
            if explain.code == 0 && dumped.code != 0 {
                return Err(format!("explain can read it, dump cannot: {}", dumped.stderr));
            }
            if explain.code == 0 {
                let again = ask(&["explain", "-f", &self.folder.write("dumped", dumped.stdout.as_bytes())])?;
                same(&format!("explain of a dump in {format}"), &comparable(&explain), &comparable(&again))?;
            }
        }
        let masked = ask_process(&["dump", "--mask", "-f", file], b"")?;
        if explain.code == 0 {
            ask(&["explain", "-f", &self.folder.write("masked", masked.stdout.as_bytes())])?;
        }
        Ok(())
    }
}

fn with_file<'a>(command: &'a [String], file: &'a str) -> Vec<&'a str> {
    command.iter().map(|word| if word == "FILE" { file } else { word.as_str() }).collect()
}

/// A configuration as YAML: what begins with a brace is JSON to the API machinery, so the fields stand on lines of their own.
fn configuration_yaml(value: &Value) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let line = |(key, value): (&String, &Value)| {
                format!("{}: {}\n", flow(&Value::from(key.as_str())), flow(value))
            };
            fields.iter().map(line).collect()
        }
        other => other.to_string(),
    }
}

/// Whether it is the same to be an item of a list and a document: for objects it is, but not for other values.
fn has_one_meaning(objects: &[Value]) -> bool {
    objects.iter().all(|object| object["kind"].as_str().is_some_and(|kind| !kind.ends_with("List")))
}

/// An answer without what has a reason to differ: where in a file something is wrong.
fn comparable(answer: &Answer) -> Answer {
    if answer.code == 0 {
        answer.clone()
    } else {
        Answer { code: answer.code, stdout: String::new(), stderr: String::new() }
    }
}
