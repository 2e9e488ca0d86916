//! Ending: drains, drops, and what is handed back.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use rheo_core::{Consumer, Delivery, ErrorKind, FetchOptions};
use tokio::sync::Semaphore;

use crate::{Bench, eventually, in_time};

const LONG: Duration = Duration::from_secs(3600);

/// Two handlers that wait at a gate, and ten events buffered behind them.
async fn two_running_and_ten_buffered(bench: &Bench) -> (Consumer, Arc<Semaphore>) {
    bench.append(12).await;
    let gate = Arc::new(Semaphore::new(0));
    let at_gate = gate.clone();
    let handler = move |_: Delivery| {
        let gate = at_gate.clone();
        async move { gate.acquire().await.unwrap().forget() }
    };
    let consumer = bench.rheo.consumer("s", "g").concurrency(2).start(handler).await.unwrap();
    eventually(async || consumer.health().running == 2 && consumer.health().buffered == 10).await;
    (consumer, gate)
}

#[tokio::test]
async fn k4_a_drain_finishes_the_running_and_hands_back_the_buffered() {
    let bench = Bench::new().await;
    let (consumer, gate) = two_running_and_ten_buffered(&bench).await;
    let mut draining = Box::pin(consumer.drain(LONG));
    assert!(draining.as_mut().now_or_never().is_none());
    assert!(consumer.health().draining);
    assert_eq!(consumer.drain(LONG).await.unwrap_err().kind(), ErrorKind::AlreadyDraining);

    // The buffered are claimable while the others still run.
    let other = bench.other().await;
    eventually(async || consumer.health().counts.released == 10).await;
    let back = other.fetch("s", "g", 100, FetchOptions::default()).await.unwrap();
    assert_eq!(back.len(), 10);
    assert!(back.iter().all(|delivery| delivery.lease.attempt() == 1));

    gate.add_permits(2);
    let drained = in_time(draining).await.unwrap();
    assert_eq!((drained.settled, drained.released, drained.left), (2, 10, vec![]));
    assert_eq!(consumer.health().unsettled, 0);
    // Once more does no harm.
    assert!(consumer.drain(LONG).await.unwrap().left.is_empty());
}

#[tokio::test]
async fn k4_a_drain_whose_time_is_up_reports_what_is_left() {
    let bench = Bench::new().await;
    let (consumer, _gate) = two_running_and_ten_buffered(&bench).await;
    let mut draining = Box::pin(consumer.drain(LONG / 1000));
    assert!(draining.as_mut().now_or_never().is_none());
    eventually(async || consumer.health().counts.released == 10).await;
    bench.clock.advance(LONG / 1000);
    let drained = in_time(draining).await.unwrap();
    let left: Vec<_> = drained.left.iter().map(|lease| lease.position().sequence).collect();
    assert_eq!((drained.settled, drained.released, left), (0, 10, vec![1, 2]));
    // They are let go of, and come back by expiry.
    assert!(bench.store.settles().iter().flatten().count() == 10);
    let again = bench.rheo.consumer("s", "g").start(async |_: Delivery| ()).await;
    assert!(again.is_ok());
}

#[tokio::test]
async fn a_drain_that_is_dropped_goes_on() {
    let bench = Bench::new().await;
    let (consumer, gate) = two_running_and_ten_buffered(&bench).await;
    assert!(consumer.drain(LONG).now_or_never().is_none());
    gate.add_permits(2);
    assert!(in_time(consumer.drain(LONG)).await.unwrap().left.is_empty());
}

#[tokio::test]
async fn a_dropped_consumer_ends_in_the_background() {
    let bench = Bench::new().await;
    let (consumer, gate) = two_running_and_ten_buffered(&bench).await;
    drop(consumer);
    eventually(async || bench.store.settles().iter().flatten().count() == 10).await;
    gate.add_permits(2);
    eventually(async || bench.lag().await == 10).await;
    let started =
        async || bench.rheo.consumer("s", "g").start(async |_: Delivery| ()).await.is_ok();
    eventually(started).await;
}

#[tokio::test]
async fn k4_a_drain_waits_for_its_settles() {
    let bench = Bench::new().await;
    let (consumer, gate) = two_running_and_ten_buffered(&bench).await;
    bench.store.close_settle_gate();
    gate.add_permits(2);
    let mut draining = Box::pin(consumer.drain(LONG));
    for _ in 0..100 {
        assert!(draining.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    bench.store.open_settle_gate();
    let drained = in_time(draining).await.unwrap();
    assert_eq!((drained.settled + drained.released, drained.left.len()), (12, 0));
}

#[tokio::test]
async fn an_idle_consumer_drains_at_once() {
    let bench = Bench::new().await;
    let consumer =
        bench.rheo.consumer("s", "g").start(|_: Delivery| pending::<()>()).await.unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let drained = in_time(consumer.drain(LONG)).await.unwrap();
    assert_eq!((drained.settled, drained.released, drained.left.len()), (0, 0, 0));
}
