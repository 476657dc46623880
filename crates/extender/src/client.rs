//! Puts the engine's questions to an extender.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use supercargo_client::with_causes;
use supercargo_config::Extender;
use supercargo_framework::{AskFailure, AskedNode, ExtenderAnswer, ExtenderQuestion, NodeVictims};
use supercargo_model::GoDuration;
use supercargo_model::{Pod, RawObject};
use tokio::time::{Instant, timeout_at};

use crate::tls::{ExtenderConfigError, connector};
use crate::wire::{
    ExtenderArgs, ExtenderBindingArgs, ExtenderBindingResult, ExtenderFilterResult, ExtenderPreemptionArgs,
    ExtenderPreemptionResult, HostPriorityList, MetaPod, MetaVictims, NamedObject, NodeList, Victims, read,
};

/// How long an extender may take that has no `httpTimeout`; upstream's number.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// How much of an answer is read. Five thousand nodes, with everything that they report, are a quarter of it.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How long an idle connection is kept; upstream's number.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How many idle connections are kept: a decision needs one, and bindings run beside it.
const POOL_IDLE_MAX: usize = 8;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const SUPERCARGO: HeaderValue = HeaderValue::from_static(concat!("supercargo/", env!("CARGO_PKG_VERSION")));

/// An extender, as the configuration describes it. Clones share its connections.
///
/// # Difference from upstream
///
/// - A node that an extender lets through must have been asked about, also if the extender sends whole nodes
///   (without `nodeCacheCapable`). Upstream goes on with nodes that nobody knows.
/// - Only HTTP/1.1 is spoken, redirections are not followed, and proxies that the environment names are not used.
/// - Certificates are read once, and not again when their files change.
/// - An answer has at most 256 MiB.
#[derive(Clone, Debug)]
pub struct ExtenderClient {
    url: String,
    filter_verb: String,
    prioritize_verb: String,
    preempt_verb: String,
    bind_verb: String,
    knows_nodes: bool,
    timeout: Option<Duration>,
    pub(crate) answer_bytes_max: usize,
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl ExtenderClient {
    /// Gets ready to ask. Whether the extender is there, and whether its address is one, shows at the first question,
    /// as it does upstream: an extender can be ignorable.
    ///
    /// Files with certificates and keys are read here.
    pub fn new(extender: &Extender) -> Result<Self, ExtenderConfigError> {
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(POOL_IDLE_MAX)
            .build(connector(extender)?);
        Ok(ExtenderClient {
            url: extender.url_prefix.clone(),
            filter_verb: extender.filter_verb.clone(),
            prioritize_verb: extender.prioritize_verb.clone(),
            preempt_verb: extender.preempt_verb.clone(),
            bind_verb: extender.bind_verb.clone(),
            knows_nodes: extender.node_cache_capable,
            timeout: timeout_of(extender.http_timeout),
            answer_bytes_max: ANSWER_BYTES_MAX,
            http,
        })
    }

    /// What upstream calls the extender: its `urlPrefix`.
    pub fn name(&self) -> &str {
        &self.url
    }

    /// Asks, within a Tokio runtime. What went wrong is told in upstream's words where it has any.
    ///
    /// An extender without the verb is not bothered: it lets all nodes through and gives them all 0; to let it preempt or
    /// bind is an error. Scores and victims are handed on as they come: scores may be out of range, and UIDs may be those
    /// of pods that nobody asked about, which is an error upstream only if no such pod is on the node.
    pub async fn ask(&self, question: &ExtenderQuestion) -> Result<ExtenderAnswer, AskFailure> {
        match question {
            ExtenderQuestion::Filter { pod, nodes } => self.filter(pod, nodes).await,
            ExtenderQuestion::Prioritize { pod, nodes } => self.prioritize(pod, nodes).await,
            ExtenderQuestion::Preempt { pod, victims } => {
                self.preempt(pod, victims.iter().map(|(node, victims)| (&**node, victims))).await
            }
            ExtenderQuestion::Bind { pod, node } => self.bind(pod, node).await,
        }
    }

    async fn filter(&self, pod: &Pod, nodes: &[AskedNode]) -> Result<ExtenderAnswer, AskFailure> {
        if self.filter_verb.is_empty() {
            let kept = nodes.iter().map(|node| (*node.name).into()).collect();
            return Ok(ExtenderAnswer::Filtered {
                kept,
                failed: Default::default(),
                unresolvable: Default::default(),
            });
        }
        let args = self.args(pod, nodes)?;
        let answer = self.send(&self.filter_verb, &args).await?;
        let result: ExtenderFilterResult<NamedObject> = self.read(&self.filter_verb, &answer)?;
        if !result.error.is_empty() {
            return Err(AskFailure::Answered(result.error));
        }
        // Names are no answer to whole nodes, whereas whole nodes are one to names. Neither means that no node is left.
        let kept = match (result.node_names, result.nodes) {
            (Some(names), _) if self.knows_nodes => names,
            (_, Some(nodes)) => nodes.items.into_iter().map(|node| node.metadata.name).collect(),
            (_, None) => Vec::new(),
        };
        let asked: BTreeSet<&str> = nodes.iter().map(|node| &*node.name).collect();
        if let Some(unknown) = kept.iter().find(|name| !asked.contains(&***name)) {
            return Err(AskFailure::Answered(format!(
                "extender {:?} claims a filtered node {unknown:?} which is not found in the input node list",
                self.url
            )));
        }
        Ok(ExtenderAnswer::Filtered {
            kept,
            failed: result.failed_nodes,
            unresolvable: result.failed_and_unresolvable_nodes,
        })
    }

    async fn prioritize(&self, pod: &Pod, nodes: &[AskedNode]) -> Result<ExtenderAnswer, AskFailure> {
        if self.prioritize_verb.is_empty() {
            let scores = nodes.iter().map(|node| ((*node.name).into(), 0)).collect();
            return Ok(ExtenderAnswer::Prioritized(scores));
        }
        let args = self.args(pod, nodes)?;
        let answer = self.send(&self.prioritize_verb, &args).await?;
        let list: HostPriorityList = self.read(&self.prioritize_verb, &answer)?;
        let scores = list.into_iter().map(|entry| (entry.host, entry.score)).collect();
        Ok(ExtenderAnswer::Prioritized(scores))
    }

    async fn preempt<'a>(
        &self,
        pod: &Pod,
        victims: impl Iterator<Item = (&'a str, &'a NodeVictims)>,
    ) -> Result<ExtenderAnswer, AskFailure> {
        if self.preempt_verb.is_empty() {
            return Err(AskFailure::Answered(format!(
                "preempt verb is not defined for extender {} but run into ProcessPreemption",
                self.url
            )));
        }
        let mut args = ExtenderPreemptionArgs {
            pod: Some(raw_pod(pod).map_err(AskFailure::Answered)?),
            ..Default::default()
        };
        if self.knows_nodes {
            let meta = victims.map(|(node, victims)| (node.into(), meta_victims(victims))).collect();
            args.node_name_to_meta_victims = Some(meta);
        } else {
            let whole = victims.map(|(node, victims)| Ok((node.into(), whole_victims(victims)?)));
            args.node_name_to_victims =
                Some(whole.collect::<Result<_, String>>().map_err(AskFailure::Answered)?);
        }
        let answer = self.send(&self.preempt_verb, &args).await?;
        let result: ExtenderPreemptionResult = self.read(&self.preempt_verb, &answer)?;
        let left = result.node_name_to_meta_victims.into_iter().map(|(node, victims)| {
            let uids = victims.pods.into_iter().map(|pod| pod.uid).collect();
            (node, (uids, victims.pdb_violations))
        });
        Ok(ExtenderAnswer::Preempted(left.collect()))
    }

    async fn bind(&self, pod: &Pod, node: &str) -> Result<ExtenderAnswer, AskFailure> {
        if self.bind_verb.is_empty() {
            return Err(AskFailure::Answered("unexpected empty bindVerb in extender".to_owned()));
        }
        let args = ExtenderBindingArgs {
            pod_name: pod.name.clone(),
            pod_namespace: (*pod.namespace).into(),
            pod_uid: (*pod.uid).into(),
            node: node.into(),
        };
        let answer = self.send(&self.bind_verb, &args).await?;
        let result: ExtenderBindingResult = self.read(&self.bind_verb, &answer)?;
        if result.error.is_empty() {
            Ok(ExtenderAnswer::Bound)
        } else {
            Err(AskFailure::Answered(result.error))
        }
    }

    fn args<'a>(
        &self,
        pod: &'a Pod,
        nodes: &'a [AskedNode],
    ) -> Result<ExtenderArgs<&'a RawValue>, AskFailure> {
        let mut args =
            ExtenderArgs { pod: Some(raw_pod(pod).map_err(AskFailure::Answered)?), ..Default::default() };
        if self.knows_nodes {
            args.node_names = Some(nodes.iter().map(|node| (*node.name).into()).collect());
        } else {
            let items = nodes.iter().map(|node| raw(node.raw.as_ref(), "node", &node.name));
            args.nodes = Some(NodeList::new(items.collect::<Result<_, _>>().map_err(AskFailure::Answered)?));
        }
        Ok(args)
    }

    /// Sends what is asked and waits for the whole answer. The texts are those of Go's HTTP client.
    async fn send(&self, verb: &str, args: &impl Serialize) -> Result<Bytes, AskFailure> {
        let url = self.address(verb);
        let body = serde_json::to_vec(args).map_err(|error| AskFailure::Answered(error.to_string()))?;
        let request =
            request(&url, body).map_err(|reason| AskFailure::Answered(format!("Post {url:?}: {reason}")))?;
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);

        let Some(response) = within(deadline, self.http.request(request)).await else {
            return Err(AskFailure::Unanswered(format!(
                "Post {url:?}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            )));
        };
        let response = response.map_err(|error| {
            let message = format!("Post {url:?}: {}", with_causes(&error));
            // Where nobody listens, nobody is at work.
            if error.is_connect() { AskFailure::Answered(message) } else { AskFailure::Unanswered(message) }
        })?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let message = format!("failed {verb} with extender at URL {url}, code {}", status.as_u16());
            // A gateway speaks for an extender that may be at work still: Envoy says 503 of a question that it has forwarded. 500 is what an
            // extender itself says that has failed.
            let is_gateway = matches!(status.as_u16(), 408 | 502..);
            return Err(if is_gateway {
                AskFailure::Unanswered(message)
            } else {
                AskFailure::Answered(message)
            });
        }

        let body = Limited::new(response.into_body(), self.answer_bytes_max).collect();
        let unread =
            |reason: &str| format!("cannot read the answer to {verb} of the extender at URL {url}: {reason}");
        match within(deadline, body).await {
            None => Err(AskFailure::Unanswered(unread(
                "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
            ))),
            Some(Err(error)) if error.is::<LengthLimitError>() => Err(AskFailure::Answered(unread(
                &format!("it has more than {} bytes", self.answer_bytes_max),
            ))),
            Some(Err(error)) => Err(AskFailure::Unanswered(unread(&with_causes(&*error)))),
            Some(Ok(body)) => Ok(body.to_bytes()),
        }
    }

    fn read<'a, T: Deserialize<'a>>(&self, verb: &str, answer: &'a [u8]) -> Result<T, AskFailure> {
        read(answer).map_err(|error| {
            let url = self.address(verb);
            AskFailure::Answered(format!(
                "cannot understand the answer to {verb} of the extender at URL {url}: {error}"
            ))
        })
    }

    fn address(&self, verb: &str) -> String {
        format!("{}/{verb}", self.url.trim_end_matches('/'))
    }
}

/// Go's clients have no time limit if it is less than nothing.
fn timeout_of(configured: GoDuration) -> Option<Duration> {
    match configured {
        GoDuration::ZERO => Some(TIMEOUT_DEFAULT),
        GoDuration(nanoseconds) => u64::try_from(nanoseconds).ok().map(Duration::from_nanos),
    }
}

fn request(url: &str, body: Vec<u8>) -> Result<Request<Full<Bytes>>, String> {
    let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        other => return Err(format!("unsupported protocol scheme {:?}", other.unwrap_or_default())),
    }
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    request.headers_mut().insert(CONTENT_TYPE, JSON);
    request.headers_mut().insert(USER_AGENT, SUPERCARGO);
    Ok(request)
}

/// None if the deadline passes before.
async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

fn meta_victims(victims: &NodeVictims) -> MetaVictims {
    MetaVictims {
        pods: victims.pods.iter().map(|pod| MetaPod { uid: (*pod.uid).into() }).collect(),
        pdb_violations: victims.budget_violations,
    }
}

fn whole_victims(victims: &NodeVictims) -> Result<Victims<&RawValue>, String> {
    let pods = victims.pods.iter().map(|pod| raw_pod(pod)).collect::<Result<_, _>>()?;
    Ok(Victims { pods, pdb_violations: victims.budget_violations })
}

fn raw_pod(pod: &Pod) -> Result<&RawValue, String> {
    raw(pod.raw.as_ref(), "pod", &pod.name)
}

/// An object's text, which is passed on as it is. It is there if whoever drives the scheduler keeps it for extenders.
fn raw<'a>(object: Option<&'a Arc<RawObject>>, kind: &str, name: &str) -> Result<&'a RawValue, String> {
    let object = object
        .ok_or_else(|| format!("cannot ask an extender about {kind} {name:?}: its text has not been kept"))?;
    serde_json::from_str(object.as_json()).map_err(|error| {
        format!("cannot ask an extender about {kind} {name:?}: its text is not JSON: {error}")
    })
}
