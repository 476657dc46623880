//! The plugins that a configuration can name.

use std::collections::BTreeMap;

use serde_json::Value;
use supercargo_model::wire::ByGoRules;

use crate::args::{Args, FieldProblem, FieldProblems, NoArgs, ProblemKind};
use crate::plugin::{Extensions, Plugin, PluginInstance, Point};
use crate::reads::Reads;

/// The plugins that a configuration can name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    plugins: BTreeMap<&'static str, PluginType>,
}

/// A plugin that can be made, any number of times.
#[derive(Clone, Debug)]
pub struct PluginType {
    /// Its name.
    pub name: &'static str,
    /// The kind of its arguments, such as `NodeAffinityArgs`; none if it takes none.
    pub args_kind: Option<String>,
    points: Vec<Point>,
    has_page: bool,
    observes: bool,
    reacts: bool,
    read_args: fn(Option<&Value>) -> Result<Value, Vec<FieldProblem>>,
    make: fn(Option<&Value>) -> Result<PluginInstance, Vec<FieldProblem>>,
}

/// Two plugins cannot have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plugin named {0} already exists")]
pub struct DuplicatePlugin(pub &'static str);

impl Registry {
    /// Adds a plugin.
    pub fn register<P: Plugin>(&mut self) -> Result<(), DuplicatePlugin> {
        if self.plugins.contains_key(P::NAME) {
            return Err(DuplicatePlugin(P::NAME));
        }
        self.plugins.insert(P::NAME, PluginType::of::<P>());
        Ok(())
    }

    /// The plugin of that name.
    pub fn get(&self, name: &str) -> Option<&PluginType> {
        self.plugins.get(name)
    }

    /// All plugins, by name.
    pub fn iter(&self) -> impl Iterator<Item = &PluginType> {
        self.plugins.values()
    }
}

impl PluginType {
    fn of<P: Plugin>() -> Self {
        let takes_args = std::any::TypeId::of::<P::Args>() != std::any::TypeId::of::<NoArgs>();
        PluginType {
            name: P::NAME,
            args_kind: takes_args.then(|| format!("{}Args", P::NAME)),
            points: P::extensions(Extensions::none()).points(),
            has_page: P::extensions(Extensions::none()).has_page(),
            observes: P::extensions(Extensions::none()).observes(),
            reacts: P::extensions(Extensions::none()).reacts(),
            read_args: |args| {
                let args = read::<P::Args>(args)?;
                let value =
                    serde_json::to_value(&args).map_err(|error| vec![unreadable(String::new(), &error)])?;
                check_queries(&P::new(args).reads())?;
                Ok(value)
            },
            make: |args| {
                let instance = P::extensions(Extensions::none()).instantiate(P::new(read::<P::Args>(args)?));
                check_queries(&instance.reads)?;
                Ok(instance)
            },
        }
    }

    /// The extension points that the plugin implements.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether the plugin has a page.
    pub fn has_page(&self) -> bool {
        self.has_page
    }

    /// Whether the plugin hears of changes between decisions.
    pub fn observes(&self) -> bool {
        self.observes
    }

    /// Whether the plugin says which events it reacts to.
    pub fn reacts(&self) -> bool {
        self.reacts
    }

    /// Reads and validates arguments; what comes back has all defaults filled in.
    pub fn read_args(&self, args: Option<&Value>) -> Result<Value, Vec<FieldProblem>> {
        (self.read_args)(args)
    }

    /// Makes the plugin.
    pub fn make(&self, args: Option<&Value>) -> Result<PluginInstance, Vec<FieldProblem>> {
        (self.make)(args)
    }
}

fn read<A: Args>(args: Option<&Value>) -> Result<A, Vec<FieldProblem>> {
    let mut args = match args {
        None => A::default(),
        Some(value) => serde_path_to_error::deserialize::<_, A>(ByGoRules(value))
            .map_err(|error| vec![unreadable(error.path().to_string(), error.inner())])?,
    };
    args.complete();
    let mut problems = FieldProblems::default();
    args.validate(&mut problems);
    if problems.is_empty() { Ok(args) } else { Err(problems.into_vec()) }
}

/// What a plugin asks is made of its arguments, so that these are what is wrong if it cannot be asked.
fn check_queries(reads: &Reads) -> Result<(), Vec<FieldProblem>> {
    let mut problems = FieldProblems::default();
    for query in &reads.queries {
        if let Err(problem) = query.validate() {
            problems.invalid("", query.name(), problem);
        }
    }
    for question in &reads.questions {
        if reads.kinds.iter().filter(|kind| kind.id == question.kind().id).count() > 1 {
            problems.invalid("", question.name(), "another query or question has answers of the same kind");
        }
        if let Err(problem) = question.validate() {
            problems.invalid("", question.name(), problem);
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.into_vec()) }
}

fn unreadable(path: String, error: &serde_json::Error) -> FieldProblem {
    let path = if path == "." { String::new() } else { path };
    FieldProblem { path, kind: ProblemKind::Unreadable, detail: error.to_string() }
}

#[cfg(test)]
mod tests;
