//! Waits and dropped calls: nobody stands behind them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rheo_core::{NewEvent, Outcome};
use rheo_redis::Options;

use crate::{Bench, HOUR, LEASE, eventually, sequences};

/// Far less than the waits here.
const SOON: Duration = Duration::from_secs(5);

/// While a hundred calls wait for work, a settle goes through at once.
#[tokio::test]
async fn a_settle_does_not_wait_behind_a_wait() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(50).await;
    let deliveries = bench.fetch(50).await;
    let waits: Vec<_> = (0..100)
        .map(|_| {
            let rheo = bench.rheo.clone();
            tokio::spawn(async move { rheo.wait("s", "g", HOUR).await })
        })
        .collect();
    eventually("it is heard", async || bench.fact("pubsub_channels").await != "0").await;
    let begun = Instant::now();
    for delivery in &deliveries {
        bench.rheo.ack(delivery).await.unwrap();
    }
    assert!(begun.elapsed() < SOON, "fifty acks took {:?}", begun.elapsed());
    assert!(waits.iter().all(|wait| !wait.is_finished()));
    waits.iter().for_each(|wait| wait.abort());
}

/// The connection that hears is cut by the operator: it comes back, and hears again.
#[tokio::test]
async fn a_killed_waking_connection_comes_back() {
    // Nobody polls here.
    let Some(bench) = Bench::start_with(Options::default().poll(HOUR)).await else { return };
    let appending = bench.other(Options::default()).await;
    for _ in 0..3 {
        let waiting = bench.rheo.clone();
        let wait = tokio::spawn(async move { waiting.wait("s", "g", HOUR).await });
        eventually("it is heard", async || bench.fact("pubsub_channels").await != "0").await;
        let killed: u64 = bench.operator("CLIENT KILL TYPE pubsub").await;
        assert_eq!(killed, 1);
        let woken = async {
            while !wait.is_finished() {
                appending.append("s", NewEvent::new("t", 1)).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, woken).await.expect("it is woken after it was killed");
        wait.await.unwrap().unwrap();
        let deliveries = bench.fetch(10_000).await;
        bench.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
    }
}

/// A thousand fetches are dropped while they are on their way: later calls get
/// the answers to their own questions, and every event is delivered.
#[tokio::test]
async fn dropped_fetches_misalign_nothing() {
    const EVENTS: u64 = 400;
    let Some(bench) = Bench::start().await else { return };
    bench.append(EVENTS).await;
    let mut acked = BTreeSet::new();
    for round in 0..1000 {
        let patience = Duration::from_micros(fastrand::u64(..600));
        let fetched = tokio::time::timeout(patience, bench.fetch(1)).await;
        if let Ok(deliveries) = fetched {
            bench.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
            acked.extend(sequences(&deliveries));
        }
        let place = round % EVENTS;
        let read = bench.rheo.read("s", 0, place, 1).await.unwrap();
        assert_eq!(read[0].sequence(), place + 1);
    }
    bench.clock.advance(2 * LEASE);
    loop {
        let deliveries = bench.fetch(100).await;
        bench.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
        for sequence in sequences(&deliveries) {
            assert!(acked.insert(sequence), "{sequence} came after it was acked");
        }
        if deliveries.is_empty() {
            break;
        }
    }
    assert_eq!(acked, (1..=EVENTS).collect());
    assert_eq!(bench.info().await.lag(), 0);
}
