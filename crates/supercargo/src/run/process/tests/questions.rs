//! Somebody outside is asked about each pod, by a scheduler that runs; over a real socket, and therefore in real time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use supercargo_framework::{Args, LineSource, QuerySource, Question, Reads, fact_kind};
use supercargo_model::{Kind, KindId, Pod};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use super::reload::Reloaded;
use super::*;

/// How long a pod waits for the agent.
const DEADLINE: Duration = Duration::from_secs(2);

/// Which nodes an agent lets a pod go to.
#[derive(Debug, Deserialize)]
struct Permission(BTreeMap<Box<str>, bool>);

impl From<BTreeMap<Box<str>, bool>> for Permission {
    fn from(nodes: BTreeMap<Box<str>, bool>) -> Self {
        Permission(nodes)
    }
}

impl Kind for Permission {
    const ID: KindId = fact_kind("Permission", "permissions");
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct GuardedArgs {
    agent: String,
}

impl Args for GuardedArgs {}

/// Asks an agent; who gets no answer may go anywhere.
struct Guarded(GuardedArgs);

impl Plugin for Guarded {
    const NAME: &'static str = "Guarded";
    type Args = GuardedArgs;

    fn new(args: GuardedArgs) -> Self {
        Guarded(args)
    }

    fn extensions(points: Extensions<Self>) -> Extensions<Self> {
        points.filter()
    }

    fn reads(&self) -> Reads {
        let agent = self.0.agent.clone();
        let ask =
            move |pod: &Pod| -> Option<QuerySource> { Some(LineSource::new(&*agent, &*pod.name).into()) };
        let question = Question::per_node::<Permission, bool>("permission", ask, |answer, nodes| {
            for (node, may) in answer.json::<BTreeMap<String, bool>>()? {
                nodes.put(&node, may);
            }
            Ok(())
        });
        Reads::nothing().question(question.within(DEADLINE))
    }
}

impl Filter for Guarded {
    fn filter(&self, cycle: &Cycle<'_>, node: NodeRef<'_>) -> Status {
        let said = cycle.cluster().objects().get::<Permission>(&cycle.pod.namespace, &cycle.pod.name);
        match said.and_then(|said| said.0.get(&**node.name())) {
            Some(false) => Status::unschedulable("node(s) were not permitted"),
            _ => Status::success(),
        }
    }
}

/// Says yes, no, nonsense or nothing, as the pod is named.
async fn agent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it listens").to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut name = String::new();
                stream.read_line(&mut name).await.expect("a line comes");
                let answer = match name.trim() {
                    "no" => r#"{"n1": false}"#,
                    "mad" => "<html>",
                    "slow" => std::future::pending().await,
                    _ => r#"{"n1": true}"#,
                };
                stream.write_all(answer.as_bytes()).await.expect("somebody reads");
            });
        }
    });
    address
}

#[tokio::test]
async fn pods_go_by_what_is_answered_about_them_and_nobody_waits_for_others() {
    let mut registry = supercargo_plugins::registry();
    registry.register::<Guarded>().expect("nobody else has the name");
    let profile = format!(
        "{{schedulerName: default-scheduler, plugins: {{multiPoint: {{disabled: [{{name: '*'}}], enabled: \
         [{{name: PrioritySort}}, {{name: Guarded}}, {{name: DefaultBinder}}]}}}}, \
         pluginConfig: [{{name: Guarded, args: {{agent: '{}'}}}}]}}",
        agent().await
    );
    let reloaded = Reloaded::start_with(registry, &profile).await;
    let began = Instant::now();
    for name in ["slow", "no", "mad", "yes"] {
        reloaded.server.add_pod(name);
    }
    let bound = |name: &str| reloaded.server.bound().contains(&format!("{name} on n1"));
    while !(bound("mad") && bound("yes")) {
        assert!(began.elapsed() < DEADLINE, "they do not wait: {:?}", reloaded.server.bound());
        tokio::task::yield_now().await;
    }
    while !bound("slow") {
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", reloaded.server.bound());
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() >= DEADLINE, "{:?}", began.elapsed());
    assert!(!bound("no"));
    let counted = |text: &str, result: &str| {
        text.contains(&format!(
            "supercargo_question_answers_total{{question=\"permission\",result=\"{result}\"}} "
        ))
    };
    let text = loop {
        let text = reloaded.exposition.text();
        if ["success", "unreadable", "timeout"].iter().all(|result| counted(&text, result)) {
            break text;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{text}");
        tokio::task::yield_now().await;
    };
    assert!(!counted(&text, "unknown nodes"), "{text}");
}
