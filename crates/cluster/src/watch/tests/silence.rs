//! Connections that carry nothing, or nothing that is an event.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_connection_that_falls_silent_is_given_up_within_a_minute() {
    let mut trial = Trial::new(|_, _| None);
    let list = trial.stream().await;
    write(&list, [event("ADDED", "a", 1), bookmark(7, END), event("ADDED", "b", 8)]);
    trial.check(&["began", "put a", "listed", "put b"]).await;
    // Neither the stream of the list, nor the watch after it, are closed: they just carry nothing any more.
    for version in [8, 9] {
        let silent_since = Instant::now();
        let writer = trial.stream().await;
        let silence = silent_since.elapsed();
        assert!(silence <= Duration::from_secs(46), "{silence:?}");
        write(&writer, [event("MODIFIED", "b", version + 1)]);
        trial.check(&["put b"]).await;
        assert_eq!(trial.asked().last(), Some(&resumed(version)));
        tokio::spawn(async move { writer.closed().await });
    }
    drop(list);
    // A server that does not answer at all.
    let trial = Trial::new(|_, _| Some(Answer::never()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(trial.asked().len(), 3);
}

/// Keeps a stream open, with nothing in it.
pub(super) fn keep(writer: Writer) {
    tokio::spawn(async move { writer.closed().await });
}

/// Somebody between answers every watch, and passes on nothing.
#[tokio::test(start_paused = true)]
async fn watches_that_are_answered_and_carry_nothing_are_told_of() {
    let mut trial = Trial::new(|_, _| None);
    let began = Instant::now();
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "a", 1), bookmark(7, END)]);
    keep(writer);
    trial.check(&["began", "put a", "listed"]).await;
    keep(trial.stream().await);
    keep(trial.stream().await);
    let told = trial.told().await;
    assert!(told.starts_with("stalled: watches are answered and then carry nothing"), "{told}");
    let seconds = began.elapsed().as_secs();
    assert!((125..128).contains(&seconds), "after 35 s, 45 s and 45 s, and not {seconds} s");
    // That another one is answered is no sign of life.
    keep(trial.stream().await);
    let told = timeout(Duration::from_secs(50), trial.receiver.recv()).await;
    assert!(told.is_err(), "{told:?}");
    let writer = trial.stream().await;
    write(&writer, [event("ADDED", "b", 8)]);
    trial.check(&["put b", "resumed"]).await;
    // One alone is a connection that has died.
    keep(writer);
    keep(trial.stream().await);
    let writer = trial.stream().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    drop(writer);
    keep(trial.stream().await);
    let told = trial.told().await;
    assert!(told.starts_with("stalled: "), "{told}");
    // The server has ended a watch in good order.
    let writer = trial.stream().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    drop(writer);
    trial.check(&["resumed"]).await;
}

/// Somebody between keeps a connection busy, and never ends the watch.
#[tokio::test(start_paused = true)]
async fn a_watch_ends_some_time_after_the_server_should_have_ended_it() {
    let mut trial = Trial::new(|_, _| None);
    let writer = trial.stream().await;
    write(&writer, [bookmark(7, END)]);
    drop(writer);
    trial.check(&["began", "listed"]).await;
    for (line, ends_after) in [("x", 45..48), ("\n", 45..48), ("bookmark", 75..86)] {
        let writer = trial.stream().await;
        let line = if line == "bookmark" { bookmark(9, "") } else { Bytes::from(line) };
        tokio::spawn(async move {
            while writer.send(Ok(line.clone())).is_ok() {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
        });
        let (began, requests) = (Instant::now(), trial.asked().len());
        let next = async {
            while trial.asked().len() == requests {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        timeout(Duration::from_secs(120), next).await.expect("the watch ends");
        let seconds = began.elapsed().as_secs();
        assert!(ends_after.contains(&seconds), "{seconds} s");
    }
}
