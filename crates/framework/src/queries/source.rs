//! Who is asked, and what.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::args::FieldProblems;

/// So many samples of a series are asked for at most; Prometheus has the same limit.
const RANGE_STEPS_MAX: u32 = 11_000;
/// So long an expression, or a line, may be.
const EXPRESSION_BYTES_MAX: usize = 64 << 10;

/// Who is asked, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuerySource {
    /// A Prometheus server, or whatever speaks like one.
    Prometheus(PrometheusSource),
    /// The metrics API of the cluster, `metrics.k8s.io`, about all nodes.
    NodeMetrics,
    /// Anything that answers a request.
    Http(HttpSource),
    /// Anything that answers a line over TCP with a line.
    Line(LineSource),
}

/// A server that speaks HTTP, and how to talk to it. This can be part of a plugin's arguments.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Endpoint {
    /// Its address, `http` or `https`.
    pub url: String,
    /// Headers that go with every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A file with a bearer token, which is read again when it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_file: Option<PathBuf>,
    /// Whom to trust, and who we are.
    #[serde(skip_serializing_if = "QueryTls::is_default")]
    pub tls: QueryTls,
}

/// How a connection is secured. Files are read again when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct QueryTls {
    /// The certificates of the authority; those of the machine without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Our own certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// The name that the server's certificate is for, if it is not that of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Whether the server may show any certificate.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_verify: bool,
}

/// A Prometheus server, and an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusSource {
    /// The server; what is below `/api/v1` is added to its address.
    pub endpoint: Endpoint,
    /// The expression.
    pub expression: String,
    /// The time about which is asked; now, if there is none.
    pub range: Option<PrometheusRange>,
}

/// The last minutes, or hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrometheusRange {
    /// How far back.
    pub length: Duration,
    /// How far one sample is from the next.
    pub step: Duration,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSource {
    /// Where it goes.
    pub endpoint: Endpoint,
    /// GET or POST.
    pub method: HttpMethod,
}

/// How something is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    /// Nothing is sent.
    Get,
    /// This is sent.
    Post {
        /// What it is, such as `application/json`.
        content_type: String,
        /// The body.
        body: String,
    },
}

/// A line that is sent. What comes back up to the end of the line, or of the connection, is the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSource {
    /// `host:port`
    pub address: String,
    /// The line, without its end.
    pub line: String,
}

impl Endpoint {
    /// A server with nothing but an address.
    pub fn new(url: impl Into<String>) -> Self {
        Endpoint { url: url.into(), ..Endpoint::default() }
    }

    /// The same server with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The same server, which is shown the token in a file.
    #[must_use]
    pub fn bearer_token_file(self, path: impl Into<PathBuf>) -> Self {
        Endpoint { bearer_token_file: Some(path.into()), ..self }
    }

    /// The same server over connections that are secured like this.
    #[must_use]
    pub fn tls(self, tls: QueryTls) -> Self {
        Endpoint { tls, ..self }
    }

    /// Whether the connection is secured.
    pub fn is_https(&self) -> bool {
        scheme(&self.url).is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
    }

    /// Says what is wrong with an argument of a plugin, which stands at this path: for [`Args::validate`](crate::Args::validate).
    pub fn validate(&self, path: &str, problems: &mut FieldProblems) {
        let below = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
        for (field, problem) in self.problems() {
            match field {
                "url" if self.url.is_empty() => problems.required(below(field), problem),
                "url" => problems.invalid(below(field), &self.url, problem),
                // Values of headers are secrets, more often than not.
                field => problems.add(below(field), crate::args::ProblemKind::Forbidden, problem),
            }
        }
    }

    /// What is wrong with it, field by field.
    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if let Err(problem) = check_url(&self.url) {
            problems.push(("url", problem));
        }
        for (name, value) in &self.headers {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let is_value = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
            let own = ["host", "content-length", "transfer-encoding", "connection"];
            if name.is_empty() || !name.bytes().all(is_name) {
                problems.push(("headers", format!("{name:?} is no name of a header")));
            } else if own.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                problems.push(("headers", format!("{name} is set by the client itself: leave it out")));
            } else if !value.bytes().all(is_value) {
                problems
                    .push(("headers", format!("the value of {name} has characters that no header can have")));
            }
        }
        let has_authorization = self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        if has_authorization && self.bearer_token_file.is_some() {
            problems.push((
                "bearerTokenFile",
                "there is a header Authorization already: remove one of them".to_owned(),
            ));
        }
        let tls = &self.tls;
        if tls.insecure_skip_verify && tls.ca_file.is_some() {
            problems.push(("tls", "insecureSkipVerify makes caFile useless: remove one of them".to_owned()));
        }
        if tls.cert_file.is_some() != tls.key_file.is_some() {
            problems.push(("tls", "certFile and keyFile belong together: give both or none".to_owned()));
        }
        if *tls != QueryTls::default() && !self.is_https() {
            problems.push((
                "tls",
                "the address is not https, so that nothing is secured: change one of them".to_owned(),
            ));
        }
        problems
    }

    fn check(&self) -> Result<(), String> {
        let problems: Vec<String> =
            self.problems().into_iter().map(|(field, problem)| format!("{field}: {problem}")).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

impl QueryTls {
    fn is_default(&self) -> bool {
        *self == QueryTls::default()
    }
}

impl PrometheusSource {
    /// Asks for what an expression is now.
    pub fn new(endpoint: Endpoint, expression: impl Into<String>) -> Self {
        PrometheusSource { endpoint, expression: expression.into(), range: None }
    }

    /// Asks for what it was in the last minutes.
    #[must_use]
    pub fn over(self, length: Duration, step: Duration) -> Self {
        PrometheusSource { range: Some(PrometheusRange { length, step }), ..self }
    }

    fn check(&self) -> Result<(), String> {
        self.endpoint.check()?;
        if self.endpoint.url.contains('?') {
            return Err(format!("url: {:?} has a query already: paths are put behind it", self.endpoint.url));
        }
        if self.expression.trim().is_empty() || self.expression.len() > EXPRESSION_BYTES_MAX {
            return Err(format!("an expression has 1 to {EXPRESSION_BYTES_MAX} bytes"));
        }
        let Some(PrometheusRange { length, step }) = self.range else { return Ok(()) };
        let least = Duration::from_millis(1);
        if step < least || length < step || length.as_nanos() / step.as_nanos() > u128::from(RANGE_STEPS_MAX)
        {
            return Err(format!(
                "a range of {length:?} in steps of {step:?} has not from 1 to {RANGE_STEPS_MAX} steps of a millisecond or more"
            ));
        }
        Ok(())
    }
}

impl HttpSource {
    /// Gets what is at an address.
    pub fn get(endpoint: Endpoint) -> Self {
        HttpSource { endpoint, method: HttpMethod::Get }
    }

    /// Posts something there.
    pub fn post(endpoint: Endpoint, content_type: impl Into<String>, body: impl Into<String>) -> Self {
        let method = HttpMethod::Post { content_type: content_type.into(), body: body.into() };
        HttpSource { endpoint, method }
    }
}

impl LineSource {
    /// Sends a line to an address, `host:port`.
    pub fn new(address: impl Into<String>, line: impl Into<String>) -> Self {
        LineSource { address: address.into(), line: line.into() }
    }

    fn check(&self) -> Result<(), String> {
        check_authority(&self.address, true)
            .map_err(|problem| format!("address {:?}: {problem}", self.address))?;
        if self.line.len() > EXPRESSION_BYTES_MAX || self.line.contains(['\n', '\r']) {
            return Err(format!("a line has at most {EXPRESSION_BYTES_MAX} bytes and no line end in it"));
        }
        Ok(())
    }
}

impl QuerySource {
    /// What is wrong with it; nothing if it can be asked.
    pub fn validate(&self) -> Result<(), String> {
        match self {
            QuerySource::Prometheus(prometheus) => prometheus.check(),
            QuerySource::NodeMetrics => Ok(()),
            QuerySource::Http(http) => http.endpoint.check(),
            QuerySource::Line(line) => line.check(),
        }
    }
}

impl From<PrometheusSource> for QuerySource {
    fn from(source: PrometheusSource) -> Self {
        QuerySource::Prometheus(source)
    }
}

impl From<HttpSource> for QuerySource {
    fn from(source: HttpSource) -> Self {
        QuerySource::Http(source)
    }
}

impl From<LineSource> for QuerySource {
    fn from(source: LineSource) -> Self {
        QuerySource::Line(source)
    }
}

/// Who is asked, for people.
impl fmt::Display for QuerySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuerySource::Prometheus(source) => formatter.write_str(&source.endpoint.url),
            QuerySource::NodeMetrics => formatter.write_str("the metrics API"),
            QuerySource::Http(source) => formatter.write_str(&source.endpoint.url),
            QuerySource::Line(source) => formatter.write_str(&source.address),
        }
    }
}

/// Without the values of headers, which may be secrets.
impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { url, headers, bearer_token_file, tls } = self;
        formatter
            .debug_struct("Endpoint")
            .field("url", url)
            .field("headers", &headers.keys().collect::<Vec<_>>())
            .field("bearer_token_file", bearer_token_file)
            .field("tls", tls)
            .finish()
    }
}

fn scheme(url: &str) -> Option<(&str, &str)> {
    url.split_once("://")
}

fn check_url(url: &str) -> Result<(), String> {
    if url.is_empty() {
        return Err("an address such as http://prometheus.monitoring:9090".to_owned());
    }
    if let Some(odd) = url.chars().find(|character| !character.is_ascii_graphic()) {
        return Err(format!("{odd:?} cannot be part of an address: escape it with %"));
    }
    let rest = match scheme(url) {
        Some((scheme, rest)) if ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            rest
        }
        _ => return Err("an address begins with http:// or https://".to_owned()),
    };
    if rest.contains('#') {
        return Err("an address that is asked has no part behind #".to_owned());
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(
            "a name and a password in an address are shown to everybody: use headers or bearerTokenFile"
                .to_owned(),
        );
    }
    check_authority(authority, false)
}

/// `host`, `host:port`, `[::1]:port`
fn check_authority(authority: &str, needs_port: bool) -> Result<(), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("a [ has no ]")?;
            if host.parse::<core::net::Ipv6Addr>().is_err() {
                return Err(format!("{host:?} is no IPv6 address"));
            }
            match after {
                "" => (host, None),
                after => (host, Some(after.strip_prefix(':').ok_or("behind ] there is a port or nothing")?)),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host) {
        return Err(format!("{host:?} is no name of a host"));
    }
    match port {
        Some(port) if port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(()),
        Some(port) => Err(format!("{port:?} is no port: those are from 1 to 65535")),
        None if needs_port => Err("the port is missing".to_owned()),
        None => Ok(()),
    }
}
