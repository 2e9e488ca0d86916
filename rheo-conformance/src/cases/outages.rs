//! Outages: law E3.

use std::time::{Duration, Instant};

use futures::future::join_all;
use rheo_core::{Effect, Error, ErrorKind, GroupOptions, NewEvent, Outcome, Result, Retry, Rheo};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::handling::Gated;
use crate::operations::operations;
use crate::outage::{Fault, Line, WRITES};
use crate::trial::{append_to, eventually, fetch, sequences};

case_table! {
    "outages.a_store_that_refuses_is_unavailable" [E3 E1] => a_store_that_refuses;
    "outages.a_store_that_is_silent_is_unavailable_in_time" [E3 E1] => a_store_that_is_silent;
    "outages.an_unanswered_write_may_have_taken_effect" [E3 E1] => an_unanswered_write;
    "outages.waiting_behind_a_silent_write_counts" [E3] => waiting_behind_a_silent_write;
    "outages.an_append_with_an_id_is_safe_to_repeat" [E3 S7] => an_append_with_an_id;
    "outages.consumers_come_back_from_refusals" [E3 K5] => consumers_come_back_from_refusals;
    "outages.consumers_come_back_from_silence" [E3 K5] => consumers_come_back_from_silence;
    "outages.the_same_handle_works_after_a_crash" [E3] needs [Durable] runs alone
        => after_a_crash;
}

/// How long an operation of the handle may take here.
const TIMEOUT: Duration = Duration::from_millis(400);

/// An impatient handle on a line, and a stream `s` of three events with a group
/// `g`, which another made: to make a store ready may take longer.
async fn on_a_line(trial: &Trial) -> (Rheo, Line) {
    let patient = trial.with_group(1, GroupOptions::default()).await;
    append_to(&patient, 0, 3).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.timeout(TIMEOUT).build().await.expect("the store is ready");
    // From here on it knows the stream, and need not ask for it.
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it is there").len(), 3);
    (rheo, line)
}

/// Everything that was written before is there, and the handle goes on.
pub(crate) async fn assert_as_before(rheo: &Rheo) {
    let stored = rheo.read("s", 0, 0, 10).await.expect("the store is back");
    assert_eq!(stored.len(), 3);
    let event = rheo.append("s", NewEvent::new("t", json!(1))).await.expect("the store is back");
    assert_eq!(event.sequence(), 4);
    let deliveries = fetch(rheo, 10).await;
    for answer in rheo.settle(deliveries.iter().map(|delivery| (delivery, Outcome::Ack))).await {
        answer.expect("the lease is current");
    }
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
}

/// The error of an operation that an outage must have hit.
pub(crate) fn error_of(operation: &str, result: Result<()>) -> Error {
    let error = result.expect_err(operation);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.retry(), Retry::After, "{error}");
    assert_eq!(error.operation(), operation, "{error}");
    error
}

/// While the store refuses, everything is `Unavailable` and surely not done;
/// when it is back, so is the handle.
async fn a_store_that_refuses(trial: Trial) {
    let (rheo, line) = on_a_line(&trial).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    line.fail(Fault::Refused(ErrorKind::Unavailable));
    let tried = operations(&rheo, "s", "g", Some(&delivery.lease)).into_iter();
    let tried = tried.map(|operation| async move { (operation.name, operation.call.await) });
    for (name, result) in join_all(tried).await {
        let error = error_of(name, result);
        let renewed = name == "renew";
        assert!(renewed || error.effect() == Effect::NotApplied, "{error}");
    }
    line.mend();
    rheo.release(&delivery).await.expect("the lease is still current");
    assert_as_before(&rheo).await;
}

/// A write that waits for the silent write of another ends when its own time is over.
async fn waiting_behind_a_silent_write(trial: Trial) {
    let (rheo, line) = on_a_line(&trial).await;
    line.fail(Fault::Silent);
    let append = || rheo.append("s", NewEvent::new("t", json!(1)));
    let first = tokio::spawn({
        let first = rheo.clone();
        async move { first.append("s", NewEvent::new("t", json!(0))).await.map(drop) }
    });
    // Half a timeout later, so that twice the time would show.
    tokio::time::sleep(TIMEOUT / 2).await;
    let begun = Instant::now();
    let error = error_of("append", append().await.map(drop));
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert!(begun.elapsed() < TIMEOUT * 3 / 2, "it took {:?}", begun.elapsed());
    error_of("append", first.await.expect("it does not panic"));
}

/// While the store is silent, everything is `Unavailable` when its time is over.
async fn a_store_that_is_silent(trial: Trial) {
    let (rheo, line) = on_a_line(&trial).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    line.fail(Fault::Silent);
    let begun = Instant::now();
    let tried = operations(&rheo, "s", "g", Some(&delivery.lease)).into_iter();
    let tried = tried.map(|operation| async move { (operation.name, operation.call.await) });
    let all = tokio::time::timeout(TIMEOUT * 20, join_all(tried)).await;
    for (name, result) in all.expect("each operation ends within its timeout") {
        error_of(name, result);
    }
    assert!(begun.elapsed() >= TIMEOUT, "it was given up after {:?}", begun.elapsed());
    line.mend();
    rheo.release(&delivery).await.expect("the lease is still current");
    assert_as_before(&rheo).await;
}

/// A write that is not answered says that it may have taken effect; reads go on.
async fn an_unanswered_write(trial: Trial) {
    let (rheo, line) = on_a_line(&trial).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    line.fail_at(WRITES, Fault::Silent);
    let tried = operations(&rheo, "s", "g", Some(&delivery.lease)).into_iter();
    let tried = tried
        .map(|operation| async move { (operation.name, operation.writes, operation.call.await) });
    for (name, writes, result) in join_all(tried).await {
        if writes {
            assert_eq!(error_of(name, result).effect(), Effect::Unknown, "{name}");
        } else {
            result.expect(name);
        }
    }
}

/// Where an append's answer was lost, appending again under the same id finds
/// the stored event, and writes nothing more.
async fn an_append_with_an_id(trial: Trial) {
    let (rheo, line) = on_a_line(&trial).await;
    let id = uuid::Uuid::from_u128(trial.rng().u128(..));
    let event = || NewEvent::new("late", json!(1)).id(id);
    line.fail_at(&["append"], Fault::AnswerLost);
    let error = error_of("append", rheo.append("s", event()).await.map(drop));
    assert_eq!(error.effect(), Effect::Unknown);
    line.mend();
    let again = rheo.append("s", event()).await.expect("the store is back");
    assert_eq!((again.id(), again.sequence()), (id, 4));
    let stored = rheo.read("s", 0, 0, 10).await.expect("the store is back");
    assert_eq!(stored.len(), 4);
}

async fn consumers_come_back_from_refusals(trial: Trial) {
    consumer_comes_back(trial, Fault::Refused(ErrorKind::Unavailable)).await;
}

async fn consumers_come_back_from_silence(trial: Trial) {
    consumer_comes_back(trial, Fault::Silent).await;
}

/// A running consumer outlives an outage, without being started again.
async fn consumer_comes_back(trial: Trial, fault: Fault) {
    let (rheo, line) = on_a_line(&trial).await;
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").poll_interval(Duration::from_millis(20));
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("the first events are handled", async || gated.begun().len() == 3).await;
    line.fail(fault);
    eventually("the outage shows", async || consumer.health().consecutive_failures > 0).await;
    append_to(&trial.rheo().await, 0, 2).await;
    line.mend();
    eventually("the rest is handled", async || gated.begun().len() == 5).await;
    eventually("all is settled", async || consumer.health().unsettled == 0).await;
    assert_eq!(gated.begun_sorted(), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
    assert_eq!(consumer.health().consecutive_failures, 0);
}

/// What was acknowledged is there after a crash, for the handle from before it.
async fn after_a_crash(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let deliveries = fetch(&rheo, 2).await;
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    trial.crash().await;
    eventually("the store is back", async || rheo.ping().await.is_ok()).await;
    let stored = rheo.read("s", 0, 0, 10).await.expect("the store is back");
    assert_eq!(stored.len(), 3);
    rheo.ack(&deliveries[1]).await.expect("the lease is still current");
    assert_eq!(sequences(&fetch(&rheo, 10).await), [3]);
}
