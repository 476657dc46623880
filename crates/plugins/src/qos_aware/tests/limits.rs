//! What is kept has limits, and nothing is lost in the sums.

use std::sync::Arc;

use supercargo_framework::SAVED_MEMORY_BYTES_MAX;
use supercargo_model::{Pod, Timestamp};
use supercargo_testkit::{cluster, pod};

use crate::qos_aware::books::{Books, CONTROLLERS_MAX, OwnerId, SavedBooks};
use crate::qos_aware::metric::Measured;

fn nobody(_: &OwnerId) -> Option<u32> {
    None
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(1_000_000 + seconds)
}

fn made(name: &str, controller: &str) -> Arc<Pod> {
    let made = pod(name).annotation("controller", controller).annotation("slo", "0.5");
    cluster().pod(made.with(serde_json::json!({ "metadata": { "creationTimestamp": at(0) } })))
}

#[test]
fn controllers_without_pods_are_forgotten_and_their_times_are_not() {
    let mut books = Books::default();
    for number in 0..CONTROLLERS_MAX + 10 {
        let pod = made("once", &format!("c{number}"));
        books.arrive(&pod, &nobody, at(0));
        books.start(&pod.uid, Some(at(1)), at(2), at(2));
        books.end(&pod.uid, at(number as i64 + 3));
    }
    assert_eq!(books.now().controllers.len(), CONTROLLERS_MAX);
    let (forgotten, times) = &books.forgotten;
    assert_eq!(*forgotten, 10, "those that ended first");
    assert!(
        books.now().controllers.iter().all(|(id, _)| !(0..10).any(|gone| *id.name == *format!("c{gone}")))
    );
    let ran: i64 = (0..10).map(|number| number + 1).sum();
    assert_eq!(times.running(at(0)), i128::from(ran) * 1_000_000_000);
    assert_eq!((times.waiting(at(0)), times.incarnations()), (10_000_000_000, 10));
    // Those that have pods are kept, however many they are.
    for number in 0..CONTROLLERS_MAX + 10 {
        books.arrive(&made(&format!("p{number}"), &format!("d{number}")), &nobody, at(5000));
    }
    assert_eq!(books.now().controllers.len(), CONTROLLERS_MAX + 10);
}

#[test]
fn slots_at_the_end_that_nobody_is_in_are_dropped_and_first_ones_are_taken_first() {
    let mut books = Books::default();
    let pods: Vec<Arc<Pod>> = (0..3000).map(|number| made(&format!("p{number}"), "web")).collect();
    for pod in &pods {
        books.arrive(pod, &nobody, at(0));
    }
    for pod in &pods[1..] {
        books.end(&pod.uid, at(7));
    }
    let controller = books.now().controllers.first().expect("there is one").1;
    assert_eq!(controller.slots.len(), 1001, "the first, which has a pod, and a thousand more");
    assert_eq!(Measured::of(controller, None, at(7)).waiting, 3000 * 7_000_000_000, "no time is lost");
    let next = made("next", "web");
    books.arrive(&next, &nobody, at(8));
    assert_eq!(books.now().pods.get(&next.uid).map(|pod| pod.slot), Some(1));
}

#[test]
fn what_is_saved_fits_and_what_does_not_fit_comes_again_with_its_times() {
    let mut books = Books::default();
    let pods: Vec<Arc<Pod>> = (0..8_000)
        .map(|number| {
            let uid = format!("{number:08}-0000-0000-0000-000000000000");
            let mut pod = (*made(&format!("p{number}"), &format!("c{}", number % 7))).clone();
            (pod.uid, pod.node_name) = (uid.into(), Some("n1".into()));
            Arc::new(pod)
        })
        .collect();
    for pod in &pods {
        books.arrive(pod, &nobody, at(0));
        books.start(&pod.uid, None, at(4), at(4));
    }
    let saved = SavedBooks::of(&books);
    assert_eq!(saved.left_out.0, 0);
    assert!((1..8_000).contains(&saved.left_out.1), "{:?}", saved.left_out);
    let text = serde_json::to_string(&books).expect("can be written");
    assert!(text.len() < SAVED_MEMORY_BYTES_MAX, "{}", text.len());
    let mut restored: Books = serde_json::from_str(&text).expect("can be read");
    // The API server says since when those run that were left out; here it says nothing, so they run from now on.
    let (came, gone) = restored.reconcile(&pods, &nobody, at(4));
    assert_eq!((came.len(), gone.len()), (saved.left_out.1, 0));
    for (id, controller) in books.now().controllers.iter() {
        let again = restored.now().controllers.get(id).expect("it is there again");
        let (before, after) = (Measured::of(controller, None, at(9)), Measured::of(again, None, at(9)));
        assert_eq!((before.effective, before.waiting), (after.effective, after.waiting));
        assert_eq!(controller.times.incarnations(), again.times.incarnations());
        assert_eq!((controller.running, controller.replicas), (again.running, again.replicas));
    }
}

#[test]
fn text_that_is_not_what_it_was_breaks_nothing() {
    for text in [
        "{}",
        "[]",
        "null",
        r#"{"controllers":[],"pods":[["u",7,0,1,null,null]],"forgotten":[0,[0,0,0,0,0]]}"#,
    ] {
        if let Ok(books) = serde_json::from_str::<Books>(text) {
            assert_eq!(books.now().pods.len(), 0, "{text}");
        }
    }
}
