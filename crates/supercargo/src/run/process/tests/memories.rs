//! What plugins save: across kills, takeovers and an orderly end, and whatever becomes of the object that it is in.

use serde_json::{Value, json};
use supercargo_sdk::prelude::{
    Actions, Acts, Change, ClusterEvent, Context, Memory, Observe, PostBind, Reads,
};
use supercargo_sdk::serde::{Deserialize, Serialize};

use super::*;

const ENTRY: &str = "memory.Counter";
const CONFIG_MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";

/// Counts the pods that it was told to be bound.
struct Counter;

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(crate = "supercargo_sdk::serde")]
struct Count {
    pods: u32,
    /// Changes that it heard of, as leader or not.
    heard: u32,
}

impl Memory for Count {
    const NAME: &'static str = "Counter";
    const SAVED: Option<u32> = Some(1);
}

impl Plugin for Counter {
    const NAME: &'static str = "Counter";
    type Args = NoArgs;

    fn new(_: NoArgs) -> Self {
        Counter
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.post_bind().observe().remembers::<Count>()
    }

    fn reads(&self) -> Reads {
        Reads::nothing()
    }
}

impl PostBind for Counter {
    fn post_bind(&self, _: &mut Cycle<'_>, acts: &mut Acts<'_>, _: NodeRef<'_>) {
        acts.memory::<Count>().pods += 1;
    }
}

impl Observe for Counter {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::pod(Actions::ADD)]
    }

    fn observed(&self, _: &Context<'_>, _: &Change<'_>, acts: &mut Acts<'_>) {
        acts.memory::<Count>().heard += 1;
    }
}

fn start(identity: &str, server: &Server) -> Replica {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let profile = "profiles: [{plugins: {multiPoint: {enabled: [{name: Counter}]}}}]\n";
    let files = Files::from_fn(move |_| Ok(format!("{head}{profile}").into_bytes()));
    let plugins = Plugins::with(Plugins::add::<Counter>).expect("the name is free");
    Replica::named(identity, server, &["--config=/config.yaml"], &files, virtual_clock(), plugins)
}

/// How many pods were counted, as it was last saved.
fn counted(server: &Server) -> Option<u64> {
    let text = server.saved()[ENTRY].as_str()?.to_owned();
    serde_json::from_str::<Value>(&text).expect("JSON")["value"]["pods"].as_u64()
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_goes_on_with_what_the_leader_wrote_last() {
    let server = Server::with_pods(&["a"]);
    let first = start("first", &server);
    seconds(5).await;
    let second = start("second", &server);
    seconds(15).await;
    server.add_pod("b");
    seconds(15).await;
    assert_eq!((counted(&server), server.holder().as_str()), (Some(2), "first"));
    let asked = server.memories_asked();
    assert!(asked.iter().filter(|asked| asked.method != "GET").count() <= 4, "{asked:?}");

    // As kill -9 does.
    first.task.abort();
    seconds(30).await;
    assert_eq!(server.holder(), "second");
    server.add_pod("c");
    seconds(11).await;
    assert_eq!((counted(&server), server.bound().len()), (Some(3), 3));

    // In good order it is written at once.
    server.add_pod("d");
    seconds(1).await;
    server.add_pod("e");
    seconds(1).await;
    second.signal(Given::Terminate).await;
    assert_eq!(second.ended().await, Ended::Stopped);
    assert_eq!(counted(&server), Some(5));
    let writes = server.memories_asked().len();
    seconds(60).await;
    assert_eq!(server.memories_asked().len(), writes, "nobody is left who writes");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_change_is_not_written_again() {
    let server = Server::with_pods(&["a"]);
    let replica = start(NAME, &server);
    seconds(60).await;
    assert_eq!(counted(&server), Some(1));
    let asked = server.memories_asked().len();
    seconds(600).await;
    assert_eq!(server.memories_asked().len(), asked);
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
    assert_eq!(server.memories_asked().len(), asked);
}

#[tokio::test(start_paused = true)]
async fn who_leads_overwrites_whatever_somebody_else_wrote_and_keeps_what_is_not_its_own() {
    let server = Server::with_pods(&["a"]);
    let replica = start(NAME, &server);
    seconds(15).await;
    assert_eq!(counted(&server), Some(1));
    server.put_memories(&json!({ "format": "1", "memory.Counter": "nonsense" }));
    server.add_pod("b");
    seconds(15).await;
    assert_eq!(counted(&server), Some(2));
    let last = server.memories_asked().pop().expect("it was written").json();
    assert_eq!(last["metadata"]["labels"]["by"], "somebody");
    replica.task.abort();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_dropped_and_written_anew() {
    for data in [
        json!({ "format": "1", "memory.Counter": "nonsense" }),
        json!({ "format": "9", "memory.Counter": "{}" }),
        json!({ "format": "1", "memory.Counter": r#"{"version":7,"value":{"pods":40,"heard":1}}"# }),
        json!({ "format": 1, "memory.Counter": {} }),
        json!("nonsense"),
        Value::Null,
    ] {
        let server = Server::with_pods(&["a"]);
        server.put_memories(&data);
        let replica = start(NAME, &server);
        seconds(15).await;
        assert_eq!((counted(&server), server.bound().len()), (Some(1), 1), "{data}");
        replica.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_or_refuses_holds_nobody_up_for_long() {
    let server = Server::with_pods(&["a"]);
    server.put_memories(
        &json!({ "format": "1", "memory.Counter": r#"{"version":1,"value":{"pods":40,"heard":1}}"# }),
    );
    server.silence(CONFIG_MAPS);
    let replica = start(NAME, &server);
    seconds(4).await;
    assert_eq!(server.bound(), [""; 0], "it may yet be read");
    seconds(4).await;
    assert_eq!(server.bound(), ["a on n1"]);
    replica.task.abort();

    let server = Server::with_pods(&["a"]);
    server.forbid(Some("configmaps"));
    let replica = start(NAME, &server);
    seconds(2).await;
    assert_eq!(server.bound(), ["a on n1"], "who may not read it need not wait");
    seconds(60).await;
    // The right is given, and what was learnt meanwhile is saved.
    server.forbid(None);
    seconds(11).await;
    assert_eq!(counted(&server), Some(1));
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_for_the_object_if_no_plugin_saves() {
    let server = Server::with_pods(&["a"]);
    let replica = Replica::start(&server, &[], &Files::system());
    seconds(30).await;
    replica.signal(Given::Terminate).await;
    assert_eq!(replica.ended().await, Ended::Stopped);
    assert_eq!(server.bound().len(), 1);
    assert_eq!(server.memories_asked().len(), 0);
}
