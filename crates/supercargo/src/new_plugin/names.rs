//! Names of a plugin, its crate and its module, and which of them would not work.

use anyhow::bail;
use supercargo_framework::Registry;

/// Longer names are taken for a mistake: this is what registries of crates accept.
const NAME_BYTES_MAX: usize = 64;

/// What `use` cannot name.
const RUST_WORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Crates that the program or the compiler has already, and folders that Cargo makes beside the program.
const TAKEN_NAMES: &[&str] = &[
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "serde",
    "std",
    "supercargo",
    "test",
];

/// Names that the plugin's own file needs for something else: those of the prelude, and of Rust's.
pub(super) const PRELUDE_NAMES: &[&str] = &[
    "Actions",
    "Acts",
    "Arc",
    "Args",
    "Awaited",
    "Bind",
    "Change",
    "ClusterEvent",
    "Context",
    "Cycle",
    "Deserialize",
    "Duration",
    "Effect",
    "Enqueue",
    "Extensions",
    "FieldProblems",
    "Filter",
    "Hint",
    "Kind",
    "KindId",
    "LabelLookup",
    "Memories",
    "Memory",
    "News",
    "NoArgs",
    "NodeField",
    "NodeRef",
    "NodeScore",
    "Normalization",
    "Observe",
    "OrderChanges",
    "Page",
    "PageRequest",
    "Permit",
    "PermitDecision",
    "Plugin",
    "Pod",
    "PodField",
    "PostBind",
    "PostFilter",
    "PostFilterResult",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreFilterResult",
    "PreScore",
    "QueueRank",
    "QueueSort",
    "QueuedPod",
    "Reads",
    "Rehearsal",
    "Rejections",
    "Rendered",
    "Reserve",
    "Row",
    "Score",
    "Serialize",
    "SharedMap",
    "Snapshot",
    "Standing",
    "Status",
    "Step",
    "Timestamp",
    "Writes",
];
const RUST_NAMES: &[&str] = &[
    "Box", "Clone", "Debug", "Default", "Err", "None", "Ok", "Option", "Result", "Self", "Some", "String",
    "Vec",
];

/// The names of what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PluginNames {
    /// `gpu-nodes`
    pub(super) crate_name: String,
    /// `gpu_nodes`
    pub(super) module: String,
    /// `GpuNodes`
    pub(super) plugin: String,
}

impl PluginNames {
    /// The names that follow from that of the crate.
    pub(super) fn from_crate(name: &str, registry: &Registry) -> anyhow::Result<Self> {
        if let Some(problem) = problem_of(name) {
            match suggestion(name) {
                Some(better) => bail!("{name:?} cannot be the name of a crate: {problem}; {better} can"),
                None => bail!("{name:?} cannot be the name of a crate: {problem}"),
            }
        }
        let plugin: String = name.split('-').map(capitalised).collect();
        if registry.get(&plugin).is_some() {
            bail!(
                "there is a plugin {plugin} already, and names in configurations are unique: choose another name"
            );
        }
        let is_used = |name: &str| PRELUDE_NAMES.contains(&name) || RUST_NAMES.contains(&name);
        if is_used(&plugin) || is_used(&format!("{plugin}Args")) {
            bail!(
                "{plugin} is the name of something that every plugin uses: choose another one, such as my-{name}"
            );
        }
        Ok(PluginNames { crate_name: name.to_owned(), module: name.replace('-', "_"), plugin })
    }
}

/// What is wrong with the name of a crate.
fn problem_of(name: &str) -> Option<String> {
    let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    if name.len() > NAME_BYTES_MAX {
        return Some(format!("it has more than {NAME_BYTES_MAX} letters"));
    }
    if !name.chars().all(is_sign) || !name.starts_with(|sign: char| sign.is_ascii_lowercase()) {
        return Some("it takes lower case letters, digits and '-', and begins with a letter".to_owned());
    }
    if name.ends_with('-') || name.contains("--") {
        return Some("a letter or a digit follows each '-'".to_owned());
    }
    let is_taken = TAKEN_NAMES.contains(&name) || name.starts_with("supercargo-");
    if is_taken {
        return Some("Rust, Cargo or Supercargo has something of that name".to_owned());
    }
    RUST_WORDS.contains(&name).then(|| "it is a word of Rust's".to_owned())
}

/// The name as it would be right: words that begin with capitals, blanks and underscores become dashes.
fn suggestion(name: &str) -> Option<String> {
    let mut better = String::new();
    for sign in name.chars() {
        let is_break = sign.is_ascii_uppercase() || matches!(sign, '_' | ' ' | '.' | '-');
        if is_break && !better.is_empty() && !better.ends_with('-') {
            better.push('-');
        }
        if sign.is_ascii_alphanumeric() {
            better.push(sign.to_ascii_lowercase());
        }
    }
    let better = better.trim_matches('-').to_owned();
    (!better.is_empty() && problem_of(&better).is_none()).then_some(better)
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
