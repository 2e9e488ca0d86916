//! Sequences, batches and arrivals: laws S3, S4 and S5.

use std::collections::HashMap;

use futures::future::{join_all, try_join_all};
use rheo_core::{ErrorKind, Event, FetchOptions, GroupOptions, NewEvent, Rheo};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, eventually, failure, numbered, polled_at_most, sequences};

case_table! {
    "append.sequences_are_contiguous_with_32_appenders" [S3] => contiguous_with_32_appenders;
    "append.partitions_count_for_themselves" [S3] needs [Partitions] => partitions_count_apart;
    "append.dropped_futures_leave_no_gap" [S3 E2] => dropped_futures_leave_no_gap;
    "append.failed_appends_leave_no_gap" [S3] => failed_appends_leave_no_gap;
    "append.a_crash_leaves_no_gap" [S3] needs [Durable] runs alone
        => a_crash_leaves_no_gap;
    "append.a_batch_keeps_its_order" [S4] => a_batch_keeps_its_order;
    "append.a_batch_is_contiguous_in_each_partition" [S4] needs [Partitions]
        => a_batch_is_contiguous_in_each_partition;
    "append.a_batch_stays_together_among_others" [S4] => a_batch_stays_together_among_others;
    "append.a_bad_event_refuses_the_whole_batch" [S4] => a_bad_event_refuses_the_whole_batch;
    "append.a_dropped_batch_is_whole_or_absent" [S4 E2] => a_dropped_batch_is_whole_or_absent;
    "append.an_empty_batch_writes_nothing" [S4] => an_empty_batch_writes_nothing;
    "append.a_reader_sees_no_late_arrival" [S5] => a_reader_sees_no_late_arrival;
    "append.a_group_sees_no_late_arrival" [S5] => a_group_sees_no_late_arrival;
}

async fn all_of(rheo: &Rheo, partition: u32) -> Vec<Event> {
    rheo.read("s", partition, 0, 10_000).await.expect("it reads")
}

fn told(events: &[Event]) -> Vec<u64> {
    events.iter().map(Event::sequence).collect()
}

async fn assert_contiguous(rheo: &Rheo, partition: u32, count: u64) {
    let expected: Vec<u64> = (1..=count).collect();
    assert_eq!(told(&all_of(rheo, partition).await), expected, "in partition {partition}");
}

/// 32 appenders on several clients, one partition: every number once, no error.
async fn contiguous_with_32_appenders(trial: Trial) {
    let clients = [trial.rheo().await, trial.rheo().await, trial.rheo().await];
    clients[0].create_stream("s", 1).await.expect("the stream is new");
    let appender = |n: usize| {
        let rheo = clients[n % clients.len()].clone();
        tokio::spawn(async move {
            let mut stored = Vec::new();
            for event in numbered(8) {
                stored.push(rheo.append("s", event).await.expect("it is appended"));
            }
            stored
        })
    };
    let appended = join_all((0..32).map(appender)).await;
    let mut appended: Vec<Event> =
        appended.into_iter().flat_map(|one| one.expect("no panic")).collect();
    appended.sort_by_key(Event::sequence);
    assert_contiguous(&clients[0], 0, 256).await;
    assert_eq!(appended, all_of(&clients[1], 0).await);
}

/// Each partition counts from 1, whatever happens in the others.
async fn partitions_count_apart(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    for (partition, count) in [(2, 3), (0, 1), (2, 2), (1, 4)] {
        append_to(&rheo, partition, count).await;
    }
    for (partition, count) in [(0, 1), (1, 4), (2, 5)] {
        assert_contiguous(&rheo, partition, count).await;
    }
}

/// Appends that are dropped at random points leave no gap and hurt no later append.
async fn dropped_futures_leave_no_gap(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let mut rng = trial.rng();
    let mut acknowledged = Vec::new();
    for n in 0..200 {
        let append = rheo.append("s", NewEvent::new("t", json!(n)));
        if let Some(stored) = polled_at_most(rng.usize(1..12), append).await {
            acknowledged.push(stored.expect("it is appended"));
        }
    }
    let last = rheo.append("s", NewEvent::new("t", json!("last"))).await.expect("it is appended");
    acknowledged.push(last);
    // One look alone: what a dropped future had begun may still come after it.
    let stored = all_of(&rheo, 0).await;
    assert_eq!(told(&stored), (1..=stored.len() as u64).collect::<Vec<_>>());
    for event in acknowledged {
        assert_eq!(stored[event.sequence() as usize - 1], event);
    }
}

/// Appends that are refused use up no number.
async fn failed_appends_leave_no_gap(trial: Trial) {
    let rheo = trial.builder().await.event_bytes(100).build().await.expect("it starts");
    rheo.create_stream("s", 1).await.expect("the stream is new");
    for sequence in 1..=5 {
        let large = NewEvent::new("t", "x".repeat(100));
        assert_eq!(failure(rheo.append("s", large).await), ErrorKind::EventTooLarge);
        let nul = NewEvent::new("t", "a\0b");
        assert_eq!(failure(rheo.append("s", nul).await), ErrorKind::Invalid);
        let elsewhere = NewEvent::new("t", 1).partition(9);
        assert_eq!(failure(rheo.append("s", elsewhere).await), ErrorKind::Invalid);
        let stored = rheo.append("s", NewEvent::new("t", 1)).await.expect("it is appended");
        assert_eq!(stored.sequence(), sequence);
    }
    assert_contiguous(&rheo, 0, 5).await;
}

/// After a crash the numbers go on where they had stopped.
async fn a_crash_leaves_no_gap(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    for round in 0..3 {
        let rheo = trial.rheo().await;
        let stored = append_to(&rheo, 0, 3).await;
        let first = round * 3;
        assert_eq!(told(&stored), [first + 1, first + 2, first + 3]);
        trial.crash().await;
    }
    assert_contiguous(&trial.rheo().await, 0, 9).await;
}

/// A batch is returned and stored in the order in which it was given.
async fn a_batch_keeps_its_order(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let stored = rheo.append_batch("s", numbered(500)).await.expect("they are appended");
    let payloads: Vec<_> = stored.iter().map(Event::payload).collect();
    let given: Vec<_> = (1..=500).map(|n| json!({ "n": n })).collect();
    assert_eq!(payloads, given);
    assert_eq!(told(&stored), (1..=500).collect::<Vec<_>>());
    assert_eq!(all_of(&rheo, 0).await, stored);
}

/// A batch over several partitions comes back in its order, with contiguous
/// sequences in each partition.
async fn a_batch_is_contiguous_in_each_partition(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    append_to(&rheo, 1, 2).await;
    let partitions = [2, 1, 1, 0, 2, 1];
    let event = |partition| NewEvent::new("t", 1).partition(partition);
    let stored =
        rheo.append_batch("s", partitions.map(event).into()).await.expect("it is appended");
    let positions: Vec<_> = stored.iter().map(|one| (one.partition(), one.sequence())).collect();
    assert_eq!(positions, [(2, 1), (1, 3), (1, 4), (0, 1), (2, 2), (1, 5)]);
}

/// A batch stays in one piece in its partition, whoever else appends there.
async fn a_batch_stays_together_among_others(trial: Trial) {
    let clients = [trial.rheo().await, trial.rheo().await];
    clients[0].create_stream("s", 1).await.expect("the stream is new");
    let appender = |n: usize| {
        let rheo = clients[n % 2].clone();
        tokio::spawn(async move {
            for _ in 0..4 {
                let stored = append_to(&rheo, 0, 10).await;
                let first = stored[0].sequence();
                assert_eq!(told(&stored), (first..first + 10).collect::<Vec<_>>());
                rheo.append("s", NewEvent::new("single", 1)).await.expect("it is appended");
            }
        })
    };
    try_join_all((0..8).map(appender)).await.expect("no panic");
    assert_contiguous(&clients[0], 0, 8 * 4 * 11).await;
}

/// One event of a batch that cannot be stored, and none of it is.
async fn a_bad_event_refuses_the_whole_batch(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let bad = [
        NewEvent::new("t", "a\0b"),
        NewEvent::new("", 1),
        NewEvent::new("t", 1).partition(1),
        NewEvent::new("t", 1).metadata("a\0b", 1),
    ];
    for bad in bad {
        let mut batch = numbered(3);
        batch.insert(2, bad);
        assert_eq!(failure(rheo.append_batch("s", batch).await), ErrorKind::Invalid);
    }
    assert_eq!(all_of(&rheo, 0).await, []);
}

/// Batches that are dropped at random points are stored wholly or not at all.
async fn a_dropped_batch_is_whole_or_absent(trial: Trial) {
    const SIZE: u64 = 20;
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let mut rng = trial.rng();
    for n in 0..50 {
        let batch = (0..SIZE).map(|_| NewEvent::new("t", json!(n))).collect();
        let append = rheo.append_batch("s", batch);
        if let Some(stored) = polled_at_most(rng.usize(1..12), append).await {
            stored.expect("it is appended");
        }
    }
    let whole = || async {
        let mut sizes: HashMap<String, u64> = HashMap::new();
        for event in all_of(&rheo, 0).await {
            *sizes.entry(event.payload().to_string()).or_default() += 1;
        }
        assert!(sizes.values().all(|&size| size == SIZE), "{sizes:?}");
        true
    };
    eventually("each batch is whole", whole).await;
}

/// An empty batch returns an empty list and writes nothing.
async fn an_empty_batch_writes_nothing(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    assert_eq!(rheo.append_batch("s", vec![]).await.expect("it is nothing"), []);
    assert_eq!(all_of(&rheo, 0).await, []);
    assert_eq!(told(&append_to(&rheo, 0, 1).await), [1]);
}

/// Starts so many appenders on two clients; each appends small batches to
/// partition 0, until 240 events are there.
async fn start_appenders(trial: &Trial) -> (u64, Vec<tokio::task::JoinHandle<()>>) {
    let clients = [trial.rheo().await, trial.rheo().await];
    let mut rng = trial.rng();
    let appender = |n: usize| {
        let (rheo, mut rng) = (clients[n % 2].clone(), rng.fork());
        tokio::spawn(async move {
            let mut left = 30;
            while left > 0 {
                let count = rng.u64(1..=left.min(4));
                append_to(&rheo, 0, count).await;
                left -= count;
                tokio::task::yield_now().await;
            }
        })
    };
    (240, (0..8).map(appender).collect())
}

/// A reader that goes on after what it has seen, while many append, sees every
/// sequence, in order.
async fn a_reader_sees_no_late_arrival(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let (count, appenders) = start_appenders(&trial).await;
    let mut seen = 0;
    while seen < count {
        for event in rheo.read("s", 0, seen, 50).await.expect("it reads") {
            assert_eq!(event.sequence(), seen + 1);
            seen += 1;
        }
        tokio::task::yield_now().await;
    }
    try_join_all(appenders).await.expect("no panic");
}

/// A group that fetches while many append is handed every sequence, in order.
async fn a_group_sees_no_late_arrival(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let (count, appenders) = start_appenders(&trial).await;
    let mut seen = Vec::new();
    while (seen.len() as u64) < count {
        let deliveries =
            rheo.fetch("s", "g", 50, FetchOptions::default()).await.expect("it fetches");
        seen.extend(sequences(&deliveries));
        tokio::task::yield_now().await;
    }
    assert_eq!(seen, (1..=count).collect::<Vec<_>>());
    try_join_all(appenders).await.expect("no panic");
}
