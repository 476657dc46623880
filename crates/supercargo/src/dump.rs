//! `supercargo dump`: writes down what a scheduler reads of a cluster.

use std::io::{self, BufWriter, Write};

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use serde_json::Value;
use supercargo_dump::{Item, ListFormat, ListWriter, Mask, MaskBuilder, split};
use supercargo_framework::Registry;
use supercargo_model::KindId;

use crate::cluster_files::Scheduler;
use crate::input;
use crate::live::{ConnectArguments, LiveObjects, wait_for};
use crate::outcome::Outcome;
use crate::unread_record::{is_record, mask_record, record};

/// Holds everything that was applied, once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Debug, Args)]
pub(crate) struct DumpOptions {
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
    /// Where you may not read a kind in all namespaces, read that of this one
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The scheduler's configuration, which says what has to be read; the default one if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Take the objects from what `kubectl get … -o yaml` or `-o json` printed, to mask them; `-` is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Replace names by others, the same name by the same, so that decisions stay as they are
    #[arg(long)]
    pub(crate) mask: bool,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = DumpFormat::Yaml)]
    pub(crate) output: DumpFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormat {
    /// As `kubectl get -o yaml`
    #[default]
    Yaml,
    /// An object a line
    Json,
}

/// Where an object is read from.
enum Source<'a> {
    /// A list of the API server, whose objects do not say what they are.
    Listed(KindId, &'a str),
    Written(Item<'a>),
    /// What we say about what could not be read.
    Record(Value),
}

pub(crate) fn run(options: &DumpOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    if let Some(conflict) = options.connect.conflict(&options.files) {
        return Ok(conflict);
    }
    let scheduler = Scheduler::from_file(options.config.as_deref(), registry)?;
    let mut stderr = scheduler.notes.clone();
    if options.files.is_empty() {
        let objects = wait_for(async {
            let server = options.connect.connect().await?;
            let of_kubeconfig = server.default_namespace();
            let namespace = options.namespace.as_deref().unwrap_or(of_kubeconfig);
            LiveObjects::read(&server, &scheduler, Some(namespace)).await
        })?;
        objects.require_pods_and_nodes()?;
        stderr.push_str(&objects.notes());
        let sources = objects
            .lists
            .iter()
            .flat_map(|(kind, list)| list.items().map(|item| Source::Listed(*kind, item)));
        let records = objects.missing.iter().filter_map(record).map(Source::Record);
        write(&sources.chain(records).collect::<Vec<_>>(), options)?;
    } else {
        let texts = options.files.iter().map(|file| input::read(file)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut sources = Vec::new();
        for (file, text) in options.files.iter().zip(&texts) {
            let items = split(text).map_err(|reason| anyhow!("{}: {reason}", input::display_name(file)))?;
            sources.extend(items.into_iter().map(Source::Written));
        }
        write(&sources, options)?;
    }
    Ok(Outcome { stderr, ..Outcome::default() })
}

/// Writes the objects to standard output, one by one: a large cluster as one text would fill the memory.
fn write(sources: &[Source<'_>], options: &DumpOptions) -> anyhow::Result<()> {
    let mut mask = options.mask.then(|| mask_of(sources)).transpose()?;
    let mut writer = ListWriter::new(match options.output {
        DumpFormat::Yaml => ListFormat::Yaml,
        DumpFormat::Json => ListFormat::Json,
    });
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut print = |text: &str| match stdout.write_all(text.as_bytes()) {
        // Whoever read along has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write"),
    };
    for source in sources {
        let mut object = source.object()?;
        if is_secret(&object) {
            continue;
        }
        match &mut mask {
            Some(mask) if is_record(&object) => mask_record(&mut object, mask),
            Some(mask) => mask.apply(&mut object),
            None => {}
        }
        print(&writer.object(&object))?;
    }
    print(writer.end())?;
    match stdout.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write"),
    }
}

fn mask_of(sources: &[Source<'_>]) -> anyhow::Result<Mask> {
    let mut builder = MaskBuilder::default();
    for source in sources {
        let mut object = source.object()?;
        if !is_record(&object) {
            builder.see(&mut object);
        }
    }
    Ok(builder.finish())
}

fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

impl Source<'_> {
    /// The object, which says what it is, without what only its writers need.
    fn object(&self) -> anyhow::Result<Value> {
        let mut object = match self {
            Source::Listed(kind, text) => {
                let mut object: Value = serde_json::from_str(text)?;
                object["apiVersion"] = kind.api_version().into();
                object["kind"] = kind.kind.into();
                object
            }
            Source::Record(object) => object.clone(),
            Source::Written(item) => {
                item.value().map_err(|reason| anyhow!("an object cannot be read: {reason}"))?
            }
        };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(LAST_APPLIED);
            }
        }
        Ok(object)
    }
}
