//! Credential plugins: programs that a kubeconfig names (`exec`) and that print a token or a client certificate, as client-go runs
//! them (`plugin/pkg/client/auth/exec`).
//!
//! A plugin is run when a request first needs it, when what it said has expired, and when the server has refused that: once,
//! however many requests wait for it, and for all servers whose kubeconfig names the same plugin in the same way.
//!
//! Its environment, its arguments and whatever it prints may be secrets, and are in no message: a message names the program, how it
//! ended, and the kubeconfig's hint. What it writes to standard error reaches whoever sits at a terminal, as with kubectl: a plugin
//! that wants somebody to log in says so there. Where standard error is no terminal it goes nowhere, because it would end up in a file
//! or a log that others read.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use serde_json::{Value, json};
use supercargo_model::Timestamp;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::{Instant, timeout};
use tracing::warn;

use crate::clock::Clock;
use crate::material::{Identity, bearer};
use crate::words::{ExecCredentialWords, ExecWords};

/// The versions that are spoken.
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
/// How long a plugin may take.
const TIME_MAX: Duration = Duration::from_secs(60);
/// How long one may take that talks to somebody at a terminal, who may have to log in with a browser.
const INTERACTIVE_TIME_MAX: Duration = Duration::from_secs(600);
/// How much a plugin may print. A token has a few kilobytes.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// How long a plugin is left alone after it has failed, or after the server has refused what it said twice.
const REST: Duration = Duration::from_secs(5);
/// How many plugins are remembered; a process talks to one or two.
const PLUGINS_MAX: usize = 16;

/// A plugin, and what it said last.
pub(crate) struct Plugin {
    recipe: Recipe,
    clock: Clock,
    state: Mutex<State>,
    /// The run that is under way. Whoever waits for it moves it along; if that one gives up, the next goes on.
    running: tokio::sync::Mutex<Option<Run>>,
}

/// How a plugin is run.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    exec: ExecWords,
    program: PathBuf,
    /// What it is told about the cluster, if it is told.
    cluster: Option<Value>,
}

/// What a plugin said.
pub(crate) struct Credential {
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) identity: Option<Identity>,
    expires: Option<Timestamp>,
    /// The number of the run.
    pub(crate) number: u64,
}

/// Why a plugin gives no credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PluginError(String);

#[derive(Default)]
struct State {
    credential: Option<Arc<Credential>>,
    /// The server has refused the credential.
    is_refused: bool,
    failure: Option<PluginError>,
    runs: u64,
    ended: Option<Instant>,
}

type Run = Pin<Box<dyn Future<Output = Result<Credential, PluginError>> + Send>>;

/// All plugins of this process.
static PLUGINS: Mutex<Vec<Arc<Plugin>>> = Mutex::new(Vec::new());

impl Recipe {
    /// Checks what a kubeconfig says. The program is where the kubeconfig means it to be.
    pub(crate) fn new(exec: ExecWords, program: PathBuf, cluster: Option<Value>) -> Result<Self, String> {
        let ExecWords { command, api_version, interactive_mode, .. } = &exec;
        if command.is_empty() {
            return Err("exec has no command".to_owned());
        }
        if !VERSIONS.contains(&&**api_version) {
            return Err(format!(
                "exec: {command} speaks the version {api_version:?}, and only {} are spoken here; update the plugin",
                VERSIONS.join(" and ")
            ));
        }
        match &**interactive_mode {
            "Never" | "IfAvailable" | "Always" => {}
            "" if *api_version == VERSIONS[1] => {}
            "" => {
                return Err(format!(
                    "exec: interactiveMode of {command} is missing: Never, IfAvailable or Always"
                ));
            }
            other => {
                return Err(format!(
                    "exec: interactiveMode of {command} is {other:?}, not Never, IfAvailable or Always"
                ));
            }
        }
        Ok(Recipe { exec, program, cluster })
    }

    /// Whether the plugin may talk to somebody at the terminal.
    fn is_interactive(&self, has_terminal: bool) -> Result<bool, PluginError> {
        match &*self.exec.interactive_mode {
            "Never" => Ok(false),
            "Always" if !has_terminal => {
                Err(self.failed("needs somebody to talk to, and standard input is no terminal"))
            }
            _ => Ok(has_terminal),
        }
    }

    /// What the plugin is told.
    fn information(&self, is_interactive: bool) -> String {
        let mut spec = json!({ "interactive": is_interactive });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        json!({ "kind": "ExecCredential", "apiVersion": self.exec.api_version, "spec": spec }).to_string()
    }

    fn failed(&self, what: &str) -> PluginError {
        let hint = self.exec.install_hint.split_whitespace().collect::<Vec<_>>().join(" ");
        let hint = if hint.is_empty() { hint } else { format!("; the kubeconfig says: {hint}") };
        PluginError(format!("the credential plugin {} {what}{hint}", self.exec.command))
    }

    /// Runs the plugin and reads what it prints.
    async fn run(self) -> Result<Credential, PluginError> {
        let is_interactive = self.is_interactive(io::stdin().is_terminal())?;
        let patience = if is_interactive { INTERACTIVE_TIME_MAX } else { TIME_MAX };
        let mut command = Command::new(&self.program);
        command.args(&self.exec.args);
        command.envs(self.exec.env.iter().map(|variable| (&variable.name, &variable.value)));
        command.env("KUBERNETES_EXEC_INFO", self.information(is_interactive));
        command.stdin(if is_interactive { Stdio::inherit() } else { Stdio::null() });
        command.stderr(if io::stderr().is_terminal() { Stdio::inherit() } else { Stdio::null() });
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.failed("is not there: install it, or correct the kubeconfig"),
            _ => self.failed(&format!("cannot be run: {error}")),
        })?;
        let printed = child.stdout.take();
        let ended = timeout(patience, async {
            let printed = match printed {
                Some(printed) => read(printed).await,
                None => Ok(Vec::new()),
            };
            // One that prints too much, or cannot be read from, is not waited for.
            let status =
                if printed.is_ok() { child.wait().await } else { child.kill().await.and(Err(broken())) };
            (printed, status)
        });
        let Ok((printed, status)) = ended.await else {
            let seconds = patience.as_secs();
            return Err(self.failed(&format!("was stopped, because it did not end within {seconds} s")));
        };
        let printed = printed.map_err(|reason| self.failed(&reason))?;
        match status {
            Ok(status) if status.success() => self.read(&printed),
            Ok(status) => Err(self.failed(&format!("failed with {status}"))),
            Err(error) => Err(self.failed(&format!("cannot be waited for: {error}"))),
        }
    }

    /// What the plugin has printed. Its words are not repeated, whatever is wrong with them.
    fn read(&self, printed: &[u8]) -> Result<Credential, PluginError> {
        let words: ExecCredentialWords = serde_json::from_slice(printed)
            .map_err(|_| self.failed("prints something else than an ExecCredential as JSON"))?;
        if words.kind != "ExecCredential" {
            return Err(self.failed("prints an object of another kind than ExecCredential"));
        }
        if words.api_version != self.exec.api_version {
            return Err(self.failed(&format!(
                "prints another version of ExecCredential than {}, which the kubeconfig names",
                self.exec.api_version
            )));
        }
        let status = words.status.unwrap_or_default();
        let (certificate, key) = (status.client_certificate_data, status.client_key_data);
        let identity = match (certificate.is_empty(), key.is_empty()) {
            (true, true) => None,
            (false, false) => Some(Identity { certificate: certificate.into_bytes(), key: key.into_bytes() }),
            _ => return Err(self.failed("gives a client certificate without its key, or a key alone")),
        };
        if status.token.is_empty() && identity.is_none() {
            return Err(self.failed("gives neither a token nor a client certificate"));
        }
        let authorization = Some(&status.token).filter(|token| !token.is_empty());
        let authorization = authorization.map(|token| bearer(token)).transpose();
        let authorization =
            authorization.map_err(|reason| self.failed(&format!("gives a token: {reason}")))?;
        let expires = match &*status.expiration_timestamp {
            "" => None,
            text => {
                let time: jiff::Timestamp = text
                    .parse()
                    .map_err(|_| self.failed("gives an expirationTimestamp that is no time of RFC 3339"))?;
                Some(Timestamp::from_seconds(time.as_second()))
            }
        };
        Ok(Credential { authorization, identity, expires, number: 0 })
    }
}

impl Plugin {
    /// The plugin of this recipe, which is one for the whole process.
    pub(crate) fn shared(recipe: Recipe) -> Arc<Self> {
        let mut plugins = PLUGINS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = plugins.iter().find(|plugin| plugin.recipe == recipe) {
            return plugin.clone();
        }
        let plugin = Arc::new(Plugin::new(recipe, Clock::system()));
        if plugins.len() >= PLUGINS_MAX {
            plugins.remove(0);
        }
        plugins.push(plugin.clone());
        plugin
    }

    fn new(recipe: Recipe, clock: Clock) -> Self {
        Plugin { recipe, clock, state: Mutex::default(), running: tokio::sync::Mutex::default() }
    }

    /// What the plugin says. It is run if need be.
    pub(crate) async fn credential(&self) -> Result<Arc<Credential>, PluginError> {
        if let Some(known) = self.known() {
            return known;
        }
        let mut running = self.running.lock().await;
        // Somebody else may have waited for it meanwhile.
        if let Some(known) = self.known() {
            return known;
        }
        let run = running.get_or_insert_with(|| Box::pin(self.recipe.clone().run()));
        let outcome = run.await;
        *running = None;
        self.conclude(outcome)
    }

    /// The server has refused what the run of this number said; whether it makes sense to try again with something else.
    pub(crate) fn refused(&self, number: u64) -> bool {
        let mut state = self.state();
        match &state.credential {
            Some(credential) if credential.number == number => {
                state.is_refused = true;
                drop(state);
                self.known().is_none()
            }
            // Something else is known already.
            _ => true,
        }
    }

    /// What is known without another run; none if there has to be one.
    fn known(&self) -> Option<Result<Arc<Credential>, PluginError>> {
        let state = self.state();
        let rests = state.ended.is_some_and(|ended| ended.elapsed() < REST);
        let Some(credential) = &state.credential else {
            return state.failure.clone().filter(|_| rests).map(Err);
        };
        let is_expired = credential.expires.is_some_and(|expires| expires <= self.clock.now());
        // What the server has refused for the first time may simply be too old.
        let is_done_with = is_expired && !rests || state.is_refused && (!rests || state.runs == 1);
        match &state.failure {
            Some(failure) if rests && is_expired => Some(Err(failure.clone())),
            _ => (!is_done_with).then(|| Ok(credential.clone())),
        }
    }

    fn conclude(&self, outcome: Result<Credential, PluginError>) -> Result<Arc<Credential>, PluginError> {
        let mut state = self.state();
        state.runs += 1;
        state.ended = Some(Instant::now());
        match outcome {
            Ok(credential) => {
                let credential = Arc::new(Credential { number: state.runs, ..credential });
                (state.credential, state.failure) = (Some(credential.clone()), None);
                state.is_refused = false;
                Ok(credential)
            }
            Err(failure) => {
                state.failure = Some(failure.clone());
                match &state.credential {
                    Some(old) if old.expires.is_none_or(|expires| expires > self.clock.now()) => {
                        warn!("The credentials cannot be renewed, the old ones stay: {failure}");
                        Ok(old.clone())
                    }
                    _ => Err(failure),
                }
            }
        }
    }

    /// Lets so much time pass that the plugin may be run again.
    #[cfg(test)]
    pub(crate) fn rest(&self) {
        self.state().ended = Instant::now().checked_sub(REST);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is right after each change: a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

async fn read(printed: impl AsyncRead + Unpin) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut printed = printed.take(OUTPUT_BYTES_MAX + 1);
    printed.read_to_end(&mut bytes).await.map_err(|error| format!("cannot be read from: {error}"))?;
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(format!("was stopped, because it prints more than {OUTPUT_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}
