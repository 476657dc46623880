//! The rights that the API server says are missing.
//!
//! What may not be listed or watched is known from the watches. What may not be written shows only when it is tried, and then as a
//! failure of one pod after the other; here it is kept as what it is: a rule that the role of the scheduler lacks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use tokio::time::Instant;

/// How many missing rules are kept. A scheduler makes some ten kinds of requests; plugins may make others.
const RULES_MAX: usize = 64;
/// How long a rule counts as missing after a refusal. A write that nobody needs any more is not tried again, and a scheduler must not
/// be unready for ever because of it; one that is needed is tried again sooner.
const MISSING_FOR: Duration = Duration::from_secs(30);
/// The rules that were found missing of late, and not found to be there since. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct MissingRights(Arc<Missing>);

#[derive(Debug, Default)]
struct Missing {
    /// Whether there is any: most of the time there is none, and every request asks.
    is_any: AtomicBool,
    /// Each with the time of its last refusal.
    rules: Mutex<BTreeMap<Rule, Instant>>,
}

/// A rule of a role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    group: String,
    /// With its subresource: `pods/binding`.
    resource: String,
    verb: &'static str,
}

impl MissingRights {
    /// Fails as long as a rule is missing, and says which.
    pub fn check(&self) -> Result<(), String> {
        let mut rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|_, refused| refused.elapsed() < MISSING_FOR);
        self.0.is_any.store(!rules.is_empty(), Ordering::Relaxed);
        if rules.is_empty() {
            return Ok(());
        }
        let words = rules.keys().map(Rule::to_string);
        Err(format!(
            "the API server forbids what the scheduler needs; grant it the rule {}",
            words.collect::<Vec<_>>().join(" and ")
        ))
    }

    /// The server has refused a request with 403, in these words; the rule that is missing, if it is known.
    pub(crate) fn refused(&self, method: &Method, path: &str, message: &str) -> Option<String> {
        let rule = Rule::of(method, path).filter(|rule| rule.is_missed_in(message))?;
        let words = rule.to_string();
        let mut rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if rules.len() < RULES_MAX || rules.contains_key(&rule) {
            rules.insert(rule, Instant::now());
            self.0.is_any.store(true, Ordering::Relaxed);
        }
        Some(words)
    }

    /// The server has carried out a request.
    pub(crate) fn allowed(&self, method: &Method, path: &str) {
        if !self.0.is_any.load(Ordering::Relaxed) {
            return;
        }
        let Some(rule) = Rule::of(method, path) else { return };
        let mut rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.remove(&rule);
        self.0.is_any.store(!rules.is_empty(), Ordering::Relaxed);
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { group, resource, verb } = self;
        write!(formatter, "{{apiGroups: [{group:?}], resources: [{resource:?}], verbs: [{verb:?}]}}")
    }
}

impl Rule {
    /// Whether the API server says in these words that a role lacks the rule. Requests are forbidden for other reasons as well, for which
    /// no rule helps: a namespace that ends, or a webhook that says in words of its own what one cannot do.
    fn is_missed_in(&self, message: &str) -> bool {
        let Rule { group, resource, verb } = self;
        let lacks = format!("\" cannot {verb} resource \"{resource}\" in API group \"{group}\"");
        message.split_once("User \"").is_some_and(|(_, after)| after.contains(&lacks))
    }

    /// The rule that allows a request; none for lists and watches, and for what is no resource.
    fn of(method: &Method, path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match &parts[..] {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let rest = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let (resource, name, subresource) = match rest {
            [resource] => (*resource, None, None),
            [resource, name] => (*resource, Some(*name), None),
            [resource, name, subresource] => (*resource, Some(*name), Some(*subresource)),
            _ => return None,
        };
        let verb = match (method, name) {
            (&Method::GET, Some(_)) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, Some(_)) => "delete",
            _ => return None,
        };
        let resource = match subresource {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => resource.to_owned(),
        };
        Some(Rule { group: group.to_owned(), resource, verb })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_needs_a_rule() {
        let rule = |method: Method, path: &str| {
            Rule::of(&method, path).map(|rule| format!("{} {} {:?}", rule.verb, rule.resource, rule.group))
        };
        for (method, path, expected) in [
            (Method::POST, "/api/v1/namespaces/shop/pods/a/binding", Some("create pods/binding \"\"")),
            (Method::PATCH, "/api/v1/namespaces/shop/pods/a/status", Some("patch pods/status \"\"")),
            (Method::DELETE, "/api/v1/namespaces/shop/pods/a", Some("delete pods \"\"")),
            (Method::GET, "/api/v1/namespaces/shop/pods/a?resourceVersion=", Some("get pods \"\"")),
            (Method::GET, "/api/v1/pods?watch=1", None),
            (Method::GET, "/api/v1/namespaces/shop", Some("get namespaces \"\"")),
            (
                Method::POST,
                "/apis/events.k8s.io/v1/namespaces/shop/events",
                Some("create events \"events.k8s.io\""),
            ),
            (Method::PATCH, "/api/v1/persistentvolumes/v", Some("patch persistentvolumes \"\"")),
            (Method::GET, "/version", None),
        ] {
            assert_eq!(rule(method, path).as_deref(), expected, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_is_missing_until_it_is_used_or_no_longer_asked_for() {
        let (missing, binding) = (MissingRights::default(), "/api/v1/namespaces/shop/pods/a/binding");
        missing.refused(&Method::POST, binding, "namespace shop is being terminated");
        missing.refused(
            &Method::POST,
            binding,
            "admission webhook \"hours\" denied the request: you cannot bind at night",
        );
        let other = "User \"s\" cannot create resource \"pods/eviction\" in API group \"\"";
        missing.refused(&Method::POST, binding, other);
        assert_eq!(missing.check(), Ok(()), "no rule helps there");
        let words = "User \"s\" cannot create resource \"pods/binding\" in API group \"\"";
        missing.refused(&Method::POST, binding, words);
        let error = missing.check().expect_err("it is missing");
        let rule = r#"{apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}"#;
        assert!(error.ends_with(rule), "{error}");
        missing.allowed(&Method::DELETE, "/api/v1/namespaces/shop/pods/a");
        assert!(missing.check().is_err(), "another right");
        missing.allowed(&Method::POST, "/api/v1/namespaces/other/pods/b/binding");
        assert_eq!(missing.check(), Ok(()));

        missing.refused(&Method::POST, binding, words);
        tokio::time::advance(MISSING_FOR / 2).await;
        missing.refused(&Method::POST, binding, words);
        tokio::time::advance(MISSING_FOR / 2).await;
        assert!(missing.check().is_err(), "it was asked for again");
        tokio::time::advance(MISSING_FOR / 2).await;
        assert_eq!(missing.check(), Ok(()), "nobody asks any more");
    }
}
