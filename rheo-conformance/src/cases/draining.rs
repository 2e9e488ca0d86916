//! Owning, draining and running in order: laws K3, K4 and K7.

use std::time::Duration;

use rheo_core::runtime::SubscribeOptions;
use rheo_core::{ErrorKind, GroupOptions, Outcome};

use crate::Trial;
use crate::case::case_table;
use crate::handling::{Gated, panic_quietly};
use crate::trial::{append_to, attempts, eventually, fetch, sequences};

case_table! {
    "draining.a_second_start_is_already_running" [K3] => a_second_start;
    "draining.other_groups_and_instances_may_run" [K3] => others_may_run;
    "draining.the_group_is_free_after_a_drain" [K3] => free_after_a_drain;
    "draining.the_group_is_free_after_a_drop" [K3] => free_after_a_drop;
    "draining.running_handlers_finish_and_the_rest_is_released" [K4] => a_drain;
    "draining.no_new_event_is_claimed" [K4] => no_new_event_is_claimed;
    "draining.what_is_left_is_returned_and_comes_back" [K4] => what_is_left;
    "draining.a_second_drain_is_already_draining" [K4] => a_second_drain;
    "draining.a_dropped_consumer_ends_in_the_background" [K4] => a_dropped_consumer;
    "running.a_partition_is_handled_one_by_one" [K7] needs [OrderedDelivery] => one_by_one;
    "running.partitions_do_not_wait_for_each_other"
        [K7] needs [OrderedDelivery Partitions] => partitions_do_not_wait;
    "running.a_retry_releases_the_rest_of_the_run"
        [K7] needs [OrderedDelivery] => a_retry_releases_the_rest;
    "running.a_panic_releases_the_rest_of_the_run"
        [K7 K2] needs [OrderedDelivery] => a_panic_releases_the_rest;
}

const HOUR: Duration = Duration::from_secs(3600);

/// An instance consumes a group once, be it by a consumer or a subscription.
async fn a_second_start(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").start(gated.clone()).await;
    let _consumer = consumer.expect("nobody consumes the group");
    let clone = rheo.clone();
    let second = clone.consumer("s", "g").start(gated).await.expect_err("it runs already");
    assert_eq!((second.kind(), second.operation()), (ErrorKind::AlreadyRunning, "start"));
    let options = SubscribeOptions::default();
    let third = clone.subscribe("s", "g", options).await.expect_err("it runs already");
    assert_eq!((third.kind(), third.operation()), (ErrorKind::AlreadyRunning, "subscribe"));
}

/// Another group of the stream, and the group from another instance, are free.
async fn others_may_run(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    rheo.create_group("s", "h", GroupOptions::default()).await.expect("the group is new");
    let gated = Gated::open(|_| Outcome::Ack);
    let first = rheo.consumer("s", "g").start(gated.clone()).await;
    let other_group = rheo.consumer("s", "h").start(gated.clone()).await;
    let other_instance = trial.rheo().await.consumer("s", "g").start(gated.clone()).await;
    let _running = [first, other_group, other_instance].map(|one| one.expect("it may run"));
    append_to(&rheo, 0, 10).await;
    eventually("both groups are drained", async || {
        let (g, h) = (rheo.lag("s", "g").await, rheo.lag("s", "h").await);
        g.is_ok_and(|lag| lag.total() == 0) && h.is_ok_and(|lag| lag.total() == 0)
    })
    .await;
    assert_eq!(gated.begun().len(), 20);
}

async fn free_after_a_drain(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let gated = Gated::open(|_| Outcome::Ack);
    for _ in 0..3 {
        let consumer = rheo.consumer("s", "g").start(gated.clone()).await;
        let consumer = consumer.expect("the one before has been drained");
        consumer.drain(HOUR).await.expect("nothing else drains it");
    }
}

async fn free_after_a_drop(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let gated = Gated::open(|_| Outcome::Ack);
    drop(rheo.consumer("s", "g").start(gated.clone()).await.expect("nobody consumes the group"));
    eventually("the group is free", async || {
        rheo.consumer("s", "g").start(gated.clone()).await.is_ok()
    })
    .await;
}

/// Two run and ten are buffered: the two finish, and the ten are claimable at
/// once, with no attempt lost.
async fn a_drain(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 12).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").concurrency(2).max_demand(12).lease(HOUR);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("two run", async || gated.running() == 2).await;
    eventually("ten are buffered", async || consumer.health().buffered == 10).await;
    let meanwhile = async {
        let mut claimed = Vec::new();
        while claimed.len() < 10 {
            claimed.extend(fetch(&rheo, 100).await);
            tokio::task::yield_now().await;
        }
        assert_eq!(gated.running(), 2, "the running handlers were cut off");
        gated.let_through(2);
        claimed
    };
    let (drained, mut claimed) = tokio::join!(consumer.drain(HOUR), meanwhile);
    let drained = drained.expect("nothing else drains it");
    assert_eq!((drained.settled, drained.released, drained.left), (2, 10, vec![]));
    claimed.sort_by_key(|delivery| delivery.event.sequence());
    assert_eq!(sequences(&claimed), (3..=12).collect::<Vec<_>>());
    assert_eq!(attempts(&claimed), [1; 10]);
    assert_eq!((gated.begun().len(), gated.cancelled()), (2, 0));
    let info = rheo.group_info("s", "g").await.expect("the group is there");
    assert_eq!((info.lag(), info.leased()), (10, 10));
}

/// What is appended while it drains is for others.
async fn no_new_event_is_claimed(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").start(gated.clone()).await;
    let consumer = consumer.expect("the group is there");
    eventually("it runs", async || gated.running() == 1).await;
    let meanwhile = async {
        eventually("it drains", async || consumer.health().draining).await;
        append_to(&rheo, 0, 5).await;
        gated.let_through(10);
    };
    let (drained, ()) = tokio::join!(consumer.drain(HOUR), meanwhile);
    assert!(drained.expect("nothing else drains it").left.is_empty());
    let claimed = fetch(&rheo, 10).await;
    assert_eq!(sequences(&claimed), [2, 3, 4, 5, 6]);
    assert_eq!(attempts(&claimed), [1; 5]);
    assert_eq!(gated.begun(), [(1, 1)]);
}

/// A handler that outlasts the drain is cancelled; its lease is returned, and
/// its event comes back by expiry.
async fn what_is_left(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").lease(Duration::from_secs(10));
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it runs", async || gated.running() == 1).await;
    let drained = consumer.drain(Duration::from_millis(20)).await.expect("nothing else drains it");
    assert_eq!((drained.settled, drained.released), (0, 0));
    let left = drained.left.iter().map(|lease| lease.position().sequence).collect::<Vec<_>>();
    assert_eq!(left, [1]);
    eventually("the handler is cancelled", async || gated.cancelled() == 1).await;
    assert!(fetch(&rheo, 1).await.is_empty(), "its lease had not expired");
    trial.advance_secs(11);
    let again = fetch(&rheo, 1).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![1], vec![2]));
}

async fn a_second_drain(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").start(gated.clone()).await;
    let consumer = consumer.expect("the group is there");
    eventually("it runs", async || gated.running() == 1).await;
    let meanwhile = async {
        eventually("it drains", async || consumer.health().draining).await;
        let second = consumer.drain(HOUR).await.expect_err("it drains already");
        assert_eq!((second.kind(), second.operation()), (ErrorKind::AlreadyDraining, "drain"));
        gated.let_through(1);
    };
    let (drained, ()) = tokio::join!(consumer.drain(HOUR), meanwhile);
    assert_eq!(drained.expect("it is the first").settled, 1);
}

/// Dropped, a consumer lets its handlers finish and settles, and hands back the rest.
async fn a_dropped_consumer(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 5).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").concurrency(1).lease(HOUR);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it runs", async || gated.running() == 1).await;
    eventually("four are buffered", async || consumer.health().buffered == 4).await;
    drop(consumer);
    gated.let_through(5);
    eventually("the first is settled and the rest is back", async || {
        let info = rheo.group_info("s", "g").await.expect("the group is there");
        info.lag() == 4 && info.leased() == 0
    })
    .await;
    // A claim that was on its way when the consumer was dropped may have them
    // once more before it hands them back.
    let mut claimed = Vec::new();
    while claimed.len() < 4 {
        claimed.extend(fetch(&rheo, 10).await);
        tokio::task::yield_now().await;
    }
    assert_eq!(attempts(&claimed), [1; 4]);
    assert_eq!((gated.begun(), gated.cancelled()), (vec![(1, 1)], 0));
}

/// In an ordered group one event of a partition is handled at a time, in
/// order, whatever the concurrency.
async fn one_by_one(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().ordered(true)).await;
    append_to(&rheo, 0, 20).await;
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").concurrency(8);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    append_to(&rheo, 0, 20).await;
    eventually("all are handled", async || gated.begun().len() >= 40).await;
    assert_eq!(gated.begun(), (1..=40).map(|sequence| (sequence, 1)).collect::<Vec<_>>());
    assert_eq!(gated.most_at_once(), 1);
}

/// A partition whose handler takes long does not hold up another.
async fn partitions_do_not_wait(trial: Trial) {
    let rheo = trial.with_group(2, GroupOptions::default().ordered(true)).await;
    append_to(&rheo, 0, 3).await;
    append_to(&rheo, 1, 3).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").concurrency(8);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("one of each partition runs", async || gated.running() == 2).await;
    assert_eq!(gated.begun(), [(1, 1), (1, 1)]);
    gated.let_through(6);
    eventually("all are settled", async || {
        rheo.lag("s", "g").await.is_ok_and(|lag| lag.total() == 0)
    })
    .await;
    assert!(gated.most_at_once() <= 2, "{} of two partitions", gated.most_at_once());
}

/// Behind an event that is retried, the rest of its run waits, with no attempt
/// counted; then all come in order.
async fn a_retry_releases_the_rest(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().ordered(true)).await;
    append_to(&rheo, 0, 5).await;
    let gated =
        Gated::open(|delivery| match (delivery.event.sequence(), delivery.lease.attempt()) {
            (2, 1) => Outcome::retry_after("later", HOUR),
            (4, 1) => Outcome::retry("again"),
            _ => Outcome::Ack,
        });
    let consumer = rheo.consumer("s", "g").concurrency(8).lease(HOUR * 1000);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("the second is retried", async || gated.begun().len() >= 2).await;
    eventually("the rest is released", async || {
        let info = rheo.group_info("s", "g").await.expect("the group is there");
        info.leased() == 0
    })
    .await;
    assert_eq!(gated.begun(), [(1, 1), (2, 1)]);
    trial.clock().advance(HOUR);
    eventually("all are settled", async || {
        rheo.lag("s", "g").await.is_ok_and(|lag| lag.total() == 0)
    })
    .await;
    let expected = [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2), (5, 1)];
    assert_eq!(gated.begun(), expected);
}

/// A panic is a retry here too: the order holds through it.
async fn a_panic_releases_the_rest(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().ordered(true)).await;
    append_to(&rheo, 0, 3).await;
    let gated =
        Gated::open(|delivery| match (delivery.event.sequence(), delivery.lease.attempt()) {
            (1, 1 | 2) => panic_quietly("out of paper"),
            _ => Outcome::Ack,
        });
    let consumer = rheo.consumer("s", "g").concurrency(8);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("all are settled", async || {
        rheo.lag("s", "g").await.is_ok_and(|lag| lag.total() == 0)
    })
    .await;
    assert_eq!(gated.begun(), [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]);
}
