//! Tokens that change, plugins that fail, and what people get to read about it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use crate::error::RequestError;
use crate::logged::Logged;
use crate::write_gate::{Tenure, WriteGate};

/// A server that answers 200 to requests with the token that it likes and 401 to all others, and keeps the heads of all.
struct Guarded {
    address: String,
    token: Arc<Mutex<String>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Guarded {
    async fn start(token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = format!("http://{}", listener.local_addr().expect("it listens"));
        let token = Arc::new(Mutex::new(token.to_owned()));
        let server = Guarded { address, token, heads: Arc::default() };
        let (token, heads) = (server.token.clone(), server.heads.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (token, heads) = (token.clone(), heads.clone());
                tokio::spawn(async move {
                    let mut asked = vec![0; 8192];
                    while let Ok(length) = stream.read(&mut asked).await
                        && length > 0
                    {
                        let head = String::from_utf8_lossy(&asked[..length]).into_owned();
                        let liked = format!("authorization: Bearer {}\r\n", token.lock().expect("free"));
                        let is_liked = head.contains(&liked);
                        heads.lock().expect("free").push(head);
                        let answer: &[u8] = match is_liked {
                            true => b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
                            false => b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 48\r\n\r\n{\"kind\":\"Status\",\"message\":\"Unauthorized\"      }",
                        };
                        if stream.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        server
    }

    fn likes(&self, token: &str) {
        token.clone_into(&mut self.token.lock().expect("free"));
    }

    fn last_head(&self) -> String {
        self.heads.lock().expect("free").last().cloned().expect("something was asked")
    }

    async fn client(&self, folder: &Path, user: &Value) -> ApiServer {
        let file = kubeconfig(folder, &self.address, user);
        let options = ConnectOptions { kubeconfig: Some(file), ..ConnectOptions::default() };
        ApiServer::connect(&options).await.expect("the kubeconfig is good")
    }
}

fn kubeconfig(folder: &Path, server: &str, user: &Value) -> PathBuf {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "prod",
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "contexts": [{ "name": "prod", "context": { "cluster": "c", "user": "alice", "namespace": "shop" } }],
        "users": [{ "name": "alice", "user": user }],
    });
    let file = folder.join("kubeconfig");
    std::fs::write(&file, text.to_string()).expect("written");
    file
}

/// A plugin that is a script, and notes down its runs.
struct Script {
    folder: tempfile::TempDir,
}

impl Script {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let runs = folder.path().join("runs");
        let text = format!("echo run >> {}\n{script}\n", runs.display());
        std::fs::write(folder.path().join("script"), text).expect("written");
        Script { folder }
    }

    fn saying(credential: &Value) -> Self {
        let script = Script::new("cat \"$(dirname \"$0\")/said\"");
        script.say(credential);
        script
    }

    fn say(&self, credential: &Value) {
        let said = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": credential,
        });
        std::fs::write(self.folder.path().join("said"), said.to_string()).expect("written");
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("runs")).unwrap_or_default().lines().count()
    }

    fn user(&self) -> Value {
        json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": [self.folder.path().join("script"), "--password", "secret-argument"],
            "env": [{ "name": "PLUGIN_SECRET", "value": "secret-environment" }],
            "installHint": "Install\nthe plugin.", "interactiveMode": "Never",
        } })
    }
}

#[tokio::test]
async fn a_plugin_is_run_once_for_all_who_ask() {
    let script = Script::saying(&json!({ "token": "first" }));
    let server = Guarded::start("first").await;
    let client = server.client(script.folder.path(), &script.user()).await;
    assert_eq!(script.runs(), 0, "nobody has asked yet");
    let lease = client.with_own_connections().expect("the credentials are good");
    let (clone, other) = (client.clone(), server.client(script.folder.path(), &script.user()).await);
    let (a, b, c, d) = tokio::join!(client.get("/a"), lease.get("/b"), clone.get("/c"), other.get("/d"));
    for answer in [a, b, c, d] {
        answer.expect("the token is good");
    }
    assert_eq!(script.runs(), 1);

    // A token that is refused is asked for again, and the request is made with the new one.
    server.likes("second");
    script.say(&json!({ "token": "second" }));
    client.get("/").await.expect("the new token is good");
    lease.get("/").await.expect("for all");
    assert_eq!(script.runs(), 2);
    // One that goes on being refused is not asked for with every request.
    server.likes("third");
    for _ in 0..5 {
        assert_eq!(client.get("/").await.expect_err("refused").code(), Some(401));
    }
    assert_eq!(script.runs(), 2);
}

#[tokio::test]
async fn what_has_expired_is_asked_for_again() {
    let script = Script::saying(&json!({ "token": "first", "expirationTimestamp": "2001-01-01T00:00:00Z" }));
    let server = Guarded::start("first").await;
    let client = server.client(script.folder.path(), &script.user()).await;
    client.get("/").await.expect("the server does not mind");
    assert_eq!(script.runs(), 1);
    let Authorization::Plugin(plugin) = &client.connections().expect("real ones").target().authorization
    else {
        panic!("there is a plugin");
    };
    plugin.rest();
    server.likes("second");
    script.say(&json!({ "token": "second", "expirationTimestamp": "2999-01-01T00:00:00Z" }));
    client.get("/").await.expect("the new token is good");
    plugin.rest();
    client.get("/").await.expect("and stays so");
    assert_eq!(script.runs(), 2);
}

#[tokio::test]
async fn a_write_that_had_to_log_in_for_too_long_is_not_sent() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let may_end = folder.path().join("may-end");
    let said = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": { "token": "t" },
    });
    let wait = format!("while [ ! -e {} ]; do sleep 0.01; done", may_end.display());
    let script = Script::new(&format!("{wait}; echo '{said}'"));
    let server = Guarded::start("t").await;
    let (tenure, gate) = WriteGate::new(Tenure::Always, Clock::system());
    let client = server.client(script.folder.path(), &script.user()).await.with_gate(gate.clone());
    let call = Call::post("/".to_owned(), b"{}".to_vec());
    let losing_the_lease = async {
        while script.runs() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        tenure.send_replace(Tenure::Nothing);
        std::fs::write(&may_end, "").expect("written");
    };
    let (done, ()) = tokio::join!(client.perform(&call), losing_the_lease);
    let error = done.expect_err("the lease is lost");
    assert!(matches!(error, RequestError::NotLeading { .. }) && error.is_not_sent(), "{error}");
    assert!(server.heads.lock().expect("free").is_empty(), "nothing was sent");
    gate.quiet().await;
    // The connection that was made for it is good.
    client.get("/").await.expect("whoever reads may");
    tenure.send_replace(Tenure::Always);
    client.perform(&call).await.expect("the lease is there again");
}

#[tokio::test]
async fn a_plugin_that_fails_gives_nothing_away() {
    let (logged, _logging) = Logged::begin();
    let secrets = "echo secret-output; echo secret-error >&2; echo $PLUGIN_SECRET >&2";
    let credential = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":"#;
    for (script, expected) in [
        (format!("{secrets}; exit 3"), "failed with exit status: 3"),
        (secrets.to_owned(), "prints something else than an ExecCredential"),
        (format!("echo '{credential}{{\"token\":[\"secret-output\"]}}}}'"), "prints something else"),
        (
            format!("echo '{credential}{{\"clientKeyData\":\"secret-output\"}}}}'"),
            "without its key, or a key",
        ),
        (format!("echo '{credential}{{}}}}'"), "neither a token nor a client certificate"),
        (format!("echo '{credential}{{\"token\":\"secret-output\\u0001\"}}}}'"), "no header can have"),
        (
            format!("echo '{credential}{{\"token\":\"a\",\"expirationTimestamp\":\"secret-output\"}}}}'"),
            "no time of RFC 3339",
        ),
        (r#"echo '{"kind":"secret-output"}'"#.to_owned(), "another kind than ExecCredential"),
        ("while :; do echo secret-output; done".to_owned(), "prints more than 1048576 bytes"),
        (
            format!(
                "echo '{credential}{{\"clientCertificateData\":\"secret-output\",\"clientKeyData\":\"secret-output\"}}}}'"
            ),
            "client-certificate: there is no certificate in it",
        ),
    ] {
        let script = Script::new(&script);
        let server = Guarded::start("any").await;
        let client = server.client(script.folder.path(), &script.user()).await;
        let lease = client.with_own_connections().expect("nothing was asked");
        let (first, second) = tokio::join!(client.get("/a"), lease.get("/b"));
        for answer in [first, second, client.get("/c").await] {
            let error = answer.expect_err("there are no credentials");
            assert!(matches!(error, RequestError::NotLoggedIn { .. }) && error.is_not_sent(), "{error}");
            let text = error.to_string();
            let is_named = text.starts_with(&format!("cannot log in to {}", server.address));
            assert!(is_named && text.contains(expected), "{text} has no {expected}");
            assert!(!format!("{text}{error:?}{client:?}").contains("secret"), "{text}");
        }
        assert_eq!(script.runs(), 1, "{expected}");
        assert!(server.heads.lock().expect("free").is_empty(), "nothing was sent");
    }
    assert!(!logged.text().contains("secret"), "{}", logged.text());
}

#[tokio::test]
async fn the_hint_of_the_kubeconfig_is_repeated() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let server = Guarded::start("any").await;
    for (command, expected) in [
        ("no-such-plugin-anywhere", "the credential plugin no-such-plugin-anywhere is not there"),
        ("./not-there", "the credential plugin ./not-there is not there"),
        ("false", "the credential plugin false failed with exit status: 1"),
    ] {
        let user = json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1", "command": command,
            "installHint": "Get it\n  from IT.",
        } });
        let error =
            server.client(folder.path(), &user).await.get("/").await.expect_err("no plugin").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.ends_with("the kubeconfig says: Get it from IT."), "{error}");
    }
}

#[tokio::test]
async fn a_plugin_is_found_beside_its_kubeconfig_and_told_about_the_cluster() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let script = folder.path().join("plugin.sh");
    let said =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#;
    let told = folder.path().join("told");
    let text = format!("#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO\" > {}\necho '{said}'\n", told.display());
    std::fs::write(&script, text).expect("written");
    let mut permissions = std::fs::metadata(&script).expect("it is there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&script, permissions).expect("it is ours");
    let server = Guarded::start("t").await;
    let user = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh",
        "interactiveMode": "Never", "provideClusterInfo": true,
    } });
    let client = server.client(folder.path(), &user).await;
    client.get("/").await.expect("the token is good");
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(told).expect("it was told")).expect("as JSON");
    assert_eq!(told["kind"], "ExecCredential");
    assert_eq!(told["apiVersion"], "client.authentication.k8s.io/v1");
    assert_eq!(told["spec"], json!({ "interactive": false, "cluster": { "server": server.address } }));
}

#[tokio::test]
async fn a_token_file_is_read_again_every_minute_and_when_it_was_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("token");
    std::fs::write(&file, "first\n").expect("written");
    let server = Guarded::start("first").await;
    // Relative to the kubeconfig.
    let client = server.client(folder.path(), &json!({ "tokenFile": "token" })).await;
    client.get("/").await.expect("the token is good");
    std::fs::write(&file, "second\n").expect("written");
    client.get("/").await.expect("the first is still good");
    let connections = client.connections().expect("real ones");
    connections.state().token_read = Instant::now().checked_sub(TOKEN_INTERVAL).expect("time has passed");
    server.likes("second");
    client.get("/").await.expect("a minute later the second is used");
    assert_eq!(server.heads.lock().expect("free").len(), 3, "and nothing was refused");
    server.likes("third");
    std::fs::write(&file, "third\n").expect("written");
    client.get("/").await.expect("one that was refused is read again at once");
    assert_eq!(server.heads.lock().expect("free").len(), 5);
    std::fs::remove_file(&file).expect("it is there");
    connections.state().token_read = Instant::now().checked_sub(TOKEN_INTERVAL).expect("time has passed");
    client.get("/").await.expect("a file that is gone leaves the old token");
}

#[tokio::test]
async fn who_is_not_known_is_told_to_log_in_again() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let server = Guarded::start("good").await;
    let client = server.client(folder.path(), &json!({ "token": "expired" })).await;
    let error = client.get("/api/v1/namespaces").await.expect_err("the token has expired");
    let file = folder.path().join("kubeconfig");
    assert_eq!(
        error.to_string(),
        format!(
            "{} does not accept the user \"alice\" of the context \"prod\" in {}: Unauthorized; log in again, or renew the \
             credentials in the kubeconfig",
            server.address,
            file.display()
        )
    );
    assert_eq!(client.default_namespace(), "shop");
    let options = ConnectOptions { master: Some(server.address.clone()), ..ConnectOptions::default() };
    let error = ApiServer::connect(&options).await.expect("an address").get("/").await.expect_err("unknown");
    assert!(error.to_string().ends_with("name a kubeconfig with credentials for it"), "{error}");
}

#[tokio::test]
async fn a_user_may_be_taken_for_another() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let server = Guarded::start("t").await;
    let user = json!({
        "token": "t", "as": "bob", "as-uid": "7", "as-groups": ["dev", "ops"],
        "as-user-extra": { "Example.com/Reason": ["a b"] },
    });
    server.client(folder.path(), &user).await.get("/").await.expect("the token is good");
    let head = server.last_head().to_ascii_lowercase();
    for line in [
        "impersonate-user: bob",
        "impersonate-uid: 7",
        "impersonate-group: dev",
        "impersonate-group: ops",
        "impersonate-extra-example.com%2freason: a b",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} is not in {head}");
    }
}

#[tokio::test]
async fn a_server_may_be_below_a_path() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let server = Guarded::start("t").await;
    let file =
        kubeconfig(folder.path(), &format!("{}/k8s/clusters/c-1/", server.address), &json!({ "token": "t" }));
    let options = ConnectOptions { kubeconfig: Some(file), ..ConnectOptions::default() };
    let client = ApiServer::connect(&options).await.expect("the kubeconfig is good");
    client.get("/api/v1/pods?limit=1").await.expect("the token is good");
    assert!(server.last_head().starts_with("GET /k8s/clusters/c-1/api/v1/pods?limit=1 HTTP/1.1\r\n"));
}

/// For commands that people type.
#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let master = format!("http://{}", listener.local_addr().expect("it listens"));
    let patience = Duration::from_secs(1);
    let options = ConnectOptions { master: Some(master.clone()), patience, ..ConnectOptions::default() };
    let server = ApiServer::connect(&options).await.expect("an address");
    let error = server.get("/api/v1/pods").await.expect_err("nobody answers").to_string();
    assert_eq!(error, format!("GET {master}/api/v1/pods: no answer within 1 s"));
}
