//! What a backend may or may not guarantee: each is exercised where it is claimed.

use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;

use futures::future::try_join_all;
use rheo_core::{
    ErrorKind, Event, FetchOptions, GroupOptions, NewEvent, Outcome, Query, Rheo, Start,
};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{
    append_to, attempts, dead, drain, eventually, failure, fetch, info, numbered, polled_at_most,
    sequences,
};

case_table! {
    "guarantee.events_survive_a_crash" [S3 S8 E3] needs [Durable] runs alone
        => events_survive_a_crash;
    "guarantee.progress_survives_a_crash" [L8 C6 E3] needs [Durable] runs alone
        => progress_survives_a_crash;
    "guarantee.leases_survive_a_crash" [L1 C3 E3] needs [Durable] runs alone
        => leases_survive_a_crash;
    "guarantee.clients_share_streams_and_groups" [S1 G1] needs [Distributed]
        => clients_share_streams_and_groups;
    "guarantee.clients_share_leases" [C3 L1] needs [Distributed] => clients_share_leases;
    "guarantee.a_batch_is_seen_whole_or_not_at_all" [S4] needs [Partitions AtomicBatch]
        => a_batch_is_seen_whole_or_not_at_all;
    "guarantee.a_dropped_batch_is_whole_over_partitions" [S4 E2] needs [Partitions AtomicBatch]
        => a_dropped_batch_is_whole_over_partitions;
    "guarantee.a_batch_is_refused_whole" [S4] needs [Partitions AtomicBatch]
        => a_batch_is_refused_whole;
    "guarantee.a_range_is_found_in_a_long_log" [Q1 Q2] needs [OrderedRangeScan]
        => a_range_is_found_in_a_long_log;
    "guarantee.the_rare_one_is_found_in_a_long_log" [Q2] needs [SecondaryIndexes]
        => the_rare_one_is_found_in_a_long_log;
    "guarantee.batches_of_10000_are_one_call" [S4 L6] needs [BatchWrites]
        => batches_of_10000_are_one_call;
}

async fn all_of(rheo: &Rheo, partition: u32) -> Vec<Event> {
    rheo.read("s", partition, 0, 10_000).await.expect("it reads")
}

/// Streams and acknowledged events are there after a crash, as they were.
async fn events_survive_a_crash(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let event = NewEvent::new("t", json!({"n": 1.0})).key("k").metadata("m", u64::MAX);
    let mut stored = vec![rheo.append("s", event).await.expect("it is appended")];
    stored.extend(append_to(&rheo, 0, 3).await);
    trial.crash().await;
    let rheo = trial.rheo().await;
    assert_eq!(rheo.partitions("s").await.expect("it is there"), 1);
    assert_eq!(all_of(&rheo, 0).await, stored);
    assert_eq!(rheo.query("s", &Query::new().key("k")).await.expect("it finds"), stored[..1]);
}

/// Acks, retries, rejects and attempts are there after a crash.
async fn progress_survives_a_crash(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(3)).await;
    append_to(&rheo, 0, 6).await;
    let deliveries = fetch(&rheo, 5).await;
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    rheo.retry(&deliveries[1], "later", Duration::from_secs(60)).await.expect("it is current");
    rheo.reject(&deliveries[2], "no").await.expect("the lease is current");
    rheo.ack(&deliveries[3]).await.expect("the lease is current");
    let before = info(&rheo).await;
    trial.crash().await;
    let rheo = trial.rheo().await;
    assert_eq!(info(&rheo).await, before);
    assert_eq!(info(&rheo).await.partitions[0].frontier, 1);
    assert_eq!(dead(&rheo).await, [(3, 1, "no".into())]);
    assert_eq!(sequences(&fetch(&rheo, 10).await), [6]);
    trial.advance_secs(60);
    let again = fetch(&rheo, 10).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![2, 5, 6], vec![2, 2, 2]));
}

/// A lease holds through a crash: others do not get the event, and its holder
/// can settle it.
async fn leases_survive_a_crash(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    trial.crash().await;
    let rheo = trial.rheo().await;
    assert_eq!(sequences(&fetch(&rheo, 1).await), [0; 0]);
    rheo.ack(&delivery).await.expect("the lease is current");
    assert_eq!(failure(rheo.ack(&delivery).await), ErrorKind::StaleLease);
}

/// What one client creates, appends and acks, another sees at once.
async fn clients_share_streams_and_groups(trial: Trial) {
    let (one, other) = (trial.rheo().await, trial.rheo().await);
    one.create_stream("s", 1).await.expect("the stream is new");
    let options = GroupOptions::default().max_attempts(2).start(Start::Beginning);
    other.create_group("s", "g", options).await.expect("the group is new");
    let stored = append_to(&one, 0, 2).await;
    assert_eq!(all_of(&other, 0).await, stored);
    let delivery = fetch(&other, 1).await.remove(0);
    other.ack(&delivery).await.expect("the lease is current");
    let told = info(&one).await;
    assert_eq!((told.max_attempts, told.lag()), (2, 1));
    assert_eq!(append_to(&other, 0, 1).await[0].sequence(), 3);
    assert_eq!(info(&one).await, info(&other).await);
}

/// An event that one client has leased no other gets, and a lease is settled
/// through any client, once.
async fn clients_share_leases(trial: Trial) {
    let clients = [trial.with_group(1, GroupOptions::default()).await, trial.rheo().await];
    append_to(&clients[0], 0, 40).await;
    let fetchers = (0..8).map(|n| {
        let rheo = clients[n % 2].clone();
        tokio::spawn(async move {
            let mut held = Vec::new();
            for _ in 0..5 {
                held.extend(fetch(&rheo, 1).await);
            }
            held
        })
    });
    let held = try_join_all(fetchers).await.expect("no panic").concat();
    let mut leased = sequences(&held);
    leased.sort_unstable();
    assert_eq!(leased, (1..=40).collect::<Vec<_>>());
    for delivery in &held {
        clients[1].ack(delivery).await.expect("the lease is current");
        assert_eq!(failure(clients[0].ack(delivery).await), ErrorKind::StaleLease);
    }
    assert_eq!(info(&clients[0]).await.lag(), 0);
}

/// A batch of one event for each of four partitions.
fn over_four(n: u64) -> Vec<NewEvent> {
    (0..4).map(|partition| NewEvent::new("t", json!(n)).partition(partition)).collect()
}

/// Whoever has seen a batch in one partition sees it in all others from then on.
async fn a_batch_is_seen_whole_or_not_at_all(trial: Trial) {
    const BATCHES: u64 = 60;
    let (rheo, observer) = (trial.rheo().await, trial.rheo().await);
    rheo.create_stream("s", 4).await.expect("the stream is new");
    let appender = tokio::spawn(async move {
        for n in 1..=BATCHES {
            rheo.append_batch("s", over_four(n)).await.expect("it is appended");
            tokio::task::yield_now().await;
        }
    });
    let mut rng = trial.rng();
    let mut partitions = [0, 1, 2, 3];
    let mut least = 0;
    while least < BATCHES {
        rng.shuffle(&mut partitions);
        for partition in partitions {
            let seen = all_of(&observer, partition).await.len() as u64;
            assert!(seen >= least, "batch {least} is not in partition {partition}");
            least = seen;
        }
        tokio::task::yield_now().await;
    }
    appender.await.expect("no panic");
}

/// A batch whose append is dropped on its way is in all partitions or in none.
async fn a_dropped_batch_is_whole_over_partitions(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 4).await.expect("the stream is new");
    let mut rng = trial.rng();
    for n in 0..50 {
        let append = rheo.append_batch("s", over_four(n));
        if let Some(stored) = polled_at_most(rng.usize(1..12), append).await {
            stored.expect("it is appended");
        }
    }
    eventually("all partitions hold the same batches", || alike(&rheo)).await;
}

/// Whether the four partitions hold the same payloads.
async fn alike(rheo: &Rheo) -> bool {
    let mut distinct = HashSet::new();
    for partition in 0..4 {
        let events = all_of(rheo, partition).await;
        distinct.insert(events.iter().map(|event| event.payload().to_string()).collect::<Vec<_>>());
    }
    distinct.len() == 1
}

/// One event that cannot be stored keeps its batch out of every partition.
async fn a_batch_is_refused_whole(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 4).await.expect("the stream is new");
    rheo.append_batch("s", over_four(1)).await.expect("it is appended");
    let bad = [NewEvent::new("t", "a\0"), NewEvent::new("t", 1).partition(4)];
    for bad in bad {
        let mut batch = over_four(2);
        batch.push(bad);
        assert_eq!(failure(rheo.append_batch("s", batch).await), ErrorKind::Invalid);
    }
    for partition in 0..4 {
        assert_eq!(all_of(&rheo, partition).await.len(), 1);
    }
}

/// Checks `look` in a short log and in one of 5 000 events. What it costs
/// there is for benchmarks to tell; a case asserts no times.
async fn holds_in_a_long_log<F: Future<Output = ()>>(rheo: &Rheo, look: impl Fn() -> F) {
    append_to(rheo, 0, 10).await;
    look().await;
    append_to(rheo, 0, 5_000).await;
    look().await;
}

/// A read and a query that begin at a sequence yield just what lies there.
async fn a_range_is_found_in_a_long_log(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let look = || async {
        let last = Query::new().descending().limit(1);
        let last = rheo.query("s", &last).await.expect("it finds")[0].sequence();
        let events = rheo.read("s", 0, last - 2, 10).await.expect("it reads");
        assert_eq!(events.iter().map(Event::sequence).collect::<Vec<_>>(), [last - 1, last]);
        let query = Query::new().after_sequence(last - 3).until_sequence(last - 1);
        assert_eq!(rheo.query("s", &query).await.expect("it finds").len(), 2);
    };
    holds_in_a_long_log(&rheo, look).await;
}

/// The one event of a type, key or lineage value is found among all others.
async fn the_rare_one_is_found_in_a_long_log(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    append_to(&rheo, 0, 9).await;
    let rare = NewEvent::new("rare", 1).key("rare").metadata("correlation_id", "rare");
    let rare = rheo.append("s", rare).await.expect("it is appended");
    let look = || async {
        let queries = [
            Query::new().event_type("rare"),
            Query::new().key("rare"),
            Query::new().correlation_id("rare"),
        ];
        for query in queries {
            assert_eq!(
                rheo.query("s", &query).await.expect("it finds"),
                std::slice::from_ref(&rare)
            );
        }
    };
    holds_in_a_long_log(&rheo, look).await;
}

/// 10 000 events are appended in one call and settled in one call, each
/// answered in its place.
async fn batches_of_10000_are_one_call(trial: Trial) {
    const COUNT: usize = 10_000;
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let stored = rheo.append_batch("s", numbered(COUNT as u64)).await.expect("they are appended");
    assert_eq!((stored.len(), stored[COUNT - 1].sequence()), (COUNT, COUNT as u64));
    let options = FetchOptions::default();
    let deliveries = rheo.fetch("s", "g", COUNT, options).await.expect("it fetches");
    assert_eq!(deliveries.len(), COUNT);
    rheo.ack(&deliveries[77]).await.expect("the lease is current");
    let answers = rheo.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
    let refused: Vec<usize> = (0..COUNT).filter(|&at| answers[at].is_err()).collect();
    assert_eq!(refused, [77]);
    assert_eq!(info(&rheo).await.lag(), 0);
    assert_eq!(sequences(&drain(&rheo).await), [0; 0]);
}
