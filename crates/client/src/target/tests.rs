use serde_json::json;

use super::*;

/// What a user of a kubeconfig and a cluster make; an error says what is wrong.
fn target(cluster: &Value, user: &Value) -> Result<Target, String> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let text = json!({
        "current-context": "c",
        "clusters": [{ "name": "c", "cluster": cluster }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": user }],
    });
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, text.to_string()).expect("written");
    let kubeconfig = Kubeconfig::from_file(&file).map_err(|fault| fault.reason)?;
    Target::of_context(&kubeconfig, None).map_err(|fault| fault.reason)
}

fn header(user: &Value) -> Option<String> {
    match target(&json!({ "server": "https://here" }), user)
        .unwrap_or_else(|error| panic!("{error}"))
        .authorization
    {
        Authorization::Fixed(header) => header.to_str().map(str::to_owned).ok(),
        _ => None,
    }
}

/// A token that ends then.
fn token(expires: &Value) -> String {
    let claims = BASE64_URL_SAFE_NO_PAD.encode(json!({ "exp": expires }).to_string());
    format!("e30.{claims}.signature")
}

#[test]
fn a_user_has_a_token_or_a_password() {
    assert_eq!(header(&json!({ "token": "t" })).as_deref(), Some("Bearer t"));
    assert_eq!(header(&json!({ "username": "u", "password": "p" })).as_deref(), Some("Basic dTpw"));
    assert_eq!(header(&json!({})), None);
    // A token goes before a plugin, as in client-go.
    let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Never" });
    assert_eq!(header(&json!({ "token": "t", "exec": exec })).as_deref(), Some("Bearer t"));
    let valid = token(&json!(32_503_680_000_i64));
    let provider = json!({ "auth-provider": { "name": "oidc", "config": { "id-token": valid } } });
    assert_eq!(header(&provider), Some(format!("Bearer {valid}")));
}

#[test]
fn what_cannot_be_used_is_said() {
    let exec = |more: Value| {
        let mut exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Never" });
        for (name, value) in more.as_object().expect("fields") {
            exec[name] = value.clone();
        }
        json!({ "exec": exec })
    };
    let oidc = |config: Value| json!({ "auth-provider": { "name": "oidc", "config": config } });
    for (user, expected) in [
        (json!({ "token": "t", "username": "u" }), "a token and a password exclude each other"),
        (json!({ "client-certificate": "c" }), "client-certificate has no client-key"),
        (json!({ "client-key-data": "aGk=" }), "client-key has no client-certificate"),
        (json!({ "client-key-data": "?", "client-certificate": "c" }), "client-key-data: it is not base64"),
        (json!({ "token": "a\nb" }), "token: it has characters that no header can have"),
        (json!({ "tokenFile": "not-there" }), "the token in "),
        (json!({ "as-groups": ["g"] }), "need as"),
        (exec(json!({ "apiVersion": "client.authentication.k8s.io/v1alpha1" })), "update the plugin"),
        (exec(json!({ "interactiveMode": "" })), "interactiveMode of x is missing"),
        (exec(json!({ "interactiveMode": "Sometimes" })), "not Never, IfAvailable or Always"),
        (exec(json!({ "command": "" })), "exec has no command"),
        (
            json!({ "auth-provider": { "name": "gcp" } }),
            "the auth-provider \"gcp\" is not supported; use a credential plugin",
        ),
        (oidc(json!({})), "has no id-token"),
        (oidc(json!({ "id-token": token(&json!(1_000_000_000)) })), "has expired"),
        (oidc(json!({ "id-token": "secret" })), "does not say when it ends"),
    ] {
        let Err(reason) = target(&json!({ "server": "https://here" }), &user) else {
            panic!("{user} is good")
        };
        assert!(reason.starts_with("the user \"u\": ") && reason.contains(expected), "{reason} for {user}");
        assert!(!reason.contains("secret"), "{reason}");
    }
    for (cluster, expected) in [
        (json!({}), "server is missing"),
        (json!({ "server": "ftp://here" }), "has to begin with http:// or https://"),
        (json!({ "server": "https://here", "proxy-url": "a b" }), "proxy-url is no address"),
        (json!({ "server": "https://here", "certificate-authority-data": "?" }), "it is not base64"),
        (
            json!({ "server": "https://here", "certificate-authority": "x", "insecure-skip-tls-verify": true }),
            "exclude each other",
        ),
    ] {
        let Err(reason) = target(&cluster, &json!({})) else { panic!("{cluster} is good") };
        assert!(reason.starts_with("the cluster \"c\": ") && reason.contains(expected), "{reason}");
    }
}

#[test]
fn a_plugin_is_told_about_the_cluster_if_the_kubeconfig_says_so() {
    let words: ClusterWords = serde_json::from_value(json!({
        "server": "https://here", "tls-server-name": "name", "certificate-authority-data": "UEVN", "proxy-url": "http://p",
        "disable-compression": true,
        "extensions": [{ "name": "other" }, { "name": EXEC_EXTENSION, "extension": { "audience": 1 } }],
    }))
    .expect("a cluster");
    let cluster = Entry { words, file: "kubeconfig".into() };
    let exec = ExecWords { provide_cluster_info: true, ..ExecWords::default() };
    assert_eq!(
        cluster_information(&exec, &cluster),
        Ok(Some(json!({
            "server": "https://here", "tls-server-name": "name", "certificate-authority-data": "UEVN",
            "proxy-url": "http://p", "disable-compression": true, "config": { "audience": 1 },
        })))
    );
    assert_eq!(cluster_information(&ExecWords::default(), &cluster), Ok(None));
}

#[test]
fn a_pod_has_what_it_needs_beside_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let environment = Environment {
        service_host: Some("fd00::1".to_owned()),
        service_port: Some("443".to_owned()),
        service_account: folder.path().to_owned(),
        ..Environment::default()
    };
    let Err(reason) = Target::of_pod(&Environment::default()) else { panic!("this is no pod") };
    assert!(reason.contains("KUBERNETES_SERVICE_HOST"), "{reason}");
    let Err(reason) = Target::of_pod(&environment) else { panic!("there is no token") };
    assert!(reason.starts_with("the token in "), "{reason}");
    for (name, text) in [("token", "t\n"), ("ca.crt", "PEM"), ("namespace", "shop\n")] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let target = Target::of_pod(&environment).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(target.server, "https://[fd00::1]:443/");
    assert_eq!((&*target.namespace, target.who.clone()), ("shop", Who::Pod));
    assert!(target.has_files() && matches!(target.authorization, Authorization::File { token: None, .. }));
}
