//! Whether a server serves a kind.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use supercargo_model::KindId;

use supercargo_api::path;
use supercargo_client::{ApiServer, Call, RequestError};

/// What a server has of a version of a group. Every field has to be there: an answer without them is no discovery.
#[derive(Deserialize)]
struct ResourcesWords {
    kind: String,
    // A field that is `null` is read as none; with this, one that is missing is not.
    #[serde(deserialize_with = "Option::deserialize")]
    resources: Option<Vec<NameWords>>,
}

/// All groups of a server.
#[derive(Deserialize)]
struct GroupsWords {
    kind: String,
    #[serde(deserialize_with = "Option::deserialize")]
    groups: Option<Vec<GroupWords>>,
}

#[derive(Deserialize)]
struct GroupWords {
    name: String,
    versions: Vec<VersionWords>,
}

#[derive(Deserialize)]
struct VersionWords {
    version: String,
}

#[derive(Deserialize)]
struct NameWords {
    name: String,
}

/// Whether a server serves a kind. Every user may ask for that, whatever else a user may do.
///
/// "No" is answered only if discovery says so in a well-formed answer: a kind that is not served is taken for empty, so that a
/// proxy which answers 404, or an error page which comes with 200, must not be mistaken for it. Everything else is an error.
pub(crate) async fn is_served(server: &ApiServer, kind: KindId) -> Result<bool, RequestError> {
    let path = path::of_version(kind);
    match read::<ResourcesWords>(server, &path, |words| words.kind == "APIResourceList").await {
        Ok(words) => Ok(words.resources.into_iter().flatten().any(|resource| resource.name == kind.plural)),
        // The core group is always there. The version of another group may not be, if the list of groups confirms it.
        Err(error) if error.code() == Some(404) && !kind.group.is_empty() => {
            let is_list = |words: &GroupsWords| words.kind == "APIGroupList";
            let groups = read(server, "/apis", is_list).await?.groups.into_iter().flatten();
            let mut versions =
                groups.filter(|group| group.name == kind.group).flat_map(|group| group.versions);
            if versions.any(|version| version.version == kind.version) {
                return Err(error);
            }
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

async fn read<T: DeserializeOwned>(
    server: &ApiServer,
    path: &str,
    is_expected: impl Fn(&T) -> bool,
) -> Result<T, RequestError> {
    let call = Call::get(path.to_owned());
    let answer = server.fetch(&call).await?;
    match serde_json::from_slice(&answer) {
        Ok(words) if is_expected(&words) => Ok(words),
        Ok(_) => Err(server.broken(&call, "the answer is not what discovery answers".to_owned())),
        Err(error) => Err(server.broken(&call, format!("the answer is not what discovery answers: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_client::fake::{Answer, Fake};

    const LEASES: KindId =
        KindId { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };

    #[tokio::test(start_paused = true)]
    async fn only_a_well_formed_answer_says_that_a_kind_is_not_there() {
        const NONE: &str = "404";
        let resources =
            |names: &str| format!(r#"{{"kind":"APIResourceList","groupVersion":"x","resources":{names}}}"#);
        let groups = |name: &str, version: &str| {
            format!(
                r#"{{"kind":"APIGroupList","groups":[{{"name":"apps","versions":[{{"version":"v1"}}]}},
                    {{"name":"{name}","versions":[{{"version":"{version}"}}]}}]}}"#
            )
        };
        for (version_answer, groups_answer, expected) in [
            (resources(r#"[{"name":"leases"},{"name":"others"}]"#), NONE.to_owned(), Some(true)),
            (resources(r#"[{"name":"leases/status"}]"#), NONE.to_owned(), Some(false)),
            (resources("null"), NONE.to_owned(), Some(false)),
            // Something that is not discovery.
            ("<html>welcome</html>".to_owned(), NONE.to_owned(), None),
            ("{}".to_owned(), NONE.to_owned(), None),
            (r#"{"kind":"APIResourceList"}"#.to_owned(), NONE.to_owned(), None),
            (r#"{"kind":"LeaseList","resources":[]}"#.to_owned(), NONE.to_owned(), None),
            // A group or version that is not there, and one that is said to be there all the same.
            (NONE.to_owned(), groups("other", "v1"), Some(false)),
            (NONE.to_owned(), groups("coordination.k8s.io", "v1beta1"), Some(false)),
            (NONE.to_owned(), groups("coordination.k8s.io", "v1"), None),
            (NONE.to_owned(), "{}".to_owned(), None),
            (NONE.to_owned(), NONE.to_owned(), None),
        ] {
            let case = format!("{version_answer} {groups_answer}");
            let fake = Fake::new(move |asked| {
                let text = if asked.path == "/apis" { &groups_answer } else { &version_answer };
                if text == NONE { Answer::plain(404, "404 page not found") } else { Answer::ok(text) }
            });
            let served = is_served(&ApiServer::new(fake.service(), None), LEASES).await;
            assert_eq!(served.ok(), expected, "{case}");
        }
        let fake = Fake::new(|_| Answer::plain(404, "404 page not found"));
        let served = is_served(&ApiServer::new(fake.service(), None), crate::watch::PODS).await;
        assert!(served.is_err(), "the core group is always there");
    }
}
