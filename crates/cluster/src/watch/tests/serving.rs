//! Kinds that the server does not serve, or serves and does not list.

use super::silence::keep;
use super::*;

/// Why a watch is stalled whose kind may be gone.
const DOUBTED: &str = "stalled: discovery says that the kind is not served, and is asked again";

/// What discovery says of the core group.
fn resources(names: &[&str]) -> Answer {
    let names: Vec<String> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
    Answer::ok(&format!(
        r#"{{"kind":"APIResourceList","groupVersion":"v1","resources":[{}]}}"#,
        names.join(",")
    ))
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_looked_for() {
    let is_served = Arc::new(AtomicBool::new(false));
    let served = is_served.clone();
    let started = Instant::now();
    let mut trial = Trial::new(move |_, asked| match (served.load(Ordering::SeqCst), &*asked.path) {
        (true, _) => None,
        (false, "/api/v1") => Some(resources(&["pods"])),
        (false, _) => Some(Answer::plain(404, "404 page not found")),
    });
    trial.check(&["unserved"]).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(trial.asked().len(), 6, "three times the kind, and discovery");
    is_served.store(true, Ordering::SeqCst);
    let writer = trial.stream().await;
    assert_eq!(started.elapsed().as_secs(), 60);
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
    trial.check(&["served", "began", "put a", "listed"]).await;
    // Its definition is removed, and the objects with it. Discovery is believed only if it says so for some time: a server that
    // has just started does not know all of its kinds.
    is_served.store(false, Ordering::SeqCst);
    let removed = Instant::now();
    drop(writer);
    trial.check(&[DOUBTED]).await;
    is_served.store(true, Ordering::SeqCst);
    let writer = trial.stream().await;
    trial.check(&["resumed"]).await;
    assert_eq!(trial.asked().last(), Some(&resumed(7)));
    assert_eq!(removed.elapsed().as_secs(), 6);
    is_served.store(false, Ordering::SeqCst);
    let removed = Instant::now();
    write(&writer, [event("DELETED", "a", 8)]);
    drop(writer);
    trial.check(&["removed a", DOUBTED, "unserved"]).await;
    assert_eq!(removed.elapsed().as_secs(), 15);
}

/// Who serves a watch serves the kind, also if watches carry nothing, so that they are no sign of life.
#[tokio::test(start_paused = true)]
async fn a_doubt_ends_when_the_kind_is_served_though_nothing_comes() {
    let is_served = Arc::new(AtomicBool::new(true));
    let served = is_served.clone();
    let mut trial = Trial::new(move |_, asked| match (served.load(Ordering::SeqCst), &*asked.path) {
        (true, _) => None,
        (false, "/api/v1") => Some(resources(&["pods"])),
        (false, _) => Some(Answer::plain(404, "404 page not found")),
    });
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
    keep(writer);
    trial.check(&["began", "put a", "listed"]).await;
    keep(trial.stream().await);
    is_served.store(false, Ordering::SeqCst);
    trial.check(&[DOUBTED]).await;
    is_served.store(true, Ordering::SeqCst);
    keep(trial.stream().await);
    is_served.store(false, Ordering::SeqCst);
    let told = trial.told().await;
    assert!(told.starts_with("stalled: watches are answered and then carry nothing"), "{told}");
    trial.check(&[DOUBTED]).await;
    let doubted = Instant::now();
    trial.check(&["unserved"]).await;
    assert_eq!(doubted.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_discovery_knows_is_not_emptied_by_an_answer_without_it() {
    type Discovery = fn() -> Answer;
    let discoveries: [Discovery; 4] = [
        || resources(&["namespaces"]),
        || Answer::ok("<html>Not here</html>"),
        || Answer::plain(404, "404 page not found"),
        || Answer::status(503, "not now"),
    ];
    for (code, discovery) in
        [403, 404].into_iter().flat_map(|code| discoveries.map(|discovery| (code, discovery)))
    {
        let mut trial = Trial::new(move |number, asked| match number {
            0 => None,
            _ if asked.path == "/api/v1" => Some(discovery()),
            1 => Some(Answer::plain(code, "not here")),
            _ => None,
        });
        let writer = trial.stream().await;
        write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
        drop(writer);
        trial.check(&["began", "put a", "listed"]).await;
        assert!(trial.told().await.starts_with("stalled: the server answered"));
        let writer = trial.stream().await;
        trial.check(&["resumed"]).await;
        write(&writer, [event("ADDED", "b", 8)]);
        trial.check(&["put b"]).await;
        assert_eq!(trial.asked().last(), Some(&resumed(7)), "nothing is listed again");
    }
}

#[tokio::test(start_paused = true)]
async fn of_pods_and_nodes_not_even_discovery_says_that_they_are_not_served() {
    for code in [403, 404] {
        let request = WatchRequest { kind: PODS, field_selector: None, is_known: false };
        let mut trial = Trial::of(request, move |number, _| match number {
            0 => None,
            1..6 => Some(Answer::plain(code, "not here")),
            _ => None,
        });
        let writer = trial.stream().await;
        write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
        drop(writer);
        trial.check(&["began", "put a", "listed"]).await;
        assert!(trial.told().await.starts_with("stalled: "));
        // The fifth refusal makes it list everything again; nothing was told to be gone before that.
        let writer = trial.stream().await;
        write(&writer, [event("ADDED", "a", 1), bookmark(9, END)]);
        trial.check(&["began", "put a", r#"listed {"uid-a"}"#]).await;
        assert!(
            trial.asked().iter().all(|line| line.starts_with("GET /api/v1/pods?")),
            "{:?}",
            trial.asked()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_neither_exists_nor_may_be_watched_does_not_exist() {
    let mut trial = Trial::new(move |_, asked| match &*asked.path {
        "/api/v1" => Some(resources(&["pods"])),
        _ => Some(Answer::status(403, "forbidden")),
    });
    trial.check(&["unserved"]).await;
}

/// A definition that is installed with objects, and may not be listed or cannot be.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_and_cannot_be_listed_is_not_taken_for_empty() {
    for code in [403, 500] {
        let is_served = Arc::new(AtomicBool::new(false));
        let served = is_served.clone();
        let mut trial = Trial::new(move |_, asked| match (served.load(Ordering::SeqCst), &*asked.path) {
            (true, "/api/v1") => Some(resources(&["namespaces"])),
            (false, "/api/v1") => Some(resources(&["pods"])),
            (true, _) => Some(Answer::status(code, "not to be listed")),
            (false, _) => Some(Answer::plain(404, "404 page not found")),
        });
        trial.check(&["unserved"]).await;
        is_served.store(true, Ordering::SeqCst);
        trial.check(&["served"]).await;
        let told = trial.told().await;
        assert!(told.starts_with("stalled: not to be listed"), "{told}");
        // Nothing of it was told, so nobody has to be doubted.
        is_served.store(false, Ordering::SeqCst);
        trial.check(&["unserved"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_that_takes_its_time_keeps_nobody_from_knowing_why() {
    let (forbidden, rule) =
        ("forbidden; grant the scheduler the rule", r#"verbs: ["get", "list", "watch"]}"#);
    type Discovery = fn() -> Answer;
    let busy: Discovery = || Answer::status(429, "too many requests").with_header("retry-after", "30");
    for (discovery, seconds, reasons) in [
        (
            busy,
            [0, 0],
            ["forbidden; discovery does not say whether the kind is served: too many requests"; 2],
        ),
        (
            Answer::never,
            [1, 10],
            [forbidden, "forbidden; discovery does not say whether the kind is served: no answer"],
        ),
    ] {
        let mut trial = Trial::new(move |_, asked| match &*asked.path {
            "/api/v1" => Some(discovery()),
            _ => Some(Answer::status(403, "forbidden")),
        });
        let began = Instant::now();
        for (seconds, reason) in
            seconds.into_iter().zip(reasons).take(1 + usize::from(seconds[0] != seconds[1]))
        {
            let told = trial.told().await;
            assert!(told.contains(reason) && told.ends_with(rule), "{told}");
            assert_eq!(began.elapsed().as_secs(), seconds, "{told}");
        }
        // The next rounds come to the same, and do not take back what discovery said.
        let told = timeout(Duration::from_secs(300), trial.receiver.recv()).await;
        assert!(told.is_err(), "{told:?}");
        assert!(trial.asked().len() > 6, "{:?}", trial.asked());
    }
}

/// What a list in pages has to wait for is told.
#[tokio::test(start_paused = true)]
async fn a_list_that_has_to_wait_is_told_of() {
    let mut trial = Trial::new(|number, _| match number {
        0 => Some(Answer::status(422, "no streams")),
        1 => Some(Answer::status(429, "slow down").with_header("retry-after", "30")),
        2 => Some(page(&["a"], 0, "next")),
        // Whoever begins anew because of this never comes to an end.
        3 => Some(Answer::status(429, "slow down").with_header("retry-after", "1")),
        4 => Some(page(&["b"], 9, "")),
        _ => None,
    });
    let began = Instant::now();
    trial.check(&["stalled: slow down"]).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    trial.check(&["began", "put a", "put b", "listed"]).await;
    assert_eq!(began.elapsed().as_secs(), 31);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_watch_is_told_what_to_grant_and_tries_again() {
    let mut trial = Trial::new(move |number, asked| match number {
        _ if asked.path == "/api/v1" => Some(resources(&["namespaces", "namespaces/status"])),
        0 | 2 => Some(Answer::status(403, "namespaces is forbidden: User \"x\" cannot watch")),
        _ => None,
    });
    let told = trial.told().await;
    assert!(told.contains("User \"x\" cannot watch"), "{told}");
    assert!(
        told.contains(r#"{apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"]}"#),
        "{told}"
    );
    let writer = trial.stream().await;
    write(&writer, [bookmark(7, END)]);
    trial.check(&["began", "listed"]).await;
}
