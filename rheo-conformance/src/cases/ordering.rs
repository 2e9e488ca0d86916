//! Ordered groups: law C7.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use rheo_core::{Delivery, GroupOptions, Outcome, Position, Replay, ReplayOptions, Rheo};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{ack_all, append_to, attempts, drain, fetch, info, sequences};

case_table! {
    "order.a_run_goes_to_one_consumer" [C7] needs [OrderedDelivery] => a_run_goes_to_one_consumer;
    "order.nothing_comes_until_the_whole_run_is_settled" [C7] needs [OrderedDelivery]
        => nothing_comes_until_the_whole_run_is_settled;
    "order.a_delayed_retry_holds_up_what_follows" [C7 L4] needs [OrderedDelivery]
        => a_delayed_retry_holds_up_what_follows;
    "order.a_retry_comes_again_first" [C7] needs [OrderedDelivery] => a_retry_comes_again_first;
    "order.a_retry_waits_for_the_rest_of_its_run" [C7] needs [OrderedDelivery]
        => a_retry_waits_for_the_rest_of_its_run;
    "order.a_run_stops_before_an_event_that_waits" [C7] needs [OrderedDelivery]
        => a_run_stops_before_an_event_that_waits;
    "order.a_dead_letter_lets_the_next_pass" [C7 L4] needs [OrderedDelivery]
        => a_dead_letter_lets_the_next_pass;
    "order.expired_leases_come_again_in_order" [C5 C7] needs [OrderedDelivery]
        => expired_leases_come_again_in_order;
    "order.a_renewed_lease_holds_on" [C7 L5] needs [OrderedDelivery] => a_renewed_lease_holds_on;
    "order.partitions_do_not_wait_for_each_other" [C7] needs [OrderedDelivery Partitions]
        => partitions_do_not_wait_for_each_other;
    "order.replayed_events_come_before_the_rest" [C7 R2] needs [OrderedDelivery Replay]
        => replayed_events_come_before_the_rest;
    "order.racing_consumers_keep_it_through_retries" [C7]
        needs [OrderedDelivery Partitions] => racing_consumers_keep_it_through_retries;
}

async fn ordered(trial: &Trial, count: u64) -> Rheo {
    let rheo = trial.with_group(1, GroupOptions::default().ordered(true)).await;
    append_to(&rheo, 0, count).await;
    rheo
}

/// One fetch may return a run in order; while it is leased nobody gets another event.
async fn a_run_goes_to_one_consumer(trial: Trial) {
    let rheo = ordered(&trial, 9).await;
    assert_eq!(sequences(&fetch(&rheo, 4).await), [1, 2, 3, 4]);
    assert_eq!(fetch(&rheo, 9).await, []);
    assert_eq!(fetch(&trial.rheo().await, 9).await, []);
}

/// The next run begins when the last event of the one before is settled, in whatever order.
async fn nothing_comes_until_the_whole_run_is_settled(trial: Trial) {
    let rheo = ordered(&trial, 5).await;
    let run = fetch(&rheo, 3).await;
    for settled in [2, 0, 1] {
        assert_eq!(fetch(&rheo, 9).await, []);
        rheo.ack(&run[settled]).await.unwrap();
    }
    assert_eq!(sequences(&fetch(&rheo, 9).await), [4, 5]);
}

/// While an event waits for its retry's delay, nothing behind it is handed out.
async fn a_delayed_retry_holds_up_what_follows(trial: Trial) {
    let rheo = ordered(&trial, 5).await;
    let first = fetch(&rheo, 1).await;
    rheo.retry(&first[0], "later", Duration::from_secs(10)).await.unwrap();
    assert_eq!(fetch(&rheo, 9).await, []);
    trial.advance_micros(9_999_999);
    assert_eq!(fetch(&rheo, 9).await, []);
    trial.advance_micros(1);
    let again = fetch(&rheo, 1).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![1], vec![2]));
    assert_eq!(fetch(&rheo, 9).await, []);
    rheo.ack(&again[0]).await.unwrap();
    assert_eq!(sequences(&drain(&rheo).await), [2, 3, 4, 5]);
}

/// An event that is retried at once is the first of the next run.
async fn a_retry_comes_again_first(trial: Trial) {
    let rheo = ordered(&trial, 3).await;
    let first = fetch(&rheo, 1).await;
    rheo.retry(&first[0], "again", Duration::ZERO).await.unwrap();
    let run = fetch(&rheo, 9).await;
    assert_eq!((sequences(&run), attempts(&run)), (vec![1, 2, 3], vec![2, 1, 1]));
}

/// While a later event of the run is still leased, a retried one is not handed out beside it.
async fn a_retry_waits_for_the_rest_of_its_run(trial: Trial) {
    let rheo = ordered(&trial, 3).await;
    let run = fetch(&rheo, 2).await;
    rheo.retry(&run[0], "again", Duration::ZERO).await.unwrap();
    assert_eq!(fetch(&trial.rheo().await, 9).await, []);
    rheo.release(&run[1]).await.unwrap();
    let again = fetch(&trial.rheo().await, 9).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![1, 2, 3], vec![2, 1, 1]));
}

/// A run ends before the first event that is not due, though later ones are.
async fn a_run_stops_before_an_event_that_waits(trial: Trial) {
    let rheo = ordered(&trial, 5).await;
    let run = fetch(&rheo, 3).await;
    let settled = rheo
        .settle([
            (&run[0], Outcome::Release),
            (&run[1], Outcome::retry_after("later", Duration::from_secs(3))),
            (&run[2], Outcome::Release),
        ])
        .await;
    assert!(settled.iter().all(Result::is_ok));
    let before = fetch(&rheo, 9).await;
    assert_eq!(sequences(&before), [1]);
    ack_all(&rheo, &before).await;
    assert_eq!(fetch(&rheo, 9).await, []);
    trial.advance_secs(3);
    let rest = drain(&rheo).await;
    assert_eq!((sequences(&rest), attempts(&rest)), (vec![2, 3, 4, 5], vec![2, 1, 1, 1]));
}

/// A rejected event is done with: the next one comes.
async fn a_dead_letter_lets_the_next_pass(trial: Trial) {
    let rheo = ordered(&trial, 2).await;
    let first = fetch(&rheo, 1).await;
    rheo.reject(&first[0], "bad").await.unwrap();
    assert_eq!(sequences(&fetch(&rheo, 9).await), [2]);
}

/// What is left of an expired run comes again in order, before new events.
async fn expired_leases_come_again_in_order(trial: Trial) {
    let rheo = ordered(&trial, 5).await;
    let run = fetch(&rheo, 3).await;
    rheo.ack(&run[1]).await.unwrap();
    trial.advance_secs(5);
    let again = drain(&trial.rheo().await).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![1, 3, 4, 5], vec![2, 2, 1, 1]));
}

/// A lease that is renewed keeps the partition to its holder.
async fn a_renewed_lease_holds_on(trial: Trial) {
    let rheo = ordered(&trial, 2).await;
    let first = fetch(&rheo, 1).await;
    trial.advance_secs(4);
    let renewed = rheo.renew(&first[0], Duration::from_secs(5)).await.unwrap();
    trial.advance_secs(4);
    assert_eq!(fetch(&rheo, 9).await, []);
    rheo.ack(&renewed).await.unwrap();
    assert_eq!(sequences(&fetch(&rheo, 9).await), [2]);
}

/// A partition that is held up, by a lease or a delay, holds up no other.
async fn partitions_do_not_wait_for_each_other(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default().ordered(true)).await;
    append_to(&rheo, 0, 2).await;
    let leased = fetch(&rheo, 1).await;
    append_to(&rheo, 1, 2).await;
    let delayed = fetch(&rheo, 1).await;
    assert_eq!(delayed[0].event.partition(), 1);
    rheo.retry(&delayed[0], "later", Duration::from_secs(3)).await.unwrap();
    append_to(&rheo, 2, 2).await;
    let free = drain(&rheo).await;
    let positions: Vec<_> = free.iter().map(|delivery| delivery.event.position()).collect();
    assert_eq!(positions, [Position::new(2, 1), Position::new(2, 2)]);
    rheo.ack(&leased[0]).await.unwrap();
    let next = drain(&rheo).await;
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].event.position(), Position::new(0, 2));
}

/// Replayed events are lower ones that wait for their turn: they come first, in order.
async fn replayed_events_come_before_the_rest(trial: Trial) {
    let rheo = ordered(&trial, 5).await;
    let run = fetch(&rheo, 4).await;
    ack_all(&rheo, &run).await;
    let at = |sequence| Position::new(0, sequence);
    let selection = Replay::Positions(vec![at(4), at(2)]);
    rheo.replay("s", "g", selection, ReplayOptions::default()).await.unwrap();
    let again = fetch(&rheo, 9).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![2, 4, 5], vec![2, 2, 1]));
}

/// However many consumers race, and whatever they retry, each partition is acked in order.
async fn racing_consumers_keep_it_through_retries(trial: Trial) {
    let options = GroupOptions::default().ordered(true).max_attempts(1000);
    let rheo = trial.with_group(3, options).await;
    for partition in 0..3 {
        append_to(&rheo, partition, 30).await;
    }
    let acked: Acked = Arc::default();
    let mut rng = trial.rng();
    let mut consumers = Vec::new();
    for _ in 0..4 {
        let consumer = consume(trial.rheo().await, rng.fork(), Arc::clone(&acked));
        consumers.push(tokio::spawn(consumer));
    }
    for consumer in join_all(consumers).await {
        consumer.expect("no consumer panics");
    }
    let all: Vec<u64> = (1..=30).collect();
    let expected: BTreeMap<_, _> = (0..3).map(|partition| (partition, all.clone())).collect();
    assert_eq!(*acked.lock().unwrap_or_else(PoisonError::into_inner), expected);
}

/// The sequences that were acked, in their order, in each partition.
type Acked = Arc<Mutex<BTreeMap<u32, Vec<u64>>>>;

/// Consumes until the group is drained, one by one; now and then an event is retried.
async fn consume(rheo: Rheo, mut rng: fastrand::Rng, acked: Acked) {
    while info(&rheo).await.lag() > 0 {
        let mut retried: Vec<u32> = Vec::new();
        for Delivery { event, lease } in fetch(&rheo, rng.usize(1..=5)).await {
            tokio::task::yield_now().await;
            if retried.contains(&event.partition()) {
                rheo.release(&lease).await.unwrap();
            } else if rng.u8(..) < 64 {
                retried.push(event.partition());
                rheo.retry(&lease, "now and then", Duration::ZERO).await.unwrap();
            } else {
                note(&acked, event.partition(), event.sequence());
                rheo.ack(&lease).await.unwrap();
            }
        }
        tokio::task::yield_now().await;
    }
}

fn note(acked: &Acked, partition: u32, sequence: u64) {
    let mut acked = acked.lock().unwrap_or_else(PoisonError::into_inner);
    acked.entry(partition).or_default().push(sequence);
}
