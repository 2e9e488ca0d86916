//! What somebody deletes from the server behind Rheo's back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use rheo_core::{Delivery, ErrorKind, NewEvent, Outcome, Position, Replay, ReplayOptions};

use crate::{Bench, eventually, sequences};

/// A handler that acks, and counts.
fn counting() -> (Arc<AtomicU64>, impl Fn(Delivery) -> std::future::Ready<()> + Clone) {
    let count = Arc::new(AtomicU64::new(0));
    let handler = {
        let count = Arc::clone(&count);
        move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(())
        }
    };
    (count, handler)
}

/// Everything is gone: that is told as what it is, and the consumer goes on
/// once the stream and the group are there again.
#[tokio::test]
async fn a_consumer_outlives_flushall() {
    let Some(bench) = Bench::start().await else { return };
    let (handled, handler) = counting();
    let consumer = bench.rheo.consumer("s", "g").poll_interval(Duration::from_millis(20));
    let consumer = consumer.start(handler).await.unwrap();
    bench.append(3).await;
    eventually("three are handled", async || handled.load(Ordering::SeqCst) == 3).await;

    bench.operator::<()>("FLUSHALL").await;
    eventually("the consumer tells the loss", async || {
        let error = consumer.health().last_error;
        error.is_some_and(|error| error.kind() == ErrorKind::StreamNotFound)
    })
    .await;
    let error = bench.rheo.append("s", NewEvent::new("t", 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamNotFound);
    assert_eq!(bench.rheo.list_streams().await.unwrap(), []);

    bench.create().await;
    bench.append(2).await;
    eventually("the new ones are handled", async || handled.load(Ordering::SeqCst) == 5).await;
    eventually("all is settled", async || bench.info().await.lag() == 0).await;
    assert_eq!(bench.info().await.partitions[0].high_watermark, 2);
}

/// The functions are loaded again before anyone notices, however many meet
/// their loss at once: each event is handed out once.
#[tokio::test]
async fn flushed_functions_go_unnoticed() {
    const ROUNDS: u64 = 50;
    const AT_ONCE: u64 = 8;
    let Some(bench) = Bench::start().await else { return };
    let append = || bench.rheo.append("s", NewEvent::new("t", 1));
    let flush = async || {
        bench.operator::<()>("FUNCTION FLUSH").await;
        bench.operator::<()>("SCRIPT FLUSH").await;
    };
    let mut came = Vec::new();
    for _ in 0..ROUNDS {
        flush().await;
        let appends = join_all((0..AT_ONCE).map(|_| append()));
        let fetches = join_all((0..AT_ONCE).map(|_| bench.fetch(2)));
        let (appended, fetched) = tokio::join!(appends, fetches);
        assert!(appended.iter().all(Result::is_ok), "{appended:?}");
        for delivery in fetched.into_iter().flatten() {
            flush().await;
            bench.rheo.ack(&delivery).await.unwrap();
            came.push((delivery.event.sequence(), delivery.lease.attempt()));
        }
    }
    flush().await;
    for delivery in bench.fetch(1000).await {
        bench.rheo.ack(&delivery).await.unwrap();
        came.push((delivery.event.sequence(), delivery.lease.attempt()));
    }
    came.sort_unstable();
    assert_eq!(came, (1..=ROUNDS * AT_ONCE).map(|sequence| (sequence, 1)).collect::<Vec<_>>());
    let info = bench.info().await;
    assert_eq!((info.lag(), info.leased(), info.waiting()), (0, 0, 0));
}

async fn delete(bench: &Bench, sequence: u64) {
    let deleted: u64 = bench.operator(&format!("XDEL rheo:{{s/0}} 0-{sequence}")).await;
    assert_eq!(deleted, 1);
}

/// An event that vanishes before it was handed out never is, blocks nothing,
/// and is told as what it is.
#[tokio::test]
async fn a_vanished_event_blocks_nothing() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(5).await;
    delete(&bench, 2).await;
    let deliveries = bench.fetch(10).await;
    assert_eq!(sequences(&deliveries), [1, 3, 4, 5]);
    bench.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
    assert_eq!(sequences(&bench.fetch(10).await), [0; 0]);
    let info = bench.info().await;
    assert_eq!((info.lag(), info.leased(), info.waiting()), (0, 0, 0));
    assert_is_a_corrupt_dead_letter(&bench, 2).await;
}

/// The same with an entry that somebody else added.
#[tokio::test]
async fn a_strange_entry_blocks_nothing() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(1).await;
    bench.operator::<String>("XADD rheo:{s/0} 0-* colour red").await;
    bench.append(1).await;
    let deliveries = bench.fetch(10).await;
    assert_eq!(sequences(&deliveries), [1, 3]);
    bench.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
    assert_eq!(bench.info().await.lag(), 0);
    assert_is_a_corrupt_dead_letter(&bench, 2).await;
}

async fn assert_is_a_corrupt_dead_letter(bench: &Bench, sequence: u64) {
    assert_eq!(bench.info().await.dead_letters(), 1);
    let error = bench.rheo.dead_letters("s", "g", 10, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.context().contains(&format!("0-{sequence}")), "{error}");
    let after = Some(Position::new(0, sequence));
    assert_eq!(bench.rheo.dead_letters("s", "g", 10, after).await.unwrap(), []);
}

/// The same where it vanishes while it is leased, and the lease expires.
#[tokio::test]
async fn an_event_that_vanishes_under_its_lease_blocks_nothing() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(5).await;
    let deliveries = bench.fetch(3).await;
    delete(&bench, 2).await;
    bench.rheo.ack(&deliveries[0]).await.unwrap();
    bench.clock.advance(2 * crate::LEASE);
    let deliveries = bench.fetch(10).await;
    assert_eq!(sequences(&deliveries), [3, 4, 5]);
    bench.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
    assert_eq!(bench.info().await.lag(), 0);
    assert_is_a_corrupt_dead_letter(&bench, 2).await;
}

/// Who holds the lease of an event that vanishes can still settle it.
#[tokio::test]
async fn the_lease_of_a_vanished_event_can_be_settled() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(3).await;
    let deliveries = bench.fetch(3).await;
    delete(&bench, 1).await;
    delete(&bench, 2).await;
    bench.rheo.ack(&deliveries[0]).await.unwrap();
    bench.rheo.renew(&deliveries[1], crate::LEASE).await.unwrap();
    bench.rheo.retry(&deliveries[1], "later", Duration::ZERO).await.unwrap();
    bench.rheo.ack(&deliveries[2]).await.unwrap();
    assert_eq!(sequences(&bench.fetch(10).await), [0; 0]);
    let info = bench.info().await;
    assert_eq!((info.lag(), info.leased(), info.waiting()), (0, 0, 0));
    assert_is_a_corrupt_dead_letter(&bench, 2).await;
}

/// The log's last event vanishes: its sequence is not given to another, and a
/// replay over the hole brings what is left.
#[tokio::test]
async fn a_vanished_last_event_is_not_replaced() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(3).await;
    delete(&bench, 3).await;
    let event = bench.rheo.append("s", NewEvent::new("t", 4)).await.unwrap();
    assert_eq!(event.sequence(), 4);
    let deliveries = bench.fetch(10).await;
    assert_eq!(sequences(&deliveries), [1, 2, 4]);
    bench.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await;
    let all = Replay::AfterSequence(0);
    bench.rheo.replay("s", "g", all, ReplayOptions::default()).await.unwrap();
    assert_eq!(sequences(&bench.fetch(10).await), [1, 2, 4]);
    let stored = bench.rheo.read("s", 0, 0, 10).await.unwrap();
    assert_eq!(stored.iter().map(|event| event.sequence()).collect::<Vec<_>>(), [1, 2, 4]);
}

/// A dead letter whose event vanishes hides none of the others, which can be replayed.
#[tokio::test]
async fn a_vanished_dead_letter_hides_no_other() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(5).await;
    let deliveries = bench.fetch(10).await;
    bench.settle(deliveries.iter().map(|one| (one, Outcome::reject("no")))).await;
    for sequence in [1, 3, 5] {
        delete(&bench, sequence).await;
    }
    for (limit, after, listed) in [(1, None, vec![2]), (1, Some(2), vec![4]), (9, None, vec![2, 4])]
    {
        let after = after.map(|sequence| Position::new(0, sequence));
        let letters = bench.rheo.dead_letters("s", "g", limit, after).await.unwrap();
        let found: Vec<_> = letters.iter().map(|letter| letter.event.sequence()).collect();
        assert_eq!(found, listed);
    }
    bench.rheo.replay("s", "g", Replay::DeadLetters, ReplayOptions::default()).await.unwrap();
    assert_eq!(sequences(&bench.fetch(10).await), [2, 4]);
    assert_eq!(bench.info().await.dead_letters(), 3);
}
