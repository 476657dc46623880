//! Watches for profiles that come and go.

use std::sync::Mutex;
use std::time::Duration;

use supercargo_framework::Reads;
use supercargo_model::Kind;
use supercargo_model::kinds::{Namespace, Service};
use tokio::time::timeout;

use super::*;
use crate::tasks::Supervisor;
use supercargo_client::fake::{Answer, Asked, Fake, Writer};

/// A server whose kinds have one object each; what `refuse` refuses is answered with 403.
fn fake(refuse: impl Fn(&Asked) -> bool + Send + Sync + 'static) -> Fake {
    let open: Mutex<Vec<Writer>> = Mutex::default();
    Fake::new(move |asked| {
        if asked.path == "/api/v1" {
            let resources = r#"[{"name":"services"},{"name":"namespaces"},{"name":"pods"},{"name":"nodes"}]"#;
            return Answer::ok(&format!(r#"{{"kind":"APIResourceList","resources":{resources}}}"#));
        }
        if refuse(asked) {
            return Answer::status(403, "forbidden");
        }
        let (writer, answer) = Answer::streamed();
        if asked.query.contains("sendInitialEvents") {
            let object =
                r#"{"metadata":{"name":"one","uid":"uid","namespace":"default","resourceVersion":"1"}}"#;
            let end =
                r#"{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"2"}}"#;
            let lines = format!(
                "{{\"type\":\"ADDED\",\"object\":{object}}}\n{{\"type\":\"BOOKMARK\",\"object\":{end}}}\n"
            );
            let _ = writer.send(Ok(lines.into()));
        }
        open.lock().expect("no test panics here").push(writer);
        answer
    })
}

fn server() -> ApiServer {
    ApiServer::new(fake(|_| false).service(), None)
}

fn profile(name: &str, reads: Reads) -> Profile {
    let mut profile = Profile::new(name);
    profile.reads = Some(reads);
    profile
}

/// Which kinds are listed next, until nothing is told for a while, and whether what has vanished is told too.
async fn listed(
    watches: &mut Watches,
    receiver: &mut mpsc::Receiver<WatchEvent>,
) -> BTreeSet<(&'static str, bool)> {
    let mut listed = BTreeSet::new();
    while let Ok(Some(event)) = timeout(Duration::from_secs(4), receiver.recv()).await {
        if watches.note(&event)
            && let Watched::Listed(everything) = event.watched
        {
            listed.insert((event.kind.plural, everything.is_some()));
        }
    }
    listed
}

fn is_only(gone: &[Everything], kind: KindId) -> bool {
    matches!(gone, [Everything::Objects(gone, keys)] if *gone == kind && keys.is_empty())
}

#[tokio::test(start_paused = true)]
async fn other_profiles_are_watched_for_with_as_little_as_possible() {
    let plain = || profile("a", Reads::nothing());
    let supervisor = Supervisor::new();
    let (mut watches, mut receiver) = Watches::start(server(), 1, &[plain()], false, supervisor.tasks());
    assert!(watches.progress().check().is_err());
    let told = listed(&mut watches, &mut receiver).await;
    assert_eq!(told, BTreeSet::from([("nodes", false), ("pods", false)]));
    assert_eq!(watches.progress().check(), Ok(()));

    // Nothing that matters to watches.
    assert!(watches.prepare(&[plain()], false).await.is_empty());
    assert!(watches.missing().is_empty());
    assert!(watches.commit(&[plain()]).await.is_empty());
    assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::new());

    // A new kind is listed while the others go on. A new scheduler's pods are found by listing all pods afterwards.
    let both = [plain(), profile("b", Reads::nothing().kind::<Namespace>())];
    assert!(watches.prepare(&both, false).await.is_empty());
    assert_eq!(watches.missing(), ["waiting for the first list of namespaces"]);
    assert_eq!(watches.progress().check(), Ok(()), "what runs is complete");
    let told = listed(&mut watches, &mut receiver).await;
    assert_eq!(told, BTreeSet::from([("namespaces", false)]));
    assert!(watches.missing().is_empty());
    assert!(watches.commit(&both).await.is_empty());
    assert_eq!(watches.progress().check(), Ok(()));
    assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::from([("pods", true)]));

    // A kind that nobody reads any more is forgotten, but only with the profiles that read it; extenders want texts.
    assert!(watches.prepare(&[plain()], true).await.is_empty());
    assert_eq!(watches.missing().len(), 2, "{:?}", watches.missing());
    assert_eq!(watches.progress().check(), Ok(()), "what runs is complete");
    let told = listed(&mut watches, &mut receiver).await;
    assert_eq!(told, BTreeSet::from([("nodes", true), ("pods", true)]));
    assert!(watches.missing().is_empty());
    assert!(is_only(&watches.commit(&[plain()]).await, Namespace::ID));

    // Texts that nobody wants any more do no harm, and are there when they are wanted again.
    for has_extenders in [false, true] {
        assert!(watches.prepare(&[plain()], has_extenders).await.is_empty());
        assert!(watches.missing().is_empty());
        assert!(watches.commit(&[plain()]).await.is_empty());
    }
    assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_watched_is_listed_again_for_another_struct() {
    /// Namespaces again, as another plugin reads them.
    #[derive(Debug, serde::Deserialize)]
    struct Finalizers {}

    impl Kind for Finalizers {
        const ID: KindId = Namespace::ID;
    }

    let one = || [profile("a", Reads::nothing().kind::<Namespace>())];
    let other = || [profile("a", Reads::nothing().kind::<Finalizers>())];
    let both = || [profile("a", Reads::nothing().kind::<Namespace>().kind::<Finalizers>())];
    let supervisor = Supervisor::new();
    let (mut watches, mut receiver) = Watches::start(server(), 1, &one(), false, supervisor.tasks());
    listed(&mut watches, &mut receiver).await;
    watches.prepare(&both(), false).await;
    assert_eq!(
        watches.missing(),
        ["waiting for a list of namespaces with all the fields that plugins or extenders read"]
    );
    assert_eq!(watches.progress().check(), Ok(()), "what runs is complete");
    // They do not come after all: what was asked for does no harm, and is there when they come again.
    assert!(watches.abandon().await.is_empty());
    assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::from([("namespaces", true)]));
    for profiles in [both(), one(), both()] {
        watches.prepare(&profiles, false).await;
        assert!(watches.missing().is_empty());
        assert!(watches.commit(&profiles).await.is_empty());
        assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::new());
    }

    // Those that run can read every object while others are prepared, which do not read the same.
    let (mut watches, mut receiver) = Watches::start(server(), 1, &one(), false, supervisor.tasks());
    listed(&mut watches, &mut receiver).await;
    watches.prepare(&other(), false).await;
    let mut structs = BTreeSet::new();
    while let Ok(Some(event)) = timeout(Duration::from_secs(4), receiver.recv()).await {
        if let Watched::Put(Decoded::Object(object)) = event.watched {
            structs.insert((object.get::<Namespace>().is_some(), object.get::<Finalizers>().is_some()));
        }
    }
    assert_eq!(structs, BTreeSet::from([(true, true)]));
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_cannot_be_finished_leaves_no_trace() {
    let plain = || profile("a", Reads::nothing());
    let reading = || [profile("a", Reads::nothing().kind::<Namespace>())];
    let fake = fake(|asked| asked.path.ends_with("namespaces"));
    let supervisor = Supervisor::new();
    let (mut watches, mut receiver) =
        Watches::start(ApiServer::new(fake.service(), None), 1, &[plain()], false, supervisor.tasks());
    listed(&mut watches, &mut receiver).await;
    watches.prepare(&reading(), false).await;
    assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::new());
    assert!(!watches.missing().is_empty());
    let missing = watches.missing().join("");
    assert!(missing.contains("namespaces") && missing.contains("grant the scheduler the rule"), "{missing}");
    assert_eq!(watches.progress().check(), Ok(()), "what runs is complete");

    // Another one takes its place: what is needed by both goes on.
    let other = [profile("a", Reads::nothing().kind::<Namespace>().kind::<Service>())];
    assert!(watches.prepare(&other, false).await.is_empty());
    assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::from([("services", false)]));
    assert!(is_only(&watches.prepare(&reading(), false).await, Service::ID));
    assert!(is_only(&watches.abandon().await, Namespace::ID));
    assert!(watches.missing().is_empty(), "nothing is waited for any more");
    assert_eq!(watches.progress().check(), Ok(()));
    let asked = fake.requests().len();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(fake.requests().len(), asked, "nothing is asked for any more");
}

#[tokio::test(start_paused = true)]
async fn what_an_ended_watch_has_told_is_not_taken_for_its_successors() {
    let plain = || profile("a", Reads::nothing());
    let reading = || [profile("a", Reads::nothing().kind::<Namespace>())];
    let supervisor = Supervisor::new();
    let (mut watches, mut receiver) = Watches::start(server(), 1, &[plain()], false, supervisor.tasks());
    listed(&mut watches, &mut receiver).await;
    watches.prepare(&reading(), false).await;
    // The list is complete, but was not looked at.
    tokio::time::sleep(Duration::from_secs(1)).await;
    watches.abandon().await;
    watches.prepare(&reading(), false).await;
    let mut count = 0;
    while let Ok(event) = receiver.try_recv() {
        assert!(!watches.note(&event), "{event:?}");
        count += 1;
    }
    assert_eq!(count, 3, "began, put and listed");
    assert!(!watches.missing().is_empty());
    assert_eq!(listed(&mut watches, &mut receiver).await, BTreeSet::from([("namespaces", false)]));
    assert!(watches.missing().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_listed_again_goes_on() {
    let plain = || profile("a", Reads::nothing());
    let lists = Mutex::new(0);
    let fake = fake(move |asked| {
        let mut lists = lists.lock().expect("no test panics here");
        let is_list_of_pods = asked.path == "/api/v1/pods" && asked.query.contains("sendInitialEvents");
        *lists += u32::from(is_list_of_pods);
        is_list_of_pods && (2..=3).contains(&*lists)
    });
    let supervisor = Supervisor::new();
    let (mut watches, mut receiver) =
        Watches::start(ApiServer::new(fake.service(), None), 1, &[plain()], false, supervisor.tasks());
    listed(&mut watches, &mut receiver).await;
    // The list with all fields fails twice.
    watches.prepare(&[plain()], true).await;
    assert_eq!(watches.missing().len(), 2);
    let told = timeout(Duration::from_secs(30), async {
        while !watches.missing().is_empty() {
            let event = receiver.recv().await.expect("the watches go on");
            watches.note(&event);
            assert!(watches.progress().is_complete(), "what runs goes on");
        }
    });
    told.await.expect("the list is tried again");
    let pods: Vec<String> =
        fake.requests().iter().filter(|asked| asked.path == "/api/v1/pods").map(Asked::line).collect();
    let manners: Vec<&str> = pods
        .iter()
        .map(|line| {
            if line.contains("sendInitialEvents") {
                "list"
            } else if line.contains("&resourceVersion=2") {
                "resume"
            } else {
                line
            }
        })
        .collect();
    assert_eq!(manners, ["list", "list", "resume", "list", "resume", "list"]);
}
