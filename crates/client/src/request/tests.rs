use super::*;
use crate::fake::{Answer, Fake, Writer};

#[tokio::test(start_paused = true)]
async fn requests_wait_for_their_turn() {
    let fake = Fake::new(|_| Answer::ok("{}"));
    let server = ApiServer::new(fake.service(), RateLimit::new(10.0, 2));
    let started = Instant::now();
    for _ in 0..7 {
        server.perform(&Call::get("/".to_owned())).await.expect("the server is kind");
    }
    assert_eq!(started.elapsed().as_millis(), 500);
    server.with_own_limit().perform(&Call::get("/".to_owned())).await.expect("the server is kind");
    assert_eq!(started.elapsed().as_millis(), 500);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_patience_gets_it() {
    let fake = Fake::numbered(|number, _| match number {
        0 | 1 => Answer::status(429, "slow down").with_header("retry-after", "3"),
        _ => Answer::ok("{}"),
    });
    let server = ApiServer::new(fake.service(), None);
    let started = Instant::now();
    server.perform(&Call::post("/".to_owned(), b"{}".to_vec())).await.expect("it answers in the end");
    assert_eq!(started.elapsed().as_secs(), 6);

    let fake = Fake::new(|_| Answer::status(429, "slow down").with_header("retry-after", "1"));
    let server = ApiServer::new(fake.service(), None);
    let error = server.perform(&Call::get("/".to_owned())).await.expect_err("it never answers");
    assert_eq!((error.code(), error.to_string().as_str()), (Some(429), "slow down"));
    assert_eq!(fake.requests().len(), 11);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_told_in_the_words_of_the_server() {
    let fake = Fake::new(|_| Answer::plain(404, "404 page not found\n"));
    let server = ApiServer::new(fake.service(), None);
    let error = server.fetch(&Call::get("/apis/x".to_owned())).await.expect_err("nothing is there");
    assert_eq!(error.to_string(), "the server answered 404 Not Found: 404 page not found");
    let agent = fake.requests()[0].header("user-agent");
    assert!(agent.starts_with("supercargo/") && agent.ends_with(" scheduler"), "{agent}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let fake = Fake::new(|_| Answer::never());
    let server = ApiServer::new(fake.service(), None);
    let started = Instant::now();
    let error = server.fetch(&Call::get("/".to_owned())).await.expect_err("there is no answer");
    assert!(matches!(error, RequestError::TimedOut { .. }), "{error}");
    assert_eq!(started.elapsed(), SILENCE_MAX);

    // An answer that stops in its middle, and one that comes slowly.
    let writers: Mutex<Vec<Writer>> = Mutex::default();
    let fake = Fake::new(move |asked| {
        let (writer, answer) = Answer::streamed();
        let _ = writer.send(Ok("{".into()));
        if asked.path == "/slow" {
            tokio::spawn(async move {
                sleep(SILENCE_MAX - Duration::from_secs(1)).await;
                let _ = writer.send(Ok("\"kind\":".into()));
                sleep(SILENCE_MAX - Duration::from_secs(1)).await;
                let _ = writer.send(Ok("1}".into()));
            });
        } else {
            writers.lock().expect("no test panics here").push(writer);
        }
        answer
    });
    let server = ApiServer::new(fake.service(), None);
    let started = Instant::now();
    let error = server.fetch(&Call::get("/".to_owned())).await.expect_err("the answer has no end");
    assert!(matches!(error, RequestError::TimedOut { .. }), "{error}");
    assert_eq!(started.elapsed(), SILENCE_MAX);
    let slow = server.fetch(&Call::get("/slow".to_owned())).await.expect("it comes bit by bit");
    assert_eq!(slow, r#"{"kind":1}"#);
}
