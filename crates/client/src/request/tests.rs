use super::*;
use crate::fake::{Answer, Fake, Writer};
use crate::logged::Logged;

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
async fn whoever_waits_because_the_server_asks_for_it_says_so() {
    let (logged, _logging) = Logged::begin();
    let fake = Fake::new(|_| Answer::status(429, "slow down").with_header("retry-after", "30"));
    let server = ApiServer::new(fake.service(), None);
    let binding = Call::post("/api/v1/namespaces/shop/pods/web/binding".to_owned(), b"{}".to_vec());
    let _ = timeout(Duration::from_secs(60), server.perform(&binding)).await;
    let text = logged.text();
    for expected in ["slow down", "pods/web/binding", "seconds=30", "code=429"] {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
    assert_eq!(text.matches("asks to wait").count(), 1, "once for each request: {text}");

    let began = Instant::now();
    let error = server.clone().without_asked_retries().perform(&binding).await.expect_err("once is enough");
    assert_eq!((began.elapsed(), error.retry_after().as_secs()), (Duration::ZERO, 30));
    assert_eq!(logged.text(), text, "nobody waits");
}

#[tokio::test(start_paused = true)]
async fn how_many_waited_besides_is_said_when_they_do_not_any_more() {
    let (logged, _logging) = Logged::begin();
    let fake = Fake::numbered(|number, _| match number {
        0..25 => Answer::status(429, "slow down").with_header("retry-after", "3"),
        _ => Answer::ok("{}"),
    });
    let server = ApiServer::new(fake.service(), None);
    let call = Call::get("/".to_owned());
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..25 {
        let (server, call) = (server.with_own_limit(), call.clone());
        requests.spawn(async move { server.perform(&call).await.is_ok() });
    }
    assert!(requests.join_all().await.into_iter().all(|is_done| is_done));
    assert_eq!(logged.text().matches("asks to wait").count(), 20);
    server.write_suppressed();
    assert!(!logged.text().contains("more like this"), "there may be more to come");
    sleep(Duration::from_secs(10)).await;
    server.write_suppressed();
    server.write_suppressed();
    let text = logged.text();
    assert_eq!(text.matches("5 more like this").count(), 1, "{text}");
}

/// A proxy that gives up waiting answers while the write is still on its way; so does a server whose storage is slow.
#[tokio::test(start_paused = true)]
async fn a_write_that_a_gateway_answered_for_may_yet_be_carried_out() {
    for (code, seconds) in
        [(201, 0), (404, 0), (409, 0), (429, 0), (408, 5), (500, 5), (502, 5), (503, 5), (504, 5), (524, 5)]
    {
        let fake = Fake::new(move |_| Answer::status(code, "an answer"));
        let gate = WriteGate::always_open();
        let server = ApiServer::new(fake.service(), None).with_gate(gate.clone());
        let result = server.perform(&Call::post("/".to_owned(), b"{}".to_vec())).await;
        assert_eq!(result.is_err_and(|error| error.may_come_yet()), seconds > 0, "{code}");
        let began = Instant::now();
        gate.quiet().await;
        assert_eq!(began.elapsed().as_secs(), seconds, "{code}");
    }
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
