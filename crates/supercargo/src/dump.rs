//! `supercargo dump`: writes down what a scheduler reads of a cluster.

use std::io::{self, BufWriter, Write};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::Value;
use supercargo_dump::{Dumps, LeftOut, ListFormat, ListWriter, MaskBuilder};
use supercargo_framework::Registry;
use supercargo_model::KindId;

use crate::input;
use crate::live::{ConnectArguments, LiveObjects, wait_for};
use crate::loaded_config::LoadedConfig;
use crate::outcome::Outcome;
use crate::progress::Progress;
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

/// What hands on objects, one by one.
type Each<'e> = dyn FnMut(Value) -> anyhow::Result<()> + 'e;

pub(crate) fn run(options: &DumpOptions, registry: &Registry) -> anyhow::Result<Outcome> {
    if let Some(conflict) = options.connect.conflict(&options.files) {
        return Ok(conflict);
    }
    let config = LoadedConfig::from_file(options.config.as_deref(), registry)?;
    let mut stderr = config.notes.clone();
    if options.files.is_empty() {
        let objects = wait_for(async {
            let server = options.connect.connect().await?;
            let of_kubeconfig = server.default_namespace();
            let namespace = options.namespace.as_deref().unwrap_or(of_kubeconfig);
            LiveObjects::read(&server, &config, Some(namespace)).await
        })?;
        objects.require_pods_and_nodes()?;
        stderr.push_str(&objects.notes());
        let listed = |each: &mut Each<'_>| {
            for (kind, list) in &objects.lists {
                list.items().try_for_each(|item| each(listed_object(*kind, item)?))?;
            }
            objects.missing.iter().filter_map(record).try_for_each(&mut *each)
        };
        write(&listed, options)?;
    } else {
        let texts = options.files.iter().map(|file| input::read(file)).collect::<anyhow::Result<Vec<_>>>()?;
        let names = options.files.iter().map(|file| input::display_name(file));
        let named: Vec<(&str, &str)> = names.zip(texts.iter().map(String::as_str)).collect();
        let dumps = Dumps::new(&named)?;
        let left_out = write(&|each: &mut Each<'_>| dumps.values(|_, object| each(object)), options)?;
        stderr.push_str(&left_out.to_string());
    }
    Ok(Outcome { stderr, ..Outcome::default() })
}

/// Writes the objects to standard output, one by one: a large cluster as one text would fill the memory. Returned is what
/// was left out.
fn write(
    objects: &dyn Fn(&mut Each<'_>) -> anyhow::Result<()>,
    options: &DumpOptions,
) -> anyhow::Result<LeftOut> {
    let mut mask = None;
    if options.mask {
        let mut builder = MaskBuilder::default();
        objects(&mut |mut object| {
            tidy(&mut object);
            if !is_record(&object) {
                builder.see(&mut object);
            }
            Ok(())
        })?;
        mask = Some(builder.finish());
    }
    let mut left_out = LeftOut::default();
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
    let (mut progress, mut written) = (Progress::beside_output(), 0usize);
    objects(&mut |mut object| {
        progress.tell(|| format!("wrote {written} objects so far"));
        written += 1;
        if is_secret(&object) {
            left_out.add_secret();
            return Ok(());
        }
        tidy(&mut object);
        match &mut mask {
            Some(mask) if is_record(&object) => mask_record(&mut object, mask),
            Some(mask) => mask.apply(&mut object),
            None => {}
        }
        print(&writer.object(&object))
    })?;
    print(writer.end())?;
    match stdout.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        result => result.context("cannot write")?,
    }
    Ok(left_out)
}

fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

/// An object of a list of the API server, which does not say what it is.
fn listed_object(kind: KindId, text: &str) -> anyhow::Result<Value> {
    let mut object: Value = serde_json::from_str(text)?;
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.into();
    Ok(object)
}

/// Takes away what only an object's writers need.
fn tidy(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
}
