//! Subscriptions: a group's events as a stream, by laws K1, K3, K4 and K7.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use rheo_core::runtime::{Held, SubscribeOptions};
use rheo_core::{ErrorKind, GroupOptions, Outcome, Rheo, Subscription};

use crate::Trial;
use crate::case::case_table;
use crate::handling::Gated;
use crate::trial::{append_to, attempts, eventually, fetch, sequences};

case_table! {
    "subscribing.unsettled_events_are_bounded" [K1] => unsettled_events_are_bounded;
    "subscribing.an_event_dropped_unsettled_is_released" [K1] => a_dropped_event;
    "subscribing.a_chunk_is_settled_whole" [K1] => a_chunk_is_settled_whole;
    "subscribing.each_event_of_a_chunk_has_its_own_answer"
        [K1 L6] needs [Replay] => each_has_its_own_answer;
    "subscribing.leases_are_renewed_while_held" [K1] => leases_are_renewed_while_held;
    "subscribing.a_lost_lease_is_told" [K2] needs [Replay] => a_lost_lease_is_told;
    "subscribing.a_consumer_beside_it_is_already_running" [K3] => a_consumer_beside_it;
    "subscribing.a_drain_ends_the_stream" [K4] => a_drain_ends_the_stream;
    "subscribing.dropped_it_hands_back_what_is_buffered" [K4] => a_dropped_subscription;
    "subscribing.in_order_the_next_comes_after_the_settle"
        [K7] needs [OrderedDelivery] => the_next_comes_after_the_settle;
}

const HOUR: Duration = Duration::from_secs(3600);

async fn subscribe(rheo: &Rheo, max_demand: usize) -> Subscription {
    let options = SubscribeOptions::default().max_demand(max_demand).lease(HOUR);
    rheo.subscribe("s", "g", options).await.expect("nobody consumes the group")
}

async fn next(subscription: &mut Subscription) -> Held {
    let next = tokio::time::timeout(Duration::from_secs(10), subscription.next()).await;
    next.expect("an event comes").expect("the stream goes on")
}

async fn next_few(subscription: &mut Subscription, count: usize) -> Vec<Held> {
    let mut few = Vec::new();
    for _ in 0..count {
        few.push(next(subscription).await);
    }
    few
}

fn place(held: &Held) -> (u64, u32) {
    (held.event().sequence(), held.lease().attempt())
}

/// No more than `max_demand` events are out at once; each settle lets more come.
async fn unsettled_events_are_bounded(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 10).await;
    let mut subscription = subscribe(&rheo, 3).await;
    let mut held = next_few(&mut subscription, 3).await;
    for sequence in 4..=10 {
        assert!(subscription.next().now_or_never().is_none(), "a fourth is out");
        let info = rheo.group_info("s", "g").await.expect("the group is there");
        assert_eq!(info.leased(), 3);
        held.remove(0).ack().await.expect("the lease is current");
        held.push(next(&mut subscription).await);
        assert_eq!(held[2].event().sequence(), sequence);
    }
    for answer in Held::settle_all(held, Outcome::Ack).await {
        answer.expect("the lease is current");
    }
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
}

/// An event that is dropped comes again, and its attempt was not counted.
async fn a_dropped_event(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 1).await;
    let mut subscription = subscribe(&rheo, 1).await;
    for _ in 0..3 {
        let held = next(&mut subscription).await;
        assert_eq!(place(&held), (1, 1));
        drop(held);
    }
    next(&mut subscription).await.ack().await.expect("the lease is current");
    eventually("the releases are counted", async || subscription.health().counts.released == 3)
        .await;
}

/// Chunks of the stream are settled each in one call.
async fn a_chunk_is_settled_whole(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 20).await;
    let mut subscription = subscribe(&rheo, 5).await;
    for chunk in 0..4 {
        let held = next_few(&mut subscription, 5).await;
        let first = 5 * chunk + 1;
        let expected: Vec<_> = (first..first + 5).map(|sequence| (sequence, 1)).collect();
        assert_eq!(held.iter().map(place).collect::<Vec<_>>(), expected);
        let answers = Held::settle_all(held, Outcome::Ack).await;
        assert_eq!(answers.len(), 5);
        for answer in answers {
            answer.expect("the lease is current");
        }
        let lag = rheo.lag("s", "g").await.expect("the group is there").total();
        assert_eq!(lag, 15 - 5 * chunk);
    }
}

/// One lease of a chunk that was revoked does not spoil the others.
async fn each_has_its_own_answer(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let mut subscription = subscribe(&rheo, 3).await;
    let held = next_few(&mut subscription, 3).await;
    let second = rheo_core::Replay::Positions(vec![held[1].event().position()]);
    let replayed = rheo.replay("s", "g", second, rheo_core::ReplayOptions::default()).await;
    replayed.expect("replay is claimed");
    let answers = Held::settle_all(held, Outcome::Ack).await;
    let kinds: Vec<_> =
        answers.into_iter().map(|answer| answer.err().map(|error| error.kind())).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::StaleLease), None]);
    let again = next(&mut subscription).await;
    assert_eq!(place(&again), (2, 2));
    again.ack().await.expect("the lease is current");
}

/// However long an event is held, nobody else gets it.
async fn leases_are_renewed_while_held(trial: Trial) {
    let rival = trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    append_to(&rheo, 0, 1).await;
    let mut subscription = subscribe(&rheo, 1).await;
    let held = next(&mut subscription).await;
    for half in 1..=4 {
        trial.clock().advance(HOUR / 2);
        eventually("it is renewed", async || line.renewed() >= half).await;
        assert!(fetch(&rival, 1).await.is_empty(), "it was handed out twice");
    }
    assert!(!held.is_lost());
    held.ack().await.expect("the lease is current");
}

/// Whoever holds an event whose lease is lost learns it, and cannot settle it.
async fn a_lost_lease_is_told(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let mut subscription = subscribe(&rheo, 1).await;
    let held = next(&mut subscription).await;
    let all = rheo_core::Replay::AfterSequence(0);
    let replayed = rheo.replay("s", "g", all, rheo_core::ReplayOptions::default()).await;
    replayed.expect("replay is claimed");
    trial.clock().advance(HOUR / 2);
    let told = tokio::time::timeout(Duration::from_secs(10), held.lost()).await;
    told.expect("it is told that the lease is lost");
    let error = held.ack().await.expect_err("the lease is lost");
    assert_eq!(error.kind(), ErrorKind::StaleLease);
}

async fn a_consumer_beside_it(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let _subscription = subscribe(&rheo, 1).await;
    let handler = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").start(handler).await;
    assert_eq!(consumer.expect_err("it runs already").kind(), ErrorKind::AlreadyRunning);
    let second = rheo.subscribe("s", "g", SubscribeOptions::default()).await;
    assert_eq!(second.expect_err("it runs already").kind(), ErrorKind::AlreadyRunning);
}

/// Drained, it waits for what is held, hands back the rest, and ends.
async fn a_drain_ends_the_stream(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 5).await;
    let mut subscription = subscribe(&rheo, 5).await;
    let held = next(&mut subscription).await;
    eventually("the rest is buffered", async || subscription.health().buffered == 4).await;
    let meanwhile = async {
        eventually("it drains", async || subscription.health().draining).await;
        held.ack().await
    };
    let (drained, acked) = tokio::join!(subscription.drain(HOUR), meanwhile);
    acked.expect("the lease is current");
    let drained = drained.expect("nothing else drains it");
    assert_eq!((drained.settled, drained.released, drained.left), (1, 4, vec![]));
    assert!(subscription.next().await.is_none());
    let rest = fetch(&rheo, 10).await;
    assert_eq!((sequences(&rest), attempts(&rest)), (vec![2, 3, 4, 5], vec![1; 4]));
}

/// Dropped, it hands back what is buffered; what is held stays leased until it
/// is settled, and another may take over.
async fn a_dropped_subscription(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let mut subscription = subscribe(&rheo, 3).await;
    let held = next(&mut subscription).await;
    eventually("the rest is buffered", async || subscription.health().buffered == 2).await;
    drop(subscription);
    let mut another = subscribe(&rheo, 3).await;
    let mut rest = next_few(&mut another, 2).await;
    rest.sort_by_key(|held| held.event().sequence());
    assert_eq!(rest.iter().map(place).collect::<Vec<_>>(), [(2, 1), (3, 1)]);
    held.ack().await.expect("the lease is current");
    for answer in Held::settle_all(rest, Outcome::Ack).await {
        answer.expect("the lease is current");
    }
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
}

/// In an ordered group a partition's next event comes when the one before is settled.
async fn the_next_comes_after_the_settle(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().ordered(true)).await;
    append_to(&rheo, 0, 3).await;
    let mut subscription = subscribe(&rheo, 3).await;
    let first = next(&mut subscription).await;
    assert!(subscription.next().now_or_never().is_none(), "the second came beside the first");
    first.retry("again", Duration::ZERO).await.expect("the lease is current");
    for expected in [(1, 2), (2, 1), (3, 1)] {
        let held = next(&mut subscription).await;
        assert_eq!(place(&held), expected);
        assert!(subscription.next().now_or_never().is_none(), "another came beside it");
        held.ack().await.expect("the lease is current");
    }
}
