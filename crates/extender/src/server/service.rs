//! Questions out of HTTP requests, and answers into responses, within limits.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue, RETRY_AFTER};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::answering::{Answerer, View};
use super::legacy::{Legacy, WithOldNames};
use crate::wire::{ExtenderBindingArgs, ExtenderBindingResult, ExtenderFilterResult, HostPriorityList, read};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
/// What memory for bodies is counted in.
const BODY_UNIT_BYTES: usize = 1024;
/// How much of a question that is refused is read all the same, and for how long, so that the client hears why.
const DISCARDED_BYTES_MAX: usize = 1 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);
/// When a client that was turned away may try again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Which nodes a pod can run on.
    Filter,
    /// How good they are.
    Prioritize,
    /// Which victims are worth evicting.
    Preempt,
    /// That a pod be bound.
    Bind,
}

/// How a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Answered,
    /// With an error of the plugins, of the API server, or because the cluster is not known.
    Failed,
    /// It could not be understood.
    Malformed,
    /// It was too large, too slow, or one too many.
    Refused,
}

/// A question that was answered.
#[derive(Clone, Debug)]
pub struct Answered<'a> {
    /// What was asked.
    pub verb: Verb,
    /// How that went.
    pub outcome: Outcome,
    /// Why it did not go well; empty if it did.
    pub error: &'a str,
    /// From the head of the request to the answer.
    pub took: Duration,
}

/// What a [`Service`] is surrounded by.
pub trait Surroundings: Send + Sync + 'static {
    /// What is known now; an error if that is too little to answer anything.
    fn view(&self, answerer: &Answerer) -> impl Future<Output = Result<View, String>> + Send;

    /// Binds a pod; an error says why it is not bound, or may not be.
    fn bind(&self, binding: ExtenderBindingArgs) -> impl Future<Output = Result<(), String>> + Send;

    /// Takes note of a question that was answered.
    fn answered(&self, answered: &Answered<'_>);
}

/// Which names answers are written with. Questions are read in either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireNames {
    /// `NodeNames`, as all schedulers since 1.17.
    #[default]
    Go,
    /// `nodenames`, as schedulers before.
    Legacy,
}

/// How much a service takes upon itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a question may be. Five thousand nodes, with everything that they report, are half of the default.
    pub body_bytes_max: usize,
    /// How long all questions together may be that are being read or answered; others are refused.
    pub bodies_bytes_max: usize,
    /// How many questions are answered at the same time; others wait.
    pub questions_max: usize,
    /// How long a question may take, from its head to its answer. Schedulers wait for five seconds if nobody says otherwise.
    pub question_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes_max: 128 << 20,
            bodies_bytes_max: 512 << 20,
            questions_max: 64,
            question_timeout: Duration::from_secs(30),
        }
    }
}

/// Answers questions over HTTP.
#[derive(Debug)]
pub struct Service<S> {
    answerer: Answerer,
    surroundings: S,
    names: WireNames,
    limits: Limits,
    /// As many permits as questions may be under way.
    questions: Semaphore,
    /// As many permits as kibibytes of questions may be held.
    bodies: Semaphore,
}

/// What comes of a question.
struct Answer {
    status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
    fault: Option<Fault>,
}

/// What went wrong with a question.
struct Fault {
    outcome: Outcome,
    error: String,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 4] = [Verb::Filter, Verb::Prioritize, Verb::Preempt, Verb::Bind];

    /// Its name, which is also its path.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Filter => "filter",
            Verb::Prioritize => "prioritize",
            Verb::Preempt => "preempt",
            Verb::Bind => "bind",
        }
    }
}

impl Outcome {
    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::Failed => "failed",
            Outcome::Malformed => "malformed",
            Outcome::Refused => "refused",
        }
    }
}

impl<S: Surroundings> Service<S> {
    /// A service that answers within these limits.
    pub fn new(answerer: Answerer, surroundings: S, names: WireNames, limits: Limits) -> Self {
        let limits =
            Limits { bodies_bytes_max: limits.bodies_bytes_max.max(limits.body_bytes_max), ..limits };
        Service {
            answerer,
            surroundings,
            names,
            limits,
            questions: Semaphore::new(limits.questions_max),
            bodies: Semaphore::new(units(limits.bodies_bytes_max)),
        }
    }

    /// Each verb at the path of its name, and a welcome at `/`.
    pub fn into_router(self, welcome: String) -> Router {
        let service = Arc::new(self);
        let welcome = move || text(StatusCode::OK, welcome);
        let mut router = Router::new().route("/", get(async move || welcome()));
        for verb in Verb::ALL {
            let service = Arc::clone(&service);
            let respond = async move |request: Request<Body>| service.respond(verb, request).await;
            router = router.route(&format!("/{}", verb.name()), post(respond));
        }
        router
    }

    async fn respond(&self, verb: Verb, request: Request<Body>) -> Response {
        let began = Instant::now();
        let answered = timeout(self.limits.question_timeout, self.read_and_answer(verb, request)).await;
        let answer = answered.unwrap_or_else(|_| {
            let error = format!("the question took longer than {:?}", self.limits.question_timeout);
            Answer::refused(StatusCode::REQUEST_TIMEOUT, error)
        });
        let (outcome, error) = match &answer.fault {
            None => (Outcome::Answered, ""),
            Some(fault) => (fault.outcome, fault.error.as_str()),
        };
        self.surroundings.answered(&Answered { verb, outcome, error, took: began.elapsed() });
        answer.respond()
    }

    async fn read_and_answer(&self, verb: Verb, request: Request<Body>) -> Answer {
        let length =
            request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        // Who waits to be told to go on has sent nothing yet.
        let is_waiting = request.headers().contains_key(EXPECT);
        let mut body = request.into_body();
        // What says of itself that it is too long is not even begun.
        let read = match length.is_some_and(|length: usize| length > self.limits.body_bytes_max) {
            true => Err(self.too_long()),
            false => self.read(&mut body).await,
        };
        let (body, _held) = match read {
            Ok(read) => read,
            Err(refusal) => {
                if !is_waiting {
                    discard(&mut body).await;
                }
                return refusal;
            }
        };
        // Only now: a client that is slow to send its question takes nobody's place.
        match self.questions.acquire().await {
            Ok(_question) => self.answer(verb, &body).await,
            // Nobody closes it.
            Err(closed) => Answer::refused(StatusCode::SERVICE_UNAVAILABLE, closed.to_string()),
        }
    }

    /// Reads a body, and counts it among those that are held for as long as the permit lives.
    async fn read(&self, body: &mut Body) -> Result<(Vec<u8>, Option<SemaphorePermit<'_>>), Answer> {
        let mut bytes = Vec::new();
        let mut held: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = body.frame().await {
            let cut_off = |error| {
                Answer::refused(StatusCode::BAD_REQUEST, format!("the question was cut off: {error}"))
            };
            let Ok(data) = frame.map_err(cut_off)?.into_data() else { continue };
            if bytes.len() + data.len() > self.limits.body_bytes_max {
                return Err(self.too_long());
            }
            bytes.extend_from_slice(&data);
            let more = units(bytes.len()) - held.as_ref().map_or(0, SemaphorePermit::num_permits);
            // To wait here, each with a part of what there is, could be for ever.
            let Ok(permit) = self.bodies.try_acquire_many(u32::try_from(more).unwrap_or(u32::MAX)) else {
                let error =
                    format!("more than {} bytes of questions are held already", self.limits.bodies_bytes_max);
                return Err(Answer::refused(StatusCode::SERVICE_UNAVAILABLE, error));
            };
            match &mut held {
                Some(held) => held.merge(permit),
                None => held = Some(permit),
            }
        }
        Ok((bytes, held))
    }

    fn too_long(&self) -> Answer {
        let error = format!("the question has more than {} bytes", self.limits.body_bytes_max);
        Answer::refused(StatusCode::PAYLOAD_TOO_LARGE, error)
    }

    /// Answers a question that was read. What cannot be understood gets the answers of the sample that most extenders are copies of:
    /// an error in the result where there is a place for one, or else nothing, and 200 either way.
    async fn answer(&self, verb: Verb, body: &[u8]) -> Answer {
        match verb {
            Verb::Filter => match self.ask(body, Answerer::filter).await {
                Ok(result) => self.write(&result, None),
                Err(fault) => {
                    let result = ExtenderFilterResult { error: fault.error.clone(), ..Default::default() };
                    self.write(&result, Some(fault))
                }
            },
            Verb::Prioritize => match self.ask(body, Answerer::prioritize).await {
                Ok(list) => self.write(&list, None),
                Err(fault) => self.write(&HostPriorityList::new(), Some(fault)),
            },
            Verb::Preempt => match self.ask(body, Answerer::preempt).await {
                Ok(result) => self.write(&result, None),
                // The result has no place for it.
                Err(fault) if fault.outcome == Outcome::Malformed => {
                    Answer::error(StatusCode::BAD_REQUEST, fault)
                }
                Err(fault) => Answer::error(StatusCode::INTERNAL_SERVER_ERROR, fault),
            },
            Verb::Bind => match self.bind(body).await {
                Ok(()) => self.write(&ExtenderBindingResult::default(), None),
                Err(fault) => self.write(&ExtenderBindingResult { error: fault.error.clone() }, Some(fault)),
            },
        }
    }

    /// Has a question answered by what is known now.
    async fn ask<'a, Question: Deserialize<'a>, Said>(
        &self,
        body: &'a [u8],
        answer: impl FnOnce(&Answerer, View, Question) -> Result<Said, String>,
    ) -> Result<Said, Fault> {
        let question = parse(body)?;
        let view = self.surroundings.view(&self.answerer).await.map_err(Fault::failed)?;
        answer(&self.answerer, view, question).map_err(Fault::failed)
    }

    async fn bind(&self, body: &[u8]) -> Result<(), Fault> {
        let binding = parse(body)?;
        self.surroundings.bind(binding).await.map_err(Fault::failed)
    }

    /// Writes an answer, with what went wrong if something did.
    fn write(&self, answer: &impl Legacy, fault: Option<Fault>) -> Answer {
        let body = match self.names {
            WireNames::Go => serde_json::to_vec(answer),
            WireNames::Legacy => serde_json::to_vec(&WithOldNames(answer)),
        };
        match body {
            Ok(body) => Answer { status: StatusCode::OK, content_type: JSON, body, fault },
            Err(error) => Answer::error(StatusCode::INTERNAL_SERVER_ERROR, Fault::failed(error.to_string())),
        }
    }
}

impl Fault {
    fn failed(error: String) -> Self {
        Fault { outcome: Outcome::Failed, error }
    }
}

impl Answer {
    fn error(status: StatusCode, fault: Fault) -> Self {
        let body = format!("{}\n", fault.error).into_bytes();
        Answer { status, content_type: TEXT, body, fault: Some(fault) }
    }

    fn refused(status: StatusCode, error: String) -> Self {
        Answer::error(status, Fault { outcome: Outcome::Refused, error })
    }

    fn respond(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if self.fault.is_some_and(|fault| fault.outcome == Outcome::Refused) {
            // What else the client sends is not waited for.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
        }
        response
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Fault> {
    read(body).map_err(|error| Fault {
        outcome: Outcome::Malformed,
        error: format!("cannot understand the question: {error}"),
    })
}

/// Reads some of what nobody wants. A connection that is closed while there is more to read is reset, and what was answered on it is lost.
async fn discard(body: &mut Body) {
    let reading = async {
        let mut left = DISCARDED_BYTES_MAX;
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, bytes::Bytes::len));
        }
    };
    // Whoever sends slowly has no more time.
    let _ = timeout(DISCARD_TIMEOUT, reading).await;
}

fn text(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    response
}

/// How many units of memory a body takes.
fn units(bytes: usize) -> usize {
    bytes.div_ceil(BODY_UNIT_BYTES)
}
