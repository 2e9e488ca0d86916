//! A store that fails: nothing stops, nothing is forgotten, nothing is guessed.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rheo_core::{Confirm, Delivery, ErrorKind, GroupOptions, Outcome};
use tokio::sync::mpsc;

use crate::{Bench, LEASE, eventually, in_time};

#[tokio::test]
async fn k6_failing_fetches_show_in_health_and_stop_nothing() {
    let bench = Bench::new().await;
    bench.store.fail_claims(true);
    let consumer = bench.rheo.consumer("s", "g").start(async |_: Delivery| ()).await.unwrap();
    eventually(async || consumer.health().consecutive_failures >= 2).await;
    let error = consumer.health().last_error.unwrap();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, "fetch"));
    bench.store.fail_claims(false);
    bench.append(3).await;
    bench.drained().await;
    eventually(async || consumer.health().consecutive_failures == 0).await;
}

#[tokio::test]
async fn k6_failing_settles_are_tried_again() {
    let bench = Bench::new().await;
    bench.append(3).await;
    bench.store.fail_settles(true);
    let consumer = bench.rheo.consumer("s", "g").start(async |_: Delivery| ()).await.unwrap();
    eventually(async || consumer.health().consecutive_failures >= 2).await;
    assert_eq!(consumer.health().unsettled, 3);
    bench.store.fail_settles(false);
    bench.drained().await;
    eventually(async || consumer.health().counts.acked == 3).await;
}

#[tokio::test]
async fn k5_an_ack_whose_answer_is_lost_stays_an_ack() {
    let bench = Bench::new().await;
    bench.append(1).await;
    bench.store.lose_settle_answers(3);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let handler = move |_: Delivery| {
        counted.fetch_add(1, SeqCst);
        async {}
    };
    let consumer = bench.rheo.consumer("s", "g").start(handler).await.unwrap();
    eventually(async || consumer.health().counts.fetched == 1 && consumer.health().unsettled == 0)
        .await;
    assert_eq!((bench.lag().await, calls.load(SeqCst)), (0, 1));
    let settles = bench.store.settles();
    assert_eq!(settles.len(), 4, "{settles:?}");
    assert!(settles.iter().all(|outcomes| *outcomes == [Outcome::Ack]), "{settles:?}");
}

#[tokio::test]
async fn k2_a_lease_that_cannot_be_renewed_cancels_its_handler() {
    let bench = Bench::new().await;
    bench.append(1).await;
    let (ended, mut cancelled) = mpsc::unbounded_channel();
    let handler = move |_: Delivery| {
        let ended = SendOnDrop(ended.clone());
        async move {
            let _ended = ended;
            pending::<()>().await;
        }
    };
    let consumer = bench.rheo.consumer("s", "g").start(handler).await.unwrap();
    eventually(async || consumer.health().running == 1).await;
    bench.store.fail_claims(true);
    bench.store.fail_renewals(true);
    bench.clock.advance(LEASE / 2);
    let failed_to_renew =
        async || consumer.health().last_error.is_some_and(|error| error.operation() == "renew");
    eventually(failed_to_renew).await;
    assert!(cancelled.try_recv().is_err());
    bench.clock.advance(LEASE / 2);
    assert_eq!(in_time(cancelled.recv()).await, Some(()));
    let health = consumer.health();
    assert_eq!((health.counts.stale, health.unsettled), (1, 0));
    assert!(bench.store.settles().is_empty());

    // It comes back by itself, and handles the event anew.
    bench.store.fail_renewals(false);
    bench.store.fail_claims(false);
    eventually(async || consumer.health().running == 1).await;
}

struct SendOnDrop(mpsc::UnboundedSender<()>);

impl Drop for SendOnDrop {
    fn drop(&mut self) {
        // The test may have ended.
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn l2_a_process_that_stood_still_may_renew_what_nobody_took() {
    let bench = Bench::new().await;
    bench.append(1).await;
    let consumer =
        bench.rheo.consumer("s", "g").start(|_: Delivery| pending::<()>()).await.unwrap();
    eventually(async || consumer.health().running == 1).await;
    bench.clock.advance(LEASE * 3);
    eventually(async || bench.store.renewals() == 1).await;
    assert_eq!((consumer.health().running, consumer.health().counts.stale), (1, 0));
}

#[tokio::test]
async fn it_outlives_its_stream() {
    let bench = Bench::new().await;
    let consumer = bench.rheo.consumer("s", "g").start(async |_: Delivery| ()).await.unwrap();
    bench.append(1).await;
    bench.drained().await;
    bench.rheo.delete_stream("s", Confirm::Yes).await.unwrap();
    let missing = async || {
        consumer.health().last_error.is_some_and(|error| error.kind() == ErrorKind::StreamNotFound)
    };
    eventually(missing).await;
    bench.rheo.create_stream("s", 3).await.unwrap();
    bench.rheo.create_group("s", "g", GroupOptions::default()).await.unwrap();
    bench.append(1).await;
    bench.drained().await;
}
