//! What stands in a kubeconfig, and what a credential plugin says. There are secrets in it, so that nothing here can be printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Clone, Default, Deserialize)]
#[serde(default, expecting = "a kubeconfig")]
pub(crate) struct KubeconfigWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) clusters: Vec<ClusterEntryWords>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) contexts: Vec<ContextEntryWords>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) users: Vec<UserEntryWords>,
    #[serde(rename = "current-context", deserialize_with = "or_default")]
    pub(crate) current_context: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, expecting = "a cluster with its name")]
pub(crate) struct ClusterEntryWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) cluster: ClusterWords,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, expecting = "a context with its name")]
pub(crate) struct ContextEntryWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) context: ContextWords,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, expecting = "a user with its name")]
pub(crate) struct UserEntryWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) user: UserWords,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "the fields of a cluster")]
pub(crate) struct ClusterWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) server: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) tls_server_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) insecure_skip_tls_verify: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) certificate_authority: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) certificate_authority_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) proxy_url: String,
    /// Answers are never asked to be compressed: the server is near, and processors are scarcer than the network. A plugin may
    /// want to know.
    #[serde(deserialize_with = "or_default")]
    pub(crate) disable_compression: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) extensions: Vec<ExtensionWords>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, expecting = "an extension with its name")]
pub(crate) struct ExtensionWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    pub(crate) extension: Value,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, expecting = "the fields of a context")]
pub(crate) struct ContextWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) cluster: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) user: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) namespace: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "the fields of a user")]
pub(crate) struct UserWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) client_certificate: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) client_certificate_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) client_key: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) client_key_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) token: String,
    #[serde(rename = "tokenFile", deserialize_with = "or_default")]
    pub(crate) token_file: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) username: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) password: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) r#as: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) as_uid: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) as_groups: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) as_user_extra: BTreeMap<String, Vec<String>>,
    pub(crate) auth_provider: Option<AuthProviderWords>,
    pub(crate) exec: Option<ExecWords>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, expecting = "an auth-provider")]
pub(crate) struct AuthProviderWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) config: BTreeMap<String, String>,
}

/// A credential plugin.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "a credential plugin")]
pub(crate) struct ExecWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) api_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) command: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) args: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) env: Vec<VariableWords>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) install_hint: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) provide_cluster_info: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) interactive_mode: String,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, expecting = "a variable with its value")]
pub(crate) struct VariableWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) value: String,
}

/// What a credential plugin prints.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExecCredentialWords {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) status: Option<ExecStatusWords>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExecStatusWords {
    #[serde(deserialize_with = "or_default")]
    pub(crate) token: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) client_certificate_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) client_key_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) expiration_timestamp: String,
}

/// `null` is what Go writes for a list without entries.
fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
