use tokio::time::{Instant, advance};

use crate::serve::cache::{Cache, GRANTED_ENTRIES_MAX as ENTRIES_MAX, TIME_TO_LIVE};

#[tokio::test(start_paused = true)]
async fn answers_are_forgotten() {
    let mut cache = Cache::new(ENTRIES_MAX);
    cache.put("a", 1, Instant::now());
    assert_eq!(cache.get(&"a", Instant::now()), Some(1));
    advance(TIME_TO_LIVE).await;
    assert_eq!(cache.get(&"a", Instant::now()), None);
}

#[tokio::test(start_paused = true)]
async fn there_are_never_too_many() {
    let mut cache = Cache::new(ENTRIES_MAX);
    for number in 0..3 * ENTRIES_MAX {
        cache.put(number, number, Instant::now());
        advance(TIME_TO_LIVE / 2_000).await;
        assert!(cache.len() <= ENTRIES_MAX);
    }
    let last = 3 * ENTRIES_MAX - 1;
    assert_eq!(cache.get(&last, Instant::now()), Some(last));
    assert_eq!(cache.get(&0, Instant::now()), None, "the oldest go first");
}
