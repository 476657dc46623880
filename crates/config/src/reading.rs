//! What was read of a configuration, with everything that is wrong with it.

use supercargo_framework::Registry;
use supercargo_model::GoDuration;

use crate::codes;
use crate::decode::Loaded;
use crate::extenders;
use crate::fields::below;
use crate::own::{check_pages, check_programs};
use crate::places::{Places, is_within, parent};
use crate::problem::{Problem, Problems, Severity};
use crate::validate::validate;

/// What could be read of a configuration, and what could not.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What could be read. What could not has its default. Flags may change it before it is checked.
    pub loaded: Loaded,
    /// What was found in reading: errors, and what changed on the way from an older version.
    pub(crate) problems: Problems,
    pub(crate) origin: Origin,
    /// Whether there is a configuration to check.
    pub(crate) is_checkable: bool,
}

/// Where a configuration comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Empty, or the entry of a ConfigMap.
    pub(crate) path: String,
    pub(crate) places: Places,
    /// Whether it was made from an older version, whose paths are others.
    pub(crate) is_converted: bool,
}

/// What is said by nobody: everything has its default.
impl Default for Reading {
    fn default() -> Self {
        Reading {
            loaded: Loaded::default(),
            problems: Problems::default(),
            origin: Origin::default(),
            is_checkable: true,
        }
    }
}

impl Reading {
    /// The configuration, unless it could not be read.
    pub fn into_result(self) -> Result<Loaded, Problems> {
        if self.problems.has_errors() {
            // What the conversion changed would only hide why there is none.
            return Err(self.problems.into_errors());
        }
        Ok(Loaded { conversion: self.problems, ..self.loaded })
    }

    /// Everything that is wrong, or looks so: first what could not be read, then what [`validate`] finds in the rest. What is only
    /// wrong because something could not be read is left out.
    pub fn check(&self, registry: &Registry) -> Problems {
        let mut problems = self.problems.clone();
        if self.is_checkable {
            let mut found = validate(&self.loaded.kube, registry);
            self.warn_of_written_zeros(&mut found);
            check_pages(&self.loaded.own, registry, &mut found);
            check_programs(&self.loaded.own, &mut found);
            problems.extend(self.of_file(found));
        }
        problems
    }

    /// Warns of files that the configuration names and that are not there, which another machine may have.
    pub fn check_files(&self, exists: impl Fn(&str) -> bool) -> Problems {
        let mut problems = Problems::default();
        for (path, file) in self.files() {
            if !file.is_empty() && !exists(file) {
                let message = format!("there is no file {file:?} on this machine");
                let hint = "it must be there where the scheduler runs".to_owned();
                problems.push(Problem::new(&codes::FILE_NOT_THERE, path, message).with_hint(hint));
            }
        }
        self.of_file(problems)
    }

    /// The configuration, unless something stops a scheduler: then all problems.
    pub fn into_usable(self, registry: &Registry) -> Result<Loaded, Problems> {
        let problems = self.check(registry);
        if problems.has_errors() { Err(problems) } else { self.into_result() }
    }

    /// An absent time-out and one of 0 are the same in the configuration, but not to who wrote it.
    fn warn_of_written_zeros(&self, problems: &mut Problems) {
        let extenders = self.loaded.kube.extenders.iter().enumerate();
        for (index, _) in extenders.filter(|(_, extender)| extender.http_timeout == GoDuration::ZERO) {
            let path = format!("extenders[{index}].httpTimeout");
            if self.origin.places.has(&below(&self.origin.path, &path)) {
                problems.push(extenders::written_zero(&path));
            }
        }
    }

    fn files(&self) -> Vec<(String, &str)> {
        let kube = &self.loaded.kube;
        let mut files =
            vec![("clientConnection.kubeconfig".to_owned(), kube.client_connection.kubeconfig.as_str())];
        for (index, extender) in kube.extenders.iter().enumerate() {
            let Some(tls) = &extender.tls_config else { continue };
            let path = |field: &str| format!("extenders[{index}].tlsConfig.{field}");
            // Data goes before files, which are not read then.
            let named = [
                ("certFile", &tls.cert_file, tls.cert_data.is_empty()),
                ("keyFile", &tls.key_file, tls.key_data.is_empty()),
                ("caFile", &tls.ca_file, tls.ca_data.is_empty()),
            ];
            let read = named.into_iter().filter(|(_, _, counts)| *counts);
            files.extend(read.map(|(field, file, _)| (path(field), file.as_str())));
        }
        files
    }

    /// What was found in the configuration, with paths and positions of the file.
    fn of_file(&self, mut found: Problems) -> Problems {
        let Origin { path, places, is_converted } = &self.origin;
        let in_file = |problem: &Problem| match problem.path.as_str() {
            "" => path.clone(),
            field => below(path, field),
        };
        found.retain(|problem| !self.follows_from_reading(problem, &in_file(problem)));
        if !is_converted {
            for problem in found.iter_mut() {
                problem.path = in_file(problem);
            }
            found.locate(0, places);
        }
        found
    }

    /// Whether a problem is only there because something could not be read.
    fn follows_from_reading(&self, problem: &Problem, path: &str) -> bool {
        self.problems.errors().filter(|error| error.code != codes::DUPLICATE_FIELD.id).any(|error| {
            let unread = error.path.as_str();
            let is_unknown_field = error.code == codes::UNKNOWN_FIELD.id;
            // A name that is missing may be the field whose name is wrong.
            let is_name = [".name", ".schedulerName", ".urlPrefix"].iter().any(|name| path.ends_with(name));
            let is_missing_name = is_unknown_field
                && is_name
                && parent(path) == parent(unread)
                && !self.origin.places.has(path);
            // What looks wrong may look better when all of it is read.
            let may_look_better = problem.severity == Severity::Warning && is_within(unread, path);
            (!is_unknown_field && is_value(error) && is_within(path, unread))
                || is_missing_name
                || may_look_better
        })
    }
}

/// Whether a value could not be read, so that its default stands in its place.
fn is_value(error: &Problem) -> bool {
    [codes::WRONG_TYPE, codes::INVALID_DURATION, codes::INVALID_BASE64]
        .iter()
        .any(|code| code.id == error.code)
}
