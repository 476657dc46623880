//! Connections that die, and credentials that change, on real sockets.

mod certificates;
mod credentials;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::*;
use crate::Call;
use crate::connect::ConnectOptions;
use crate::pool::ABANDONED_AFTER;
use crate::request::ApiServer;

/// A server that answers every request with the number of its connection, until it is frozen: then the connections that there are
/// stay open and carry nothing, and new ones work.
struct Freezing {
    address: String,
    connections: Arc<AtomicUsize>,
    frozen: Arc<AtomicUsize>,
    is_refusing: Arc<AtomicBool>,
}

impl Freezing {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens").to_string();
        let (connections, frozen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let is_refusing = Arc::new(AtomicBool::new(false));
        let server = Freezing { address, connections, frozen, is_refusing };
        let (connections, frozen) = (server.connections.clone(), server.frozen.clone());
        let is_refusing = server.is_refusing.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let number = connections.fetch_add(1, Ordering::SeqCst) + 1;
                let (frozen, is_refusing) = (frozen.clone(), is_refusing.clone());
                tokio::spawn(async move {
                    let mut asked = vec![0; 4096];
                    while stream.read(&mut asked).await.is_ok_and(|length| length > 0) {
                        if number <= frozen.load(Ordering::SeqCst) {
                            continue;
                        }
                        let status =
                            if is_refusing.load(Ordering::SeqCst) { "401 Unauthorized" } else { "200 OK" };
                        let body = number.to_string();
                        let answer =
                            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        server
    }

    /// Freezes the connections that there are.
    fn freeze(&self) {
        self.frozen.store(self.connections.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    async fn client(&self) -> ApiServer {
        let options = ConnectOptions { master: Some(self.address.clone()), ..ConnectOptions::default() };
        ApiServer::connect(&options).await.expect("nothing is sent yet")
    }
}

async fn answer(server: &ApiServer) -> String {
    let answer = server.get("/").await.expect("it answers");
    String::from_utf8(answer.to_vec()).expect("a number")
}

#[tokio::test]
async fn after_a_silent_death_no_connection_of_that_time_is_used() {
    let frozen = Freezing::start().await;
    let server = frozen.client().await;
    // Two connections are idle.
    let _ = tokio::join!(answer(&server), answer(&server));
    let before = frozen.connections.load(Ordering::SeqCst);
    frozen.freeze();
    // As long as nothing was waited for, there is no reason to give up anything.
    assert!(timeout(Duration::from_millis(50), server.get("/")).await.is_err(), "it is frozen");
    // One caller that has waited for some time finds out for all.
    let patience = ABANDONED_AFTER + Duration::from_millis(100);
    assert!(timeout(patience, server.get("/")).await.is_err(), "it is frozen");
    let next = timeout(Duration::from_secs(10), answer(&server)).await.expect("on a new connection");
    assert!(next.parse::<usize>().expect("a number") > before, "{next} after {before}");

    // A watch that has found it out says so.
    frozen.freeze();
    server.give_up_connections();
    let last = timeout(Duration::from_secs(10), answer(&server)).await.expect("on a new connection");
    assert_ne!(last, next);
    assert_eq!(answer(&server).await, last, "which is used again");
}

#[tokio::test]
async fn an_error_names_the_server() {
    let options = ConnectOptions { master: Some("127.0.0.1:1".to_owned()), ..ConnectOptions::default() };
    let server = ApiServer::connect(&options).await.expect("nothing is sent yet");
    let error = server.get("/api/v1").await.expect_err("nobody listens there").to_string();
    assert!(error.starts_with("GET http://127.0.0.1:1/api/v1: "), "{error}");
}

#[tokio::test]
async fn a_plugin_is_run_again_after_its_token_was_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let runs = folder.path().join("runs");
    let token = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"secret"}}"#;
    let script = folder.path().join("plugin");
    std::fs::write(&script, format!("echo run >> {}\necho '{token}'\n", runs.display())).expect("written");
    let kubeconfig = folder.path().join("kubeconfig");
    let frozen = Freezing::start().await;
    let text = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": format!("http://{}", frozen.address) } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": [script],
            "interactiveMode": "Never",
        } } }],
    });
    std::fs::write(&kubeconfig, text.to_string()).expect("written");
    let options = ConnectOptions { kubeconfig: Some(kubeconfig), ..ConnectOptions::default() };
    let server = ApiServer::connect(&options).await.expect("the plugin works");
    let count = || std::fs::read_to_string(&runs).expect("the plugin has run").lines().count();
    answer(&server).await;
    let first = count();
    frozen.is_refusing.store(true, Ordering::SeqCst);
    let mut waited = 0;
    while count() == first && waited < 100 {
        let error = server.get("/").await.expect_err("the token is refused");
        assert_eq!(error.code(), Some(401));
        sleep(Duration::from_millis(20)).await;
        waited += 1;
    }
    assert!(count() > first, "the plugin is run again");
}

#[tokio::test]
async fn every_request_says_who_asks() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let master = format!("http://{}", listener.local_addr().expect("it listens"));
    let options = ConnectOptions { master: Some(master), ..ConnectOptions::default() };
    let server = ApiServer::connect(&options).await.expect("an address");
    let asking = tokio::spawn(async move { server.get("/version").await });
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut asked = vec![0; 4096];
    let length = stream.read(&mut asked).await.expect("a request");
    let asked = String::from_utf8_lossy(&asked[..length]).to_ascii_lowercase();
    assert!(asked.contains("\r\nuser-agent: supercargo/"), "{asked}");
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("sent");
    asking.await.expect("no panic").expect("an answer");
}

#[tokio::test]
async fn a_connection_is_used_again_once_its_answer_was_read_to_the_end() {
    let freezing = Freezing::start().await;
    let server = freezing.client().await;
    assert_eq!(answer(&server).await, "1");
    assert_eq!(answer(&server).await, "1", "its answer was read");
    let unread = server.open(&Call::get("/".to_owned())).await.expect("it answers");
    assert_eq!(answer(&server).await, "2", "the first one still has an answer to give");
    drop(unread);
    assert_eq!(answer(&server).await, "2", "what was left on the first one could be taken for an answer");
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_meanwhile_costs_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it listens").to_string();
    let (closed, mut is_closed) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            // Without a word about it, as a server that is stopped does.
            let _ = stream.shutdown().await;
            drop(stream);
            let _ = closed.send(()).await;
        }
    });
    let options = ConnectOptions { master: Some(address), ..ConnectOptions::default() };
    let server = ApiServer::connect(&options).await.expect("nothing is sent yet");
    for _ in 0..20 {
        assert_eq!(answer(&server).await, "ok");
        is_closed.recv().await.expect("the server goes on");
    }
}
