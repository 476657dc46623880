//! `supercargo qos`: the table of QosAware, without curl: an image that has nothing but this program in it shows it as well.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, value_parser};
use serde::Deserialize;
use supercargo_framework::{Endpoint, HttpSource};
use supercargo_query::fetch_page;
use tokio::time::sleep;

use crate::outcome::Outcome;

/// How long the scheduler may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer: some hundred bytes for each of a thousand controllers, or for each of their replicas.
const BYTES_MAX: usize = 64 << 20;
/// What terminals take for the beginning of an empty page.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[derive(Debug, Args)]
pub(crate) struct QosOptions {
    /// Where the scheduler serves the table: `debugAddress` of QosAware
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10000")]
    address: SocketAddr,
    /// Show a line for each replica that has a pod
    #[arg(long, conflicts_with_all = ["json", "log"])]
    replicas: bool,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "log")]
    json: bool,
    /// Print the pods that have ended, as comma-separated values; with --watch, those that end from then on as well
    #[arg(long)]
    log: bool,
    /// Print it again and again, after so many seconds
    #[arg(
        long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
        value_parser = value_parser!(u64).range(1..=3600)
    )]
    watch: Option<u64>,
}

/// The lines of the log, and the number of the last one.
#[derive(Deserialize)]
struct Log {
    last: u64,
    lines: Vec<String>,
}

pub(crate) fn run(options: &QosOptions) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(print(options))
}

async fn print(options: &QosOptions) -> anyhow::Result<Outcome> {
    let mut table = Table { options, last: 0 };
    let Some(seconds) = options.watch else {
        return Ok(Outcome { stdout: table.next().await?, ..Outcome::default() });
    };
    loop {
        // A scheduler that does not answer may be back in a moment.
        let (text, error) = match table.next().await {
            Ok(text) => (text, String::new()),
            Err(error) => (String::new(), format!("{error:#}\n")),
        };
        let text = if options.log || options.json { text } else { format!("{CLEAR}{text}") };
        if write(io::stdout(), &text).and_then(|()| write(io::stderr(), &error)).is_err() {
            // Whoever read along has seen enough.
            return Ok(Outcome::default());
        }
        sleep(Duration::from_secs(seconds)).await;
    }
}

fn write(mut output: impl io::Write, text: &str) -> io::Result<()> {
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// What is printed, each time.
struct Table<'a> {
    options: &'a QosOptions,
    /// The number of the last line of the log that was printed.
    last: u64,
}

impl Table<'_> {
    async fn next(&mut self) -> anyhow::Result<String> {
        let QosOptions { address, replicas, json, log, .. } = *self.options;
        if log {
            let text = ask(address, &format!("log?output=json&after={}", self.last)).await?;
            let log: Log = serde_json::from_str(&text)
                .with_context(|| format!("{address} answers, but not as QosAware does"))?;
            self.last = log.last;
            return Ok(log.lines.into_iter().map(|line| line + "\n").collect());
        }
        let path = match (json, replicas) {
            (true, _) => "?output=json",
            (_, true) => "?replicas",
            _ => "",
        };
        ask(address, path).await
    }
}

async fn ask(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let endpoint = Endpoint { url: format!("http://{address}/{path}"), ..Endpoint::default() };
    match fetch_page(&HttpSource::get(endpoint), TIMEOUT, BYTES_MAX).await {
        Ok(body) => Ok(String::from_utf8_lossy(&body).into_owned()),
        Err(failure) => bail!(
            "{address} does not show the table: {failure}; is this the host of the scheduler, does its profile enable QosAware, and is its \
             debugAddress this one?"
        ),
    }
}

#[cfg(test)]
mod tests;
