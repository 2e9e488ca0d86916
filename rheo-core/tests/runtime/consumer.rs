//! Handling: concurrency, outcomes, attempts, leases, owners.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use rheo_core::runtime::SubscribeOptions;
use rheo_core::{
    Confirm, Delivery, ErrorKind, FetchOptions, GroupOptions, NewEvent, Outcome, Start,
};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use crate::{Bench, LEASE, eventually, in_time};

#[tokio::test]
async fn k1_runs_up_to_its_concurrency_and_acks() {
    let bench = Bench::new().await;
    bench.append(100).await;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (at_once, highest) = (now.clone(), most.clone());
    let handler = move |_: Delivery| {
        let (now, most) = (at_once.clone(), highest.clone());
        async move {
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, SeqCst);
        }
    };
    let consumer =
        bench.rheo.consumer("s", "g").concurrency(4).max_demand(10).start(handler).await.unwrap();
    bench.drained().await;
    assert_eq!(most.load(SeqCst), 4);
    eventually(async || consumer.health().unsettled == 0).await;
    let counts = consumer.health().counts;
    assert_eq!((counts.fetched, counts.acked, counts.stale), (100, 100, 0));
}

#[tokio::test]
async fn k1_holds_no_more_than_its_demand() {
    let bench = Bench::new().await;
    bench.append(50).await;
    let consumer = bench
        .rheo
        .consumer("s", "g")
        .concurrency(2)
        .max_demand(7)
        .start(|_: Delivery| pending::<()>())
        .await
        .unwrap();
    eventually(async || consumer.health().running == 2).await;
    assert_eq!((consumer.health().buffered, consumer.health().unsettled), (5, 7));
    assert_eq!(bench.rheo.group_info("s", "g").await.unwrap().leased(), 7);
}

#[tokio::test]
async fn k1_settles_gather_while_one_is_under_way() {
    let bench = Bench::new().await;
    bench.append(10).await;
    bench.store.close_settle_gate();
    let consumer =
        bench.rheo.consumer("s", "g").concurrency(10).start(async |_: Delivery| ()).await.unwrap();
    eventually(async || consumer.health().running == 0 && consumer.health().unsettled == 10).await;
    bench.store.open_settle_gate();
    bench.drained().await;
    assert!(bench.store.settles().len() <= 2, "{:?}", bench.store.settles());
}

#[tokio::test]
async fn k2_error_panic_and_timeout_are_attempts_and_no_more_are_made() {
    let bench = Bench::with_group(GroupOptions::default().max_attempts(3)).await;
    bench.append(1).await;
    let (seen, mut attempts) = mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        let seen = seen.clone();
        async move {
            seen.send(delivery.lease.attempt()).unwrap();
            match delivery.lease.attempt() {
                1 => Err("out of stock"),
                2 => panic!("no such {}", "shelf"),
                _ => pending().await,
            }
        }
    };
    let started = bench.rheo.consumer("s", "g").handler_timeout(Duration::from_secs(3)).start(
        move |delivery| {
            let handled = handler(delivery);
            async move { handled.await.map(|()| Outcome::Ack) }
        },
    );
    let consumer = started.await.unwrap();
    for attempt in 1..=3 {
        assert_eq!(in_time(attempts.recv()).await, Some(attempt));
    }
    bench.clock.advance(Duration::from_secs(3));
    bench.drained().await;
    let dead = bench.rheo.dead_letters("s", "g", 10, None).await.unwrap();
    assert_eq!((dead.len(), dead[0].attempt), (1, 3));
    assert_eq!(dead[0].reason, "the handler took longer than 3s");
    assert!(attempts.try_recv().is_err());
    eventually(async || consumer.health().counts.retried == 3).await;
}

#[tokio::test]
async fn k2_a_panic_leaves_the_others_alone() {
    let bench = Bench::with_group(GroupOptions::default().max_attempts(1)).await;
    bench.append(5).await;
    let handler = async |delivery: Delivery| assert_ne!(delivery.event.sequence(), 3, "unlucky");
    let _consumer = bench.rheo.consumer("s", "g").start(handler).await.unwrap();
    bench.drained().await;
    let dead = bench.rheo.dead_letters("s", "g", 10, None).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert!(dead[0].reason.starts_with("handler panicked: "), "{}", dead[0].reason);
    assert!(dead[0].reason.contains("unlucky"), "{}", dead[0].reason);
}

#[tokio::test]
async fn k1_a_handler_of_five_lease_times_runs_once_and_buffered_leases_last() {
    let bench = Bench::new().await;
    bench.append(3).await;
    let (gate, begun) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (waits, counts) = (gate.clone(), begun.clone());
    let handler = move |_: Delivery| {
        let (gate, begun) = (waits.clone(), counts.clone());
        async move {
            begun.fetch_add(1, SeqCst);
            gate.acquire().await.unwrap().forget();
        }
    };
    let consumer = bench.rheo.consumer("s", "g").concurrency(1).start(handler).await.unwrap();
    eventually(async || begun.load(SeqCst) == 1).await;
    let other = bench.other().await;
    for _ in 0..10 {
        bench.half_a_lease().await;
        assert!(other.fetch("s", "g", 10, FetchOptions::default()).await.unwrap().is_empty());
    }
    assert_eq!(begun.load(SeqCst), 1);
    gate.add_permits(3);
    bench.drained().await;
    assert_eq!((begun.load(SeqCst), consumer.health().counts.stale), (3, 0));
}

#[tokio::test]
async fn k2_a_revoked_lease_cancels_its_handler() {
    let bench = Bench::new().await;
    bench.append(1).await;
    let (ended, mut cancelled) = mpsc::unbounded_channel::<()>();
    let handler = move |_: Delivery| {
        let ended = ended.clone();
        async move {
            let _ended_when_dropped = ended;
            pending::<()>().await;
        }
    };
    let consumer = bench.rheo.consumer("s", "g").start(handler).await.unwrap();
    eventually(async || consumer.health().running == 1).await;
    // Start at the end, so that nothing comes again.
    bench.rheo.reset_group("s", "g", Confirm::Yes, Start::End).await.unwrap();
    bench.clock.advance(LEASE / 2);
    eventually(async || consumer.health().counts.stale == 1).await;
    assert_eq!(consumer.health().unsettled, 0);
    assert!(bench.store.settles().is_empty());
    drop(consumer);
    assert_eq!(in_time(cancelled.recv()).await, None);
}

#[tokio::test]
async fn k3_an_instance_runs_one_consumer_of_a_group() {
    let bench = Bench::new().await;
    let nothing = async |_: Delivery| ();
    let consumer = bench.rheo.consumer("s", "g").start(nothing).await.unwrap();
    let again = bench.rheo.clone().consumer("s", "g").start(nothing).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyRunning);
    let stream = bench.rheo.subscribe("s", "g", SubscribeOptions::default()).await.unwrap_err();
    assert_eq!(stream.kind(), ErrorKind::AlreadyRunning);
    let _elsewhere = bench.other().await.consumer("s", "g").start(nothing).await.unwrap();
    consumer.drain(Duration::from_secs(5)).await.unwrap();
    let _after = bench.rheo.consumer("s", "g").start(nothing).await.unwrap();
}

#[tokio::test]
async fn what_is_wrong_shows_at_the_start() {
    let bench = Bench::new().await;
    let nothing = async |_: Delivery| ();
    let rheo = &bench.rheo;
    let starts = [
        (rheo.consumer("x", "g"), ErrorKind::StreamNotFound),
        (rheo.consumer("s", "x"), ErrorKind::GroupNotFound),
        (rheo.consumer("s", "g").concurrency(0), ErrorKind::Invalid),
        (rheo.consumer("s", "g").max_demand(0), ErrorKind::Invalid),
        (rheo.consumer("s", "g").lease(Duration::ZERO), ErrorKind::Invalid),
        (rheo.consumer("s", "g").handler_timeout(Duration::ZERO), ErrorKind::Invalid),
        (rheo.consumer("s", "g").poll_interval(Duration::ZERO), ErrorKind::Invalid),
        (rheo.consumer("s", "g").consumer_id(""), ErrorKind::Invalid),
        (rheo.consumer("s", "g").partitions([1]), ErrorKind::Invalid),
        (rheo.consumer("s", "g").partitions([]), ErrorKind::Invalid),
    ];
    for (builder, kind) in starts {
        let error = builder.start(nothing).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (kind, "start"));
    }
    assert!(rheo.consumer("s", "g").start(nothing).await.is_ok());
}

#[tokio::test]
async fn w1_a_sleeping_consumer_is_woken_and_polls_without() {
    for waking in [true, false] {
        let bench = Bench::new().await;
        let rheo = rheo_core::Rheo::builder(bench.store.clone())
            .clock(bench.clock.clone())
            .waking(waking)
            .build()
            .await
            .unwrap();
        let hour = Duration::from_secs(3600);
        let builder = rheo.consumer("s", "g").poll_interval(hour);
        let consumer = builder.start(async |_: Delivery| ()).await.unwrap();
        // Let it find that there is nothing.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        bench.append(1).await;
        if !waking {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(consumer.health().counts.fetched, 0);
            bench.clock.advance(hour);
        }
        bench.drained().await;
    }
}

#[tokio::test]
async fn a_retry_at_once_comes_at_once_without_waking() {
    let bench = Bench::new().await;
    let rheo = rheo_core::Rheo::builder(bench.store.clone()).waking(false).build().await.unwrap();
    bench.append(1).await;
    let handler = async |delivery: Delivery| match delivery.lease.attempt() {
        1 => Outcome::retry("once more"),
        _ => Outcome::Ack,
    };
    let builder = rheo.consumer("s", "g").poll_interval(Duration::from_secs(3600));
    let _consumer = builder.start(handler).await.unwrap();
    bench.drained().await;
}

#[tokio::test]
async fn partitions_can_be_chosen() {
    let bench = Bench::new().await;
    bench.rheo.create_stream("two", 2).await.unwrap();
    bench.rheo.create_group("two", "g", GroupOptions::default()).await.unwrap();
    for partition in [0, 1] {
        let event = NewEvent::new("t", json!(null)).partition(partition);
        bench.rheo.append("two", event).await.unwrap();
    }
    let builder = bench.rheo.consumer("two", "g").partitions([1]);
    let _consumer = builder.start(async |_: Delivery| ()).await.unwrap();
    eventually(async || bench.rheo.lag("two", "g").await.unwrap().total() == 1).await;
    assert_eq!(bench.rheo.lag("two", "g").await.unwrap().partitions[0].lag(), 1);
}
