//! What is told, and what is only counted.

use supercargo_framework::Subject;
use supercargo_model::Pod;

use super::*;

fn notice(pod: &str, reason: &'static str, note: &str) -> Notice {
    Notice {
        about: Subject::Pod(Arc::new(Pod { name: pod.into(), uid: pod.into(), ..Pod::default() })),
        reporter: "default-scheduler".into(),
        is_warning: reason != "Scheduled",
        reason: reason.into(),
        action: "Scheduling".into(),
        note: note.to_owned(),
        related: None,
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

/// How often it is said to have happened; 0 if nothing is told, 1 for the first time.
fn count(call: Option<EventCall>) -> u32 {
    call.map_or(0, |call| call.series.map_or(1, |series| series.count))
}

fn counts(calls: Vec<EventCall>) -> Vec<u32> {
    calls.into_iter().map(|call| count(Some(call))).collect()
}

#[test]
fn the_first_repetitions_are_told_and_the_rest_is_counted() {
    let mut recorder = Recorder::new("host");
    let failed = notice("a", "FailedScheduling", "no room");
    let told: Vec<_> = (0..5).map(|second| count(recorder.record(&failed, at(second)))).collect();
    assert_eq!(told, [1, 2, 3, 0, 0]);
    // Whatever differs is another event.
    for other in [
        notice("b", "FailedScheduling", "no room"),
        notice("a", "FailedScheduling", "no ports"),
        notice("a", "Other", "no room"),
        Notice { related: Some(Arc::default()), ..failed.clone() },
        Notice { reporter: "second".into(), ..failed.clone() },
        Notice { is_warning: false, ..failed.clone() },
    ] {
        assert_eq!(count(recorder.record(&other, at(5))), 1, "{other:?}");
    }
}

#[test]
fn an_event_that_is_over_is_told_to_its_end_and_forgotten() {
    let mut recorder = Recorder::new("host");
    let (often, twice, once) = (notice("a", "R", ""), notice("b", "R", ""), notice("c", "R", ""));
    for second in 0..4 {
        recorder.record(&often, at(second));
    }
    recorder.record(&twice, at(0));
    recorder.record(&twice, at(1));
    recorder.record(&once, at(0));
    assert!(counts(recorder.finish_old(at(300))).is_empty());
    // Only of the first does the server not know all.
    assert_eq!(counts(recorder.finish_old(at(364))), [4]);
    assert!(recorder.remembered.is_empty() && recorder.order.is_empty());
    assert_eq!(count(recorder.record(&often, at(365))), 1);
}

#[test]
fn of_an_event_that_goes_on_the_server_hears_from_time_to_time() {
    let mut recorder = Recorder::new("host");
    let failed = notice("a", "R", "");
    let mut told = Vec::new();
    for minute in 0..100 {
        recorder.record(&failed, at(60 * minute));
        told.extend(counts(recorder.finish_old(at(60 * minute + 1))));
    }
    assert_eq!(told, [33, 63, 93]);
    assert_eq!(counts(recorder.finish_all()), [100]);
    assert!(counts(recorder.finish_all()).is_empty());
}

#[test]
fn no_more_is_remembered_than_there_is_room_for() {
    let mut recorder = Recorder::new("host");
    for number in 0..4 {
        recorder.record(&notice("often", "R", ""), at(number));
    }
    for number in 0..2 * REMEMBERED_MAX {
        recorder.record(&notice(&number.to_string(), "R", ""), at(3));
        recorder.record(&notice(&number.to_string(), "Scheduled", ""), at(3));
    }
    assert_eq!((recorder.remembered.len(), recorder.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    assert_eq!(recorder.take_lost(), 4);
}

#[test]
fn no_two_events_have_the_same_name() {
    let mut recorder = Recorder::new("host");
    let mut names: Vec<_> = (0..100)
        .map(|number| {
            let call = recorder.record(&notice("a", "R", &number.to_string()), at(number / 50));
            call.expect("it is new").event.name.clone()
        })
        .collect();
    assert_eq!(&*names[0], "a.1");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 100);
}
