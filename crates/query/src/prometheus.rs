//! What Prometheus is asked.

use std::fmt::Write as _;
use std::time::Duration;

use supercargo_framework::{PrometheusRange, PrometheusSource};
use supercargo_model::Timestamp;

use crate::http::{Content, Request};

/// What is longer than this is posted: servers and proxies have limits for addresses.
const ADDRESS_BYTES_MAX: usize = 2000;
const FORM: &str = "application/x-www-form-urlencoded";

/// The request for what an expression is, or was.
pub(crate) fn request(source: &PrometheusSource, deadline: Duration, now: Timestamp) -> Request {
    let mut parameters = vec![("query", source.expression.clone()), ("timeout", seconds(deadline))];
    let path = match source.range {
        None => "query",
        Some(PrometheusRange { length, step }) => {
            let end = u64::try_from(now.nanoseconds()).map_or(Duration::ZERO, Duration::from_nanos);
            let start = end.saturating_sub(length);
            parameters.extend([("start", seconds(start)), ("end", seconds(end)), ("step", seconds(step))]);
            "query_range"
        }
    };
    let words: Vec<String> =
        parameters.into_iter().map(|(name, value)| format!("{name}={}", escaped(&value))).collect();
    let words = words.join("&");
    let url = format!("{}/api/v1/{path}", source.endpoint.url.trim_end_matches('/'));
    if url.len() + words.len() < ADDRESS_BYTES_MAX {
        Request { url: format!("{url}?{words}"), content: None }
    } else {
        Request { url, content: Some(Content { content_type: FORM.to_owned(), body: words.into() }) }
    }
}

/// Seconds to the millisecond, such as `1.500`: Prometheus takes parts of seconds only without a unit.
fn seconds(duration: Duration) -> String {
    format!("{}.{:03}", duration.as_secs(), duration.subsec_millis())
}

/// Text as part of an address or a form.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use supercargo_framework::Endpoint;

    use super::*;

    #[test]
    fn what_is_asked_is_part_of_the_address_or_if_it_is_long_of_a_form() {
        let now = Timestamp::from_nanoseconds(1_000_000_500_000_000);
        let check = |source: &PrometheusSource, expected: &str| {
            let request = request(source, Duration::from_millis(1500), now);
            assert_eq!((request.url.as_str(), request.content), (expected, None));
        };
        let source = PrometheusSource::new(Endpoint::new("http://a/prefix/"), r#"up{job="x y"} + 1"#);
        let query = "query=up%7Bjob%3D%22x%20y%22%7D%20%2B%201&timeout=1.500";
        check(&source, &format!("http://a/prefix/api/v1/query?{query}"));
        let range = source.over(Duration::from_secs(600), Duration::from_millis(500));
        check(
            &range,
            &format!(
                "http://a/prefix/api/v1/query_range?{query}&start=999400.500&end=1000000.500&step=0.500"
            ),
        );
        let long = PrometheusSource::new(Endpoint::new("http://a"), "1+".repeat(1000) + "1");
        let Request { url, content } = request(&long, Duration::from_secs(1), now);
        let content = content.expect("it is posted");
        assert_eq!((url.as_str(), content.content_type.as_str()), ("http://a/api/v1/query", FORM));
        assert!(content.body.starts_with(b"query=1%2B1%2B"));
    }
}
