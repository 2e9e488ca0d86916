//! Many clients at once: no error surfaces, nothing is lost, nothing is counted twice.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use rheo_core::{ErrorKind, GroupOptions, Outcome, Position, Replay, ReplayOptions, Rheo};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, drain, fetch, info};

case_table! {
    "race.claimers_appenders_and_settlers_see_no_error" [C3 S3 L1] needs [Partitions]
        => claimers_appenders_and_settlers_see_no_error;
    "race.a_replay_leaves_each_event_in_one_state" [R3 R4] needs [Replay]
        => a_replay_leaves_each_event_in_one_state;
}

const APPENDERS: u64 = 6;
const CONSUMERS: usize = 10;
const BATCHES: u64 = 10;

/// What one consumer did with an event.
type Settled = (Position, &'static str);

/// Sixteen clients append, claim and settle together: no call fails, each event is acked once,
/// and it is handed out once for every time it was handed back.
async fn claimers_appenders_and_settlers_see_no_error(trial: Trial) {
    let rheo = trial.with_group(2, GroupOptions::default().max_attempts(1000)).await;
    let mut rng = trial.rng();
    let mut appenders = Vec::new();
    for appender in 0..APPENDERS {
        let client = trial.rheo().await;
        appenders.push(tokio::spawn(async move {
            for _ in 0..BATCHES {
                append_to(&client, u32::from(appender % 2 == 1), 3).await;
                tokio::task::yield_now().await;
            }
        }));
    }
    let each = APPENDERS / 2 * BATCHES * 3;
    let mut consumers = Vec::new();
    for _ in 0..CONSUMERS {
        consumers.push(tokio::spawn(consume(trial.rheo().await, rng.fork(), 2 * each)));
    }
    for appender in join_all(appenders).await {
        appender.expect("no append fails");
    }
    let mut acks = BTreeMap::new();
    for consumer in join_all(consumers).await {
        for (position, outcome) in consumer.expect("no claim and no settle fails") {
            if outcome == "ack" {
                *acks.entry((position.partition, position.sequence)).or_insert(0) += 1;
            }
        }
    }
    let all = (0..2).flat_map(|partition| (1..=each).map(move |n| ((partition, n), 1)));
    assert_eq!(acks, all.collect());
    let counts = info(&rheo).await;
    assert_eq!((counts.lag(), counts.leased(), counts.dead_letters()), (0, 0, 0));
}

/// Claims and settles until all `count` events are there and acked.
async fn consume(rheo: Rheo, mut rng: fastrand::Rng, count: u64) -> Vec<Settled> {
    let mut settled = Vec::new();
    loop {
        let deliveries = fetch(&rheo, rng.usize(1..=8)).await;
        if deliveries.is_empty() {
            let partitions = info(&rheo).await.partitions;
            let acked: u64 = partitions.iter().map(|partition| partition.frontier).sum();
            if acked == count {
                return settled;
            }
            tokio::task::yield_now().await;
        }
        let outcomes: Vec<_> = deliveries
            .iter()
            .map(|delivery| match rng.u8(0..8) {
                0 => (delivery, Outcome::retry("again")),
                1 => (delivery, Outcome::Release),
                _ => (delivery, Outcome::Ack),
            })
            .collect();
        let names: Vec<_> = outcomes.iter().map(|(_, outcome)| outcome.as_str()).collect();
        for answer in rheo.settle(outcomes).await {
            answer.expect("nobody else holds the lease");
        }
        let positions = deliveries.iter().map(|delivery| delivery.event.position());
        settled.extend(positions.zip(names));
    }
}

/// While others claim and settle, replays only ever make leases stale: in the end every event
/// is handed out and acked, and no lease, delay or dead letter is left over.
async fn a_replay_leaves_each_event_in_one_state(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1000)).await;
    append_to(&rheo, 0, 60).await;
    let mut rng = trial.rng();
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(tokio::spawn(work(trial.rheo().await, rng.fork())));
    }
    for _ in 0..15 {
        let after = rng.u64(0..60);
        let selection = if rng.bool() { Replay::AfterSequence(after) } else { Replay::DeadLetters };
        rheo.replay("s", "g", selection, ReplayOptions::default()).await.unwrap();
        tokio::task::yield_now().await;
    }
    for worker in join_all(workers).await {
        worker.expect("only stale leases are refused");
    }
    rheo.replay("s", "g", Replay::AfterSequence(0), ReplayOptions::default()).await.unwrap();
    let mut drained: Vec<_> =
        drain(&rheo).await.iter().map(|delivery| delivery.event.sequence()).collect();
    drained.sort_unstable();
    assert_eq!(drained, (1..=60).collect::<Vec<_>>());
    let counts = info(&rheo).await;
    assert_eq!((counts.lag(), counts.leased(), counts.waiting()), (0, 0, 0));
    assert_eq!(counts.dead_letters(), 0);
}

async fn work(rheo: Rheo, mut rng: fastrand::Rng) {
    for _ in 0..40 {
        for delivery in fetch(&rheo, rng.usize(1..=5)).await {
            tokio::task::yield_now().await;
            let settled = match rng.u8(0..6) {
                0 => rheo.reject(&delivery, "bad").await,
                1 => rheo.retry(&delivery, "again", Duration::ZERO).await,
                _ => rheo.ack(&delivery).await,
            };
            if let Err(error) = settled {
                assert_eq!(error.kind(), ErrorKind::StaleLease);
            }
        }
    }
}
