//! Subscriptions: events as a stream.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use rheo_core::runtime::{Held, SubscribeOptions};
use rheo_core::{ErrorKind, FetchOptions, Outcome, Subscription};

use crate::{Bench, LEASE, eventually, in_time};

const LONG: Duration = Duration::from_secs(3600);

async fn subscribe(bench: &Bench, max_demand: usize) -> Subscription {
    let options = SubscribeOptions::default().max_demand(max_demand);
    bench.rheo.subscribe("s", "g", options).await.unwrap()
}

#[tokio::test]
async fn k1_no_more_than_the_demand_is_unsettled() {
    let bench = Bench::new().await;
    bench.append(5).await;
    let mut events = subscribe(&bench, 2).await;
    let first = in_time(events.next()).await.unwrap();
    let second = in_time(events.next()).await.unwrap();
    assert!(events.next().now_or_never().is_none());
    first.ack().await.unwrap();
    second.reject("useless").await.unwrap();
    let third = in_time(events.next()).await.unwrap();
    assert_eq!(third.event().sequence(), 3);
    third.retry("later", LEASE).await.unwrap();
    let health = events.health();
    assert_eq!((health.counts.acked, health.counts.rejected, health.counts.retried), (1, 1, 1));
}

#[tokio::test]
async fn what_is_dropped_is_released_and_a_panic_is_an_attempt() {
    let bench = Bench::new().await;
    bench.append(1).await;
    let mut events = subscribe(&bench, 1).await;
    drop(in_time(events.next()).await);
    let again = in_time(events.next()).await.unwrap();
    assert_eq!(again.lease().attempt(), 1);
    let task = tokio::spawn(async move {
        let _held = again;
        panic!("in the middle of it");
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(in_time(events.next()).await.unwrap().lease().attempt(), 2);
}

#[tokio::test]
async fn a_chunk_is_settled_in_one_call() {
    let bench = Bench::new().await;
    bench.append(10).await;
    let mut events = subscribe(&bench, 10).await;
    let chunk = in_time(events.by_ref().chunks(10).next()).await.unwrap();
    let answers = Held::settle_all(chunk, Outcome::Ack).await;
    assert!(answers.len() == 10 && answers.iter().all(Result::is_ok));
    assert_eq!(bench.store.settles(), [vec![Outcome::Ack; 10]]);
}

#[tokio::test]
async fn stream_combinators_work_on_it() {
    let bench = Bench::new().await;
    bench.append(100).await;
    let events = subscribe(&bench, 20).await;
    let acked = events
        .map(|held| async move {
            let sequence = held.event().sequence();
            held.ack().await.map(|()| sequence)
        })
        .buffer_unordered(8)
        .take(100)
        .map(Result::unwrap);
    let mut sequences: Vec<u64> = in_time(acked.collect()).await;
    sequences.sort_unstable();
    assert_eq!(sequences, (1..=100).collect::<Vec<_>>());
    assert_eq!(bench.lag().await, 0);
}

#[tokio::test]
async fn what_is_held_stays_leased_and_tells_when_it_is_lost() {
    let bench = Bench::new().await;
    bench.append(1).await;
    let mut events = subscribe(&bench, 1).await;
    let held = in_time(events.next()).await.unwrap();
    for _ in 0..6 {
        bench.half_a_lease().await;
    }
    assert!(held.lost().now_or_never().is_none());
    bench.store.fail_claims(true);
    bench.store.fail_renewals(true);
    bench.clock.advance(LEASE / 2);
    eventually(async || events.health().last_error.is_some()).await;
    bench.clock.advance(LEASE / 2);
    in_time(held.lost()).await;
    assert_eq!(held.ack().await.unwrap_err().kind(), ErrorKind::StaleLease);
    assert!(bench.store.settles().is_empty());
}

#[tokio::test]
async fn k3_a_dropped_subscription_makes_room_and_hands_back() {
    let bench = Bench::new().await;
    bench.append(10).await;
    let mut events = subscribe(&bench, 10).await;
    let held = in_time(events.next()).await.unwrap();
    drop(events);
    let _next = subscribe(&bench, 1).await;
    held.ack().await.unwrap();
    let other = bench.other().await;
    let rest =
        async || other.fetch("s", "g", 10, FetchOptions::default()).await.unwrap().len() >= 8;
    eventually(rest).await;
}

#[tokio::test]
async fn k4_a_drain_waits_for_what_is_held() {
    let bench = Bench::new().await;
    bench.append(10).await;
    let mut events = subscribe(&bench, 10).await;
    let held = in_time(events.next()).await.unwrap();
    let left = in_time(events.next()).await.unwrap();
    let mut draining = Box::pin(events.drain(LONG));
    assert!(draining.as_mut().now_or_never().is_none());
    held.ack().await.unwrap();
    assert!(draining.as_mut().now_or_never().is_none());
    bench.clock.advance(LONG);
    let drained = in_time(draining).await.unwrap();
    assert_eq!((drained.settled, drained.released), (1, 8));
    assert_eq!(drained.left, [left.lease().clone()]);
    assert!(left.is_lost());
    assert!(in_time(events.next()).await.is_none());
}
